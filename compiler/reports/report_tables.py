"""A report as tables of rich, for a terminal: what report_text.py says in lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...dialects.errors import one_line
from .changes import source_of
from .report_text import STOPPED, by_reason, milliseconds, precision_line
from .sections import Section

# Places of one row that are named; the others are counted.
_NAMED = 2


def report_tables(report: Mapping[str, Any], more: Sequence[Section] = ()) -> Group:
    """Price, rewrites, searches and what was rejected; a table without rows is left out.

    Args:
        more: what `explain` tells beside them (sections.py).
    """
    earlier = ", remembered of an earlier run" if report.get("remembered") else ""
    asked = f" for {report['target']}, strategy {report['strategy']}: {report['stop_reason']}"
    asked += f" after {report['elapsed_s']:.1f} s{earlier}"
    parts: list[RenderableType] = [
        Text.assemble((one_line(report["source"]), "bold"), asked),
        Text(),
        _price(report["cost"]),
    ]
    others = [_section(section) for section in more]
    found = (_rewrites(report), _searches(report), *others, _rejected(report["rejected"]))
    for table in found:
        parts += [Text(), table] if table.row_count else []
    if "precision" in report:
        parts += [Text(), Text(one_line(precision_line(report["precision"])), "yellow")]
        table = _products(report["precision"])
        parts += [table] if table.row_count else []
    if "onnxruntime" in report:
        from ..checks.written_onnx import onnxruntime_line

        parts.append(Text(one_line(onnxruntime_line(report["onnxruntime"]))))
    if report.get("message"):
        parts += [Text(), Text(one_line(report["message"]), "yellow")]
    return Group(*parts)


def _price(cost: Mapping[str, Any]) -> Table:
    table = _table(cost["kind"], "time", "as fast", right=(1, 2))
    names = ("before", "before, kernels tuned", "after")
    rows = (cost["before"], cost.get("tuned", cost["before"]), cost["after"])
    for name, seconds in zip(names, rows, strict=True):
        if name.endswith("tuned") and seconds == cost["before"]:
            continue
        gain = cost["before"] / seconds if seconds else 1.0
        style = "green" if gain > 1.0 else ""
        table.add_row(name, milliseconds(seconds), Text(f"{gain:.2f}x", style))
    return table


def _rewrites(report: Mapping[str, Any]) -> Table:
    """Each rule once, with what all its uses gained."""
    table = _table("rewrite", "times", "gain", "proof", "where", right=(1, 2))
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in report["rewrites"]:
        found.setdefault((entry["rule"], entry.get("proof", "")), []).append(entry)
    for (rule, proof), entries in found.items():
        gain = sum(entry["delta"] for entry in entries)
        places = _places([entry["place"] for entry in entries])
        shown = milliseconds(gain) if gain else ""
        table.add_row(_cell(rule), str(len(entries)), shown, proof, places)
    return table


def _products(precision: Mapping[str, Any]) -> Table:
    """The products whose precision could be lowered, and how far each alone puts outputs off."""
    table = _table("product", "error alone", "became", right=(1,))
    for became, rows in ((precision["to"], precision["lowered"]), ("as it was", precision["kept"])):
        for row in rows:
            table.add_row(_cell(_short(row["place"])), f"{float(row['error']):.1e}", became)
    return table


def _searches(report: Mapping[str, Any]) -> Table:
    table = _table("search", "time", "looked at", "outcome", right=(1,))
    stages = report.get("stages_s", {})
    for search in report.get("searches", []):
        name, stop = search["strategy"], STOPPED.get(search["stop_reason"], "")
        kept = ("kept", "green") if search["kept"] else "nothing kept"
        outcome = Text.assemble(kept, f": {one_line(search['reason'])}")
        seconds = f"{stages[name]:.1f} s" if name in stages else ""
        looked = "; ".join(part for part in (search.get("looked_at", ""), stop) if part)
        table.add_row(name, seconds, _cell(looked), outcome)
    return table


def _section(section: Section) -> Table:
    table = _table(*section.head, right=section.right)
    for row in section.rows:
        table.add_row(*map(_cell, row))
    return table


def rewrite_table(entry: Mapping[str, Any], rows: Sequence[tuple[str, str]]) -> Group:
    """A rewrite whole: a row for each of its parts."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(_cell(name), Text(text))
    return Group(Text(one_line(entry["rule"]), "bold cyan"), table, Text())


def _rejected(rejected: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("rejected", "why", "where")
    for rule, reason, places in by_reason(rejected):
        table.add_row(_cell(rule), _cell(reason), _places(places))
    return table


def _table(*head: str, right: Sequence[int] = ()) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold cyan")
    for k, name in enumerate(head):
        wide = name in ("where", "why", "looked at", "outcome")
        justify, fold = "right" if k in right else "left", "fold"
        table.add_column(name, justify=justify, overflow=fold, no_wrap=not wide)  # pyright: ignore[reportArgumentType]
    return table


def _places(places: Sequence[str]) -> Text:
    places = [_short(place) for place in places if place != "main"]
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return Text(one_line(", ".join(places[:_NAMED]))).append(more, "dim")


def _short(place: str) -> str:
    """The source nodes in a place, else the place."""
    sources = [source_of(part) or part for part in place.split(" with ")]
    return " with ".join(sources)


def _cell(text: str) -> Text:
    """Text without markup: names of models may look like it."""
    return Text(one_line(text))
