"""Where one loop decides which reads are there, each region has code that reads these only."""

import numpy as np
import pytest

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import points
from isoform.lowering.kernel_to_nest.guards import MAX_REGIONS


def parts(b: GraphBuilder, axis: int, *sizes: int):
    """A concat along an axis, and what follows in the same kernel."""
    shapes = [[2, 3, 5, 37] for _ in sizes]
    for shape, size in zip(shapes, sizes, strict=True):
        shape[axis] = size
    inputs = [b.input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    return b.neg(b.concat(*inputs, axis=axis))


def padded(b: GraphBuilder, value: float):
    x = b.input("x", (2, 3, 5, 37))
    return b.pad(x, pads=[1, 2, 0, 3, 0, 1, 2, 1], fill=value)


# Kernels, and in how many regions each is cut.
KERNELS = {
    "two parts": (lambda b: parts(b, 1, 4, 7), 2),
    "parts of one": (lambda b: parts(b, 1, 1, 2, 1, 3), 4),
    "parts of rows": (lambda b: parts(b, 2, 1, 6, 2), 3),
    "parts of batches": (lambda b: parts(b, 0, 3, 1), 2),
    "padded": (lambda b: padded(b, 0.0), 2),
    "padded with a number": (lambda b: padded(b, 1.5), 2),
    "padded with infinity": (lambda b: padded(b, -np.inf), 2),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_regions_hold_what_the_reference_says(kernel: str, isa: Isa, monkeypatch):
    make, expected = KERNELS[kernel]
    cut: list[int] = []
    regions = points.regions

    def counted(*arguments):
        found = regions(*arguments)
        cut.append(len(found))
        return found

    monkeypatch.setattr(points, "regions", counted)
    b = GraphBuilder()
    b.output("y", make(b))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    assert set(cut) == {expected}  # of whole tiles of rows, and of the last one
    inputs = draw_inputs(program)
    for x in inputs.values():
        x.reshape(-1)[:: x.size - 1] = np.nan, np.inf
    found = session.run(inputs)["y"]
    session.close()
    np.testing.assert_array_equal(found, run(program, inputs)["y"].astype(np.float32))


def test_a_part_reads_itself_only(isa: Isa):
    b = GraphBuilder()
    b.output("y", parts(b, 1, 4, 7, 2))
    session = CpuSession(place(b.build()), 1, isa=isa)
    (call,) = session.segments[0].calls
    session.close()
    text = call.code.ir.partition("declare")[0]
    loads = text.count("= load <") + text.count("@llvm.masked.load")
    stores = text.count(" store ") + text.count("@llvm.masked.store")
    assert loads == stores > 0


def test_too_many_regions_are_one(isa: Isa):
    b = GraphBuilder()
    b.output("y", parts(b, 1, *[1] * (MAX_REGIONS + 1)))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    inputs = draw_inputs(program)
    found = session.run(inputs)["y"]
    session.close()
    np.testing.assert_array_equal(found, run(program, inputs)["y"].astype(np.float32))
