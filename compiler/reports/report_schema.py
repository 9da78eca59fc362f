"""The JSON schema of a report of `optimize`: the fields that `explain` and `view` read.

docs/commands.md explains all fields; the others may be absent. Reports of version 1 had no version
and neither `levels` nor the IR of rewrites: `explain` reads them, too.
"""

from __future__ import annotations

from typing import Any


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _row(items: dict[str, Any], count: int) -> dict[str, Any]:
    return {**_list(items), "minItems": count, "maxItems": count}


FORMAT = "isoform-report"
VERSION = 2

_TEXT: dict[str, Any] = {"type": "string"}
_SECONDS: dict[str, Any] = {"type": "number"}
_SIZES = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}
_SEARCH = _object(strategy=_TEXT, stop_reason=_TEXT, kept={"type": "boolean"}, reason=_TEXT)
# Points of a search's curve: seconds since it began, candidates looked at, seconds of the best.
_SEARCH["properties"] |= {
    "looked_at": _TEXT,
    "candidates": {"type": "integer"},
    "curve": _list(_row(_SECONDS, 3)),
    "matches": {"type": "object", "additionalProperties": {"type": "integer"}},
}
# Of an e-graph: a class by its value's name, its forms, and how many more it has.
_FORM = _object(ir=_TEXT, seconds=_SECONDS, rule=_TEXT, chosen={"type": "boolean"})
_CLASS = _object(value=_TEXT, forms=_list(_FORM), more={"type": "integer"})
_REWRITE = _object(rule=_TEXT, place=_TEXT, delta=_SECONDS)
_REWRITE["properties"] |= {
    "proof": _TEXT,
    "floats": _TEXT,
    "infinities": _TEXT,
    "search": _TEXT,
    "error": {"type": ["number", "null"]},
    "before": _TEXT,
    "after": _TEXT,
    "became": _TEXT,
    "equal": _list(_CLASS),
    "seconds": _row(_SECONDS, 2),
}
_NODE = _object(op=_TEXT, place=_TEXT, ir=_TEXT, when=_TEXT)
_NODE["properties"] |= {
    "seconds": _SECONDS,
    "reads": _list({"type": "integer", "minimum": 0}),
    "rules": _list(_TEXT),
    "pair": {"type": "integer", "minimum": 0},
    "shapes": _list(_list({"type": "integer"})),
}
_COST = _object(before=_SECONDS, after=_SECONDS, kind=_TEXT)
_COST["properties"] |= {"tuned": _SECONDS}
_THERE = _object(source=_TEXT, source_s=_SECONDS, result_s=_SECONDS, ratio=_SECONDS)
_GRAPH = {"anyOf": [{"type": "null"}, _object(nodes=_list(_NODE))]}
_LEVEL = _object(before=_GRAPH, after=_GRAPH)
_KERNEL = _object(place=_TEXT, kernel=_TEXT, seconds=_SECONDS)

_ERROR: dict[str, Any] = {"type": ["number", "string"]}  # an infinity is text
_ALONE = _list(_object(place=_TEXT, error=_ERROR))
_PRECISION = _object(
    to=_TEXT, bound=_SECONDS, error=_SECONDS, seeds=_list({"type": "integer"}),
    lowered=_ALONE, kept=_ALONE, applied={"type": "boolean"},
)  # fmt: skip

_PRECISION["properties"] |= {"passes": _TEXT, "ratio": _SECONDS, "seconds": _SECONDS}

REPORT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "isoform report",
    **_object(
        source=_TEXT,
        target=_TEXT,
        strategy=_TEXT,
        stop_reason=_TEXT,
        elapsed_s=_SECONDS,
        cost=_COST,
        passes=_list(_object(name=_TEXT, rewrites={"type": "integer", "minimum": 0})),
        rewrites=_list(_REWRITE),
        rejected=_list(_object(rule=_TEXT, place=_TEXT, reason=_TEXT)),
    ),
}
REPORT["properties"] |= {
    "remembered": {"type": "boolean"},
    "sizes": _list(_object(at=_SIZES, before=_SECONDS, after=_SECONDS)),
    "stages_s": {"type": "object", "additionalProperties": _SECONDS},
    "searches": _list(_SEARCH),
    "message": _TEXT,
    "format": {"const": FORMAT},
    "version": {"const": VERSION},
    "onnxruntime": {"anyOf": [_object(note=_TEXT), _THERE]},
    "kernels": {"type": "object", "additionalProperties": _list(_KERNEL)},
    "precision": _PRECISION,
    "levels": _object(graph=_LEVEL, algebra=_LEVEL, kernel=_LEVEL),
}
