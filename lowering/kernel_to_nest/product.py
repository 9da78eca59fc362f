"""Products: register blocks of rows by vectors, panels of packed weights, blocks of depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, UnitAttr, f32
from xdsl.ir import SSAValue

from ...dialects.index import Index
from ...dialects.kernel import GemmOp
from ...dialects.nest import AccumulateOp, AllocOp, ForOp, IdentityOp, LoadOp, NestOp, StoreOp
from ...dialects.types import Array, tensor_type
from ..algebra_to_kernel.match import GemmMatch
from ..kernel_to_cpu.emit.types import F32
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.nontemporal import LINE, nontemporal
from ..kernel_to_cpu.products.blocks import balanced
from ..kernel_to_cpu.products.contraction import gemm_in, gemm_spec, loop_numbers, shared_plan
from ..kernel_to_cpu.products.gemm_spec import FEW_ROWS, GemmSchedule, GemmSpec, default_schedule
from ..kernel_to_cpu.products.microkernel import chains_for
from . import rewrites
from .build import CONTRACT, Builder, Site, Unsupported, buffer_type
from .depth_blocks import Item, Tile, block_depth, fetch_panels
from .reductions import in_turns


@dataclass(frozen=True)
class Packing:
    """Where an element of packed weights lies: [items' panels][block of k][panel][k][column].

    Attributes:
        depth, blocks: rows of k in a block, and blocks.
        panels: panels of an item.
        width: columns of a panel.
    """

    depth: int
    blocks: int
    panels: int
    width: int

    def place(self, n: Index, k: Index) -> Index:
        """The element at a column and a row."""
        panel, block = n // self.width, k // self.depth
        size = self.depth * self.width
        item = (panel // self.panels) * (self.blocks * self.panels * size)
        within = block * (self.panels * size) + (panel % self.panels) * size
        return item + within + (k % self.depth) * self.width + n % self.width

    def groups(self, columns: int) -> int:
        """How many items' panels there are of so many columns."""
        return -(-columns // (self.width * self.panels))

    def pack(self, matrix: Array) -> Array:
        """The weights [k, n] in that order, flat, zeros where there are none."""
        k, n = matrix.shape
        groups = self.groups(n)
        padded = np.zeros((self.blocks * self.depth, groups * self.panels * self.width), np.float32)
        padded[:k, :n] = matrix
        cut = padded.reshape(self.blocks, self.depth, groups, self.panels, self.width)
        return np.ascontiguousarray(cut.transpose(2, 0, 3, 1, 4)).ravel()


@dataclass(frozen=True)
class ProductNest:
    """A product's nest. Its arguments: A (from its first element on), packed B, what the epilogue
    reads (`extras`, the op's operands), the result."""

    nest: NestOp
    packing: Packing
    found: GemmMatch
    extras: tuple[SSAValue, ...]


def product(op: GemmOp, isa: Isa) -> ProductNest:
    """The scheduled nest of a product with constant weights.

    Raises:
        Unsupported: batches, rows or columns of several iterators, other types than f32.
    """
    found = gemm_in(op)
    if found.batch:
        raise Unsupported("batches of products")
    if any(len(axis.iterators) > 1 for axis in (found.m, found.n, found.k)):
        raise Unsupported("rows, columns or depth of several iterators")
    if any(tensor_type(v).element_type != f32 for v in (*op.inputs, op.result)):
        raise Unsupported("products of other types than f32")
    spec = gemm_spec(op, found, isa)
    if not spec.k:
        raise Unsupported("a sum of nothing")
    schedule = default_schedule(spec, isa, constant_b=True)
    schedule = replace(schedule, nontemporal=nontemporal(op.type, isa))
    depth = max(1, min(schedule.depth, spec.k))
    width = schedule.vectors * isa.lanes(F32)
    packing = Packing(depth, -(-spec.k // depth), schedule.panels, width)
    made = _Product(op, found, spec, schedule, packing, isa)
    made.schedule_loops(*made.plain())
    rewrites.drop_single(made.nest.body.block)
    return ProductNest(made.nest, packing, found, made.extras)


class _Product:
    """Build and schedule one product."""

    def __init__(
        self,
        op: GemmOp,
        found: GemmMatch,
        spec: GemmSpec,
        schedule: GemmSchedule,
        packing: Packing,
        isa: Isa,
    ):
        self.op, self.found, self.spec, self.schedule = op, found, spec, schedule
        self.packing, self.isa, self.lanes = packing, isa, isa.lanes(F32)
        arguments: list[SSAValue] = list(op.body.block.args)
        used = {v for scope in op.scopes[1:] for v in scope.inputs}
        kept = [arg for arg in arguments if arg in used]
        self.extras = tuple(op.inputs[arguments.index(arg)] for arg in kept)
        left = buffer_type(tensor_type(op.outer(found.a.source)))
        columns = packing.groups(spec.n) * packing.panels * packing.width
        right = MemRefType(f32, [packing.blocks * packing.depth * columns])
        others = [buffer_type(tensor_type(v)) for v in (*self.extras, op.result)]
        self.nest = NestOp([left, right, *others])
        self.builder = Builder(op, shared_plan(op), self.nest)
        self.builder.buffers = dict(zip(kept, self.nest.body.block.args[2:], strict=False))

    def plain(self) -> tuple[ForOp, ForOp]:
        """for m: for n: total = sum over k of A[m, k] * B[k, n]; the epilogue; the store."""
        spec, (left, right) = self.spec, self.nest.body.block.args[:2]
        m, n, k = (ForOp(getattr(spec, name), hint=name) for name in ("m", "n", "k"))
        self.nest.body.block.add_op(m)
        m.block.add_op(n)
        total, zero = AllocOp(f32, 1), IdentityOp("sum", f32)
        start = StoreOp(zero.result, total.result, [], Index(0))
        n.block.add_ops([total, zero, start, k])
        row, deep = spec.a_strides[-2:]
        first, second = Index.iterator(0), Index.iterator(1)
        a = LoadOp(left, [m.iterator, k.iterator], first * row + second * deep)
        b = LoadOp(right, [n.iterator, k.iterator], self.packing.place(first, second))
        b.properties["padded"] = UnitAttr()
        times = arith.MulfOp(a.result, b.result, CONTRACT)
        taken = AccumulateOp("sum", times.result, total.result)
        taken.properties["fused"] = UnitAttr()
        k.block.add_ops([a, b, times, taken])
        self._epilogue(m, n, total.result)
        return m, n

    def _epilogue(self, m: ForOp, n: ForOp, total: SSAValue) -> None:
        """Scopes after the first, at a row and a column."""
        site, plan = Site(n.block), self.builder.plan
        numbers = loop_numbers(self.op)
        for axis, loop in ((self.found.m, m), (self.found.n, n)):
            if axis.iterators:
                site.places[numbers[axis.iterators[0]]] = loop.iterator
        product = LoadOp(total, [], Index(0))
        site.add(product)
        site.values[plan.scopes[0].op.result] = product.result
        for scope in plan.scopes[1:]:
            site.values[scope.op.result] = self.builder.body(site, scope)
        past = LINE if self.schedule.nontemporal else 0
        self.builder.store(site, site.values[plan.root.op.result], past)

    def schedule_loops(self, rows: ForOp, columns: ForOp) -> None:
        """Items of panels by blocks of rows; within a register block, k is the outermost loop."""
        schedule, panels = self.schedule, self._panels(rows)
        tiles: list[Tile] = []
        outer: list[ForOp] = []
        whole = self.spec.n - self.spec.n % self.packing.width
        for part in rewrites.cut_at(panels, [whole]):
            panel, within = rewrites.split(part, min(self.packing.width, part.size))
            outer.append(rewrites.mark(panel, "serial", unroll=1))
            done = 0
            for one in rewrites.distribute(within):
                block = rewrites.mark(rewrites.interchange(one), "serial", unroll=1)
                rewrites.interchange(one)
                tiles.append(Tile(panel, block, done, self._register_block(one)))
                done += block.size
        group = rewrites.tile_together(outer, schedule.panels, "parallel")
        chunks: list[ForOp] = []
        for panel in outer:
            blocks = [op for op in panel.block.ops if isinstance(op, ForOp)]
            rewrites.tile_together(blocks, schedule.row_blocks, "parallel")
            chunks.append(rewrites.interchange(panel))
        for other in chunks[1:]:
            rewrites.fuse(chunks[0], other)
        rewrites.interchange(group)
        item = Item(group, chunks[0], schedule.panels, schedule.row_blocks, schedule.vectors)
        if self.packing.blocks > 1:
            block_depth(item, tiles, self.spec.k, self.packing.depth, self.lanes)
        if self.spec.m > FEW_ROWS:
            weights = self.nest.body.block.args[1]
            passes = min(len(balanced(self.spec.m, schedule.rows)), schedule.row_blocks)
            fetch_panels(item, tiles, weights, (self.packing.depth, self.lanes), passes)

    def _panels(self, rows: ForOp) -> ForOp:
        """Rows cut into blocks of one size and one less, the loop over columns outside of them."""
        sizes = balanced(self.spec.m, self.schedule.rows)
        found: list[ForOp] = []
        for run in rewrites.cut_at(rows, [sizes.count(sizes[0]) * sizes[0]]):
            block, inner = rewrites.split(run, sizes[-1] if found else sizes[0])
            rewrites.interchange(inner)
            found.append(rewrites.interchange(block))
        for other in found[1:]:
            rewrites.fuse(found[0], other)
        return found[0]

    def _register_block(self, columns: ForOp) -> ForOp:
        """Rows by vectors within the loop over k, which it gives: `columns` stands in the rows'."""
        rows = columns.parent_op()
        assert isinstance(rows, ForOp)
        block = rows.parent_block()
        assert block is not None
        vector, lane = rewrites.split_bound(columns, self.lanes)
        rewrites.mark(lane, "vector", self.lanes)
        rewrites.mark(vector, "unrolled")
        rewrites.mark(rows, "unrolled")
        rewrites.sink(lane)
        chains = min(chains_for(rows.size * vector.size, self.isa.registers), self.spec.k)
        if chains > 1 and self.packing.blocks == 1:  # several would have to rest between blocks
            (total,) = (op for op in vector.block.ops if isinstance(op, AllocOp))
            start, deep, *_ = (op for op in vector.block.ops if isinstance(op, ForOp))
            in_turns(deep, total, start, chains)
        rewrites.sink(vector)
        rewrites.sink(rows)
        return _first_serial(list(block.ops))


def _first_serial(ops: Sequence[object]) -> ForOp:
    return next(op for op in ops if isinstance(op, ForOp) and op.kind.data == "serial")
