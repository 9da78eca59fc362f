"""IR with symbolic dims: commands, sessions, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler.cli import main
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import DynamicProgram

Captured = pytest.CaptureFixture[str]

TEXT = """
func.func @main(%x: tensor<?x8xf32, #graph.dims<n, 8>>, %w: tensor<8x4xf32>)
    -> tensor<?x4xf32, #graph.dims<2 * n, 4>> attributes {isoform.guards = ["n <= 64"]} {
  %y = graph.matmul %x, %w : tensor<?x4xf32, #graph.dims<n, 4>>
  %z = graph.concat %y, %y {axis = 0} : tensor<?x4xf32, #graph.dims<2 * n, 4>>
  func.return %z : tensor<?x4xf32, #graph.dims<2 * n, 4>>
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    return path


def test_one_session_runs_every_size_that_the_guards_allow(file: Path) -> None:
    session = isoform.compile(isoform.load(file), threads=1, effort="quick")
    draw = np.random.default_rng(0)
    w = draw.standard_normal((8, 4)).astype(np.float32)
    for n in (1, 7, 3, 64, 7, 0):
        x = draw.standard_normal((n, 8)).astype(np.float32)
        (found,) = session(x=x, w=w).values()
        np.testing.assert_allclose(found, np.concatenate([x @ w, x @ w]), rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="expected n <= 64, found n=65"):
        session(x=np.zeros((65, 8), np.float32), w=w)
    with pytest.raises(UserError, match=r"input 'x' has another shape"):
        session(x=np.zeros((3, 7), np.float32), w=w)


def test_its_text_names_the_dims(file: Path) -> None:
    program = isoform.load(file)
    assert "x: float32[n, 8], w: float32[8, 4]" in repr(program)
    session = isoform.compile(program, threads=1, effort="quick")
    assert str(session.outputs[0]) == "z: float32[2 * n, 4]"


@pytest.mark.parametrize("flag", ["n=3", "x=3,8"])
def test_a_command_binds_a_dim_by_its_name_or_an_inputs_shape(
    file: Path, flag: str, capsys: Captured
) -> None:
    assert main(["run", str(file), "--shape", flag]) == 0
    assert "6x4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "it has symbolic dims (add --shape n=NUMBER)"),
        (["--shape", "n=65"], "the program is not for these sizes: expected n <= 64, found n=65"),
        (["--shape", "m=3"], "there is no input or dim 'm'"),
        (["--shape", "x=3,7"], "a dim of input 'x' has another size: expected 8, found 7"),
        (["--shape", "n=3", "--shape", "x=4,8"], "dim 'n' has two sizes: expected 3, found 4"),
        (["--shape", "w=8,4"], "the symbolic dim 'n' has no size (n=NUMBER)"),
    ],
)
def test_what_cannot_be_bound_is_one_line(
    file: Path, flags: list[str], message: str, capsys: Captured
) -> None:
    assert main(["run", str(file), *flags]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor<?x8xf32>", "a dim has no number and no name"),
        ("tensor<?x8xf32, #graph.dims<n floordiv 0, 8>>", "divided by a positive number"),
        (
            "tensor<?x8xf32, #graph.dims<n, 7>>",
            "shape and names of the dims differ: expected 8, found 7",
        ),
        ("tensor<?x8xf32, #graph.dims<n>>", "names 1 dims of a tensor of 2"),
        ("tensor<?x8xf32, #graph.dims<3, 8>>", "the dim 3 is no symbol: write it in the shape"),
    ],
)
def test_types_that_are_wrong_are_one_line(
    tmp_path: Path, text: str, message: str, capsys: Captured
) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT.replace("tensor<?x8xf32, #graph.dims<n, 8>>", text))
    assert main(["run", str(path), "--shape", "n=3"]) == 1
    assert message in capsys.readouterr().err


def test_a_lowering_that_needs_numbers_says_which(file: Path, capsys: Captured) -> None:
    from isoform.compiler.opt import main as opt

    assert opt(["-p", "graph-to-algebra", str(file)]) == 1
    message = "the extent n must be a number here (bind its symbols: specialize-dims, --shape)"
    assert message in capsys.readouterr().err


def dynamic(path: Path, text: str) -> DynamicProgram:
    import onnx

    onnx.save(onnx.parser.parse_model(text), path)
    program = isoform.load(path)
    assert isinstance(program, DynamicProgram)
    return program


def test_an_onnx_model_is_imported_once_for_many_shapes(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[batch,seq,8] x) => (float[batch,seq,8] y) {
        shape = Shape(x)
        flat = Flatten<axis = 2>(x)
        s = Softmax<axis = 1>(flat)
        y = Reshape(s, shape)
    }"""
    program = dynamic(tmp_path / "m.onnx", text)
    for batch, seq in [(2, 3), (1, 1), (5, 7), (2, 9), (3, 3)]:
        bound = program.bind({"x": np.zeros((batch, seq, 8), np.float32)})
        assert bound.outputs["y"].get_shape() == (batch, seq, 8)
    assert len(program.symbolic) == 1
    program.bind({"x": np.zeros((0, 3, 8), np.float32)})  # a 0 in a shape copies a dim
    assert len(program.symbolic) == 2


def test_shapes_that_come_leave_nothing_behind(tmp_path: Path) -> None:
    """Positions are constants of the bound program, not of the one with symbols."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n] x) => (float[n] y) <int64 zero = {0}, int64 one = {1}> {
        shape = Shape(x)
        count = Squeeze(shape)
        places = Range(zero, count, one)
        floats = Cast<to = 1>(places)
        y = Add(x, floats)
    }"""
    program = dynamic(tmp_path / "m.onnx", text)
    session = isoform.compile(program, threads=1, effort="quick")
    for n in (40, 50, 60):
        (found,) = session(x=np.zeros(n, np.float32)).values()
        np.testing.assert_array_equal(found, np.arange(n, dtype=np.float32))
    (symbolic,) = program.symbolic
    assert len(symbolic.weights) == 0


def test_a_dim_that_must_be_a_number_is_not_imported_with_symbols_for_ever(tmp_path: Path) -> None:
    import onnx

    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n,m,1] x) => (float[n,m,2] y) { y = DFT<axis = 1>(x) }"""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    program = isoform.load(path)
    assert isinstance(program, DynamicProgram)
    for m in range(2, 12):
        bound = program.bind({"x": np.zeros((3, m, 1), np.float32)})
        assert bound.outputs["y"].get_shape() == (3, m, 2)
    assert len(program.symbolic) == 4
