"""The JSON schema of a report of `optimize`: the fields that `explain` reads.

docs/commands.md explains all fields; the others may be absent.
"""

from __future__ import annotations

from typing import Any


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT: dict[str, Any] = {"type": "string"}
_SECONDS: dict[str, Any] = {"type": "number"}
_SEARCH = _object(strategy=_TEXT, stop_reason=_TEXT, kept={"type": "boolean"}, reason=_TEXT)
_REWRITE = _object(rule=_TEXT, place=_TEXT, delta=_SECONDS)
_REWRITE["properties"] |= {"error": {"type": ["number", "null"]}}

REPORT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "isoform report",
    **_object(
        source=_TEXT,
        target=_TEXT,
        strategy=_TEXT,
        stop_reason=_TEXT,
        elapsed_s=_SECONDS,
        cost=_object(before=_SECONDS, after=_SECONDS, kind=_TEXT),
        passes=_list(_object(name=_TEXT, rewrites={"type": "integer", "minimum": 0})),
        rewrites=_list(_REWRITE),
        rejected=_list(_object(rule=_TEXT, place=_TEXT, reason=_TEXT)),
    ),
}
REPORT["properties"] |= {
    "remembered": {"type": "boolean"},
    "stages_s": {"type": "object", "additionalProperties": _SECONDS},
    "searches": _list(_SEARCH),
    "message": _TEXT,
}
