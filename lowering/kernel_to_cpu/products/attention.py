"""Generate `kernel.attention`: a block of queries at a time, from Q and K to the result.

    for each block of queries (an item):
        pack Q, queries in the lanes: q[d][query]
        for each block of keys:
            s[key][query] = K q, a tile of keys at a time, and the first pass on it
            further passes over the keys: exponentials, sums, ...
            y[query][e] += transposed s, times V
        what follows

Scores are stored transposed, so the values of a row (its maximum, its sum) are one lane of a
vector, and nothing is reduced across lanes. K and V are read in place. The ops between the products
are computed in as few passes as their reductions allow (attention_passes.py).

Several blocks of keys are possible for a softmax only: its sums refer to the maximum so far, and
are scaled down when a greater score comes. Other rows use one block of all keys. The schedule may
set the `vectors` of queries in a block, and the `keys` in one.

Source: FlashAttention (Dao et al. 2022), which likewise keeps scores on the chip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ....dialects.errors import UserError
from ....dialects.kernel import AttentionOp, physical
from ....dialects.program import where
from ....dialects.types import tensor_type
from ...algebra_to_kernel.attention import Attention, Matrix, match_attention, match_softmax
from ...algebra_to_kernel.match import row_major
from ..emit.access import Point, Vector, emit_index
from ..emit.emitter import Emitter
from ..emit.mathlib import exp
from ..emit.module import KernelCode, Module, kernel
from ..emit.rows_read import RowsRead, Skipping
from ..emit.types import F32, I64, Index, Value, constant
from ..isa import Isa
from ..nests.lanes import split_item
from .attention_passes import RowPass
from .attention_rows import Frame, RowCode
from .blocks import Panel, balanced, block_loops, cut_panels, each_kind, register_blocks
from .copy_panel import copy_panel
from .microkernel import Reads, RegisterTile, accumulate, chains_for

# Limits for a block of scores, on the stack and in the second-level cache.
BLOCK_BYTES = 256 << 10
# Keys of a block, if there are several blocks.
BLOCK_KEYS = 256
# Vectors of queries in a block: enough readers of each key, and a register block of nine keys.
MOST_VECTORS = 3


@dataclass(frozen=True)
class _Local:
    """The stack buffers of a block of queries, beside its rows and stats.

    `shift` is the greatest score so far, or 0 where that is -inf; `sums` are results over the
    earlier blocks of keys, and `factor` is their scale (before: their greatest score).
    """

    queries: Value
    shift: Value
    factor: Value
    sums: Value


@dataclass(frozen=True)
class _Block:
    """A block of queries (`kind`) and one of `keys`; `last` if no keys follow."""

    kind: Panel
    keys: int
    last: bool

    @property
    def name(self) -> str:
        return f"{self.kind.channels} {self.keys} {self.last}"


@dataclass(frozen=True)
class _Cell:
    """A vector of the result: a query of the block, a column, and which lanes exist."""

    row: Index
    column: Index
    mask: Value | None


def emit_attention(op: AttentionOp, isa: Isa) -> KernelCode:
    """Emit one kernel. Arguments: the operands in order, then the result."""
    found = match_attention(op.scopes, lambda value: _strides(op, value))
    if found is None:
        raise UserError("these scopes are not attention", where=where(op))
    return _Attention(op, found, isa).emit()


def _strides(op: AttentionOp, value: SSAValue) -> tuple[Sequence[int], int]:
    arguments = list(op.body.block.args)
    if value in arguments:
        return physical(tensor_type(op.inputs[arguments.index(value)]))[:2]  # pyright: ignore
    return physical(op.type)[:2] if value is op.scopes[-1].result else row_major(value)


class _Attention:
    """The state that every part of the emission needs."""

    def __init__(self, op: AttentionOp, found: Attention, isa: Isa) -> None:
        self.op, self.isa = op, isa
        self.module = Module()
        self.lanes = isa.lanes(F32)
        self.softmax = match_softmax(found)
        self.found = found if self.softmax is None else self.softmax.attention
        self.code = RowCode(op, self.found, self.lanes)
        self.extents = found.extents
        self.key, self.depth, self.width = (found.loops + k for k in range(3))
        self.tall = {vectors: rows for rows, vectors in reversed(register_blocks(isa))}
        self.vectors, self.block_keys = self._blocks()
        self.kinds = cut_panels(self.extents[found.query], self.vectors, self.lanes)
        self.size = max(kind.vectors for kind in self.kinds) * self.lanes
        # How many keys count; None if all do.
        self.count: Value | None = None

    def _blocks(self) -> tuple[int, int]:
        """Vectors of queries and number of keys in a block."""
        keys, queries = self.extents[self.key], self.extents[self.found.query]
        across = -(-queries // self.lanes)
        vectors = balanced(across, MOST_VECTORS)[0]
        row = sum(self.code.plan.slots) * self.lanes
        block = keys
        if vectors * row * keys > BLOCK_BYTES:
            vectors, block = (vectors, BLOCK_KEYS) if self.softmax is not None else (1, keys)
        wanted = self._scheduled("vectors", vectors), self._scheduled("keys", block)
        return wanted if self.softmax is not None else (wanted[0], keys)

    def _scheduled(self, name: str, default: int) -> int:
        found = self.op.schedule.data.get(name) if self.op.schedule is not None else None
        return max(1, found.value.data) if isinstance(found, IntegerAttr) else default

    def emit(self) -> KernelCode:
        """Emit the kernel; an item is a block of queries."""
        query = self.found.query
        others = [k for k in range(self.found.loops) if k != query]
        blocks = sum(kind.count for kind in self.kinds)
        items = math.prod(self.extents[k] for k in others) * blocks
        rows = [] if self.found.out.has_floor else RowsRead.of(self.op)

        def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
            frame = self._frame(b, pointers)
            skipping = Skipping(b, rows, [pointers[r.operand] for r in rows])
            if self.op.keys is not None:
                self.count = b.load(I64, pointers[self.op.keys.value.data])
            with b.loop(low, high, unroll=1) as item:
                rest, block = b.split(item, blocks)
                loops = split_item(b, rest, others, self.extents)

                def work(kind: Panel) -> None:
                    first = b.add(b.mul(b.sub(block, kind.first), kind.channels), kind.channel)
                    place = {**loops, query: first, self.key: 0}
                    with self._part(b, skipping, place, kind):
                        self._item(b, replace(frame, loops=place), kind)

                each_kind(b, self.kinds, block, work)

        return kernel(self.module, len(self.op.inputs) + 1, items, body)

    def _part(
        self, b: Emitter, skipping: Skipping, place: dict[int, Index], kind: Panel
    ) -> AbstractContextManager[None]:
        """What is emitted inside is about a block of queries: it runs unless nobody reads that."""
        steps = {k: self.found.out.coefficient(k) for k in (*place, self.width)}
        first = [(at, steps[k]) for k, at in place.items() if steps[k]]
        columns = (self.extents[self.width] - 1) * steps[self.width]
        reach = (kind.channels - 1) * steps[self.found.query] + columns
        return skipping.part(b, first, reach)

    def _frame(self, b: Emitter, pointers: list[Value]) -> Frame:
        """Reserve the buffers of a block on the stack."""
        keys = min(self.block_keys, self.extents[self.key])
        rows, stats = self.code.reserve(b, keys, self.size)
        several = keys < self.extents[self.key]
        counts = [self.extents[self.depth] * self.size, *[self.size * several] * 2]
        counts.append(self.size * self.extents[self.width] * several)
        local = tuple(b.reserve(F32, max(n, 1)) for n in counts)
        outer: dict[SSAValue, Value] = dict(zip(self.op.body.block.args, pointers, strict=False))
        return Frame(
            outer, pointers[-1], rows, dict(zip(self.code.stats, stats, strict=True)), local, {}
        )

    def _item(self, b: Emitter, frame: Frame, kind: Panel) -> None:
        self._copy_queries(b, frame, kind)
        self.code.clear(b, frame, kind)
        total = self.extents[self.key]
        keys = min(self.block_keys, total)
        if keys == total:
            self._block(b, frame, _Block(kind, keys, last=True))
            return
        self._clear_sums(b, frame)
        before = (total - 1) // keys
        blocks: Index = before
        if self.count is not None:
            whole, _ = b.split(b.add(self.count, keys - 1), keys)
            blocks = b.minimum(whole, before)
        with b.loop(0, blocks, unroll=1) as n:
            here = replace(frame, loops={**frame.loops, self.key: b.mul(n, keys)})
            self._block(b, here, _Block(kind, keys, last=False))
        here = replace(frame, loops={**frame.loops, self.key: before * keys})
        self._block(b, here, _Block(kind, total - before * keys, last=True))

    def _block(self, b: Emitter, frame: Frame, block: _Block) -> None:
        """A block of keys: scores, the ops between, and their share of the result."""
        several = block.keys < self.extents[self.key]
        local = _Local(*frame.local)
        if several:
            self._remember_top(b, frame, block.kind)
        sizes = balanced(block.keys, self._tile_rows(block.kind.vectors))
        counted = self._counted(b, frame, block)

        def tile(_: Index, size: int, key: Index) -> None:
            with b.when(b.compare("lt", key, counted[0])) if counted else nullcontext():
                self._scores(b, frame, block, size, key)

        block_loops(b, sizes, None, tile)
        first, *others = self.code.plan.passes
        self.code.finish(b, frame, block.kind, first)
        shifted = frame
        if several and self.softmax is not None:
            self._rescale(b, frame, block.kind)
            shifted = replace(frame, stats={**frame.stats, self.softmax.top: local.shift})
        for number, run in enumerate(others):

            def walk(inner: Emitter, inside: Frame, keys: list[Value], run: RowPass = run) -> None:
                self.code.walk(inner, inside, block.kind, run, keys[0] if keys else block.keys)

            self._call(b, shifted, f"pass {number} {block.name}", counted, walk)
            self.code.finish(b, shifted, block.kind, run)
        self._contexts(b, frame, block, counted)

    def _counted(self, b: Emitter, frame: Frame, block: _Block) -> list[Value]:
        """How many keys of a block count, if not all do."""
        if self.count is None:
            return []
        left = b.maximum(b.sub(self.count, frame.loops[self.key]), 0)
        return [b.value(b.minimum(left, block.keys), I64)]

    def _tile_rows(self, vectors: int) -> int:
        """Rows of a register block with this many vectors."""
        return self.tall.get(vectors, max(1, (self.isa.registers - vectors - 2) // vectors))

    def _call(
        self,
        b: Emitter,
        frame: Frame,
        key: str,
        numbers: Sequence[Index],
        emit: Callable[[Emitter, Frame, list[Value]], None],
    ) -> None:
        """Emit a part as a separate function, and call it with all its possible inputs."""
        arguments = [*frame.pointers]
        arguments += [b.value(x, I64) for x in (*frame.loops.values(), *numbers)]

        def define(name: str) -> None:
            params = [x.type for x in arguments]
            with self.module.function(name, params, attributes="noinline") as inner:
                given = inner.parameters[len(params) - len(numbers) :]
                emit(inner, frame.inside(inner), given)

        b.call(self.module.once(key, define), None, arguments)

    def _start(self, b: Emitter, frame: Frame, matrix: Matrix, at: dict[int, Index]) -> Value:
        """Point to an operand's element at the frame's loops and `at`."""
        point = Point(self.extents, {**frame.loops, **at})
        return b.address(F32, frame.outer[matrix.source], emit_index(b, matrix.flat, point))

    # --- the first product ---

    def _copy_queries(self, b: Emitter, frame: Frame, kind: Panel) -> None:
        flat = self.found.left.flat
        strides = flat.coefficient(self.depth), flat.coefficient(self.found.query)
        source = self._start(b, frame, self.found.left, {self.depth: 0})
        target = _Local(*frame.local).queries
        copy_panel(b, source, target, strides, kind, self.lanes, self.extents[self.depth])

    def _scores(self, b: Emitter, frame: Frame, block: _Block, size: int, key: Index) -> None:
        """A tile of scores from `key` of the block on, and the first pass on it in registers."""
        right, kind = self.found.right, block.kind
        step = right.flat.coefficient(self.key)
        chains = chains_for(size * kind.vectors, self.isa.registers)
        tile = RegisterTile(
            rows=tuple(i * step for i in range(size)),
            vectors=kind.vectors,
            lanes=self.lanes,
            depth=self.extents[self.depth],
            weight_stride=kind.vectors * self.lanes,
            depth_stride=right.flat.coefficient(self.depth),
            unroll=chains,
            chains=chains,
        )

        def emit(inner: Emitter, inside: Frame, given: list[Value]) -> None:
            at = {self.key: inner.add(inside.loops[self.key], given[0]), self.depth: 0}
            source = self._start(inner, inside, right, at)
            scores = accumulate(inner, tile, Reads(source, _Local(*inside.local).queries))
            self.code.on_scores(inner, inside, kind, given[0], scores)

        self._call(b, frame, f"scores {kind.channels} {size}", [key], emit)

    # --- several blocks of keys ---

    def _clear_sums(self, b: Emitter, frame: Frame) -> None:
        zero = constant(F32.vector(self.lanes), 0.0)
        with b.loop(0, self.size * self.extents[self.width], self.lanes) as i:
            b.store(zero, _Local(*frame.local).sums, i)

    def _remember_top(self, b: Emitter, frame: Frame, kind: Panel) -> None:
        assert self.softmax is not None
        for v in range(kind.vectors):
            top = self.code.stat(b, frame, self.softmax.top, v * self.lanes)
            b.store(top, _Local(*frame.local).factor, v * self.lanes)

    def _rescale(self, b: Emitter, frame: Frame, kind: Panel) -> None:
        """The results over earlier keys, relative to the greatest score so far.

        If all scores so far are -inf, so is the greatest: 0 replaces it, so that their exponentials
        are
        0. If no other score comes, their sum is 0, and the row NaN, as it should be.
        """
        assert self.softmax is not None
        local = _Local(*frame.local)
        for v in range(kind.vectors):
            at = v * self.lanes
            top = self.code.stat(b, frame, self.softmax.top, at)
            shift = b.select(b.compare("eq", top, float("-inf")), 0.0, top)
            factor = exp(b, b.sub(b.load(top.type, local.factor, at), shift))
            b.store(shift, local.shift, at)
            b.store(factor, local.factor, at)
            total = self.code.stat(b, frame, self.softmax.total, at)
            self.code.keep(b, frame, self.softmax.total, v, b.mul(total, factor))

    # --- the second product ---

    def _contexts(self, b: Emitter, frame: Frame, block: _Block, counted: Sequence[Value]) -> None:
        """Tiles of the result: some queries by a panel of columns."""
        width = self.extents[self.width]
        across = min(2, -(-width // self.lanes))
        sizes = balanced(block.kind.channels, self._tile_rows(across))
        for panel in cut_panels(width, across, self.lanes):
            with b.loop(0, panel.count, unroll=1) as n:
                column = b.add(b.mul(n, panel.channels), panel.channel)

                def work(
                    _: Index, size: int, row: Index, panel: Panel = panel, at: Index = column
                ) -> None:
                    self._context(b, frame, block, panel, size, (row, at, *counted))

                block_loops(b, sizes, None, work)

    def _context(
        self,
        b: Emitter,
        frame: Frame,
        block: _Block,
        panel: Panel,
        size: int,
        at: Sequence[Index],
    ) -> None:
        """A tile of the result.

        Args:
            at: its first query of the block, its first column, and how many keys count if not all.
        """
        values = self.found.values
        chains = chains_for(size * panel.vectors, self.isa.registers)
        tile = RegisterTile(
            rows=tuple(range(size)),
            vectors=panel.vectors,
            lanes=self.lanes,
            depth=block.keys,
            weight_stride=values.flat.coefficient(self.key),
            depth_stride=block.kind.vectors * self.lanes,
            unroll=chains,
            chains=chains,
            valid=panel.channels,
        )

        def emit(inner: Emitter, inside: Frame, given: list[Value]) -> None:
            row, column, *keys = given
            source = self._start(inner, inside, values, {self.width: column})
            scores = inner.address(F32, self.code.block(inside), row)
            cells = [
                _Cell(
                    inner.add(row, n // panel.vectors),
                    inner.add(column, n % panel.vectors * self.lanes),
                    inner.mask(panel.channels - n % panel.vectors * self.lanes, self.lanes),
                )
                for n in range(size * panel.vectors)
            ]
            several = block.keys < self.extents[self.key]
            before = [self._before(inner, inside, cell) for cell in cells] if several else None
            counted = replace(tile, depth=keys[0]) if keys else tile
            sums = accumulate(inner, counted, Reads(scores, source), before)
            for cell, value in zip(cells, sums, strict=True):
                if block.last:
                    self._result(inner, inside, cell, value)
                else:
                    offset, sums_at = self._sum_offset(inner, inside, cell)
                    inner.store(value, sums_at, offset, mask=cell.mask)

        name = f"context {block.name} {panel.vectors} {panel.channels} {size}"
        self._call(b, frame, name, at, emit)

    def _sum_offset(self, b: Emitter, frame: Frame, cell: _Cell) -> tuple[Index, Value]:
        offset = b.add(b.mul(cell.row, self.extents[self.width]), cell.column)
        return offset, _Local(*frame.local).sums

    def _before(self, b: Emitter, frame: Frame, cell: _Cell) -> Value:
        """A result over the earlier keys, scaled to the greatest score so far."""
        offset, sums = self._sum_offset(b, frame, cell)
        factor = b.load(F32, _Local(*frame.local).factor, cell.row)
        before = b.load(F32.vector(self.lanes), sums, offset, mask=cell.mask)
        return b.mul(before, b.broadcast(factor, self.lanes))

    def _result(self, b: Emitter, frame: Frame, cell: _Cell, value: Value) -> None:
        """The ops after the products, on one vector of columns; then the store."""
        if self.softmax is not None:
            total = self.code.stat_of(b, frame, self.softmax.total, cell.row)
            value = b.div(value, b.broadcast(total, self.lanes))
        query = self.found.query
        here = {query: b.add(frame.loops[query], cell.row), self.width: cell.column}
        point = Point(
            self.extents, {**frame.loops, **here}, Vector(self.width, self.lanes, cell.mask)
        )
        values: dict[SSAValue, Value] = {self.found.context.result: value}
        read = dict.fromkeys(x for p in self.found.behind for x in p.scope.inputs)
        values |= {x: self.code.stat_of(b, frame, x, cell.row) for x in read if x in frame.stats}
        last: SSAValue = self.found.context.result
        for placed in self.found.behind:
            last = placed.scope.result
            values[last] = self.code.emit(b, frame, last, values, point)
        offset = emit_index(b, self.found.out, point)
        b.store(values[last], frame.result, offset, mask=cell.mask)
