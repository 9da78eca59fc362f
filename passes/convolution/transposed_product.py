"""transposed-product: a transposed convolution as one matrix product, and sums of its overlaps.

p[n, a, b, f, r, s] = sum over c of x[n, c, a, b] * w[c, f, r, s]
y[n, f, h, w] = sum over the taps that land on h and w of p
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import OnesOp
from ...dialects.contraction_attr import ConvParameters
from ...dialects.floats import ROUNDING, Floats
from ...dialects.index import iterators
from ...dialects.kernel import (
    ConvOp,
    GemmOp,
    LayoutAttr,
    LoopsOp,
    YieldOp,
    layout_of,
    logical,
    with_layout,
)
from ...dialects.program import add_provenance, main_of, printed_names, provenance
from ...dialects.types import element_of, shape_of, tensor, tensor_type
from .winograd import KernelBuilder, copy_epilogue

RULE = "transposed-product"


@dataclass(frozen=True)
class TransposedProduct(ModulePass):
    """Replace transposed 2-D convolutions by a product over all taps, and a sum of its parts.

    It multiplies the same pairs and adds them in another order. It pays with few features: the
    product's columns are features times taps. `tune` measures it there. `only` selects one result
    by its printed name.

    Before:

        %y = kernel.conv (%0 = %x, %1 = %w) { ... sum (c: 64, r: 4, s: 4) ... }

    After:

        %p = kernel.gemm (%0 = %x, %1 = %w) { ... sum (c: 64) ... }
        %y = kernel.loops (%0 = %p) { ... sum (t: 2, u: 2) ... }

    Source: EinNet (Zheng et al. 2023), where such sums are eOperators.
    """

    name = "transposed-product"
    floats: ClassVar[Floats] = ROUNDING
    only: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convs = [o for o in main_of(op).body.block.ops if isinstance(o, ConvOp)]
        names = printed_names(op, [conv.result for conv in convs]) if self.only else {}
        for conv in convs:
            if self.only in (None, names.get(conv.result)) and is_transposed(conv):
                as_product(conv)


def is_transposed(op: ConvOp) -> bool:
    """Whether this is a transposed 2-D convolution, undilated, of one group, weights [c, f, r, s].

    Its data must be channels-last: positions are then the rows of a matrix.
    """
    found = op.parameters
    return (
        element_of(found.data) == f32
        and found.transposed
        and found.channels_first
        and found.filter_dims == ("c", "f", 0, 1)
        and set(found.dilations) == {1}
        and found.groups == 1
        and layout_of(tensor_type(op.outer(found.data))).dims == (0, 2, 3, 1)
        and shape_of(op.scopes[0].result) == op.type.get_shape()
    )


def as_product(op: ConvOp) -> list[Operation]:
    """Replace the convolution by a product and a sum."""
    found = op.parameters
    plain, made = _without_halo(op.outer(found.data), op)
    product = _product(plain, op.outer(found.weights))
    made += [product, _sums(op, found, product.result)]
    for new in made:
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
    last = made[-1]
    last.results[0].name_hint = op.result.name_hint
    add_provenance(last, [*provenance(op), RULE])
    Rewriter.replace_op(op, [], [last.results[0]])
    return made


def _without_halo(value: SSAValue, reader: Operation) -> tuple[SSAValue, list[Operation]]:
    """The value in a buffer without gaps: its own, if it has no other reader, or a copy's."""
    type_ = tensor_type(value)
    plain = with_layout(logical(type_), LayoutAttr.of(layout_of(type_).dims))
    if type_ == plain:
        return value, []
    if all(use.operation is reader for use in value.uses):
        return Rewriter.replace_value_with_new_type(value, plain), []
    kernel = KernelBuilder([value])
    copy = kernel.loops(kernel.scope(logical(type_), kernel.sources[0].here()), plain)
    return copy.result, [copy]


def _product(data: SSAValue, weights: SSAValue) -> GemmOp:
    kernel = KernelBuilder([data, weights])
    x, w_ = kernel.sources
    images, channels, height, width = shape_of(data)
    n, a, b, f, r, s, c = iterators(7)
    shape = tensor([images, height, width, *shape_of(weights)[1:]])
    out = kernel.scope(shape, x[n, c, a, b] * w_[c, f, r, s], [channels])
    kernel.block.add_op(YieldOp(out.value))
    return GemmOp(kernel.inputs, Region(kernel.block), shape)


def _sums(op: ConvOp, found: ConvParameters, product: SSAValue) -> LoopsOp:
    """Tap r = stride * t + (h + pad) mod stride lands on h from (h + pad) // stride - t."""
    arguments = list(op.body.block.args)
    gone = {found.data, found.weights}
    read_later = {r.source for scope in op.scopes[1:] for r in scope.reads()}
    kept = [k for k, arg in enumerate(arguments) if arg not in gone or arg in read_later]
    kernel = KernelBuilder([product, *(op.inputs[k] for k in kept)])
    n, f, h, w, t, u = iterators(6)
    (p, q), (down, across) = found.pads, found.strides
    high, wide = h + p, w + q
    read = kernel.sources[0][
        n,
        high // down - t,
        wide // across - u,
        f,
        t * down + high % down,
        u * across + wide % across,
    ]
    taps = [-(-k // stride) for k, stride in zip(found.kernel, found.strides, strict=True)]
    whole = kernel.scope(logical(op.type), read, taps)
    values: dict[SSAValue, SSAValue] = {op.scopes[0].result: whole.value}
    for position, k in enumerate(kept, start=1):
        values[arguments[k]] = kernel.sources[position].value
    block = kernel.block
    result = copy_epilogue(op, block, values)
    for inner in list(block.ops):
        if isinstance(inner, OnesOp) and not any(inner.result.uses):
            inner.detach()  # the guard of the convolution
            inner.erase()
    block.add_op(YieldOp(result))
    return LoopsOp(kernel.inputs, Region(block), op.type)
