"""onnxruntime's fused ops: imported, they compute what onnxruntime computes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

Shapes = list[Any]
Attributes = dict[str, Any]

# op type, operand shapes ("" for a missing one), attributes
CASES = [
    ("BiasGelu", [(2, 3, 4), (4,)], {}),
    ("FastGelu", [(2, 3, 4), (4,)], {}),
    ("FastGelu", [(2, 3, 4)], {}),
    ("Gelu", [(2, 3, 4)], {}),
    ("QuickGelu", [(2, 3, 4)], {"alpha": 1.5}),
    ("FusedMatMul", [(2, 4, 3), (2, 5, 4)], {"alpha": 0.5, "transA": 1, "transB": 1}),
    ("FusedMatMul", [(3, 4), (4, 5)], {}),
    (
        "FusedGemm",
        [(4, 3), (4, 5), (5,)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "transA": 1, "alpha": 2.0},
    ),
    ("Attention", [(2, 5, 8), (8, 24), (24,)], {"num_heads": 2}),
    ("Attention", [(1, 5, 8), (8, 24), (24,)], {"num_heads": 4, "scale": 0.3}),
    ("Attention", [(2, 5, 8), (8, 24), (24,)], {"num_heads": 2, "unidirectional": 1}),
    ("SkipSimplifiedLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,)], {"epsilon": 1e-3}),
    ("SkipSimplifiedLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,), (8,)], {}),
    ("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,), (8,), (8,)], {"epsilon": 1e-3}),
    ("SkipLayerNormalization", [(2, 3, 8), (2, 3, 8), (8,)], {"epsilon": 1e-3}),
    *(
        (
            "FusedConv",
            [(1, 4, 7, 7), (6, 2, 3, 3), bias, added],
            {"group": 2, "pads": [1, 0, 1, 2], "strides": [2, 1], "activation": name, **more},
        )
        for name, more, bias, added in (
            ("Relu", {}, (6,), ""),
            ("Clip", {"activation_params": [-0.25, 0.5]}, (6,), ""),
            ("HardSigmoid", {"activation_params": [0.3, 0.6]}, "", ""),
            ("Tanh", {}, (6,), (1, 6, 4, 7)),
        )
    ),
]


def save(
    path: Path, op_type: str, shapes: Shapes, attributes: Attributes, results: int = 1
) -> None:
    names = [f"x{k}" if shape else "" for k, shape in enumerate(shapes)]
    outputs = ["y", "", "", "total"][:results]
    node = helper.make_node(op_type, names, outputs, "n", domain="com.microsoft", **attributes)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
        if name
    ]
    made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs if o]
    graph = helper.make_graph([node], "g", inputs, made)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def both(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What onnxruntime computes, and what we do."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(5)
    feeds = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
    program = import_onnx(path)
    program.module.verify()
    found = reference.run(program, feeds)
    expected = [np.asarray(value) for value in session.run(None, feeds)]
    return expected, [found[name] for name in program.outputs]


@pytest.mark.parametrize(("op_type", "shapes", "attributes"), CASES)
def test_a_fused_op_is_what_onnxruntime_computes(
    op_type: str, shapes: Shapes, attributes: Attributes, tmp_path: Path
) -> None:
    save(tmp_path / "m.onnx", op_type, shapes, attributes)
    expected, found = both(tmp_path / "m.onnx")
    # FastGelu of onnxruntime approximates tanh.
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(24))
def test_a_fused_product_moves_dims_as_onnxruntime_does(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    m, k, n, *batch = (int(v) for v in rng.permutation([2, 3, 4, 5, 6])[: rng.integers(3, 6)])
    attributes: dict[str, Any] = {"alpha": 0.5}
    shapes: Shapes = []
    for side, (rows, columns) in (("A", (m, k)), ("B", (k, n))):
        swapped, moved = (int(v) for v in rng.integers(0, 2, 2))
        moved = moved if batch else 0
        attributes |= {f"trans{side}": swapped, f"transBatch{side}": moved}
        rows, columns = (columns, rows) if swapped else (rows, columns)
        shapes.append((rows, *batch, columns) if moved else (*batch, rows, columns))
    save(tmp_path / "m.onnx", "FusedMatMul", shapes, attributes)
    expected, found = both(tmp_path / "m.onnx")
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


def test_a_norm_without_a_mean_stands_in_the_onnx_domain(tmp_path: Path) -> None:
    save(tmp_path / "m.onnx", "SimplifiedLayerNormalization", [(2, 3, 8), (8,)], {"epsilon": 1e-3})
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node[0].domain = ""
    onnx.save(model, tmp_path / "m.onnx")
    expected, found = both(tmp_path / "m.onnx")
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_embeddings_and_masks_are_what_onnxruntime_computes(masked: bool, tmp_path: Path) -> None:
    """EmbedLayerNormalization, then Attention, with a mask or without."""
    rng = np.random.default_rng(2)
    table = {"words": (9, 8), "places": (6, 8), "kinds": (2, 8), "g": (8,), "b": (8,)}
    table |= {"w": (8, 24), "wb": (24,)}
    given = ["ids", "segments", "words", "places", "kinds", "g", "b"]
    read = ["e", "w", "wb", *(["mask"] if masked else [])]
    nodes = [
        helper.make_node("EmbedLayerNormalization", given, ["e", ""], domain="com.microsoft"),
        helper.make_node("Attention", read, ["y"], domain="com.microsoft", num_heads=2),
    ]
    names = ["ids", "segments", *(["mask"] if masked else [])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.INT32, (2, 5)) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            for name, shape in table.items()
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    feeds = {
        "ids": rng.integers(0, 9, (2, 5)).astype(np.int32),
        "segments": rng.integers(0, 2, (2, 5)).astype(np.int32),
    }
    if masked:
        feeds["mask"] = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32)
    session = ort.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    expected = np.asarray(session.run(None, feeds)[0])
    found = reference.run(import_onnx(tmp_path / "m.onnx"), feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_sum_is_the_fourth_result(tmp_path: Path) -> None:
    shapes = [(2, 3, 8), (2, 3, 8), (8,)]
    save(tmp_path / "m.onnx", "SkipLayerNormalization", shapes, {"epsilon": 1e-3}, results=4)
    expected, found = both(tmp_path / "m.onnx")
    assert len(found) == 2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_an_unknown_activation_is_one_line(tmp_path: Path) -> None:
    shapes = [(1, 4, 7, 7), (6, 4, 3, 3)]
    save(tmp_path / "m.onnx", "FusedConv", shapes, {"activation": "Relo"})
    with pytest.raises(UserError, match=r"activation 'Relo' is unknown.*did you mean 'Relu'"):
        import_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("domain", "level"),
    [("com.microsoft", "ORT_ENABLE_BASIC"), ("com.microsoft.nchwc", "ORT_ENABLE_EXTENDED")],
)
def test_what_is_not_known_names_the_level_that_avoids_it(
    domain: str, level: str, tmp_path: Path
) -> None:
    save(tmp_path / "m.onnx", "Mystery", [(2,)], {})
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node[0].domain = domain
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(UserError, match=rf"no op 'Mystery'.*level {level}"):
        import_onnx(tmp_path / "m.onnx")
