"""Caches held in place: a result that grows an input lies in the memory of the call before."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import isoform
from isoform.dialects.types import Array
from isoform.passes.bounding import bounds
from isoform.passes.margins import PaddingMargins

# Steps of a decoder: `t` rows of keys and values behind those of the cache.
STEPS = """g (float[1,t,8] x, float[1,2,past,4] k, float[1,2,past,4] v, float[8,8] w)
    => (float[1,t,8] y, float[1,2,n,4] knew, float[1,2,n,4] vnew) {
    heads = Constant<value = int64[4] {1, -1, 2, 4}>()
    flat = Constant<value = int64[3] {1, -1, 8}>()
    p = MatMul(x, w)
    r = Reshape(p, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(r)
    knew = Concat<axis = 2>(k, q)
    vnew = Concat<axis = 2>(v, q)
    kt = Transpose<perm = [0, 1, 3, 2]>(knew)
    s = MatMul(q, kt)
    a = Softmax<axis = -1>(s)
    o = MatMul(a, vnew)
    z = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(z, flat)
}"""
# The cache is read by more than what puts rows behind it.
READ = """g (float[2,past] k, float[2,1] x) => (float[2,1] s, float[2,n] knew) {
    one = Constant<value = int64[1] {1}>()
    knew = Concat<axis = 1>(k, x)
    s = ReduceSum(k, one)
}"""


class Model:
    """A session that holds caches in place, and onnxruntime on the same file."""

    def __init__(self, folder: Path, text: str) -> None:
        proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
        onnx.save(proto, folder / "m.onnx")
        program = isoform.load(folder / "m.onnx")
        self.session: Any = isoform.compile(
            program, threads=1, effort="quick", caches_in_place=True
        )
        self.peer = onnxruntime.InferenceSession(folder / "m.onnx")

    def step(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """Run both and compare."""
        wanted: Any = self.peer.run(None, {k: np.ascontiguousarray(v) for k, v in feeds.items()})
        found = self.session(**feeds)
        for info, array in zip(self.peer.get_outputs(), wanted, strict=True):
            assert found[info.name].shape == array.shape
            np.testing.assert_allclose(found[info.name], array, 1e-4, 1e-5, err_msg=info.name)
        return found


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def feeds_of(past: int, rows: int = 1) -> dict[str, Array]:
    shape = 1, 2, past, 4
    k, v, w = drawn(1, *shape), drawn(2, *shape), drawn(3, 8, 8)
    return {"x": drawn(past, 1, rows, 8), "k": k, "v": v, "w": w}


def after(found: dict[str, Array], seed: int, rows: int = 1) -> dict[str, Array]:
    """The feeds of the step after one."""
    x = drawn(seed, 1, rows, 8)
    return {"x": x, "k": found["knew"], "v": found["vnew"], "w": drawn(3, 8, 8)}


def begun(model: Model) -> dict[str, Array]:
    """What a step with a cache gave: it lies in a larger array."""
    model.step(feeds_of(3))
    return model.step(feeds_of(5))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(tmp_path_factory.mktemp("caches"), STEPS)


def test_steps_share_memory_and_results_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "PAD", PaddingMargins(more_work=0.0))
    model = Model(tmp_path, STEPS)
    found = begun(model)
    held = [(found["knew"], found["knew"].copy())]
    for token in range(24):
        found = model.step(after(found, token))
        held.append((found["knew"], found["knew"].copy()))
    for array, wanted in held:
        assert np.array_equal(array, wanted)
    shared = [np.shares_memory(a, b) for (a, _), (b, _) in itertools.pairwise(held)]
    copied = [held[k][0].shape[2] for k, same in enumerate(shared) if not same]
    assert copied == [9, 17]  # of 8 and 16 rows and one: to a larger array


def test_two_continuations_of_one_cache_are_apart(model: Model) -> None:
    found = begun(model)
    first = model.step(after(found, 10))
    second = model.step(after(found, 11))
    assert np.shares_memory(found["knew"], first["knew"])
    assert not np.shares_memory(found["knew"], second["knew"])
    for k in range(3):
        first, second = model.step(after(first, 20 + k)), model.step(after(second, 30 + k))
    model.step(after(found, 12))


def test_a_shorter_part_of_a_cache_is_taken_as_it_is(model: Model) -> None:
    """What stands behind a part is no zeros: it must not be read as padding."""
    found = begun(model)
    for k in range(5):
        found = model.step(after(found, k))
    for cut in (6, 3, 9):
        part = {name: found[name][:, :, :cut] for name in ("knew", "vnew")}
        again = model.step(after(part, cut))
        model.step(after(again, cut + 1))


def test_one_array_for_two_caches(model: Model) -> None:
    found = begun(model)
    both = {"knew": found["knew"], "vnew": found["knew"]}
    found = model.step(after(both, 7))
    assert not np.shares_memory(found["knew"], found["vnew"])
    crossed = {"knew": found["vnew"], "vnew": found["knew"]}
    model.step(after(crossed, 8))


def test_several_rows_at_once(model: Model) -> None:
    """The number of new rows has a bound, too: only rows that count are put behind."""
    found = begun(model)
    for k, rows in enumerate((3, 1, 4, 2, 1, 3)):
        found = model.step(after(found, k, rows))


def test_results_are_read_only_and_may_be_asked_for_elsewhere(model: Model) -> None:
    found = begun(model)
    with pytest.raises(ValueError, match="read-only"):
        found["knew"][...] = 0
    room = np.full((1, 2, 7, 4), np.nan, np.float32)
    given = model.session.run(["knew"], after(found, 1), {"knew": room})
    assert given[0] is room
    assert np.array_equal(room[:, :, :6], found["knew"])
    model.step(after(found, 2))


def test_a_cache_that_others_read_is_copied(tmp_path: Path) -> None:
    model, found = Model(tmp_path, READ), {"knew": drawn(0, 2, 3)}
    for k in range(12):
        found = model.step({"k": found["knew"], "x": drawn(k, 2, 1)})
        assert found["knew"].flags.writeable


def test_threads_continue_one_cache(model: Model) -> None:
    found = begun(model)
    wanted = {k: model.step(after(found, k))["y"].copy() for k in range(8)}
    wrong: list[int] = []

    def run(k: int) -> None:
        for _ in range(20):
            if not np.allclose(model.session(**after(found, k))["y"], wanted[k], 1e-4, 1e-5):
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_gpu_holds_none_in_place(tmp_path: Path) -> None:
    program = isoform.load(_file(tmp_path))
    with pytest.raises(isoform.UserError, match="in place on the cpu alone"):
        isoform.compile(program, "cuda", caches_in_place=True)


def _file(folder: Path) -> Path:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {STEPS}')
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx"


# A sum over all rows reads those behind the last: they have to be zeros.
SUMMED = """g (float[2,past] k, float[2,t] x) => (float[2,1] s, float[2,n] knew) {
    one = Constant<value = int64[1] {1}>()
    knew = Concat<axis = 1>(k, x)
    s = ReduceSum(knew, one)
}"""
# Two dims change: the caches of several sequences.
BATCHED = """g (float[b,past] k, float[b,1] x) => (float[b,n] knew) {
    knew = Concat<axis = 1>(k, x)
}"""


def test_a_sum_over_a_cache_adds_nothing_behind_it(tmp_path: Path) -> None:
    model, found = Model(tmp_path, SUMMED), {"knew": drawn(0, 2, 3)}
    for k, rows in enumerate((3, 3, 3, 3, 1, 2)):
        found = model.step({"k": found["knew"], "x": drawn(k, 2, rows)})


def test_a_batch_that_changes_too(tmp_path: Path) -> None:
    model = Model(tmp_path, BATCHED)
    for batch in (2, 3, 5):
        found = {"knew": drawn(batch, batch, 3)}
        for k in range(4):
            found = model.step({"k": found["knew"], "x": drawn(k, batch, 1)})


def test_a_product_of_one_row_leaves_out_columns(tmp_path: Path) -> None:
    text = """g (float[2,1,16] q, float[2,n,16] k) => (float[2,1,n] y) {
        kt = Transpose<perm = [0, 2, 1]>(k)
        y = MatMul(q, kt)
    }"""
    model = Model(tmp_path, text)
    for n in (60, 40, 64, 1, 33, 7, 16, 17):
        model.step({"q": drawn(n, 2, 1, 16), "k": drawn(n + 1, 2, n, 16)})
