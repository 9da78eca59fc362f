"""The JSON schema of `isoform check --json`; docs/check.md explains its fields."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": _COUNT}


CHECK: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "isoform check",
    **_object(
        model=_TEXT,
        opsets=_COUNTS,
        ops=_list(
            _object(
                op=_TEXT,
                count=_COUNT,
                kinds=_COUNTS,
                graph_ops=_list(_TEXT),
                reasons=_list(_TEXT),
                flops=_COUNT,
                bytes=_COUNT,
                flops_share=_SHARE,
                bytes_share=_SHARE,
            )
        ),
        dtypes=_COUNTS,
        dynamic=_list(_object(name=_TEXT, dims={"type": ["array", "null"]})),
        flags=_list(_TEXT),
        blockers=_list(_object(node=_TEXT, op=_TEXT, kind=_TEXT, reason=_TEXT)),
        problems=_list(_TEXT),
        tried={"type": "boolean"},
        failure={"type": ["string", "null"]},
        assumed=_list(_TEXT),
        totals=_COUNTS,
        ok={"type": "boolean"},
    ),
}
