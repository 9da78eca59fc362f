"""What is wrong with a JSON value is one short line, with its path."""

from typing import Any

import pytest

from isoform.compiler.reports.json_schema import first_fault
from isoform.compiler.reports.report_schema import REPORT

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "count": {"type": "integer", "minimum": 1},
        "ratio": {"type": ["number", "null"], "minimum": 0},
        "kind": {"enum": ["plain", "other"]},
        "version": {"const": 1},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"a b": {"type": "boolean"}}},
            "maxItems": 2,
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"name": "x", "count": 1, "ratio": None, "kind": "plain", "version": 1, "rows": []}, None),
        ([], "it is not an object"),
        ({}, "name is missing"),
        ({"name": 1}, "name is not a string"),
        ({"name": "x1"}, "name does not match ^[a-z]+$"),
        ({"name": "x", "count": 0}, "count is below 1"),
        ({"name": "x", "count": True}, "count is not an integer"),
        ({"name": "x", "count": 1.0}, "count is not an integer"),
        ({"name": "x", "ratio": "1"}, "ratio is not a number or null"),
        ({"name": "x", "ratio": float("nan")}, "ratio is not a number or null"),
        ({"name": "x", "kind": "rare"}, "kind is none of plain, other"),
        ({"name": "x", "version": 2}, "version is not 1"),
        ({"name": "x", "rows": [{}, 1]}, "rows[1] is not an object"),
        ({"name": "x", "rows": [{"a b": 1}]}, "rows[0]['a b'] is not a boolean"),
        ({"name": "x", "rows": [{}, {}, {}]}, "rows: [{}, {}, {}] is too long"),
        ({"name": "x", "more": "x" * 1000}, "more is not a field"),
    ],
)
def test_each_fault_is_said_shortly(value: Any, fault: str | None) -> None:
    assert first_fault(value, SCHEMA) == fault


def test_a_value_nested_too_deeply_is_a_fault() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert first_fault(value, {"type": "object"}) in (
        "it is nested too deeply",
        "it is not an object",
    )


def test_a_broken_report_is_named_by_its_field() -> None:
    report = {"source": "m", "target": "cpu", "strategy": "all", "stop_reason": "finished"}
    assert first_fault(report, REPORT) == "elapsed_s is missing"
    report |= {"elapsed_s": 1.0, "cost": {"before": "1", "after": 1.0, "kind": "measured"}}
    assert first_fault(report, REPORT) == "cost.before is not a number"
