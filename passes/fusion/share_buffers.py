"""share-buffers: read a part of a buffer where it is, instead of copying it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.control import is_body
from ...dialects.floats import BITS, Floats
from ...dialects.index import normalise
from ...dialects.kernel import ConvOp, GemmOp, LoopsOp, ViewOp, layout_of, physical
from ...dialects.layout import address_of, layout_inside, with_layout
from ...dialects.program import main_of, return_of
from ...dialects.scope_body import in_bounds
from ...dialects.types import Tensor, shape_of, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.algebra_to_kernel.match import gemm_of, row_major
from ..copies.algebra_inline_copies import copied

Retyped: TypeAlias = dict[SSAValue, Tensor]
"""Values that get another layout, with their new types."""


@dataclass(frozen=True)
class ShareBuffers(ModulePass):
    """Turn a copy of a part of a buffer (a slice, a part of a split) into a `kernel.view` of it.

    Its elements must lie in its source's buffer as some layout describes: an offset, and strides
    that are multiples of each other. A copy that reorders dims stays. All readers must take the
    elements where they are. Loops take any strides, a product those that keep it a strided product,
    a convolution those of its order of dims if it needs no halo and its filters stay without gaps;
    outputs may lie anywhere, but not those of a loop's body.

    Before:

        %k = kernel.loops (%0 = %y) {
          %1 = algebra.scope (m: 74, n: 96) %0[m, n + 96] : tensor<74x96xf32>
          kernel.yield %1 : tensor<74x96xf32>
        } : tensor<74x96xf32>

    After:

        %k = kernel.view %y : tensor<74x288xf32>
               to tensor<74x96xf32, #kernel.layout<[0, 1], room [0, 96], [0, 96]>>
    """

    name = "share-buffers"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = constant_values(op)
        for kernel in list(main_of(op).body.block.ops):
            if isinstance(kernel, LoopsOp) and kernel.result not in constants:
                _share(kernel)
        main, results = main_of(op), return_of(op).operands
        types = [value.type for value in results]
        main.function_type = FunctionType.from_lists(list(main.function_type.inputs), types)


def _share(op: LoopsOp) -> None:
    type_ = _part(op)
    retyped: Retyped = {}
    if type_ is None or not _takes(op.result, type_, retyped):
        return
    (source,) = op.inputs
    view = ViewOp(source, type_)
    view.location = op.location
    view.attributes |= op.attributes
    view.result.name_hint = op.result.name_hint
    del retyped[op.result]
    Rewriter.replace_op(op, view)
    for value, new in retyped.items():
        Rewriter.replace_value_with_new_type(value, new)


def _part(op: LoopsOp) -> Tensor | None:
    """The type that describes where the copied elements lie in the source; None if none does."""
    layout = layout_of(op.type)
    if len(op.scopes) != 1 or any(a or b for a, b in (*layout.halo, *layout.room)):
        return None
    (scope,) = op.scopes
    read = copied(scope)
    if read is None or read.source not in op.body.block.args or not in_bounds(read, scope.extents):
        return None
    source = tensor_type(op.inputs[0])
    if source.element_type != op.type.element_type:
        return None
    address = normalise(address_of(read.index, source), scope.extents)
    found = layout_inside(scope.traversal, layout.dims, address, physical(source)[2])
    return None if found is None else with_layout(op.type, found)


def _takes(value: SSAValue, type_: Tensor, retyped: Retyped) -> bool:
    """Whether all readers take a value of this type; views of it are added to `retyped`."""
    retyped[value] = type_
    return all(
        _reads(reader, value, retyped) for reader in dict.fromkeys(u.operation for u in value.uses)
    )


def _reads(reader: Operation, value: SSAValue, retyped: Retyped) -> bool:
    match reader:
        case LoopsOp():
            return True
        case ReturnOp():
            module = reader.get_toplevel_object()
            return not (isinstance(module, ModuleOp) and is_body(module))
        case GemmOp():
            return _stays_product(reader, retyped)
        case ConvOp():
            halo = layout_of(tensor_type(value)).halo
            return not any(map(any, halo)) and _stays_convolution(reader, retyped)
        case ViewOp():
            source, shape = retyped[value], shape_of(reader.result)
            address, order = address_of(reader.index(), source), range(len(shape))
            found = layout_inside(shape, order, normalise(address, shape), physical(source)[2])
            if found is None:
                return False
            return _takes(reader.result, with_layout(tensor_type(reader.result), found), retyped)
        case _:
            return False


def _stays_product(op: GemmOp, retyped: Mapping[SSAValue, Tensor]) -> bool:
    """Whether the operands of the product are still strided ranges."""
    assert op.contraction is not None
    arguments = list(op.body.block.args)

    def strides(value: SSAValue) -> tuple[Sequence[int], int]:
        if value not in arguments:
            return row_major(value)
        outer = op.outer(value)
        return physical(retyped.get(outer, tensor_type(outer)))[:2]

    return gemm_of(op.scopes[0], op.contraction, strides) is not None


def _stays_convolution(op: ConvOp, retyped: Mapping[SSAValue, Tensor]) -> bool:
    """Whether filters that were without gaps, features last, still are: the CPU wants them so."""
    found = op.parameters
    filters, dims = op.outer(found.weights), found.filters_in_order
    if filters not in retyped or not _dense(tensor_type(filters), dims):
        return True
    return _dense(retyped[filters], dims)


def _dense(type_: Tensor, dims: Sequence[int]) -> bool:
    """Whether these dims, from outermost to innermost, lie in memory as if alone."""
    strides, shape, step = physical(type_)[0], type_.get_shape(), 1
    for dim in reversed(dims):
        if shape[dim] > 1 and strides[dim] != step:
            return False
        step *= shape[dim]
    return True
