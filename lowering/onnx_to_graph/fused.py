"""The fused ops of onnxruntime's domain `com.microsoft`, as functions over the ops they fuse.

Its offline optimiser writes them at level "extended"; the onnx package knows none of them. Each is
a FunctionProto made for one use, so that importing, locations and `isoform check` work as for any
function.

Source: onnxruntime docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper

from ...dialects.errors import UserError, did_you_mean
from .node import Node

DOMAIN = "com.microsoft"
OPSET = 20  # of the bodies: the first with Gelu

# Attributes of an activation, in the order of FusedConv's `activation_params`.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}


class _Body:
    """The nodes of one body; operands beyond those given are named ''."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes: list[NodeProto] = []

    def operand(self, k: int) -> str:
        return f"x{k}" if self.node.has(k) else ""

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        result = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [result], **attributes))
        return result

    def number(self, value: float, like: str) -> str:
        """A scalar of the element type of another value."""
        scalar = helper.make_tensor("", TensorProto.FLOAT, [], [value])
        return self.add("CastLike", self.add("Constant", value=scalar), like)

    def activate(self, value: str, name: str, parameters: Sequence[float]) -> str:
        """An activation by its ONNX name. Raises UserError where it is unknown."""
        if name not in _ACTIVATIONS:
            hint = did_you_mean(name, _ACTIVATIONS) or f"known: {', '.join(_ACTIVATIONS)}"
            raise UserError(f"activation '{name}' is unknown", where=self.node.where, hint=hint)
        if name == "Clip":
            return self.add("Clip", value, *(self.number(p, value) for p in parameters))
        return self.add(name, value, **dict(zip(_ACTIVATIONS[name], parameters, strict=False)))

    def function(self, *results: str) -> FunctionProto:
        inputs = [f"x{k}" for k in range(len(self.node.inputs))]
        opsets = [helper.make_opsetid("", OPSET)]
        name = self.node.op_type
        return helper.make_function(DOMAIN, name, inputs, list(results), self.nodes, opsets)


def _fused_conv(node: Node) -> FunctionProto:
    """activation(Conv(x, w, bias) + z)."""
    body = _Body(node)
    y = body.add("Conv", body.operand(0), body.operand(1), body.operand(2))
    ours = ("activation", "activation_params")
    body.nodes[-1].attribute.extend(a for a in node.proto.attribute if a.name not in ours)
    if node.has(3):
        y = body.add("Add", y, body.operand(3))
    parameters = list(node.attributes.get("activation_params", AttributeProto()).floats)
    return body.function(body.activate(y, node.string("activation", "Relu"), parameters))


def _fused_gemm(node: Node) -> FunctionProto:
    """activation(Gemm(a, b, c))."""
    body = _Body(node)
    y = body.add("Gemm", *(body.operand(k) for k in range(len(node.inputs))))
    gemm = ("alpha", "beta", "transA", "transB")
    body.nodes[-1].attribute.extend(a for a in node.proto.attribute if a.name in gemm)
    name = node.string("activation", "Relu")
    given = (node.attributes.get(f"activation_{p}") for p in _ACTIVATIONS.get(name, ()))
    return body.function(body.activate(y, name, [a.f for a in given if a is not None]))


def _fused_matmul(node: Node) -> FunctionProto:
    """alpha * matmul of the operands, each with its last two dims swapped where asked."""
    body = _Body(node)
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise UserError("transBatchA and transBatchB are not supported", where=node.where)
    operands: list[str] = []
    for k, flag in enumerate(("transA", "transB")):
        rank = len(node.value(k).shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        swap = node.flag(flag) and rank > 1
        x = body.operand(k)
        operands.append(body.add("Transpose", x, perm=order) if swap else x)
    y = body.add("MatMul", *operands)
    return body.function(body.add("Mul", y, body.number(node.float("alpha", 1.0), y)))


def _gelu(approximate: str) -> Callable[[Node], FunctionProto]:
    """Gelu of the first operand, or of its sum with the second."""

    def make(node: Node) -> FunctionProto:
        body = _Body(node)
        x = body.add("Add", "x0", "x1") if node.has(1) else "x0"
        return body.function(body.add("Gelu", x, approximate=approximate))

    return make


def _quick_gelu(node: Node) -> FunctionProto:
    """x * sigmoid(alpha * x)."""
    body = _Body(node)
    scaled = body.add("Mul", "x0", body.number(node.float("alpha", 1.702), "x0"))
    return body.function(body.add("Mul", "x0", body.add("Sigmoid", scaled)))


def _skip_layer_normalization(node: Node) -> FunctionProto:
    """LayerNormalization(x + skip + bias, gamma, beta); the sum is the fourth result."""
    body = _Body(node)
    if node.wants(1) or node.wants(2):
        raise UserError("mean and inverse deviation are not supported", where=node.where)
    total = body.add("Add", "x0", "x1")
    if node.has(4):
        total = body.add("Add", total, body.operand(4))
    parameters = [body.operand(k) for k in (2, 3) if node.has(k)]
    epsilon = node.float("epsilon", 1e-12)
    y = body.add("LayerNormalization", total, *parameters, axis=-1, epsilon=epsilon)
    return body.function(y, y, y, total)


_FUSED: dict[str, Callable[[Node], FunctionProto]] = {
    "BiasGelu": _gelu("none"),
    "FastGelu": _gelu("tanh"),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu("none"),
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_layer_normalization,
}


def fused_body(node: Node, domain: str) -> FunctionProto | None:
    """What this use of a fused op computes; None where it is none that is known.

    Raises:
        UserError: it has an activation or a result that has no body here.
    """
    make = _FUSED.get(node.op_type) if domain == DOMAIN else None
    return None if make is None else make(node)
