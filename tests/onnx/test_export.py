"""Programs as ONNX files: they pass the checker, and read back they mean the same."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from xdsl.dialects.builtin import f16, f64, i32, i64
from xdsl.ir import SSAValue

import isoform
from isoform.dialects import reference
from isoform.dialects.algebra import OnesOp
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import OPS
from isoform.dialects.program import Program
from isoform.dialects.types import tensor, to_numpy
from isoform.lowering.graph_to_onnx import model_file
from isoform.lowering.graph_to_onnx.exporter import export_onnx, to_model
from isoform.lowering.graph_to_onnx.ops import WRITERS
from isoform.lowering.onnx_to_graph import import_onnx

RNG = np.random.default_rng(0)


def feeds(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, type_ in program.inputs.items():
        dtype = to_numpy(type_.element_type)
        drawn = RNG.random(type_.get_shape()) * (0.9 if dtype.kind == "f" else 3)
        found[name] = drawn.astype(dtype) if dtype.kind != "b" else drawn > 1.5
    return found


def round_trip(program: Program, *, runtime: bool = True) -> onnx.ModelProto:
    """Export, check, read back, compare; also against onnxruntime."""
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    again = import_onnx(model)
    again.module.verify()
    assert again.inputs == program.inputs
    assert again.outputs == program.outputs
    data = feeds(program)
    wanted, got = reference.run(program, data), reference.run(again, data)
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=1e-7)
    if runtime:
        session = ort.InferenceSession(model.SerializeToString())
        for value, other in zip(session.run(None, data), wanted.values(), strict=True):
            np.testing.assert_allclose(value, other, rtol=2e-3, atol=1e-4)
    return model


def program_of(op: str, *shapes: Any, **properties: Any) -> Program:
    """One op on inputs of these shapes (or (shape, element) pairs)."""
    b = GraphBuilder()
    operands: list[SSAValue] = []
    for k, shape in enumerate(shapes):
        if shape and isinstance(shape[0], tuple):
            operands.append(b.input(f"x{k}", *shape))
        else:
            operands.append(b.input(f"x{k}", shape))
    b.output("y", b.op(op, *operands, **properties))
    return b.build()


FLOAT = ("abs", "neg", "exp", "sqrt", "tanh", "erf", "floor", "ceil", "round", "sin", "cos", "tan",
         "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh", "relu", "sigmoid", "sign",
         "softplus", "is_nan", "leaky_relu", "elu", "hard_sigmoid", "clip")  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow", "equal", "less", "less_equal", "greater",
       "greater_equal")  # fmt: skip
WINDOW = {"strides": [2, 1], "pads": [1, 0, 1, 2], "dilations": [1, 2]}
CASES: list[tuple[Any, ...]] = [
    *((name, {}, (2, 3)) for name in FLOAT),
    *((name, {}, (2, 3), (2, 3)) for name in BINARY),
    ("log", {}, (2, 3)),
    # Draws are in [0, 0.9): outside the domain of acosh and near its pole for reciprocal.
    ("acosh", {}, (0, 3)),
    ("reciprocal", {}, (0, 3)),
    ("clip", {"min": 0.25, "max": 0.5}, (2, 3)),
    ("clip", {"max": 0.5}, (2, 3)),
    ("cast", {"to": f64}, (2, 3)),
    ("cast", {"to": i32}, (2, 3)),
    ("cast", {"to": f16}, (2, 3)),
    ("matmul", {}, (2, 3), (3, 4)),
    ("matmul", {}, (5, 2, 3), (5, 3, 4)),
    ("matmul", {"transpose_a": True}, (3, 2), (3, 4)),
    ("matmul", {"transpose_a": True, "transpose_b": True}, (5, 3, 2), (5, 4, 3)),
    *(("g2bmm", {"width": w, "dilation": d}, (2, 5, 3), (2, 5, 3))
      for w, d in ((0, 1), (1, 1), (2, 3), (3, 4))),
    *(("gbmm", {"dilation": d}, (2, 5, n), (2, 5, 3)) for n, d in ((1, 1), (3, 1), (5, 3), (1, 9))),
    *(("resample", {"axis": axis, **how}, (4, 5, 3), (taps, 7)) for axis, taps, how in (
        (1, 2, {"step": 5, "shift": -1, "per": 7}), (0, 3, {"step": 2, "shift": -1}), (2, 1, {}))),
    ("conv", {**WINDOW, "groups": 2}, (1, 4, 7, 8), (6, 2, 3, 2), (6,)),
    ("conv", {**WINDOW, "pads": [-1, 0, 1, 2]}, (1, 4, 7, 8), (6, 4, 3, 2)),
    ("conv", {"strides": [1], "pads": [1, 1], "dilations": [1]}, (1, 4, 7), (6, 4, 3)),
    ("conv_transpose", {**WINDOW, "output_padding": [1, 0]}, (1, 4, 5, 5), (4, 6, 3, 2), (6,)),
    ("conv_transpose", {**WINDOW, "pads": [-1, 0, 0, -2], "output_padding": [0, 0]},
     (1, 4, 5, 5), (4, 6, 3, 2), (6,)),
    ("max_pool", {**WINDOW, "kernel": [2, 3], "ceil_mode": True}, (1, 2, 7, 8)),
    ("avg_pool", {**WINDOW, "kernel": [2, 3]}, (1, 2, 7, 8)),
    ("avg_pool", {**WINDOW, "dilations": [1, 1], "kernel": [3, 3], "count_include_pad": True},
     (1, 2, 7, 8)),
    *((f"reduce_{name}", {"axes": [0, 2], "keep_dims": keep}, (2, 3, 4))
      for name in ("sum", "max", "min", "prod", "mean") for keep in (True, False)),
    ("reduce_sum", {"axes": []}, (2, 3)),
    ("softmax", {"axis": 1}, (2, 3, 4)),
    ("log_softmax", {"axis": 0}, (2, 3, 4)),
    ("layer_norm", {"axis": 1}, (2, 3, 4), (3, 4), (3, 4)),
    ("instance_norm", {}, (2, 3, 4), (3,), (3,)),
    ("batch_norm", {}, (2, 3, 4), (3,), (3,), (3,), (3,)),
    ("lrn", {"size": 3, "alpha": 0.5}, (1, 4, 3, 3)),
    ("reshape", {"shape": [3, 2]}, (2, 3)),
    ("reshape", {"shape": [0, 5]}, (0, 3)),
    ("transpose", {"perm": [2, 0, 1]}, (2, 3, 4)),
    ("broadcast", {"shape": [2, 5, 3], "dims": [1, 2]}, (1, 3)),
    ("broadcast", {"shape": [2, 5, 3], "dims": [0, 1]}, (2, 1)),
    ("concat", {"axis": 1}, (2, 3), (2, 1), (2, 2)),
    ("slice", {"starts": [4, 1], "sizes": [3, 2], "steps": [-2, 1]}, (5, 4)),
    ("slice", {"starts": [0, 1], "sizes": [0, 2], "steps": [-1, 1]}, (5, 4)),
    ("pad", {"pads": [1, 0, 0, 2], "fill": 1.5}, (2, 3)),
    ("pad", {"pads": [-1, 0, 0, 2]}, (2, 3)),
    ("gather", {"axis": 1}, (2, 3), ((2, 2), i64)),
    ("arg_max", {"axis": 1}, (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}".replace(" ", ""))
def test_an_op_makes_the_round_trip(case: tuple[Any, ...]) -> None:
    op, properties, *shapes = case
    round_trip(program_of(op, *shapes, **properties))


def test_positions_are_a_range() -> None:
    b = GraphBuilder()
    x = b.input("x", (4,), i64)
    b.output("y", b.add(x, b.iota(start=[3], size=[4], step=[-2])))
    round_trip(b.build())


def test_logic_where_and_split_make_the_round_trip() -> None:
    b = GraphBuilder()
    x, y = b.input("x", (2, 4)), b.input("y", (2, 4))
    less = b.less(x, y)
    mask = b.or_(b.and_(less, b.not_(less)), b.xor(less, b.greater(x, y)))
    first, second = b.split(b.where(mask, x, y), 1, [1, 3])
    b.output("first", first)
    b.output("second", second)
    round_trip(b.build())


def test_every_graph_op_has_a_writer() -> None:
    names = {op.name.removeprefix("graph.") for op in OPS}
    assert set(WRITERS) == names - {"weight", "constant", "opaque"}


def test_a_weight_is_renamed_if_an_input_or_output_has_its_name(tmp_path: Path) -> None:
    """ONNX has one namespace for values; a program has one each for inputs, outputs, weights."""
    b = GraphBuilder()
    x = b.input("x", (2,))
    names = ("x", "y", "z")
    weights = [b.weight(n, np.full(2, k + 1.0, np.float32)) for k, n in enumerate(names)]
    for value in weights:
        x = b.add(x, value)
    b.output("y", x)
    b.output("z", weights[2])  # the weight itself: one value, one name
    program = b.build()
    model = round_trip(program)
    assert {t.name for t in model.graph.initializer} == {"x_1", "y_1", "z"}
    export_onnx(program, tmp_path / "model.onnx")
    again = import_onnx(tmp_path / "model.onnx")
    assert sorted(again.weights) == ["x_1", "y_1", "z"]
    assert again.weights["y_1"].tolist() == [2.0, 2.0]


def test_names_of_inputs_outputs_weights_and_nodes_are_kept() -> None:
    b = GraphBuilder()
    x = b.input("in:0", (2,))
    w = b.weight("päth/w", np.ones(2, np.float32))
    with b.at("block/add 1"):  # the source name of the node
        y = b.add(x, w)
    b.output("out 0", y)
    b.output("again", y)
    b.output("weight itself", w)
    model = round_trip(b.build())
    assert [i.name for i in model.graph.input] == ["in:0"]
    assert [o.name for o in model.graph.output] == ["out 0", "again", "weight itself"]
    assert [t.name for t in model.graph.initializer] == ["päth/w"]
    assert model.graph.node[0].name == "block/add 1"


def test_a_value_named_like_an_input_is_renamed() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,))
    y = b.relu(x)
    y.name_hint = "x"
    b.output("z", b.neg(y))
    round_trip(b.build())


def test_an_opaque_node_comes_back_as_it_was() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,5] x) => (float[2,2] v, int64[2,2] i) {
        k = Constant <value: tensor = int64[1] {2}> ()
        r = Relu(x)
        v, i = TopK <axis = 1, largest = 0> (r, k)
    }"""
    model = round_trip(import_onnx(onnx.parser.parse_model(text)))
    (node,) = [n for n in model.graph.node if n.op_type == "TopK"]
    assert {a.name: a.i for a in node.attribute} == {"axis": 1, "largest": 0}


def test_an_opaque_node_whose_meaning_changed_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 10]>
    g (float[2,5] x) => (float[2,2] v, int64[2,2] i) {
        k = Constant <value: tensor = int64[1] {2}> ()
        v, i = TopK <axis = 1> (x, k)
    }"""
    with pytest.raises(UserError, match="means something else"):
        to_model(import_onnx(onnx.parser.parse_model(text)))


def test_an_op_below_the_graph_level_is_refused() -> None:
    b = GraphBuilder()
    b.input("x", (2,))
    b.output("y", b.append(OnesOp(tensor((2,)))))
    with pytest.raises(UserError, match="below the graph level") as caught:
        to_model(b.build())
    assert "\n" not in str(caught.value)


def big_program() -> Program:
    b = GraphBuilder()
    x = b.input("x", (100,))
    for k in range(3):
        x = b.add(x, b.weight(f"w{k}", np.full(100, k, np.float32)))
    b.output("y", x)
    return b.build()


def test_large_weights_go_into_a_file_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "EXTERNAL_BYTES", 1000)
    path = tmp_path / "big.onnx"
    export_onnx(big_program(), path)
    assert path.stat().st_size < 1500
    assert (tmp_path / "big.onnx.data").stat().st_size >= 1200
    onnx.checker.check_model(path, full_check=True)
    again = import_onnx(path)
    assert reference.run(again, {"x": np.zeros(100)})["y"].tolist() == [3.0] * 100


def test_a_written_file_has_the_bytes_of_the_whole_message(tmp_path: Path) -> None:
    """It is written in parts; protobuf would write the same."""
    b = GraphBuilder()
    few_bits = b.weight("int4", np.ones((3, 3), ml_dtypes.int4))
    halves = b.weight("w" * 200, np.ones((300, 3), ml_dtypes.bfloat16))
    b.output("y", b.add(b.cast(halves, to=f64), b.input("x", (300, 3), f64)))
    b.output("z", b.cast(few_bits, to=f64))
    for k, program in enumerate([big_program(), b.build()]):
        export_onnx(program, tmp_path / f"{k}.onnx")
        whole = to_model(program).SerializeToString(deterministic=True)
        assert (tmp_path / f"{k}.onnx").read_bytes() == whole


def test_the_file_is_written_whole_and_always_the_same(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        export_onnx(big_program(), tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]
    with pytest.raises(UserError, match="cannot write"):
        export_onnx(big_program(), tmp_path / "none" / "a.onnx")


def test_clips_without_a_bound_clip_infinities_as_the_specification_says(tmp_path: Path) -> None:
    """A bound's default is the lowest or greatest finite number; what is written keeps that."""
    b = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Clip", ["x", "zero"], ["y"]),
            onnx.helper.make_node("Clip", ["x", "", "zero"], ["z"]),
            onnx.helper.make_node("Relu", ["x"], ["r"]),
        ],
        "clips",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])],
        [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4]) for n in "yzr"],
        [onnx.helper.make_tensor("zero", onnx.TensorProto.FLOAT, [], [0.0])],
    )
    model = onnx.helper.make_model(b, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "a.onnx")
    x = np.asarray([np.inf, -np.inf, 1.0, -1.0], np.float32)
    program = isoform.load(tmp_path / "a.onnx")
    found = isoform.compile(program, effort="quick")(x=x)
    most = np.finfo(np.float32).max
    assert found["y"].tolist() == [most, 0, 1, 0]
    assert found["z"].tolist() == [0, -most, 0, -1]
    assert found["r"].tolist() == [np.inf, 0, 1, 0]
    isoform.save(program, tmp_path / "b.onnx")
    again = isoform.compile(isoform.load(tmp_path / "b.onnx"), effort="quick")(x=x)
    assert all(np.array_equal(found[k], again[k]) for k in found)
