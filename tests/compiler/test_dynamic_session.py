"""Models without fixed shapes: one session takes each shape that the model declares."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import isoform
from isoform.compiler import api
from isoform.compiler.cli import main
from isoform.compiler.targets import padded_sessions
from isoform.compiler.targets.dynamic_session import DynamicSession
from isoform.dialects.types import Array
from isoform.lowering.onnx_to_graph import DynamicProgram

Captured = pytest.CaptureFixture[str]

BLOCK = """g (float[batch,seq,8] x, float[8,8] w) => (float[batch,seq,8] y) {
    three = Constant<value = int64[1] {-1}>()
    shape = Shape(x)
    flat = Flatten<axis = 2>(x)
    z = MatMul(flat, w)
    back = Reshape(z, shape)
    s = Softmax<axis = 1>(back)
    y = Add(s, x)
}"""


def saved(folder: Path, text: str) -> Path:
    """A model file of opset 18, from ONNX's text form."""
    header = '<ir_version: 8, opset_import: ["" : 18]>'
    proto = onnx.parser.parse_model(f"{header} {text}")
    path = folder / "m.onnx"
    onnx.save(proto, path)
    return path


def session_of(path: Path) -> DynamicSession:
    found = isoform.compile(isoform.load(path), threads=1, effort="quick")
    assert isinstance(found, DynamicSession)
    return found


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_each_shape_is_right_and_the_second_use_compiles_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, BLOCK)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    w = drawn(8, 8)
    for batch, seq in [(1, 1), (2, 3), (1, 7), (5, 1), (3, 17), (2, 3), (1, 1)]:
        feeds = {"x": drawn(batch, seq, 8), "w": w}
        wanted = np.asarray(peer.run(None, feeds)[0])
        np.testing.assert_allclose(session(**feeds)["y"], wanted, rtol=1e-5, atol=1e-6)
    before = session.programs
    for batch, seq in [(1, 7), (5, 1), (3, 17)]:
        session(x=drawn(batch, seq, 8), w=w)
    assert session.programs == before < 5
    assert str(session.inputs[0]) == "x: float32[batch, seq, 8]"
    assert str(session.outputs[0]) == "y: float32[batch, seq, 8]"


def test_the_programs_kept_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded_sessions, "KEPT", 2)
    path = saved(tmp_path, "g (float[n] x) => (float[n] y) { y = Relu(x) }")
    session = isoform.compile(isoform.load(path), threads=1, effort="quick", exact_sizes=True)
    assert isinstance(session, DynamicSession)
    for n in (1, 2, 3, 0, 1):
        assert session(drawn(n))["y"].shape == (n,)
    assert session.programs == 2
    session.close()
    with pytest.raises(isoform.UserError, match="closed"):
        session(drawn(1))


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": drawn(2, 3)}, "input 'z' is missing"),
        ({"x": drawn(2, 3), "z": drawn(4)}, "dim 'k' has another size: expected 3, found 4"),
        ({"x": drawn(2), "z": drawn(2)}, r"another shape: expected \[n, k\], found \[2\]"),
        ({"x": drawn(2, 3).astype(np.float64), "z": drawn(3)}, "another dtype"),
        ({"x": drawn(2, 3), "z": drawn(3), "q": drawn(3)}, "no input 'q'"),
    ],
)
def test_arrays_that_do_not_fit_are_one_line(
    tmp_path: Path, feeds: dict[str, Array], words: str
) -> None:
    session = session_of(
        saved(tmp_path, "g (float[n,k] x, float[k] z) => (float[n,k] y) { y = Add(x, z) }")
    )
    with pytest.raises(isoform.UserError, match=words) as caught:
        session(**feeds)
    assert "--shape" not in str(caught.value)


SIZES = """g (float[n] x, int64[r] shape, bool[m] mask) => (float[?] y, int64[?,?] z) {
    y = Reshape(x, shape)
    z = NonZero(mask)
}"""


def test_inputs_that_decide_sizes_are_read(tmp_path: Path, capsys: Captured) -> None:
    """A reshape by an input, indices of a mask: once for each value, and the warning says so."""
    session = session_of(saved(tmp_path, SIZES))
    x = drawn(12)
    for shape, mask in [((3, 4), (1, 0, 1)), ((2, 2, 3), (0, 0, 0)), ((12,), (1, 1)), ((3, 4), ())]:
        feeds = {"x": x, "shape": np.array(shape), "mask": np.array(mask, bool)}
        found = session(**feeds)
        assert np.array_equal(found["y"], x.reshape(shape))
        assert np.array_equal(found["z"], np.array(np.nonzero(feeds["mask"])))
    assert capsys.readouterr().err.count("compiled anew") == 1


def test_sizes_that_depend_on_floats_are_refused_when_loaded(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[k] y) { s = Cast<to=7>(x) y = ConstantOfShape(s) }"
    with pytest.raises(isoform.UserError, match="nothing bounds a size that data decide"):
        isoform.load(saved(tmp_path, text))


def test_what_needs_fixed_shapes_says_what_to_bind(tmp_path: Path, capsys: Captured) -> None:
    path = saved(tmp_path, BLOCK)
    program = isoform.load(path)
    assert isinstance(program, DynamicProgram)
    for ask in (lambda: program.inputs, lambda: isoform.optimize(program), program.clone):
        with pytest.raises(isoform.UserError, match=r"add --shape x=1,1,8"):
            ask()
    assert main(["optimize", str(path)]) == 1
    assert "add --shape x=1,1,8" in capsys.readouterr().err
    assert main(["run", str(path), "--shape", "batch=2", "--shape", "seq=3"]) == 0
    assert "2x3x8" in capsys.readouterr().out


def test_some_dims_may_be_fixed_when_loaded(tmp_path: Path) -> None:
    path, w = saved(tmp_path, BLOCK), drawn(8, 8)
    session = isoform.compile(isoform.load(path, {"batch": [2]}), effort="quick", threads=1)
    assert session(x=drawn(2, 3, 8), w=w)["y"].shape == (2, 3, 8)
    with pytest.raises(isoform.UserError, match="dim 'batch' has another size"):
        session(x=drawn(3, 3, 8), w=w)
    for shapes, words in (({"batch": [2, 3]}, "one number"), ({"bach": [2]}, "'batch'")):
        with pytest.raises(isoform.UserError, match=words):
            isoform.load(path, shapes)


def test_improve_is_applied_to_each_program(tmp_path: Path) -> None:
    text = "g (float[n] x) => (float[n] y) { a = Neg(x) b = Neg(a) y = Relu(b) }"
    program = api.improve(isoform.load(saved(tmp_path, text)))
    assert isinstance(program, DynamicProgram)
    for n in (3, 5):
        bound = program.bind({"x": drawn(n)})
        assert [op.name for op in bound.main.body.block.ops] == ["graph.relu", "func.return"]
        assert bound.inputs["x"].get_shape() == (n,)


def test_threads_share_a_session(tmp_path: Path) -> None:
    session = session_of(saved(tmp_path, "g (float[n] x) => (float[n] y) { y = Relu(x) }"))
    wrong: list[int] = []

    def work(n: int) -> None:
        for k in range(20):
            x = drawn(1 + (n + k) % 12)
            if not np.array_equal(session(x)["y"], np.maximum(x, 0)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
