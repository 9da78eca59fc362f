"""Run a kernel-level program on the CPU: compile its kernels, place its buffers, call it.

The whole program is one native call over a table of kernels (runner.py). Only ops without native
code (`kernel.call` of an opaque node) split it, and then run on the host between native segments.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.deadline import check_time
from ...dialects.errors import UserError
from ...dialects.kernel import CallOp, physical
from ...dialects.op_reference import evaluate_op
from ...dialects.program import ARENA, Program, return_of, where
from ...dialects.types import (
    Array,
    Tensor,
    reference_dtype,
    shape_of,
    tensor_type,
    to_numpy,
)
from .isa import Isa
from .kernel_call import Argument, BufferStart, KernelCall, Places
from .lowered import Lowered, Store
from .nests.gather import place_of
from .runtime.execute import Alarm, Execution, Outside, Patch, View, alarms_in, room
from .runtime.jit import Library
from .runtime.object_cache import ObjectCache
from .runtime.runner import LOOP, ROW, KernelTable, Pool


@dataclass
class Segment:
    """Either a native table, or a host function to call."""

    calls: list[KernelCall] = field(default_factory=list[KernelCall])
    host: Callable[[], None] | None = None
    table: KernelTable | None = None


class CpuSession(Lowered):
    """A compiled program. Calls from several threads run one after the other.

    Attributes:
        arena: intermediate buffers.
        segments: native tables and host work, in order.
        tables, entries: argument tables by address; what each entry of a table is.
        nested: the rows and argument tables of bodies, by address in the tables.
        alarmed: an i64 for each op of `alarming`.
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
        super().__init__(program, isa, Store())
        self.arena, self.alarmed = self._allocate_arena()
        self.arena_start = self.arena.ctypes.data
        self.host_seconds: dict[str, float] = {}
        self.patches: list[Patch] = []
        self.tables: dict[int, Array] = {}
        self.nested: dict[int, Array] = {}
        self.entries: dict[tuple[int, int], tuple[BufferStart, int]] = {}
        inputs = [_outside(name, type_) for name, type_ in program.inputs.items()]
        types = program.outputs
        handed = [_outside(name, types[name]) for name in self.handed_out.values()]
        self.execution = Execution(inputs, handed, self.patches, threads)
        self.segments = self._lower()
        calls = [call for segment in self.segments for call in every_call(segment.calls)]
        codes = {call.code.symbol: call.code.ir for call in calls if call.body is None}
        self._codes, self._texts = list(codes), list(codes.values())
        self.notes: Any = None

    @property
    def kept(self) -> Mapping[bytes, Array]:
        """Constants and packed weights by the hash of their bytes."""
        return self.store.kept

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

    def run_into(
        self,
        inputs: Mapping[str, Array],
        out: Mapping[str, Array],
        shared: Collection[str] = (),
    ) -> dict[str, Array]:
        """As `run`, with arrays that outputs are written into, by name.

        Args:
            shared: as in `Execution.run`.
        """
        return self.execution.run(inputs, out, shared)

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

    def _allocate_arena(self) -> tuple[Array, Array]:
        """Reserve intermediate buffers, followed by an i64 for each alarm."""
        size = self.program.module.attributes.get(ARENA)
        if not isinstance(size, IntegerAttr):
            raise UserError("the program has no memory plan", hint="run the pass plan-memory first")
        count, words = len(self.alarming), -(-size.value.data // 8)
        arena = room(max(1, 8 * (words + count)))
        return arena, alarms_in(arena, count)

    def _lower(self) -> list[Segment]:
        segments = [Segment()]
        for op in self.ops():
            check_time()
            calls = self.calls_of(op)
            if calls is None:
                segments += [Segment(host=self._host(op)), Segment()]
            else:
                segments[-1].calls += [self.with_stored_constants(call) for call in calls]
            self.constants.clear()  # kernels have packed or aligned copies of their constants
        return [s for s in segments if s.calls or s.host is not None]

    def _link(self, objects: Mapping[str, bytes]) -> None:
        """Make the tables of calls, from the objects that define the kernels' symbols."""
        self.objects = [objects[symbol] for symbol in self._codes]
        self._library = Library(self.objects)
        for segment in self.segments:
            if segment.host is not None:
                self.execution.steps.append(segment.host)
                continue
            segment.table = KernelTable(self._rows(segment.calls, self)[0])
            self.execution.steps.append(segment.table)
        self.execution.alarms, self.execution.alarmed = self._alarms(), self.alarmed
        self.outputs = self._outputs()
        self.execution.outputs = {name: self._view(value) for name, value in self.outputs.items()}
        self.constants.clear()
        _return_memory()

    def _alarms(self) -> list[Alarm]:
        """The meaning of each alarm, in order."""
        found = {op: Alarm(0, 0, None, sizes, place_of(op)) for op, sizes in self.alarming.items()}
        seen: set[CallOp] = set()
        for step, segment in enumerate(self.segments):
            for row, call in enumerate(segment.calls):
                arguments = [a for inner in every_call([call]) for a in inner.arguments]
                for op in dict.fromkeys(argument.alarm for argument in arguments):
                    if op is not None and op not in seen:
                        seen.add(op)
                        indices = self.indices_of(op)
                        view = None if indices is None else self._view(indices)
                        found[op] = Alarm(step, row, view, self.alarming[op], place_of(op))
        return list(found.values())

    def _rows(self, calls: Sequence[KernelCall], program: Places) -> tuple[Any, Array]:
        """The rows of a program's calls, and all their argument tables one after another."""
        rows = np.zeros(len(calls), ROW)
        block = np.zeros(sum(len(call.arguments) for call in calls), np.uint64)
        end = 0
        for row, call in zip(rows, calls, strict=True):
            table = block[end : end + len(call.arguments)]
            end += len(table)
            self.tables[table.ctypes.data] = table
            for position, argument in enumerate(call.arguments):
                self._fill(table, position, argument, program)
            row["args"] = table.ctypes.data
            row["items"] = call.code.items
            if call.body is None:
                row["fn"] = self._library.address(call.code.symbol)
                continue
            row["flags"] = LOOP
            inner = self._rows(call.body.calls, call.body)
            self.nested |= {array.ctypes.data: array for array in inner}
            table[1:3] = [array.ctypes.data for array in inner]
        return rows, block

    def _fill(self, table: Array, position: int, argument: Argument, program: Places) -> None:
        if argument.alarm is not None:
            number = list(self.alarming).index(argument.alarm)
            start, shift = BufferStart(self.alarmed.ctypes.data), 8 * number
        elif argument.is_linked:
            start, shift = BufferStart(self.arena_start), 0
        else:
            start, shift = program.place(argument)
        self.entries[table.ctypes.data, position] = start, shift
        if start.outside is None:
            table[position] = start.address + shift
        elif program is self:  # the loop around a body does this for those of the body
            self.patches.append(Patch(table, position, start.outside, shift))

    def _host(self, op: Operation) -> Callable[[], None]:
        """Run an op by its reference meaning, between native segments."""
        name = _host_name(op)
        if name in self.host_seconds:
            name += f" #{len(self.host_seconds)}"
        self.host_seconds[name] = 0.0
        dtypes = [reference_dtype(tensor_type(value).element_type) for value in op.operands]
        reads = list(zip(map(self._view, op.operands), dtypes, strict=True))
        writes = [self._view(value) for value in op.results]

        def run() -> None:
            started = time.perf_counter()
            operands = [self.execution.read(view).astype(dtype) for view, dtype in reads]
            results = evaluate_op(op, operands, self.program.weights, Arithmetic.COMPUTED)
            for view, array in zip(writes, results, strict=True):
                self.execution.read(view)[...] = array
            self.host_seconds[name] = time.perf_counter() - started

        return run

    def _outputs(self) -> dict[str, SSAValue]:
        values = return_of(self.program.module).arguments
        return dict(zip(self.program.output_names, values, strict=True))

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
    # A loop's results are followed by memory of its own.
    value = next((a.value for a in reversed(call.arguments) if a.value is not None), None)
    owner = None if value is None else value.owner
    return where(owner) if isinstance(owner, Operation) else call.code.symbol


def every_call(calls: Sequence[KernelCall]) -> list[KernelCall]:
    """Calls, and those of their bodies."""
    found: list[KernelCall] = []
    for call in calls:
        found += [call, *([] if call.body is None else every_call(call.body.calls))]
    return found


def _return_memory() -> None:
    """Return pages freed by packing to the system, if the C library can (glibc)."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    trim = getattr(library, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _outside(name: str, type_: Tensor) -> Outside:
    return Outside(name, to_numpy(type_.element_type), type_.get_shape())
