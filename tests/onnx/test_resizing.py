"""Nearest-neighbour enlargement by whole factors is loops over repeated elements, not a gather."""

from fractions import Fraction

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import isoform
from isoform.compiler.targets.levels import lower_to
from isoform.lowering.onnx_to_graph.resizing import positions

WAYS = [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("asymmetric", "ceil")]


@pytest.mark.parametrize(("coordinates", "rounding"), WAYS)
@pytest.mark.parametrize("scales", [(2.0, 2.0), (3.0, 2.0), (1.5, 2.0)])
def test_nearest(tmp_path, coordinates, rounding, scales):
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 6)).astype(np.float32)
    node = helper.make_node(
        "Resize",
        ["x", "", "scales"],
        ["y"],
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("scales", TensorProto.FLOAT, [4], [1.0, 1.0, *scales])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "resize.onnx")
    program = isoform.load(str(tmp_path / "resize.onnx"))
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = isoform.compile(program, threads=1, effort="quick").run(None, {"x": x})
    np.testing.assert_array_equal(found, wanted)
    names = {op.name for op in lower_to(program, "kernel").main.body.block.ops}
    if rounding != "ceil" and 1.5 not in scales:
        assert "kernel.call" not in names


@pytest.mark.parametrize("out", [2, 3, 7, 15, 29, 64, 100])
def test_corners_stay_aligned_to_the_tie(out):
    """Positions are rounded once: 14 * 27 / 28 is 13.5, which `round_prefer_ceil` rounds up."""
    for n in range(1, 70):
        exact = [float(Fraction(k * (n - 1), out - 1)) for k in range(out)]
        assert positions("align_corners", n, out, out / n, None).tolist() == exact
