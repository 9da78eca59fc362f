"""What `isoform explain` tells beyond the lines of `optimize`: what the page of `view` shows.

Tables of where the time goes, of the best price over time and of the e-graph's matches; and single
rewrites whole, with their IR, the steps of their derivation and the equal forms of their e-graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ...dialects.errors import one_line
from .changes import source_of
from .measures import kernels, matches, searches
from .program_graphs import SIDES

# Rows of a table that has many; the last row counts the others.
_ROWS = 10


@dataclass(frozen=True)
class Section:
    """A table: its head, its rows, and which columns are numbers."""

    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: tuple[int, ...]

    def text(self) -> str:
        """Columns two spaces apart, numbers at their right."""
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if k in self.right else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def sections(report: Mapping[str, Any]) -> list[Section]:
    """The tables that have rows."""
    found = [*_time(report), _curves(report), _matches(report)]
    return [section for section in found if section.rows]


def microseconds(seconds: float) -> str:
    """Three digits in the unit that fits: `64.2 us`, `1.72 ms`."""
    if abs(seconds) >= 1e-3:
        return f"{seconds * 1e3:.3g} ms" if abs(seconds) < 1.0 else f"{seconds:.3g} s"
    return f"{seconds * 1e6:.3g} us"


def _time(report: Mapping[str, Any]) -> list[Section]:
    """The slowest kernels before and after, side by side, with their shares."""
    if "levels" not in report and not report.get("kernels"):
        return []
    found = kernels(report, report.get("levels"))
    sides = [_slowest(found[side]) for side in SIDES]
    rows = [(*one, *other) for one, other in zip_longest(*sides, fillvalue=("", "", ""))]
    head = (f"kernels before, {found['kind']}", "time", "share", "after", "time", "share")
    return [Section(head, rows, (1, 2, 4, 5))]


def _slowest(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Label, time and share of the slowest; the others as one row."""
    rows = sorted(rows, key=lambda kernel: -kernel["seconds"])
    total = sum(kernel["seconds"] for kernel in rows) or 1.0
    shown = [(one_line(kernel["label"]), kernel["seconds"]) for kernel in rows[:_ROWS]]
    if rest := rows[_ROWS:]:
        shown.append((f"{len(rest)} more", sum(kernel["seconds"] for kernel in rest)))
    return [(label, microseconds(s), f"{s / total:.0%}") for label, s in shown]


def _curves(report: Mapping[str, Any]) -> Section:
    """Each time that a search found something better: when, after how much, and its price."""
    rows: list[tuple[str, ...]] = []
    for search in searches(report):
        best = float("inf")
        for seconds, count, price, part in search["points"]:
            if price < best:
                row = (f"{seconds:.1f} s", f"{count:.0f}", microseconds(price), f"{part:.0%}")
                rows.append((search["name"], *row))
                best = price
    return Section(("best of", "at", "looked at", "price", "of its first"), rows, (1, 2, 3, 4))


def _matches(report: Mapping[str, Any]) -> Section:
    found = matches(report)
    rows = [(one_line(rule), str(count)) for rule, count in found[:_ROWS]]
    if rest := found[_ROWS:]:
        rows.append((f"{len(rest)} more rules", str(sum(count for _, count in rest))))
    return Section(("added to the e-graph", "times"), rows, (1,))


# --- single rewrites ----------------------------------------------------------------------------


def chosen_rewrites(report: Mapping[str, Any], text: str) -> list[Mapping[str, Any]]:
    """The rewrites whose rule or place has the text in it."""
    wanted = text.lower()
    return [
        entry
        for entry in report["rewrites"]
        if wanted in f"{entry['rule']} {entry['place']}".lower()
    ]


def rewrite_rows(entry: Mapping[str, Any], steps: Sequence[str]) -> list[tuple[str, str]]:
    """A rewrite whole: what each part is, and the part, which may have several lines.

    Args:
        steps: the rules that were applied at this place, in order.
    """
    prices = entry.get("seconds")
    before, after = entry.get("before"), entry.get("after")
    became = entry.get("became")
    rows = [
        ("source node", source_of(entry["place"])),
        ("op", entry["place"]),
        ("proof", entry.get("proof", "")),
        ("price", " -> ".join(map(microseconds, prices)) if prices else ""),
        ("gain", microseconds(entry["delta"]) if entry["delta"] else ""),
        ("error", f"{entry['error']:.1e}" if entry.get("error") is not None else ""),
        ("floats", entry.get("floats", "")),
        ("infinities", entry.get("infinities", "")),
        ("steps here", ", ".join(steps) if len(steps) > 1 else ""),
        ("IR before", "" if before is None else before or "(nothing)"),
        ("after this step", became or ""),
        ("IR after", "" if after is None else after or "(nothing)"),
    ]
    rows += [(f"equal to {found['value']}", _forms(found)) for found in entry.get("equal", ())]
    return [(one_line(name), _printable(text)) for name, text in rows if text]


def _forms(found: Mapping[str, Any]) -> str:
    """The forms of a class of the e-graph, a line each; the chosen one is marked."""
    lines = [
        f"{'*' if form['chosen'] else ' '} {form['ir']}  "
        f"({microseconds(form['seconds']) if form['seconds'] else 'free'}, "
        f"{form['rule'] or 'of the program'})"
        for form in found["forms"]
    ]
    return "\n".join([*lines, *([f"  and {found['more']} more"] if found["more"] else [])])


def _printable(text: str) -> str:
    """Lines without control characters; spaces at their beginnings are kept."""
    lines = text.split("\n")
    return "\n".join(" " * (len(s) - len(s.lstrip(" "))) + one_line(s) for s in lines)
