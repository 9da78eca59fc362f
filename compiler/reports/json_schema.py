"""Check a JSON value against a JSON schema with jsonschema; a fault is one line with its path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

Schema = Mapping[str, Any]


def first_fault(value: Any, schema: Schema) -> str | None:
    """Describe the first fault of a value, with its path, or return None.

    Example:
        >>> first_fault({"n": "x"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
        'n is not an integer'
    """
    try:
        error = next(_validator()(schema).iter_errors(value), None)
    except RecursionError:
        return "it is nested too deeply"
    return None if error is None else _in_words(error)


@cache
def _validator() -> Any:
    """The validator of jsonschema, whose import takes 30 ms; 1.0 is not an integer."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def integer(_: object, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def number(_: object, value: object) -> bool:
        return integer(_, value) or (isinstance(value, float) and value == value)

    kinds = {"integer": integer, "number": number}
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(kinds)
    return extend(Draft202012Validator, type_checker=checker)


def _in_words(error: Any) -> str:
    """Describe a fault briefly: jsonschema's own messages contain the whole value."""
    path, wanted = error.json_path[1:].removeprefix("."), error.validator_value
    here, dot = path or "it", f"{path}." if path else ""
    match error.validator:
        case "type":
            kinds = wanted if isinstance(wanted, str) else " or ".join(wanted)
            return f"{here} is not {'an' if kinds[0] in 'aio' else 'a'} {kinds}"
        case "const":
            return f"{here} is not {wanted!r}"
        case "enum":
            return f"{here} is none of {', '.join(map(str, wanted))}"
        case "pattern":
            return f"{here} does not match {wanted}"
        case "minimum":
            return f"{here} is below {wanted}"
        case "required":
            return f"{dot}{next(name for name in wanted if name not in error.instance)} is missing"
        case "additionalProperties":
            extra = next(n for n in error.instance if n not in error.schema["properties"])
            return f"{dot}{extra} is not a field"
        case _:
            return f"{here}: {error.message}"
