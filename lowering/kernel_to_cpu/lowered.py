"""Lower one program's ops to calls of kernels, and give its values their buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.control import ControlOp, LoopOp, body_module
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
from ...dialects.program import Program, return_of, where, without_code
from ...dialects.schedule import tile_of
from ...dialects.types import Array, Tensor, byte_width, element_count, strided, tensor_type
from .code_cache import cached_code
from .constants import Constants
from .control_calls import bytes_of, control_calls, copy_code
from .emit.avx512 import emitting
from .emit.module import KernelCode
from .isa import Isa
from .kernel_call import Argument, BufferStart, KernelCall
from .nests.gather import gathered_size, lower_gather
from .nests.halo import lower_halo
from .nests.loops import emit_loops
from .nests.node import lower_node, nests_of
from .nests.tiles import emit_tiles
from .outputs import handed_out
from .products.attention import emit_attention
from .products.contraction import lower_conv, lower_gemm
from .products.transformed_product import lower_tiled_product
from .rebase import at_zero, call_of
from .runtime.execute import ALIGNMENT, aligned

if TYPE_CHECKING:
    from ..node_to_nest.find import Nests

Kernel = TypeVar("Kernel", bound=KernelOp)


# What the sessions of this process keep, by the hash of the bytes: equal arrays are there once.
_SHARED: WeakValueDictionary[bytes, Array] = WeakValueDictionary()


class Store:
    """Constants and packed weights as kernels read them: `kept`, by the hash of their bytes."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Array] = {}
        self._digests: dict[int, bytes] = {}

    def keep(self, array: Array) -> BufferStart:
        """Store a constant for as long as the session lives; equal ones are stored once."""
        if id(array) in self._digests:  # it is a stored array itself
            digest = self._digests[id(array)]
            return BufferStart(array.ctypes.data, constant=digest)
        flat = np.ascontiguousarray(array)
        digest = hashlib.blake2b(flat.view(np.uint8).data, digest_size=16).digest()
        if digest not in self.kept:
            shared = _SHARED.get(digest)
            self.kept[digest] = aligned(flat) if shared is None else shared
            _SHARED[digest] = self.kept[digest]
            self._digests[id(self.kept[digest])] = digest
        return BufferStart(self.kept[digest].ctypes.data, constant=digest)


class Lowered:
    """A program whose ops become calls: what a session runs, or the body of a loop or a branch.

    Attributes:
        arena_start: the address of the program's intermediate buffers.
        nests: what runs the kept ONNX nodes that have loop nests.
        bodies: the lowered bodies of its loops and branches.
        alarming: the ops that may meet an invalid index, those of bodies last, and the sizes of the
            dims that they index.
    """

    def __init__(self, program: Program, isa: Isa, store: Store) -> None:
        self.isa, self.store, self.program = isa, store, program
        self.constants = Constants(program)
        self.nests = self._nests()
        control = [op for op in self.ops() if isinstance(op, ControlOp)]
        self.bodies = {
            op: [LoweredBody(op, k, self) for k in range(len(op.bodies))] for op in control
        }
        calls = [c for c in self._called() if self._may_alarm(c)]
        self.alarming = {call: self._sizes_of(call) for call in calls}
        for bodies in self.bodies.values():
            for body in bodies:
                self.alarming |= body.alarming
        self.arena_start = 0
        arguments = program.main.body.block.args
        self._starts: dict[SSAValue, BufferStart] = {
            argument: BufferStart(outside=k) for k, argument in enumerate(arguments)
        }
        self.handed_out = self._given_away()

    def _given_away(self) -> dict[OpResult, str]:
        """The results written outside the arena, each with the output that it is."""
        return handed_out(self.program, self.constants.known)

    def ops(self) -> list[Operation]:
        """The ops that are run or place a value, in order."""
        ops = self.program.main.body.block.ops
        return [op for op in ops if op.results and op.results[0] not in self.constants.known]

    def _called(self) -> list[CallOp]:
        return [op for op in self.ops() if isinstance(op, CallOp)]

    def _nests(self) -> dict[CallOp, Nests]:
        """The nests of the calls that have some."""
        found: dict[CallOp, Nests] = {}
        for op in self._called():
            nests = nests_of(op, lambda k, op=op: self.constants.get(op.inputs[k]))
            if nests is not None:
                found[op] = nests
        return found

    def with_stored_constants(self, call: KernelCall) -> KernelCall:
        """The call, its constants stored as it reads them: they are never all in memory twice."""
        arguments = list(call.arguments)
        for k, argument in enumerate(arguments):
            if argument.data is not None:
                digest = self.store.keep(argument.data).constant
                assert digest is not None
                arguments[k] = replace(argument, data=self.store.kept[digest])
            elif argument.value is not None and argument.value in self.constants.known:
                self.start(argument.value)
        return replace(call, arguments=tuple(arguments))

    def calls_of(self, op: Operation) -> list[KernelCall] | None:
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
        if isinstance(op, ControlOp):
            offsets = [] if op.offsets is None else op.offsets.data
            for result, offset in zip(op.outputs, offsets, strict=True):
                self._starts[result] = self._result_start(result, offset)
            bodies = self.bodies[op]
            assert op.scratch is not None
            place = op.scratch.value.data
            if not all(body.lower(self.arena_start + place) for body in bodies):
                return None
            return control_calls(op, bodies, place)
        raise without_code(op, "CPU")

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
        if value in self.handed_out:
            return BufferStart(outside=self._number_outside(value))
        return self._arena_start(value, offset)

    def _number_outside(self, value: OpResult) -> int:
        """The number of the outside array that a result is handed out as."""
        return len(self.program.main.body.block.args) + list(self.handed_out).index(value)

    def _arena_start(self, value: OpResult, offset: Any) -> BufferStart:
        if not isinstance(offset, IntegerAttr):
            raise UserError(
                "an op has no offset in the arena", where=where(value.op), hint="run plan-memory"
            )
        return BufferStart(self.arena_start + offset.value.data)

    def place(self, argument: Argument) -> tuple[BufferStart, int]:
        """Where an entry of an argument table points: a start, and the bytes after it."""
        if argument.data is not None:
            return self.store.keep(argument.data), 0
        if argument.arena is not None:
            return BufferStart(self.arena_start + argument.arena), 0
        if argument.outside is not None:
            return BufferStart(outside=argument.outside), 0
        value = argument.value
        assert value is not None
        return self.start(value), argument.offset * byte_width(tensor_type(value).element_type)

    def start(self, value: SSAValue) -> BufferStart:
        """The start of a value's buffer; a constant is evaluated on first use."""
        if value in self.constants.known and value not in self._starts:
            data = _laid_out(self.constants[value], tensor_type(value))
            self._starts[value] = self.store.keep(data)
        return self._starts[value]

    def indices_of(self, op: CallOp) -> SSAValue | None:
        """The operand that an alarm is about; None of an op in a body."""
        if op.parent is not self.program.main.body.block:
            return None
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


def _is_gather(op: CallOp) -> bool:
    return op.callee.data == "graph.gather"


def _laid_out(array: Array, type_: Tensor) -> Array:
    """The buffer with an array in its type's layout, and zeros in the halo."""
    if layout_of(type_) == layout_of(logical(type_)):
        return array
    strides, offset, count = physical(type_)
    buffer = np.zeros(count, array.dtype)
    steps = [s * array.itemsize for s in strides]
    strided(buffer[offset:], array.shape, steps)[...] = array
    return buffer


class LoweredBody(Lowered):
    """A body, lowered.

    Attributes:
        calls: the calls of one iteration.
    """

    def __init__(self, op: ControlOp, number: int, outer: Lowered) -> None:
        super().__init__(
            Program(body_module(op, number), outer.program.weights), outer.isa, outer.store
        )
        self.calls: list[KernelCall] = []
        first = len(op.carried) + op.is_conditional if isinstance(op, LoopOp) else 0
        self._rows = range(first, first + len(op.stacked)) if isinstance(op, LoopOp) else ()
        self.handed_out = {
            value: name for value, name in self.handed_out.items() if not self._is_shifted(value)
        }

    def _is_shifted(self, value: OpResult) -> bool:
        """Whether it is a row of a tensor whose rows do not all begin at a cache line."""
        outputs = list(return_of(self.program.module).arguments)
        number = self.program.output_names.index(self.handed_out[value])
        return number in self._rows and bytes_of(outputs[number]) % ALIGNMENT != 0

    def lower(self, arena_start: int) -> bool:
        """Make the calls. Returns whether all its ops have native code."""
        self.arena_start = arena_start
        for op in self.ops():
            check_time()
            calls = self.calls_of(op)
            if calls is None:
                return False
            self.calls += [self.with_stored_constants(call) for call in calls]
            self.constants.clear()
        self.calls += [self.with_stored_constants(call) for call in self._copies()]
        self.constants.clear()
        return True

    def _number_outside(self, value: OpResult) -> int:
        names = self.program.output_names
        return len(self.program.input_names) + names.index(self.handed_out[value])

    def _copies(self) -> list[KernelCall]:
        """The outputs that no kernel writes where they belong."""
        found: list[KernelCall] = []
        first, names = len(self.program.input_names), self.program.output_names
        for k, value in enumerate(return_of(self.program.module).arguments):
            if names[k] in self.handed_out.values() or element_count(tensor_type(value)) == 0:
                continue
            target = Argument(outside=first + k)
            found.append(KernelCall(copy_code(value), (Argument(value), target)))
        return found

    def patches(self) -> list[tuple[int, int, int]]:
        """Each entry of its argument tables that holds an outside array's address: its position in
        all of them, the array's number, the bytes after its start."""
        found: list[tuple[int, int, int]] = []
        position = 0
        for call in self.calls:
            for k, argument in enumerate(call.arguments):
                if argument.alarm is None and not argument.is_linked:
                    start, shift = self.place(argument)
                    if start.outside is not None:
                        found.append((position + k, start.outside, shift))
            position += len(call.arguments)
        return found
