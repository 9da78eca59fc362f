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
from ...dialects.kernel import KernelOp
from ...dialects.types import byte_size
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
from .lanes import SLICES, addresses, power_of_two, result_access, result_address, split_item
from .nest import Buffers, NestOperand, NestPlan, access
from .past_caches import LEAST_BYTES, LINE, is_peeled, streamed
from .reduction import emit_scope
from .shifted_rows import ShiftedRows
from .types import I64, Index, Value, constant

# Vectors of a strip: what is written side by side before the next places across. Results past the
# caches in rows longer than that have strips of one.
STRIP = 16
# Places across that are written before the next strip: whole cache lines of what is read.
CHUNK = 64
# Rows that are put together from shifted vectors at a time.
SHIFTED = 32
# Places ahead at which what is read is asked for, along such rows and across. What follows a block
# of a strip lies in another row, often in another page: the processor does not ask for it itself.
AHEAD = 48
AHEAD_ACROSS = 32
# Vectors of a row that are worth an item of their own.
LEAST_STRIP = 64


def across_iterator(op: KernelOp, plan: NestPlan, vector: int, lanes: int) -> int | None:
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

    @property
    def longest(self) -> int:
        """Places of the first tile."""
        return min(self.size, self.extent)

    @property
    def whole(self) -> int:
        """Where whole steps end."""
        return self.extent - self.extent % self.step

    def bounds(self, b: Emitter, tile: Index, end: int) -> tuple[Index, Index]:
        """Where a tile begins, and ends, of places up to `end`."""
        if self.tiles == 1:
            return 0, end
        low = b.mul(tile, self.size)
        return low, b.minimum(b.add(low, self.size), end)

    def walk(self, b: Emitter, tile: Index, emit: Callable[[Index, int], None]) -> None:
        """Emit the steps of one tile: where each begins, and its length (less at the very end)."""
        whole = self.whole
        if self.tiles == 1 and whole == self.step:
            emit(0, self.step)
        elif whole:
            with b.loop(*self.bounds(b, tile, whole), self.step) as place:
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

    op: KernelOp
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
        piece = streamed(self.op.type, out, self.vector)
        # Vectors that follow each other in memory are not stored one after the other.
        whole = self.width * memory_type(self.op.type.element_type).bytes == LINE
        self.streamed = LINE if whole and piece == LINE else 0
        self.shifted = (
            whole
            and not dense
            and is_peeled(self.op.type, out, self.vector, extents[self.vector], self.width)
        )
        chunk = SHIFTED if self.shifted else CHUNK
        self.rows = _Axis(extents[self.across], block, chunk // block * block or block)
        # Lines that go past the caches need no neighbours; a strip's reads would evict each other.
        one = self.streamed and extents[self.vector] > STRIP * self.width
        size = self.width if one else STRIP * self.width
        if self.shifted:
            vectors = extents[self.vector] // self.width
            slices = max(1, min(SLICES // (outer * self.rows.tiles), vectors // LEAST_STRIP))
            size = -(-vectors // slices) * self.width
        self.strip = _Axis(extents[self.vector], self.width, size)
        self.asks_across = byte_size(self.op.type) >= LEAST_BYTES and self.strip.tiles == 1
        self.items = outer * self.rows.tiles * self.strip.tiles

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        target = result_access(self.op, self.plan, result)
        shifted = None
        if self.shifted:
            shifted = ShiftedRows.reserve(b, target, self.width, self.rows.longest)
        with b.loop(low, high) as item:
            rest, strip = b.split(item, self.strip.tiles)
            rest, rows = b.split(rest, self.rows.tiles)
            point = Point(self.plan.extents, split_item(b, rest, self.order, self.plan.extents))
            if shifted is None:
                self._blocks(b, buffers, target, point, (rows, strip))
            else:
                self._put_together(b, buffers, shifted, point, (rows, strip))

    def _blocks(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Access,
        point: Point,
        tiles: tuple[Index, Index],
    ) -> None:
        """The blocks of some rows and a strip."""
        rows, strip = tiles

        def row(place: Index, count: int) -> None:
            at = point.at({self.across: place})

            def block(start: Index, lanes: int) -> None:
                here = at.at({self.vector: start})
                if self.asks_across:
                    ahead = here.at({self.across: b.add(place, AHEAD_ACROSS)})
                    self._ask(b, buffers, ahead, (0,))
                self._block(b, buffers, target, here, count, lanes)

            self.strip.walk(b, strip, block)

        self.rows.walk(b, rows, row)

    def _put_together(
        self,
        b: Emitter,
        buffers: Buffers,
        shifted: ShiftedRows,
        point: Point,
        tiles: tuple[Index, Index],
    ) -> None:
        """Some rows along a strip of whole vectors, and what is left of them at the very end."""
        rows, strip = tiles
        low, high = self.rows.bounds(b, rows, self.rows.extent)
        count = b.sub(high, low)
        first, last = self.strip.bounds(b, strip, self.strip.whole)

        def each(place: Index, emit: Callable[[Index, Point], None]) -> None:
            with b.loop(0, count, unroll=1) as k:
                emit(k, point.at({self.vector: place, self.across: b.add(low, k)}))

        with b.loop(first, last, self.width, unroll=1) as start:
            self._ask_along(b, buffers, point, (rows, start))

            def put(place: Index, count: int) -> None:
                at = point.at({self.vector: start, self.across: place})
                _, values = self._values(b, buffers, at, count, self.width)
                for k, value in enumerate(values):
                    shifted.put(b, b.add(b.sub(place, low), k), value)

            self.rows.walk(b, rows, put)
            begins = b.compare("eq", start, first)
            each(start, lambda k, at: shifted.store(b, k, at, first=begins))
        with b.when(b.compare("lt", b.value(first, I64), last)):
            each(last, lambda k, at: shifted.end(b, k, at))
        rest = self.strip.extent - self.strip.whole
        if not rest:
            return

        def row(place: Index, count: int) -> None:
            at = point.at({self.vector: self.strip.whole, self.across: place})
            self._block(b, buffers, shifted.target, at, count, rest)

        with b.when(b.compare("eq", b.value(strip, I64), self.strip.tiles - 1)):
            self.rows.walk(b, rows, row)

    def _ask_along(
        self, b: Emitter, buffers: Buffers, point: Point, place: tuple[Index, Index]
    ) -> None:
        """Ask for what a chunk of rows reads further along, from a tile and a place on."""
        rows, start = place
        low = b.mul(rows, self.rows.size)
        at = point.at({self.across: low, self.vector: b.add(start, AHEAD)})
        self._ask(b, buffers, at, (*range(0, self.rows.longest, self.width), self.rows.longest - 1))

    def _ask(self, b: Emitter, buffers: Buffers, point: Point, places: Sequence[int]) -> None:
        """Ask for the lines that a block reads at these places across."""
        for operand, flat in self.read:
            if not _is_across(flat, self.vector, self.across, self.plan, self.lanes):
                continue
            source = access(operand, buffers, self.plan.extents)
            if source.guards or source.pointer is None:
                continue
            first = emit_index(b, source.flat, point)
            step = source.flat.coefficient(self.vector)
            for lane in range(self.width):
                for place in places:
                    b.prefetch(source.memory, source.pointer, b.add(first, lane * step + place))

    def _values(
        self, b: Emitter, buffers: Buffers, point: Point, count: int, lanes: int
    ) -> tuple[list[Point], list[Value]]:
        """`count` vectors across, of so many real `lanes`, and where they lie."""
        mask = None if lanes == self.width else lanes
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
        return points, values

    def _block(
        self, b: Emitter, buffers: Buffers, target: Access, point: Point, count: int, lanes: int
    ) -> None:
        """Store `count` vectors across, of so many real `lanes`."""
        points, values = self._values(b, buffers, point, count, lanes)
        if _is_dense(target.flat, self.vector, self.across, self.plan):
            self._store_dense(b, target, points[0], values, lanes)
            return
        for value, at in zip(values, points, strict=True):
            store(b, value, target, at, past_caches=self.streamed)

    def _ready(
        self, b: Emitter, buffers: Buffers, point: Point, count: int, mask: int | None
    ) -> dict[NestOperand, Sequence[Value]]:
        """The vectors of every read that is contiguous across and needs no check."""
        found: dict[NestOperand, Sequence[Value]] = {}
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
