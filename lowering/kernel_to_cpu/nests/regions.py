"""Bounds that shared loops alone decide: regions of a nest in which a read is there, or is not.

The parts of a concat and the rows of a padded picture are such regions. Each has code of its own,
which reads only what is there and checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ....dialects.algebra import OnesOp
from ..emit.access import Point, emit_index
from ..emit.emitter import Emitter
from ..emit.types import I1, I64, Value, constant
from .nest import Buffers, Guard, NestPlan, access

# A nest of more regions than these is one, with every bound checked at every vector.
MOST_REGIONS = 32

Bounds = tuple[Guard, ...]
Region = tuple[bool, ...]
"""Whether each of some bounds holds."""


def regions(plan: NestPlan, buffers: Buffers, vector: int) -> tuple[list[Bounds], list[Region]]:
    """The bounds of each read that single shared loops decide, and the ways in which they hold."""
    bounds = list(dict.fromkeys(filter(None, _bounds(plan, buffers, vector))))
    ways: list[list[dict[Guard, bool]]] = []
    guards = list(dict.fromkeys(guard for found in bounds for guard in found))
    for k in sorted({min(index.iterators) for index, _ in guards}):
        here = [guard for guard in guards if k in guard[0].iterators]
        places: list[np.ndarray | int] = [0] * k + [np.arange(plan.extents[k])]
        columns = [np.asarray(index.evaluate(places)) for index, _ in here]
        holds = [(c >= 0) & (c < size) for c, (_, size) in zip(columns, here, strict=True)]
        kinds: list[tuple[bool, ...]] = [tuple(kind) for kind in np.stack(holds, 1).tolist()]
        ways.append([dict(zip(here, kind, strict=True)) for kind in dict.fromkeys(kinds)])
    cells = [{g: t for part in parts for g, t in part.items()} for parts in product(*ways)]
    found = dict.fromkeys(tuple(all(cell[g] for g in b) for b in bounds) for cell in cells)
    return bounds, list(found)


def _bounds(plan: NestPlan, buffers: Buffers, vector: int) -> list[Bounds]:
    found: list[Bounds] = []
    for scope in plan.scopes:
        for operand in scope.reads:
            if operand.source in buffers.types or isinstance(operand.source.owner, OnesOp):
                guards = access(operand, buffers, plan.extents).guards
                found.append(tuple(g for g in guards if _is_decided(g, plan, vector)))
    return found


def _is_decided(guard: Guard, plan: NestPlan, vector: int) -> bool:
    used = guard[0].iterators
    return len(used) == 1 and vector not in used and min(used) < plan.shared


def each_region(
    b: Emitter,
    plan: NestPlan,
    buffers: Buffers,
    point: Point,
    vector: int,
    emit: Callable[[Buffers], None],
) -> None:
    """Emit the code of every region, and a choice among them by where the point is."""
    bounds, found = regions(plan, buffers, vector)
    if not bounds or len(found) > MOST_REGIONS:
        emit(buffers)
        return
    holds = [_holds(b, guards, point) for guards in bounds]
    every = dict.fromkeys((guard for guards in bounds for guard in guards), False)

    def choose(left: Sequence[Region]) -> list[Value]:
        region, *others = left
        if others:
            inside = _is_in(b, holds, region, others)
            return b.if_else(inside, lambda: choose([region]), lambda: choose(others))
        there = {
            g: True for held, guards in zip(region, bounds, strict=True) if held for g in guards
        }
        emit(replace(buffers, known=every | there))
        return []

    choose(found)


def _holds(b: Emitter, guards: Bounds, point: Point) -> Value:
    terms = [
        b.compare("lt", b.value(emit_index(b, index, point), I64), size, signed=False)
        for index, size in guards
    ]
    return _all(b, terms)


def _is_in(b: Emitter, holds: Sequence[Value], region: Region, others: Sequence[Region]) -> Value:
    """Whether a place is in a region: by what tells it from all others, or by all there is."""
    telling = [k for k, held in enumerate(region) if all(other[k] != held for other in others)]
    return _all(
        b,
        [
            holds[k] if region[k] else b.logic("xor", holds[k], constant(I1, 1))
            for k in telling[:1] or range(len(region))
        ],
    )


def _all(b: Emitter, terms: Sequence[Value]) -> Value:
    result = terms[0]
    for term in terms[1:]:
        result = b.logic("and", result, term)
    return result
