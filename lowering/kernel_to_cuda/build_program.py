"""A kernel-level program as a CUDA program: kernels, the steps that run them, and buffers."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.control import IfOp, LoopOp
from ...dialects.errors import UserError
from ...dialects.index import row_major_strides
from ...dialects.kernel import (
    AttentionOp,
    CallOp,
    ConvOp,
    GemmOp,
    JoinOp,
    KernelOp,
    LoopsOp,
    TiledProductOp,
    ViewOp,
    physical,
)
from ...dialects.program import Program, main_of, return_of, where, without_code
from ...dialects.scalars import Read
from ...dialects.types import element_count, element_of, tensor_type, to_numpy
from .element_types import memory_type
from .libraries import conv_step, filter_data, filter_dims, gemm_step, remainder
from .print_contraction import Packed, TileOperand, is_tiled, print_contraction
from .print_gather import print_gather
from .print_loops import print_loops
from .print_reads import without_halo
from .program_data import Buffer, ConvCall, CudaKernel, CudaProgram, Kind, Launch, Port, Step
from .weights_file import WeightsFile, weights_file
from .writer import Names, identifier, origin

Form: TypeAlias = "Packed | tuple[int, ...] | None"
"""How a buffer stores a constant: packed, as a dense filter, or in its type's order."""

ARENA = "isoform.arena_bytes"


def cuda_program(
    program: Program, with_weights: bool = True, libraries: Collection[str] = ()
) -> CudaProgram:
    """Print all kernels of a program with memory addresses, and list the steps.

    Args:
        with_weights: whether to make the weights file's contents; its size is known without them.
        libraries: `cublas` and `cudnn`, used for products and convolutions where they can;
            an op's schedule may override this with `library = "..."`.

    Raises:
        UserError: an op has no CUDA code, the memory plan or a weight is missing.
    """
    return _Builder(program, weights_file(program), libraries).build(with_weights)


@dataclass
class _Builder:
    program: Program
    file: WeightsFile
    libraries: Collection[str]
    kernels: list[CudaKernel] = field(default_factory=list[CudaKernel])
    steps: list[Step] = field(default_factory=list[Step])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    _of: dict[tuple[SSAValue, Form], int] = field(
        default_factory=dict[tuple[SSAValue, "Form"], int]
    )
    _printed: dict[str, int] = field(default_factory=dict[str, int])
    _kernel_names: Names = field(default_factory=Names)
    _buffer_names: Names = field(default_factory=Names)

    def build(self, with_weights: bool) -> CudaProgram:
        module = self.program.module
        results = return_of(module).arguments
        self.outputs = set(results)
        main = main_of(module).body.block
        inputs = tuple(
            self._port(name, arg, self._add(arg, None, name, 0, "input"))
            for name, arg in zip(self.program.input_names, main.args, strict=True)
        )
        for op in main.ops:
            if op.results and op.results[0] not in self.file.constants.known:
                self._op(op)
        outputs = tuple(
            self._port(name, value, self.buffer(value))
            for name, value in zip(self.program.output_names, results, strict=True)
        )
        contents = self.file.contents() if with_weights else b""
        return CudaProgram(
            tuple(self.kernels),
            tuple(self.steps),
            tuple(self.buffers),
            inputs,
            outputs,
            _arena_bytes(module),
            self.file.size,
            contents,
        )

    def _port(self, name: str, value: SSAValue, buffer: int) -> Port:
        type_ = without_halo(tensor_type(value))
        dtype, shape = to_numpy(type_.element_type).name, type_.get_shape()
        strides, offset, _ = physical(type_)
        dense = strides == row_major_strides(shape)
        return Port(name, dtype, shape, buffer, offset, None if dense else strides)

    # --- buffers ---

    def _add(self, value: SSAValue, form: Form, name: str, offset: int, kind: Kind) -> int:
        count = physical(tensor_type(value))[2]
        ctype = memory_type(element_of(value))
        name = self._buffer_names.fresh(name)
        self.buffers.append(Buffer(name, ctype, count, offset, kind))
        self._of[value, form] = len(self.buffers) - 1
        return len(self.buffers) - 1

    def buffer(self, value: SSAValue, packed: Packed | None = None) -> int:
        """The number of the buffer that holds a value; constants get theirs on first use."""
        if (value, packed) in self._of:
            return self._of[value, packed]
        if value not in self.file.constants.known:
            assert isinstance(value.owner, ViewOp)
            return self.buffer(value.owner.source)
        return self._weight(value, packed, *self.file.add(value, packed))

    def _weight(self, value: SSAValue, form: Form, offset: int, count: int) -> int:
        assert isinstance(value.owner, Operation)
        name = value.name_hint or f"{origin(value.owner)}_weight"
        number = self._add(value, form, name, offset, "weight")
        self.buffers[number] = replace(self.buffers[number], elements=count)
        return number

    def _place_buffer(self, value: SSAValue, offset: Attribute | None, op: Operation) -> None:
        """Give an op's result its buffer in the arena."""
        if not isinstance(offset, IntegerAttr):
            raise UserError(
                "an op has no offset in the arena", where=where(op), hint="run plan-memory"
            )
        kind: Kind = "output" if value in self.outputs else "temporary"
        self._add(value, None, value.name_hint or origin(op), offset.value.data, kind)

    # --- ops ---

    def _op(self, op: Operation) -> None:
        match op:
            case ViewOp():
                pass
            case JoinOp():
                self._place_buffer(op.result, op.offset, op)
            case AttentionOp():
                raise UserError("attention as one kernel has no CUDA code", where=where(op))
            case TiledProductOp():
                raise UserError("a tiled product has no CUDA code", where=where(op))
            case KernelOp():
                self._place_buffer(op.result, op.offset, op)
                if element_count(op.type):
                    self._kernel(op)
            case CallOp() if op.callee.data == "graph.gather":
                offsets = op.offsets
                self._place_buffer(op.outputs[0], None if offsets is None else offsets.data[0], op)
                kernel = print_gather(op, self._kernel_name(op))
                self._launch(kernel, [TileOperand(v) for v in op.inputs], op.outputs[0])
            case CallOp():
                raise UserError(f"'{op.callee.data}' has no CUDA code", where=where(op))
            case LoopOp() | IfOp():
                hint = "compile it for the cpu"
                raise UserError("control flow has no CUDA code", where=where(op), hint=hint)
            case _:
                raise without_code(op, "CUDA")

    def _kernel(self, op: KernelOp) -> None:
        if self._library(op):
            return
        found, name = is_tiled(op), self._kernel_name(op)
        if found is None:
            kernel, operands = print_loops(op, name), [TileOperand(v) for v in op.inputs]
        else:
            kernel, operands = print_contraction(op, found, self.file.constants.known, name)
        self._launch(kernel, operands, op.result)

    def _library(self, op: KernelOp) -> bool:
        """Run the op's contraction by a library and the rest by a kernel; False if none fits."""
        step: Step | None = None
        if any(element_of(value) != f32 for value in op.scopes[0].inputs):
            return False
        if isinstance(op, GemmOp) and self._wants(op, "cublas"):
            step = gemm_step(op, self.buffer)
        elif isinstance(op, ConvOp) and self._wants(op, "cudnn") and self._packs(op):
            step = conv_step(op, self.buffer, lambda value: self._filter(op, value))
        if step is None:
            return False
        self.steps.append(step)
        if isinstance(step, ConvCall) and step.fused is not None:
            return True
        rest = remainder(op)
        if rest is not None:
            kernel = print_loops(rest, self._kernel_name(op), in_place=True)
            self._launch(kernel, [TileOperand(v) for v in rest.inputs], op.result)
            rest.drop_all_references()
        return True

    def _wants(self, op: KernelOp, library: str) -> bool:
        named = None if op.schedule is None else op.schedule.data.get("library")
        if isinstance(named, StringAttr):
            return named.data == library
        return library in self.libraries

    def _packs(self, op: ConvOp) -> bool:
        """Whether a filter is a constant, which is written as the library wants it."""
        return op.outer(op.parameters.weights) in self.file.constants.known

    def _filter(self, op: ConvOp, value: SSAValue) -> int:
        """The buffer of a convolution's dense filter."""
        found = op.parameters
        dims = filter_dims(found)
        if (value, dims) not in self._of:
            constants = self.file.constants
            offset = self.file.reserve(
                math.prod(dims) * 4, lambda: filter_data(constants[value], found)
            )
            self._weight(value, dims, offset, math.prod(dims))
        return self._of[value, dims]

    def _kernel_name(self, op: Operation) -> str:
        return f"{identifier(_title(op))}_kernel"

    def _launch(self, kernel: CudaKernel, operands: list[TileOperand], result: SSAValue) -> None:
        """Run a kernel; equal kernels are shared."""
        code = kernel.definition.partition('extern "C"')[2]
        key = f"{kernel.grid} {code.replace(f'{kernel.name}(', '(', 1)}"
        if key not in self._printed:
            self._printed[key] = len(self.kernels)
            name = self._kernel_names.fresh(kernel.name)
            self.kernels.append(_renamed(kernel, name))
        buffers = [self.buffer(o.value, o.packed) for o in operands]
        self.steps.append(Launch(self._printed[key], (*buffers, self.buffer(result))))


def _renamed(kernel: CudaKernel, name: str) -> CudaKernel:
    if name == kernel.name:
        return kernel
    definition = kernel.definition.replace(f"{kernel.name}(", f"{name}(", 1)
    source = "\n\n".join([*kernel.preamble, definition])
    return replace(kernel, name=name, source=source, definition=definition)


def _title(op: Operation) -> str:
    """The name of a kernel: its op's source name, else its kind."""
    name = origin(op)
    if name != op.name.rpartition(".")[2]:
        return name
    if isinstance(op, LoopsOp):
        scope = op.scopes[-1]
        sums = [s.reduction.data for s in op.scopes if s.summation]
        if sums:
            return "_".join(sums)
        return "copy" if isinstance(scope.expr(), Read) else "pointwise"
    return name


def _arena_bytes(module: ModuleOp) -> int:
    size = module.attributes.get(ARENA)
    if not isinstance(size, IntegerAttr):
        raise UserError("the program has no memory plan", hint="run the pass plan-memory first")
    return size.value.data
