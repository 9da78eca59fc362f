"""How `isoform` speaks: quiet, verbose, colours, help, completion, standard input and output."""

import importlib.util
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import isoform
from isoform.compiler import cli
from isoform.compiler.commands import diagnostics
from isoform.compiler.commands.cli_help import EXAMPLES, GROUPS

GOOD = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(GOOD)


def given(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data)))


def test_every_command_stands_in_one_group_and_has_examples(capsys: Capture) -> None:
    names = [name for _, group in GROUPS for name in group]
    assert sorted(names) == sorted(cli.COMMANDS)
    assert set(EXAMPLES) == {"", *names}
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in names)
    assert "\nexamples:\n" in shown


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_a_command_ends_with_examples_that_parse(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    assert capsys.readouterr().out.rstrip().endswith(EXAMPLES[name][-1])
    for line in EXAMPLES[name]:
        words = line.partition("isoform ")[2].partition(" > ")[0].partition(" | ")[0].split()
        if line.startswith("isoform ") and words[0] == name:
            assert cli.parse_arguments(words).command == name


def test_the_program_may_come_from_standard_input(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(GOOD.encode(), monkeypatch)
    assert cli.main(["import", "-", "-o", "-"]) == 0
    assert "graph.relu" in capsys.readouterr().out
    isoform.save(isoform.load("m.mlir"), "m.onnx")
    given(Path("m.onnx").read_bytes(), monkeypatch)
    assert cli.main(["run", "-", "--json"]) == 0
    assert '"name": "y"' in capsys.readouterr().out


def test_the_result_may_go_to_standard_output(capsys: Capture) -> None:
    flags = ["--target", "h100", "--emit", "graph", "--budget", "3600"]
    assert cli.main(["optimize", "m.mlir", "-o", "-", *flags]) == 0
    out, err = capsys.readouterr()
    assert isoform.parse(out).output_names == ["y"]
    assert err == ""


def test_quiet_tells_nothing_and_verbose_what_is_done(capsys: Capture) -> None:
    flags = ["--target", "h100", "--emit", "graph", "--budget", "3600"]
    assert cli.main(["optimize", "m.mlir", "-q", *flags]) == 0
    assert capsys.readouterr() == ("", "")
    assert cli.main(["optimize", "m.mlir", "-v", *flags]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("m.mlir for h100")
    assert "search saturate: up to" in err
    assert cli.main(["verify", "m.mlir", "m.mlir", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_no_color_keeps_errors_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert diagnostics.colour("error: ") == "\x1b[1;31merror: \x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert diagnostics.colour("error: ") == "error: "
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert diagnostics.colour("error: ") == "error: "


def test_a_terminal_sees_the_source_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bad.mlir").write_text(GOOD.replace("graph.relu", "graph.rleu"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["run", "bad.mlir"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == ["  %y = graph.rleu %x : tensor<4xf32>", "       ^"]


@pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="shtab is not installed")
@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
@pytest.mark.parametrize("driver", ["isoform", "isoform-opt"])
def test_a_shell_completes_flags(shell: str, driver: str, capsys: Capture) -> None:
    assert cli.main(["completion", shell, "--of", driver]) == 0
    script = capsys.readouterr().out
    flag = "budget" if driver == "isoform" else "help-dialect"
    assert flag in script


def test_without_shtab_completion_says_what_to_install(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert "pip install 'isoform[completion]'" in capsys.readouterr().err
