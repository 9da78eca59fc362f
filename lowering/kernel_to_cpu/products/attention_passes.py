"""Plan the ops between the two products of attention: in how many passes over the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.types import byte_width, element_of
from ...algebra_to_kernel.attention import Attention, MappedScope


@dataclass(frozen=True)
class RowPass:
    """Scopes computed together in one walk over the keys, in order.

    Attributes:
        loads: values for each key that an earlier pass stored.
        steps: values for each key, and reductions over the keys.
        after: values that need the finished reductions only.
        stores: values for each key that a later pass, or the second product, loads.
    """

    loads: tuple[SSAValue, ...]
    steps: tuple[MappedScope, ...]
    after: tuple[MappedScope, ...]
    stores: tuple[SSAValue, ...]


@dataclass(frozen=True)
class RowPlan:
    """The passes, and the buffer of each stored value (`slots` of them)."""

    passes: tuple[RowPass, ...]
    slot: dict[SSAValue, int]
    slots: tuple[int, ...]
    """Bytes of an element of each buffer."""


def plan_rows(found: Attention) -> RowPlan:
    """Put every scope into the first pass in which its operands are known."""
    key = found.loops
    number: dict[SSAValue, int] = {found.scores.result: 0}
    rows = {found.scores.result}
    last: dict[SSAValue, int] = {}
    for placed in found.between:
        value = placed.scope.result
        made = [v for v in placed.scope.inputs if v in number]
        per_key = placed.moves(key)
        walks = per_key or placed.reduces(key)
        # A reduction is known when its pass is over; nothing inside that pass may read it.
        needed = [number[v] + (1 if walks and v not in rows else 0) for v in made]
        number[value] = max(needed, default=0)
        rows |= {value} if per_key else set()
        for v in made:
            last[v] = max(last.get(v, 0), number[value])
    count = max(number.values()) + 1
    last[found.rows] = count  # the second product comes after all of them
    kept = [v for v in number if v in rows and last.get(v, 0) > number[v]]
    passes = tuple(_pass(found, n, number, kept) for n in range(count))
    slot, slots = _slots(kept, number, last)
    return RowPlan(passes, slot, slots)


def _pass(
    found: Attention, n: int, number: dict[SSAValue, int], kept: Sequence[SSAValue]
) -> RowPass:
    here = [p for p in found.between if number[p.scope.result] == n]
    key = found.loops
    walking = tuple(p for p in here if p.moves(key) or p.reduces(key))
    read = {v for p in walking for v in p.scope.inputs}
    loads = tuple(v for v in kept if v in read and number[v] < n)
    after = tuple(p for p in here if p not in walking)
    return RowPass(loads, walking, after, tuple(v for v in kept if number[v] == n))


def _slots(
    kept: Sequence[SSAValue], number: dict[SSAValue, int], last: dict[SSAValue, int]
) -> tuple[dict[SSAValue, int], tuple[int, ...]]:
    """Assign buffers: a value reuses one whose last load is in the same pass."""
    slot: dict[SSAValue, int] = {}
    free_from: list[int] = []
    sizes: list[int] = []
    for value in sorted(kept, key=lambda v: number[v]):
        size = byte_width(element_of(value))
        fitting = (k for k, n in enumerate(free_from) if n <= number[value] and sizes[k] == size)
        k = next(fitting, len(sizes))
        if k == len(sizes):
            free_from.append(0)
            sizes.append(size)
        slot[value], free_from[k] = k, last[value]
    return slot, tuple(sizes)
