"""Loops that are not the same expressions: by their bodies, and written out where that is possible.

Two loops that differ in their bodies alone are equal if the bodies are equal functions: then each
iteration gives the same from the same. Another form of a program has one body in place of both. A
loop and a program without one are compared by the loop's iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.rewriter import Rewriter

from ...dialects.control import ControlOp, body_module
from ...dialects.program import Program
from ..unroll_loops import MOST, unroll
from .verdict import EQUAL, Verdict

Pair = tuple[Program, Program]
Compare = Callable[[Program, Program], Verdict]


def comparable_loops(a: Program, b: Program, compare: Compare) -> Iterator[Pair]:
    """Other forms of two programs with loops, which mean the same and may be decided.

    Args:
        compare: decides whether two bodies are equal.
    """
    if not _controls(a) and not _controls(b):
        return
    if (other := with_bodies_of(a, b, compare)) is not None:
        yield a, other
    yield unrolled(a), unrolled(b)


def unrolled(program: Program, most: int = MOST) -> Program:
    """A copy whose loops of a known number of iterations are written out."""
    found = program.clone()
    unroll(found.main.body.block, most)
    return found


def with_bodies_of(a: Program, b: Program, compare: Compare) -> Program | None:
    """`b` with the bodies of `a`, where they are equal functions; None if no other body is."""
    found = b.clone()
    ours, theirs = _controls(a), _controls(found)
    if len(ours) != len(theirs):
        return None
    changed = False
    for mine, other in zip(ours, theirs, strict=True):
        if _alike(mine, other) and _equal_bodies(a, b, mine, other, compare):
            operands = dict(zip(mine.operands, other.operands, strict=True))
            Rewriter.replace_op(other, mine.clone(operands))
            changed = True
    return found if changed else None


def _controls(program: Program) -> list[ControlOp]:
    return [op for op in program.main.body.block.ops if isinstance(op, ControlOp)]


def _alike(mine: ControlOp, other: ControlOp) -> bool:
    """Whether two loops or branches differ in nothing but their bodies."""
    return (
        mine.name == other.name
        and mine.properties == other.properties
        and [v.type for v in mine.operands] == [v.type for v in other.operands]
        and [v.type for v in mine.results] == [v.type for v in other.results]
    )


def _equal_bodies(
    a: Program, b: Program, mine: ControlOp, other: ControlOp, compare: Compare
) -> bool:
    """Whether all bodies are equal without more being assumed."""
    for k in range(len(mine.bodies)):
        pair = [Program(body_module(op, k), p.weights) for op, p in ((mine, a), (other, b))]
        verdict = compare(*pair)
        if verdict.kind != EQUAL or verdict.assumptions or verdict.largest_ulps > 0:
            return False
    return True
