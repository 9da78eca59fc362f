"""onnxruntime's fused attention and embeddings, as functions over the ops they fuse.

Source: onnxruntime docs/ContribOperators.md, and what its CPU kernels compute.
"""

from __future__ import annotations

import math

from onnx import FunctionProto, TensorProto

from ...dialects.errors import UserError
from .fused_body import FusedBody
from .node import OnnxNode

_MASK = -10000.0  # the default score of a masked position


def attention(node: OnnxNode) -> FunctionProto:
    """Attention(x, weights of q, k and v side by side, bias, mask): heads of one sequence.

    The mask is [batch, length] (1 where a token is read); a past and other masks are refused.
    """
    for k, what in ((4, "a past"), (5, "an attention bias"), (6, "a past")):
        if node.has(k):
            raise UserError(f"{what} is not supported", where=node.where)
    if node.wants(1) or node.attributes.get("qkv_hidden_sizes") is not None:
        raise UserError("present keys and sizes of their own are not supported", where=node.where)
    body = FusedBody(node)
    batch, length, _ = node.value(0).shape
    width, heads = node.value(1).shape[1] // 3, node.int("num_heads", 1)
    product = body.add("MatMul", "x0", "x1")
    if node.has(2):
        product = body.add("Add", product, "x2")
    split = body.integers(batch, length, 3, heads, width // heads)
    parts = body.add("Transpose", body.add("Reshape", product, split), perm=[2, 0, 3, 1, 4])
    q, k, v = (body.add("Gather", parts, _index(body, n), axis=0) for n in range(3))
    scale = node.float("scale", 0.0) or 1.0 / math.sqrt(width // heads)
    scores = body.add("MatMul", q, body.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = body.add("Mul", scores, body.number(scale, scores))
    scores = _masked(body, scores, batch, length)
    read = body.add("MatMul", body.add("Softmax", scores, axis=-1), v)
    joined = body.add("Transpose", read, perm=[0, 2, 1, 3])
    return body.function(body.add("Reshape", joined, body.integers(batch, length, width)))


def _index(body: FusedBody, number: int) -> str:
    return body.add("Constant", value_int=number)


def _masked(body: FusedBody, scores: str, batch: int, length: int) -> str:
    """The scores, with a large negative number added at masked positions."""
    node = body.node
    filled = body.number(node.float("mask_filter_value", _MASK), scores)
    if node.has(3):
        if node.value(3).shape != (batch, length):
            raise UserError(
                "a mask of this shape is not supported",
                where=node.where,
                expected=(batch, length),
                found=node.value(3).shape,
            )
        shown = body.add("CastLike", "x3", scores)
        hidden = body.add("Sub", body.number(1.0, scores), shown)
        hidden = body.add("Reshape", hidden, body.integers(batch, 1, 1, length))
        scores = body.add("Add", scores, body.add("Mul", hidden, filled))
    if node.flag("unidirectional"):
        ones = body.add(
            "ConstantOfShape",
            body.integers(length, length),
            value=_scalar(1.0),
        )
        later = body.add("Trilu", ones, body.add("Constant", value_int=1), upper=1)
        hidden = body.add("Cast", later, to=TensorProto.BOOL)
        lowest = body.number(float("-inf"), scores)
        scores = body.add("Where", hidden, lowest, scores)
    return scores


def _scalar(value: float) -> TensorProto:
    from onnx import helper

    return helper.make_tensor("", TensorProto.FLOAT, [1], [value])


def embed_layer_normalization(node: OnnxNode) -> FunctionProto:
    """LayerNormalization of the embeddings of words, positions and segments; their sum is third."""
    if node.has(7) or node.wants(1):
        raise UserError("a mask is not supported", where=node.where)
    body = FusedBody(node)
    length = node.value(0).shape[1]
    positions = "x8"
    if not node.has(8):
        positions = body.add("Constant", value_ints=list(range(length)))
    total = body.add("Add", body.add("Gather", "x2", "x0"), body.add("Gather", "x3", positions))
    if node.has(1):
        total = body.add("Add", total, body.add("Gather", "x4", "x1"))
    epsilon = node.float("epsilon", 1e-12)
    y = body.add("LayerNormalization", total, "x5", "x6", axis=-1, epsilon=epsilon)
    return body.function(y, y, total)


__all__ = ["attention", "embed_layer_normalization"]
