"""`isoform view`: write a report, or a model, as one page of HTML."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import check_outputs, write_whole
from ..reports.report_file import read_report
from ..reports.view.page import page
from .subcommands import load_model


def view_command(arguments: Namespace) -> int:
    """`isoform view REPORT.json|MODEL -o PAGE.html`."""
    if Path(arguments.output).suffix.lower() not in (".html", ".htm"):
        raise UserError("a page is written as PAGE.html", where=arguments.output)
    check_outputs([arguments.output])
    is_report = Path(arguments.model).suffix.lower() == ".json"
    report = read_report(arguments.model) if is_report else _report_of_model(arguments)
    if "levels" not in report:
        hint = "isoform optimize MODEL --report R.json writes them"
        raise UserError("this report holds no programs", where=arguments.model, hint=hint)
    write_whole(arguments.output, page(report))
    return 0


def _report_of_model(arguments: Namespace) -> dict[str, Any]:
    """A report of what every compilation makes of the model, without a search."""
    from ..reports.program_graphs import levels_of
    from ..search.optimizer import rewritten

    better = rewritten(load_model(arguments), arguments.target)
    return {**better.report, "levels": levels_of(better)}
