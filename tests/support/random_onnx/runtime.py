"""onnxruntime without optimisation, on one thread."""

from __future__ import annotations

import onnx
import onnxruntime as ort
from onnx import helper


def make_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """A model of one opset, in an IR version that every onnxruntime reads."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    return model


def session_of(model: onnx.ModelProto) -> ort.InferenceSession | None:
    """An onnxruntime session without optimisation, on one thread; None where it refuses."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - whatever onnxruntime refuses is not drawn
        return None
