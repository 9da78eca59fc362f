"""A report in words: plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# So many products whose precision was lowered are named; a report has all.
_PRODUCTS = 8


def report_text(report: Mapping[str, Any]) -> str:
    """A report in words."""
    cost, stages = report["cost"], report.get("stages_s", {})
    earlier = ", remembered of an earlier run" if report.get("remembered") else ""
    lines = [
        f"{report['source']} for {report['target']}, strategy {report['strategy']}: "
        f"{report['stop_reason']} after {report['elapsed_s']:.1f} s{earlier}",
        f"cost ({cost['kind']}): {_change(cost['before'], cost['after'])}",
    ]
    lines += [_size_line(entry) for entry in report.get("sizes", [])]
    tuned = cost.get("tuned", cost["before"])
    if tuned != cost["before"]:
        lines.append(f"  by the kernels' algorithms: {_change(cost['before'], tuned)}")
        lines.append(f"  by rewrites and searches: {_change(tuned, cost['after'])}")
    counts: dict[str, int] = {}
    rewritten = any("error" not in entry for entry in report["rewrites"])
    for step in report["passes"] if rewritten else []:
        counts[step["name"]] = counts.get(step["name"], 0) + step["rewrites"]
    lines += [f"applied {rule} ({count} times)" for rule, count in counts.items() if count]
    for search in report.get("searches", []):
        lines.append(_search_line(search, stages))
        lines += _applied_lines(search["strategy"], report["rewrites"])
    lines += algorithm_lines(report["rewrites"])
    if "precision" in report:
        lines += precision_lines(report["precision"])
    lines += _rejected_lines(report["rejected"])
    if "onnxruntime" in report:
        from ..checks.written_onnx import onnxruntime_line

        lines.append(onnxruntime_line(report["onnxruntime"]))
    if report.get("message"):
        lines.append(report["message"])
    return "\n".join(lines)


def _size_line(entry: Mapping[str, Any]) -> str:
    """One of the sizes that a program with symbolic dims was compared at."""
    at = " ".join(f"{name}={n}" for name, n in entry["at"].items())
    return f"  at {at}: {_change(entry['before'], entry['after'])}"


def _change(before: float, after: float) -> str:
    gain = f", {before / after:.2f}x" if after else ""
    return f"{milliseconds(before)} -> {milliseconds(after)}{gain}"


# Why a search ended early, in words.
STOPPED = {
    "time": "stopped by its share of the budget",
    "steps": "stopped by its limit of steps",
    "nodes": "stopped by its limit of nodes",
    "memory": "stopped by its limit of memory",
    "interrupted": "interrupted",
}


def _search_line(search: Mapping[str, Any], stages: Mapping[str, float]) -> str:
    """One search in words: what it looked at and found, how long it took, why nothing was kept."""
    name, stop = search["strategy"], search["stop_reason"]
    parts = [search["looked_at"]] if search.get("looked_at") else []
    parts += [STOPPED[stop]] if stop in STOPPED else []
    parts.append(("kept: " if search["kept"] else "nothing kept: ") + search["reason"])
    seconds = f" ({stages[name]:.1f} s)" if name in stages else ""
    return f"search {name}{seconds}: {'; '.join(parts)}"


def _applied_lines(strategy: str, rewrites: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rules that a search applied, and where."""
    places: dict[str, list[str]] = {}
    for entry in rewrites:
        search, _, rule = entry["rule"].partition(" ")
        if search == strategy:
            places.setdefault(entry["place"], []).append(rule)
        elif entry.get("search") == strategy:
            places.setdefault(entry["place"], []).append(entry["rule"])
    return [
        f"  {strategy} {place}" + (f": {', '.join(rules)}" if any(rules) else "")
        for place, rules in places.items()
    ]


def _rejected_lines(rejected: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was skipped and why; each reason once."""
    return [
        f"rejected {rule}{_at(places)}: {reason}" for rule, reason, places in by_reason(rejected)
    ]


def by_reason(rejected: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """Rule, reason and places of what was not applied, each rule and reason once."""
    places: dict[tuple[str, str], list[str]] = {}
    for entry in rejected:
        places.setdefault((entry["rule"], entry["reason"]), []).append(entry["place"])
    return [(rule, reason, found) for (rule, reason), found in places.items()]


def _at(places: Sequence[str]) -> str:
    if list(places) == ["main"]:
        return ""
    return f" at {places[0]}" + (f" and {len(places) - 1} more" if len(places) > 1 else "")


def algorithm_lines(rewrites: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which convolutions run by another algorithm, the gain, and the measured error."""
    found = [entry for entry in rewrites if "error" in entry]
    return [
        f"{entry['rule']} for {entry['place']}: {milliseconds(entry['delta'])} measured, "
        f"relative error {entry['error']:.1e}"
        for entry in found
        if entry["error"] is not None
    ]


def precision_line(precision: Mapping[str, Any]) -> str:
    """What was lowered, by how much outputs are off, and that it is another program."""
    lowered, kept = len(precision["lowered"]), len(precision["kept"])
    if lowered and not precision.get("applied", True):
        ratio = f", it takes {precision['ratio']:.3f} of the time" if "ratio" in precision else ""
        return f"precision: the program in {precision['to']} was not kept{ratio}"
    if not lowered:
        return f"precision: no product was lowered to {precision['to']} ({kept} looked at)"
    seeds = ", ".join(map(str, precision["seeds"]))
    on = f"inputs drawn with seeds {seeds}" if seeds else "the inputs given"
    off = f"{precision['error']:.1e} on {on}, {precision['bound']:g} are allowed"
    return (
        f"not the same program: {lowered} of {lowered + kept} products are computed in "
        f"{precision['to']}; outputs are off by {off}"
    )


def precision_lines(precision: Mapping[str, Any]) -> list[str]:
    """The same, with the products and what each costs alone."""
    lines = [precision_line(precision)]
    if not precision.get("applied", True):
        return lines
    for what, rows in (("lowered", precision["lowered"]), ("kept", precision["kept"])):
        worst = sorted(rows, key=lambda row: -float(row["error"]))
        lines += [
            f"  {what} {row['place']}: {float(row['error']):.1e} alone" for row in worst[:_PRODUCTS]
        ]
        if len(worst) > _PRODUCTS:
            lines.append(f"  {what} {len(worst) - _PRODUCTS} more, each less")
    return lines


def milliseconds(seconds: float) -> str:
    """`0.161 ms`."""
    return f"{seconds * 1e3:.3f} ms"
