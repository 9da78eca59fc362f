"""Ops with several steps on half floats: computed in float32, and rounded once.

    y = Mish(x : f16)    becomes    cast(cast x * tanh(softplus(cast x)))

Step by step it would round three times. An op that is one op of the graph dialect defines
its own rounding, and an op that only moves data rounds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects.types import element_of, is_float, is_half
from .loading import domain_of
from .node import OnnxNode
from .tensor_data import element_of_number, type_proto
from .values import OnnxValue

# Graph ops that round nothing, so they do not count as steps.
_MOVING = frozenset(
    f"graph.{name}"
    for name in (
        "broadcast", "cast", "concat", "constant", "gather", "pad", "reshape", "slice", "split",
        "transpose", "where",
    )
)  # fmt: skip
# Ops that say themselves where half floats are rounded.
_CASTS = frozenset({"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"})


def has_half(node: OnnxNode) -> bool:
    """Whether an operand that is computed with holds half floats."""
    if node.op_type in _CASTS:
        return False
    return any(v is not None and v.element is not None and is_half(v.element) for v in node.inputs)


def takes_steps(node: OnnxNode, made: Sequence[str]) -> bool:
    """Whether a node's graph ops round more than once, or mix float widths."""
    floats = {v.element for v in node.inputs if v is not None and v.element and is_float(v.element)}
    working = [name for name in made if name not in _MOVING]
    return len(working) > 1 or (len(working) == 1 and len(floats) > 1)


def widened(node: OnnxNode) -> OnnxNode:
    """The node with float32 instead of half floats."""
    inputs = [_widened(node, k) for k in range(len(node.inputs))]
    return OnnxNode(node.proto, node.version, inputs, node.build, node.fresh)


def _widened(node: OnnxNode, k: int) -> OnnxValue | None:
    value = node.inputs[k]
    if value is None or value.element is None or not is_half(value.element):
        return value
    if value.is_known:
        return OnnxValue.of_array(value.name, np.asarray(value.array()).astype(np.float32))
    return OnnxValue.of_ssa(value.name, node.cast(node[k], f32))


def narrowed(node: OnnxNode, k: int, value: SSAValue) -> SSAValue:
    """Result `k` of the widened node, in the node's own type."""
    element = _half_result(node, k)
    return value if element is None or element_of(value) != f32 else node.cast(value, element)


def _half_result(node: OnnxNode, k: int) -> Attribute | None:
    """The half type of a result with the type of a half operand; None for any other."""
    given = [v.element if v is not None else None for v in node.inputs]
    domain = domain_of(node.proto.domain)
    if not onnx.defs.has(node.op_type, domain):  # onnxruntime's fused ops have one type
        return next(e for e in given if e is not None and is_half(e))
    schema = onnx.defs.get_schema(node.op_type, node.version, domain)
    wanted = schema.outputs[min(k, len(schema.outputs) - 1)].type_str
    for position, element in enumerate(given):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if element is not None and is_half(element) and formal.type_str == wanted:
            return element
    return _inferred(node, k, schema)


def _inferred(node: OnnxNode, k: int, schema: onnx.defs.OpSchema) -> Attribute | None:
    """The half type that ONNX infers where no operand has the result's type (a missing state)."""
    given = zip(node.proto.input, node.inputs, strict=False)
    types = {
        name: type_proto(v.shape, v.element)
        for name, v in given
        if v is not None and v.element is not None
    }
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, node.proto, types)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError):
        return None
    if node.proto.output[k] not in found:
        return None
    number = found[node.proto.output[k]].tensor_type.elem_type
    element = element_of_number(number, node.where) if number else None
    return element if element is not None and is_half(element) else None
