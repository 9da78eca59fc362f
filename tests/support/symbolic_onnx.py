"""ONNX models whose sizes are symbols."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx.backend.test.loader as node_cases

from isoform.compiler.checks.verify_module import verify_module
from isoform.dialects.program import Program
from isoform.lowering.onnx_to_graph.importer import imported
from isoform.lowering.onnx_to_graph.loading import OnnxModel, load_model

Shapes = dict[str, tuple[int, ...]]


def symbolic(model: OnnxModel, shapes: Shapes) -> Program:
    program, _ = imported(model, {}, None, shapes)
    verify_module(program.module)
    return program


def cases() -> Iterator[tuple[str, onnx.ModelProto, Shapes]]:
    """The wheel's node cases whose inputs are tensors with shapes."""
    for case in node_cases.load_model_tests(kind="node"):
        shapes: Shapes = {}
        assert case.model is not None
        for info in case.model.graph.input:
            if not info.type.tensor_type.HasField("shape"):
                break
            shapes[info.name] = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
        else:
            yield case.name, case.model, shapes


def with_symbols(proto: onnx.ModelProto) -> OnnxModel:
    """A symbol for each size above 1; equal sizes have one symbol."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for info in changed.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                dim.dim_param = f"s{dim.dim_value}"
    for info in changed.graph.output:
        info.type.tensor_type.ClearField("shape")
    return load_model(changed)
