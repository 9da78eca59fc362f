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
