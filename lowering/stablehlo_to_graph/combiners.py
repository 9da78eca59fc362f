"""What the region of a reduction, a scatter or a sort computes.

A region of one op is known by its name. One that compares and selects is run on a table of numbers:
what it does depends on their order alone, and the table has every order that two of them can have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from ...dialects.types import element_of, is_float, to_numpy
from .node import HloNode, highest, lowest
from .text import HloBlock, HloOp

_NAMES = {
    "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "stablehlo.and": lambda a, b: a & b, "stablehlo.or": lambda a, b: a | b,
    "stablehlo.xor": lambda a, b: a ^ b, "stablehlo.not": lambda a: not a,
    "stablehlo.select": lambda p, a, b: a if p else b,
}  # fmt: skip


def combiner(n: HloNode, block: HloBlock | None) -> str | None:
    """The name of the op that combines two values; `second` where the other replaces one."""
    if n.hlo.words and block is None:
        return _NAMES.get(n.hlo.words[0].removeprefix("stablehlo."))
    if block is None or len(block.arguments) != 2:
        return None
    names = [argument.name for argument in block.arguments]
    if list(block.results) == names[1:]:
        return "second"
    *ops, last = block.ops
    if len(ops) != 1 or ops[0].results != last.operands or sorted(ops[0].operands) != sorted(names):
        return None
    return _NAMES.get(ops[0].name.removeprefix("stablehlo."))


def identity_of(name: str, element: Attribute) -> float | int | bool:
    """The number that changes nothing when combined."""
    if str(element) == "i1":
        return name in ("mul", "min", "and")
    simple = {"add": 0, "or": 0, "xor": 0, "mul": 1, "and": -1}
    if name in simple:
        return simple[name]
    return lowest(element) if name == "max" else highest(element)


def extreme(n: HloNode, block: HloBlock) -> str | None:
    """`max` or `min` if a region keeps the extreme and its first position; else None."""
    element = element_of(n[0])
    for name in ("max", "min"):
        if all(
            _keeps(n, block, name, a, b) for a, b in itertools.product(_samples(element), repeat=2)
        ):
            return name
    return None


def _keeps(n: HloNode, block: HloBlock, name: str, a: Any, b: Any) -> bool:
    """Whether a region chooses between a at position 0 and b at position 1 as it should."""
    first, second = np.int64(0), np.int64(1)
    found = evaluate(n, block, [a, first, b, second])
    if found is None:
        return False
    other = bool(b > a) if name == "max" else bool(b < a)
    other = other or bool(b != b and a == a)  # NaN is beyond all, and the first one stays
    wanted = (b, second) if other else (a, first)
    return _same(found[0], wanted[0]) and found[1] == wanted[1]


def order_of(n: HloNode, block: HloBlock, keys: Sequence[Attribute]) -> list[bool] | None:
    """Which operands a sort compares, the first of them first: whether each is descending."""
    for count in range(1, len(keys) + 1):
        for falling in (False, True):
            if _sorts(n, block, keys, count, falling):
                return [falling] * count
    return None


def _sorts(
    n: HloNode, block: HloBlock, keys: Sequence[Attribute], count: int, falling: bool
) -> bool:
    """Whether a region says that a tuple comes before another by its first `count` elements."""
    samples = [_samples(e, few=k > 0) for k, e in enumerate(keys[:count])]
    rest = [[to_numpy(e).type(v) for v in (0, 1)] for e in keys[count:]]
    for first in itertools.product(*samples):
        for second in itertools.product(*samples):
            before = _precedes(first, second, falling)
            for a, b in ((0, 1), (1, 0)):
                left, right = [*first, *(r[a] for r in rest)], [*second, *(r[b] for r in rest)]
                pairs = [v for pair in zip(left, right, strict=True) for v in pair]
                found = evaluate(n, block, pairs)
                if found is None:
                    return False
                nan = any(v != v for v in (*first, *second))
                if bool(found[0]) != before and not (nan and not found[0]):
                    return False
    return True


def _precedes(first: Sequence[Any], second: Sequence[Any], falling: bool) -> bool:
    for a, b in zip(first, second, strict=True):
        if a == b or (a != a and b != b):
            continue
        greater = bool(a > b) or bool(a != a)
        return greater == falling
    return False


def _samples(element: Attribute, few: bool = False) -> list[Any]:
    """Numbers of a type in every relation to each other; without -0, which only bits tell."""
    kind = to_numpy(element).type
    if is_float(element):
        values = [-math.inf, -1.0, 0.0, 1.0, math.inf, math.nan]
        return [kind(v) for v in (values[2:4] if few else values)]
    if str(element) == "i1":
        return [np.False_, np.True_]
    values = [0, 1] if few else [int(lowest(element)), 0, 1, int(highest(element))]
    return [kind(v) for v in values]


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or bool(a != a and b != b)


def evaluate(n: HloNode, block: HloBlock, arguments: Sequence[Any]) -> list[Any] | None:
    """What a region of comparisons, selections and logic returns; None of other ops."""
    values: dict[str, Any] = {a.name: v for a, v in zip(block.arguments, arguments, strict=True)}
    with np.errstate(all="ignore"):
        for op in block.ops[:-1]:
            found = _evaluated(n, op, values)
            if found is None:
                return None
            values[op.results[0]] = found
        given = [_given(n, name, values) for name in block.results]
    return None if any(v is None for v in given) else given


def _evaluated(n: HloNode, op: HloOp, values: Mapping[str, Any]) -> Any:
    if op.name == "stablehlo.constant":
        data = op.attributes["value"]
        return data.ravel()[0] if data.size == 1 else None
    given = [_given(n, name, values) for name in op.operands]
    if any(v is None for v in given):
        return None
    if op.name == "stablehlo.compare":
        words = [*op.words, op.attributes.get("comparison_direction")]
        if any("TOTALORDER" in str(w) for w in (*words, op.attributes.get("compare_type"))):
            given = [_total(v) for v in given]
        found = next((_COMPARE[w] for w in words if w in _COMPARE), None)
        return None if found is None else np.bool_(found(*given))
    if op.name in _LOGIC and (op.name == "stablehlo.select" or _are_bools(given)):
        return _LOGIC[op.name](*given)
    return None


def _are_bools(values: Sequence[Any]) -> bool:
    return all(isinstance(v, bool | np.bool_) for v in values)


def _total(value: Any) -> tuple[int, Any]:
    """A number's place in the total order: NaN is beyond the infinities, on its own side."""
    if value != value:
        return (-1 if np.signbit(value) else 1), 0.0
    return 0, value


def _given(n: HloNode, name: str, values: Mapping[str, Any]) -> Any:
    if name in values:
        return values[name]
    known = n.known(n.scope.find(name))
    return None if known is None or known.size != 1 else known.ravel()[0]
