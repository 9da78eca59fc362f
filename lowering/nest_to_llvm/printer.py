"""Print a nest for the CPU: its loops as LLVM IR, the places of vector loops as lanes.

A scalar in a vector loop is a vector as soon as it depends on the lanes. Local buffers are stack
slots; LLVM keeps in registers what is accessed at known places only. An op in an unrolled loop is
printed many times: what it is made of is looked up once (`Step`, `AccessPlace`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.index import Index as Affine
from ...dialects.nest import (
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
    parallel_loops,
)
from ..kernel_to_cpu.emit.access import (
    Access,
    compute_type,
    emit_index,
    memory_type,
    read,
    store,
    to_compute,
    to_memory,
)
from ..kernel_to_cpu.emit.emitter import Emitter
from ..kernel_to_cpu.emit.module import KernelCode, Module, kernel
from ..kernel_to_cpu.emit.rows_read import Skipping
from ..kernel_to_cpu.emit.scalar_code import (
    emit_op,
)
from ..kernel_to_cpu.emit.types import I64, Index, Type, Value, constant
from ..kernel_to_cpu.nests.lanes import split_item
from .buffers import (
    buffer_type,
    element_of,
    fast_math_flags,
    is_contiguous_load,
    is_copy,
    is_held,
    is_split,
    is_summed,
    raw_type,
)
from .computed import ComputedPrinter
from .place import AccessPlace, picked, step_of
from .rows_read import items_of
from .totals import across, combined, start_of


def print_llvm(nest: NestOp) -> KernelCode:
    """The kernel's LLVM module. Arguments: the nest's buffers in order.

    Its items are the places of the outermost parallel loops.
    """
    buffers = list(nest.body.block.args)
    loops = parallel_loops(nest)
    extents = tuple(loop.size for loop in loops)
    inside = loops[-1].block if loops else nest.body.block

    part = items_of(nest, loops)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        printer = _Printer(b, dict(zip(buffers, pointers, strict=True)))
        rows, kept = ((), ()) if part is None else (part.rows, part.kept)
        skipping = Skipping(b, rows, [pointers[r.operand] for r in (*rows, *kept)], kept)
        with b.loop(low, high) as item:
            places = split_item(b, item, list(range(len(loops))), extents)
            printer.at |= {loop.iterator: places[k] for k, loop in enumerate(loops)}
            first = [] if part is None else part.place([places[k] for k in range(len(loops))])
            with skipping.part(b, first, 0 if part is None else part.reach):
                printer.block(inside)

    return kernel(Module(), len(buffers), math.prod(extents), body)


Step: TypeAlias = "Callable[[], None]"


class _Printer:
    """Where emission stands: places of iterators, values of scalars, the vector loop it is in.

    An op is looked at once, and becomes a step; a step in an unrolled loop is taken many times.
    """

    def __init__(self, b: Emitter, pointers: dict[SSAValue, Value]):
        self.b, self.pointers = b, pointers
        self.at: dict[SSAValue, Index] = {}
        self.values: dict[SSAValue, Value] = {}
        self._blocks: dict[Block, list[Step]] = {}
        self._steps: dict[SSAValue, int] = {}
        self._held: dict[SSAValue, dict[int, Value]] = {}
        """Values by place, of buffers that need no memory."""
        self._slots: dict[SSAValue, dict[int, Value]] = {}
        """Stack slots by place, of buffers whose vectors are accessed one by one."""
        self._raw: set[SSAValue] = set()
        """Such buffers, and what is put there, whose values are as they lie in memory."""
        self._factors: dict[SSAValue, list[Value]] = {}
        """Of products that a sum takes: they are multiplied and added at once."""
        self._width = 0
        self._mask: Value | int | None = None
        self._makers: dict[type[Operation], Callable[[Any], Step]] = {
            ForOp: self._for,
            LoadOp: self._load,
            InsideOp: self._inside,
            StoreOp: self._store,
            AccumulateOp: self._accumulate,
            AllocOp: self._alloc,
            PrefetchOp: self._prefetch,
            IfOp: self._if,
            WhenOp: self._when,
            TransposeOp: self._transpose,
            IdentityOp: self._identity,
        }
        computed = ComputedPrinter(
            b, self.values, self.at, self._steps, self.pointers, lambda block: self.block(block)
        )
        self._makers |= computed.makers()

    def block(self, block: Block) -> None:
        """Emit all ops of a block."""
        steps = self._blocks.get(block)
        if steps is None:
            steps = self._blocks[block] = []
            for op in block.ops:
                steps.append(self._makers.get(type(op), self._scalar)(op))
        for step in steps:
            step()

    # Loops

    def _for(self, op: ForOp) -> Step:
        iterator, block, size, width = op.iterator, op.block, op.size, op.width
        bounds = self._bounds(op) if op.indices else lambda: (0, size)

        def vector() -> None:
            _, high = bounds()
            self._width, self._mask = width, None if high == width else high
            self.at[iterator] = 0
            self.block(block)
            self._mask = None

        def unrolled() -> None:
            low, high = bounds()
            assert isinstance(low, int) and isinstance(high, int)
            for k in range(low, high):
                self.at[iterator] = k
                self.block(block)

        def counted() -> None:
            (low, high), step = bounds(), self._steps[iterator]
            with self.b.loop(low, self.b.mul(high, step), step, unroll) as index:
                self.at[iterator] = index
                self.block(block)

        match op.kind.data:
            case "vector":
                return vector
            case "unrolled":
                return unrolled
            case _:
                unroll = None if op.unroll is None else op.unroll.value.data
                self._steps[iterator] = 1 if op.indices else step_of(iterator)
                return counted

    def _bounds(self, op: ForOp) -> Callable[[], tuple[Index, Index]]:
        place, count, size = self._place(op), op.lowers.value.data, op.size
        lowers, uppers = place.indices[:count], place.indices[count:]

        def bounds() -> tuple[Index, Index]:
            low: Index = 0
            high: Index = size
            point = place.point(self.at)
            for e in lowers:
                low = _larger(self.b, emit_index(self.b, e, point), low)
            for e in uppers:
                high = _smaller(self.b, emit_index(self.b, e, point), high)
            return low, high

        return bounds

    def _place(self, op: PlacedOp) -> AccessPlace:
        return AccessPlace(op, self._steps)

    def _if(self, op: IfOp) -> Step:
        place, bodies = self._place(op), (op.then.block, op.otherwise.block)
        return lambda: self._branches(self._holds(place), *bodies)

    def _when(self, op: WhenOp) -> Step:
        condition, bodies = op.condition, (op.then.block, op.otherwise.block)
        return lambda: self._branches(self.values[condition], *bodies)

    def _branches(self, condition: Value, then: Block, otherwise: Block) -> None:
        def run(block: Block) -> list[Value]:
            self.block(block)
            return []

        self.b.if_else(condition, lambda: run(then), lambda: run(otherwise))

    def _holds(self, place: AccessPlace) -> Value:
        """Whether all guards of an op hold."""
        point, condition = place.point(self.at), None
        for index, size in place.guards:
            value = self.b.value(emit_index(self.b, index, point), I64)
            inside = self.b.compare("lt", value, size, signed=False)
            condition = inside if condition is None else self.b.logic("and", condition, inside)
        assert condition is not None
        return condition

    # Memory

    def _alloc(self, op: AllocOp) -> Step:
        buffer, (dtype, count) = op.result, buffer_type(op.result)
        if is_held(op):
            held = self._held[buffer] = {}
            stores = [u.operation for u in buffer.uses if isinstance(u.operation, StoreOp)]
            if all(is_copy(store) for store in stores):
                self._raw |= {buffer, *(store.value for store in stores)}
            return held.clear

        self._slots.pop(buffer, None)
        if is_split(op):
            slots = self._slots[buffer] = {}
            return slots.clear

        def reserve() -> None:
            self.pointers[buffer] = self.b.reserve(dtype, count)

        return reserve

    def _element(self, op: AccessOp, buffer: SSAValue) -> Callable[[], tuple[Type, Index]]:
        """The type, a vector along the lanes, and the first element of what is accessed."""
        place, dtype = self._place(op), buffer_type(buffer)[0]
        flat = place.indices[0]
        if place.vector is not None:
            lane, width = place.vector
            step = flat.coefficient(lane)
            assert step in (0, 1), "local buffers are accessed along the lanes"
            dtype = dtype.vector(width * step)
        return lambda: (dtype, place.first(self.b, self.at))

    def _load(self, op: LoadOp) -> Step:
        buffer, result = op.buffer, op.result
        if not is_local(buffer):
            return self._load_argument(op)
        held = self._held.get(buffer)
        if held is not None:
            return self._load_held(op, held)
        if not is_contiguous_load(op):
            return self._load_anywhere(op)
        element = self._element(op, buffer)

        def load() -> None:
            dtype, place = element()
            self.values[result] = self._kept(dtype, buffer, place)

        return load

    def _load_anywhere(self, op: LoadOp) -> Step:
        """Elements of a buffer on the stack at any distance, or outside, as of any memory."""
        place, result, buffer = self._place(op), op.result, op.buffer
        count, outside = buffer_type(buffer)[1], op.outside.value.data
        if not place.uses_lanes:
            place.vector = None

        def load() -> None:
            pointer, flat, guards = self.pointers[buffer], place.indices[0], place.guards
            access = Access(pointer, result.type, flat, guards, outside, size=count)
            self.values[result] = read(self.b, access, place.point(self.at, self._mask))

        return load

    def _load_held(self, op: LoadOp, held: dict[int, Value]) -> Step:
        """A value that is held as it is, or lanes picked out of several."""
        place, raw, result, b = self._place(op), op.buffer in self._raw, op.result, self.b
        dtype, outside = buffer_type(op.buffer)[0], op.outside.value.data

        def load() -> None:
            at = place.known(self.at)
            first, lanes = at[0], len(at)
            value = None if first is None else held.get(first)
            if (
                first is None
                or value is None
                or at != [*range(first, first + max(1, value.type.lanes))]
            ):
                real = self._mask if isinstance(self._mask, int) and lanes > 1 else lanes
                value = picked(b, held, at, real, outside) or constant(dtype.vector(lanes), 0)
            self.values[result] = self._converted(value, result) if raw else value

        return load

    def _converted(self, value: Value, result: SSAValue) -> Value:
        """What is computed with, of a value as it lies in memory."""
        memory = memory_type(result.type).vector(value.type.lanes)
        value = value if value.type == memory else self.b.bitcast(value, memory)
        return to_compute(self.b, value, result.type)

    def _load_argument(self, op: LoadOp) -> Step:
        place, result, padded = self._place(op), op.result, op.padded is not None
        access = Access(
            self.pointers[op.buffer],
            raw_type(result.type) if result in self._raw else result.type,
            place.indices[0],
            place.guards,
            op.outside.value.data,
            fixed=True,
            size=op.room.value.data,
        )
        if place.vector is not None and not access.uses(place.vector[0]):
            place.vector = None

        def load() -> None:
            point = place.point(self.at, None if padded else self._mask)
            self.values[result] = read(self.b, access, point)

        return load

    def _inside(self, op: InsideOp) -> Step:
        place, result = self._place(op), op.result
        access = Access(None, result.type, Affine(0), place.guards)

        def inside() -> None:
            self.values[result] = read(self.b, access, place.point(self.at, self._mask))

        return inside

    def _store(self, op: StoreOp) -> Step:
        if is_local(op.buffer):
            return self._store_local(op)
        place, value, nontemporal = self._place(op), op.value, op.nontemporal.value.data
        access = Access(self.pointers[op.buffer], value.type, place.indices[0])

        def put() -> None:
            point = place.point(self.at, self._mask)
            wide = self._widened(self.values[value], point.lanes)
            store(self.b, wide, access, point, nontemporal=nontemporal)

        return put

    def _store_local(self, op: StoreOp) -> Step:
        buffer, stored = op.buffer, op.value
        held, element = self._held.get(buffer), self._element(op, buffer)

        def put() -> None:
            dtype, place = element()
            value = self._widened(self.values[stored], dtype.lanes)
            if held is not None:
                assert isinstance(place, int)
                held[place] = value
                return
            self._keep(value, dtype, buffer, place)

        return put

    def _kept(self, dtype: Type, buffer: SSAValue, place: Index) -> Value:
        """What a local buffer holds from a place on, in the compute type."""
        element = element_of(buffer)
        computed = compute_type(element).vector(dtype.lanes)
        if buffer in self._slots:
            return self.b.load_slot(computed, self._slot(computed, buffer, place))
        value = self.b.load(dtype, self.pointers[buffer], place)
        return value if dtype == computed else to_compute(self.b, value, element)

    def _keep(self, value: Value, dtype: Type, buffer: SSAValue, place: Index) -> None:
        """Put a value into a local buffer."""
        if buffer in self._slots:
            self.b.store_slot(value, self._slot(value.type, buffer, place))
            return
        if dtype.element != value.type.element:
            value = to_memory(self.b, value, element_of(buffer))
        self.b.store(value, self.pointers[buffer], place)

    def _slot(self, dtype: Type, buffer: SSAValue, place: Index) -> Value:
        """The stack slot of a place in a local buffer."""
        slots = self._slots[buffer]
        assert isinstance(place, int)
        if place not in slots:
            slots[place] = self.b.reserve(dtype, 1)
        return slots[place]

    def _widened(self, value: Value, lanes: int) -> Value:
        return value if value.type.lanes == lanes else self.b.broadcast(value, lanes)

    def _accumulate(self, op: AccumulateOp) -> Step:
        b, kind, taken, buffer = self.b, op.reduction.data, op.value, op.buffer
        assert is_local(buffer), "totals are in local buffers"
        element, masked = self._element(op, buffer), op.masked is not None

        def accumulate() -> None:
            dtype, place = element()
            if taken in self._factors:
                x, y = self._factors[taken]
                if x.type.lanes <= dtype.lanes:
                    x, y = self._widened(x, dtype.lanes), self._widened(y, dtype.lanes)
                    total = b.fma(x, y, self._kept(dtype, buffer, place))
                    self._keep(total, dtype, buffer, place)
                    return
                self.values[taken] = b.mul(x, y)
            value = self.values[taken]
            if masked and self._mask is not None:
                mask = b.mask(self._mask, self._width)
                assert mask is not None
                value = self._widened(value, self._width)
                value = b.select(mask, value, start_of(kind, value.type))
            if value.type.lanes and not dtype.lanes:
                value = across(b, kind, value)
            value = self._widened(value, dtype.lanes)
            made = combined(b, kind, self._kept(dtype, buffer, place), value)
            self._keep(made, dtype, buffer, place)

        return accumulate

    def _prefetch(self, op: PrefetchOp) -> Step:
        place, pointer = self._place(op), self.pointers[op.buffer]
        memory = memory_type(element_of(op.buffer))

        def ask() -> None:
            index = place.first(self.b, self.at)
            if place.guards:
                zero = constant(I64, 0)
                index = self.b.select(self._holds(place), self.b.value(index, I64), zero)
            self.b.prefetch(memory, pointer, index)

        return ask

    def _transpose(self, op: TransposeOp) -> Step:
        b, buffer, held = self.b, op.buffer, self._held.get(op.buffer)
        rows, columns = op.rows.value.data, op.columns.value.data
        lanes, count = max(rows, columns), min(rows, columns)
        dtype = buffer_type(buffer)[0].vector(lanes)
        starts = [k * lanes for k in range(count)]
        places = [i * columns + j for j in range(columns) for i in range(rows)]

        def turned(vectors: list[Value]) -> list[Value]:
            if rows == columns:
                return b.transpose(vectors)
            return [b.pick(vectors, places[k : k + lanes]) for k in starts]

        def transpose() -> None:
            if held is not None:
                known = next(iter(held.values())).type
                vectors = [held.get(start) or constant(known, 0) for start in starts]
                held.update(zip(starts, turned(vectors), strict=True))
                return
            pointer = self.pointers[buffer]
            made = turned([b.load(dtype, pointer, start) for start in starts])
            for start, value in zip(starts, made, strict=True):
                b.store(value, pointer, start)

        return transpose

    # Scalars

    def _identity(self, op: IdentityOp) -> Step:
        result, value = op.result, start_of(op.reduction.data, compute_type(op.result.type))

        def identity_() -> None:
            self.values[result] = value

        return identity_

    def _scalar(self, op: Operation) -> Step:
        operands, result, flags = tuple(op.operands), op.results[0], fast_math_flags(op)

        def arguments() -> list[Value]:
            """All scalars or all vectors."""
            args = [self.values[v] for v in operands]
            lanes = max((a.type.lanes for a in args), default=0)
            return [self._widened(a, lanes) for a in args]

        def factors() -> None:
            self._factors[result] = arguments()

        def scalar() -> None:
            args = arguments()
            lanes = args[0].type.lanes if args else 0
            with self.b.flags(flags):
                values = dict(zip(operands, args, strict=True))
                self.values[result] = emit_op(self.b, op, values, lanes)

        return factors if isinstance(op, arith.MulfOp) and is_summed(op) else scalar


def _larger(b: Emitter, x: Index, y: Index) -> Index:
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else b.maximum(x, y)


def _smaller(b: Emitter, x: Index, y: Index) -> Index:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else b.minimum(x, y)
