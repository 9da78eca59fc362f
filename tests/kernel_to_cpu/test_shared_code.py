"""Kernels that differ in the place of what they read or write are generated once."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place, priced
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import LoopsOp
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.kernel_to_cpu.session import CpuSession

STEPS = 24


def drawn(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def recurrence(width: int, steps: int = STEPS) -> Program:
    """h = tanh(x[t] + h W), all h stacked: what an importer makes of an RNN."""
    b = GraphBuilder()
    x = b.input("x", (steps, 1, width), f32)
    w = b.weight("w", drawn(width, width) / width**0.5)
    h: SSAValue = b.slice(x, starts=[0, 0, 0], sizes=[1, 1, width], steps=[1, 1, 1])
    h = b.reshape(h, shape=[1, width])
    states: list[SSAValue] = []
    for t in range(steps):
        row = b.slice(x, starts=[t, 0, 0], sizes=[1, 1, width], steps=[1, 1, 1])
        h = b.tanh(b.add(b.reshape(row, shape=[1, width]), b.matmul(h, w)))
        states.append(b.reshape(h, shape=[1, 1, width]))
    b.output("y", b.concat(*states, axis=0))
    return b.build("recurrence")


def checked(program: Program) -> CpuSession:
    """A session, after one run of it was compared with the reference."""
    session = CpuSession(place(program, CpuOptions(1, "quick")))
    feeds = {name: drawn(*type_.get_shape()) for name, type_ in program.inputs.items()}
    wanted, found = reference.run(program, feeds), session.run(feeds)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-5)
    return session


@pytest.mark.parametrize("width", [16, 64, 50])
def test_the_steps_of_a_recurrence_are_one_code(width: int) -> None:
    """Also where a row does not start at a cache line: then only the copies of results differ."""
    few, many = (checked(recurrence(width, steps)) for steps in (18, STEPS))
    if width * 4 % 64 == 0:
        assert len(many.objects) == len(few.objects) <= 8
    assert len(many.objects) <= len(few.objects) + STEPS


def test_places_in_several_dims_and_operands() -> None:
    """Reads of one operand at unlike places keep their distance."""
    b = GraphBuilder()
    x, z = b.input("x", (40, 48), f32), b.input("z", (9, 48), f32)
    for k, (row, column) in enumerate([(3, 5), (11, 7), (20, 0), (0, 9)]):
        first = b.slice(x, starts=[row, column], sizes=[6, 32], steps=[1, 1])
        second = b.slice(x, starts=[row + 4, column + 3], sizes=[6, 32], steps=[2, 1])
        other = b.slice(z, starts=[k % 3, k], sizes=[6, 32], steps=[1, 1])
        b.output(f"y{k}", b.exp(b.mul(b.sub(first, second), other)))
    checked(b.build("places"))


def test_a_read_beyond_the_bounds_keeps_its_place() -> None:
    b = GraphBuilder()
    x = b.input("x", (12, 20), f32)
    for k, low in enumerate([(2, 3), (0, 1)]):
        part = b.slice(x, starts=[4, 5], sizes=[6, 10], steps=[1, 1])
        b.output(f"y{k}", b.relu(b.pad(part, pads=[*low, 3, 4])))
    checked(b.build("padded"))


def test_literals_are_part_of_the_code() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), f32)
    table = b.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    for k in range(3):
        row = b.slice(table, starts=[k, 0], sizes=[1, 4], steps=[1, 1])
        b.output(f"y{k}", b.relu(b.mul(x, row)))
    checked(b.build("literals"))


def test_a_gpu_joins_many_parts_by_one_kernel() -> None:
    """Each copy would be a launch there."""
    b = GraphBuilder()
    b.output("y", b.concat(*(b.input(f"x{k}", (1, 256), f32) for k in range(STEPS)), axis=0))
    program = b.build("stacked")
    for target, count in (("h100", 1), ("cpu", STEPS)):
        ops = priced(program, target).main.body.block.ops
        assert sum(isinstance(op, LoopsOp) for op in ops) == count
