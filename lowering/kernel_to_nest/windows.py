"""Windows along the lanes of a vector: several vectors of points share one read of a row.

A maximum over 3x3 at stride 2 reads each place of a row for one or two taps, and for each tap loads
the range again to pick its elements. If it is reduced across rows first, the range is loaded once,
in whole consecutive vectors; only the totals are picked apart, tap by tap:

    max over (r, s) of x[2h + r, 2w + s]   is   max over s of v[2w + s],
                                          v[k]  =  max over r of x[2h + r, k]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.ir import SSAValue

from ...dialects.index import Index
from ...dialects.nest import (
    AccumulateOp,
    AllocOp,
    ForOp,
    InsideOp,
    LoadOp,
    PrefetchOp,
    StoreOp,
    is_local,
)
from ..kernel_to_cpu.emit.access import MOST_LOADS
from . import rewrites

# Taps along the lanes, each of which is a shuffle or two.
MAX_TAPS = 16


@dataclass(frozen=True)
class LaneWindow:
    """A sum whose one read is of a window along the lanes.

    Attributes:
        taps: the loops along the window.
        read: what is read.
        step: places between neighbouring lanes.
        offsets: places between the first tap and each tap.
    """

    taps: tuple[ForOp, ...]
    read: LoadOp
    step: int
    offsets: tuple[int, ...]

    @property
    def beside(self) -> int:
        """Vectors of points to compute together: two if they read common places.

        Measured: four would be faster out of the caches, and slower from memory.
        """
        overlap = max(self.offsets) - min(self.offsets) >= abs(self.step)
        return 2 if overlap else 1

    def vectors(self, points: int, width: int) -> tuple[int, int, list[int]]:
        """What this many neighbouring points read: the first place, how many there are, and where
        vectors start that cover them, and nothing behind them."""
        read = [self.step * k + tap for k in (0, points - 1) for tap in self.offsets]
        span = max(read) - min(read) + 1
        starts = [0] if span <= width else [*range(0, span - width, width), span - width]
        return min(read), span, starts


def window_of(loop: ForOp, lane: SSAValue) -> LaneWindow | None:
    """The window along a loop over points; None if there is none, or there are bounds to check."""
    window = _window(loop, lane)
    return window if window is not None and not window.read.guards else None


def _window(loop: ForOp, lane: SSAValue) -> LaneWindow | None:
    taps, inner = [loop], loop
    while (only := rewrites.only_op(inner)) is not None:
        taps.append(inner := only)
    reads = [op for op in inner.walk() if isinstance(op, LoadOp) and not is_local(op.buffer)]
    if len(reads) != 1 or any(isinstance(op, InsideOp) for op in inner.walk()):
        return None
    (read,) = reads
    places, address = list(read.places), read.indices[0]
    if address.has_floor or lane not in places or _reads_outside(loop):
        return None
    used = [k.iterator in places for k in taps]
    steps = [
        address.coefficient(places.index(k.iterator)) if there else 0
        for k, there in zip(taps, used, strict=True)
    ]
    step = address.coefficient(places.index(lane))
    values = product(*(range(k.size) for k in taps))
    offsets = tuple(sum(s * n for s, n in zip(steps, place, strict=True)) for place in values)
    far = abs(step) + max(map(abs, offsets)) // 4 >= MOST_LOADS
    if not any(steps) or far or len(offsets) > MAX_TAPS:
        return None
    return LaneWindow(tuple(taps), read, step, offsets)


def put_rows_outside(loop: ForOp, lane: SSAValue) -> None:
    """Sum along a window first where there are bounds to check: neighbours across share that."""
    window = _window(loop, lane)
    if window is None or not window.read.guards:
        return
    path = list(window.taps)
    while inner := [op for op in path[-1].block.ops if isinstance(op, ForOp)]:
        path.append(inner[0])
    sizes, uses = [k.size for k in path], [list(k.iterator.uses) for k in path]
    count = len(window.taps)
    for n, k in enumerate(path):
        source = (n + count) % len(path)
        rewrites.resize(k, sizes[source])
        for use in uses[source]:
            use.operation.operands[use.index] = k.iterator


def _reads_outside(loop: ForOp) -> bool:
    """Whether a loop reads a local buffer that is not its own."""
    own = {op.result for op in loop.walk() if isinstance(op, AllocOp)}
    loads = (op for op in loop.walk() if isinstance(op, LoadOp))
    return any(is_local(op.buffer) and op.buffer not in own for op in loads)


def stage_window(window: LaneWindow, run: ForOp, width: int) -> list[ForOp]:
    """Reduce across a window before a loop over points, into a buffer that the loop picks from.

    Gives the loops over the lanes of the buffer's vectors.
    """
    body = window.taps[-1].block
    kept = [op for op in body.ops if not isinstance(op, AccumulateOp)]
    (taken,) = (op for op in body.ops if isinstance(op, AccumulateOp))
    first, span, starts = window.vectors(run.size, width)
    row = AllocOp(taken.value.type, starts[-1] + width)
    rewrites.insert_before(run, row)
    old, found = [run.iterator, *(k.iterator for k in window.taps)], list[ForOp]()
    for start in starts:
        lane = ForOp(min(width, span), "vector", width)
        mapper: dict[SSAValue, SSAValue] = {}
        for op in kept:
            lane.block.add_op(op.clone(mapper))
        (read,) = (op for op in lane.walk() if isinstance(op, LoadOp) and not is_local(op.buffer))
        _move(read, old, lane.iterator, first + start)
        value = mapper.get(taken.value, taken.value)
        lane.block.add_op(StoreOp(value, row.result, [lane.iterator], Index.iterator(0) + start))
        rewrites.insert_before(run, lane)
        found.append(lane)
    _pick(window, run, row.result, first)
    return found


def _move(read: LoadOp, old: Sequence[SSAValue], lane: SSAValue, by: int) -> None:
    """Read from a place on, along a vector, in place of what iterators say."""
    kept = [p for p in read.places if p not in old]
    images = [Index.iterator(kept.index(p)) if p in kept else Index(0) for p in read.places]
    address = read.indices[0].substitute(images) + Index.iterator(len(kept)) + by
    read.replace_places([*kept, lane], [address])


def _pick(window: LaneWindow, run: ForOp, row: SSAValue, first: int) -> None:
    """Take the elements of a buffer, for each tap, in place of what was read."""
    body = window.taps[-1].block
    taken = body.last_op
    places, address = list(window.read.places), window.read.indices[0]
    over = [p for p in (run.iterator, *(k.iterator for k in window.taps)) if p in places]
    terms = [(p, address.coefficient(places.index(p))) for p in over]
    assert isinstance(taken, AccumulateOp)
    picked = LoadOp(row, over, rewrites.linear(over, terms, -first))
    rewrites.insert_before(taken, picked)
    taken.operands[0] = picked.result
    for op in [op for op in reversed(list(body.ops)) if op not in (taken, picked)]:
        rewrites.erase(op)


def ask_for_rows(
    window: LaneWindow, run: ForOp, stack: ForOp | None, width: int, ahead: tuple[SSAValue, int]
) -> None:
    """Ask, before points of a stack, for the rows that the next one reads and these do not."""
    read, top = window.read, stack or run
    iterator, step = ahead
    if iterator not in read.places:
        return
    loops = {
        k.iterator: k
        for k in window.taps[-1].walk()
        if isinstance(k, ForOp) and k not in window.taps
    }
    if stack is not None:
        loops[stack.iterator] = stack
    fixed = {run.iterator, *(k.iterator for k in window.taps)}
    kept = [p for p in read.places if p not in loops and p not in fixed]
    moved = read.indices[0] + read.indices[0].coefficient(list(read.places).index(iterator)) * step
    first, _, starts = window.vectors(run.size, width)
    asked = dict[Index, None]()
    for values in product(*(range(k.size) for k in loops.values())):
        at = dict(zip(loops, values, strict=True))
        images = [
            Index.iterator(kept.index(p)) if p in kept else Index(at.get(p, 0)) for p in read.places
        ]
        for start in (k for k in starts if k % width == 0):
            asked[moved.substitute(images) + (first + start)] = None
    for address in asked:
        rewrites.insert_before(top, PrefetchOp(read.buffer, kept, address))
