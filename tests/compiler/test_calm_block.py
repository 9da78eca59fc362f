"""What a terminal sees while `optimize` works."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from support.viewed import convolution_with_batch_norm

from isoform.compiler import api, cli
from isoform.compiler.commands import calm_block as module
from isoform.compiler.commands.calm_block import CalmBlock, calm_block, progress
from isoform.dialects.errors import heard_by, is_heard, loudness, say


def drawn(block: CalmBlock) -> dict[str, str]:
    """The rows of a block by their names."""
    out = StringIO()
    Console(file=out, width=80).print(block)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return {line[:13].strip(): line[13:] for line in lines}


def test_the_block_shows_what_was_said_last_and_the_best() -> None:
    block = CalmBlock("model for cpu", 60.0)
    with heard_by(block):
        say("search derive: kept: its best program was measured to take 0.8 of the time", best=True)
        say("search mutate: algebra.scope 'conv1'")
    rows = drawn(block)
    assert rows["optimize"] == "model for cpu"
    assert rows["stage"] == "search mutate" and rows["looks at"] == "algebra.scope 'conv1'"
    assert rows["best so far"] == "its best program was measured to take 0.8 of the time (derive)"
    assert "60 s left of 60 s" in rows[""]


def test_a_long_title_leaves_the_names_whole() -> None:
    for length in range(50, 120):
        assert "best so far" in drawn(CalmBlock("m" * length, 60.0))


def test_a_time_that_is_spent_is_said() -> None:
    assert "used up" in drawn(CalmBlock("m", 0.0))["time"]


def test_names_cannot_draw() -> None:
    block = CalmBlock("[red]m\x1b[31m\n", 1.0)
    block("search: [blink]x\x1b[5m", False)
    rows = drawn(block)
    assert rows["optimize"].startswith("[red]m") and rows["looks at"].startswith("[blink]x")


@pytest.mark.parametrize("level", [-1, 1])
def test_quiet_and_verbose_have_no_block(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with loudness(level), calm_block("m", 1.0):
        assert not is_heard()


def test_a_pipe_gets_the_lines_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.save(convolution_with_batch_norm(), tmp_path / "m.mlir")
    flags = ["--target", "h100", "--strategy", "saturate", "--budget", "3600"]
    assert cli.main(["optimize", str(tmp_path / "m.mlir"), *flags]) == 0
    out, err = capsys.readouterr()
    assert "cost (modelled)" in out and err == ""


def test_a_terminal_sees_the_block_and_then_the_tables(tmp_path: Path) -> None:
    api.save(convolution_with_batch_norm(), tmp_path / "m.mlir")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "isoform.compiler.cli", "optimize", str(tmp_path / "m.mlir")]
    command += ["--target", "h100", "--strategy", "saturate", "--budget", "3600"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    run = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 1 << 16):
            seen += part
    except OSError:  # the terminal was closed: the run has ended
        assert run.wait() == 0
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", seen).decode()
    assert "best so far" in text and text.index("best so far") < text.index("as fast")


def test_a_pipe_gets_a_line_now_and_then_of_work_on_many_things(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LINES", 1e-3)
    with progress("verified", 3) as done:
        _awaited(capsys, r"verified: 0 of 3 in \d+ s\n")  # also while the first is not done
        done("relu-twice: proved\x1b[5m")
        _awaited(capsys, r"verified: 1 of 3 in \d+ s, last relu-twice: proved \[5m\n")


def _awaited(capsys: pytest.CaptureFixture[str], pattern: str) -> None:
    """Wait for a line on stderr: a minute is more than any machine needs."""
    for _ in range(60_000):
        if re.search(pattern, capsys.readouterr().err):
            return
        time.sleep(1e-3)
    raise AssertionError(pattern)


def test_a_terminal_gets_a_bar_and_quiet_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    for level in (0, -1):
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        with loudness(level), progress("verified", 3) as done:
            done("[red]relu[/red]")
        assert ("1/3" in terminal.getvalue()) == (level == 0)
        assert ("[red]relu[/red]" in terminal.getvalue()) == (level == 0)


def test_rules_verify_shows_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(module, "_lines", lambda what, total: _recorded(told))
    (tmp_path / "a.rules").write_text("rule twice\n  relu(relu(?x)) => relu(?x)\n")
    assert cli.main(["rules", "verify", str(tmp_path / "a.rules")]) == 0
    assert told == ["twice: proved-by-z3"]


@contextmanager
def _recorded(told: list[str]) -> Generator[Callable[[str], None]]:
    yield told.append
