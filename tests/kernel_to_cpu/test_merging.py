"""Loops that every access walks as one range become one loop, and nothing else does."""

import numpy as np
import pytest

from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.kernel import LoopsOp
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.types import tensor_type
from isoform.lowering.algebra_to_kernel.shared_loops import shared_loops
from isoform.lowering.kernel_to_cpu.nests.merging import merge_loops
from isoform.lowering.kernel_to_cpu.nests.nest import NestPlan, plan_nest
from isoform.lowering.kernel_to_cpu.session import CpuSession


def build(make, *shapes) -> Program:
    b = GraphBuilder()
    b.output("y", make(b, *(b.input(f"x{k}", shape) for k, shape in enumerate(shapes))))
    return place(b.build())


def merged(program: Program) -> NestPlan:
    """The merged plan of the program's last kernel."""
    op = [op for op in program.main.body.block.ops if isinstance(op, LoopsOp)][-1]
    types = {a: tensor_type(v) for a, v in zip(op.body.block.args, op.inputs, strict=True)}
    return merge_loops(plan_nest(op.scopes, shared_loops(op.scopes)), op.type, types)


def loops(program: Program) -> list[int]:
    """Extents that are left."""
    return sorted(n for n in merged(program).extents if n != 1)


POOL = {"kernel": [2, 2], "strides": [2, 2], "dilations": [1, 1]}
CASES = {
    "elementwise": (lambda b, x: b.relu(x), [(2, 3, 4, 5)], [120]),
    "two operands": (lambda b, x, y: b.add(x, y), [(3, 4, 5), (3, 4, 5)], [60]),
    "bias per channel": (
        lambda b, x, c: b.add(x, b.broadcast(c, shape=[2, 3, 4, 5], dims=[1])),
        [(2, 3, 4, 5), (3,)],
        [2, 3, 20],
    ),
    "bias per column": (
        lambda b, x, c: b.add(x, b.broadcast(c, shape=[2, 3, 5], dims=[2])),
        [(2, 3, 5), (5,)],
        [5, 6],
    ),
    "transpose": (lambda b, x: b.exp(b.transpose(x, perm=[1, 0])), [(3, 4)], [3, 4]),
    "transpose of outer dims": (
        lambda b, x: b.exp(b.transpose(x, perm=[1, 0, 2, 3])),
        [(3, 4, 5, 6)],
        [3, 4, 30],
    ),
    "backwards": (
        lambda b, x: b.slice(x, starts=[2, 3], sizes=[3, 4], steps=[-1, -1]),
        [(3, 4)],
        [12],
    ),
    "pool without pads": (
        lambda b, x: b.max_pool(x, pads=[0, 0, 0, 0], **POOL),
        [(2, 3, 8, 8)],
        [2, 2, 4, 24],
    ),
    "pool that leaves a row": (
        lambda b, x: b.max_pool(x, pads=[0, 0, 0, 0], **POOL),
        [(2, 3, 9, 9)],
        [2, 2, 4, 4, 6],
    ),
    "pool with pads": (
        lambda b, x: b.max_pool(x, pads=[1, 1, 1, 1], **POOL),
        [(2, 3, 8, 8)],
        [2, 2, 5, 5, 6],
    ),
    "padding": (lambda b, x: b.pad(x, pads=[0, 0, 1, 0, 0, 0]), [(3, 4, 5)], [6, 12]),
    "padding of rows": (lambda b, x: b.pad(x, pads=[0, 1, 0, 0, 0, 0]), [(3, 4, 6)], [3, 5, 6]),
    "global mean": (lambda b, x: b.reduce_sum(x, axes=[2, 3]), [(2, 3, 4, 5)], [6, 20]),
    "sum of outer dims": (
        lambda b, x: b.reduce_sum(x, axes=[0, 1], keep_dims=False),
        [(4, 5, 6)],
        [6, 20],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_merges(name: str) -> None:
    make, shapes, expected = CASES[name]
    assert loops(build(make, *shapes)) == expected


@pytest.mark.parametrize("name", CASES)
def test_merged_kernels_compute_the_same(name: str) -> None:
    make, shapes, _ = CASES[name]
    program = build(make, *shapes)
    data = np.random.default_rng(0)
    inputs = {f"x{k}": data.normal(size=s).astype(np.float32) for k, s in enumerate(shapes)}
    session = CpuSession(program)
    (found,) = session.run(inputs).values()
    session.close()
    (expected,) = run(program, inputs).values()
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_addresses_have_no_floors() -> None:
    plan = merged(build(lambda b, x: b.relu(x), (2, 3, 4, 5)))
    ((read,),) = (scope.reads for scope in plan.scopes)
    strides = (60, 20, 5, 1)
    flat = sum((e * s for e, s in zip(read.index, strides, strict=True)), Index(0))
    assert not flat.has_floor
    assert [c for _, c in flat.terms] == [1]
    assert read.checked == ()


def test_extents_of_millions_keep_their_bounds() -> None:
    """Ranges of merged indices would be guessed, so bounds are worked out before."""
    program = build(lambda b, x, y: b.add(x, y), (8, 64, 112, 112), (8, 64, 112, 112))
    assert loops(program) == [8 * 64 * 112 * 112]
    assert all(read.checked == () for scope in merged(program).scopes for read in scope.reads)


def test_several_tiles_with_a_ragged_end() -> None:
    program = build(lambda b, x, y: b.mul(b.add(x, y), y), (3, 41, 67), (3, 41, 67))
    data = np.random.default_rng(1)
    inputs = {f"x{k}": data.normal(size=(3, 41, 67)).astype(np.float32) for k in range(2)}
    for threads in (1, 2):
        session = CpuSession(program, threads=threads)
        (found,) = session.run(inputs).values()
        session.close()
        assert np.allclose(found, (inputs["x0"] + inputs["x1"]) * inputs["x1"], rtol=1e-6)
