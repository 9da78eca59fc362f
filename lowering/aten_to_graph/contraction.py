"""Matrix products, convolutions, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_bool, is_unsigned, shape_of
from .aten import UnsupportedAten
from .node import AtenNode, Converter, Number, wide


def matmul(n: AtenNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """A product of matrices, or of equally many matrices."""
    _check(n)
    return n.op("matmul", a, b)


def _check(n: AtenNode) -> None:
    if is_bool(n.element) or is_unsigned(n.element):
        raise UnsupportedAten("a product of booleans or unsigned integers")


def addmm(
    n: AtenNode, x: SSAValue, a: SSAValue, b: SSAValue, beta: Number = 1, alpha: Number = 1
) -> SSAValue:
    """beta * x + alpha * (a @ b)."""
    _check(n)
    y = n.op("matmul", a, b)
    if alpha != 1:
        y = n.op("mul", y, n.literal(alpha, y))
    if beta == 0:
        return y
    if beta != 1:
        x = n.op("mul", x, n.literal(beta, x))
    return n.op("add", y, n.expand(x, shape_of(y)))


def dot(n: AtenNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """The scalar product of vectors, and a matrix by a vector."""
    _check(n)
    rows = shape_of(a)[0] if len(shape_of(a)) == 2 else 1
    left = n.reshape(a, [rows, shape_of(a)[-1]])
    return n.reshape(n.op("matmul", left, n.reshape(b, [*shape_of(b), 1])), n.shape)


def convolution(
    n: AtenNode,
    x: SSAValue,
    w: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> SSAValue:
    """A convolution, or the transposed one."""
    _check(n)
    rank = len(shape_of(x)) - 2
    strides, pads, dilations = (
        list(v) * rank if len(v) == 1 else list(v) for v in (stride, padding, dilation)
    )
    operands = (x, w) if bias is None else (x, w, bias)
    how = {"strides": strides, "pads": pads * 2, "dilations": dilations, "groups": groups}
    if not transposed:
        return n.op("conv", *operands, **how)
    extra = list(output_padding) * (rank if len(output_padding) == 1 else 1)
    return n.op("conv_transpose", *operands, output_padding=extra, **how)


def attention(
    n: AtenNode,
    q: SSAValue,
    k: SSAValue,
    v: SSAValue,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: SSAValue | None = None,
    scale: float | None = None,
) -> list[SSAValue]:
    """softmax(q @ k transposed * scale + mask) @ v; the second result is for gradients."""
    if dropout_p:
        raise UnsupportedAten("attention with dropout")
    *lead, rows, width = shape_of(q)
    columns = shape_of(k)[-2]
    factor = 1.0 / math.sqrt(max(width, 1)) if scale is None else scale
    element = wide(n.element)
    q, k, v = (_heads(n, n.cast(x, element), lead) for x in (q, k, v))
    rank = len(lead) + 2
    turned = n.transpose(k, [*range(rank - 2), rank - 1, rank - 2])
    scores = n.op("matmul", q, turned)
    scores = n.op("mul", scores, n.literal(factor, scores))
    if is_causal:
        shown = n.expand(n.lower(rows, columns), shape_of(scores))
        scores = n.op("where", shown, scores, n.literal(-math.inf, scores))
    if attn_mask is not None:
        scores = _masked(n, scores, attn_mask)
    weights = n.op("softmax", scores, axis=rank - 1)
    return [n.cast(n.op("matmul", weights, v), n.element)]


def _heads(n: AtenNode, x: SSAValue, lead: Sequence[int]) -> SSAValue:
    """Keys and values with as many heads as the queries."""
    shape = shape_of(x)
    if list(shape[:-2]) == list(lead):
        return x
    times = lead[-1] // shape[-3]
    lifted = n.reshape(x, [*shape[:-2], 1, *shape[-2:]])
    spread = n.expand(lifted, [*shape[:-2], times, *shape[-2:]])
    return n.reshape(spread, [*lead, *shape[-2:]])


def _masked(n: AtenNode, scores: SSAValue, mask: SSAValue) -> SSAValue:
    if is_bool(element_of(mask)):
        shown = n.expand(mask, shape_of(scores))
        return n.op("where", shown, scores, n.literal(-math.inf, scores))
    added = n.cast(mask, element_of(scores))
    return n.op("add", scores, n.expand(added, shape_of(scores)))


TABLE: dict[str, Converter] = {
    **dict.fromkeys(("mm.default", "bmm.default"), matmul),
    **dict.fromkeys(("addmm.default", "baddbmm.default"), addmm),
    **dict.fromkeys(("dot.default", "mv.default"), dot),
    "convolution.default": convolution,
    "_scaled_dot_product_flash_attention_for_cpu.default": attention,
}
