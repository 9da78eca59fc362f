"""Ops on integers that graph ops do not take (unsigned ones, pools of bytes), in wider ones.

    y = MaxPool(x : ui8)    becomes    cast(MaxPool(cast x))

Sums, differences and products modulo 2^n, extremes and comparisons are the same in a type that
holds every number of the narrow one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.types import element_of, integer_range, is_bool, is_unsigned
from .node import OnnxNode
from .values import OnnxValue

# Ops that are the same in wider integers; results that are no truths have the operands' type.
_SAME = frozenset(
    {
        "Add", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
        "MaxPool", "Min", "Mul", "ReduceMax", "ReduceMin", "Relu", "Sub",
    }
)  # fmt: skip


def applies(node: OnnxNode) -> bool:
    """Whether an op is the same in wider integers, and its first operand is not of 64 bits."""
    known = node.op_type in _SAME and node.has(0)
    return known and _wide(node.value(0).element) is not None


def _wide(element: Attribute | None) -> Attribute | None:
    """A signed type that holds every number of a narrower integer type."""
    if not isinstance(element, IntegerType) or is_bool(element):
        return None
    bits = element.width.data + int(is_unsigned(element))
    return i32 if bits < 32 else i64 if bits < 64 else None


def widened(node: OnnxNode) -> OnnxNode:
    """The node with operands of the first one's type in the wide type."""
    narrow = node.value(0).element
    wide = _wide(narrow)
    assert wide is not None
    inputs: list[OnnxValue | None] = []
    for k, value in enumerate(node.inputs):
        if value is not None and value.element == narrow:
            value = OnnxValue.of_ssa(value.name, node.cast(node[k], wide))
        inputs.append(value)
    return OnnxNode(node.proto, node.version, inputs, node.build, node.fresh)


def narrowed(node: OnnxNode, value: SSAValue) -> SSAValue:
    """A result of the widened node; one of the wide type in the node's own."""
    narrow = node.value(0).element
    assert narrow is not None
    if element_of(value) != _wide(narrow):
        return value
    if node.op_type in ("ReduceMax", "ReduceMin") and 0 in node.shape(0):  # of nothing: an end
        low, high = (node.literal(end, value) for end in integer_range(narrow))
        value = node.build.max(node.build.min(value, high), low)
    return node.cast(value, narrow)
