"""Nests with sums over rows: points are interleaved, cheap rows computed where they are read."""

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import LoopsOp
from isoform.dialects.nest import STACK, AllocOp
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import rows as row_schedule
from isoform.lowering.kernel_to_nest.schedule import loops


def layer_norm(b: GraphBuilder, rows: int, columns: int, element=f32):
    x = b.cast(b.input("x", (rows, columns), element), to=f32)
    scale = b.weight("w", np.linspace(0.5, 1.5, columns, dtype=np.float32))
    shift = b.weight("b", np.linspace(-1, 1, columns, dtype=np.float32))
    return b.cast(b.layer_norm(x, scale, shift, axis=1, epsilon=1e-5), to=element)


def residual(b: GraphBuilder, rows: int, columns: int):
    """A layer norm of a sum of rows. The sum is kept: else each of three readers would add anew."""
    x = b.input("x", (rows, columns))
    y = b.add(x, b.weight("r", np.float32(np.arange(rows * columns) % 7).reshape(rows, columns)))
    scale, shift = (b.weight(name, np.ones(columns, np.float32)) for name in ("w", "b"))
    return b.layer_norm(y, scale, shift, axis=1, epsilon=1e-5)


def softmax(b: GraphBuilder, rows: int, columns: int, element=f32):
    return b.softmax(b.input("x", (rows, columns), element), axis=1)


def centred(b: GraphBuilder, rows: int, columns: int, element=f32):
    """What differs from the mean by more than the mean difference: a row, a sum, a comparison."""
    x = b.input("x", (rows, columns), element)
    shape = [rows, columns]

    def mean(y):
        return b.broadcast(b.reduce_mean(y, axes=[1], keep_dims=True), shape=shape, dims=[0, 1])

    difference = b.abs(b.sub(x, mean(x)))
    return b.mul(difference, b.cast(b.less(mean(difference), difference), to=element))


@pytest.mark.parametrize("kernel", [layer_norm, residual, softmax, centred])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (7, 100)])
def test_points_that_are_interleaved_do_not_mix(kernel, rows, columns, isa: Isa):
    """Any number of rows, on one thread and split between two; a NaN stays in its row."""
    b = GraphBuilder()
    b.output("y", kernel(b, rows, columns))
    program = b.build()
    inputs = draw_inputs(program)
    inputs["x"][rows // 2, columns // 2] = np.nan
    if rows > 2:
        inputs["x"][0] *= 100
    expected = run(program, inputs)["y"]
    assert np.isnan(expected).any(1).sum() == 1
    for threads in (1, 2):
        session = CpuSession(place(program), threads, isa=isa)
        found = session.run(inputs)["y"]
        session.close()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("element", [f16, bf16])
@pytest.mark.parametrize("kernel", [layer_norm, softmax])
def test_rows_of_half_floats(kernel, element, isa: Isa):
    b = GraphBuilder()
    b.output("y", kernel(b, 5, 83, element))
    program = b.build()
    inputs = draw_inputs(program)
    session = CpuSession(place(program), 1, isa=isa)
    found = session.run(inputs)["y"].astype(np.float64)
    session.close()
    np.testing.assert_allclose(
        found, run(program, inputs)["y"], atol=0.02 if element == bf16 else 2e-3
    )


def test_what_is_cheap_is_computed_where_it_is_read(isa: Isa):
    """A layer norm keeps no row, except one that is itself a sum; softmax keeps exponentials."""
    for kernel, rows in ((layer_norm, 0), (residual, 1), (softmax, 1)):
        b = GraphBuilder()
        b.output("y", kernel(b, 4, 64))
        (op,) = (op for op in place(b.build()).main.body.block.ops if isinstance(op, LoopsOp))
        buffers = [v.result.type for v in loops(op, isa).walk() if isinstance(v, AllocOp)]
        assert [t.memory_space for t in buffers].count(STACK) == rows


def test_points_of_large_results_are_not_interleaved(monkeypatch):
    """Beyond the second-level cache a row is read while the one before is stored."""
    for size, interleaved in ((1 << 19, True), ((1 << 19) - 1, False)):
        monkeypatch.setattr(row_schedule, "MAX_RESULT", size)
        b = GraphBuilder()
        b.output("y", softmax(b, 1024, 128))
        session = CpuSession(place(b.build()), 1)
        (call,) = session.segments[0].calls
        session.close()
        assert call.code.items == (512 if interleaved else 1024)  # two points an item, or one


@pytest.mark.parametrize("rows", [1, 8, 20])
@pytest.mark.parametrize(("window", "pads"), [(3, (0, 0)), (4, (0, 1)), (4, (1, 0)), (5, (0, 2))])
def test_a_row_is_zero_beyond_its_ends(
    rows: int, window: int, pads: tuple[int, int], isa: Isa
) -> None:
    """A cheap row that its reader computes again: beyond its end it is 0, not 0 plus the bias."""
    b = GraphBuilder()
    x, c = b.input("x", (rows, 5, 1)), b.input("c", (2,))
    w = b.weight("w", np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 2, 4))
    y = b.conv_transpose(x, w, c, strides=[2], pads=[0, 1], dilations=[1], output_padding=[0])
    y = b.avg_pool(y, kernel=[window], strides=[1], pads=list(pads), dilations=[1], ceil_mode=True)
    b.output("y", y)
    program = b.build()
    inputs = draw_inputs(program)
    (found,) = CpuSession(place(program), threads=1, isa=isa).run(inputs).values()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)


def test_an_empty_part_of_a_row(isa: Isa) -> None:
    b = GraphBuilder()
    x = b.input("x", (12, 3, 1))
    empty = b.slice(x, starts=[0, 3, 0], sizes=[12, 0, 1], steps=[1, 1, 1])
    b.output("y", b.softmax(b.concat(x, empty, axis=1), axis=2))
    program = b.build()
    inputs = draw_inputs(program)
    (found,) = CpuSession(place(program), threads=1, isa=isa).run(inputs).values()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-6)
