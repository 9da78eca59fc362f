"""Collect the nodes of one fused op's body, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from onnx import FunctionProto, NodeProto, TensorProto, helper

from ...dialects.dims import is_symbolic
from ...dialects.errors import UserError, did_you_mean
from ...dialects.types import Array
from .node import OnnxNode
from .tensor_data import to_proto
from .values import NeedsNumbers

DOMAIN = "com.microsoft"
OPSET = 21  # of the bodies: the first with blocks of quantised numbers

# Attributes of an activation, in the order of FusedConv's `activation_params`.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}


class FusedBody:
    """The nodes of one body; missing operands are named ''."""

    def __init__(self, node: OnnxNode) -> None:
        self.node = node
        self.nodes: list[NodeProto] = []
        self._numbers = count()

    def operand(self, k: int) -> str:
        return f"x{k}" if self.node.has(k) else ""

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        result = self.name()
        self.nodes.append(helper.make_node(op_type, inputs, [result], **attributes))
        return result

    def name(self) -> str:
        """A name that no other value has."""
        return f"t{next(self._numbers)}"

    def integers(self, *values: int) -> str:
        """A list of integers: a shape, axes. Raises NeedsNumbers where one is a symbol."""
        if is_symbolic(values):
            raise NeedsNumbers("a body is written out for numbers", where=self.node.where)
        return self.add("Constant", value_ints=list(values))

    def scalar(self, value: int) -> str:
        """An integer."""
        return self.add("Constant", value_int=value)

    def tensor(self, array: Array) -> str:
        """A constant."""
        return self.add("Constant", value=to_proto(array))

    def part(self, x: str, axis: int, low: int, high: int) -> str:
        """A range of positions along an axis."""
        return self.add("Slice", x, *map(self.integers, (low, high, axis)))

    def number(self, value: float, like: str) -> str:
        """A scalar of the element type of another value."""
        scalar = helper.make_tensor("", TensorProto.FLOAT, [], [value])
        return self.add("CastLike", self.add("Constant", value=scalar), like)

    def activate(self, value: str, name: str, parameters: Sequence[float]) -> str:
        """An activation by its ONNX name. Raises UserError where it is unknown."""
        if name not in ACTIVATIONS:
            hint = did_you_mean(name, ACTIVATIONS) or f"known: {', '.join(ACTIVATIONS)}"
            raise UserError(f"activation '{name}' is unknown", where=self.node.where, hint=hint)
        if name == "Clip":
            return self.add("Clip", value, *(self.number(p, value) for p in parameters))
        return self.add(name, value, **dict(zip(ACTIVATIONS[name], parameters, strict=False)))

    def function(self, *results: str) -> FunctionProto:
        inputs = [f"x{k}" for k in range(len(self.node.inputs))]
        opsets = [helper.make_opsetid("", OPSET)]
        name = self.node.op_type
        return helper.make_function(DOMAIN, name, inputs, list(results), self.nodes, opsets)


__all__ = ["ACTIVATIONS", "DOMAIN", "FusedBody"]
