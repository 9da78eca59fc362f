"""assign-layouts: choose the physical layout of every value, with reorders only at the edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.contraction_attr import channels_last
from ..dialects.floats import BITS, Floats
from ..dialects.kernel import (
    ConvOp,
    GemmOp,
    KernelOp,
    LayoutAttr,
    LoopsOp,
    layout_of,
    logical,
    with_layout,
)
from ..dialects.program import main_of
from ..dialects.scope_builder import ScopeBuilder, Source
from ..dialects.types import tensor_type
from ..lowering.algebra_to_kernel.constant import constant_values
from ..lowering.algebra_to_kernel.convert import enclose
from .convolution.row_major import stay_row_major


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Keep operands and results of convolutions channels last, with the zero halo they read.

    Loop nests follow their operands. gemm, view, call and the program's own inputs and outputs are
    row-major, and copies are inserted where the two kinds meet. Weights keep their layout: their
    readers pack them when the program is compiled. Filters that are no weights are copied, features
    last. Convolutions between row-major tensors may stay so (convolution/row_major.py).

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... } : tensor<1x8x6x6xf32>

    After:

        %2 = kernel.loops (%0 = %x) { ... } : tensor<1x3x6x6xf32, #kernel.layout<[0, 2, 3, 1], halo
               [0, 0, 1, 1], [0, 0, 1, 1]>>
        %3 = kernel.conv (%0 = %2, %1 = %w) { ... }
               : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
        %y = kernel.loops (%0 = %3) { ... } : tensor<1x8x6x6xf32>
    """

    name = "assign-layouts"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Assigner(constant_values(op)).run(main_of(op).body.block)


Dims = tuple[int, ...]
"""Dims in memory order."""


@dataclass
class _Assigner:
    constants: set[SSAValue]
    copies: dict[tuple[SSAValue, Dims | None], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Dims | None], SSAValue]
    )

    def run(self, block: Block) -> None:
        for op in list(block.ops):
            if op.results and op.results[0] in self.constants:
                continue
            if isinstance(op, ConvOp) and _assigned(op.outer(op.parameters.data)) is None:
                op = stay_row_major(op) or op
            self._operands(op)
            if isinstance(op, ConvOp):
                _set_layout(op.result, channels_last(op.parameters.out_order))
            elif isinstance(op, LoopsOp) and (dims := _followed(op)) is not None:
                _set_layout(op.result, dims)
        for op in block.ops:
            if isinstance(op, ConvOp) and op.result not in self.constants:
                grow_halo(op)

    def _operands(self, op: Operation) -> None:
        """Give the op operands in the layout it needs."""
        if isinstance(op, LoopsOp):
            return
        convolved = _operand(op, op.parameters.data) if isinstance(op, ConvOp) else None
        filters = _operand(op, op.parameters.weights) if isinstance(op, ConvOp) else None
        for k, value in enumerate(op.operands):
            wanted: Dims | None = None
            if k == convolved and isinstance(op, ConvOp):
                wanted = channels_last(op.parameters.data_order)
            elif value in self.constants:
                continue
            elif k == filters and isinstance(op, ConvOp):
                wanted = op.parameters.filters_in_order
            if isinstance(op, ConvOp | GemmOp) and _epilogue_only(op, k):
                continue
            if wanted != _assigned(value):
                op.operands[k] = self._copy(value, wanted, op)

    def _copy(self, value: SSAValue, dims: Dims | None, before: Operation) -> SSAValue:
        key = (value, dims)
        if key not in self.copies:
            build = ScopeBuilder()
            type_ = logical(value.type)
            scope = build.pointwise(type_, Source(value).here()).value.owner
            assert isinstance(scope, Operation)
            inputs, region = enclose(scope)  # pyright: ignore[reportArgumentType]
            scope.drop_all_references()
            layout = None if dims is None else LayoutAttr.of(dims)
            copy = LoopsOp(inputs, region, with_layout(type_, layout))
            Rewriter.insert_op(copy, InsertPoint.before(before))
            self.copies[key] = copy.result
        return self.copies[key]


def _followed(op: LoopsOp) -> Dims | None:
    """The layout of the first operand that has one and as many dims as the result."""
    rank = len(op.type.get_shape())
    same = (v for v in op.inputs if len(tensor_type(v).get_shape()) == rank)
    found = next((dims for v in same if (dims := _assigned(v)) is not None), None)
    return found if rank >= 3 else None


def _assigned(value: SSAValue) -> Dims | None:
    """Dims in memory order of a value to which a layout was assigned, None if it is row-major."""
    layout = tensor_type(value).encoding
    return layout.dims if isinstance(layout, LayoutAttr) else None


def _set_layout(value: SSAValue, dims: Dims) -> None:
    layout = LayoutAttr.of(dims)
    Rewriter.replace_value_with_new_type(value, with_layout(logical(value.type), layout))


def _operand(op: ConvOp, value: SSAValue) -> int:
    """Position of the operand that a region's argument stands for."""
    return op.body.block.args.index(value)  # pyright: ignore[reportArgumentType]


def _epilogue_only(op: KernelOp, position: int) -> bool:
    """Whether only the epilogue of a gemm or conv reads an operand, with any strides."""
    arg = op.body.block.args[position]
    return all(use.operation is not op.scopes[0] for use in arg.uses)


def grow_halo(op: ConvOp) -> None:
    """Widen the halo of the convolved operand to what this convolution reads."""
    found = op.parameters
    value = op.outer(found.data)
    type_ = tensor_type(value)
    layout = layout_of(type_)
    low, high = (list(side) for side in zip(*layout.halo, strict=True))
    for k, dim in enumerate(found.data_order[2:]):
        first, last = found.reach(k)
        low[dim] = max(low[dim], -first)
        high[dim] = max(high[dim], last - type_.get_shape()[dim] + 1)
    widened = with_layout(logical(type_), LayoutAttr.of(layout.dims, low, high))
    Rewriter.replace_value_with_new_type(value, widened)
