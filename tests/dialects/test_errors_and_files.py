"""Errors are one line; files are written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from isoform.dialects.errors import UserError, did_you_mean, one_line, suggest
from isoform.dialects.files import atomic_write, read_whole, write_whole


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("no"), "no"),
        (UserError("no", where="a.mlir:1:2"), "a.mlir:1:2: no"),
        (UserError("shape", expected=(1, 2), found=(2, 1)), "shape: expected (1, 2), found (2, 1)"),
        (UserError("zero", found=0), "zero: found 0"),
        (UserError("no", hint="try"), "no (try)"),
        (UserError("a\nb\tc\x1b[31m"), "a b c [31m"),
    ],
)
def test_an_error_is_one_printable_line(error: UserError, line: str) -> None:
    assert str(error) == error.one_line() == line


def test_one_line_keeps_letters_of_every_script() -> None:
    assert one_line("größe \n λ") == "größe λ"


def test_suggestions_prefer_what_starts_alike() -> None:
    assert suggest("arith.adi", ["arith.andi", "arith.addi"]) == "arith.addi"
    assert suggest("xyz", ["abc"]) is None
    assert did_you_mean("reul", ["relu", "mul"]) == "did you mean 'relu'?"
    assert did_you_mean("xyz", []) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_aside(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    write_whole(file, "old")
    with pytest.raises(RuntimeError), atomic_write(file) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_has_usual_permissions_and_a_link_keeps_pointing(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "néw")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "néw"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_what_is_no_regular_file_is_written_in_place() -> None:
    write_whole("/dev/null", "anything")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_refusal_of_the_system_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write file: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "out", "x")
    with pytest.raises(UserError, match=r"cannot write file: Is a directory"):
        write_whole(tmp_path, "x")
    with pytest.raises(UserError, match=r"cannot read file: No such file"):
        read_whole(tmp_path / "absent")
