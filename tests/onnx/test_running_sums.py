"""CumSum reads its prefix and nothing else: infinities and NaN beyond it do not show."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import isoform
from isoform.lowering.onnx_to_graph import import_onnx


def model(dtype: str, shape: list[int], **attributes: int) -> onnx.ModelProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    axis = onnx.numpy_helper.from_array(np.array(1), "axis")
    graph = helper.make_graph(
        [helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)],
        "running",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, shape)],
        [axis],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("extent", [0, 1, 5, 300])  # 300: too long for a kernel of ours
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_running_sums(dtype: str, extent: int, exclusive: int, reverse: int) -> None:
    running = model(dtype, [2, extent, 3], exclusive=exclusive, reverse=reverse)
    x = np.random.default_rng(extent).integers(-5, 5, (2, extent, 3)).astype(dtype)
    if dtype.startswith("float") and extent > 3:
        x[0, 1, 0], x[1, 2, 1], x[1, 3, 2], x[0, 0, 2] = np.inf, np.nan, -np.inf, np.inf
    expected = ort.InferenceSession(running.SerializeToString()).run(None, {"x": x})[0]
    session = isoform.compile(import_onnx(running), threads=1, effort="quick")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
