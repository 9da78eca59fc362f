"""transposed-product: the same products, summed in another order."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import ConvOp, GemmOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.targets import CPU
from isoform.passes.convolution.transposed_product import TransposedProduct
from isoform.passes.equivalence import compare
from isoform.passes.plan_memory import PlanMemory
from isoform.passes.tuning.alternatives import alternatives

RANDOM = np.random.default_rng(11)
Sizes = tuple[int, int, tuple[int, int], int, int, int, int]
"""Channels, features, (height, width), kernel, stride, pad, batch."""

SHAPES: tuple[Sizes, ...] = (
    (6, 3, (5, 7), 4, 2, 1, 1),
    (17, 2, (4, 3), 5, 3, 2, 2),
    (5, 9, (6, 6), 3, 2, 0, 1),
    (4, 3, (3, 5), 2, 3, 0, 1),
)


def deconvolution(sizes: Sizes, again: bool = False) -> Program:
    """A transposed convolution of what a kernel made; `again` lets another kernel read that too."""
    channels, features, size, kernel, stride, pad, batch = sizes
    b = GraphBuilder()
    x = b.relu(b.input("x", (batch, channels, *size)))
    w = b.weight(
        "w", RANDOM.standard_normal((channels, features, kernel, kernel)).astype(np.float32)
    )
    bias = b.weight("b", RANDOM.standard_normal(features).astype(np.float32))
    geometry = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
    b.output("y", b.relu(b.conv_transpose(x, w, bias, output_padding=[0, 0], **geometry)))
    if again:
        v = b.weight("v", RANDOM.standard_normal((3, channels, 3, 3)).astype(np.float32))
        b.output("z", b.conv(x, v, strides=[1, 1], pads=[1] * 4, dilations=[1, 1]))
    return b.build()


def lowered(program: Program, rewrite: bool = True) -> Program:
    result = program.clone()
    for name in LOWER_TO_KERNEL:
        run_passes(result, name)
    if rewrite:
        TransposedProduct().apply(Context(), result.module)
    PlanMemory().apply(Context(), result.module)
    result.module.verify()
    return result


def draw(program: Program) -> np.ndarray:
    return RANDOM.standard_normal(program.inputs["x"].get_shape()).astype(np.float32)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("sizes", SHAPES)
def test_it_gives_what_the_reference_gives(sizes: Sizes, again: bool) -> None:
    program = deconvolution(sizes, again)
    rewritten, x = lowered(program), draw(program)
    assert any(isinstance(op, GemmOp) for op in rewritten.main.body.block.ops)
    expected = reference.run(program, {"x": x})
    session = CpuSession(rewritten)
    found = session.run({"x": x})
    session.close()
    for name, want in expected.items():
        np.testing.assert_allclose(reference.run(rewritten, {"x": x})[name], want, atol=1e-9)
        np.testing.assert_allclose(found[name], want, atol=2e-6 * np.abs(want).max())


def test_the_equivalence_engine_proves_it() -> None:
    program = deconvolution(SHAPES[0])
    assert compare(program, lowered(program)).kind == "equal"


def test_nan_and_infinity_go_where_they_went() -> None:
    program = deconvolution(SHAPES[0])
    x = np.abs(draw(program))
    x[0, 2, 3, 4], x[0, 1, 0, 0] = np.nan, np.inf
    found = []
    for rewrite in (False, True):
        session = CpuSession(lowered(program, rewrite))
        found.append(session.run({"x": x})["y"])
        session.close()
    assert 0 < np.isnan(found[0]).sum() < found[0].size
    assert np.isinf(found[0]).any()
    np.testing.assert_array_equal(np.isfinite(found[1]), np.isfinite(found[0]))


@pytest.mark.parametrize(("features", "offered"), [(3, True), (64, False)])
def test_it_is_measured_where_lanes_would_be_empty(features: int, offered: bool) -> None:
    result = deconvolution((64, features, (32, 32), 4, 2, 1, 1)).clone()
    for name in LOWER_TO_KERNEL:
        run_passes(result, name)
    conv = next(op for op in result.main.body.block.ops if isinstance(op, ConvOp))
    names = [a.name for a in alternatives(conv, set(), CPU.generator(), "default")]
    assert ("transposed-product" in names) == offered
