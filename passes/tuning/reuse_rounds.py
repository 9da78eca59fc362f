"""Schedules of a kernel to try, given the best one of another: reuse in a schedule space.

Algorithm 1 of ETO (passes/reuse/hierarchical.py) on the entries that a CPU kernel's space has. What
an entry decides is its role: register tiles stand for threads, items for blocks, the depth of a
block of the sum for shared memory. Features are ratios of the two kernels:

    tiles    positions / (rows * vectors)    in [1, r2] of the other's
    blocks   items                           in [r1, r2]
    slices   depth * items                   in [1, r2]

Each round varies one role and keeps the best so far. On one thread items are only the order of
tiles, so tiles come first and few numbers of items are tried (ours; the paper loops over blocks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ...dialects.schedule import Entry, Schedule
from ...lowering.schedule_space import Space
from ..reuse.features import Range
from ..reuse.nest import OperatorNest

TILE, BLOCK, SLICE, UNROLL, LOAD = "tile", "block", "slice", "unroll", "load"
ROLES: Mapping[str, str] = {
    **dict.fromkeys(("rows", "vectors", "lanes", "turns", "stack"), TILE),
    **dict.fromkeys(
        ("row_blocks", "panels", "order", "image_rows", "chunk", "channels", "items", "strip"),
        BLOCK,
    ),
    **dict.fromkeys(("depth", "block"), SLICE),
    **dict.fromkeys(("unroll", "chains"), UNROLL),
    **dict.fromkeys(("right", "left", "prefetch", "staged", "ahead"), LOAD),
}
"""What each entry of a schedule decides, in any table."""
# The most schedules of a round.
MOST: Mapping[str, int] = {TILE: 4, BLOCK: 3, SLICE: 2, UNROLL: 2, LOAD: 3}
MAX_TRIALS = 1 + sum(MOST.values())


@dataclass(frozen=True)
class Side:
    """A kernel: its loops and its schedule space."""

    nest: OperatorNest
    space: Space


@dataclass(frozen=True)
class ReuseRounds:
    """Rounds of schedules of `a`, from `known`, the best one of `b`."""

    a: Side
    b: Side
    known: Schedule

    def rounds(self) -> Iterator[Callable[[Schedule], list[Schedule]]]:
        """Functions that turn the best so far into schedules to measure, in order."""
        for role in (TILE, BLOCK, SLICE, UNROLL, LOAD):
            yield lambda best, role=role: self._varied(best, role)

    def start(self) -> Schedule:
        """The other's schedule in this space; what does not fit is left to the generator."""
        space = self.a.space
        whole = self.b.space.whole(self.known).as_dict()
        near = {
            name: _nearest(values, whole[name])
            for name, values in space.dimensions.items()
            if name in whole
        }
        for left_out in ((), (BLOCK,), (BLOCK, SLICE), (BLOCK, SLICE, LOAD, UNROLL)):
            made = self._completed({n: v for n, v in near.items() if ROLES[n] not in left_out})
            if made is not None:
                return made
        return space.default

    def _varied(self, best: Schedule, role: str) -> list[Schedule]:
        """Points that differ from the best in entries of a role, the most promising first."""
        space, entries = self.a.space, best.as_dict()
        names = [n for n in space.dimensions if ROLES[n] == role and len(space.dimensions[n]) > 1]
        if not names:
            return []
        # Blocks follow from tiles; the generator knows how.
        kept = {n: v for n, v in entries.items() if role != TILE or ROLES[n] not in (TILE, BLOCK)}
        found: dict[Schedule, None] = {}
        for values in self._choices(names, entries, role):
            made = self._completed({**kept, **dict(zip(names, values, strict=True))})
            if made is not None and made != best and self.in_range(made, role):
                found[made] = None
            if len(found) == MOST[role]:
                break
        return list(found)

    def _choices(
        self, names: Sequence[str], entries: Mapping[str, Entry], role: str
    ) -> Iterator[tuple[Entry, ...]]:
        """Values for these entries, those closest to the best so far first."""
        spaces = [self.a.space.dimensions[name] for name in names]
        if role in (UNROLL, LOAD):  # one entry at a time
            for k, name in enumerate(names):
                old = tuple(entries[n] for n in names)
                for value in sorted(spaces[k], key=lambda v, n=name: _apart(v, entries[n])):
                    yield (*old[:k], value, *old[k + 1 :])
            return
        some = [_closest(values, entries[n]) for n, values in zip(names, spaces, strict=True)]
        yield from sorted(
            product(*some),
            key=lambda one: sum(_apart(v, entries[n]) for n, v in zip(names, one, strict=True)),
        )

    def _completed(self, entries: Mapping[str, Entry]) -> Schedule | None:
        made = self.a.space.whole(Schedule.of(entries))
        return made if self.a.space.refusal(made) is None else None

    # --- features ---

    def in_range(self, schedule: Schedule, role: str) -> bool:
        """Whether the feature of a role is where the other's schedule lets expect it."""
        a, b = self.a, self.b
        known, made = b.space.whole(self.known).as_dict(), schedule.as_dict()
        r1, r2 = b.nest.terms / a.nest.terms, a.nest.size / b.nest.size
        blocks = a.space.items(made) / b.space.items(known)
        if role == TILE:
            ratio = a.nest.points / _tile(made) / (b.nest.points / _tile(known))
            return ratio in Range(1, r2) or _tile(made) == _tile(known)
        if role == BLOCK:
            return blocks in Range(r1, r2)
        if role == SLICE and "depth" in made and "depth" in known:
            return blocks * _number(made["depth"]) / _number(known["depth"]) in Range(1, r2)
        return True


def _tile(entries: Mapping[str, Entry]) -> float:
    """Positions of a register tile, in vectors."""
    return math.prod(_number(entries.get(name, 1)) for name in ("rows", "vectors", "turns"))


def _number(value: Entry) -> float:
    return float(value) if isinstance(value, int) and value > 0 else 1.0


def _apart(one: Entry, other: Entry) -> float:
    """How far two values are: by ratio, or 1 for other words."""
    if isinstance(one, int) and isinstance(other, int):
        return abs(math.log((one + 1) / (other + 1)))
    return float(one != other)


def _nearest(values: Sequence[Entry], value: Entry) -> Entry:
    return min(values, key=lambda one: _apart(one, value))


def _closest(values: Sequence[Entry], value: Entry) -> list[Entry]:
    """The few values closest to one."""
    return sorted(values, key=lambda one: _apart(one, value))[:8]
