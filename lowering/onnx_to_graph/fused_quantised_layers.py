"""Layers that onnxruntime's quantiser and optimiser write for bytes, as functions over ONNX's ops.

Source: onnxruntime docs/ContribOperators.md, and what its CPU kernels compute.
"""

from __future__ import annotations

from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto, ValueInfoProto, helper

from ...dialects.errors import UserError
from .fused_attention import embedded, projected
from .fused_body import ACTIVATIONS, FusedBody
from .fused_quantised import QuantisedBody, scaled_product
from .node import OnnxNode


def quantised_attention(node: OnnxNode) -> FunctionProto:
    """Attention whose projection is a product of bytes: (x, w, bias, scales, mask, zero points)."""
    body = QuantisedBody(node)
    if node.flag("do_rotary") or node.flag("past_present_share_buffer"):
        raise UserError("a shared buffer of the past and rotation are not supported")
    x, w, bias, x_scale, w_scale, x_zero, w_zero = map(body.operand, (0, 1, 2, 3, 4, 6, 7))
    product = scaled_product(body, (x, x_scale, x_zero), (w, w_scale, w_zero), bias)
    return projected(body, product, mask=5, past=8)


def quantised_embeddings(node: OnnxNode) -> FunctionProto:
    """EmbedLayerNormalization of tables of bytes, each with a scale and a zero point."""
    body = QuantisedBody(node)
    tables = {
        k: body.add("DequantizeLinear", *map(body.operand, (k, k + 6, k + 11)))
        for k in (2, 3, 4, 5, 6)
        if node.has(k)
    }
    return embedded(body, tables, mask=7, positions=-1)


# --- channels last --------------------------------------------------------------------------------


def _moved(body: FusedBody, x: str, rank: int, *, last: bool) -> str:
    """Channels moved to the end, or from there behind the batch."""
    order = [0, *range(2, rank), 1] if last else [0, rank - 1, *range(1, rank - 1)]
    return body.add("Transpose", x, perm=order)


def _take(body: FusedBody, *ours: str) -> None:
    """Give the last node the attributes of the op, without some."""
    body.nodes[-1].attribute.extend(a for a in body.node.proto.attribute if a.name not in ours)


def channels_last_pool(node: OnnxNode) -> FunctionProto:
    """MaxPool with channels last."""
    body, rank = FusedBody(node), len(node.shape(0))
    y = body.add("MaxPool", _moved(body, "x0", rank, last=False))
    _take(body)
    return body.function(_moved(body, y, rank, last=True))


def channels_last_conv(node: OnnxNode) -> FunctionProto:
    """activation(Conv(x, w, bias) + z) with channels last in x, z and the result."""
    body, rank = FusedBody(node), len(node.shape(0))
    y = body.add("Conv", _moved(body, "x0", rank, last=False), "x1", body.operand(2))
    _take(body, "activation", "activation_params")
    y = _moved(body, y, rank, last=True)
    y = body.add("Add", y, "x3") if node.has(3) else y
    if "activation" not in node.attributes:
        return body.function(y)
    given = list(node.attributes.get("activation_params", AttributeProto()).floats)
    return body.function(body.activate(y, node.string("activation", ""), given))


def channels_last_qconv(node: OnnxNode) -> FunctionProto:
    """QLinearConv, its channels perhaps last."""
    body, rank = FusedBody(node), len(node.shape(0))
    last = node.flag("channels_last")
    x = _moved(body, "x0", rank, last=False) if last else "x0"
    y = body.add("QLinearConv", x, *(body.operand(k) for k in range(1, len(node))))
    _take(body, "channels_last")
    return body.function(_moved(body, y, rank, last=True) if last else y)


# --- DynamicQuantizeLSTM --------------------------------------------------------------------------

_GATES = 4  # input, output, forget, cell
Weights: TypeAlias = "tuple[str, str, str]"  # bytes, scale, zero point


def _floats(name: str, shape: list[int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


class _Lstm(FusedBody):
    """The body of a DynamicQuantizeLSTM: a Scan over its steps in each direction."""

    def __init__(self, node: OnnxNode):
        super().__init__(node)
        self.steps, self.batch, _ = node.shape(0)
        self.hidden = node.shape(2)[1]
        self.clip = node.float("clip", 0.0)
        given = [name.capitalize() for name in node.strings("activations")]
        self.functions = given or ["Sigmoid", "Tanh", "Tanh"] * node.shape(1)[0]
        known = {"Sigmoid", "Tanh", "Relu"} & ACTIVATIONS.keys()
        if set(self.functions) - known or node.has(4):
            raise UserError("lengths, and other activations than these, are not supported",
                            expected=", ".join(sorted(known)))  # fmt: skip

    def direction(self, k: int, *, backward: bool) -> tuple[str, str, str]:
        """All results, the last one and the last cell of direction k."""
        x = self.add("Reshape", "x0", self.integers(self.steps * self.batch, -1))
        inputs = self.product(x, self.weights(1, k))
        if self.node.has(3):
            biases = self.add("Gather", "x3", self.scalar(k), axis=0)
            half = _GATES * self.hidden
            pair = self.part(biases, 0, 0, half), self.part(biases, 0, half, 2 * half)
            inputs = self.add("Add", inputs, self.add("Add", *pair))
        rows = self.add("Reshape", inputs, self.integers(self.steps, self.batch, -1))
        weights, states = self.weights(2, k), [self.state(operand, k) for operand in (5, 6)]
        results = [self.name() for _ in range(3)]
        scan = helper.make_node("Scan", [*states, rows], results, num_scan_inputs=1,
                                scan_input_directions=[int(backward)],
                                scan_output_directions=[int(backward)])  # fmt: skip
        scan.attribute.append(helper.make_attribute("body", self.body(weights, k)))
        self.nodes.append(scan)
        h, c, every = results
        return every, h, c

    def body(self, weights: Weights, k: int) -> GraphProto:
        """One step of direction k: (result, cell, row) to (result, cell, row of the results)."""
        before, self.nodes = self.nodes, []
        h, c, row = (self.name() for _ in range(3))
        states = self.step(self.add("Add", row, self.product(h, weights)), c, k)
        results = [*states, self.add("Identity", states[0])]
        nodes, self.nodes = self.nodes, before
        wide = [self.hidden, self.hidden, _GATES * self.hidden]
        return helper.make_graph(
            nodes,
            "step",
            [_floats(x, [self.batch, n]) for x, n in zip((h, c, row), wide, strict=True)],
            [_floats(y, [self.batch, self.hidden]) for y in results],
        )

    def weights(self, operand: int, k: int) -> Weights:
        """Weights of bytes of direction k, their scale and zero point."""
        base = 8 + 2 * (operand - 1)
        places = (operand, base, base + 1)
        w, scale, zero = (self.add("Gather", f"x{n}", self.scalar(k), axis=0) for n in places)
        return w, scale, zero

    def product(self, x: str, weights: Weights) -> str:
        """x times weights of bytes, x quantised by its own range."""
        q, scale, zero = (self.name() for _ in range(3))
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [q, scale, zero]))
        return scaled_product(self, (q, scale, zero), weights, "")

    def state(self, operand: int, k: int) -> str:
        """The first state: given, or zeros."""
        if self.node.has(operand):
            return self.add("Gather", f"x{operand}", self.scalar(k), axis=0)
        zeros = helper.make_tensor("", 1, [1], [0.0])
        shape = self.integers(self.batch, self.hidden)
        return self.add("ConstantOfShape", shape, value=zeros)

    def step(self, gates: str, c: str, k: int) -> tuple[str, str]:
        """The next result and cell."""
        n = self.hidden
        parts = [self.part(gates, 1, j * n, (j + 1) * n) for j in range(_GATES)]
        f, g, h = self.functions[3 * k : 3 * k + 3]
        i = self.gate(self.peep(parts[0], c, 0, k), f)
        if self.node.flag("input_forget"):
            forget = self.add("Sub", self.number(1.0, i), i)
        else:
            forget = self.gate(self.peep(parts[2], c, 2, k), f)
        fresh = self.add("Mul", i, self.gate(parts[3], g))
        c = self.add("Add", self.add("Mul", forget, c), fresh)
        o = self.gate(self.peep(parts[1], c, 1, k), f)
        return self.add("Mul", o, self.add(h, c)), c

    def peep(self, x: str, c: str, gate: int, k: int) -> str:
        """A gate's input plus its peephole at the cell."""
        if not self.node.has(7):
            return x
        weights = self.add("Gather", "x7", self.scalar(k), axis=0)
        n = self.hidden
        return self.add("Add", x, self.add("Mul", self.part(weights, 0, gate * n, gate * n + n), c))

    def gate(self, x: str, name: str) -> str:
        if self.clip:
            x = self.add("Clip", x, self.number(-self.clip, x), self.number(self.clip, x))
        return self.add(name, x)


def dynamic_lstm(node: OnnxNode) -> FunctionProto:
    """An LSTM whose products are of bytes: x and each step's state are quantised by their ranges.

    Raises:
        UserError: it has lengths, or activations but Sigmoid, Tanh and Relu.
    """
    body, direction = _Lstm(node), node.string("direction", "forward")
    orders = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in orders:
        raise UserError("direction is forward, reverse or bidirectional", found=direction)
    made = [body.direction(k, backward=back) for k, back in enumerate(orders[direction])]
    results: list[str] = []
    for axis, part in zip((1, 0, 0), zip(*made, strict=True), strict=True):
        wide = [body.add("Unsqueeze", v, body.integers(axis)) for v in part]
        results.append(body.add("Concat", *wide, axis=axis))
    return body.function(*results)


__all__ = [
    "channels_last_conv",
    "channels_last_pool",
    "channels_last_qconv",
    "dynamic_lstm",
    "quantised_attention",
    "quantised_embeddings",
]
