"""Initialisers that are inputs too: a caller may give another value, so they are not constants.

ONNX has them since IR version 4. Before that every initialiser had to be listed as an input, and
is a constant all the same. An initialiser that shapes or attributes depend on must be known when
the model is imported: it becomes a constant, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx

from ...dialects.dims import fits, shown
from ...dialects.errors import UserError, warn
from ...dialects.opaque import captured
from .loading import OnnxModel
from .shape_binding import declared_dims
from .tensor_data import is_supported, tensor_shape, type_name

# Since this IR version an initialiser need not be an input; one that is may be replaced.
OPTIONAL_SINCE = 4
# This many initialisers that are inputs are not a choice but an old exporter's habit.
MANY = 8
# Ops that read no value of their operand.
_SHAPE_ONLY = ("Shape", "Size")
_DECIDING = (
    onnx.TensorProto.INT64,
    onnx.TensorProto.INT32,
    onnx.TensorProto.INT16,
    onnx.TensorProto.INT8,
    onnx.TensorProto.UINT8,
    onnx.TensorProto.BOOL,
)
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def overridable(model: OnnxModel) -> dict[str, onnx.TensorProto]:
    """The initialisers that a caller may replace, in the inputs' order.

    Raises:
        UserError: an input is declared with another type or shape than its initialiser.
    """
    if model.proto.ir_version < OPTIONAL_SINCE:
        return {}
    graph = model.proto.graph
    data = {proto.name: proto for proto in graph.initializer}
    found = {info.name: info for info in graph.input if info.name in data}
    for name, info in found.items():
        _check_declared(info, data[name])
    return {name: data[name] for name in found if is_supported(data[name].data_type)}


def _check_declared(info: onnx.ValueInfoProto, proto: onnx.TensorProto) -> None:
    where, declared = f"input '{info.name}'", info.type.tensor_type
    if declared.elem_type not in (0, proto.data_type):
        raise UserError(
            "its initialiser has another element type",
            where=where,
            expected=type_name(declared.elem_type),
            found=type_name(proto.data_type),
        )
    dims, shape = declared_dims(info), tensor_shape(proto, where)
    if not fits(dims, shape):
        raise UserError(
            "its initialiser has another shape",
            where=where,
            expected=shown(dims),
            found=list(shape),
        )


def deciding(graph: onnx.GraphProto, value: str, candidates: Collection[str]) -> set[str]:
    """Which of the candidates a value of the graph is computed from."""
    makers = {name: node for node in graph.node for name in node.output if name}
    found: set[str] = set()
    seen, stack = {value}, [value]
    while stack:
        name = stack.pop()
        if name in candidates:
            found.add(name)
        node = makers.get(name)
        if node is None or node.op_type in _SHAPE_ONLY:
            continue
        for read in [*node.input, *_inner_reads(node)]:
            if read not in seen:
                seen.add(read)
                stack.append(read)
    return found


def deciding_inputs(model: OnnxModel, value: str) -> set[str]:
    """The inputs of integers or booleans, or of one number, that a value is computed from.

    Empty if its computation also reads the values of an input of many floats: an import for each
    value of those would never be used twice.
    """
    graph = model.proto.graph
    weights = {proto.name for proto in graph.initializer}
    inputs = {info.name: info for info in graph.input if info.name not in weights}
    found = deciding(graph, value, inputs)
    return found if all(_may_decide(inputs[name]) for name in found) else set()


def _may_decide(info: onnx.ValueInfoProto) -> bool:
    kind, dims = info.type.tensor_type.elem_type, declared_dims(info)
    single = dims is not None and all(dim == 1 for dim in dims)
    return kind in _DECIDING or (single and kind in _FLOATS)


def _inner_reads(node: onnx.NodeProto) -> list[str]:
    graphs = [g for a in node.attribute for g in (a.g, *a.graphs)]
    return [name for graph in graphs for name in captured(graph)]


def tell(model: OnnxModel, kept: Collection[str], fixed: Collection[str]) -> None:
    """Warn of initialisers that can no longer be given, and of weights that only seem to be."""
    for name in sorted(fixed):
        text = (
            f"initialiser '{name}' decides shapes: it keeps its value and is not an input any more"
        )
        warn(text, model.source)
    if len(kept) >= MANY:
        warn(
            f"{len(kept)} initialisers are inputs too, so they may be given and nothing is computed"
            " from them beforehand; take them out of the graph's inputs where that is not meant",
            model.source,
        )
