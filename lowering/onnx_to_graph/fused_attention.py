"""onnxruntime's fused attention and embeddings, as functions over the ops they fuse.

Source: onnxruntime docs/ContribOperators.md, and what its CPU kernels compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from onnx import FunctionProto, TensorProto

from ...dialects.errors import UserError
from .fused_body import FusedBody
from .node import OnnxNode

_MASK = -10000.0  # the default score of a masked position


# --- queries, keys and values by heads ------------------------------------------------------------


def by_heads(body: FusedBody, x: str, shape: Sequence[int], heads: int) -> str:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    batch, length, width = shape
    apart = body.add("Reshape", x, body.integers(batch, length, heads, width // heads))
    return body.add("Transpose", apart, perm=[0, 2, 1, 3])


def read_by_heads(
    body: FusedBody, q: str, k: str, v: str, sizes: Sequence[int], *added: str, softcap: float = 0.0
) -> str:
    """softmax(scale * q k^T + added) v, [batch, heads, length, size], joined to [batch, length, .].

    Args:
        sizes: batch, heads, length, size of a head, size of a value's head.
        added: what is added to the scores, of shapes that broadcast to them.
        softcap: scores c * tanh(s / c) take the place of s.
    """
    batch, heads, length, size, read = sizes
    scale = body.node.float("scale", 0.0) or 1.0 / math.sqrt(size)
    scores = body.add("MatMul", q, body.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = body.add("Mul", scores, body.number(scale, scores))
    if softcap:
        cap = body.number(softcap, scores)
        scores = body.add("Mul", body.add("Tanh", body.add("Div", scores, cap)), cap)
    for term in added:
        scores = body.add("Add", scores, term)
    found = body.add("MatMul", body.add("Softmax", scores, axis=-1), v)
    joined = body.add("Transpose", found, perm=[0, 2, 1, 3])
    return body.add("Reshape", joined, body.integers(batch, length, heads * read))


def filtered(body: FusedBody, kept: str, like: str, value: float) -> str:
    """0 where a condition holds, a score elsewhere."""
    return body.add("Where", kept, body.number(0.0, like), body.number(value, like))


def masks(body: FusedBody, operand: int, q: str, batch: int, length: int, total: int) -> list[str]:
    """What masks add to the scores: operand `operand`, and later positions if `unidirectional`.

    A mask is [batch, total] or [batch, length, total], not 0 where a key is read, or [batch] or
    [2 * batch]: the ends of the keys, then their starts.

    Raises:
        UserError: it has another shape.
    """
    node, found = body.node, list[str]()
    value = node.float("mask_filter_value", _MASK)
    if node.has(operand):
        kept = _kept(body, operand, batch, length, total)
        found.append(filtered(body, kept, q, value))
    if node.flag("unidirectional"):
        past = total - length
        seen = np.arange(total)[None, :] <= past + np.arange(length)[:, None]
        found.append(filtered(body, body.tensor(seen), q, float("-inf")))
    return found


def _kept(body: FusedBody, operand: int, batch: int, length: int, total: int) -> str:
    """Which keys a mask lets through, of a shape that broadcasts to the scores."""
    shape, name = body.node.shape(operand), body.operand(operand)
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {
        (batch, total): (1, 1, total),
        (batch, length, total): (1, length, total),
    }
    if shape in shapes:
        known = body.add("Cast", name, to=TensorProto.BOOL)
        return body.add("Reshape", known, body.integers(batch, *shapes[shape]))
    if shape not in ((batch,), (2 * batch,)):
        expected = f"{list(shapes)}, [{batch}] or [{2 * batch}]"
        raise UserError("a mask of this shape is not supported", expected=expected, found=shape)
    places = body.tensor(np.arange(total, dtype=np.int32))
    ends = body.add("Reshape", name, body.integers(shape[0] // batch, batch, 1, 1, 1))
    end = body.add("Gather", ends, body.scalar(0), axis=0)
    kept = body.add("Less", places, end)
    if shape == (batch,):
        return kept
    start = body.add("Gather", ends, body.scalar(1), axis=0)
    return body.add("And", kept, body.add("GreaterOrEqual", places, start))


# --- the ops --------------------------------------------------------------------------------------


def attention(node: OnnxNode) -> FunctionProto:
    """Attention(x, weights of q, k and v side by side, bias, mask, past, attention bias)."""
    body = FusedBody(node)
    product = body.add("MatMul", "x0", "x1")
    if node.has(2):
        product = body.add("Add", product, "x2")
    if node.has(6) or node.flag("past_present_share_buffer") or node.flag("do_rotary"):
        raise UserError("a shared buffer of the past and rotation are not supported")
    return projected(body, product, mask=3, past=4, bias=5)


def projected(body: FusedBody, product: str, mask: int, past: int, bias: int = -1) -> FunctionProto:
    """Attention of one sequence whose queries, keys and values lie side by side.

    Args:
        mask, past, bias: which operands they are.
    """
    node = body.node
    batch, length, _ = node.shape(0)
    width, heads = node.shape(1)[1], node.int("num_heads", 1)
    widths = node.ints("qkv_hidden_sizes", [width // 3] * 3)
    if len(widths) != 3 or sum(widths) != width or any(w % heads for w in widths):
        raise UserError("sizes of q, k and v do not fit the weights", found=widths)
    ends = [0, widths[0], widths[0] + widths[1], width]
    parts = [
        by_heads(body, body.part(product, -1, low, high), (batch, length, high - low), heads)
        for low, high in pairwise(ends)
    ]
    q, k, v = parts
    total = length
    if node.has(past):
        old = [body.add("Gather", body.operand(past), body.scalar(n), axis=0) for n in range(2)]
        k, v = (body.add("Concat", o, n, axis=2) for o, n in zip(old, (k, v), strict=True))
        total += node.shape(past)[3]
    added = masks(body, mask, q, batch, length, total)
    if bias > 0 and node.has(bias):
        added.append(body.operand(bias))
    sizes = (batch, heads, length, widths[0] // heads, widths[2] // heads)
    y = read_by_heads(body, q, k, v, sizes, *added)
    if len(node.proto.output) == 1:
        return body.function(y)
    if widths[1] != widths[2]:
        if node.wants(1):
            raise UserError("keys and values of two sizes have no common result")
        return body.function(y, y)
    whole = [body.add("Unsqueeze", part, body.integers(0)) for part in (k, v)]
    return body.function(y, body.add("Concat", *whole, axis=0))


def multi_head_attention(node: OnnxNode) -> FunctionProto:
    """MultiHeadAttention(q, k, v, bias, mask, attention bias, past keys, past values).

    Keys and values may be [batch, length, width], or by heads already, or be packed with the
    queries (along dim 3).

    Raises:
        UserError: the past has a buffer of its own, or scores are wanted.
    """
    if node.has(8) or node.has(9) or node.wants(3):
        raise UserError("a shared buffer of the past, beams and scores are not supported")
    body, heads = FusedBody(node), node.int("num_heads", 1)
    parts, ends = _unpacked(body, heads), [0]
    shapes = [shape for _, shape in parts]
    for shape in shapes:
        ends.append(ends[-1] + (shape[1] * shape[3] if len(shape) == 4 else shape[2]))
    split: list[str] = []
    for k, (x, shape) in enumerate(parts):
        if len(shape) == 3:
            if node.has(3):
                x = body.add("Add", x, body.part("x3", 0, ends[k], ends[k + 1]))
            x = by_heads(body, x, shape, heads)
        split.append(x)
    q, k, v = split
    total = shapes[1][2] if len(shapes[1]) == 4 else shapes[1][1]
    if node.has(6):
        k, v = body.add("Concat", "x6", k, axis=2), body.add("Concat", "x7", v, axis=2)
        total += node.shape(6)[2]
    batch, length, width = shapes[0]
    added = masks(body, 4, q, batch, length, total)
    if node.has(5):
        added.append("x5")
    sizes = (batch, heads, length, width // heads, (ends[3] - ends[2]) // heads)
    return body.function(read_by_heads(body, q, k, v, sizes, *added), k, v)


def _unpacked(body: FusedBody, heads: int) -> list[tuple[str, Sequence[int]]]:
    """Queries, keys and values with their shapes, none packed with another."""
    node = body.node
    shape = node.shape(0)
    parts: list[tuple[str, Sequence[int]]] = []
    for k, count in ((0, 3), (1, 2)):
        if not node.has(k) or len(node.shape(k)) != 5:
            continue
        batch, length, _, _, size = node.shape(k)
        flat = (batch, length, heads * size)
        for n in range(count):
            one = body.add("Gather", body.operand(k), body.scalar(n), axis=3)
            parts.append((body.add("Reshape", one, body.integers(*flat)), flat))
        return parts if count == 3 else [("x0", shape), *parts]
    if not (node.has(1) and node.has(2)):
        raise UserError("keys and values are missing")
    return [(f"x{k}", node.shape(k)) for k in range(3)]


def embed_layer_normalization(node: OnnxNode) -> FunctionProto:
    """LayerNormalization of the embeddings of words, positions and segments; their sum is third."""
    body = FusedBody(node)
    tables = {k: body.operand(k) for k in (2, 3, 4, 5, 6)}
    return embedded(body, tables, mask=7, positions=8)


def embedded(body: FusedBody, tables: dict[int, str], mask: int, positions: int) -> FunctionProto:
    """The same of tables as floats; the second result counts the words that a mask shows."""
    node = body.node
    batch, length = node.shape(0)
    places = body.operand(positions) if positions >= 0 else ""
    if not places:
        places = body.add("Constant", value_ints=list(range(length)))
    words = body.add("Gather", tables[2], "x0")
    total = body.add("Add", words, body.add("Gather", tables[3], places))
    if node.has(1):
        total = body.add("Add", total, body.add("Gather", tables[4], "x1"))
    epsilon = node.float("epsilon", 1e-12)
    y = body.add("LayerNormalization", total, tables[5], tables[6], axis=-1, epsilon=epsilon)
    if not node.wants(1):
        return body.function(y, y, total)
    counts = body.tensor(np.zeros(batch, np.int32))
    if node.has(mask):
        counts = body.add("ReduceSum", body.operand(mask), body.integers(1), keepdims=0)
    return body.function(y, counts, total)


__all__ = [
    "attention",
    "by_heads",
    "embed_layer_normalization",
    "embedded",
    "filtered",
    "multi_head_attention",
    "projected",
    "read_by_heads",
]
