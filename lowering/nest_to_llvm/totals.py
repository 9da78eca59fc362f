"""What accumulations start from, and how they combine values and lanes."""

from __future__ import annotations

from ..kernel_to_cpu.emit.emitter import Emitter
from ..kernel_to_cpu.emit.scalar_code import (
    HORIZONTAL,
    combine,
    identity,
)
from ..kernel_to_cpu.emit.types import Type, Value


def start_of(kind: str, dtype: Type) -> Value:
    """What an accumulation of this kind starts from: its identity."""
    return identity(kind.removeprefix("numeric_"), dtype)


def combined(b: Emitter, kind: str, total: Value, value: Value) -> Value:
    """A total that has taken one more value."""
    if kind == "or":
        return b.logic("or", total, value)
    if kind.startswith("numeric_"):
        order = "gt" if kind == "numeric_max" else "lt"
        return b.select(b.compare(order, total, value), total, value)
    return combine(b, kind, total, value)


def across(b: Emitter, kind: str, value: Value) -> Value:
    """Combine the lanes of a vector."""
    if not kind.startswith("numeric_"):
        return b.reduce(HORIZONTAL.get(kind, kind), value)
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        lower, upper = (b.shuffle(value, range(k, k + half)) for k in (0, half))
        value = combined(b, kind, lower, upper)
    return b.extract(value, 0)
