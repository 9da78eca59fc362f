"""The JSON schema of a certificate; docs/certificate.md explains its fields."""

from __future__ import annotations

from typing import Any

from ...passes.equivalence.verdict import ORDER

FORMAT, VERSION = "isoform-certificate", 1
# How a rule is known to hold (docs/trust.md). "verdict": nothing is claimed for the rule alone; the
# comparison of the two programs is the evidence. That comparison uses no rule's proof. "measured":
# the precision of products was lowered; the programs are not equal, their difference is measured.
PROOFS = ["exact", "proved-by-z3", "proved-by-e-graph", "checked", "verdict", "measured"]


def _object(optional: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
_SHA256: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
# A float as a number; "inf", "-inf" and "nan" as strings, which JSON numbers cannot be.
_VALUE: dict[str, Any] = {"type": ["number", "string"]}
_KIND: dict[str, Any] = {"type": "string", "enum": list(ORDER)}

_MODEL = _object(
    name=_TEXT,
    batch={"type": "integer", "minimum": 1},
    seed=_COUNT,
    shapes={"type": "object"},
    files=_list(_object(name=_TEXT, bytes=_COUNT, sha256=_SHA256)),
)
_DIFFERENCE = _object(
    output=_TEXT,
    position=_list(_COUNT),  # the first that differs, in row-major order
    values=_list(_VALUE),  # there, of source and result
    positions=_COUNT,  # how many differ
    elements=_COUNT,  # of the output
    witness={"type": "boolean"},
    seed=_COUNT,
    scale={"type": "number"},  # of the drawn inputs that show it
    inside=_TEXT,  # the first value that differs, if it is not the output
)
# Where dims are symbolic: for which sizes the verdict is, and how each case of them was shown.
_SIZES = _object(
    symbols=_list(_TEXT),
    guards=_list(_TEXT),
    cases=_list(_object(where=_TEXT, how=_TEXT, tried=_list(_TEXT), reason=_TEXT)),
    left_out=_list(_object(sizes=_TEXT, reason=_TEXT)),
)
_VERDICT = _object(
    {"sizes": _SIZES},
    kind=_KIND,
    error_bound=_NUMBER,
    seed=_COUNT,
    primes=_list(_COUNT),
    lanes=_COUNT,  # primes of the field check, used at once
    methods={"type": "object"},  # how many proofs used each; per output: the names of those used
    outputs=_list(
        _object(name=_TEXT, kind=_KIND, methods=_list(_TEXT), error_bound=_NUMBER, reason=_TEXT)
    ),
    difference={**_DIFFERENCE, "type": ["object", "null"]},
    folded=_list(_object(name=_TEXT, expression=_TEXT, ulps=_VALUE)),
    assumptions=_list(_object(name=_TEXT, statement=_TEXT)),
    reason=_TEXT,
)
_LOWERED = _list(_object(place=_TEXT, error=_VALUE))
# Where the precision of products was lowered: the verdict is of the source after these passes.
PRECISION = _object(
    to=_TEXT,
    bound=_NUMBER,
    error=_NUMBER,
    seeds=_list(_COUNT),
    passes=_TEXT,
    lowered=_LOWERED,  # products computed in the lower precision
    kept=_LOWERED,  # products left as they were
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "isoform certificate",
    **_object(
        body=_object(
            {"precision": PRECISION},
            format={"const": FORMAT},
            version={"const": VERSION},
            source=_MODEL,
            result=_MODEL,
            pipeline=_TEXT,
            rewrites=_list(_object(rule=_TEXT, place=_TEXT, proof={"enum": PROOFS})),
            verdict=_VERDICT,
            seed=_COUNT,
            tolerance=_NUMBER,
            versions={"type": "object"},
        ),
        body_sha256=_SHA256,
        # Not part of the hash: the date, and the seconds that the comparison took.
        made={"type": "object", "properties": {"seconds": _NUMBER}},
    ),
}
