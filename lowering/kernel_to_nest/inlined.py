"""Rows of a nest that are cheap to compute again: each reader computes what it reads of them.

    d[i, j] = x[i, j] - m[i];  v[i] = sum(j) d[i, j] * d[i, j]

becomes v[i] = sum(j) (x[i, j] - m[i]) * (x[i, j] - m[i]): d need not be stored, nor read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import arith

from ...dialects.index import Index as Affine
from ...dialects.types import tensor_type
from ..kernel_to_cpu.emit.access import compute_type, memory_type
from ..kernel_to_cpu.nests.nest import Inlined, NestOperand, NestPlan, Part, ScopePlan

CHEAP = arith.AddfOp | arith.SubfOp | arith.MulfOp | arith.NegfOp | arith.ConstantOp
# Operations of a row, and scopes that compute them again.
MOST_OPS = 2
MAX_READERS = 2


def inline_rows(plan: NestPlan) -> NestPlan:
    """The plan without scopes whose rows a few others can compute for themselves."""
    for scope in plan.scopes[:-1]:
        readers = [s for s in plan.scopes if _reads(s, scope)]
        reads = [operand for s in readers for operand in _reads(s, scope)]
        in_place = all(_is_in_place(operand, scope, plan.extents) for operand in reads)
        if _is_cheap(scope) and len(readers) <= MAX_READERS and in_place:
            rest = [_with(s, scope) for s in plan.scopes if s is not scope]
            return inline_rows(replace(plan, scopes=rest))
    return plan


def _reads(reader: ScopePlan, made: ScopePlan) -> list[NestOperand]:
    return [operand for operand in reader.reads if operand.source is made.op.result]


def _is_cheap(scope: ScopePlan) -> bool:
    """Whether it takes little to compute, of one other row, and is stored as it is computed.

    A sum of several rows would be read from all of them, by each reader, in place of one.
    """
    element = tensor_type(scope.op.result).element_type
    if not scope.own or scope.sums or compute_type(element) != memory_type(element):
        return False
    rows = {r for r in scope.reads if any(e.iterators & {*scope.own} for e in r.index)}
    if len(rows) > 1:
        return False
    ops = [op for op in scope.op.body.block.ops if op.results]
    return all(isinstance(op, CHEAP) for op in ops) and len(ops) <= MOST_OPS


def _is_in_place(operand: NestOperand, made: ScopePlan, extents: Sequence[int]) -> bool:
    """Whether a read walks the row as it was made, element by element, and never beyond its end.

    What lies beyond is 0, whatever the row's own expression would give there.
    """
    along = _along(operand, made)
    return len(along) == len(made.own) and all(
        e == Affine.iterator(min(e.iterators, default=0))
        and here == Affine.iterator(min(here.iterators))
        and extents[min(e.iterators)] <= extents[min(here.iterators)]
        for e, here in along
    )


def _along(operand: NestOperand, made: ScopePlan) -> list[tuple[Affine, Affine]]:
    """The indices along a row's own dims: those of a read, and of the scope that makes it."""
    pairs = zip(operand.index, made.here, strict=True)
    return [(e, here) for e, here in pairs if here.iterators & {*made.own}]


def _with(reader: ScopePlan, made: ScopePlan) -> ScopePlan:
    """The reader, with what it reads of a row computed in its own body."""
    reads: list[NestOperand] = []
    numbers: list[Part] = []
    for operand in reader.reads:
        if operand.source is not made.op.result:
            numbers.append(len(reads))
            reads.append(operand)
            continue
        images = {min(here.iterators): e for e, here in _along(operand, made)}
        here = range(len(reads), len(reads) + len(made.reads))
        reads += [_at(leaf, images) for leaf in made.reads]
        parts = tuple(_renumbered(part, here) for part in made.parts)
        numbers.append(Inlined(made.op.body.block, parts))
    parts = tuple(_renumbered(part, numbers) for part in reader.parts)
    return replace(reader, reads=tuple(reads), parts=parts)


def _at(operand: NestOperand, images: Mapping[int, Affine]) -> NestOperand:
    """A read of the row's own, at the place that its reader is at."""
    used = {k for e in operand.index for k in e.iterators}
    every = [images.get(k, Affine.iterator(k)) for k in range(max(used, default=-1) + 1)]
    return replace(operand, index=tuple(e.substitute(every) for e in operand.index))


def _renumbered(part: Part, numbers: Sequence[Part]) -> Part:
    if isinstance(part, int):
        return numbers[part]
    return Inlined(part.block, tuple(_renumbered(p, numbers) for p in part.parts))
