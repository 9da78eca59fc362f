"""The quantised ops of onnxruntime's domain `com.microsoft`, as functions over ONNX's own.

Most dequantise, compute in floats and quantise: onnxruntime may differ from that by one step.

Source: onnxruntime docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import FunctionProto, helper

from .fused_body import FusedBody
from .node import OnnxNode
from .tensor_data import number_of_element


class QuantisedBody(FusedBody):
    """A body whose operands come in triples: integers, scale, zero point."""

    def floats(self, k: int) -> str:
        """The floats that operands k, k + 1, k + 2 stand for."""
        return self.add("DequantizeLinear", *map(self.operand, (k, k + 1, k + 2)))

    def quantised(self, value: str, k: int, like: int = 0) -> FunctionProto:
        """The function of a value quantised by operands k and k + 1; the type is operand `like`'s
        where there is no zero point."""
        zero = [self.operand(k + 1)] if self.node.has(k + 1) else []
        element = self.node.value(like).element
        given = {} if zero or element is None else {"output_dtype": number_of_element(element)}
        return self.function(self.add("QuantizeLinear", value, self.operand(k), *zero, **given))

    def take(self, *ours: str) -> None:
        """Give the last node the attributes of the op, without some."""
        own = (a for a in self.node.proto.attribute if a.name not in ours)
        self.nodes[-1].attribute.extend(own)


Make = Callable[[OnnxNode], FunctionProto]


def _binary(op_type: str) -> Make:
    def make(node: OnnxNode) -> FunctionProto:
        body = QuantisedBody(node)
        return body.quantised(body.add(op_type, body.floats(0), body.floats(3)), 6)

    return make


def _unary(op_type: str, *ours: str) -> Make:
    """An op of one operand with ONNX's own attributes, without some."""

    def make(node: OnnxNode) -> FunctionProto:
        body = QuantisedBody(node)
        y = body.add(op_type, body.floats(0))
        body.take(*ours)
        return body.quantised(y, 3)

    return make


def _pool(op_type: str) -> Make:
    """A pool; its channels may be last."""

    def make(node: OnnxNode) -> FunctionProto:
        body, rank = QuantisedBody(node), len(node.shape(0))
        x, last = body.floats(0), node.flag("channels_last")
        order = [0, rank - 1, *range(1, rank - 1)]
        x = body.add("Transpose", x, perm=order) if last else x
        y = body.add(op_type, x)
        body.take("channels_last")
        y = body.add("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y
        return body.quantised(y, 3)

    return make


def _softmax(node: OnnxNode) -> FunctionProto:
    """Softmax along an axis; before opset 13 over all dims from it on."""
    body, shape = QuantisedBody(node), node.shape(0)
    axis = node.axis(node.int("axis", -1), len(shape))
    x = body.floats(0)
    if node.int("opset", 13) >= 13:
        return body.quantised(body.add("Softmax", x, axis=axis), 3)
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    y = body.add("Softmax", body.add("Reshape", x, body.integers(rows, -1)), axis=1)
    return body.quantised(body.add("Reshape", y, body.integers(*shape)), 3)


def _reduce_mean(node: OnnxNode) -> FunctionProto:
    body = QuantisedBody(node)
    axes = [body.integers(*node.ints("axes"))] if "axes" in node.attributes else []
    y = body.add("ReduceMean", body.floats(0), *axes, keepdims=node.int("keepdims", 1))
    return body.quantised(y, 3)


def _concat(node: OnnxNode) -> FunctionProto:
    body = QuantisedBody(node)
    parts = [body.floats(k) for k in range(2, len(node), 3)]
    return body.quantised(body.add("Concat", *parts, axis=node.int("axis", 0)), 0, like=2)


def _where(node: OnnxNode) -> FunctionProto:
    body = QuantisedBody(node)
    y = body.add("Where", body.operand(0), body.floats(1), body.floats(4))
    return body.quantised(y, 7, like=1)


def _qgemm(node: OnnxNode) -> FunctionProto:
    """alpha * a_scale * b_scale * (a' b' + c); quantised where it has a scale for that."""
    body = QuantisedBody(node)
    a, b = body.operand(0), body.operand(3)
    a = body.add("Transpose", a, perm=[1, 0]) if node.flag("transA") else a
    b = body.add("Transpose", b, perm=[1, 0]) if node.flag("transB") else b
    total = body.add("MatMulInteger", a, b, body.operand(2), body.operand(5))
    total = body.add("Add", total, body.operand(6)) if node.has(6) else total
    factor = body.add("Mul", body.operand(1), body.operand(4))
    factor = body.add("Mul", factor, body.number(node.float("alpha", 1.0), factor))
    y = body.add("Mul", body.add("Cast", total, to=1), factor)
    return body.quantised(y, 7) if node.has(7) else body.function(y)


def _matmul_to_float(node: OnnxNode) -> FunctionProto:
    """a_scale * b_scale * (a b) + bias."""
    body = QuantisedBody(node)
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (body.operand(k) for k in range(7))
    return body.function(scaled_product(body, (a, a_scale, a_zero), (b, b_scale, b_zero), bias))


def _dynamic_matmul(node: OnnxNode) -> FunctionProto:
    """The same with the left operand quantised as DynamicQuantizeLinear does."""
    body = QuantisedBody(node)
    body.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x0"], ["q", "q_scale", "q_zero"]))
    right = body.operand(1), body.operand(2), body.operand(3)
    return body.function(scaled_product(body, ("q", "q_scale", "q_zero"), right, body.operand(4)))


def scaled_product(
    body: FusedBody, left: tuple[str, str, str], right: tuple[str, str, str], bias: str
) -> str:
    """A product of integers (each with scale and zero point) as floats, plus a bias."""
    total = body.add("MatMulInteger", left[0], right[0], left[2], right[2])
    factor = body.add("Mul", left[1], right[1])
    y = body.add("Mul", body.add("Cast", total, to=1), factor)
    return body.add("Add", y, bias) if bias else y


def _same(op_type: str) -> Make:
    """An op of ONNX's own, which onnxruntime had for more types before ONNX did."""

    def make(node: OnnxNode) -> FunctionProto:
        body = QuantisedBody(node)
        y = body.add(op_type, *(body.operand(k) for k in range(len(node))))
        body.take()
        return body.function(y)

    return make


QUANTISED: dict[str, Make] = {
    "DequantizeLinear": _same("DequantizeLinear"),
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _matmul_to_float,
    "QGemm": _qgemm,
    "QLinearAdd": _binary("Add"),
    "QLinearAveragePool": _pool("AveragePool"),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearMul": _binary("Mul"),
    "QLinearReduceMean": _reduce_mean,
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
    "QuantizeLinear": _same("QuantizeLinear"),
}

__all__ = ["QUANTISED", "QuantisedBody", "scaled_product"]
