"""What a model takes and gives: defaults, outputs listed twice, outputs that nothing computes."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from isoform.compiler import api, cli
from isoform.compiler.commands.inputs import read_inputs, write_outputs
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.lowering.graph_to_onnx.exporter import to_model
from isoform.lowering.onnx_to_graph import import_onnx
from isoform.passes.same_interface import check_same_interface

ONES = np.ones(2, np.float32)


def model(text: str, ir: int = 8, **weights: Array) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : 17]>\n{text}')
    proto.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())
    return proto


def everywhere(
    proto: onnx.ModelProto, folder: Path, feeds: Mapping[str, Array], expected: Mapping[str, object]
) -> None:
    """Straight, as IR text, improved, and written as ONNX again: the same outputs."""
    source, text, again = (folder / f"m.{kind}" for kind in ("onnx", "mlir", "again.onnx"))
    onnx.save(proto, source)
    program = api.load(source)
    api.save(program, text)
    api.save(api.improve(api.load(text)), again)
    assert [o.name for o in onnx.load(again).graph.output] == [o.name for o in proto.graph.output]
    write_outputs(folder / "i.npz", feeds)
    for path in (source, text, again):
        files = ("--inputs", str(folder / "i.npz"), "--output", str(folder / "o.npz"))
        assert cli.main(["run", str(path), "--effort", "quick", *files]) == 0
        session = api.compile(api.load(path), "reference")
        (fast, exact) = read_inputs(folder / "o.npz", session.outputs), session(**feeds)
        for found in (fast, exact):
            assert {n: a.tolist() for n, a in found.items()} == expected
        runtime = pytest.importorskip("onnxruntime")
        if path.suffix == ".onnx":
            peer = runtime.InferenceSession(str(path))
            values = peer.run(None, dict(feeds))
            assert [v.tolist() for v in values] == [expected[o.name] for o in peer.get_outputs()]


def test_an_output_may_be_listed_twice(tmp_path: Path) -> None:
    proto = model("g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) z = Relu(x) }")
    proto.graph.output.insert(1, proto.graph.output[0])
    everywhere(proto, tmp_path, {"x": ONES}, {"y": [-1, -1], "z": [1, 1]})
    session = api.compile(import_onnx(proto), "reference")
    assert [a.tolist() for a in session.run(None, {"x": ONES})] == [[-1, -1], [-1, -1], [1, 1]]


def test_an_output_may_be_an_input_a_weight_or_the_value_of_another(tmp_path: Path) -> None:
    text = "g (float[2] x) => (float[2] y, float[2] x, float[2] w, float[2] v) %s"
    proto = model(text % "{ y = Add(x, w) v = Identity(y) }", w=2 * ONES)
    expected = {"y": [3, 3], "x": [1, 1], "w": [2, 2], "v": [3, 3]}
    everywhere(proto, tmp_path, {"x": ONES}, expected)


@pytest.mark.parametrize("dims", ["2,1", "3", "1,2,1", ""])
def test_an_output_declared_with_another_shape_is_computed_all_the_same(
    dims: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = f"float[{dims}]" if dims else "float[1]"
    onnx.save(model(f"g (float[2] x) => ({kind} y) {{ y = Neg(x) }}"), tmp_path / "m.onnx")
    assert cli.main(["run", str(tmp_path / "m.onnx"), "--output", str(tmp_path / "o.npz")]) == 0
    line = capsys.readouterr().err
    assert "warning: output 'y': declared with dims [" in line and "it has [2]" in line
    assert line.count("\n") == 1


def test_symbols_and_missing_ranks_are_no_other_shape(capsys: pytest.CaptureFixture[str]) -> None:
    import_onnx(model("g (float[2] x) => (float[n] y) { y = Neg(x) }"))
    unknown = model("g (float[2] x) => (float y) { y = Neg(x) }")
    unknown.graph.output[0].type.tensor_type.ClearField("shape")
    import_onnx(unknown)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("dims", ["?,?", " , ", "?,3"])
def test_dims_called_by_a_question_mark_are_not_one_symbol(dims: str) -> None:
    proto = model("g (float[a,b] x) => (float[c,d] y) { y = Neg(x) }")
    for dim, name in zip(
        proto.graph.input[0].type.tensor_type.shape.dim, dims.split(","), strict=True
    ):
        if name.isdecimal():
            dim.dim_value = int(name)
        else:
            dim.dim_param = name
    with pytest.raises(UserError, match=r"\(add --shape x=1,[13]\)"):
        import_onnx(proto)
    assert import_onnx(proto, {"x": [2, 3]}).inputs["x"].get_shape() == (2, 3)


def test_run_takes_the_shapes_of_dynamic_inputs_from_what_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "g (float[n,k] x, float[k] z) => (float[n,k] y) { y = Add(x, z) }"
    onnx.save(model(text), tmp_path / "m.onnx")
    feeds = {"x": np.ones((2, 3), np.float32), "z": np.ones(3, np.float32)}
    write_outputs(tmp_path / "i.npz", feeds)
    arguments = ["run", str(tmp_path / "m.onnx"), "--inputs", str(tmp_path / "i.npz")]
    assert cli.main([*arguments, "--output", str(tmp_path / "o.npz")]) == 0
    assert np.load(tmp_path / "o.npz")["y"].shape == (2, 3)
    write_outputs(tmp_path / "i.npz", feeds | {"z": np.ones(4, np.float32)})
    assert cli.main(arguments) == 1
    assert "dim 'k' has another size: expected 3, found 4" in capsys.readouterr().err
    write_outputs(tmp_path / "i.npz", {"x": np.ones((2, 3), np.float32)})
    assert cli.main(arguments) == 1
    assert "input 'z' is missing" in capsys.readouterr().err


def test_names_of_ir_text_are_told_apart() -> None:
    kind = "tensor<2xf32>"
    second, output = f'%z: {kind} {{isoform.name = "NAME"}}', f'{kind} {{isoform.name = "y"}}'
    head = f'func.func @main(%x: {kind} {{isoform.name = "x"}}, {second}) -> ({output}, {output})'
    body = f"{head} {{ func.return %x, %VALUE : {kind}, {kind} }}"

    def parsed(name: str, value: str) -> Program:
        return api.parse(body.replace("NAME", name).replace("VALUE", value))

    assert parsed("z", "x").output_names == ["y", "y"]
    with pytest.raises(UserError, match="two outputs that are not one value are named 'y'"):
        parsed("z", "z")
    with pytest.raises(UserError, match="two inputs are named 'x'"):
        parsed("x", "x")


# --- initialisers that are inputs too ---

SCALED = "g (float[2] w, float[2] x) => (float[2] y) { y = Mul(x, w) }"


def test_an_initialiser_that_is_an_input_too_is_a_default(tmp_path: Path) -> None:
    proto = model(SCALED, w=3 * ONES)
    everywhere(proto, tmp_path, {"x": ONES}, {"y": [3, 3]})
    everywhere(proto, tmp_path, {"x": ONES, "w": 5 * ONES}, {"y": [5, 5]})
    again = to_model(import_onnx(proto)).graph
    assert [i.name for i in again.input] == ["x", "w"]
    assert [t.name for t in again.initializer] == ["w"]


def test_defaults_follow_the_other_inputs_and_may_be_left_out() -> None:
    session = api.compile(import_onnx(model(SCALED, w=3 * ONES)), effort="quick")
    assert [(i.name, i.has_default) for i in session.inputs] == [("x", False), ("w", True)]
    assert session(ONES)["y"].tolist() == [3, 3]
    assert session(ONES, 2 * ONES)["y"].tolist() == [2, 2]
    assert session(x=ONES)["y"].tolist() == [3, 3]
    with pytest.raises(UserError, match="input 'w' has another shape"):
        session(ONES, np.ones(3, np.float32))
    with pytest.raises(UserError, match="input 'x' is missing"):
        session(w=ONES)


def test_before_ir_version_4_every_initialiser_is_a_constant() -> None:
    assert list(import_onnx(model(SCALED, ir=3, w=ONES)).inputs) == ["x"]


def test_a_default_that_shapes_depend_on_is_a_constant(capsys: pytest.CaptureFixture[str]) -> None:
    text = """g (float[4] x, int64[1] a, int64[1] b, float[1] s) => (float[2,2] y) {
        shape = Concat <axis = 0> (a, b)
        r = Reshape(x, shape)
        y = Mul(r, s)
    }"""
    two, scale = np.asarray([2]), np.asarray([3], np.float32)
    program = import_onnx(model(text, a=two, b=two, s=scale))
    assert list(program.inputs) == ["x", "s"]
    said = capsys.readouterr().err
    assert "initialiser 'a' decides shapes" in said and "initialiser 'b' decides shapes" in said
    session = api.compile(program, "reference")
    assert session(np.arange(4, dtype=np.float32))["y"].tolist() == [[0, 3], [6, 9]]


def test_a_default_must_have_the_declared_type_and_shape() -> None:
    with pytest.raises(UserError, match=r"another shape: expected \[2\], found \[3\]"):
        import_onnx(model(SCALED, w=np.ones(3, np.float32)))
    with pytest.raises(UserError, match="another element type: expected FLOAT, found DOUBLE"):
        import_onnx(model(SCALED, w=np.ones(2)))


def test_programs_with_other_defaults_cannot_be_compared() -> None:
    a, b = (import_onnx(model(SCALED, w=w)) for w in (ONES, 2 * ONES))
    check_same_interface(a, a.clone())
    with pytest.raises(UserError, match="input 'w' has another default"):
        check_same_interface(a, b)
    with pytest.raises(UserError, match="'w' has a default in one of the programs only"):
        plain = import_onnx(model(SCALED))
        swapped = import_onnx(model("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }"))
        assert list(plain.inputs) == ["w", "x"]
        check_same_interface(a, swapped)


def test_what_is_optimised_keeps_its_defaults(tmp_path: Path) -> None:
    text = """g (float[2,4] x, float[4,3] w) => (float[2,3] y) {
        p = MatMul(x, w) q = MatMul(x, w) s = Add(p, q) y = Relu(s)
    }"""
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    onnx.save(model(text, w=w), tmp_path / "m.onnx")
    out = tmp_path / "o.onnx"
    budget = ("--budget", "2", "--effort", "quick")
    assert cli.main(["optimize", str(tmp_path / "m.onnx"), "-o", str(out), *budget]) == 0
    x = np.ones((2, 4), np.float32)
    session = api.compile(api.load(out), effort="quick")
    assert np.allclose(session(x)["y"], 2 * (x @ w))
    assert np.allclose(session(x, w=-w)["y"], np.maximum(2 * (x @ -w), 0))
    assert cli.main(["verify", str(tmp_path / "m.onnx"), str(out)]) == 0


def test_a_result_that_nothing_reads_has_a_name_in_what_is_written(tmp_path: Path) -> None:
    text = """g (float[4] x) => (float[2] y) {
        k = Constant <value: tensor = int64[1] {2}> ()
        v, positions = TopK(x, k)
        y = Neg(v)
    }"""
    x = np.arange(4, dtype=np.float32)
    everywhere(model(text), tmp_path, {"x": x}, {"y": [-3, -2]})
