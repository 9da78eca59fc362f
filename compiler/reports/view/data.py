"""What the page shows of a report: its parts related to one another, in an order that is fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..changes import source_of
from ..measures import kernels, matches, searches
from ..program_graphs import SIDES
from ..report_text import by_reason

LEVELS = ("graph", "algebra", "kernel")
_ENDED = {"time": "budget spent"}


def page_data(report: Mapping[str, Any]) -> dict[str, Any]:
    """The data that is embedded in the page.

    Args:
        report: of this version, with `levels`.
    """
    levels = {name: _level(report["levels"][name]) for name in LEVELS}
    families = list(dict.fromkeys(_family(entry) for entry in report["rewrites"]))
    return {
        "title": report["source"] or "program",
        "asked": _asked(report),
        "cost": report["cost"],
        "message": report.get("message", ""),
        "first": _first(levels, report["rewrites"]),
        "levels": levels,
        "families": families,
        "rewrites": [_rewrite(entry, families, levels) for entry in report["rewrites"]],
        "kernels": kernels(report, levels),
        "searches": searches(report),
        "stages": [[name, s] for name, s in report.get("stages_s", {}).items() if s > 0],
        "matches": matches(report),
        "rejected": _rejected(report["rejected"]),
    }


def _asked(report: Mapping[str, Any]) -> str:
    earlier = ", remembered of an earlier run" if report.get("remembered") else ""
    stop = report["stop_reason"]
    how = "" if report["strategy"] == "none" else f", strategy {report['strategy']}"
    ended, seconds = _ENDED.get(stop, stop), report["elapsed_s"]
    return f"for {report['target']}{how}: {ended}, {seconds:.1f} s{earlier}"


def _level(level: Mapping[str, Any]) -> dict[str, Any]:
    """A level's nodes, each with its source node."""
    return {
        side: None
        if level[side] is None
        else {
            "nodes": [{**node, "source": source_of(node["place"])} for node in level[side]["nodes"]]
        }
        for side in SIDES
    }


def _first(levels: Mapping[str, Any], rewrites: Sequence[Mapping[str, Any]]) -> str:
    """The level to begin at: the highest where the sides differ, else the kernels."""
    if not rewrites:
        return "graph" if levels["graph"]["before"] is not None else "kernel"
    for name in LEVELS:
        sides = [levels[name][side] for side in SIDES]
        if None not in sides and any("pair" not in n for side in sides for n in side["nodes"]):
            return name
    return "kernel"


def _family(entry: Mapping[str, Any]) -> str:
    """The pass or search of a rewrite: `canonicalize/add-zero` names its pass first."""
    return str(entry.get("search") or entry["rule"].partition("/")[0])


def _rewrite(
    entry: Mapping[str, Any], families: Sequence[str], levels: Mapping[str, Any]
) -> dict[str, Any]:
    sources = [source_of(part) for part in entry["place"].split(" with ")]
    places = [s for s in sources if s] or [entry["place"]]
    family = _family(entry)
    # In a list below its family, a rewrite is named by its pattern and its source node.
    rest = entry["rule"].removeprefix(family).strip("/ ")
    short = f"{rest}: {', '.join(places)}" if rest else ", ".join(places)
    return {
        **entry,
        "source": ", ".join(s for s in sources if s),
        "short": short,
        "family": families.index(family),
        "at": {name: _at(entry, sources, levels[name]) for name in LEVELS},
    }


def _at(
    entry: Mapping[str, Any], sources: Sequence[str], level: Mapping[str, Any]
) -> list[list[int]]:
    """The nodes of a level, before and after, at the source nodes of a rewrite or in its IR.

    Without a source node, the node of that place if there is but one.
    """
    wanted = {source for source in sources if source}
    found: list[list[int]] = []
    for side in SIDES:
        nodes = (level[side] or {"nodes": []})["nodes"]
        lines = frozenset(entry.get(side, "").splitlines())
        here = [k for k, n in enumerate(nodes) if n["place"] == entry["place"]]
        if wanted:
            here = [k for k, n in enumerate(nodes) if n["source"] in wanted or n["ir"] in lines]
        found.append(here if wanted or len(here) == 1 else [])
    return found


def _rejected(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was not applied, each reason once with all its places."""
    return [
        {"rule": rule, "reason": reason, "places": places}
        for rule, reason, places in by_reason(entries)
    ]
