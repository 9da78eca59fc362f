"""lower-precision: what its programs compute, that they are not called equal, and its switches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isoform
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare
from isoform.passes.precision import KINDS, SWITCHES, LowerPrecision, products, with_switches


def net() -> Program:
    """A convolution with bias and relu, a product with weights, and one of two results."""
    rng, b = np.random.default_rng(0), isoform.GraphBuilder()

    def weight(name: str, *shape: int) -> Any:
        return b.weight(name, rng.standard_normal(shape).astype(np.float32))

    x = b.input("x", (1, 4, 6, 6))
    window: dict[str, Any] = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    y = b.relu(b.conv(x, weight("w", 8, 4, 3, 3), weight("bias", 8), **window))
    y = b.conv(y, weight("own", 8, 1, 3, 3), **window, groups=8)
    z = b.matmul(b.reshape(y, shape=[8, 36]), weight("v", 36, 5))
    b.output("z", b.matmul(z, z, transpose_b=True))
    return b.build()


def lowered(program: Program, to: str, *numbers: int) -> Program:
    made = program.clone()
    run_passes(made, (LowerPrecision(to, numbers or None),))
    return made


X = np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype(np.float32)


def test_which_products_can_be_lowered() -> None:
    """Those of bytes have constant weights, and more than one channel in a group."""
    counts = {to: len(products(net().module, to)) for to in KINDS}
    assert counts == {"bf16": 4, "f16": 4, "int8-dynamic": 2}


@pytest.mark.parametrize(("to", "half"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_operands_and_sums_are_rounded_to_half_floats(to: str, half: Any) -> None:
    rng, b = np.random.default_rng(2), isoform.GraphBuilder()
    w = rng.standard_normal((8, 5)).astype(np.float32)
    b.output("y", b.matmul(b.input("x", (4, 8)), b.weight("w", w)))
    x = rng.standard_normal((4, 8)).astype(np.float32)
    sums = x.astype(half).astype(np.float64) @ w.astype(half).astype(np.float64)
    found = reference.run(lowered(b.build(), to), {"x": x})["y"]
    assert np.array_equal(found, sums.astype(np.float32).astype(half).astype(np.float64))


@pytest.mark.parametrize("transposed", [False, True])
def test_bytes_have_the_range_of_the_data_and_a_scale_for_each_column(transposed: bool) -> None:
    rng, b = np.random.default_rng(3), isoform.GraphBuilder()
    w = rng.standard_normal((8, 5)).astype(np.float32) * np.arange(5, dtype=np.float32)
    given = b.weight("w", w.T.copy() if transposed else w)
    b.output("y", b.matmul(b.input("x", (4, 8)), given, transpose_b=transposed))
    x = rng.standard_normal((4, 8)).astype(np.float32)
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32(high - low) / np.float32(255)
    zero = np.round(-low / scale)
    data = np.clip(np.round(x / scale) + zero, 0, 255) - zero
    most = np.abs(w).max(axis=0)
    by = np.where(most == 0, 1, most / np.float32(127))  # the first column is 0
    want = (data @ np.round(w / by)) * scale * by
    found = isoform.compile(lowered(b.build(), "int8-dynamic"), threads=1, effort="quick")(x=x)["y"]
    assert np.abs(found - want).max() < 1e-5 * np.abs(want).max()


def test_bytes_are_multiplied_as_integers() -> None:
    program = lowered(net(), "int8-dynamic")
    made = program.clone()
    run_passes(made, "integer-products,dce")
    ops = [op for op in made.main.body.block.ops if op.name == "graph.matmul"]
    kinds = [str(op.results[0].type) for op in ops]
    assert kinds == ["tensor<8x5xi32>", "tensor<8x8xf32>"]
    assert compare(program, made, seed=1).is_equal


@pytest.mark.parametrize("to", KINDS)
def test_the_result_is_not_called_equal(to: str) -> None:
    program = net()
    for numbers in ((), (0,), (1,)):
        verdict = compare(program, lowered(program, to, *numbers), seed=1)
        assert verdict.kind == "different", verdict


@pytest.mark.parametrize("to", KINDS)
def test_switches_choose_for_each_product(to: str) -> None:
    """One compilation gives what the program does, and what the pass makes of any set."""
    program = net()
    session = isoform.compile(with_switches(program, to), threads=1, effort="quick")
    count = len(products(program.module, to))
    for numbers in ((), (0,), (1,), tuple(range(count))):
        chosen = program if not numbers else lowered(program, to, *numbers)
        want = isoform.compile(chosen, threads=1, effort="quick")(x=X)["z"]
        on = np.isin(np.arange(count), numbers)
        assert np.allclose(session(x=X, **{SWITCHES: on})["z"], want, rtol=1e-6, atol=1e-5)
