"""Generate `kernel.loops` with a `tile` schedule: one small tile at a time, in registers.

The result's traversals are cut into tiles. Loops run over tiles and vector lanes, and a tile is
fully
unrolled: intermediates are registers, literal operands are constants (zeros vanish).
Winograd transforms are such kernels: 36 loads, a few adds, 36 stores.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from ....dialects.algebra import ScopeOp
from ....dialects.errors import UserError
from ....dialects.graph import ConstantOp
from ....dialects.index import Index as Affine
from ....dialects.index import normalise, points
from ....dialects.kernel import KernelOp, physical
from ....dialects.scalars import Read, factors
from ....dialects.schedule import tile_of
from ....dialects.types import Array, tensor_type
from ..emit.access import Access, Point, Vector, compute_type, emit_index, read, rounded, store
from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.scalar_code import ALLOW_CONTRACT, combine, emit_body, identity
from ..emit.types import F32, I64, Index, Value, constant
from ..isa import Isa
from .lanes import split_item
from .nest import Buffers, NestOperand, access
from .nontemporal import LINE, nontemporal

Place: TypeAlias = "tuple[int, ...]"
# What a read of a tile is: a literal, the place of a value in registers, a place in memory.
Found: TypeAlias = "float | Place | NestOperand"


@dataclass
class _Scope:
    """One scope: `unrolled` iterators inside a tile; `here` and `reads` in the nest's iterators."""

    op: ScopeOp
    unrolled: tuple[int, ...]
    sums: tuple[int, ...]
    here: tuple[Affine, ...]
    reads: tuple[NestOperand, ...]
    product: tuple[Read, ...] | None


@dataclass
class Tiling:
    """Numbers iterators: first the loops over tiles, then the unrolled ones.

    `steps` are the kernel's scopes, or those of one of its stages; the last is cut into tiles.
    """

    steps: Sequence[ScopeOp]
    tile: tuple[int, ...]
    extents: list[int] = field(default_factory=list[int])
    loops: dict[int, int] = field(default_factory=dict[int, int])
    inside: dict[int, int] = field(default_factory=dict[int, int])
    scopes: list[_Scope] = field(default_factory=list[_Scope])

    def __post_init__(self) -> None:
        self.root = self.steps[-1].traversal
        self.tiles = tuple(-(-n // t) for n, t in zip(self.root, self.tile, strict=True))
        for dim, count in enumerate(self.tiles):
            if count > 1:
                self.loops[dim] = self._number(count)
        for dim, size in enumerate(self.tile):
            if size > 1:
                self.inside[dim] = self._number(size)
        images = [self._images(scope) for scope in self.steps]
        bounds = tuple(self.extents)
        for scope, (own, sums, image) in zip(self.steps, images, strict=True):
            reads = tuple(
                NestOperand(
                    r.source,
                    tuple(normalise(e.substitute(image), bounds) for e in r.index),
                    r.outside,
                )
                for r in scope.reads()
            )
            product = factors(scope.expr()) if scope.reduction.data == "sum" else None
            here = tuple(image[: len(scope.traversal)])
            chosen = None if product is None else tuple(product)
            self.scopes.append(_Scope(scope, own, sums, here, reads, chosen))

    def _number(self, extent: int) -> int:
        self.extents.append(extent)
        return len(self.extents) - 1

    def _images(self, scope: ScopeOp) -> tuple[tuple[int, ...], tuple[int, ...], list[Affine]]:
        rank = len(self.root)
        lead = scope.traversal[:rank]
        whole = lead == self.root and len(scope.traversal) == rank
        if not whole and lead != self.tiles:
            raise UserError("a tiled kernel's scopes do not share its tiles", where="kernel.loops")
        images: list[Affine] = []
        own: list[int] = []
        for dim in range(rank):
            image = Affine.iterator(self.loops[dim]) if dim in self.loops else Affine(0)
            if whole and dim in self.inside:
                image = image * self.tile[dim] + Affine.iterator(self.inside[dim])
                own.append(self.inside[dim])
            images.append(image)
        for extent in scope.traversal[rank:]:
            own.append(self._number(extent))
            images.append(Affine.iterator(own[-1]))
        sums = tuple(self._number(extent) for extent in scope.summation)
        return tuple(own), sums, [*images, *(Affine.iterator(k) for k in sums)]


@dataclass(frozen=True)
class StageTarget:
    """The target of a stage's stores: element type, strides per dim and offset in the buffer."""

    element: Attribute
    strides: tuple[int, ...]
    offset: int = 0
    nontemporal: int = 0
    """Alignment in bytes of whole vectors for non-temporal stores; 0: ordinary stores."""

    @classmethod
    def of(cls, op: KernelOp, isa: Isa) -> StageTarget:
        """The kernel's result."""
        strides, offset, _ = physical(op.type)
        return cls(op.type.element_type, strides, offset, LINE if nontemporal(op.type, isa) else 0)


def emit_tiles(op: KernelOp, isa: Isa) -> KernelCode:
    """Emit one tiled kernel. Arguments: the operands in order, then the result."""
    tile = tile_of(op)
    assert tile is not None
    body = Tiles(Tiling(op.scopes, tile), StageTarget.of(op, isa), literals_of(op), isa)

    def emit(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        arguments = list(op.body.block.args)
        types = {arg: tensor_type(v) for arg, v in zip(arguments, op.inputs, strict=True)}
        places = dict(zip(arguments, pointers[:-1], strict=True))
        rows = {dim: b.load(I64, pointers[operand]) for dim, operand in op.rows_read}
        body.emit(b, Buffers(places, types), pointers[-1], low, high, rows=rows)  # pyright: ignore

    return kernel(Module(), len(op.inputs) + 1, body.items, emit)


class Tiles:
    """Loops over tiles; the vector runs over the innermost dim of the target."""

    def __init__(
        self, tiling: Tiling, target: StageTarget, literals: Mapping[SSAValue, Array], isa: Isa
    ):
        self.tiling, self.target, self.literals = tiling, target, literals
        self.extents = tuple(tiling.extents)
        self.lanes = isa.lanes(compute_type(target.element))
        strides = target.strides
        inner = [d for d in tiling.loops if strides[d] == 1]
        if len(inner) != 1 or tiling.tile[inner[0]] != 1:
            raise UserError(
                "a tiled kernel's innermost dim must not be tiled", where="kernel.loops"
            )
        self.vector = tiling.loops[inner[0]]
        by_stride = sorted(tiling.loops, key=lambda d: -strides[d] * tiling.tile[d])
        self.order = [tiling.loops[d] for d in by_stride if tiling.loops[d] != self.vector]
        self.items = math.prod(self.extents[k] for k in self.order)
        self._found: dict[tuple[NestOperand, tuple[tuple[int, int], ...]], Found] = {}

    def emit(
        self,
        b: Emitter,
        buffers: Buffers,
        result: Value,
        low: Index,
        high: Index,
        channels: tuple[Index, Index] | None = None,
        rows: Mapping[int, Value] = MappingProxyType({}),
    ) -> None:
        """Emit tiles `low` to `high` of the loops; `channels` limits the vector's dim.

        Channels are limited to whole vectors, or go to the end. Of a dim in `rows` only so many
        are read: tiles behind them are left out.
        """
        with b.loop(low, high) as item:
            point = Point(self.extents, split_item(b, item, self.order, self.extents))
            with self._wanted(b, point, rows):
                self._channels(b, buffers, result, point, channels)

    @contextmanager
    def _wanted(self, b: Emitter, point: Point, rows: Mapping[int, Value]) -> Generator[None]:
        """What is emitted inside runs if some place of the tile is read."""
        read: Value | None = None
        for dim, count in rows.items():
            loop = self.tiling.loops.get(dim, self.vector)
            if loop != self.vector:
                place = b.value(b.mul(point.values[loop], self.tiling.tile[dim]), I64)
                here = b.compare("lt", place, count)
                read = here if read is None else b.logic("and", read, here)
        if read is None:
            yield
            return
        with b.when(read):
            yield

    def _channels(
        self,
        b: Emitter,
        buffers: Buffers,
        result: Value,
        point: Point,
        channels: tuple[Index, Index] | None,
    ) -> None:
        """One tile, a vector of channels at a time."""
        extent = self.extents[self.vector]
        whole = extent - extent % self.lanes
        first, last = (0, extent) if channels is None else channels
        if whole:
            end = whole if isinstance(last, int) else b.minimum(last, whole)
            with b.loop(first, end, self.lanes) as start:
                at = point.at({self.vector: start}, Vector(self.vector, self.lanes))
                self._tile(b, buffers, result, at)
        if whole < extent:
            vector = Vector(self.vector, self.lanes, extent - whole)
            at = point.at({self.vector: whole}, vector)
            if isinstance(last, int):
                self._tile(b, buffers, result, at)
            else:
                with b.when(b.compare("eq", last, extent)):
                    self._tile(b, buffers, result, at)

    def fetch(
        self, b: Emitter, buffers: Buffers, item: Index, place: Sequence[Index], lead: int = 0
    ) -> None:
        """Prefetch all channels of the data of tile `item` at one `place` of it.

        Args:
            place: its coordinates in the dims with more than one place, outermost first.
            lead: how many dims of a tile before these stay at their first place.
        """
        operand = next(r for r in self.tiling.scopes[0].reads if r.source not in self.literals)
        flat = access(operand, buffers, self.extents).flat
        values = split_item(b, item, self.order, self.extents)
        inside = [k for k in flat.iterators if k not in values and k != self.vector]
        first = [k for k in list(self.tiling.inside.values())[:lead] if k in inside]
        inside = sorted((k for k in inside if k not in first), key=lambda k: -flat.coefficient(k))
        values |= dict.fromkeys(first, 0) | dict(zip(inside, place, strict=False))
        point = Point(self.extents, {**values, self.vector: 0})
        first = b.address(F32, buffers.pointers[operand.source], emit_index(b, flat, point))
        with b.loop(0, self.extents[self.vector], LINE // F32.bytes, unroll=1) as channel:
            b.prefetch(F32, first, channel)

    def _tile(self, b: Emitter, buffers: Buffers, result: Value, point: Point) -> None:
        values: dict[tuple[SSAValue, Place], Value] = {}
        for scope in self.tiling.scopes:
            for place in points([self.extents[k] for k in scope.unrolled]):
                known = dict(zip(scope.unrolled, place, strict=True))
                values[scope.op.result, place] = self._value(
                    b, scope, buffers, point, known, values
                )
        root = self.tiling.scopes[-1]
        for place in points([self.extents[k] for k in root.unrolled]):
            known = dict(zip(root.unrolled, place, strict=True))
            self._store(b, result, point.at(known), values[root.op.result, place])

    def _store(self, b: Emitter, result: Value, point: Point, value: Value) -> None:
        here = self.tiling.scopes[-1].here
        flat = Affine(self.target.offset)
        for e, stride in zip(here, self.target.strides, strict=True):
            flat += e * stride
        target = Access(result, self.target.element, flat)
        condition = self._inside(b, here, point)
        if condition is None:
            store(b, value, target, point, nontemporal=self.target.nontemporal)
        else:
            with b.when(condition):
                store(b, value, target, point)

    def _inside(self, b: Emitter, here: Sequence[Affine], point: Point) -> Value | None:
        """Whether a place of a tile that hangs over the edge is inside; None if no tile does."""
        condition: Value | None = None
        for dim, n in enumerate(self.tiling.root):
            if self.tiling.tiles[dim] * self.tiling.tile[dim] == n:
                continue
            place = b.value(emit_index(b, here[dim], point), I64)
            inside = b.compare("lt", place, n)
            condition = inside if condition is None else b.logic("and", condition, inside)
        return condition

    def _value(
        self,
        b: Emitter,
        scope: _Scope,
        buffers: Buffers,
        point: Point,
        known: Mapping[int, int],
        values: Mapping[tuple[SSAValue, Place], Value],
    ) -> Value:
        """The scope at one place of the tile, its summations unrolled."""
        element = tensor_type(scope.op.result).element_type
        dtype = compute_type(element).vector(point.lanes)
        total: Value | None = None
        for step in points([self.extents[k] for k in scope.sums]):
            at = {**known, **dict(zip(scope.sums, step, strict=True))}
            args = [self._argument(b, r, buffers, point, at, values) for r in scope.reads]
            if scope.product is not None and scope.sums:
                with b.flags(ALLOW_CONTRACT):
                    total = _add_product(b, total, args)
                continue
            lifted = [_vector(b, a, point, r) for a, r in zip(args, scope.reads, strict=True)]
            value = emit_body(b, scope.op.body.block, lifted, point.lanes, summed=scope.op.is_sum)
            if not scope.sums:
                return rounded(b, value, element)
            total = value if total is None else combine(b, scope.op.reduction.data, total, value)
        if total is None:
            return identity(scope.op.reduction.data, dtype)
        return rounded(b, total, element)

    def _argument(
        self,
        b: Emitter,
        operand: NestOperand,
        buffers: Buffers,
        point: Point,
        known: Mapping[int, int],
        values: Mapping[tuple[SSAValue, Place], Value],
    ) -> Value | float:
        """A register, a literal, or a load."""
        used = frozenset[int]().union(*(e.iterators for e in operand.index))
        key = operand, tuple((k, value) for k, value in known.items() if k in used)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._resolved(operand, known)
        if isinstance(found, NestOperand):
            return read(b, access(found, buffers, self.extents), point)
        return values[operand.source, found] if isinstance(found, tuple) else found

    def _resolved(self, operand: NestOperand, known: Mapping[int, int]) -> Found:
        """What an operand is where iterators are known."""
        images = [
            Affine(known[k]) if k in known else Affine.iterator(k) for k in range(len(self.extents))
        ]
        index = tuple(normalise(e.substitute(images), self.extents) for e in operand.index)
        literal = self.literals.get(operand.source)
        if literal is not None and all(not e.terms for e in index):
            return float(literal[tuple(e.constant for e in index)])
        made = next((s for s in self.tiling.scopes if s.op.result is operand.source), None)
        if made is not None:
            return _place(made, index, self.extents)
        return NestOperand(operand.source, index, operand.outside)


def literals_of(op: KernelOp) -> dict[SSAValue, Array]:
    """The operands that are literal constants, by the region's argument."""
    pairs = zip(op.body.block.args, op.inputs, strict=True)
    return {arg: v.owner.array() for arg, v in pairs if isinstance(v.owner, ConstantOp)}


def _place(made: _Scope, index: Sequence[Affine], extents: tuple[int, ...]) -> Place:
    """The place of its tile at which an intermediate is read; the loops over tiles must agree."""
    places: dict[int, int] = {}
    for image, e in zip(made.here, index, strict=True):
        own = [k for k in image.iterators if k in made.unrolled]
        rest = e - image.substitute(
            [Affine(0) if k in own else Affine.iterator(k) for k in range(len(extents))]
        )
        if rest.terms or (not own and rest.constant != 0):
            raise UserError("an intermediate is read outside its tile", where="kernel.loops")
        if own:
            places[own[0]] = rest.constant
    return tuple(places[k] for k in made.unrolled)


def _add_product(b: Emitter, total: Value | None, args: Sequence[Value | float]) -> Value | None:
    """total + product with literals folded: 0 vanishes, 1 and -1 need no multiplication."""
    scale = math.prod(a for a in args if not isinstance(a, Value))
    value: Value | None = None
    for a in args:
        if isinstance(a, Value):
            value = a if value is None else b.mul(value, a)
    if scale == 0 or value is None:
        return total
    if total is None:
        return value if scale == 1 else b.negate(value) if scale == -1 else b.mul(value, scale)
    if abs(scale) == 1:
        return b.add(total, value) if scale == 1 else b.sub(total, value)
    return b.fma(value, scale, total)


def _vector(b: Emitter, value: Value | float, point: Point, operand: NestOperand) -> Value:
    if isinstance(value, Value):
        return value
    element = tensor_type(operand.source).element_type
    return constant(compute_type(element).vector(point.lanes), value)
