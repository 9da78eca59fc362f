"""Programs of half floats have the kernels of float32, and round where they did."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isoform
from isoform.compiler.targets.levels import lower_to, run_passes
from isoform.dialects import reference
from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.program import Program
from isoform.dialects.types import from_numpy
from isoform.passes.equivalence import compare

HALVES = (np.float16, ml_dtypes.bfloat16)
WINDOW: dict[str, Any] = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}


def net(dtype: Any) -> Program:
    """Convolutions with bias and relu, joined, a function that rounds, and a convolution."""
    rng, b = np.random.default_rng(0), isoform.GraphBuilder()

    def weight(name: str, *shape: int) -> Any:
        return b.weight(name, rng.standard_normal(shape).astype(dtype))

    x = b.input("x", (1, 4, 8, 8), from_numpy(np.dtype(dtype)))
    y = b.relu(b.conv(x, weight("w", 8, 4, 3, 3), weight("b", 8), **WINDOW))
    z = b.op("concat", y, b.relu(b.conv(y, weight("v", 8, 8, 3, 3), **WINDOW)), axis=1)
    b.output("z", b.conv(b.sigmoid(z), weight("u", 8, 16, 3, 3), **WINDOW))
    return b.build()


def kernels(program: Program) -> Counter[str]:
    """Kernels that run, by kind: those of weights alone do not."""
    from isoform.dialects.weights_only import weights_only

    ops = lower_to(program, "kernel").main.body.block.ops
    known = weights_only(ops)
    return Counter(
        op.name for op in ops if op.name.startswith("kernel.") and op.results[0] not in known
    )


@pytest.mark.parametrize("half", HALVES)
def test_only_inputs_and_results_cost_a_kernel_more(half: Any) -> None:
    found, plain = kernels(net(half)), kernels(net(np.float32))
    assert found["kernel.conv"] == plain["kernel.conv"]
    assert found["kernel.loops"] <= plain["kernel.loops"] + 2


@pytest.mark.parametrize("half", HALVES)
def test_each_number_is_rounded_where_it_was(half: Any) -> None:
    """Op by op, in the arithmetic in which each op rounds to its type."""
    program = net(half)
    made = program.clone()
    run_passes(made, "graph-to-algebra,algebra-inline-copies,widen-half-products,dce")
    wide = made.clone()
    run_passes(wide, "widen-half-results,dce")
    assert "f32(max" not in str(wide.module)  # a maximum is one of its numbers
    x = np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(half)
    before, after = (reference.run(p, {"x": x}, Arithmetic.COMPUTED)["z"] for p in (made, wide))
    assert np.array_equal(before, after)
    assert compare(program, lower_to(program, "kernel"), seed=1).is_equal
