"""Convolutions between row-major tensors that stay row-major, as loops or as a product.

The kernel of convolutions runs channels last. Alone it would copy the image before and after: for
one filter a channel, and for a single tap, the copies take longer than the convolution. Depthwise
windows slide along rows in the lanes of vectors, as pools do; a single tap is a matrix product of
filters and pixels.
"""

from __future__ import annotations

import math

from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.index import iterators
from ...dialects.kernel import ConvOp, GemmOp, KernelOp, LoopsOp, YieldOp
from ...dialects.types import element_of, is_float, shape_of, tensor_type
from ...lowering.algebra_to_kernel.match import match_gemm
from .winograd import KernelBuilder, copy_epilogue

# Of a depthwise window, and of the rows that its lanes are: measured with vectors of 16, 7x7 taps
# are as fast either way, and rows of 7 twice as slow.
MAX_TAPS = 49
LEAST_WIDTH = 12
# Pixels of an image from which on a product of a single tap is faster.
LEAST_PIXELS = 400


def stay_row_major(op: ConvOp) -> KernelOp | None:
    """Replace a convolution of a row-major tensor, if that is faster; the op with its result.

    Where a convolution reads what this one makes, its image is copied once in any case.
    """
    if not op.parameters.channels_first or _is_convolved(op.result):
        return None
    if _slides_in_rows(op):
        return _replace(op, [LoopsOp(list(op.inputs), op.body.clone(), op.type)])
    return _replace(op, _product(op)) if _is_product(op) else None


def _is_convolved(value: SSAValue) -> bool:
    """Whether a convolution reads a value, or what loops make of it in the same dims."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, ConvOp):
            return True
        alike = isinstance(user, LoopsOp) and len(user.type.get_shape()) == len(shape_of(value))
        if alike and _is_convolved(user.results[0]):
            return True
    return False


def _slides_in_rows(op: ConvOp) -> bool:
    found = op.parameters
    depthwise = 1 < found.groups == found.features == found.channels and not found.transposed
    return depthwise and math.prod(found.kernel) <= MAX_TAPS and found.sizes[-1] >= LEAST_WIDTH


def _is_product(op: ConvOp) -> bool:
    if not is_float(element_of(op.scopes[0].result)):
        return False  # products of bytes have the weights on the right: signed, and packed
    found = op.parameters
    single = set(found.kernel) == set(found.strides) == {1} and found.groups == 1
    wide = math.prod(found.sizes) >= LEAST_PIXELS
    return single and wide and match_gemm(op.scopes[0]) is not None


def _follows_rows(op: ConvOp) -> bool:
    """Whether what follows depends on the pixel by the product alone: pixels stay one range."""
    arguments, rank = op.body.block.args, len(op.type.get_shape())
    here, pixels = iterators(rank), set(range(2, rank))
    reads = [read for scope in op.scopes[1:] for read in scope.reads()]
    return (
        shape_of(op.scopes[0].result) == op.type.get_shape()
        and all(scope.is_pointwise for scope in op.scopes[1:])
        and all(
            not any(e.iterators & pixels for e in read.index)
            if read.source in arguments
            else list(read.index) == here
            for read in reads
        )
    )


def _product(op: ConvOp) -> list[KernelOp]:
    """The matrix product, and loops over what follows it and is no epilogue."""
    if _follows_rows(op):
        return [GemmOp(list(op.inputs), op.body.clone(), op.type)]
    first, arguments = op.scopes[0], list(op.body.block.args)
    read = [arg for arg in arguments if arg in first.inputs]
    kernel = KernelBuilder([op.outer(arg) for arg in read])
    values = dict(zip(read, (s.value for s in kernel.sources), strict=True))
    clone = first.clone(values)  # pyright: ignore[reportArgumentType]
    kernel.block.add_ops([clone, YieldOp(clone.result)])
    product = GemmOp(kernel.inputs, Region(kernel.block), tensor_type(first.result))
    if len(op.scopes) == 1:
        return [product]
    later = {r.source for scope in op.scopes[1:] for r in scope.reads()}
    kept = [arg for arg in arguments if arg in later]
    rest = KernelBuilder([product.result, *(op.outer(arg) for arg in kept)])
    made: dict[SSAValue, SSAValue] = {first.result: rest.sources[0].value}
    made |= dict(zip(kept, (s.value for s in rest.sources[1:]), strict=True))
    rest.block.add_op(YieldOp(copy_epilogue(op, rest.block, made)))
    return [product, LoopsOp(rest.inputs, Region(rest.block), op.type)]


def _replace(op: ConvOp, made: list[KernelOp]) -> KernelOp:
    for new in made:
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
    last: Operation = made[-1]
    last.attributes |= op.attributes
    last.results[0].name_hint = op.result.name_hint
    Rewriter.replace_op(op, [], [last.results[0]])
    return made[-1]
