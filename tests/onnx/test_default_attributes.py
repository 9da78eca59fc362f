"""Defaults of float attributes are 32-bit numbers, as attributes are: float64 shows the difference.

1e-5 and the nearest float32 are 2.5e-13 apart; beside a variance of 1e-4 that is 1e-9 of a result.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import isoform

NODES = {
    "BatchNormalization": ("s", "s", "s", "v"),
    "LayerNormalization": ("r",),
    "LeakyRelu": (),
    "Shrink": (),
}


@pytest.mark.parametrize("op", NODES)
def test_a_default_is_what_the_attribute_holds(op: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = {
        "s": rng.standard_normal(3),
        "v": np.full(3, 1e-4),
        "r": rng.standard_normal(4),
    }
    node = helper.make_node(op, ["x", *NODES[op]], ["y"])
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2, 3, 4])],
        [onnx.numpy_helper.from_array(v, k) for k, v in data.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    x = rng.standard_normal((2, 3, 4)) * 1e-2
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (wanted,) = session.run(None, {"x": x})
    (found,) = isoform.compile(isoform.load(tmp_path / "m.onnx"), effort="quick").run(
        None, {"x": x}
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
