"""Models of opsets 1 to 5, in the forms of opset 6: attributes became operands, or others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, helper

from ...dialects.errors import UserError
from .node import describe
from .tensor_data import to_proto

# Every op of opset 6 is read; of older opsets those that have its meaning, and the forms below.
OLDEST = 6
Added = list[onnx.TensorProto]


def as_opset_6(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with opset 6 in place of an older one; itself if it is not older.

    Raises:
        UserError: an op has no form in opset 6.
    """
    named = [entry for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not named or named[-1].version >= OLDEST:
        return model
    version, found = named[-1].version, onnx.ModelProto()
    found.CopyFrom(model)
    for entry in found.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = OLDEST
    for graph in _graphs(found.graph):
        added: Added = []
        for node in graph.node:
            if node.domain in ("", "ai.onnx"):
                _renew(node, version, added)
        graph.initializer.extend(added)
    return found


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    waiting = [graph]
    while waiting:
        found = waiting.pop()
        yield found
        for node in found.node:
            for attribute in node.attribute:
                waiting += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]


def _renew(node: NodeProto, version: int, added: Added) -> None:
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        if schema.since_version == onnx.defs.get_schema(node.op_type, OLDEST, "").since_version:
            return
    except onnx.defs.SchemaError:  # refused where the node is converted
        return
    _take(node, "consumed_inputs")  # a hint on memory
    if (form := FORMS.get(node.op_type)) is not None:
        form(node, added)


def _take(node: NodeProto, name: str) -> onnx.AttributeProto | None:
    """An attribute, which the node has no longer; None if it had none."""
    for k, attribute in enumerate(node.attribute):
        if attribute.name == name:
            found = onnx.AttributeProto()
            found.CopyFrom(attribute)
            del node.attribute[k]
            return found
    return None


def _reshape(node: NodeProto, added: Added) -> None:
    shape = _take(node, "shape")
    if shape is None:
        raise UserError("attribute 'shape' is missing", where=describe(node))
    name = f"{node.output[0]}/shape" if node.output else "/shape"
    added.append(to_proto(np.asarray(shape.ints, np.int64), name))
    node.input.append(name)


def _pad(node: NodeProto, _: Added) -> None:
    if (pads := _take(node, "paddings")) is not None:
        pads.name = "pads"
        node.attribute.append(pads)


def _cast(node: NodeProto, _: Added) -> None:
    to = _take(node, "to")
    name = to.s.decode(errors="replace") if to is not None else ""
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 - an enum of protobuf
        raise UserError(
            "'to' names no element type", where=describe(node), expected="FLOAT, INT32, ...",
            found=name,
        )  # fmt: skip
    node.attribute.append(helper.make_attribute("to", onnx.TensorProto.DataType.Value(name)))


def _lp(node: NodeProto, _: Added) -> None:
    p = _take(node, "p")
    order = 2.0 if p is None else p.f
    if order != int(order):
        raise UserError("'p' is no whole number", where=describe(node), found=order)
    node.attribute.append(helper.make_attribute("p", int(order)))


def _moved(node: NodeProto, _: Added) -> None:
    if len(node.input) > 1:
        raise UserError(
            "in this opset an operand is not as in later ones", where=describe(node),
            hint=f"export with opset {OLDEST} or newer",
        )  # fmt: skip


def _defaults(**values: float) -> Callable[[NodeProto, Added], None]:
    def form(node: NodeProto, _: Added) -> None:
        named = {attribute.name for attribute in node.attribute}
        for name, value in values.items():
            if name not in named:
                node.attribute.append(helper.make_attribute(name, value))

    return form


FORMS: dict[str, Callable[[NodeProto, Added], None]] = {
    "Cast": _cast,
    "Concat": _defaults(axis=1),
    "GlobalLpPool": _lp,
    "LpPool": _lp,
    "Pad": _pad,
    "Reshape": _reshape,
    "Selu": _defaults(alpha=1.6732, gamma=1.0507),
    "Split": _moved,
    "Tile": _moved,
}

__all__ = ["OLDEST", "as_opset_6"]
