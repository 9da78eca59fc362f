"""Print the ops of a nest whose places and loops depend on data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.nest_access import is_local
from ...dialects.nest_computed import (
    AgainOp,
    CopyOp,
    IndexOp,
    RangeOp,
    ReadOp,
    RepeatOp,
    WriteOp,
)
from ..kernel_to_cpu.emit.access import emit_index, memory_type, to_compute, to_memory
from ..kernel_to_cpu.emit.emitter import Emitter
from ..kernel_to_cpu.emit.types import I1, I64, Index, Value, constant
from .place import AccessPlace

Step = Callable[[], None]
Makers = dict[type[Operation], Callable[..., Step]]


class ComputedPrinter:
    """The steps of such ops, for a printer whose values, places and buffers these are."""

    def __init__(
        self,
        b: Emitter,
        values: dict[SSAValue, Value],
        at: Mapping[SSAValue, Index],
        steps: Mapping[SSAValue, int],
        pointers: Mapping[SSAValue, Value],
        block: Callable[[Block], None],
    ):
        self.b, self.values, self.at, self.steps = b, values, at, steps
        self.pointers, self.block = pointers, block

    def makers(self) -> Makers:
        """What makes the step of an op, by its class."""
        return {
            IndexOp: self._index,
            ReadOp: self._read,
            WriteOp: self._write,
            CopyOp: self._copy,
            RangeOp: self._range,
            RepeatOp: self._repeat,
            AgainOp: lambda op: lambda: None,
        }

    def _index(self, op: IndexOp) -> Step:
        place = AccessPlace(op, self.steps)

        def index() -> None:
            found = emit_index(self.b, place.indices[0], place.point(self.at))
            self.values[op.result] = self.b.value(found, I64)

        return index

    def _read(self, op: ReadOp) -> Step:
        element = _element(op.buffer)
        # What no op of the nest writes may be shared within a block.
        fixed = not is_local(op.buffer) and not _is_written(op.buffer)

        def read() -> None:
            pointer, place = self.pointers[op.buffer], self.values[op.place]
            value = self.b.load(memory_type(element), pointer, place, pure=fixed)
            self.values[op.result] = to_compute(self.b, value, element)

        return read

    def _write(self, op: WriteOp) -> Step:
        element = _element(op.buffer)

        def write() -> None:
            value = to_memory(self.b, self.values[op.value], element)
            self.b.store(value, self.pointers[op.buffer], self.values[op.place])

        return write

    def _copy(self, op: CopyOp) -> Step:
        memory = memory_type(_element(op.source))

        def copy() -> None:
            b, values = self.b, self.values
            source = b.address(memory, self.pointers[op.source], values[op.start])
            target = b.address(memory, self.pointers[op.target], values[op.place])
            size = b.value(b.mul(values[op.count], memory.bytes), I64)
            b.call(
                "llvm.memcpy.p0.p0.i64", None, [target, source, size, constant(I1, 0)], declare=True
            )

        return copy

    def _range(self, op: RangeOp) -> Step:
        low, high, vectors = op.low, op.high, _writes_neighbours(op)

        def loop() -> None:
            with self.b.loop(self.values[low], self.values[high], vectors=vectors) as place:
                self.values[op.iterator] = place
                self.block(op.block)

        return loop

    def _repeat(self, op: RepeatOp) -> Step:
        again = op.block.last_op
        assert isinstance(again, AgainOp)

        def repeat() -> None:
            with self.b.repeat() as end:
                self.block(op.block)
                end(self.values[again.condition])

        return repeat


def _element(buffer: SSAValue) -> Attribute:
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.element_type


def _writes_neighbours(op: RangeOp) -> bool:
    """Whether a loop only computes and writes elements in a row: no sum is kept in memory."""
    ops = list(op.block.ops)
    writes = [inner for inner in ops if isinstance(inner, WriteOp)]
    plain = all(isinstance(o, (ReadOp, WriteOp)) or o.name.startswith("arith.") for o in ops)
    return plain and bool(writes) and all(_moves_with(w.place, op) for w in writes)


def _moves_with(place: SSAValue, op: RangeOp) -> bool:
    """Whether a place is the loop's iterator, or that plus what the loop does not change."""
    if not isinstance(place.owner, AddiOp):
        return place is op.iterator
    terms = list(place.owner.operands)
    rest = [v for v in terms if v is not op.iterator]
    return len(rest) == 1 and rest[0].owner not in (op.block, *op.block.ops)


def _is_written(buffer: SSAValue) -> bool:
    users = (use.operation for use in buffer.uses)
    return any(
        (isinstance(op, WriteOp) and op.buffer is buffer)
        or (isinstance(op, CopyOp) and op.target is buffer)
        or op.name == "nest.store"
        for op in users
    )
