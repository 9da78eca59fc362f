"""Transposes whose rows start anywhere in a line: what goes past the caches, what is asked for."""

import random

import numpy as np
import pytest

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.nests import nontemporal
from isoform.lowering.kernel_to_cpu.nests.nontemporal import LINE
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import transposed

# What is read, and its order: rows of the result are more than four vectors, and no whole lines.
SHAPES = {
    "one vector across": ((70, 16), (1, 0)),
    "less than one across": ((70, 11), (1, 0)),
    "several chunks": ((81, 75), (1, 0)),
    "whole vectors only": ((2, 80, 33), (0, 2, 1)),
    "half lines": ((72, 40), (1, 0)),
    "channels first": ((2, 9, 13, 24), (0, 3, 1, 2)),
    "rows in parts": ((4217, 19), (1, 0)),
    "a part of less than a vector": ((16 * 64 * 3 + 5, 33), (1, 0)),
}


@pytest.fixture
def from_memory(monkeypatch: pytest.MonkeyPatch):
    """However small a result is, it goes past the caches."""
    monkeypatch.setattr(nontemporal, "LEAST_BYTES_OF_LOOPS", 1)
    monkeypatch.setattr(transposed, "LEAST_BYTES", 1)


def check(shape, perm, isa: Isa, threads: int, at_the_end, *, past: bool = True) -> None:
    """Run it twice on what ends where memory does, with NaN in it."""
    b = GraphBuilder()
    b.output("y", b.relu(b.transpose(b.input("x", shape), perm=perm)))
    program = b.build()
    session = CpuSession(place(program), threads, isa=isa)
    (ir,) = {call.code.ir for segment in session.segments for call in segment.calls}
    if isa.vector_bytes == LINE:
        assert ("!nontemporal" in ir) == ("fence seq_cst" in ir) == past
    for seed in (0, 1):
        inputs = draw_inputs(program, seed)
        inputs["x"].reshape(-1)[[0, 5, -1]] = np.nan
        found = session.run({"x": at_the_end(inputs["x"])})["y"]
        np.testing.assert_array_equal(found, run(program, inputs)["y"])
    session.close()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.usefixtures("from_memory")
def test_rows_that_are_no_whole_lines_are_put_together(
    kernel: str, threads: int, isa: Isa, at_the_end
):
    check(*SHAPES[kernel], isa, threads, at_the_end)


@pytest.mark.usefixtures("from_memory")
def test_short_rows_are_stored_plainly(isa: Isa, at_the_end):
    check((63, 40), (1, 0), isa, 1, at_the_end, past=False)


def test_what_blocks_of_one_strip_read_next_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    """Where the result is large, and the strip all there is along the lanes."""
    found: list[bool] = []
    for least in (48 * 100 * 4 + 1, 48 * 100 * 4):
        b = GraphBuilder()
        b.output("y", b.transpose(b.input("x", (48, 100)), perm=[1, 0]))
        monkeypatch.setattr(transposed, "LEAST_BYTES", least)
        session = CpuSession(place(b.build()), 1)
        (call,) = session.segments[0].calls
        found.append("llvm.prefetch" in call.code.ir)
        session.close()
    assert found == [False, True]


@pytest.mark.slow
@pytest.mark.usefixtures("from_memory")
def test_random_shapes_are_put_together(isa: Isa):
    r = random.Random(7)
    for _ in range(60):
        shape = [r.choice((1, 2, 3)), r.randrange(64, 1300), r.randrange(9, 90)]
        perm = r.choice(([0, 2, 1], [2, 0, 1], [2, 1, 0], [1, 2, 0]))
        b = GraphBuilder()
        b.output("y", b.relu(b.transpose(b.input("x", shape), perm=perm)))
        program = b.build()
        session = CpuSession(place(program), r.choice((1, 2)), isa=isa)
        inputs = draw_inputs(program)
        np.testing.assert_array_equal(session.run(inputs)["y"], run(program, inputs)["y"])
        session.close()
