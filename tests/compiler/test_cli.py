"""`isoform` on the command line: results on stdout, one line on stderr, exit 0, 1, 2 or 130."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from isoform.compiler import api
from isoform.compiler.cli import COMMANDS, main
from isoform.compiler.commands import subcommands
from isoform.compiler.commands.inputs import write_outputs
from isoform.dialects.builder import GraphBuilder

ISOFORM = [sys.executable, "-m", "isoform.compiler.cli"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    w = b.weight("w", np.arange(6, dtype=np.float32).reshape(2, 3))
    b.output("y", b.relu(b.relu(b.matmul(x, b.transpose(b.neg(w), perm=[1, 0])))))
    path = tmp_path / "net.mlir"
    api.save(b.build("net"), path)
    return path


Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "1"), ({"OMP_NUM_THREADS": "3"}, "None"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")],
)
def test_numpys_blas_has_one_thread_unless_the_user_says_more(
    given: dict[str, str], found: str
) -> None:
    code = """
import os, sys
from isoform.compiler.cli import main
assert "numpy" not in sys.modules
try: main(["--help"])
except SystemExit: pass
print(os.environ.get("OPENBLAS_NUM_THREADS"))"""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == found


def fails(capsys: Captured, *arguments: object, status: int = 1) -> str:
    """Run a command that must fail; its one line of stderr."""
    assert main([str(a) for a in arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("isoform: error: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert "a bug" not in err, err
    return err.removeprefix("isoform: error: ").rstrip()


def succeeds(capsys: Captured, *arguments: object) -> str:
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    return out


# --- commands -----------------------------------------------------------------------------------


def test_run_prints_a_table(net: Path, capsys: Captured) -> None:
    lines = succeeds(capsys, "run", net, "--reference").splitlines()
    assert lines[0].split() == ["output", "shape", "dtype", "min", "max", "mean"]
    assert lines[1].split()[:3] == ["y", "2x2", "float32"]


def test_run_reads_and_writes_npz(net: Path, tmp_path: Path, capsys: Captured) -> None:
    x = np.full((2, 3), -1, np.float32)
    write_outputs(tmp_path / "i.npz", {"x": x})
    flags = ("--reference", "--inputs", tmp_path / "i.npz", "--output", tmp_path / "o.npz")
    assert succeeds(capsys, "run", net, *flags) == ""
    np.testing.assert_array_equal(np.load(tmp_path / "o.npz")["y"], [[3, 12], [3, 12]])


def test_run_as_json_is_one_object_and_the_seed_decides(net: Path, capsys: Captured) -> None:
    def run(seed: int) -> dict[str, object]:
        return json.loads(succeeds(capsys, "run", net, "--reference", "--json", "--seed", seed))

    one, again, other = run(1), run(1), run(2)
    assert one["outputs"] == again["outputs"]
    assert one["outputs"] != other["outputs"]


def test_run_natively_is_one_call(net: Path, capsys: Captured) -> None:
    for flags in ((), ("--no-optimize",)):
        found = json.loads(succeeds(capsys, "run", net, "--json", "--threads", 1, *flags))
        assert found["native_calls"] == 1
        assert found["outputs"][0]["shape"] == [2, 2]


def test_import_writes_text_and_weights(tmp_path: Path, capsys: Captured) -> None:
    assert succeeds(capsys, "import", "zoo:dcgan", "-o", tmp_path / "d.mlir", "--seed", 3) == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.mlir", "d.safetensors"]
    assert "OUT.mlir" in fails(capsys, "import", "zoo:dcgan", "-o", tmp_path / "d.onnx")


def test_check_says_what_is_native(net: Path, capsys: Captured) -> None:
    assert succeeds(capsys, "check", net)
    assert isinstance(json.loads(succeeds(capsys, "check", net, "--json")), dict)


def test_optimize_writes_the_level_it_is_asked_for(
    net: Path, tmp_path: Path, capsys: Captured
) -> None:
    report = tmp_path / "r.json"
    for level in ("graph", "algebra", "kernel"):
        out = tmp_path / f"{level}.mlir"
        flags = ("--target", "h100", "--emit", level, "--report", report)
        text = succeeds(capsys, "optimize", net, "-o", out, *flags)
        assert "cost (modelled)" in text
        assert f" {level}." in out.read_text()
        succeeds(capsys, "run", out, "--reference")
    assert json.loads(report.read_text())["passes"][0]["name"] == "canonicalize"
    assert succeeds(capsys, "explain", report).startswith(text)
    object_ = json.loads(succeeds(capsys, "optimize", net, "--target", "h100", "--json"))
    assert object_["strategy"] == "optimize"


def test_optimize_writes_onnx(net: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "o.onnx"
    succeeds(capsys, "optimize", net, "-o", out, "--target", "h100")
    assert api.load(out).output_names == ["y"]
    assert "graph level only" in fails(capsys, "optimize", net, "-o", out, "--emit", "kernel")


def test_zoo_lists_describes_and_writes(tmp_path: Path, capsys: Captured) -> None:
    table = succeeds(capsys, "zoo")
    assert "resnet18" in table
    assert "11689512" in table
    assert json.loads(succeeds(capsys, "zoo", "--json"))["models"][0]["name"] == "resnet18"
    assert "1x100x1x1" in succeeds(capsys, "zoo", "dcgan")
    succeeds(capsys, "zoo", "dcgan", "--batch", 2, "-o", tmp_path / "d.mlir")
    assert api.load(tmp_path / "d.mlir").inputs["latent"].get_shape()[0] == 2


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"usage: isoform {name}" in capsys.readouterr().out


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a command is missing"),
        (["optimise"], "did you mean 'optimize'"),
        (["run"], "required: MODEL"),
        (["run", "m.mlir", "--refrence"], "did you mean '--reference'"),
        (["run", "m.mlir", "--threads", "0"], "positive whole number"),
        (["run", "m.mlir", "--seed", "-1"], "whole number"),
        (["run", "m.mlir", "--shape", "x=1,b"], "NAME=1,3,224,224"),
        (["optimize", "m.mlir", "--budget", "nan"], "expected seconds"),
        (["optimize", "m.mlir", "--emit", "llvm"], "invalid choice"),
        (["import", "m.onnx"], "required: -o"),
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], message: str, capsys: Captured) -> None:
    assert message in fails(capsys, *arguments, status=2)


def test_wrong_files_exit_1(net: Path, tmp_path: Path, capsys: Captured) -> None:
    broken = tmp_path / "broken.mlir"
    broken.write_text("func.func @main(")
    text = tmp_path / "x.json"
    text.write_text("{}")
    nowhere = tmp_path / "no" / "o"
    for arguments, message in (
        (("run", tmp_path / "no.onnx"), "no such file"),
        (("run", tmp_path), "FILE.onnx, FILE.mlir, FILE.pt2 or zoo:NAME"),
        (("run", broken), "broken.mlir:1:"),
        (("run", "zoo:resnet81"), "did you mean 'resnet18'"),
        (("run", net, "--reference", "--inputs", text), "NPZ"),
        (("run", net, "--reference", "--output", f"{nowhere}.npz"), "cannot write"),
        (("run", net, "--shape", "y=1"), "no input 'y'"),
        (("run", net, "--shape", "x=4,3"), "fixed shape: expected [2, 3], found [4, 3]"),
        (("run", net, "--target", "h100"), "cannot run on 'h100'"),
        (("optimize", net, "--target", "h100", "-o", f"{nowhere}.mlir"), "cannot write"),
        (("optimize", net, "--target", "h100", "--report", f"{nowhere}.json"), "cannot write"),
        (("optimize", net, "-o", "x.txt"), "FILE.mlir or FILE.onnx"),
        (("optimize", net, "--strategy", "derives"), "did you mean 'derive'"),
        (("optimize", net, "--cost-file", text), "not a cost file"),
        (("explain", text), "not a report"),
        (("explain", broken), "not JSON"),
        (("zoo", "-o", "x.mlir"), "which model"),
        (("bench", net, "--against", "onnxruntme"), "did you mean 'onnxruntime'"),
    ):
        assert message in fails(capsys, *arguments)


def test_a_failed_command_leaves_no_file(net: Path, tmp_path: Path, capsys: Captured) -> None:
    before = sorted(tmp_path.iterdir())
    fails(capsys, "run", net, "--reference", "--output", tmp_path / "no" / "o.npz")
    fails(capsys, "optimize", net, "--strategy", "derives", "-o", tmp_path / "o.mlir")
    assert sorted(tmp_path.iterdir()) == before


def test_a_bug_is_one_line_too(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(subcommands, "load_static", lambda *_, **__: [].pop())
    assert main(["run", str(net)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "crash, IndexError: pop from empty list (a bug; --traceback shows where)" in err
    main(["run", str(net), "--traceback"])
    assert "Traceback" in capsys.readouterr().err


# --- the process --------------------------------------------------------------------------------


def test_help_and_version_start_fast() -> None:
    code = "import sys; from isoform.compiler.cli import main; main(['run'])\n"
    heavy = "print([m for m in ('xdsl', 'numpy', 'onnx', 'llvmlite') if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code + heavy], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_ctrl_c_is_one_line_and_130(tmp_path: Path) -> None:
    fifo = tmp_path / "f.mlir"
    os.mkfifo(fifo)  # reading it waits for ever
    process = subprocess.Popen([*ISOFORM, "run", str(fifo)], stderr=subprocess.PIPE, text=True)
    writer = os.open(fifo, os.O_WRONLY)  # returns once the command reads
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    os.close(writer)
    assert (process.returncode, err) == (130, "isoform: interrupted\n")


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{' '.join(ISOFORM)} zoo --json | head -c 1"
    run = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, timeout=600
    )
    assert run.stderr == ""
