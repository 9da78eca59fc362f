"""Drawing inputs, and NPZ files in and out."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import i1, i64

from isoform.compiler.commands.inputs import draw_inputs, read_inputs, write_outputs
from isoform.compiler.targets.levels import LEVELS, lower_to
from isoform.compiler.targets.session import ValueInfo
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program


def lookup(rows: int) -> Program:
    """An embedding whose index goes through a reshape, a mask, and a float."""
    b = GraphBuilder()
    ids, mask = b.input("ids", (1, 64), i64), b.input("mask", (1, 64), i64)
    b.input("flag", (64,), i1)
    x = b.input("x", (64, 3))
    table = b.weight("table", np.zeros((rows, 3), np.float32))
    b.output("y", b.add(b.gather(table, b.reshape(ids, shape=[64])), x))
    b.output("m", b.add(mask, mask))
    return b.build()


@pytest.mark.parametrize("level", LEVELS)
def test_an_index_stays_below_the_axis_it_selects_from(level: str) -> None:
    ids = draw_inputs(lower_to(lookup(7), level))["ids"]
    assert ids.dtype == np.int64
    assert set(ids.ravel()) <= set(range(7))
    assert ids.max() > 1


def test_other_integers_are_masks_and_floats_are_normal() -> None:
    feeds = draw_inputs(lookup(7))
    assert set(feeds["mask"].ravel()) == {0, 1}
    assert feeds["flag"].dtype == np.bool_
    assert feeds["x"].dtype == np.float32
    assert 0.5 < feeds["x"].std() < 2


def test_the_same_seed_gives_the_same_inputs() -> None:
    program = lookup(5)
    first, again, other = (draw_inputs(program, seed) for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


INFO = (ValueInfo("x", np.dtype(np.float32), (2,)), ValueInfo("a/b:0", np.dtype(np.int64), ()))


def test_npz_files_keep_any_name_and_shape(tmp_path: Path) -> None:
    arrays = {"x": np.ones(2, np.float32), "a/b:0": np.array(3)}
    write_outputs(tmp_path / "o.npz", arrays)
    found = read_inputs(tmp_path / "o.npz", INFO)
    assert found["a/b:0"].shape == ()
    assert found["a/b:0"] == 3
    assert (found["x"] == 1).all()


def test_bad_npz_files_are_one_line_errors(tmp_path: Path) -> None:
    missing, text, array = tmp_path / "no.npz", tmp_path / "t.npz", tmp_path / "a.npz"
    text.write_text("hello")
    with array.open("wb") as file:
        np.save(file, np.ones(2))
    objects, broken = tmp_path / "o.npz", tmp_path / "b.npz"
    np.savez(objects, x=np.array([{}], object))
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY")
    for path in (missing, text, array, objects, broken, tmp_path):
        with pytest.raises(UserError) as caught:
            read_inputs(path, INFO)
        assert str(path) in str(caught.value)


def test_arrays_that_do_not_fit_name_the_input_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "i.npz"
    write_outputs(path, {"x": np.ones(3, np.float32), "a/b:0": np.array(3)})
    with pytest.raises(UserError, match=r"i.npz: input 'x' has another shape: expected \[2\]"):
        read_inputs(path, INFO)


def test_outputs_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        write_outputs(tmp_path / "no" / "o.npz", {})
    with pytest.raises(ValueError, match="allow_pickle"):
        write_outputs(tmp_path / "o.npz", {"x": np.array([{}], object)})
    assert list(tmp_path.iterdir()) == []
