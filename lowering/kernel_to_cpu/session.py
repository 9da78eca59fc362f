"""Run a kernel-level program on the CPU: compile its kernels, place its buffers, call it.

The whole program is one native call over a table of kernels (runner.py). Only ops without native
code (`kernel.call` of an opaque node) split it, and then run on the host between native segments.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.deadline import check_time
from ...dialects.errors import UserError
from ...dialects.kernel import (
    AttentionOp,
    CallOp,
    ConvOp,
    GemmOp,
    JoinOp,
    KernelOp,
    TiledProductOp,
    ViewOp,
    layout_of,
    logical,
    physical,
)
from ...dialects.op_reference import evaluate_op
from ...dialects.program import Program, main_of, return_of, where
from ...dialects.schedule import tile_of
from ...dialects.types import (
    Array,
    Tensor,
    byte_width,
    element_count,
    reference_dtype,
    shape_of,
    strided,
    tensor_type,
    to_numpy,
)
from .code_cache import cached_code
from .constants import Constants
from .emit.avx512 import emitting
from .emit.module import KernelCode
from .isa import Isa
from .kernel_call import Argument, KernelCall
from .nests.gather import gathered_size, lower_gather, place_of
from .nests.halo import lower_halo
from .nests.loops import emit_loops
from .nests.node import lower_node, nests_of
from .nests.tiles import emit_tiles
from .outputs import handed_out
from .products.attention import emit_attention
from .products.contraction import lower_conv, lower_gemm
from .products.tiled_product import lower_tiled_product
from .rebase import at_zero, call_of
from .runtime.execute import Alarm, Execution, Outside, Patch, View, alarms_in, aligned, room
from .runtime.jit import Library
from .runtime.object_cache import ObjectCache
from .runtime.runner import ROW, KernelTable, Pool

if TYPE_CHECKING:
    from ..node_to_nest.find import Nests

ARENA = "isoform.arena_bytes"
Kernel = TypeVar("Kernel", bound=KernelOp)


@dataclass(frozen=True)
class BufferStart:
    """The start of a value's buffer: an outside array's number, or an address in the arena or of a
    constant."""

    address: int = 0
    outside: int | None = None
    constant: bytes | None = None


@dataclass
class Segment:
    """Either a native table, or a host function to call."""

    calls: list[KernelCall] = field(default_factory=list[KernelCall])
    host: Callable[[], None] | None = None
    table: KernelTable | None = None


class CpuSession:
    """A compiled program. Calls from several threads run one after the other.

    Attributes:
        arena, kept: intermediate buffers; constants and packed weights by the hash of their bytes.
        segments: native tables and host work, in order.
        tables, entries: argument tables by address; what each entry of a table is.
        nests: what runs the kept ONNX nodes that have loop nests.
        alarming: the ops whose alarms, one i64 each, are `alarmed`.
        host_seconds: the time of each op without native code in the last run.
        objects: compiled kernels.
        notes: the compiler's remarks about its choices.
    """

    def __init__(
        self,
        program: Program,
        threads: int = 1,
        isa: Isa | None = None,
        cache: ObjectCache | None = None,
    ):
        """Compile. Raises UserError if an op has no CPU code or a weight is missing."""
        self._build(program, threads, Isa.host() if isa is None else isa)
        cache = ObjectCache() if cache is None else cache
        self._link(dict(zip(self._codes, cache.objects(self._texts, self.isa), strict=True)))

    @classmethod
    def together(cls, programs: Sequence[Program], threads: int) -> list[Self]:
        """Sessions of several programs, whose kernels are compiled in parallel."""
        sessions = [cls.__new__(cls) for _ in programs]
        codes: dict[str, str] = {}
        for session, program in zip(sessions, programs, strict=True):
            session._build(program, threads, Isa.host())
            codes |= dict(zip(session._codes, session._texts, strict=True))
        made = ObjectCache().objects(list(codes.values()), Isa.host())
        objects = dict(zip(codes, made, strict=True))
        for session in sessions:
            session._link(objects)
        return sessions

    def _build(self, program: Program, threads: int, isa: Isa) -> None:
        """Lower everything that does not need the kernels' objects."""
        self.isa = isa
        self._program = program
        self.constants = Constants(program)
        self.nests = self._nests()
        self.alarming = [c for c in self._running() if self._may_alarm(c)]
        self.arena, self.alarmed = self._allocate_arena()
        self.kept: dict[bytes, Array] = {}
        self.host_seconds: dict[str, float] = {}
        self._digests: dict[int, bytes] = {}
        self._starts: dict[SSAValue, BufferStart] = {}
        for k, arg in enumerate(program.main.body.block.args):
            self._starts[arg] = BufferStart(outside=k)
        self.patches: list[Patch] = []
        self.tables: dict[int, Array] = {}
        self.entries: dict[tuple[int, int], tuple[BufferStart, int]] = {}
        inputs = [_outside(name, type_) for name, type_ in program.inputs.items()]
        types = program.outputs
        self._handed_out = handed_out(program, self.constants.known)
        handed = [_outside(name, types[name]) for name in self._handed_out.values()]
        self.execution = Execution(inputs, handed, self.patches, threads)
        self.segments = self._lower()
        calls = [call for segment in self.segments for call in segment.calls]
        codes = {call.code.symbol: call.code.ir for call in calls}
        self._codes, self._texts = list(codes), list(codes.values())
        self.notes: Any = None

    @property
    def native_calls(self) -> int:
        """Count native calls so far; one per run unless opaque nodes split the program."""
        return self.execution.calls

    @property
    def arena_bytes(self) -> int:
        """Bytes of all intermediate buffers together."""
        return self.arena.nbytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of constants and packed weights."""
        return sum(array.nbytes for array in self.kept.values())

    @property
    def pool(self) -> Pool:
        """The number of threads that the program uses."""
        return self.execution.pool

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Inputs by name, of the exact shapes and dtypes.

        Raises:
            UserError: an input is missing or has another shape or dtype.
        """
        return self.execution.run(inputs)

    def run_into(self, inputs: Mapping[str, Array], out: Mapping[str, Array]) -> dict[str, Array]:
        """As `run`, with arrays that outputs are written into, by name."""
        return self.execution.run(inputs, out)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The op, and the kernel's symbol, of each kernel and host step in execution order."""
        found: list[tuple[str, str]] = []
        names = iter(self.host_seconds)
        for segment in self.segments:
            if segment.host is not None:
                found.append((next(names), "host"))
            found += [(_op_of(call), call.code.symbol) for call in segment.calls]
        return found

    def time(self, values: set[SSAValue], times: int = 1) -> float:
        """Seconds that the kernels defining these values take, on the buffers of the last run.

        Args:
            times: how often they run, one after the other; the seconds are for one run.
        """
        rows = [
            row
            for segment in self.segments
            if segment.table is not None
            for call, row in zip(segment.calls, segment.table.rows, strict=True)
            if call.arguments[-1].value in values
        ]
        return self.execution.time(KernelTable(np.array(rows * times, ROW))) / times

    def close(self) -> None:
        """Stop the worker threads."""
        self.execution.close()

    # --- building ---

    def _running(self) -> list[CallOp]:
        """The calls that are run, in order."""
        calls = [op for op in self._program.main.body.block.ops if isinstance(op, CallOp)]
        return [c for c in calls if c.outputs[0] not in self.constants.known]

    def _nests(self) -> dict[CallOp, Nests]:
        """The nests of the calls that have some."""
        found: dict[CallOp, Nests] = {}
        for op in self._running():
            nests = nests_of(op, lambda k, op=op: self.constants.get(op.inputs[k]))
            if nests is not None:
                found[op] = nests
        return found

    def _allocate_arena(self) -> tuple[Array, Array]:
        """Reserve intermediate buffers, followed by an i64 for each alarm."""
        size = self._program.module.attributes.get(ARENA)
        if not isinstance(size, IntegerAttr):
            raise UserError("the program has no memory plan", hint="run the pass plan-memory first")
        count, words = len(self.alarming), -(-size.value.data // 8)
        arena = room(max(1, 8 * (words + count)))
        return arena, alarms_in(arena, count)

    def _keep(self, array: Array) -> BufferStart:
        """Store a constant for as long as the session lives; equal ones are stored once."""
        if id(array) in self._digests:  # it is a stored array itself
            digest = self._digests[id(array)]
            return BufferStart(array.ctypes.data, constant=digest)
        flat = np.ascontiguousarray(array)
        digest = hashlib.blake2b(flat.view(np.uint8).data, digest_size=16).digest()
        if digest not in self.kept:
            self.kept[digest] = aligned(flat)
            self._digests[id(self.kept[digest])] = digest
        return BufferStart(self.kept[digest].ctypes.data, constant=digest)

    def _lower(self) -> list[Segment]:
        segments = [Segment()]
        for op in main_of(self._program.module).body.block.ops:
            if not op.results or op.results[0] in self.constants.known:
                continue
            check_time()
            calls = self._calls(op)
            if calls is None:
                segments += [Segment(host=self._host(op)), Segment()]
            else:
                segments[-1].calls += [self._with_stored_constants(call) for call in calls]
            self.constants.clear()  # kernels have packed or aligned copies of their constants
        return [s for s in segments if s.calls or s.host is not None]

    def _with_stored_constants(self, call: KernelCall) -> KernelCall:
        """The call, its constants stored as it reads them: they are never all in memory twice."""
        arguments = list(call.arguments)
        for k, argument in enumerate(arguments):
            if argument.data is not None:
                digest = self._keep(argument.data).constant
                assert digest is not None
                arguments[k] = replace(argument, data=self.kept[digest])
            elif argument.value is not None and argument.value in self.constants.known:
                self.start(argument.value)
        return replace(call, arguments=tuple(arguments))

    def _calls(self, op: Operation) -> list[KernelCall] | None:
        """The native calls of one op, with its results placed; None if the host must run it."""
        if isinstance(op, ViewOp):
            self._starts[op.result] = self.start(op.source)
            return []
        if isinstance(op, JoinOp):
            self._starts[op.result] = self._arena_start(op.result, op.properties.get("offset"))
            return lower_halo(op.result, self.isa)
        if isinstance(op, KernelOp):
            self._starts[op.result] = self._result_start(op.result, op.properties.get("offset"))
            halo = lower_halo(op.result, self.isa)
            if element_count(op.type) == 0:
                return halo
            with at_zero(op) as (copy, offsets):
                calls = self._kernel_calls(copy)
            return [*halo, *(call_of(op, call, copy, offsets) for call in calls)]
        if isinstance(op, CallOp):
            offsets = op.properties.get("offsets")
            for result, offset in zip(op.outputs, offsets, strict=True):  # pyright: ignore
                self._starts[result] = self._result_start(result, offset)
            if op in self.nests:
                with emitting(available=self.isa.has_avx512):
                    return lower_node(op, self.nests[op])
            return lower_gather(op, self.isa) if _is_gather(op) else None
        ours = op.name.startswith(("graph.", "algebra."))
        hint = (
            "lower to kernel first"
            if ours
            else "what runs is made of graph, algebra and kernel ops"
        )
        raise UserError("this op has no CPU code", where=where(op), hint=hint)

    def _kernel_calls(self, op: KernelOp) -> list[KernelCall]:
        match op:
            case GemmOp():
                return lower_gemm(op, self.constants, self.isa)
            case ConvOp():
                return lower_conv(op, self.constants, self.isa)
            case AttentionOp():
                return [self._single_call(op, emit_attention)]
            case TiledProductOp():
                return lower_tiled_product(op, self.constants, self.isa)
            case _:  # loops, and the kernels of plug-ins, whose scopes are their meaning
                return [self._single_call(op, emit_loops if tile_of(op) is None else emit_tiles)]

    def _single_call(self, op: Kernel, emit: Callable[[Kernel, Isa], KernelCode]) -> KernelCall:
        """The one call of an op that reads its operands as they are."""
        code = cached_code(op, self.isa, (), lambda: emit(op, self.isa))
        return KernelCall(code, tuple(Argument(value) for value in (*op.inputs, op.result)))

    def _result_start(self, value: OpResult, offset: Any) -> BufferStart:
        """Where an op writes a result: into what is handed out, or the arena."""
        if value in self._handed_out:
            number = list(self._handed_out).index(value)
            return BufferStart(outside=len(self.execution.inputs) + number)
        return self._arena_start(value, offset)

    def _arena_start(self, value: OpResult, offset: Any) -> BufferStart:
        if not isinstance(offset, IntegerAttr):
            raise UserError(
                "an op has no offset in the arena", where=where(value.op), hint="run plan-memory"
            )
        return BufferStart(self.arena.ctypes.data + offset.value.data)

    def start(self, value: SSAValue) -> BufferStart:
        """The start of a value's buffer; a constant is evaluated on first use."""
        if value in self.constants.known and value not in self._starts:
            data = _laid_out(self.constants[value], tensor_type(value))
            self._starts[value] = self._keep(data)
        return self._starts[value]

    def _link(self, objects: Mapping[str, bytes]) -> None:
        """Make the tables of calls, from the objects that define the kernels' symbols."""
        self.objects = [objects[symbol] for symbol in self._codes]
        self._library = Library(self.objects)
        for segment in self.segments:
            if segment.host is not None:
                self.execution.steps.append(segment.host)
                continue
            segment.table = KernelTable(self._rows(segment.calls))
            self.execution.steps.append(segment.table)
        self.execution.alarms, self.execution.alarmed = self._alarms(), self.alarmed
        self.outputs = self._outputs()
        self.execution.outputs = {name: self._view(value) for name, value in self.outputs.items()}
        self.constants.clear()
        _return_memory()

    def _alarms(self) -> list[Alarm]:
        """The meaning of each alarm, in order."""
        found: dict[CallOp, Alarm] = {}
        for step, segment in enumerate(self.segments):
            for row, call in enumerate(segment.calls):
                for op in (argument.alarm for argument in call.arguments):
                    if op is not None and op not in found:
                        view = self._view(self.indices_of(op))
                        found[op] = Alarm(step, row, view, self._sizes_of(op), place_of(op))
        return [found[op] for op in self.alarming]

    def indices_of(self, op: CallOp) -> SSAValue:
        """The operand that an alarm is about."""
        alarm = self.nests[op].alarm if op in self.nests else None
        return op.inputs[1 if alarm is None else alarm.operand]

    def _sizes_of(self, op: CallOp) -> tuple[int, ...]:
        alarm = self.nests[op].alarm if op in self.nests else None
        return (gathered_size(op),) if alarm is None else alarm.sizes

    def _may_alarm(self, op: CallOp) -> bool:
        """Whether an op reads indices that may be out of range."""
        if op not in self.nests:
            return _is_gather(op)
        return self.nests[op].alarm is not None and len(self.nests[op].nests) > 0

    def _rows(self, calls: Sequence[KernelCall]) -> Any:
        rows = np.zeros(len(calls), ROW)
        for row, call in zip(rows, calls, strict=True):
            table = np.zeros(len(call.arguments), np.uint64)
            self.tables[table.ctypes.data] = table
            for position, argument in enumerate(call.arguments):
                self._fill(table, position, argument)
            row["fn"] = self._library.address(call.code.symbol)
            row["args"] = table.ctypes.data
            row["items"] = call.code.items
        return rows

    def _fill(self, table: Array, position: int, argument: Argument) -> None:
        if argument.alarm is not None:
            number = self.alarming.index(argument.alarm)
            start, shift = BufferStart(self.alarmed.ctypes.data), 8 * number
        elif argument.data is not None:
            start, shift = self._keep(argument.data), 0
        else:
            value = argument.value
            assert value is not None
            shift = argument.offset * byte_width(tensor_type(value).element_type)
            start = self.start(value)
        self.entries[table.ctypes.data, position] = start, shift
        if start.outside is None:
            table[position] = start.address + shift
        else:
            self.patches.append(Patch(table, position, start.outside, shift))

    def _host(self, op: Operation) -> Callable[[], None]:
        """Run an op by its reference meaning, between native segments."""
        name = _host_name(op)
        if name in self.host_seconds:
            name += f" #{len(self.host_seconds)}"
        self.host_seconds[name] = 0.0
        reads = [self._view(value) for value in op.operands]
        writes = [self._view(value) for value in op.results]

        def run() -> None:
            started = time.perf_counter()
            operands = [
                self.execution.read(view).astype(reference_dtype(tensor_type(v).element_type))
                for view, v in zip(reads, op.operands, strict=True)
            ]
            results = evaluate_op(op, operands, {}, Arithmetic.COMPUTED)
            for view, array in zip(writes, results, strict=True):
                self.execution.read(view)[...] = array
            self.host_seconds[name] = time.perf_counter() - started

        return run

    def _outputs(self) -> dict[str, SSAValue]:
        values = return_of(self._program.module).arguments
        return dict(zip(self._program.output_names, values, strict=True))

    def _view(self, value: SSAValue) -> View:
        """A view of a value's elements."""
        type_ = tensor_type(value)
        dtype, shape = to_numpy(type_.element_type), shape_of(value)
        start = self.start(value)
        strides, offset, count = physical(type_)
        steps = tuple(s * dtype.itemsize for s in strides)
        width = dtype.itemsize
        place = start.address, offset * width, count * width, start.outside
        return View(dtype, shape, steps, *place)


def _host_name(op: Operation) -> str:
    """The name of an op for users: `TopK 'node'` for an opaque node, `graph.arg_max 'node'`."""
    if not isinstance(op, CallOp):
        return where(op)
    kind = op.config.data.get("op_type")
    return where(op).replace(
        op.name, kind.data if isinstance(kind, StringAttr) else op.callee.data, 1
    )


def _op_of(call: KernelCall) -> str:
    """The name for users of the op that a kernel computes."""
    value = call.arguments[-1].value if call.arguments else None
    owner = None if value is None else value.owner
    return where(owner) if isinstance(owner, Operation) else call.code.symbol


def _is_gather(op: CallOp) -> bool:
    return op.callee.data == "graph.gather"


def _return_memory() -> None:
    """Return pages freed by packing to the system, if the C library can (glibc)."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    trim = getattr(library, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _outside(name: str, type_: Tensor) -> Outside:
    return Outside(name, to_numpy(type_.element_type), type_.get_shape())


def _laid_out(array: Array, type_: Tensor) -> Array:
    """The buffer with an array in its type's layout, and zeros in the halo."""
    if layout_of(type_) == layout_of(logical(type_)):
        return array
    strides, offset, count = physical(type_)
    buffer = np.zeros(count, array.dtype)
    steps = [s * array.itemsize for s in strides]
    strided(buffer[offset:], array.shape, steps)[...] = array
    return buffer
