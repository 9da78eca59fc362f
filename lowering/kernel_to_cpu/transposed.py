"""Loop nests whose reads and stores lie along different iterators: blocks transposed in registers.

One iterator runs over the lanes, another one *across* them: a block is some vectors of neighbours
across. A read that is contiguous across is loaded so and transposed; where the block is all there
is across, as the channels of a picture are, what it reads or stores is one range of memory, and is
taken apart or put together by shuffles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...dialects.index import Index as Affine
from ...dialects.kernel import LoopsOp
from .access import (
    MOST_LOADS,
    Access,
    Point,
    Vector,
    emit_index,
    lane_offsets,
    memory_type,
    store,
    to_compute,
    to_memory,
)
from .emit import Emitter
from .lanes import addresses, power_of_two, result_access, result_address, split_item
from .nest import Buffers, NestPlan, Operand, access
from .past_caches import LINE, streamed
from .reduction import emit_scope
from .types import I64, Index, Value, constant

# Vectors of a strip: what is written side by side before the next places across. Results past the
# caches in rows longer than that have strips of one.
STRIP = 16
# Places across that are written before the next strip: whole cache lines of what is read.
CHUNK = 64


def across_iterator(op: LoopsOp, plan: NestPlan, vector: int, lanes: int) -> int | None:
    """The iterator along which a read, scattered over the lanes, is contiguous; None if none is."""
    if any(scope.sums for scope in plan.scopes):
        return None
    read = addresses(plan, op)
    out = result_address(op, plan)
    others = [k for k in range(plan.shared) if k != vector and plan.extents[k] != 1]

    def gain(k: int) -> int:
        reads = sum(_is_across(flat, vector, k, plan, lanes) for _, flat in read)
        return reads + _is_dense(out, vector, k, plan)

    best = max(others, key=gain, default=None)
    return best if best is not None and gain(best) else None


def _is_across(flat: Affine, vector: int, across: int, plan: NestPlan, lanes: int) -> bool:
    """Whether elements are neighbours across, and too far from each other along the lanes."""
    if flat.has_floor or flat.coefficient(across) != 1 or flat.coefficient(vector) == 0:
        return False
    offsets = lane_offsets(flat, vector, power_of_two(plan.extents[vector], lanes))
    far = offsets is None or max(offsets) - min(offsets) >= MOST_LOADS * lanes
    return far or _is_dense(flat, vector, across, plan)


def _is_dense(flat: Affine, vector: int, across: int, plan: NestPlan) -> bool:
    """Whether few places across are all that lies between neighbours along the lanes."""
    size = plan.extents[across]
    step = flat.coefficient(vector)
    return not flat.has_floor and flat.coefficient(across) == 1 and step == size <= MOST_LOADS


@dataclass(frozen=True)
class _Axis:
    """An iterator in steps, so many of them to a tile of `size`."""

    extent: int
    step: int
    size: int

    @property
    def tiles(self) -> int:
        return -(-self.extent // self.size)

    def walk(self, b: Emitter, tile: Index, emit: Callable[[Index, int], None]) -> None:
        """Emit the steps of one tile: where each begins, and its length (less at the very end)."""
        whole = self.extent - self.extent % self.step
        if self.tiles == 1 and whole == self.step:
            emit(0, self.step)
        elif whole:
            low, high = b.mul(tile, self.size), whole
            if self.tiles > 1:
                high = b.minimum(b.add(low, self.size), whole)
            with b.loop(low, high, self.step) as place:
                emit(place, self.step)
        if whole == self.extent:
            return
        if self.tiles == 1:
            emit(whole, self.extent - whole)
            return
        with b.when(b.compare("eq", b.value(tile, I64), self.tiles - 1)):
            emit(whole, self.extent - whole)


@dataclass
class Transposed:
    """Blocks of `vector` by `across`; strips of blocks and the other loops in parallel."""

    op: LoopsOp
    plan: NestPlan
    vector: int
    across: int
    lanes: int

    def __post_init__(self) -> None:
        out = result_address(self.op, self.plan)
        extents = self.plan.extents
        used = (self.vector, self.across)
        others = [k for k in range(self.plan.shared) if k not in used and extents[k] != 1]
        self.order = sorted(others, key=lambda k: -out.coefficient(k))
        self.width = power_of_two(extents[self.vector], self.lanes)
        self.read = addresses(self.plan, self.op)
        accessed = [out, *(flat for _, flat in self.read)]
        dense = any(_is_dense(f, self.vector, self.across, self.plan) for f in accessed)
        block = extents[self.across] if dense else self.width
        outer = math.prod(extents[k] for k in self.order)
        self.rows = _Axis(extents[self.across], block, CHUNK // block * block or block)
        piece = streamed(self.op.type, out, self.vector)
        # Vectors that follow each other in memory are not stored one after the other.
        whole = self.width * memory_type(self.op.type.element_type).bytes == LINE
        self.streamed = LINE if whole and piece == LINE else 0
        # Lines that go past the caches need no neighbours; a strip's reads would evict each other.
        one = self.streamed and extents[self.vector] > STRIP * self.width
        size = self.width if one else STRIP * self.width
        self.strip = _Axis(extents[self.vector], self.width, size)
        self.items = outer * self.rows.tiles * self.strip.tiles

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        target = result_access(self.op, self.plan, result)
        with b.loop(low, high) as item:
            rest, strip = b.split(item, self.strip.tiles)
            rest, rows = b.split(rest, self.rows.tiles)
            point = Point(self.plan.extents, split_item(b, rest, self.order, self.plan.extents))

            def row(place: Index, count: int) -> None:
                at = point.at({self.across: place})

                def block(start: Index, lanes: int) -> None:
                    here = at.at({self.vector: start})
                    mask = None if lanes == self.width else lanes
                    self._block(b, buffers, target, here, count, mask)

                self.strip.walk(b, strip, block)

            self.rows.walk(b, rows, row)

    def _block(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Access,
        point: Point,
        count: int,
        mask: int | None,
    ) -> None:
        """`count` vectors across, of `mask` lanes."""
        vector = Vector(self.vector, self.width, mask, aligned=True)
        ready = self._ready(b, buffers, point, count, mask)
        values: list[Value] = []
        points: list[Point] = []
        for k in range(count):
            place = b.add(point.values[self.across], k)
            points.append(point.at({self.across: place}, vector))
            here = replace(buffers, values={}, ready={o: rows[k] for o, rows in ready.items()})
            for scope in self.plan.scopes:
                here.values[scope.op.result] = emit_scope(b, scope, here, points[-1])
            values.append(here.values[self.plan.root.op.result])
        if _is_dense(target.flat, self.vector, self.across, self.plan):
            self._store_dense(b, target, points[0], values, mask or self.width)
            return
        for value, at in zip(values, points, strict=True):
            store(b, value, target, at, past_caches=self.streamed)

    def _ready(
        self, b: Emitter, buffers: Buffers, point: Point, count: int, mask: int | None
    ) -> dict[Operand, Sequence[Value]]:
        """The vectors of every read that is contiguous across and needs no check."""
        found: dict[Operand, Sequence[Value]] = {}
        for operand, flat in self.read:
            if not _is_across(flat, self.vector, self.across, self.plan, self.lanes):
                continue
            place = access(operand, buffers, self.plan.extents)
            if place.guards or operand in found:
                continue
            dense = _is_dense(flat, self.vector, self.across, self.plan)
            load = self._load_dense if dense else self._load_transposed
            rows = load(b, place, point, count, mask or self.width)
            found[operand] = [to_compute(b, row, place.element) for row in rows]
        return found

    def _load_transposed(
        self, b: Emitter, place: Access, point: Point, count: int, rows: int
    ) -> Sequence[Value]:
        """Vectors across, one for each lane, transposed."""
        assert place.pointer is not None
        dtype = memory_type(place.element).vector(self.width)
        first = point.values[self.vector]
        loaded = [constant(dtype, 0)] * self.width
        for lane in range(rows):
            at = point.at({self.vector: b.add(first, lane)})
            index = emit_index(b, place.flat, at)
            loaded[lane] = b.load(dtype, place.pointer, index, mask=count)
        return b.transpose(loaded)[:count]

    def _load_dense(
        self, b: Emitter, place: Access, point: Point, count: int, rows: int
    ) -> Sequence[Value]:
        """One range of memory taken apart: lane i of vector k is its element count * i + k."""
        assert place.pointer is not None
        dtype, first = (
            memory_type(place.element).vector(self.width),
            emit_index(b, place.flat, point),
        )
        loaded = [constant(dtype, 0)] * count
        for k, real in _vectors(rows * count, self.width):
            loaded[k] = b.load(dtype, place.pointer, b.add(first, k * self.width), mask=real)
        return [b.pick(loaded, [count * i + k for i in range(self.width)]) for k in range(count)]

    def _store_dense(
        self, b: Emitter, target: Access, point: Point, values: Sequence[Value], rows: int
    ) -> None:
        """Put vectors together, as `_load_dense` takes them apart."""
        assert target.pointer is not None
        count = len(values)
        stored = [to_memory(b, value, target.element) for value in values]
        first = emit_index(b, target.flat, point)
        for k, real in _vectors(rows * count, self.width):
            elements = range(k * self.width, (k + 1) * self.width)
            picks = [e % count * self.width + e // count for e in elements]
            value = b.pick(stored, picks)
            b.store(value, target.pointer, b.add(first, k * self.width), mask=real)


def _vectors(elements: int, lanes: int) -> list[tuple[int, int]]:
    """Numbers of the vectors that hold so many elements, and how many are in each."""
    starts = range(0, elements, lanes)
    return [(k, min(lanes, elements - start)) for k, start in enumerate(starts)]
