"""`isoform explain`: print a report, as tables on a terminal, else as lines."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from ..reports.in_words import explain
from ..reports.report_file import read_report


def explain_command(arguments: Namespace) -> int:
    """`isoform explain REPORT`."""
    show(read_report(arguments.report, oldest=1))
    return 0


def show(report: Mapping[str, Any]) -> None:
    """Print a report on stdout."""
    if not sys.stdout.isatty():
        print(explain(report))
        return
    from rich.console import Console

    from ..reports.tables import tables

    Console().print(tables(report))
