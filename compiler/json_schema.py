"""Check a JSON value against a schema: the few words of JSON Schema that our formats use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "null": lambda v: v is None,
}


def first_fault(value: Any, schema: Schema, path: str = "") -> str | None:
    """What is wrong with a value, with its path, or None.

    Example:
        >>> first_fault({"n": "x"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
        'n is no integer'
    """
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    here = path or "it"
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{here} is no {' or '.join(kinds)}"
    if "const" in schema and value != schema["const"]:
        return f"{here} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{here} is none of {', '.join(map(str, schema['enum']))}"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        return f"{here} does not match {schema['pattern']}"
    if "minimum" in schema and isinstance(value, int | float) and not value >= schema["minimum"]:
        return f"{here} is below {schema['minimum']}"
    if isinstance(value, dict):
        return _object(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        faults = (first_fault(v, schema["items"], f"{path}[{k}]") for k, v in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return None


def _object(value: Mapping[str, Any], schema: Schema, path: str) -> str | None:
    known: Mapping[str, Schema] = schema.get("properties", {})
    dot = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            return f"{dot}{name} is missing"
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in known:
                return f"{dot}{name} is not a field"
    for name, inner in known.items():
        if name in value and (fault := first_fault(value[name], inner, f"{dot}{name}")) is not None:
            return fault
    return None
