"""Print a nest for the CPU: its loops as LLVM IR, the places of vector loops as lanes.

A scalar in a vector loop is a vector as soon as it depends on the lanes. Local buffers are stack
slots; LLVM keeps in registers what is accessed at known places only. An op in an unrolled loop is
printed many times: what it is made of is looked up once (`_Place`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.index import Index as Affine
from ..dialects.nest import (
    AccessOp,
    AccumulateOp,
    AllocOp,
    ForOp,
    IdentityOp,
    IfOp,
    InsideOp,
    LoadOp,
    NestOp,
    PlacedOp,
    PrefetchOp,
    StoreOp,
    TransposeOp,
    WhenOp,
    is_local,
    loop_of,
    parallel_loops,
)
from .kernel_to_cpu.access import (
    Access,
    Point,
    Vector,
    compute_type,
    emit_index,
    memory_type,
    read,
    store,
)
from .kernel_to_cpu.emit import Emitter
from .kernel_to_cpu.lanes import split_item
from .kernel_to_cpu.module import KernelCode, Module, kernel
from .kernel_to_cpu.scalar_code import CONTRACTION, FAST, HORIZONTAL, combine, emit_op, identity
from .kernel_to_cpu.types import I64, Index, Type, Value, constant


def print_llvm(nest: NestOp) -> KernelCode:
    """The kernel's LLVM module. Arguments: the nest's buffers in order.

    Its items are the places of the outermost parallel loops.
    """
    buffers = list(nest.body.block.args)
    loops = parallel_loops(nest)
    extents = tuple(loop.size for loop in loops)
    inside = loops[-1].block if loops else nest.body.block

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        printer = _Printer(b, dict(zip(buffers, pointers, strict=True)))
        with b.loop(low, high) as item:
            places = split_item(b, item, list(range(len(loops))), extents)
            printer.at |= {loop.iterator: places[k] for k, loop in enumerate(loops)}
            printer.block(inside)

    return kernel(Module(), len(buffers), math.prod(extents), body)


class _Place:
    """What an op's expressions are over, looked up once. Iterators count in their `steps`."""

    def __init__(self, op: PlacedOp, steps: Mapping[SSAValue, int]):
        self.places = list(op.places)
        counts = [steps.get(place, 1) for place in self.places]
        sizes = (loop_of(place).size for place in self.places)
        self.extents = tuple((n - 1) * c + 1 for n, c in zip(sizes, counts, strict=True))
        self.indices = tuple(_rescaled(e, counts) for e in op.indices)
        guards = op.guards if isinstance(op, AccessOp | IfOp) else ()
        self.guards = [(_rescaled(e, counts), n) for e, n in guards]


def _rescaled(index: Affine, counts: Sequence[int]) -> Affine:
    """The same place where iterator k counts in steps of `counts[k]`, which divide what it is
    multiplied by."""
    return Affine(
        index.constant,
        tuple((a, c // counts[a] if isinstance(a, int) else c) for a, c in index.terms),
    )


def step_of(iterator: SSAValue) -> int:
    """What a loop may count in: a divisor of all that its iterator is multiplied by.

    LLVM judges by the size of a body how often to unroll it, and a multiplication counts.
    """
    found = 0
    for use in iterator.uses:
        op = use.operation
        assert isinstance(op, PlacedOp)
        k = use.index - (len(op.operands) - len(op.places))
        for index in op.indices:
            step = index.coefficient(k)
            if k in (index - Affine.iterator(k) * step).iterators:
                return 1
            found = math.gcd(found, step)
    return max(1, found)


@dataclass(frozen=True)
class _Local:
    """An access of a local buffer, looked up once: its address, as for `_Place`."""

    place: _Place
    type: Type
    buffer: SSAValue


class _Printer:
    """Where emission stands: places of iterators, values of scalars, the vector loop it is in."""

    def __init__(self, b: Emitter, pointers: dict[SSAValue, Value]):
        self.b, self.pointers = b, pointers
        self.at: dict[SSAValue, Index] = {}
        self.values: dict[SSAValue, Value] = {}
        self._places: dict[PlacedOp, _Place] = {}
        self._steps: dict[SSAValue, int] = {}
        self._locals: dict[AccessOp, _Local | None] = {}
        self._factors: dict[SSAValue, list[Value]] = {}
        """Of products that a sum takes: they are multiplied and added at once."""
        self._lane: SSAValue | None = None
        self._width = 0
        self._mask: Value | int | None = None

    def block(self, block: Block) -> None:
        """Emit all ops of a block."""
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case ForOp():
                self._for(op)
            case LoadOp():
                self.values[op.result] = self._load(op)
            case InsideOp():
                access = Access(None, op.result.type, Affine(0), tuple(self._placed(op).guards))
                self.values[op.result] = read(self.b, access, self._point(op))
            case StoreOp():
                self._store(op)
            case AccumulateOp():
                self._accumulate(op)
            case AllocOp():
                dtype, count = _buffer(op.result)
                self.pointers[op.result] = self.b.reserve(dtype, count)
            case PrefetchOp():
                self._prefetch(op)
            case IfOp():
                self._branches(self._holds(op), op.then, op.otherwise)
            case WhenOp():
                self._branches(self.values[op.condition], op.then, op.otherwise)
            case TransposeOp():
                self._transpose(op)
            case arith.MulfOp() if _is_summed(op):
                self._factors[op.result] = self._arguments(op)
            case IdentityOp():
                self.values[op.result] = _identity(op.reduction.data, compute_type(op.result.type))
            case _:
                self._scalar(op)

    # Loops

    def _for(self, op: ForOp) -> None:
        low, high = self._bounds(op) if op.indices else (0, op.size)
        match op.kind.data:
            case "vector":
                assert self._lane is None, "a vector loop holds no other"
                self._lane, self._width = op.iterator, op.width
                self._mask = None if high == op.width else high
                self.at[op.iterator] = 0
                self.block(op.block)
                self._lane = None
            case "unrolled":
                assert isinstance(low, int) and isinstance(high, int)
                for k in range(low, high):
                    self.at[op.iterator] = k
                    self.block(op.block)
            case _:
                unroll = None if op.unroll is None else op.unroll.value.data
                step = step_of(op.iterator) if not op.indices else 1
                self._steps[op.iterator] = step
                with self.b.loop(low, self.b.mul(high, step), step, unroll) as index:
                    self.at[op.iterator] = index
                    self.block(op.block)

    def _bounds(self, op: ForOp) -> tuple[Index, Index]:
        low: Index = 0
        high: Index = op.size
        point, count = self._point(op), op.lowers.value.data
        bounds = self._placed(op).indices
        lowers, uppers = bounds[:count], bounds[count:]
        for e in lowers:
            low = _larger(self.b, emit_index(self.b, e, point), low)
        for e in uppers:
            high = _smaller(self.b, emit_index(self.b, e, point), high)
        return low, high

    def _branches(self, condition: Value, then: Region, otherwise: Region) -> None:
        def run(region: Region) -> list[Value]:
            self.block(region.block)
            return []

        self.b.if_else(condition, lambda: run(then), lambda: run(otherwise))

    def _holds(self, op: AccessOp | IfOp) -> Value:
        """Whether all guards of an op hold."""
        point, condition = self._point(op), None
        for index, size in self._placed(op).guards:
            place = self.b.value(emit_index(self.b, index, point), I64)
            inside = self.b.compare("lt", place, size, signed=False)
            condition = inside if condition is None else self.b.logic("and", condition, inside)
        assert condition is not None
        return condition

    # Memory

    def _placed(self, op: PlacedOp) -> _Place:
        found = self._places.get(op)
        if found is None:
            found = self._places[op] = _Place(op, self._steps)
        return found

    def _point(self, op: PlacedOp) -> Point:
        """Where an op's expressions are taken; iterator k is its place number k."""
        found = self._placed(op)
        values = {k: self.at[place] for k, place in enumerate(found.places)}
        vector = None
        if self._lane is not None and self._lane in found.places:
            lane = found.places.index(self._lane)
            vector = Vector(lane, self._width, self._mask, aligned=True)
        return Point(found.extents, values, vector)

    def _local(self, op: LoadOp | StoreOp | AccumulateOp) -> _Local | None:
        """An access of a local buffer; None for one of an argument."""
        if op not in self._locals:
            local = is_local(op.buffer)
            dtype = _buffer(op.buffer)[0] if local else None
            found = None if dtype is None else _Local(self._placed(op), dtype, op.buffer)
            self._locals[op] = found
        return self._locals[op]

    def _element(self, local: _Local) -> tuple[Type, Index]:
        """The type, a vector along the lanes, and the first element of what is accessed."""
        flat, lanes, place = local.place.indices[0], 0, local.place.indices[0].constant
        for atom, coefficient in flat.terms:
            assert isinstance(atom, int), "local buffers have linear addresses"
            iterator = local.place.places[atom]
            if iterator is self._lane:
                assert coefficient == 1, "local buffers are accessed along the lanes"
                lanes = self._width
                continue
            place = self.b.add(place, self.b.mul(self.at[iterator], coefficient))
        return local.type.vector(lanes), place

    def _load(self, op: LoadOp) -> Value:
        local = self._local(op)
        if local is not None:
            dtype, place = self._element(local)
            return self.b.load(dtype, self.pointers[op.buffer], place)
        point, found = self._point(op), self._placed(op)
        element = op.result.type
        access = Access(
            self.pointers[op.buffer],
            element,
            found.indices[0],
            tuple(found.guards),
            op.outside.value.data,
            fixed=True,
            size=op.room.value.data,
        )
        vector = point.vector
        if vector is not None and not access.uses(vector.iterator):
            point.vector = None
        elif vector is not None and op.padded is not None:
            point.vector = Vector(vector.iterator, vector.lanes, aligned=True)
        return read(self.b, access, point)

    def _store(self, op: StoreOp) -> None:
        value, local = self.values[op.value], self._local(op)
        if local is not None:
            dtype, place = self._element(local)
            self.b.store(self._widened(value, dtype.lanes), self.pointers[op.buffer], place)
            return
        point = self._point(op)
        assert isinstance(op.buffer.type, MemRefType)
        element, flat = op.buffer.type.element_type, self._placed(op).indices[0]
        access = Access(self.pointers[op.buffer], element, flat)
        wide = self._widened(value, point.lanes)
        store(self.b, wide, access, point, past_caches=op.past_caches.value.data)

    def _widened(self, value: Value, lanes: int) -> Value:
        return value if value.type.lanes == lanes else self.b.broadcast(value, lanes)

    def _accumulate(self, op: AccumulateOp) -> None:
        b, kind, local = self.b, op.reduction.data, self._local(op)
        assert local is not None, "totals are in local buffers"
        dtype, place = self._element(local)
        if op.value in self._factors:
            x, y = self._factors[op.value]
            if x.type.lanes <= dtype.lanes:
                x, y = self._widened(x, dtype.lanes), self._widened(y, dtype.lanes)
                total = b.load(dtype, self.pointers[op.buffer], place)
                b.store(b.fma(x, y, total), self.pointers[op.buffer], place)
                return
            self.values[op.value] = b.mul(x, y)
        value = self.values[op.value]
        if op.masked is not None and self._lane is not None and self._mask is not None:
            mask = b.mask(self._mask, self._width)
            assert mask is not None
            value = self._widened(value, self._width)
            value = b.select(mask, value, _identity(kind, value.type))
        if value.type.lanes and not dtype.lanes:
            value = _across(b, kind, value)
        total = b.load(dtype, self.pointers[op.buffer], place)
        made = _combined(b, kind, total, self._widened(value, dtype.lanes))
        b.store(made, self.pointers[op.buffer], place)

    def _prefetch(self, op: PrefetchOp) -> None:
        assert isinstance(op.buffer.type, MemRefType)
        found = self._placed(op)
        place = emit_index(self.b, found.indices[0], self._point(op))
        if found.guards:
            place = self.b.select(self._holds(op), self.b.value(place, I64), constant(I64, 0))
        memory = memory_type(op.buffer.type.element_type)
        self.b.prefetch(memory, self.pointers[op.buffer], place)

    def _transpose(self, op: TransposeOp) -> None:
        b, pointer = self.b, self.pointers[op.buffer]
        rows, columns = op.rows.value.data, op.columns.value.data
        lanes, count = max(rows, columns), min(rows, columns)
        dtype = _buffer(op.buffer)[0].vector(lanes)
        vectors = [b.load(dtype, pointer, k * lanes) for k in range(count)]
        if rows == columns:
            made = b.transpose(vectors)
        else:
            places = [i * columns + j for j in range(columns) for i in range(rows)]
            parts = (places[k : k + lanes] for k in range(0, len(places), lanes))
            made = [b.pick(vectors, part) for part in parts]
        for k, value in enumerate(made):
            b.store(value, pointer, k * lanes)

    # Scalars

    def _arguments(self, op: Operation) -> list[Value]:
        """An op's operands, all scalars or all vectors."""
        args = [self.values[v] for v in op.operands]
        lanes = max((a.type.lanes for a in args), default=0)
        return [self._widened(a, lanes) for a in args]

    def _scalar(self, op: Operation) -> None:
        args = self._arguments(op)
        lanes = args[0].type.lanes if args else 0
        with self.b.flags(_flags(op)):
            values = dict(zip(op.operands, args, strict=True))
            self.values[op.results[0]] = emit_op(self.b, op, values, lanes)


def _larger(b: Emitter, x: Index, y: Index) -> Index:
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else b.maximum(x, y)


def _smaller(b: Emitter, x: Index, y: Index) -> Index:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else b.minimum(x, y)


def _buffer(buffer: SSAValue) -> tuple[Type, int]:
    """What a local buffer holds, and how much of it."""
    assert isinstance(buffer.type, MemRefType)
    (count,) = buffer.type.get_shape()
    return compute_type(buffer.type.element_type), count


def _is_summed(op: arith.MulfOp) -> bool:
    """Whether a product is only taken into a sum that multiplies and adds at once."""
    uses = list(op.result.uses)
    taken = uses[0].operation if len(uses) == 1 else None
    return isinstance(taken, AccumulateOp) and taken.fused is not None


def _flags(op: Operation) -> str:
    written = op.properties.get("fastmath")
    if not isinstance(written, arith.FastMathFlagsAttr):
        return ""
    if FastMathFlag.REASSOC in written.data:
        return FAST
    return CONTRACTION if FastMathFlag.ALLOW_CONTRACT in written.data else ""


def _identity(kind: str, dtype: Type) -> Value:
    return identity(kind.removeprefix("numeric_"), dtype)


def _combined(b: Emitter, kind: str, total: Value, value: Value) -> Value:
    if kind == "or":
        return b.logic("or", total, value)
    if kind.startswith("numeric_"):
        order = "gt" if kind == "numeric_max" else "lt"
        return b.select(b.compare(order, total, value), total, value)
    return combine(b, kind, total, value)


def _across(b: Emitter, kind: str, value: Value) -> Value:
    """Combine the lanes of a vector."""
    if not kind.startswith("numeric_"):
        return b.reduce(HORIZONTAL.get(kind, kind), value)
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        lower, upper = (b.shuffle(value, range(k, k + half)) for k in (0, half))
        value = _combined(b, kind, lower, upper)
    return b.extract(value, 0)
