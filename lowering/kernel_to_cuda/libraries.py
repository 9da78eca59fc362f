"""`kernel.gemm` as a cuBLAS product and `kernel.conv` as a cuDNN convolution, where those fit.

The ops after the contraction are then a separate kernel, which works in place. A bias, a residual
and a relu after a convolution go to cuDNN as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.contraction_attr import ConvParameters
from ...dialects.index import Index, iterators
from ...dialects.kernel import ConvOp, GemmOp, KernelOp, LoopsOp, YieldOp, logical, physical
from ...dialects.scalars import Call, Const, Expr, Read
from ...dialects.types import Array, Tensor, shape_of, tensor_type
from ..algebra_to_kernel.match import Axis, gemm_of
from ..kernel_to_cpu.products.contraction import strides_in
from .print_reads import without_halo
from .program_data import ConvCall, ConvTensor, Fused, Gemm, GemmOperand

Number = Callable[[SSAValue], int]


def gemm_step(op: GemmOp, number: Number) -> Gemm | None:
    """The product for cuBLAS; None if its strides do not fit.

    Args:
        number: gives a value's buffer.
    """
    assert op.contraction is not None
    found = gemm_of(op.scopes[0], op.contraction, strides_in(op))
    if found is None or len(found.batch) > 1 or not _same_shape(op):
        return None
    batch = found.batch[0] if found.batch else Axis(1, 0, 0, 0)
    m, n, k = found.m, found.n, found.k
    a_strides, b_strides = (m.a, k.a), (k.b, n.b)
    a_value, b_value = (op.outer(read.source) for read in (found.a, found.b))
    a = _matrix(number(a_value), found.a_offset, (m.extent, k.extent), a_strides, batch.a)
    b = _matrix(number(b_value), found.b_offset, (k.extent, n.extent), b_strides, batch.b)
    if a is None or b is None:
        return None
    offset = physical(op.type)[1]
    row_stride = m.out if m.extent > 1 else n.extent
    c = GemmOperand(number(op.result), offset, m.extent, n.extent, row_stride, batch.out, False)
    return Gemm(a, b, c, m.extent, n.extent, k.extent, batch.extent, "float")


def _same_shape(op: KernelOp) -> bool:
    """Whether the raw contraction has the shape and type of the op's result."""
    return op.scopes[0].result.type == logical(op.type)


def _matrix(
    buffer: int, offset: int, size: tuple[int, int], strides: tuple[int, int], batch: int
) -> GemmOperand | None:
    """A matrix read with these strides: one of them must be 1 (or its extent)."""
    (rows, columns), (down, across) = size, strides
    if columns == 1 or across == 1:
        stride = down if rows > 1 else columns
        if columns == 1 and rows > 1 and down != 1 and across != 1:
            return GemmOperand(buffer, offset, rows, columns, down, batch, False)
        return GemmOperand(buffer, offset, rows, columns, max(stride, columns), batch, False)
    if rows == 1 or down == 1:
        return GemmOperand(buffer, offset, columns, rows, across, batch, True)
    return None


# --- convolution --------------------------------------------------------------------------------


def conv_step(op: ConvOp, number: Number, filter_: Callable[[SSAValue], int]) -> ConvCall | None:
    """The convolution for cuDNN; None if its padding differs between the sides.

    Args:
        number: gives a value's buffer.
        filter_: gives the buffer of the dense filter, by the value of the weights.
    """
    found = op.parameters
    data = op.outer(found.data)
    inside = tuple(shape_of(data)[dim] for dim in found.data_order[2:])
    if not _same_shape(op) or not _needs_even_pads(found, inside, found.sizes):
        return None
    weights = number_of_filter(op, found, filter_)
    dims = filter_dims(found)
    dense = ConvTensor(weights, 0, dims, _dense(dims))
    return ConvCall(
        _described(data, number, found.data_order),
        dense,
        _described(op.result, number, found.out_order),
        found.pads,
        found.strides,
        found.dilations,
        found.groups,
        found.transposed,
        "float",
        None if found.transposed else _fused(op, found, number),
    )


def number_of_filter(op: ConvOp, found: ConvParameters, filter_: Callable[[SSAValue], int]) -> int:
    """The buffer of the op's filter."""
    return filter_(op.outer(found.weights))


def _needs_even_pads(
    found: ConvParameters, inside: tuple[int, ...], outside: tuple[int, ...]
) -> bool:
    """Whether the result's size needs equal pads before and after; two dims are needed."""
    if found.transposed:
        inside, outside = outside, inside
    sizes = [
        (n + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
        for n, pad, dilation, taps, stride in zip(
            inside, found.pads, found.dilations, found.kernel, found.strides, strict=True
        )
    ]
    return len(sizes) >= 2 and tuple(sizes) == tuple(outside) and min(found.pads) >= 0


def filter_dims(found: ConvParameters) -> tuple[int, ...]:
    """(features, channels per group, *taps); channels first where transposed."""
    if found.transposed:
        return (found.channels, found.features // found.groups, *found.kernel)
    return (found.features, found.channels_per_group, *found.kernel)


def filter_data(array: Array, found: ConvParameters) -> Array:
    """The constant weights with their dims in the order of `filter_dims`."""
    spatial = len(found.kernel)
    position: dict[str | int, int] = {d: k for k, d in enumerate(found.filter_dims) if d != "_"}
    order = [position[d] for d in ("f", "c", *range(spatial)) if d in position]
    rest = [k for k in range(array.ndim) if k not in order]
    shape = (found.features, found.channels_per_group, *found.kernel)
    plain = array.transpose(*order, *rest).reshape(shape)
    if found.transposed:
        grouped = plain.reshape(found.groups, found.features // found.groups, *shape[1:])
        plain = grouped.swapaxes(1, 2).reshape(filter_dims(found))
    return np.ascontiguousarray(plain)


def _fused(op: ConvOp, found: ConvParameters, number: Number) -> Fused | None:
    """The following ops as max(it + bias [+ residual], 0); None if they are anything else."""
    first, *later = op.scopes
    here = tuple(iterators(len(first.traversal)))
    before, added = first.result, list[Read]()
    for scope in later:
        expr, last = scope.expr(), scope is later[-1]
        match expr:
            case Call("max", (inner, Const(0.0))) if last:
                expr = inner
            case _ if last:
                return None
            case _:
                pass
        terms = _added_reads(expr)
        if terms is None or sum(_reads(t, before, here) for t in terms) != 1:
            return None
        added += [t for t in terms if not _reads(t, before, here)]
        before = scope.result
    biases = [t for t in added if len(t.index) == 1 and t.index == (here[found.out_order[1]],)]
    others = [t for t in added if t not in biases]
    if len(biases) != 1 or len(others) > 1 or any(t.index != here for t in others):
        return None
    bias = op.outer(biases[0].source)
    flat = (1, found.features, *(1 for _ in found.sizes))
    residual = [_described(op.outer(t.source), number, found.out_order) for t in others]
    return Fused(ConvTensor(number(bias), 0, flat, _dense(flat)), *residual)


def _added_reads(expr: Expr) -> list[Read] | None:
    """The reads that an expression adds up; None if it is not a sum of reads."""
    match expr:
        case Read():
            return [expr]
        case Call("add", (left, right)):
            parts = [_added_reads(left), _added_reads(right)]
            return None if None in parts else [r for part in parts for r in part or ()]
        case _:
            return None


def _reads(read: Read, value: SSAValue, here: tuple[Index, ...]) -> bool:
    return read.source is value and tuple(read.index) == here


def _described(value: SSAValue, number: Number, order: Sequence[int]) -> ConvTensor:
    """The tensor with its dims in this order."""
    type_ = without_halo(tensor_type(value))
    (strides, offset, _), shape = physical(type_), type_.get_shape()
    dims, steps = (tuple(of[dim] for dim in order) for of in (shape, strides))
    return ConvTensor(number(value), offset, dims, steps)


def _dense(dims: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = list[int](), 1
    for n in reversed(dims):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


# --- what follows -------------------------------------------------------------------------------


def remainder(op: KernelOp) -> LoopsOp | None:
    """The scopes after the first as a kernel over the raw result, in the place of the op's result.

    The new op reads the old one's result; it is in no block, and must be dropped after use.
    """
    first, *later = op.scopes
    if not later:
        return None
    arguments = list(op.body.block.args)
    used = [arg for arg in arguments if any(arg in scope.inputs for scope in later)]
    inputs = [op.result, *(op.outer(arg) for arg in used)]
    block = Block(arg_types=[logical(value.type) for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip([first.result, *used], block.args, strict=True))
    for inner in op.body.block.ops:
        if inner is first or isinstance(inner, YieldOp):
            continue
        if isinstance(inner, OnesOp | ScopeOp):
            clone = inner.clone(values)
            values[inner.results[0]] = clone.results[0]
            block.add_op(clone)
    block.add_op(YieldOp(values[later[-1].result]))
    type_: Tensor = op.type
    loops = LoopsOp(inputs, Region(block), type_)
    loops.location = op.location
    return loops
