"""`isoform explain` and the end of `optimize`: lines, and tables on a terminal."""

from __future__ import annotations

import json
import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.viewed import convolution_with_batch_norm, report_of

from isoform.compiler import cli
from isoform.compiler.reports.report_tables import report_tables

SEARCH: dict[str, Any] = {
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
    Console(file=out, width=width, **how).print(report_tables(found))
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


CURVE = [[0.0, 1, 2e-3], [1.0, 5, 2e-3], [2.0, 9, 1e-3]]
MATCHES = {f"rule-{k}": k for k in range(12)}
EQUAL = [
    {
        "value": "%d",
        "forms": [
            {"ir": "graph.matmul %a, %b", "seconds": 5e-6, "rule": "", "chosen": False},
            {"ir": "graph.matmul %x, %e", "seconds": 2e-6, "rule": "assoc", "chosen": True},
        ],
        "more": 3,
    }
]


def whole(**changes: Any) -> dict[str, Any]:
    """A report with all that `view` shows."""
    search = SEARCH | {"strategy": "saturate", "curve": CURVE, "matches": MATCHES}
    steps = [
        {
            "rule": rule,
            "place": "algebra.scope 'conv2'",
            "proof": "exact",
            "delta": -1e-6,
            "search": "derive",
            "before": "%old = algebra.scope (i: 4) %x[i]\n%y = algebra.ones",
            "after": "%new = algebra.scope (i: 4) %x[i]",
            "became": f"%{rule[7:]}",
            "seconds": [6.4e-5, 2.25e-3],
        }
        for rule in ("derive split", "derive match")
    ]
    found = {"rule": "assoc", "place": "graph.matmul %d", "proof": "exact", "delta": -3e-6}
    rewrites = [*steps, found | {"search": "saturate", "equal": EQUAL}]
    return report(searches=[search], stages_s={"saturate": 2.5}, rewrites=rewrites) | changes


def told(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert cli.main(["explain", str(path), *flags]) == 0
    return capsys.readouterr().out


@pytest.fixture(params=["pipe", "terminal"])
def path(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.json").write_text(json.dumps(whole()))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: request.param == "terminal")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "r.json"


def test_explain_tells_what_the_page_shows(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the time goes, the searches' curves and the e-graph's matches."""
    text = told(path, capsys)
    (conv,) = [row for row in text.splitlines() if row.startswith("conv conv1")][:1]
    assert re.search(r"conv conv1 +[\d.]+ us +\d+% +conv conv1 +[\d.]+ us +\d+%", conv)
    assert re.search(r"kernels before, modelled +time +share +after +time +share", text)
    curve = [row.split() for row in text.splitlines() if row.startswith("saturate  ")][-2:]
    assert curve == [
        ["saturate", "0.0", "s", "1", "2", "ms", "100%"],
        ["saturate", "2.0", "s", "9", "1", "ms", "50%"],
    ], "what is no better has no row"
    assert re.search(r"^rule-11 +11 *$", text, re.M), "the most frequent first"
    assert re.search(r"^2 more rules +1 *$", text, re.M)


def test_measured_kernels_come_before_modelled_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = {"place": "kernel.conv 'c'", "kernel": "k", "seconds": 2e-3}
    kernels = {"before": [kernel] * 12, "after": [kernel]}
    (tmp_path / "r.json").write_text(json.dumps(whole(kernels=kernels)))
    text = told(tmp_path / "r.json", capsys)
    assert "kernels before, measured" in text
    assert re.search(r"^2 more +4 ms +17%", text, re.M)


def test_a_rewrite_is_told_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(told(path, capsys, "--rewrites", "CONV2").split())
    assert text.count("derive split") == 1 + 2 and "assoc" not in text, "both list both steps"
    assert "64 us -> 2.25 ms" in text and "-1 us" in text
    assert "%y = algebra.ones" in text and "%new" in text and "%match" in text


def test_the_forms_of_the_e_graph_are_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(told(path, capsys, "--rewrites", "assoc").split())
    assert "equal to %d" in text and "and 3 more" in text
    assert "* graph.matmul %x, %e (2 us, assoc)" in text
    assert "* graph.matmul %a" not in text and "%b (5 us, of the program)" in text


def test_a_rewrite_that_is_none_is_an_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(path), "--rewrites", "asoc"]) == 1
    found = capsys.readouterr()
    assert found.out == "" and "did you mean 'assoc'?" in found.err


def test_a_report_without_levels_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {k: v for k, v in whole().items() if k not in ("format", "version", "levels", "kernels")}
    (tmp_path / "r.json").write_text(json.dumps(old))
    assert "kernels before" not in told(tmp_path / "r.json", capsys)


def test_a_rewrite_cannot_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "%x\x1b[31m\r\n  graph.relu"
    entry = {"rule": "r\x1b[5m", "place": "p", "delta": 0.0, "before": hostile, "after": ""}
    (tmp_path / "r.json").write_text(json.dumps(whole(rewrites=[entry])))
    text = told(tmp_path / "r.json", capsys, "--rewrites", "p")
    assert "\x1b" not in text and "\r" not in text and "(nothing)" in text
