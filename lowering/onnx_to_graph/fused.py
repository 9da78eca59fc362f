"""The fused ops of onnxruntime's domain `com.microsoft`, as functions over the ops they fuse.

Its offline optimiser writes them at level "extended"; the onnx package knows none of them. Each use
becomes a FunctionProto, so importing, locations and `isoform check` work as for any
function.

Source: onnxruntime docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, FunctionProto

from ...dialects.errors import UserError
from .fused_attention import attention, embed_layer_normalization, multi_head_attention
from .fused_body import ACTIVATIONS, DOMAIN, FusedBody
from .fused_few_bits import gather_blocks, matmul_nbits
from .fused_group_query import group_query_attention, rotary_embedding
from .fused_quantised import QUANTISED
from .fused_quantised_layers import (
    channels_last_conv,
    channels_last_pool,
    channels_last_qconv,
    dynamic_lstm,
    quantised_attention,
    quantised_embeddings,
)
from .node import OnnxNode


def _fused_conv(node: OnnxNode) -> FunctionProto:
    """activation(Conv(x, w, bias) + z)."""
    body = FusedBody(node)
    y = body.add("Conv", body.operand(0), body.operand(1), body.operand(2))
    ours = ("activation", "activation_params")
    body.nodes[-1].attribute.extend(a for a in node.proto.attribute if a.name not in ours)
    if node.has(3):
        y = body.add("Add", y, body.operand(3))
    parameters = list(node.attributes.get("activation_params", AttributeProto()).floats)
    return body.function(body.activate(y, node.string("activation", "Relu"), parameters))


def _fused_gemm(node: OnnxNode) -> FunctionProto:
    """activation(Gemm(a, b, c))."""
    body = FusedBody(node)
    y = body.add("Gemm", *(body.operand(k) for k in range(len(node.inputs))))
    gemm = ("alpha", "beta", "transA", "transB")
    body.nodes[-1].attribute.extend(a for a in node.proto.attribute if a.name in gemm)
    name = node.string("activation", "Relu")
    given = (node.attributes.get(f"activation_{p}") for p in ACTIVATIONS.get(name, ()))
    return body.function(body.activate(y, name, [a.f for a in given if a is not None]))


def _fused_matmul(node: OnnxNode) -> FunctionProto:
    """alpha * matmul of the operands, each with its dims moved as requested.

    A batch after the rows is moved: [m, b.., k] becomes [b.., m, k]; a transpose then
    swaps the last two dims.
    """
    body = FusedBody(node)
    operands: list[str] = []
    for k, side in enumerate("AB"):
        rank = len(node.value(k).shape)
        order = list(range(rank))
        if node.flag(f"transBatch{side}") and rank > 2:
            order = [*range(1, rank - 1), 0, rank - 1]
        if node.flag(f"trans{side}") and rank > 1:
            order[-2:] = order[:-3:-1]
        x = body.operand(k)
        moved = order != list(range(rank))
        operands.append(body.add("Transpose", x, perm=order) if moved else x)
    y = body.add("MatMul", *operands)
    return body.function(body.add("Mul", y, body.number(node.float("alpha", 1.0), y)))


def _gelu(approximate: str) -> Callable[[OnnxNode], FunctionProto]:
    """Gelu of the first operand, or of its sum with the second."""

    def make(node: OnnxNode) -> FunctionProto:
        body = FusedBody(node)
        x = body.add("Add", "x0", "x1") if node.has(1) else "x0"
        return body.function(body.add("Gelu", x, approximate=approximate))

    return make


def _quick_gelu(node: OnnxNode) -> FunctionProto:
    """x * sigmoid(alpha * x)."""
    body = FusedBody(node)
    scaled = body.add("Mul", "x0", body.number(node.float("alpha", 1.702), "x0"))
    return body.function(body.add("Mul", "x0", body.add("Sigmoid", scaled)))


def _skip_layer_normalization(node: OnnxNode) -> FunctionProto:
    """LayerNormalization(x + skip + bias, gamma, beta); the fourth result is the sum."""
    body = FusedBody(node)
    if node.wants(1) or node.wants(2):
        raise UserError("mean and inverse deviation are not supported", where=node.where)
    total = body.add("Add", "x0", "x1")
    if node.has(4):
        total = body.add("Add", total, body.operand(4))
    parameters = [body.operand(k) for k in (2, 3) if node.has(k)]
    epsilon = node.float("epsilon", 1e-12)
    y = body.add("LayerNormalization", total, *parameters, axis=-1, epsilon=epsilon)
    return body.function(y, y, y, total)


def _root_mean_square(body: FusedBody, x: str, scale: str, axis: int) -> str:
    """x / sqrt(mean(x * x) + epsilon) * scale, over the dims from an axis on."""
    rank = len(body.node.value(0).shape)
    axes = body.integers(*range(axis % rank, rank))
    mean = body.add("ReduceMean", body.add("Mul", x, x), axes, keepdims=1)
    shifted = body.add("Add", mean, body.number(body.node.float("epsilon", 1e-5), x))
    return body.add("Mul", body.add("Div", x, body.add("Sqrt", shifted)), scale)


def _simplified_layer_normalization(node: OnnxNode) -> FunctionProto:
    """LayerNormalization without mean and bias."""
    body = FusedBody(node)
    if node.wants(1):
        raise UserError("the inverse deviation is not supported", where=node.where)
    return body.function(_root_mean_square(body, "x0", "x1", node.int("axis", -1)))


def _skip_simplified_layer_normalization(node: OnnxNode) -> FunctionProto:
    """SimplifiedLayerNormalization(x + skip + bias, gamma); the fourth result is the sum."""
    body = FusedBody(node)
    if node.wants(1) or node.wants(2):
        raise UserError("mean and inverse deviation are not supported", where=node.where)
    total = body.add("Add", "x0", "x1")
    if node.has(3):
        total = body.add("Add", total, body.operand(3))
    y = _root_mean_square(body, total, "x2", -1)
    return body.function(y, y, y, total)


FUSED: dict[str, Callable[[OnnxNode], FunctionProto]] = {
    **QUANTISED,
    "Attention": attention,
    "BiasGelu": _gelu("none"),
    "DynamicQuantizeLSTM": dynamic_lstm,
    "EmbedLayerNormalization": embed_layer_normalization,
    "FastGelu": _gelu("tanh"),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "GatherBlockQuantized": gather_blocks,
    "Gelu": _gelu("none"),
    "GroupQueryAttention": group_query_attention,
    "MatMulNBits": matmul_nbits,
    "MultiHeadAttention": multi_head_attention,
    "NhwcFusedConv": channels_last_conv,
    "NhwcMaxPool": channels_last_pool,
    "QAttention": quantised_attention,
    "QEmbedLayerNormalization": quantised_embeddings,
    "QLinearConv": channels_last_qconv,
    "QuickGelu": _quick_gelu,
    "RotaryEmbedding": rotary_embedding,
    "SimplifiedLayerNormalization": _simplified_layer_normalization,
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_simplified_layer_normalization,
    "TransposeMatMul": _fused_matmul,
}
# These are written without the domain.
_PLAIN = frozenset({"SimplifiedLayerNormalization"})


def fused_body(node: OnnxNode, domain: str) -> FunctionProto | None:
    """The body of this use of a fused op; None for an unknown op.

    Raises:
        UserError: an activation or result of it has no body here.
    """
    ours = domain == DOMAIN or (domain == "" and node.op_type in _PLAIN)
    make = FUSED.get(node.op_type) if ours else None
    return None if make is None else make(node)
