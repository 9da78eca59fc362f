"""Opaque ONNX nodes: rebuild the node and run it by onnx.reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import UserError
from .graph import OpaqueOp
from .program import where
from .types import Array, Tensor, shape_of, to_numpy


def run_node(op: OpaqueOp, operands: Sequence[Array], types: Sequence[Tensor]) -> list[Array]:
    """Results of the node, in its own dtypes.

    Raises:
        UserError: onnx.reference does not know the op, or fails on these values, or a result has
            another shape than the op's type says.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    node = onnx.NodeProto.FromString(bytes.fromhex(op.node.data))
    opset = [_opset(entry.data) for entry in op.opset]
    names = [name for name in node.input if name]
    feeds = {
        name: np.asarray(a).astype(to_numpy(t.element_type))
        for name, a, t in zip(names, operands, types, strict=True)
    }
    inputs = [onnx.ValueInfoProto(name=name) for name in feeds]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "opaque", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=opset)
    try:
        results = [np.asarray(a) for a in ReferenceEvaluator(model).run(None, feeds)]
    except Exception as error:  # whatever a reference implementation raises, the user sees the node
        raise UserError(f"onnx.reference cannot run it ({error})", where=where(op)) from error
    for array, result in zip(results, op.outputs, strict=True):
        if array.shape != shape_of(result):
            raise UserError(
                "its result has another shape than declared: it depends on data",
                where=where(op),
                expected=shape_of(result),
                found=array.shape,
            )
    return results


def _opset(entry: str) -> object:
    import onnx

    domain, _, version = entry.partition("=")
    return onnx.helper.make_opsetid(domain, int(version))
