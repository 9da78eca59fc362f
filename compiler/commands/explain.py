"""`isoform explain`: print a report, as tables on a terminal, else as lines."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from ...dialects.errors import UserError, did_you_mean, one_line
from ..reports.report_file import read_report
from ..reports.report_text import report_text
from ..reports.sections import Section, chosen_rewrites, rewrite_rows, sections


def explain_command(arguments: Namespace) -> int:
    """`isoform explain REPORT [--rewrites TEXT]`."""
    report = read_report(arguments.report, oldest=1)
    if arguments.rewrites is None:
        show(report, sections(report))
    else:
        _show_rewrites(report, arguments.rewrites)
    return 0


def show(report: Mapping[str, Any], more: Sequence[Section] = ()) -> None:
    """Print a report on stdout."""
    if not sys.stdout.isatty():
        print(report_text(report))
        for section in more:
            print("", section.text(), sep="\n")
        return
    from ..reports.report_tables import report_tables

    _console().print(report_tables(report, more))


def _show_rewrites(report: Mapping[str, Any], text: str) -> None:
    """Print the rewrites whose rule or place has the text in it.

    Raises:
        UserError: there is none.
    """
    found = chosen_rewrites(report, text)
    if not found:
        rules = {entry["rule"] for entry in report["rewrites"]}
        hint = did_you_mean(text, rules) or "isoform explain REPORT.json lists them"
        raise UserError(f"no rewrite has {text!r} in its rule or place", hint=hint)
    for entry in found:
        rows = rewrite_rows(entry, _steps(report, entry))
        if sys.stdout.isatty():
            from ..reports.report_tables import rewrite_table

            _console().print(rewrite_table(entry, rows))
            continue
        print(one_line(entry["rule"]))
        for name, part in rows:
            lines = part.split("\n")
            print(f"  {name}: {part}" if len(lines) == 1 else f"  {name}:")
            print("".join(f"    {line}\n" for line in lines if len(lines) > 1), end="")


def _steps(report: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """The rules that the search of a rewrite applied at its place, in order."""
    where = entry["place"], entry.get("search")
    if where[1] is None:
        return []
    return [e["rule"] for e in report["rewrites"] if (e["place"], e.get("search")) == where]


def _console() -> Any:
    from rich.console import Console

    return Console()
