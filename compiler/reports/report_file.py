"""Read a report that `optimize` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialects.errors import UserError
from ...dialects.files import read_json
from .json_schema import first_fault
from .report_schema import REPORT, VERSION


def read_report(path: str, oldest: int = VERSION) -> dict[str, Any]:
    """A report that `optimize` wrote.

    Args:
        oldest: the oldest version that will do.

    Raises:
        UserError: it cannot be read, is none, or is of another version.
    """
    report: Any = read_json(path)
    version = report.get("version", 1) if isinstance(report, dict) else VERSION
    if isinstance(version, int) and not oldest <= version <= VERSION:
        hint = "run isoform optimize --report again" if version < oldest else "update isoform"
        expected = f"version {VERSION}"
        message = "this report was written by another isoform"
        raise UserError(message, where=path, expected=expected, found=f"{version}", hint=hint)
    if (fault := first_fault(report, REPORT)) is not None:
        raise UserError(f"this is not a report of isoform optimize: {fault}", where=path)
    for name, level in report.get("levels", {}).items():
        if fault := _fault_of_level(level):
            message = f"this is not a report of isoform optimize: levels.{name}: {fault}"
            raise UserError(message, where=path)
    return dict(report)


def _fault_of_level(level: Mapping[str, Any]) -> str:
    """What no schema says: nodes read earlier ones, and pairs are nodes of the other side."""
    before, after = ((level[side] or {"nodes": []})["nodes"] for side in ("before", "after"))
    for nodes, others in ((before, after), (after, before)):
        for k, node in enumerate(nodes):
            if (late := next((r for r in node.get("reads", ()) if r >= k), None)) is not None:
                return f"a node reads node {late}, which is none before it"
            if node.get("pair", -1) >= len(others):
                return f"a node has a pair {node['pair']}, which is no node"
    return ""
