"""Emit matrix products as register-blocked kernels with cache blocking.

An item computes some blocks of rows times some panels of columns, for one batch entry:

    for each block of k:
        [pack the item's rows of A]
        for each panel:
            [pack the panel of B]
            for each block of rows: accumulate in registers

Between blocks of k partial sums are on the stack, so C is written once, after the epilogue.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.rows_read import RowsRead, Skipping
from ..emit.types import I64, PTR, Index, Type, Value, constant
from ..isa import Isa
from .blocks import Panel, balanced, block_loops, cut_panels, each_kind
from .copy_bytes import copy_bytes
from .copy_panel import copy_panel, copy_rows
from .epilogue import Epilogue, OutIndex, finish
from .gemm_spec import GemmSchedule, GemmSpec, candidates, default_schedule
from .microkernel import PrefetchShare, Reads, RegisterTile, accumulate, chains_for, starts_of

__all__ = [
    "GemmSchedule",
    "GemmSpec",
    "candidates",
    "default_schedule",
    "emit_gemm",
    "pack_b",
]


def pack_b(matrix: NDArray[Any], spec: GemmSpec, schedule: GemmSchedule, isa: Isa) -> NDArray[Any]:
    """Reorder B into panels of columns, padded with zeros to whole vectors, in the order of use.

    Shapes: (*batch, k, n), where a batch dimension of stride 0 has size 1, to one flat array laid
    out as [*batch][panels of an item][block of k][panel][k][lanes of the panel].
    """
    lanes, entries = isa.lanes(spec.numbers.total), list(np.ndindex(matrix.shape[:-2]))
    columns = sum(p.count * p.vectors for p in cut_panels(spec.n, schedule.vectors, lanes)) * lanes
    size = len(entries) * columns * spec.numbers.rows(spec.k)
    packed, end = np.empty(size, spec.numbers.dtype), 0
    for entry in entries:
        for block in _blocks(matrix[entry], spec, schedule, lanes):
            packed[end : end + block.size] = block
            end += block.size
    assert end == size, (end, size)
    return packed


def _blocks(
    matrix: NDArray[Any], spec: GemmSpec, schedule: GemmSchedule, lanes: int
) -> Iterator[NDArray[Any]]:
    """The parts of a packed matrix in order; few are in memory at a time."""
    cut = cut_panels(spec.n, schedule.vectors, lanes)
    each = [panel for panel in cut for _ in range(panel.count)]
    rows, depth = spec.numbers.rows(spec.k), schedule.depth
    start = 0
    for first in range(0, len(each), schedule.panels):
        together: list[NDArray[Any]] = []
        for panel in each[first : first + schedule.panels]:
            part = matrix[:, start : start + panel.channels]
            gap = panel.vectors * lanes - panel.channels
            together.append(spec.numbers.panel(np.pad(part, ((0, 0), (0, gap)))[None]))
            start += panel.channels
        for low in range(0, rows, max(1, depth)):
            yield from (panel[low : low + depth].ravel() for panel in together)


class _Gemm:
    """The state that every part of the emission needs."""

    def __init__(
        self, spec: GemmSpec, schedule: GemmSchedule, isa: Isa, epilogue: Epilogue | None
    ) -> None:
        if schedule.right == "direct" and spec.b_strides[-1] != 1:
            raise ValueError(f"B is read directly only where its columns are adjacent: {spec}")
        if schedule.copy_a and 1 not in spec.a_strides[-2:]:
            raise ValueError(f"A is copied only where rows or columns are adjacent: {spec}")
        self.spec = spec
        self.schedule = schedule
        self.isa = isa
        self.epilogue = epilogue
        self.numbers = spec.numbers
        self.lanes = isa.lanes(self.numbers.total)
        self.rows = self.numbers.rows(spec.k)  # of a packed panel
        self.kinds = cut_panels(spec.n, schedule.vectors, self.lanes)
        self.sizes = balanced(spec.m, schedule.rows)
        self.module = Module()
        self.panel_count = sum(kind.count for kind in self.kinds)
        self.panel_items = -(-self.panel_count // schedule.panels)
        self.row_items = -(-len(self.sizes) // schedule.row_blocks)
        self.deep = schedule.depth < self.rows  # several blocks of k
        self.item_rows = self.sizes[0] * schedule.row_blocks
        # Packed rows (columns, if A is transposed) are whole cache lines, plus one, apart.
        self.turned = schedule.copy_a and spec.a_strides[-1] != 1
        length = self.item_rows if self.turned else schedule.depth
        self.copied_stride = -(-length // 16) * 16 + 16
        self.tile_floats = self.sizes[0] * schedule.vectors * self.lanes

    @property
    def right(self) -> Type:
        """Give the type of B where the kernel finds it."""
        packed = self.schedule.right == "packed"
        return self.numbers.total if packed else self.numbers.right

    @property
    def width(self) -> int:
        """Count the columns of a whole panel."""
        return self.schedule.vectors * self.lanes

    @property
    def copied_strides(self) -> tuple[int, int]:
        """Give the strides of copied rows of A, and of k."""
        return (1, self.copied_stride) if self.turned else (self.copied_stride, 1)

    @property
    def fetches(self) -> bool:
        """Say whether weights are prefetched."""
        return self.schedule.right == "packed" and self.schedule.prefetch > 0

    def fetch(self, kind: Panel) -> PrefetchShare:
        """Say how the row blocks of an item prefetch the next panel."""
        return PrefetchShare(
            kind.vectors, self.lanes, min(len(self.sizes), self.schedule.row_blocks)
        )

    def b_batch_strides(self) -> tuple[int, ...]:
        """Give the strides of B's batch dimensions, in the packed array if there is one."""
        strides = self.spec.b_strides[:-2]
        if self.schedule.right != "packed":
            return strides
        size = sum(kind.count * kind.vectors for kind in self.kinds) * self.lanes * self.rows
        result: list[int] = []
        for extent, stride in reversed(list(zip(self.spec.batch, strides, strict=True))):
            result.insert(0, size if stride else 0)
            size *= extent if stride else 1
        return tuple(result)


@dataclass(frozen=True)
class _Item:
    """The state of one item: pointers moved to its batch entry, and its coordinates."""

    a: Value
    b: Value
    c: Value
    extras: list[Value]
    batch: tuple[Index, ...]
    chunk: Index  # of row blocks
    first_row: Index
    stacked: tuple[Value, ...]  # copied rows of A, copied panel of B, partial sums
    skipping: Skipping

    def rows(
        self, b: Emitter, gemm: _Gemm, first: Index, count: int
    ) -> AbstractContextManager[None]:
        """What is emitted inside is about these rows of C: it runs unless nobody reads them."""
        return self.skipping.part(b, *self._rows(gemm, first, count))

    def half(self, gemm: _Gemm, size: int) -> int:
        """Of a block of rows, how many the smaller block has that runs where few of them are read.

        All of them where no rows are left out, or too few to gain.
        """
        down = gemm.spec.c_strides[-2]
        counted = any(rows.step == down for rows in self.skipping.rows)
        return -(-size // 2) if counted and size > 2 else size

    def reads(self, b: Emitter, gemm: _Gemm, first: Index, count: int) -> Value:
        """Whether some of these rows of C may be read."""
        return self.skipping.wanted(b, *self._rows(gemm, first, count))

    def _rows(
        self, gemm: _Gemm, first: Index, count: int
    ) -> tuple[Sequence[tuple[Index, int]], int]:
        """The place of the first element of rows of C, and how far behind it the last one is."""
        *batch, down, across = gemm.spec.c_strides
        place = [*zip(self.batch, batch, strict=True), (first, down)]
        return place, (count - 1) * down + (gemm.spec.n - 1) * across

    def columns(
        self, b: Emitter, gemm: _Gemm, first: Index, count: int
    ) -> AbstractContextManager[None]:
        """As `rows`, of columns of C."""
        *batch, down, across = gemm.spec.c_strides
        if all(rows.step != across for rows in self.skipping.rows):
            return nullcontext()
        rows = (self.first_row, down), (first, across)
        place = [*zip(self.batch, batch, strict=True), *rows]
        return self.skipping.part(b, place, (count - 1) * across)


def emit_gemm(
    spec: GemmSpec,
    schedule: GemmSchedule,
    isa: Isa,
    epilogue: Epilogue | None = None,
    rows: Sequence[RowsRead] = (),
) -> KernelCode:
    """Emit the kernel.

    Its arguments are A, B (or packed B), the epilogue's extras, how many rows are read, C.
    """
    gemm = _Gemm(spec, schedule, isa, epilogue)
    arguments = 3 + (epilogue.extras if epilogue else 0) + len(rows)
    items = math.prod(spec.batch) * gemm.row_items * gemm.panel_items

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        skipping, pointers = Skipping.of(b, rows, pointers)
        stacked = _stack(b, gemm)
        with b.loop(low, high) as number:
            if schedule.panels_outside:
                rest, chunk = b.split(number, gemm.row_items)
                entry, panels = b.split(rest, gemm.panel_items)
            else:
                rest, panels = b.split(number, gemm.panel_items)
                entry, chunk = b.split(rest, gemm.row_items)
            item = _item(b, gemm, pointers, (entry, chunk), stacked, skipping)
            with item.rows(b, gemm, item.first_row, gemm.item_rows):
                _depth_blocks(b, gemm, item, panels)

    return kernel(gemm.module, arguments, items, body)


def _stack(b: Emitter, gemm: _Gemm) -> tuple[Value, ...]:
    """Reserve the schedule's stack buffers; an unused one is a null pointer."""
    schedule = gemm.schedule
    copied = schedule.depth if gemm.turned else gemm.item_rows
    rows = copied * gemm.copied_stride if schedule.copy_a else 0
    panel = schedule.depth * gemm.width if schedule.right == "copied" else 0
    sums = schedule.panels * schedule.row_blocks * gemm.tile_floats if gemm.deep else 0
    total = gemm.numbers.total
    return tuple(b.reserve(total, n) if n else constant(PTR, 0) for n in (rows, panel, sums))


def _item(
    b: Emitter,
    gemm: _Gemm,
    pointers: list[Value],
    place: tuple[Index, Index],
    stacked: tuple[Value, ...],
    skipping: Skipping,
) -> _Item:
    """Move the pointers to one batch entry; `place` is its number and that of the row blocks."""
    left, right, *extras, target = pointers
    entry, chunk = place
    batch: list[Index] = []
    for extent in reversed(gemm.spec.batch):
        entry, coordinate = b.split(entry, extent)
        batch.insert(0, coordinate)

    def moved(dtype: Type, pointer: Value, strides: Sequence[int]) -> Value:
        terms = zip(batch, strides, strict=True)
        return b.address(dtype, pointer, b.linear(*terms))

    return _Item(
        moved(gemm.numbers.data, left, gemm.spec.a_strides[:-2]),
        moved(gemm.right, right, gemm.b_batch_strides()),
        moved(gemm.numbers.result, target, gemm.spec.c_strides[:-2]),
        extras,
        tuple(batch),
        chunk,
        _first_row(b, gemm, b.mul(chunk, gemm.schedule.row_blocks)),
        stacked,
        skipping,
    )


def _first_row(b: Emitter, gemm: _Gemm, block: Index) -> Index:
    """Count the rows before a block; the first blocks may have one row more."""
    size = gemm.sizes[-1]
    larger = gemm.sizes.count(size + 1)
    return b.add(b.mul(block, size), b.minimum(block, larger) if larger else 0)


def _depth_blocks(b: Emitter, gemm: _Gemm, item: _Item, panels: Index) -> None:
    schedule, k = gemm.schedule, gemm.rows
    first = b.mul(panels, schedule.panels)
    last: Index = b.add(first, schedule.panels)
    if gemm.panel_count % schedule.panels:
        last = b.minimum(last, gemm.panel_count)

    def block(start: Index, depth: Index) -> None:
        if schedule.copy_a:
            _copy_a(b, gemm, item, start, depth)
        with b.loop(first, last, unroll=1) as panel:
            slot = b.sub(panel, first)
            each_kind(
                b,
                gemm.kinds,
                panel,
                lambda kind: _panel(b, gemm, item, kind, (panel, slot), (start, depth)),
            )

    if gemm.deep:
        with b.loop(0, k, schedule.depth, unroll=1) as start:
            block(start, b.minimum(b.sub(k, start), schedule.depth))
    else:
        block(0, k)


def _copy_a(b: Emitter, gemm: _Gemm, item: _Item, start: Index, depth: Index) -> None:
    """Pack the item's rows of one block of k."""
    after = b.mul(b.add(item.chunk, 1), gemm.schedule.row_blocks)
    blocks = len(gemm.sizes)
    if gemm.row_items * gemm.schedule.row_blocks != blocks:
        after = b.minimum(after, blocks)
    count = b.sub(_first_row(b, gemm, after), item.first_row)
    row_stride, k_stride = gemm.spec.a_strides[-2:]
    at = b.linear((item.first_row, row_stride), (start, k_stride))
    source, stride = b.address(gemm.numbers.data, item.a, at), row_stride
    if gemm.turned:
        count, depth, stride = depth, count, k_stride
    target = item.stacked[0], gemm.copied_stride
    copy_rows(b, (source, stride), target, count, depth, gemm.lanes, gemm.numbers.data)


def _panel(
    b: Emitter,
    gemm: _Gemm,
    item: _Item,
    kind: Panel,
    panel: tuple[Index, Index],
    block: tuple[Index, Index],
) -> None:
    """Emit all row blocks of a panel (its number and position in the item) for one block of k."""
    number, slot = panel
    ordinal = b.sub(number, kind.first)
    column = b.add(b.mul(ordinal, kind.channels), kind.channel)
    with item.columns(b, gemm, column, kind.channels):
        _columns(b, gemm, item, kind, (number, slot, column), block)


def _columns(
    b: Emitter,
    gemm: _Gemm,
    item: _Item,
    kind: Panel,
    panel: tuple[Index, Index, Index],
    block: tuple[Index, Index],
) -> None:
    """As `_panel`, of which the first column is known, too."""
    number, slot, column = panel
    start, depth = block
    schedule, spec = gemm.schedule, gemm.spec
    if schedule.right == "packed":
        weights = _packed(b, gemm, item, (number, slot), block)
    else:
        weights = _weights(b, gemm, item, kind, column, block)
    chunk = (item.chunk, schedule.row_blocks) if gemm.row_items > 1 else None
    left, row_stride = item.a, spec.a_strides[-2]
    if schedule.copy_a:
        left, row_stride = item.stacked[0], gemm.copied_strides[0]
    else:
        left = b.address(gemm.numbers.data, left, b.mul(start, spec.a_strides[-1]))

    def work(index: Index, size: int, row: Index) -> None:
        away = b.sub(row, item.first_row) if schedule.copy_a else row
        source = b.address(gemm.numbers.data, left, b.mul(away, row_stride))
        offset = b.add(b.mul(row, spec.c_strides[-2]), column)
        tile_index = b.sub(index, b.mul(item.chunk, schedule.row_blocks))
        tile_number = b.add(tile_index, b.mul(slot, schedule.row_blocks))
        sums = item.stacked[2]
        if gemm.deep:
            sums = b.address(gemm.numbers.total, sums, b.mul(tile_number, gemm.tile_floats))
        target = b.address(gemm.numbers.result, item.c, offset)
        pointers = [source, weights, sums, *item.extras, target]
        ahead: Index = 0
        if gemm.fetches:  # the panels of an item, block of k by block of k, lie in order of use
            here = b.mul(depth, kind.vectors * gemm.lanes * schedule.prefetch)
            ahead = gemm.fetch(kind).distance(b, here, tile_index, depth)
        numbers = [b.value(x, I64) for x in (*item.batch, row, column, start, depth, ahead)]

        def call(rows: int) -> list[Value]:
            key = f"block {kind.vectors} {kind.channels} {size} {rows}"
            name = gemm.module.once(key, lambda name: _block_function(gemm, kind, size, rows, name))
            b.call(name, None, [*pointers, *numbers])
            return []

        half = item.half(gemm, size)
        with item.rows(b, gemm, row, size):
            if half == size:
                call(size)
            else:
                rest = item.reads(b, gemm, b.add(row, half), size - half)
                b.if_else(rest, lambda: call(size), lambda: call(half))

    block_loops(b, gemm.sizes, chunk, work)


def _packed(
    b: Emitter, gemm: _Gemm, item: _Item, panel: tuple[Index, Index], block: tuple[Index, Index]
) -> Value:
    """Point to one block of k of a packed panel (its number and position in the item)."""
    (number, slot), (start, depth) = panel, block
    vectors = gemm.kinds[0].vectors
    before = b.mul(b.sub(number, slot), vectors)
    together: Index = gemm.schedule.panels * vectors
    if gemm.panel_count % gemm.schedule.panels or len(gemm.kinds) > 1:
        total = sum(kind.count * kind.vectors for kind in gemm.kinds)
        together = b.minimum(b.sub(total, before), together)
    rows = b.add(b.mul(start, together), b.mul(b.mul(slot, depth), vectors))
    return b.address(gemm.right, item.b, b.mul(b.add(b.mul(before, gemm.rows), rows), gemm.lanes))


def _weights(
    b: Emitter, gemm: _Gemm, item: _Item, kind: Panel, column: Index, block: tuple[Index, Index]
) -> Value:
    """Point to the columns of a panel from row `block[0]` on, copying them first if asked."""
    start, depth = block
    k_stride, n_stride = gemm.spec.b_strides[-2:]
    source = b.address(gemm.right, item.b, b.linear((start, k_stride), (column, n_stride)))
    if gemm.schedule.right == "copied":
        strides, target = (k_stride, n_stride), item.stacked[1]
        if gemm.numbers.is_integer:  # blocks of k are whole
            k = gemm.spec.k
            copy_bytes(b, source, target, strides, kind, gemm.lanes, k, gemm.numbers)
        else:
            copy_panel(b, source, target, strides, kind, gemm.lanes, depth, gemm.numbers)
        return target
    return source


def _block_function(gemm: _Gemm, kind: Panel, size: int, rows: int, name: str) -> None:
    """The first `rows` rows of a block of `size`."""
    spec = gemm.spec
    numbers = len(spec.batch) + 5
    params = [PTR] * (4 + (gemm.epilogue.extras if gemm.epilogue else 0)) + [I64] * numbers
    with gemm.module.function(name, params, attributes="noinline") as b:
        source, weights, partial, *extras, target = b.parameters[:-numbers]
        *batch, row, column, start, depth, ahead = b.parameters[-numbers:]
        tile, reads = _tile(gemm, kind, size, rows), Reads(source, weights, ahead)
        if not gemm.deep:
            sums = accumulate(b, tile, reads, starts_of(b, tile, weights, spec.steps))
            _finish(b, gemm, kind, sums, (tuple(batch), row, column), extras, target)
            return
        offsets = [i * gemm.lanes for i in range(tile.size)]
        before = b.if_else(
            b.compare("eq", start, 0),
            lambda: [constant(tile.vector, 0)] * tile.size,
            lambda: [b.load(tile.vector, partial, offset) for offset in offsets],
        )
        sums = accumulate(b, replace(tile, depth=depth), reads, before)
        done = b.compare("ge", b.add(start, depth), gemm.rows)

        def rest() -> list[Value]:
            for value, offset in zip(sums, offsets, strict=True):
                b.store(value, partial, offset)
            return []

        def finished() -> list[Value]:
            _finish(b, gemm, kind, sums, (tuple(batch), row, column), extras, target)
            return []

        b.if_else(done, finished, rest)


def _tile(gemm: _Gemm, kind: Panel, size: int, rows: int) -> RegisterTile:
    spec, schedule = gemm.spec, gemm.schedule
    row_stride, k_stride = spec.a_strides[-2:]
    if schedule.copy_a:
        row_stride, k_stride = gemm.copied_strides
    # As many chains as the whole block has: no sum depends on how many rows are read.
    chains = chains_for(size * kind.vectors, gemm.isa.registers)
    direct = schedule.right == "direct"
    return RegisterTile(
        rows=tuple(i * row_stride for i in range(rows)),
        vectors=kind.vectors,
        lanes=gemm.lanes,
        depth=spec.steps,
        weight_stride=spec.b_strides[-2] if direct else kind.vectors * gemm.lanes,
        depth_stride=k_stride * gemm.numbers.group,
        unroll=max(schedule.unroll, chains),
        chains=chains,
        valid=kind.channels if direct else None,
        fetch=gemm.fetch(kind).lines if gemm.fetches else 0,
        tail=gemm.numbers.tail(spec.k),
        numbers=gemm.numbers,
    )


def _finish(
    b: Emitter,
    gemm: _Gemm,
    kind: Panel,
    sums: Sequence[Value],
    position: tuple[tuple[Index, ...], Index, Index],
    extras: Sequence[Value],
    target: Value,
) -> None:
    """Apply the epilogue to every accumulator and store it."""
    batch, row, column = position
    for at, value in enumerate(sums):
        down, v = divmod(at, kind.vectors)
        start = v * gemm.lanes
        index = OutIndex(batch, (b.add(row, down),), b.add(column, start), gemm.lanes)
        offset = down * gemm.spec.c_strides[-2] + start
        finish(
            b,
            gemm.epilogue,
            gemm.numbers.finished(b, value),
            index,
            kind.channels - start,
            extras,
            (target, offset),
            stored=gemm.numbers.result,
            nontemporal=gemm.schedule.nontemporal,
        )
