"""`isoform explain` and the end of `optimize`: lines, and tables on a terminal."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.viewed import convolution_with_batch_norm, report_of

from isoform.compiler import cli
from isoform.compiler.reports.tables import tables

SEARCH = {
    "strategy": "derive",
    "stop_reason": "time",
    "kept": True,
    "reason": "its best program was measured to take 0.500 of the time",
    "looked_at": "3 subprograms",
}


def report(**changes: Any) -> dict[str, Any]:
    rejected = [
        {"rule": "mutate", "place": f"algebra.scope 's{k}'", "reason": "too small"} for k in "abc"
    ]
    more = {"searches": [SEARCH], "stages_s": {"derive": 1.5}, "rejected": rejected}
    return report_of(convolution_with_batch_norm()) | more | changes


def shown(found: dict[str, Any], width: int = 120, **how: Any) -> str:
    out = StringIO()
    Console(file=out, width=width, **how).print(tables(found))
    return out.getvalue()


def row_of(text: str, first: str) -> list[str]:
    """The cells of the row that begins with a word."""
    (line,) = [line for line in text.splitlines() if line.startswith(first)]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_tables_tell_price_rewrites_searches_and_what_was_rejected() -> None:
    text = shown(report(cost={"before": 2e-3, "after": 1e-3, "kind": "measured"}))
    assert row_of(text, "after") == ["after", "1.000 ms", "2.00x"]
    assert row_of(text, "fold-batch-norm")[-2:] == ["exact", "conv1"]
    assert row_of(text, "derive")[:2] == ["derive", "1.5 s"] and "kept: its best" in text
    assert row_of(text, "mutate") == ["mutate", "too small", "sa, sb and 1 more"]


def test_a_narrow_terminal_folds_and_loses_nothing() -> None:
    text = shown(report(), width=50)
    assert max(map(len, text.splitlines())) <= 50
    assert "".join(SEARCH["reason"].split())[-12:] in "".join(text.split())


def test_names_are_text_and_not_markup() -> None:
    hostile = "[bold]x[/bold]\x1b[31m [link=file:///]"
    text = shown(report(source=hostile, message=hostile), force_terminal=True)
    assert "[bold]x[/bold]" in text and "\x1b[31m" not in text


def test_a_terminal_sees_tables_and_a_pipe_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(report()))
    assert cli.main(["explain", str(tmp_path / "r.json")]) == 0
    lines = capsys.readouterr().out
    assert "applied fold-batch-norm (1 times)" in lines
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["explain", str(tmp_path / "r.json")]) == 0
    assert "as fast" in capsys.readouterr().out
