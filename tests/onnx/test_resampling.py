"""Linear and cubic Resize: sums over windows, where that is less than a product with a matrix."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import isoform
from isoform.lowering.onnx_to_graph.resizing import interpolation, positions, window

HOWS = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")


def resize(tmp_path, shape, scales, opset: int = 18, **attributes):
    """The model, and its file's path."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("scales", TensorProto.FLOAT, [len(scales)], scales)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    path = str(tmp_path / "resize.onnx")
    onnx.save(model, path)
    return model, path


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("scales", [(2.0, 3.0), (0.5, 0.75), (1.5, 1.0)])
def test_a_resize_is_windows_and_right(tmp_path, how, mode, scales):
    attributes = {"mode": mode, "coordinate_transformation_mode": how}
    model, path = resize(tmp_path, (1, 3, 8, 20), (1.0, 1.0, *scales), **attributes)
    program = isoform.load(path)
    names = [op.name for op in program.main.body.block.ops]
    assert "graph.resample" in names
    assert "graph.matmul" not in names
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 20)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = isoform.compile(program, threads=1, effort="quick").run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_wide_windows_are_a_product(tmp_path):
    attributes = {"mode": "linear", "antialias": 1}
    model, path = resize(tmp_path, (1, 2, 4, 16), (1.0, 1.0, 1.0, 0.125), **attributes)
    program = isoform.load(path)
    assert "graph.matmul" in [op.name for op in program.main.body.block.ops]
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 16)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = isoform.compile(program, threads=1, effort="quick").run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_nan_stays_among_its_neighbours(tmp_path):
    _, path = resize(tmp_path, (1, 1, 6, 20), (1.0, 1.0, 2.0, 2.0), mode="linear")
    x = np.ones((1, 1, 6, 20), np.float32)
    x[0, 0, 3, 5] = np.nan
    x[0, 0, 0, 19] = np.inf
    (found,) = isoform.compile(isoform.load(path), threads=1, effort="quick").run(None, {"x": x})
    assert {tuple(p) for p in np.argwhere(np.isnan(found[0, 0]))} == {
        (h, w) for h in range(5, 9) for w in range(9, 13)
    }
    assert np.isposinf(found[0, 0, 0:3, 37:]).all()
    assert np.isfinite(found[0, 0, 3:, 13:]).all()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_windows_hold_the_whole_matrix(how, mode):
    """For every size up to 12: what the windows weigh, put back where it stands, is the matrix."""
    found_some = 0
    for n in range(1, 13):
        for out in range(1, 13):
            at = positions(how, n, out, out / n, None)
            matrix = interpolation(at, n, mode, {})
            found = window(at, matrix)
            if found is None:
                continue
            found_some += 1
            weights, again = found.weights(matrix), np.zeros_like(matrix)
            for t in range(found.taps):
                for k in range(out):
                    position = (found.step * k + found.shift) // found.per + t
                    if 0 <= position < n:
                        again[position, k] += weights[t, k]
                    else:
                        assert weights[t, k] == 0
            np.testing.assert_array_equal(again, matrix)
    assert found_some > 100
