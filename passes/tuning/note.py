"""The choice and measurement of `tune`, kept on the op."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Operation

from ...dialects.floats import Floats
from ...dialects.kernel import KernelOp
from ...dialects.program import where

NOTE = "isoform.tuned"
ALGORITHM = "algorithm"


def add_note(op: Operation, rule: str, floats: Floats, delta: float, error: float) -> None:
    """Note the rule that made an op, the measured change of seconds, and the measured error."""
    words = {name: StringAttr(text) for name, text in floats.entry().items()}
    numbers = {"delta": FloatAttr(delta, f64), "error": FloatAttr(error, f64)}
    op.attributes[NOTE] = DictionaryAttr({"rule": StringAttr(rule), **numbers, **words})


def note_of(op: Operation) -> dict[str, Any] | None:
    """The note on an op as an entry of a report; None if it has none."""
    note = op.attributes.get(NOTE)
    if not isinstance(note, DictionaryAttr):
        return None
    rule, delta, error = (note.data[name] for name in ("rule", "delta", "error"))
    assert isinstance(rule, StringAttr)
    assert isinstance(delta, FloatAttr)
    assert isinstance(error, FloatAttr)
    words = {n: v.data for n, v in note.data.items() if isinstance(v, StringAttr)}
    return {
        **words,
        "rule": rule.data,
        "place": where(op),
        "proof": "exact",
        "delta": delta.value.data,
        "error": error.value.data,
    }


def mark_algorithm(op: KernelOp, name: str) -> None:
    """Record in an op's schedule which alternative it belongs to."""
    before = {} if op.schedule is None else op.schedule.data
    op.properties["schedule"] = DictionaryAttr({**before, ALGORITHM: StringAttr(name)})


def chosen_algorithm(op: KernelOp) -> str | None:
    """The alternative that a measurement chose for an op, or None."""
    found = None if op.schedule is None else op.schedule.data.get(ALGORITHM)
    return found.data if isinstance(found, StringAttr) else None
