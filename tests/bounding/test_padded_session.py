"""Sessions of programs with symbolic dims: one bounded program serves many sizes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import isoform
from isoform.compiler.targets import padded_sessions
from isoform.compiler.targets.dynamic_session import DynamicSession
from isoform.compiler.targets.padded_session import PaddedSession
from isoform.dialects.types import Array
from isoform.passes.margins import PaddingMargins

# One step of a decoder: keys and values behind those of the cache.
STEP = """g (float[1,1,8] x, float[1,2,past,4] k, float[1,2,past,4] v, float[8,8] w)
    => (float[1,1,8] y, float[1,2,n,4] knew, float[1,2,n,4] vnew) {
    heads = Constant<value = int64[4] {1, 1, 2, 4}>()
    flat = Constant<value = int64[3] {1, 1, 8}>()
    p = MatMul(x, w)
    r = Reshape(p, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(r)
    knew = Concat<axis = 2>(k, q)
    vnew = Concat<axis = 2>(v, q)
    kt = Transpose<perm = [0, 1, 3, 2]>(knew)
    s = MatMul(q, kt)
    a = Softmax<axis = -1>(s)
    o = MatMul(a, vnew)
    t = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(t, flat)
}"""
# An op that has no rule for padding: windows along the dim are averaged.
MEANS = """g (float[1,2,n] x) => (float[1,2,m] y) {
    y = AveragePool<kernel_shape = [3], pads = [1, 1]>(x)
}"""


def saved(folder: Path, text: str) -> Path:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    path = folder / "m.onnx"
    onnx.save(proto, path)
    return path


def session_of(path: Path, **options: Any) -> DynamicSession:
    found = isoform.compile(isoform.load(path), threads=1, effort="quick", **options)
    assert isinstance(found, DynamicSession)
    return found


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def step_feeds(past: int, seed: int = 0) -> dict[str, Array]:
    return {
        "x": drawn(seed, 1, 1, 8),
        "k": drawn(seed + 1, 1, 2, past, 4),
        "v": drawn(seed + 2, 1, 2, past, 4),
        "w": drawn(seed + 3, 8, 8),
    }


def agree(session: isoform.Session, peer: Any, feeds: dict[str, Array]) -> None:
    found = session(**feeds)
    for info, wanted in zip(peer.get_outputs(), peer.run(None, feeds), strict=True):
        assert found[info.name].shape == wanted.shape
        assert found[info.name].flags.c_contiguous
        np.testing.assert_allclose(found[info.name], wanted, 1e-4, 1e-5, err_msg=info.name)


def test_a_growing_cache_is_compiled_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, STEP)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    feeds = step_feeds(1)
    for token in range(40):
        agree(session, peer, feeds)
        given = session(**feeds)
        feeds |= {"x": drawn(token, 1, 1, 8), "k": given["knew"], "v": given["vnew"]}
    assert session.programs == 2  # the first size, and one for all others


def test_sizes_may_come_in_any_order(tmp_path: Path) -> None:
    """What a larger call left behind the rows of a smaller one must not be read."""
    path = saved(tmp_path, STEP)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    for k, past in enumerate((3, 30, 5, 29, 1, 17, 2, 30)):
        feeds = step_feeds(past, k)
        feeds["v"] = 1e30 * feeds["v"] if past > 20 else feeds["v"]
        agree(session, peer, feeds)
    assert session.programs == 2


def test_at_the_bound_itself_all_rows_count(tmp_path: Path) -> None:
    path = saved(tmp_path, STEP)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    session(**step_feeds(3))
    session(**step_feeds(9))
    bounded, _ = session.bound(step_feeds(9))
    assert isinstance(bounded, PaddedSession)
    feeds = step_feeds(bounded.bounds["past"])
    assert session.bound(feeds)[0] is bounded
    agree(session, peer, feeds)
    outputs: Any = peer.run(None, feeds)
    wanted: dict[str, Array] = dict(zip(("y", "knew", "vnew"), outputs, strict=True))
    room = np.full(wanted["vnew"].shape, np.nan, np.float32)
    found = session.run(["vnew", "y"], feeds, {"vnew": room})
    assert found[0] is room
    np.testing.assert_allclose(room, wanted["vnew"], 1e-4, 1e-5)
    np.testing.assert_allclose(found[1], wanted["y"], 1e-4, 1e-5)
    agree(session, peer, step_feeds(5))  # what came before is none of the padding


def test_infinities_behind_the_rows_are_not_read(tmp_path: Path) -> None:
    path = saved(tmp_path, STEP)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    session(**step_feeds(4))
    session(**{name: np.full_like(x, np.inf) for name, x in step_feeds(30).items()})
    agree(session, peer, step_feeds(6))


def test_exact_sizes_compile_each_size(tmp_path: Path) -> None:
    session = session_of(saved(tmp_path, STEP), exact_sizes=True)
    for past in (2, 3, 4):
        session(**step_feeds(past))
    assert session.programs == 3


def test_an_op_without_a_rule_has_each_size_compiled(tmp_path: Path) -> None:
    path = saved(tmp_path, MEANS)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    for n in (4, 5, 6):
        agree(session, peer, {"x": drawn(n, 1, 2, n)})
    assert session.programs == 3


def test_outputs_may_be_given_and_shapes_are_checked(tmp_path: Path) -> None:
    session = session_of(saved(tmp_path, STEP))
    for past in (3, 9):
        feeds = step_feeds(past)
        room = np.full((1, 2, past + 1, 4), np.nan, np.float32)
        found = session.run(["knew"], feeds, {"knew": room})
        assert found[0] is room
        assert np.array_equal(room[:, :, :past], feeds["k"])
    with pytest.raises(isoform.UserError, match="'knew' does not fit"):
        session.run(["knew"], step_feeds(7), {"knew": np.zeros((1, 2, 9, 4), np.float32)})
    room = np.zeros((1, 2, 8, 4), np.float32)
    with pytest.raises(isoform.UserError, match="one array for several outputs: knew, vnew"):
        session.run(None, step_feeds(7), {"knew": room, "vnew": room})
    with pytest.raises(isoform.UserError, match="dim 'past' has another size"):
        session(**{**step_feeds(7), "v": drawn(0, 1, 2, 8, 4)})


def test_a_size_that_comes_often_gets_its_own_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, STEP)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    for past in (2, 3, 4):
        agree(session, peer, step_feeds(past))
    assert session.programs == 2
    monkeypatch.setattr(padded_sessions, "PAD", PaddingMargins(wasted=0.0))
    agree(session, peer, step_feeds(3))
    assert session.programs == 3
    assert not isinstance(session.bound(step_feeds(3))[0], PaddedSession)
    assert isinstance(session.bound(step_feeds(7))[0], PaddedSession)


def test_results_are_not_changed_by_later_calls(tmp_path: Path) -> None:
    text = "g (float[n,4] x) => (float[n,4] y, float[n,4] z) { y = Identity(x) z = Relu(x) }"
    session = session_of(saved(tmp_path, text))
    found = {n: session(x=np.full((n, 4), n, np.float32)) for n in (3, 5, 64, 63, 8, 7)}
    for n, outputs in found.items():
        for array in outputs.values():
            assert np.array_equal(array, np.full((n, 4), n, np.float32))


def test_a_guard_limits_the_bound(tmp_path: Path) -> None:
    """A table of 30 rows: at most as many are read."""
    text = """g (float[n] x, float[30] table) => (float[n] y) {
        zero = Constant<value = int64[1] {0}>()
        size = Shape(x)
        rows = Slice(table, zero, size, zero)
        y = Add(x, rows)
    }"""
    path = saved(tmp_path, text)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    for n in (4, 29, 30, 28, 27):
        agree(session, peer, {"x": drawn(n, n), "table": drawn(0, 30)})
    assert session.programs < 5


FEW = """g (float[n,2] x, float16[2] n, float16[m,2] "size.m") => (float[1,2] y, float16[1,2] z) {
    first = Constant<value = int64[1] {0}>()
    p = Softmax<axis = 0>(x)
    y = ReduceSum(p, first)
    b = Add("size.m", n)
    z = ReduceMean(b, first)
}"""


def test_sizes_of_nothing_and_inputs_named_as_sizes(tmp_path: Path) -> None:
    """An empty softmax sums to 0; `n` is an input, too."""
    path = saved(tmp_path, FEW)
    session, peer = session_of(path), onnxruntime.InferenceSession(path)
    for n, m in ((3, 2), (0, 2), (5, 2), (4, 90)):
        many = np.full((m, 2), 2000, np.float16)
        feeds = {"x": drawn(n, n, 2), "n": many[0], "size.m": many}
        agree(session, peer, feeds)
        assert isinstance(session.bound(feeds)[0], PaddedSession) == (n == 5)


def test_a_program_that_only_moves_data_has_no_endless_bounds(tmp_path: Path) -> None:
    text = "g (float[n,m] x) => (float[m,n] y) { y = Transpose(x) }"
    session = session_of(saved(tmp_path, text))
    for n in (3, 5, 6):
        x = drawn(n, n, 7 + n)
        assert np.array_equal(session(x)["y"], x.T)
    bound, _ = session.bound({"x": drawn(0, 6, 13)})
    assert isinstance(bound, PaddedSession)
    assert bound.bounds["n"] * bound.bounds["m"] <= 1 << 14


def test_threads_do_not_share_arrays(tmp_path: Path) -> None:
    session = session_of(saved(tmp_path, STEP))
    wanted = {past: session(**step_feeds(past, past))["y"] for past in range(2, 10)}
    wrong: list[int] = []

    def run(past: int) -> None:
        for _ in range(20):
            if not np.allclose(session(**step_feeds(past, past))["y"], wanted[past], 1e-4, 1e-5):
                wrong.append(past)

    threads = [threading.Thread(target=run, args=(past,)) for past in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded_sessions, "KEPT", 1)
    session = session_of(saved(tmp_path, "g (float[n] x) => (float[n] y) { y = Relu(x) }"))
    for n in (3, 5, 70_000, 6, 200_000):
        x = drawn(n, n)
        assert np.array_equal(session(x)["y"], np.maximum(x, 0))
    assert session.programs == 2  # one of its own size, one with padding
    bound, _ = session.bound({"x": drawn(0, 5)})
    assert isinstance(bound, PaddedSession)
    session.close()
    with pytest.raises(isoform.UserError, match="closed"):
        session(drawn(1, 1))
