"""`isoform.compile(program, up_to=...)` compiles at once what serves all sizes up to a bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from bounding.test_padded_session import MEANS, STEP, agree, drawn, saved, session_of, step_feeds

import isoform
from isoform.dialects.errors import UserError

# `c` is added as it is where it has the rows of `x`, and broadcast where it has one.
TWO = """g (float[batch,seq,8] x, float[rows,1,8] c, float[8,8] w) => (float[batch,seq,8] y) {
    z = MatMul(x, w)
    s = Softmax<axis = 1>(z)
    y = Add(s, c)
}"""


def two(batch: int, seq: int, rows: int) -> dict[str, Any]:
    return {"x": drawn(0, batch, seq, 8), "c": drawn(1, rows, 1, 8), "w": drawn(2, 8, 8)}


def test_no_size_up_to_the_bounds_compiles_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, TWO)
    session = session_of(path, up_to={"batch": 4, "seq": 9, "rows": 4})
    peer = onnxruntime.InferenceSession(path)
    monkeypatch.setattr(session, "_compile", None)
    monkeypatch.setattr(session._padded, "_compile", None)
    for batch, seq, rows in [(4, 9, 4), (3, 5, 3), (2, 1, 1), (4, 9, 1), (3, 2, 1), (1, 7, 1)]:
        agree(session, peer, two(batch, seq, rows))


def test_a_size_beyond_the_bounds_is_compiled_when_it_comes(tmp_path: Path) -> None:
    path = saved(tmp_path, STEP)
    session, peer = session_of(path, up_to={"past": 20}), onnxruntime.InferenceSession(path)
    assert session.programs == 1
    for past in (7, 20, 1):
        agree(session, peer, step_feeds(past))
    assert session.programs == 1
    agree(session, peer, step_feeds(21))
    assert session.programs == 2


def test_a_size_that_can_only_be_1_is_a_number(tmp_path: Path) -> None:
    path = saved(tmp_path, TWO)
    peer = onnxruntime.InferenceSession(path)
    session = session_of(path, up_to={"batch": 1, "seq": 9, "rows": 1})
    (padded,) = session._padded.sessions.values()
    assert padded.bounds == {"seq": 9}
    agree(session, peer, two(1, 5, 1))
    single = session_of(path, up_to={"batch": 1, "seq": 1, "rows": 1})
    assert single.programs == 1
    agree(single, peer, two(1, 1, 1))


def test_a_model_that_takes_no_size_of_1_takes_bounds(tmp_path: Path) -> None:
    """A window is larger than an image of one row: the sizes that it takes are served."""
    text = """g (float[1,2,height,width] x, float[3,2,3,3] w) => (float[1,3,p,q] y) {
        a = Conv<kernel_shape = [3, 3]>(x, w)
        y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a)
    }"""
    path = saved(tmp_path, text)
    session = session_of(path, up_to={"height": 12, "width": 9})
    peer = onnxruntime.InferenceSession(path)
    for height, width in [(12, 9), (4, 5), (7, 4), (11, 8)]:
        agree(session, peer, {"x": drawn(0, 1, 2, height, width), "w": drawn(1, 3, 2, 3, 3)})
    assert session.programs == 1


def test_positions_of_an_image_are_rows_of_a_list(tmp_path: Path) -> None:
    """Height and width, each rounded up to windows, are one dim: what a detector's head makes."""
    text = """g (float[1,2,height,width] x, float[3,2,3,3] w, int64[2] shape) => (float[n,3] y) {
        a = Conv<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x, w)
        b = Transpose<perm = [0, 2, 3, 1]>(a)
        y = Reshape(b, shape)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    shape = model.graph.input.pop()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1, 3]), shape.name))
    path = tmp_path / "head.onnx"
    onnx.save(model, path)
    session = session_of(path, up_to={"height": 12, "width": 9})
    peer = onnxruntime.InferenceSession(path)
    for height, width in [(12, 9), (1, 1), (7, 4), (11, 8), (2, 9)]:
        agree(session, peer, {"x": drawn(0, 1, 2, height, width), "w": drawn(1, 3, 2, 3, 3)})
    assert session.programs == 1


def test_caches_are_held_in_place_up_to_the_bounds(tmp_path: Path) -> None:
    path = saved(tmp_path, STEP)
    peer = onnxruntime.InferenceSession(path)
    session = session_of(path, up_to={"past": 20}, caches_in_place=True)
    feeds = step_feeds(3)
    for _ in range(5):
        found = session(**feeds)
        for wanted, name in zip(peer.run(None, feeds), ("y", "knew", "vnew"), strict=True):
            np.testing.assert_allclose(found[name], wanted, 1e-4, 1e-5)
        feeds |= {"k": found["knew"], "v": found["vnew"]}
    assert session.programs == 1
    assert np.shares_memory(found["knew"], session(**feeds)["knew"])


def test_ir_with_symbols_takes_bounds(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("""
        func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>)
            -> tensor<?x4xf32, #graph.dims<n, 4>> {
          %y = graph.relu %x : tensor<?x4xf32, #graph.dims<n, 4>>
          func.return %y : tensor<?x4xf32, #graph.dims<n, 4>>
        }""")
    session = isoform.compile(isoform.load(path), threads=1, effort="quick", up_to={"n": 8})
    for n in (8, 3, 1):
        x = drawn(n, n, 4)
        np.testing.assert_array_equal(next(iter(session(x).values())), np.maximum(x, 0))


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        (STEP, {"up_to": {"passed": 9}}, "no symbolic dim 'passed'.*did you mean 'past'"),
        (TWO, {"up_to": {"batch": 4, "seq": 9}}, "symbolic dim 'rows' has no size"),
        (STEP, {"up_to": {"past": 0}}, "a number of 1 or more.*found 0"),
        (STEP, {"up_to": {"past": "9"}}, "a number of 1 or more.*found '9'"),
        (STEP, {"up_to": {"past": 9}, "exact_sizes": True}, "one of each size"),
        (MEANS, {"up_to": {"n": 9}}, "no one program serves all sizes.*leave up_to out"),
    ],
)
def test_what_cannot_be_is_one_line(
    tmp_path: Path, text: str, options: dict[str, Any], problem: str
) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(UserError, match=problem) as error:
        session_of(path, **options)
    assert "\n" not in str(error.value)


def test_a_program_of_fixed_shapes_has_no_bounds() -> None:
    program = isoform.parse("""
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = graph.relu %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }""")
    with pytest.raises(UserError, match="no symbolic dim 'n'"):
        isoform.compile(program, up_to={"n": 3})


def test_how_many_rows_are_read_changes_no_bit_of_a_row(tmp_path: Path) -> None:
    text = "g (float[n,200] x, float[200,50] w) => (float[n,50] y) { y = MatMul(x, w) }"
    session = session_of(saved(tmp_path, text), up_to={"n": 24})
    x, w = drawn(0, 24, 200), drawn(1, 200, 50)
    whole = session(x=x, w=w)["y"]
    for n in range(1, 24):
        np.testing.assert_array_equal(session(x=x[:n], w=w)["y"], whole[:n])
