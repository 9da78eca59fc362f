"""What is not our bug is not called one: a full disk, limits, broken files, others' plug-ins."""

import importlib.metadata
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.universe import Universe

import isoform
from isoform.compiler import registry
from isoform.compiler.cli import main
from isoform.compiler.commands import subcommands as commands
from isoform.compiler.commands.inputs import read_inputs
from isoform.compiler.opt import main as opt
from isoform.compiler.targets.session import ValueInfo
from isoform.dialects.errors import UserError
from isoform.dialects.weights import load_safetensors
from isoform.lowering.kernel_to_cpu.runtime import runner

PROGRAM = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
INFOS = [ValueInfo("x", np.dtype(np.float32), (4,))]
ANY = [ValueInfo("x", np.dtype(np.float32), None)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.mlir").write_text(PROGRAM)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command fails."""
    assert main([*arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("isoform: error: ") and err.count("\n") == 1
    assert "bug" not in err and "crash" not in err
    return err


# --- the system ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("zoo", "dcgan", "-o", "out.mlir"),
        ("zoo", "dcgan", "-o", "out.onnx"),
        ("import", "zoo:dcgan", "-o", "out.mlir"),
        ("run", "zoo:dcgan", "--reference", "--output", "out.npz"),
        ("optimize", "zoo:dcgan", "--target", "h100", "--budget", "1", "-o", "out.mlir"),
    ],
)
def test_a_full_disk_is_one_line_and_nothing_is_left(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    command = [sys.executable, "-m", "isoform.compiler.cli", *arguments]
    own = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python would leave half a file of it
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=limited, cwd=folder, env=own
    )
    assert done.returncode == 1
    assert done.stderr.startswith("isoform: error: out.")
    assert done.stderr.endswith("cannot write file: File too large\n")
    assert [path.name for path in folder.iterdir()] == ["p.mlir"]


@pytest.mark.parametrize("module", ["isoform.compiler.cli", "isoform.compiler.opt"])
@pytest.mark.parametrize(
    ("stream", "told"), [(">&-", "standard output is closed"), (">/dev/full", "No space left")]
)
def test_a_stream_that_takes_nothing(folder: Path, module: str, stream: str, told: str) -> None:
    arguments = "zoo" if module.endswith("cli") else "p.mlir"
    command = f"'{sys.executable}' -m {module} {arguments} {stream}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, cwd=folder)
    assert done.returncode == 1
    assert told in done.stderr and done.stderr.count("\n") == 1


def test_a_reader_that_goes_away(folder: Path) -> None:
    command = f"'{sys.executable}' -m isoform.compiler.cli zoo | true"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), OSError(28, "No space")])
def test_what_the_system_refuses(
    folder: Path,
    error: Exception,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(commands, "check_command", fail)
    refused(capsys, "check", "p.mlir")
    monkeypatch.setattr("isoform.compiler.opt.IsoformOpt.execute", fail)
    assert opt(["p.mlir"]) == 1
    assert "traceback" not in capsys.readouterr().err


def test_ten_thousand_threads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run"], ["bench"], ["optimize", "--budget", "1"]):
        assert "--threads" in refused(capsys, *command, "p.mlir", "--threads", "10000")
    with pytest.raises(UserError, match="threads"):
        isoform.compile(isoform.load("p.mlir"), threads=10_000)


def test_threads_that_do_not_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(runner.threading.Thread, "start", start)
    with pytest.raises(UserError, match="starts no 1 threads: can't start new thread"):
        runner.Pool(2)


def test_folders_in_the_place_of_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.mlir").mkdir()
    for arguments in (
        ("run", "d.mlir"),
        ("run", "p.mlir", "--inputs", "d.mlir"),
        ("run", "p.mlir", "--reference", "--output", "d.mlir"),
        ("import", "p.mlir", "-o", "d.mlir"),
        ("optimize", "p.mlir", "--target", "h100", "--budget", "1", "--report", "d.mlir"),
        ("explain", "d.mlir"),
    ):
        assert "d.mlir" in refused(capsys, *arguments)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" * 9 + "]" * 9, "\xff"])
@pytest.mark.parametrize(
    "command",
    [
        ("explain",),
        ("verify",),
        ("bisect", "p.mlir"),
        ("optimize", "p.mlir", "--target", "h100", "--cost-file"),
    ],
)
def test_deep_and_broken_json(
    folder: Path, text: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c.json").write_bytes(text.encode("latin-1"))
    assert "c.json" in refused(capsys, *command, "c.json")


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


def claims(shape: str, descr: str = "<f4") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"


@pytest.mark.parametrize(
    "member",
    [
        npy(claims("(1000000000000,)")),
        npy(claims("(4,)"), b"\0" * 12),
        npy(claims("(4,)"), b"\0" * 10_000_000),  # a bomb: 10 kB in the archive
        npy(claims("(-4,)"), b"\0" * 16),
        npy(claims("(4,)", "|O"), b"\0" * 32),
        npy(claims("(2305843009213693952, 8)")),
        npy("{'descr': '<f4', 'fortran_order': False}"),
        npy("(" * 60),
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_an_npz_member_that_claims_what_it_has_not(folder: Path, member: bytes) -> None:
    path = archive(folder / "i.npz", x=member)
    for infos in (INFOS, ANY):
        with pytest.raises(UserError, match="not a readable NPZ archive"):
            read_inputs(path, infos)


def test_an_npz_is_not_unpacked_where_its_header_does_not_fit_the_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = npy(claims("(10000000,)"), b"\0" * 40_000_000)
    path = archive(folder / "i.npz", x=bomb)
    assert path.stat().st_size < 100_000

    def unpack(*_: object, **__: object) -> None:
        raise AssertionError("it was unpacked")

    monkeypatch.setattr(np.lib.format, "read_array", unpack)
    with pytest.raises(UserError, match="shape"):
        read_inputs(path, INFOS)
    with pytest.raises(UserError, match="other"):
        read_inputs(archive(folder / "j.npz", other=bomb), INFOS)


def test_an_npz_that_fits_is_read(folder: Path) -> None:
    wanted = np.arange(4, dtype=np.float32)
    for save in (np.savez, np.savez_compressed):
        save("i.npz", x=wanted)
        assert np.array_equal(read_inputs(Path("i.npz"), INFOS)["x"], wanted)
    np.savez("s.npz", x=np.asfortranarray(np.ones((2, 3), np.float32)))
    assert read_inputs(Path("s.npz"), ANY)["x"].shape == (2, 3)


@pytest.mark.parametrize(
    "header",
    [
        b'{"w":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}',
        b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[2305843009213693952,8],"data_offsets":[0,16]}}',
        b'{"w":{"dtype":"O","shape":[4],"data_offsets":[0,16]}}',
        b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}',
        b"[" * 5000,
    ],
)
def test_a_safetensors_file_that_claims_what_it_has_not(folder: Path, header: bytes) -> None:
    path = folder / "w.safetensors"
    for length in (len(header), 2**60):
        path.write_bytes(length.to_bytes(8, "little") + header + b"\0" * 16)
        with pytest.raises(UserError, match="not a readable safetensors file"):
            load_safetensors(path)


# --- others' plug-ins ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ImportError("gone"), ZeroDivisionError("x"), SystemExit(3), SyntaxError("odd")]
)
def test_an_installed_plugin_that_does_not_load(
    folder: Path,
    error: BaseException,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Entry:
        name, value = "stranger", "stranger:UNIVERSE"
        dist = None

        def load(self) -> object:
            raise error

    def found(**_: object) -> list[Entry]:
        return [Entry()]

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    monkeypatch.setattr(registry, "entry_points", found)
    assert "stranger" in refused(capsys, "check", "p.mlir")


def test_plugins_are_looked_for_once_and_again_where_the_path_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: list[Universe] = []

    def look() -> Universe:
        looked.append(Universe())
        return looked[-1]

    monkeypatch.setattr(Universe, "get_multiverse", look)
    monkeypatch.syspath_prepend(tmp_path)
    registry.multiverse()
    registry.multiverse()
    assert len(looked) == 1
    monkeypatch.syspath_prepend(tmp_path / "more")
    registry.multiverse()
    assert len(looked) == 2


FAILING = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Fails(ModulePass):
    """Fail."""
    name = "fails"
    def apply(self, ctx, op):
        {}["nothing"]

PASSES = [Fails]
'''


@pytest.mark.parametrize("run", [opt, main])
def test_a_plugin_pass_that_fails_is_named(
    folder: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "f.py").write_text(FAILING)
    command = ["p.mlir"] if run is opt else ["bisect", "p.mlir"]
    assert run([*command, "--plugin", "f.py", "-p", "fails"]) == 1
    err = capsys.readouterr().err
    assert "pass 'fails'" in err and "bug" not in err
