"""`session.save` and `isoform.open`: the same results, and no hostile folder is run."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler.targets.session_folder import signature_of, users_key
from isoform.dialects.cache_folder import CacheFolder, safe

X = np.linspace(-1, 1, 2 * 6, dtype=np.float32).reshape(2, 6)


def compiled(threads: int = 1) -> isoform.Session:
    b = isoform.GraphBuilder()
    x = b.input("x", (2, 6))
    w = b.weight("w", np.linspace(0, 1, 24, dtype=np.float32).reshape(6, 4))
    b.output("y", b.relu(b.matmul(x, w)))
    return isoform.compile(b.build(), threads=threads, effort="quick")


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "cache"))
    compiled().save(tmp_path / "saved")
    return tmp_path / "saved"


def test_an_opened_session_gives_the_same_bytes(saved: Path) -> None:
    session = isoform.open(saved, threads=1)
    expected = compiled()(x=X)["y"]
    assert np.array_equal(session(x=X)["y"], expected)
    assert [str(info) for info in session.inputs] == ["x: float32[2, 6]"]
    assert [str(info) for info in session.outputs] == ["y: float32[2, 4]"]
    assert session.program.input_names == ["x"]
    with pytest.raises(isoform.UserError, match="input 'x' is missing"):
        session()


def test_what_came_from_the_cache_is_saved_alike(saved: Path, tmp_path: Path) -> None:
    assert compiled().save(tmp_path / "again") == isoform.open(saved).save(tmp_path / "third")
    for name in ("program.native", "session.json"):
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_another_user_opens_by_the_hash(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = compiled().save(saved)
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "another"))
    with pytest.raises(isoform.UserError, match=r"this user did not save .* sha256="):
        isoform.open(saved)
    assert isoform.open(saved, sha256=digest)(x=X)["y"].shape == (2, 4)
    with pytest.raises(isoform.UserError, match="not the session of that hash"):
        isoform.open(saved, sha256="0" * 64)


def rewrite(folder: Path, **changes: object) -> None:
    """Change the manifest and sign it: what only the user could do."""
    manifest = json.loads((folder / "session.json").read_text()) | changes
    del manifest["signature"]
    key = users_key(make=False)
    assert key is not None
    manifest["signature"] = signature_of(manifest, key)
    (folder / "session.json").write_text(json.dumps(manifest))


def replaced(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)


def flipped(folder: Path) -> None:
    data = bytearray((folder / "program.native").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "program.native").write_bytes(data)


def linked(folder: Path) -> None:
    shutil.move(folder / "program.native", folder.parent / "elsewhere")
    (folder / "program.native").symlink_to(folder.parent / "elsewhere")


HOSTILE = [
    (flipped, "this file was changed since it was saved"),
    (lambda f: replaced(f, "program.native", b""), "this file was changed"),
    (lambda f: replaced(f, "program.mlir", b"x"), "this file was changed"),
    (lambda f: (f / "program.native").unlink(), "cannot read file"),
    (lambda f: (f / "session.json").unlink(), "cannot read file"),
    (lambda f: replaced(f, "session.json", b"\x80\x04."), "this is not JSON"),
    (lambda f: replaced(f, "session.json", pickle.dumps({})), "this is not JSON"),
    (lambda f: replaced(f, "session.json", b"[" * 100_000), "this is not JSON"),
    (lambda f: replaced(f, "session.json", b"{}"), "this is not a saved session"),
    (lambda f: replaced(f, "session.json", b"[]"), "this is not a saved session"),
    (lambda f: rewrite(f, files={"../x": "0"}), "it names other files"),
    (lambda f: rewrite(f, files={}), "it names other files"),
    (lambda f: rewrite(f, files=[]), "this is not a saved session"),
    (lambda f: rewrite(f, inputs=[["x"]]), "this is not a saved session"),
    (lambda f: rewrite(f, format=2), "with another runtime"),
    (lambda f: rewrite(f, runtime="0"), "with another runtime"),
    (lambda f: rewrite(f, processor={"cpu": "z80", "name": "plain"}), "another processor"),
    (lambda f: (f / "program.native").chmod(0o666), "others may change this"),
    (lambda f: f.chmod(0o777), "others may change this"),
    (linked, "this is no regular file"),
]


@pytest.mark.parametrize(("harm", "message"), HOSTILE, ids=[m for _, m in HOSTILE])
def test_a_hostile_folder_is_refused(saved: Path, harm: object, message: str) -> None:
    harm(saved)  # pyright: ignore
    with pytest.raises(isoform.UserError, match=message) as caught:
        isoform.open(saved)
    assert "\n" not in str(caught.value)


def test_a_changed_manifest_has_no_author(saved: Path) -> None:
    text = (saved / "session.json").read_text()
    (saved / "session.json").write_text(text.replace('"x"', '"z"'))
    with pytest.raises(isoform.UserError, match="this user did not save this session"):
        isoform.open(saved)


def test_a_program_with_host_work_is_not_saved(tmp_path: Path) -> None:
    session = isoform.compile(compiled().program, target="reference")
    with pytest.raises(isoform.UserError, match="only sessions of the cpu"):
        session.save(tmp_path / "saved")


def test_a_profile_names_the_ops_and_is_a_chrome_trace(saved: Path, tmp_path: Path) -> None:
    for session in (compiled(), isoform.open(saved)):
        profile = session.profile(rounds=3)
        assert profile.rounds == 3
        assert profile.seconds > 0
        assert "kernel.gemm" in profile.table()
        profile.save(tmp_path / "trace.json")
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert len(events) == len(profile.kernels)
        assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
        assert profile._repr_html_().startswith("<table>")


def test_a_profile_leaves_what_a_caller_holds(saved: Path) -> None:
    session = isoform.open(saved, threads=1)
    held = session(x=X)["y"]
    before = held.copy()
    session.profile({"x": 0 * X}, rounds=2)
    assert np.array_equal(held, before)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_cache_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    safe.cache_clear()
    assert not CacheFolder(open_folder).usable
    assert not CacheFolder(open_folder).usable
    assert capsys.readouterr().err.count("others may write to this cache folder") == 1
    assert CacheFolder(tmp_path / "new").usable
