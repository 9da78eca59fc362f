"""The products whose precision can be lowered, and what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.builder import GraphBuilder
from ...dialects.byte_ranges import to_bytes
from ...dialects.graph.contraction import ConvOp, ConvTransposeOp, MatmulOp
from ...dialects.program import main_of
from ...dialects.types import element_of, shape_of
from ...dialects.weights_only import weights_only
from ..integer_products import MAX_TERMS, terms

Product: TypeAlias = "ConvOp | ConvTransposeOp | MatmulOp"
PRODUCTS = (ConvOp, ConvTransposeOp, MatmulOp)


class OpsBefore(GraphBuilder):
    """Puts ops before one of a program; they stand at its place in the source."""

    def __init__(self, anchor: Operation) -> None:
        super().__init__()
        self.anchor = anchor

    def append(self, op: Operation, name: str = "") -> SSAValue:
        op.location = self.anchor.location
        Rewriter.insert_op(op, InsertPoint.before(self.anchor))
        return op.results[0]


# --- half floats ----------------------------------------------------------------------------------


def _half(element: Attribute) -> Callable[[Product], SSAValue]:
    """The product of operands rounded to a half float, whose sum is rounded to one."""

    def lowered(op: Product) -> SSAValue:
        build = OpsBefore(op)
        operands = [build.cast(v, to=element) for v in op.operands]
        settings = {name: op.value(name) for name in op.properties}
        return build.cast(build.append(type(op)(*operands, **settings)), to=f32)

    return lowered


# --- bytes ----------------------------------------------------------------------------------------


def _of_bytes(op: Product) -> SSAValue:
    """The product of data as unsigned bytes, over their range, and weights as signed ones.

    Written with floats, as a model in QDQ form; `integer-products` makes it one of integers.
    """
    build = OpsBefore(op)
    data, weights, *bias = op.operands
    operands = [_dequantised(build, data), _dequantised_weights(build, weights, _column(op)), *bias]
    settings = {name: op.value(name) for name in op.properties}
    return build.append(type(op)(*operands, **settings))


def _dequantised(build: GraphBuilder, x: SSAValue) -> SSAValue:
    """Floats as bytes stand for them."""
    whole, scale, zero = to_bytes(build, x)
    shape = shape_of(x)
    apart = build.sub(build.cast(whole, to=i32), build.expand(build.cast(zero, to=i32), shape))
    return build.mul(build.cast(apart, to=f32), build.expand(scale, shape))


def _dequantised_weights(build: GraphBuilder, w: SSAValue, column: int | None) -> SSAValue:
    """Weights as signed bytes stand for them, with a scale for each index of a dim, or one."""
    shape = shape_of(w)
    axes = [k for k in range(len(shape)) if k != column]
    most = build.reduce_max(build.abs(w), axes=axes, keep_dims=False)
    size = shape_of(most)

    def number(value: float) -> SSAValue:
        return build.expand(build.constant(np.float32(value)), size)

    scale = build.div(most, number(127.0))
    scale = build.where(build.equal(most, number(0.0)), number(1.0), scale)
    spread = build.broadcast(scale, shape=list(shape), dims=[] if column is None else [column])
    whole = build.cast(build.round(build.div(w, spread)), to=i8)
    return build.mul(build.cast(build.cast(whole, to=i32), to=f32), spread)


def _column(op: Product) -> int | None:
    """The dim of the weights that has a scale for each index; None for one scale of all."""
    if isinstance(op, ConvOp):
        return 0
    if len(shape_of(op.operands[1])) > 2:
        return None
    return 0 if op.value("transpose_b") else 1


# --- which ----------------------------------------------------------------------------------------

# What precision can be lowered to, and how.
KINDS: Mapping[str, Callable[[Product], SSAValue]] = {
    "bf16": _half(bf16),
    "f16": _half(f16),
    "int8-dynamic": _of_bytes,
}


def products(module: ModuleOp, to: str) -> list[Product]:
    """The products of `@main` whose precision can be lowered, in order.

    They are of float32, and not of weights alone. To bytes: the right operand depends on weights
    alone, and the left one does not; sums fit 32 bits; no channel is alone in its group (then there
    are too few multiplications for finding the range).
    """
    block = main_of(module).body.block
    known = weights_only(block.ops)
    found = [
        op
        for op in block.ops
        if isinstance(op, PRODUCTS) and element_of(op.result) == f32 and op.result not in known
    ]
    return [op for op in found if _bytes_fit(op, known)] if to == "int8-dynamic" else found


def _bytes_fit(op: Product, known: set[SSAValue]) -> bool:
    if isinstance(op, ConvTransposeOp) or op.operands[1] not in known or op.operands[0] in known:
        return False
    if isinstance(op, ConvOp) and shape_of(op.w)[1] == 1:
        return False
    return terms(op) <= MAX_TERMS


__all__ = ["KINDS", "PRODUCTS", "Product", "products"]
