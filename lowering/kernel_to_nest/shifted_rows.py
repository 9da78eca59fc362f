"""Rows of a result that start anywhere in a cache line, put together from vectors and stored whole.

Blocks of a transposed result are vectors of several rows. Where rows are no whole lines, these
vectors lie across lines, and would be stored through the caches, which read each line first. Here
each row keeps its last vector on the stack: with the next one it makes up a line, which goes past
the caches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Block, SSAValue

from ...dialects.index import Index
from ...dialects.nest import STACK, AllocOp, ForOp, IfOp, LoadOp, PrefetchOp, StoreOp
from ..kernel_to_cpu.nests.lanes import SLICES
from ..kernel_to_cpu.nests.nontemporal import LINE
from . import rewrites
from .build import Site

# Rows that are put together at a time, if these are whole blocks.
TOGETHER = 32
# Places along such rows at which what is read is asked for: it lies in other rows, often in other
# pages, and the processor does not ask for it itself.
AHEAD = 48
# Vectors of a row that are worth an item of their own.
LEAST_STRIP = 64

Blocks = list[tuple[ForOp, ForOp]]
"""Loops over the rows, and over the lanes, of each kind of block."""

Reads = Sequence[tuple[SSAValue, Index]]
"""Buffers, and the elements that are read."""


def put_together(
    loops: Mapping[int, ForOp], row: tuple[int, int], out: Index, width: int, reads: Reads
) -> Blocks:
    """Schedule a perfect nest whose inner loop runs along rows of the result.

    An item is some rows and a strip of whole vectors. What is less than a vector at the end of a
    row is stored plainly, by the items of the last strip.

    Args:
        loops: those of each iterator; of the outer and the inner one are `row`.
        out: the element of the result, over these iterators.
        reads: what is read along the outer loop.
    """
    rows, lane = (loops[k] for k in row)
    others = {k: loop for k, loop in loops.items() if k not in row}
    size, whole = rows.size, lane.size - lane.size % width
    together = max(TOGETHER // width, 1) * width
    rewrites.cut_at(lane, [whole])
    main, *rest = rewrites.distribute(rows)
    (vector, *more), blocks = _cut(main, width)
    for other in more:
        rewrites.fuse(vector, other)
    inside = [op for op in vector.block.ops if isinstance(op, ForOp)]
    chunk = rewrites.tile_together(inside, together // width, "parallel")
    rewrites.interchange(vector)
    items = math.prod(loop.size for loop in (chunk, *others.values()))
    step = -(-vector.size // max(1, min(SLICES // items, vector.size // LEAST_STRIP)))
    strip, vector = rewrites.split_bound(vector, step)
    rewrites.mark(strip, "parallel")
    rewrites.mark(vector, "serial", unroll=1)
    first = max(loops) + 1
    made = dict(enumerate((chunk, strip, vector), first))
    places = {k: loop.iterator for k, loop in (others | made).items()}
    shifted = _ShiftedRows(vector, places, first, row, out, (size, whole, together, width, step))
    shifted.put(blocks, chunk)
    shifted.ask(reads)
    shifted.store_lines()
    shifted.store_ends(strip)
    for part in rest:
        plain, found = _cut(part, width)
        other = rewrites.tile_together(plain, together // width, "parallel")
        rewrites.fuse(chunk, other)
        last = IfOp([strip.iterator], [(Index.iterator(0) - (strip.size - 1), 1)])
        rewrites.move_ops([op for op in chunk.block.ops if op is not strip], last.then.block)
        strip.block.add_op(last)
        blocks += found
    return blocks


def _cut(rows: ForOp, width: int) -> tuple[list[ForOp], Blocks]:
    """Cut rows into blocks, and whole vectors out of them, whose loops come to stand outermost."""
    outer: list[ForOp] = []
    found: Blocks = []
    for part in rewrites.cut_at(rows, [rows.size - rows.size % width]):
        block, run = rewrites.split(part, min(width, part.size))
        lane = rewrites.only_op(run)
        assert lane is not None
        if lane.size >= width:
            _, lane = rewrites.split(lane, width)
            rewrites.interchange(run)
            block = rewrites.interchange(block)
        found.append((run, rewrites.mark(lane, "vector", width)))
        outer.append(block)
    return outer, found


class _ShiftedRows:
    """Two vectors of each row of a chunk are on the stack: the last one, and what came before."""

    def __init__(
        self,
        vector: ForOp,
        places: dict[int, SSAValue],
        first: int,
        row: tuple[int, int],
        out: Index,
        sizes: tuple[int, int, int, int, int],
    ) -> None:
        self.vector, self.places, self.row, self.out = vector.block, places, row, out
        self.size, self.whole, self.together, self.width, self.step = sizes
        self.numbers = range(first, first + 5)
        self.chunk, self.strip, self.number, self.each, self.lane = map(
            Index.iterator, self.numbers
        )
        store = next(op for op in vector.walk() if isinstance(op, StoreOp))
        kept = AllocOp(store.value.type, 2 * self.width * min(self.size, self.together), STACK)
        rewrites.insert_before(vector, kept)
        self.kept, self.target = kept.result, store.buffer

    def put(self, blocks: Blocks, chunk: ForOp) -> None:
        """Put the vectors of blocks on the stack, each as its row's last one."""
        done = 0
        for run, lane in blocks:
            (store,) = (op for op in lane.block.ops if isinstance(op, StoreOp))
            block = run.parent_op()
            assert isinstance(block, ForOp)
            row = [(block.iterator, run.size), (run.iterator, 1), (chunk.iterator, -self.together)]
            places = [place for place, _ in row] + [lane.iterator]
            at = (rewrites.linear(places, row, done) * 2 + 1) * self.width + Index.iterator(3)
            rewrites.insert_before(store, StoreOp(store.value, self.kept, places, at))
            rewrites.erase(store)
            done += block.size * run.size

    def _moved(self, flat: Index, row: Index | int, lane: Index | int) -> Index:
        """An address at a row of the chunk, and a place along it."""
        images = [Index.iterator(k) for k in range(self.numbers.start)]
        images[self.row[0]] = self.chunk * self.together + row
        images[self.row[1]] = Index.of(lane)
        return flat.substitute(images)

    @property
    def _start(self) -> Index:
        """Where along its row a vector starts."""
        return (self.strip * self.step + self.number) * self.width

    def ask(self, reads: Reads) -> None:
        """Ask for what the chunk's rows read further along."""
        last = min(self.size, self.together)
        each = ForOp(self.width, "unrolled")
        inside = Site(each.block, {**self.places, self.numbers[4]: each.iterator})
        for buffer, flat in reads:
            for row in (*range(0, last, self.width), last - 1):
                at = self._moved(flat, row, self._start + self.lane + AHEAD)
                places, (address,) = inside.expressed(at)
                inside.add(PrefetchOp(buffer, places, address))
        first = self.vector.first_op
        assert first is not None
        rewrites.insert_before(first, each)

    def _loop(self, site: Site, k: int, size: int, kind: str, upper: Index | None) -> Site:
        """A loop over iterator k at a site's end, up to a bound."""
        places, bounds = site.expressed(*([] if upper is None else [upper]))
        width, unroll = (size, None) if kind == "vector" else (0, 1)
        loop = ForOp(size, kind, width, upper=bounds, places=places, unroll=unroll)
        site.add(loop)
        return Site(loop.block, {**site.places, k: loop.iterator})

    def _each_row(self, block: Block) -> Site:
        """A loop over the rows of a chunk at a block's end."""
        ragged = self.size > self.together and self.size % self.together
        upper = Index(self.size) - self.chunk * self.together if ragged else None
        size = min(self.size, self.together)
        return self._loop(Site(block, self.places), self.numbers[3], size, "serial", upper)

    def _copy(
        self,
        site: Site,
        source: Index,
        target: tuple[SSAValue, Index],
        count: Index | None = None,
        nontemporal: int = 0,
    ) -> None:
        """Copy a vector from the stack, or its first `count` lanes."""
        lane = self._loop(site, self.numbers[4], self.width, "vector", count)
        places, (address,) = lane.expressed(source + self.lane)
        value = LoadOp(self.kept, places, address)
        places, (address,) = lane.expressed(target[1] + self.lane)
        lane.block.add_ops([value, StoreOp(value.result, target[0], places, address, nontemporal)])

    def store_lines(self) -> None:
        """Store the line that ends in each row's last vector; of the first, what lies in it."""
        row, width = self._each_row(self.vector), self.width
        place, slot = self._moved(self.out, self.each, self._start), self.each * (2 * width)
        shift = place % width
        places, (number,) = row.expressed(self.number)
        first = IfOp(places, [(number, 1)])
        row.add(first)
        begin, line = (Site(r.block, row.places) for r in (first.then, first.otherwise))
        self._copy(begin, slot + width, (self.target, place), width - shift)
        self._copy(line, slot + width - shift, (self.target, place - shift), None, LINE)
        self._copy(row, slot + width, (self.kept, slot))

    def store_ends(self, strip: ForOp) -> None:
        """Store what is left of each row's last vector where a strip ends."""
        choice = IfOp([strip.iterator], [(Index.iterator(0), strip.size - 1)])
        strip.block.add_op(choice)
        end = (self.strip + 1) * (self.step * self.width)
        for body, lane in ((choice.then, end), (choice.otherwise, self.whole)):
            row = self._each_row(body.block)
            place = self._moved(self.out, self.each, lane)
            shift = place % self.width
            slot = self.each * (2 * self.width) + self.width - shift
            self._copy(row, slot, (self.target, place - shift), shift)
