"""The comparison that the tests of models rest on notices what it must."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.agreement import compare, difference
from support.seeded import Draw, fill_constants, restore, strip, users_of

from isoform.dialects.builder import GraphBuilder

ONE = np.array([1.0, -2.0, 4.0], np.float32)
INF = np.array([1.0, -2.0, -np.inf], np.float32)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (ONE, ONE, 0.0),
        (ONE + np.array([0, 0.5, 0], np.float32), ONE, 0.125),
        (ONE[:2], ONE, np.inf),
        (ONE.astype(np.float64), ONE, np.inf),
        (INF, INF, 0.0),
        (ONE, INF, np.inf),
        (INF + np.array([0.5, 0, 0], np.float32), INF, 0.25),
        (ONE, np.full(3, np.nan, np.float32), np.inf),
    ],
)
def test_differences(ours: np.ndarray, theirs: np.ndarray, expected: float) -> None:
    assert difference(ours, theirs) == expected


def test_a_nan_of_ours_is_no_agreement() -> None:
    assert not difference(np.full(3, np.nan, np.float32), ONE) <= 1e-4


def test_a_wrong_result_fails_the_check() -> None:
    build = GraphBuilder()
    build.output("y", build.relu(build.input("x", (3,))))
    program, good = build.build(), np.maximum(ONE, 0)
    compare(program, {"y": good}, {"x": ONE}).check()
    with pytest.raises(AssertionError):
        compare(program, {"y": good + np.float32(1e-3)}, {"x": ONE}).check()


def _conv() -> onnx.ModelProto:
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([8, 3, 3, 3]), "s")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "xy")
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], [shape]))


def test_weights_are_drawn_by_their_role_and_the_same_each_time() -> None:
    one, two = fill_constants(_conv()), fill_constants(_conv())
    assert one.SerializeToString() == two.SerializeToString()
    weight = numpy_helper.to_array(one.graph.initializer[-1])
    assert weight.shape == (8, 3, 3, 3)
    assert weight.std() == pytest.approx(np.sqrt(2 / 27), rel=0.15)
    assert [n.op_type for n in one.graph.node] == ["Conv"]


def test_what_is_stripped_is_restored_and_shapes_are_kept() -> None:
    model = fill_constants(_conv())
    full = model.SerializeToString()
    strip(model)
    assert len(model.SerializeToString()) < 300
    assert numpy_helper.to_array(model.graph.initializer[0]).tolist() == [8, 3, 3, 3]
    assert restore(model).SerializeToString() == full


def test_users_are_found_through_ops_that_carry() -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["w"], ["u"]),
        helper.make_node("Mul", ["x", "u"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [], [])
    assert [(n.op_type, k) for n, k in users_of(graph)["w"]] == [("Mul", 1)]


def test_text_of_a_draw_reads_back() -> None:
    draw = Draw("uniform", 0.5, 1.5, 7)
    assert Draw.parse(draw.text()) == draw
    assert Draw.parse("made by an exporter") is None
