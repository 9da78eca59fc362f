"""Transforms of signals, and diagonals of einsum, on random settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import isoform
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx


def model(node: Any, feeds: dict[str, np.ndarray], opset: int = 20, **known: np.ndarray) -> Any:
    from onnx import numpy_helper

    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    weights = [numpy_helper.from_array(a, n) for n, a in known.items()]
    output = helper.make_tensor_value_info("y", inputs[0].type.tensor_type.elem_type, None)
    graph = helper.make_graph([node], "g", inputs, [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


@pytest.mark.parametrize("seed", range(30))
def test_short_time_transforms_agree_with_onnxruntime(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, signal, parts = (int(rng.integers(1, n)) for n in (4, 40, 3))
    length, step = int(rng.integers(1, signal + 1)), int(rng.integers(1, 9))
    dtype = (np.float32, np.float64)[seed % 2]
    feeds = {"x": rng.standard_normal((batch, signal, parts)).astype(dtype)}
    known: dict[str, Any] = {"step": np.array(step, np.int64)}
    names = ["x", "step", "", ""]
    if rng.random() < 0.6:
        feeds["w"], names[2] = rng.uniform(0, 1, length).astype(dtype), "w"
    if names[2] == "" or rng.random() < 0.5:
        known["length"], names[3] = np.array(length, np.int64), "length"
    node = helper.make_node("STFT", names, ["y"], onesided=int(parts == 1 and rng.random() < 0.7))
    proto = model(node, feeds, 17, **known)
    runtime = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted: Any = runtime.run(None, feeds)
    found = reference.run(import_onnx(proto), feeds)["y"]
    assert found.shape == wanted[0].shape
    np.testing.assert_allclose(found, wanted[0], atol=2e-4)


@pytest.mark.parametrize("seed", range(20))
def test_the_real_inverse_agrees_with_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(2, 9, int(rng.integers(1, 4)))]
    axis = int(rng.integers(0, len(shape)))
    x = rng.standard_normal([*shape, 2]).astype(np.float32)
    length = int(rng.integers(1, 20)) if seed % 2 else 2 * (shape[axis] - 1)
    known = {"axis": np.array(axis, np.int64)} | (
        {"n": np.array(length, np.int64)} if seed % 2 else {}
    )
    names = ["x", "n" if seed % 2 else "", "axis"]
    node = helper.make_node("DFT", names, ["y"], inverse=1, onesided=1)
    with isoform.compile(
        import_onnx(model(node, {"x": x}, **known)), threads=1, effort="quick"
    ) as session:
        found = session(x=x)["y"]
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis)
    np.testing.assert_allclose(found[..., 0], wanted, atol=1e-5)


EQUATIONS = (
    ("ii->i", [(4, 4)]), ("ii", [(5, 5)]), ("iii->i", [(3, 3, 3)]), ("iji->ji", [(2, 3, 2)]),
    ("...ii->...i", [(2, 3, 4, 4)]), ("ijjk,kk->ik", [(2, 3, 3, 4), (4, 4)]),
    ("iijj->ij", [(2, 2, 3, 3)]), ("ii,ij->j", [(3, 3), (3, 2)]), ("ii->i", [(0, 0)]),
    ("i...i->...", [(3, 2, 4, 3)]), ("ii->i", [(1, 1)]),
)  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_a_label_twice_is_a_diagonal(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    feeds = {f"x{k}": rng.standard_normal(s).astype(np.float32) for k, s in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], equation=equation)
    with isoform.compile(import_onnx(model(node, feeds)), threads=1, effort="quick") as session:
        found = session(**feeds)["y"]
    np.testing.assert_allclose(found, np.einsum(equation, *feeds.values()), atol=1e-5)


def test_what_fits_no_frame_or_label_is_one_line() -> None:
    x = np.zeros((1, 8, 1), np.float32)
    far = helper.make_node("STFT", ["x", "s", "", "n"], ["y"])
    known = {"s": np.array(1, np.int64), "n": np.array(9, np.int64)}
    with pytest.raises(UserError, match="no frame fits the signal"):
        import_onnx(model(far, {"x": x}, 17, **known))
    oblong = helper.make_node("Einsum", ["x"], ["y"], equation="bii->bi")
    with pytest.raises(UserError, match="label 'i' has two sizes"):
        import_onnx(model(oblong, {"x": x}))
