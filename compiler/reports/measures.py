"""What a report says in numbers: seconds of kernels, prices of searches, matches in the e-graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .changes import source_of
from .program_graphs import SIDES


def kernels(report: Mapping[str, Any], levels: Mapping[str, Any] | None) -> dict[str, Any]:
    """Seconds of each kernel: measured where the report has them, else modelled from `levels`."""
    measured = report.get("kernels") or {}
    found: dict[str, Any] = {"kind": "measured" if measured else "modelled"}
    for side in SIDES:
        rows = measured.get(side)
        if rows is None:
            nodes = ((levels and levels["kernel"][side]) or {"nodes": []})["nodes"]
            rows = [node for node in nodes if node.get("seconds")]
        found[side] = [_kernel(row) for row in rows]
    return found


# Kinds of kernels, each with the words that its op's name has; colours are given in this order.
_KINDS = ("conv", "gemm", "loops", "attention", "pool", "call", "tiled", "")


def _kernel(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row["place"].partition(" ")[0].rpartition(".")[2]
    kind = next(k for k, part in enumerate(_KINDS) if part in name)
    source = source_of(row["place"])
    label = f"{name} {source}".strip()
    return {"label": label, "source": source, "seconds": row["seconds"], "family": kind}


def searches(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The searches in the order they ran, their curves one after the other on one clock."""
    stages, start = report.get("stages_s", {}), 0.0
    found: list[dict[str, Any]] = []
    for search in report.get("searches", []):
        seconds = stages.get(search["strategy"])
        curve = search.get("curve", [])
        first = curve[0][2] if curve and curve[0][2] else 1.0
        points = [[start + t, count, price, price / first] for t, count, price in curve]
        start += seconds or 0.0
        found.append(
            {
                "name": search["strategy"],
                "seconds": seconds,
                "looked_at": search.get("looked_at", ""),
                "candidates": search.get("candidates", ""),
                "stop_reason": search["stop_reason"],
                "kept": search["kept"],
                "reason": search["reason"],
                "points": points,
                "end": max([start, *(point[0] for point in points)]),
            }
        )
    return found


def matches(report: Mapping[str, Any]) -> list[list[Any]]:
    """Rules with how often they added to an e-graph, most often first."""
    counts: dict[str, int] = {}
    for search in report.get("searches", []):
        for rule, count in search.get("matches", {}).items():
            counts[rule] = counts.get(rule, 0) + count
    return [[rule, n] for rule, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
