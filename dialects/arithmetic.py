"""Evaluate scalar expressions: exactly, or as a processor computes them.

Numbers are kept as float64, int64 and booleans; an arithmetic says where they are rounded.

- *Exact*: floats of 32 and 64 bits are real numbers, as far as float64 goes.
- *Real*: half floats are as well, until a cast rounds them. It is what proofs are about: there,
  sums of half floats have no order.
- *As computed*: every scalar operation is rounded to its own type, one by one, as a processor does
  it. A float64 operation rounded to float32 is the float32 operation (Figueroa, "When is double
  rounding innocuous?", 1995). Sums and products over iterators are rounded once: their order is
  free. It is how constants are computed.

In all of them, integers wrap at their own width; a cast to a narrower float rounds and overflows to
infinity; a cast to an integer truncates and saturates, NaN gives 0. Half floats (f16, bf16) are
computed with as float32 and rounded when a tensor of them is made (not in real arithmetic), or by a
cast.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

from .scalars import FUNCTIONS, Call, Cast, Const, Expr, Read, Types, operand_type, postorder
from .types import Array, is_bool, is_float, is_half, reference_dtype, to_numpy


class Arithmetic(Enum):
    """What is rounded on the way."""

    EXACT = "exact"
    REAL = "real"
    COMPUTED = "as computed"

    def scalar(self, value: Array, element: Attribute) -> Array:
        """The result of a scalar operation, before a tensor is made of it."""
        if self is not Arithmetic.COMPUTED and is_float(element):
            return value
        return held(value, f32 if is_half(element) else element)

    def tensor(self, value: Array, element: Attribute) -> Array:
        """What a tensor of an element type holds of a value."""
        rounds = self is Arithmetic.COMPUTED or (self is Arithmetic.EXACT and is_half(element))
        if is_float(element) and not rounds:
            return value.astype(np.float64, copy=False)
        return held(value, element)

    def cast(self, value: Array, source: Attribute | None, target: Attribute) -> Array:
        """A value of type `source` (None: a literal) converted to `target`."""
        if source == target:
            return value
        if self is not Arithmetic.COMPUTED and target == f32 and source != f64:
            return value.astype(np.float64, copy=False)  # no narrower float than it was
        return held(value, target)

    def literal(self, value: float | int | bool, element: Attribute | None) -> Array:
        """A literal where an element type is wanted; None where its neighbours are literals too."""
        if element is None:
            return np.asarray(value)
        return self.scalar(np.asarray(value).astype(reference_dtype(element)), element)


def held(value: Array, element: Attribute) -> Array:
    """What an element type can hold of a value, in the dtype the reference computes in.

    Floats round to nearest, ties to even, and overflow to infinity; integers of too many bits wrap;
    floats become integers by truncation, and saturate; NaN gives 0; to bool means "is not zero".
    """
    if is_bool(element):
        return value if value.dtype.kind == "b" else value != 0
    dtype, wide = to_numpy(element), reference_dtype(element)
    with np.errstate(all="ignore"):
        if not is_float(element):
            whole = _whole(value, dtype) if value.dtype.kind == "f" else value.astype(wide)
            return whole if dtype == wide else whole.astype(dtype).astype(wide)
        if is_half(element):  # by float32, as processors do it
            value = value.astype(np.float32)
        return value.astype(dtype, copy=False).astype(wide, copy=False)


def _whole(value: Array, dtype: np.dtype) -> Array:
    """Floats as integers that `dtype` can hold, in 64 bits."""
    info, wide = np.iinfo(dtype), np.int64 if dtype.kind == "i" else np.uint64
    known = np.trunc(np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = float(info.min), float(info.max)
    inside = np.where((known <= low) | (known >= high), 0.0, known).astype(wide)
    return np.where(known >= high, info.max, np.where(known <= low, info.min, inside)).astype(wide)


def evaluate(
    expr: Expr,
    read: Callable[[Read], Array],
    types: Types,
    result: Attribute,
    arithmetic: Arithmetic = Arithmetic.EXACT,
) -> Array:
    """Value of an expression; reads give broadcastable arrays.

    Args:
        types: `scalars.element_types` of the expression.
        result: the type that it is wanted in, which a bare literal takes.
    """
    values: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in postorder(expr):
            match node:
                case Read():
                    values[node] = read(node)
                case Const(value):
                    values[node] = arithmetic.literal(value, None)
                case Cast(element, Const(value)):
                    values[node] = arithmetic.literal(value, element)
                case Cast(element, arg):
                    values[node] = arithmetic.cast(values[arg], types[arg], element)
                case Call():
                    values[node] = _call(node, values, types, arithmetic)
                case _:
                    raise TypeError(f"not a scalar expression: {node}")
    if isinstance(expr, Const):
        return arithmetic.literal(expr.value, result)
    return values[expr]


def _call(node: Call, values: dict[Expr, Array], types: Types, arithmetic: Arithmetic) -> Array:
    """A function of the table, its literals in the type of its operands."""
    operand = operand_type(node, types)
    args = [
        arithmetic.literal(arg.value, operand) if isinstance(arg, Const) else values[arg]
        for arg in node.args
    ]
    if node.function == "select":
        args[0] = values[node.args[0]] != 0
    found = np.asarray(FUNCTIONS[node.function].numpy(*args))
    if operand is None or FUNCTIONS[node.function].returns_bool:
        return found
    return arithmetic.scalar(found, operand)


__all__ = ["Arithmetic", "evaluate", "held"]
