"""Evaluate scalar expressions: exactly, or as a processor computes them.

Numbers are kept as float64, int64 and booleans; the arithmetic decides where they are rounded.

- *Exact*: floats of 32 and 64 bits are real numbers, as far as float64 goes.
- *Real*: half floats are real numbers too, until a cast rounds them. Proofs use this arithmetic:
  in it, sums of half floats have no order. A cast to a half type does not round if its operand was
  computed from numbers of that type alone (*unrounded*; half_casts.py finds these casts).
- *As computed*: every scalar operation is rounded to its own type, as a processor does it. A
  float64 operation rounded to float32 is the float32 operation (Figueroa, "When is double rounding
  innocuous?", 1995). Sums and products over iterators are rounded once, since their order is free.
  Constants are computed this way.

In all of them, integers wrap at their own width. A cast to a narrower float rounds and overflows to
infinity. A cast to an integer truncates and saturates; NaN gives 0. Half floats (f16, bf16) are
computed as float32. They are rounded when a tensor of them is made (not in real arithmetic), or by
a cast; so are floats of 8 and 4 bits, which nothing computes with (small_floats.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

from .scalars import FUNCTIONS, Call, Cast, Const, Expr, Read, Types, operand_type, postorder
from .small_floats import rounded_to
from .types import (
    Array,
    is_bool,
    is_float,
    is_half,
    is_narrow_float,
    is_small_float,
    reference_dtype,
    to_numpy,
)


class Arithmetic:
    """A number system, and the positions where it rounds.

    The three here are floats, integers and booleans. Subclasses are other number systems: they
    redefine literals, functions, sums and products. Their arrays may have leading dims before
    those of the tensor, the same in all operands.

    Attributes:
        contracts: whether a sum of products is computed by one contraction, or product by product.
    """

    EXACT: ClassVar[Arithmetic]
    REAL: ClassVar[Arithmetic]
    COMPUTED: ClassVar[Arithmetic]
    contracts: ClassVar[bool] = True

    @staticmethod
    @lru_cache(maxsize=4)
    def unrounded(half: Attribute) -> Arithmetic:
        """Real arithmetic that does not round to a half type; always the same one."""
        return _Unrounded(half)

    def scalar(self, value: Array, element: Attribute) -> Array:
        """The result of a scalar operation, before it is stored in a tensor."""
        if self is not Arithmetic.COMPUTED and is_float(element):
            return value
        return held(value, f32 if is_narrow_float(element) else element)

    def tensor(self, value: Array, element: Attribute) -> Array:
        """The value that a tensor of an element type holds after storing this one."""
        narrow = is_narrow_float(element)
        rounds = self is Arithmetic.COMPUTED or (self is not Arithmetic.REAL and narrow)
        if is_float(element) and not rounds:
            return value.astype(np.float64, copy=False)
        return held(value, element)

    def cast(self, value: Array, source: Attribute | None, target: Attribute) -> Array:
        """A value of type `source` (None: a literal) converted to `target`."""
        if source == target:
            return value
        if self is not Arithmetic.COMPUTED and target == f32 and source != f64:
            return value.astype(np.float64, copy=False)  # no narrower than before
        return held(value, target)

    def literal(self, value: float | int | bool, element: Attribute | None) -> Array:
        """A literal as the wanted element type; None where its neighbours are literals too."""
        if element is None:
            return np.asarray(value)
        return self.scalar(np.asarray(value).astype(reference_dtype(element)), element)

    def dtype(self, element: Attribute) -> np.dtype:
        """The numpy dtype that holds a tensor of an element type."""
        return reference_dtype(element)

    def call(self, node: Call, args: Sequence[Array], operand: Attribute | None) -> Array:
        """A function of the table; `operand` is the type of its arguments, None of literals."""
        function = FUNCTIONS[node.function]
        if node.function == "select":
            args = [args[0] != 0, *args[1:]]
        found = np.asarray(function.numpy(*args))
        return found if operand is None or function.returns_bool else self.scalar(found, operand)

    def reduce(self, kind: str, value: Array, axes: tuple[int, ...]) -> Array:
        """The sum, product, greatest or least over some of the last axes."""
        return getattr(value, kind)(axis=axes)

    def contract(
        self, factors: Sequence[tuple[Array, Sequence[int]]], kept: Sequence[int]
    ) -> Array:
        """The product of factors, whose axes are named, summed over the axes that are not kept."""
        terms = [part for factor in factors for part in factor]
        return np.einsum(*terms, kept, optimize=True) if terms else np.asarray(1.0)

    def scaled(
        self, value: Array, literals: Sequence[float], times: int, element: Attribute
    ) -> Array:
        """A sum of products, times the products' literals and the number of summed copies."""
        scale = 1.0
        for literal in literals:
            scale *= float(self.literal(literal, element))
        return value * (scale * times)


Arithmetic.EXACT, Arithmetic.REAL, Arithmetic.COMPUTED = (Arithmetic() for _ in range(3))


class _Unrounded(Arithmetic):
    """Real arithmetic inside one half type: no cast of a float rounds to it."""

    def __init__(self, half: Attribute):
        self.half = half

    def tensor(self, value: Array, element: Attribute) -> Array:
        """As in real arithmetic."""
        return Arithmetic.REAL.tensor(value, element)

    def cast(self, value: Array, source: Attribute | None, target: Attribute) -> Array:
        """As in real arithmetic, but to the half type; a literal is rounded to it."""
        if target == self.half and source is not None and is_float(source):
            return value.astype(np.float64, copy=False)
        return super().cast(value, source, target)


def held(value: Array, element: Attribute) -> Array:
    """The value that an element type can hold, in the dtype that the reference computes in.

    Floats round to nearest, ties to even, and overflow to infinity. Integers wrap. Floats become
    integers by truncation and saturate; NaN gives 0. To bool means "is not zero".
    """
    if is_bool(element):
        return value if value.dtype.kind == "b" else value != 0
    dtype, wide = to_numpy(element), reference_dtype(element)
    with np.errstate(all="ignore"):
        if not is_float(element):
            whole = _to_integers(value, dtype) if value.dtype.kind == "f" else value.astype(wide)
            return whole if dtype == wide else whole.astype(dtype).astype(wide)
        if is_small_float(element):
            return rounded_to(value, element).astype(wide)
        if is_half(element):  # through float32, as processors do it
            value = value.astype(np.float32)
        return value.astype(dtype, copy=False).astype(wide, copy=False)


def _to_integers(value: Array, dtype: np.dtype) -> Array:
    """Convert floats to integers that `dtype` can hold, in 64 bits."""
    info, wide = ml_dtypes.iinfo(dtype), np.uint64 if ml_dtypes.iinfo(dtype).min == 0 else np.int64
    known = np.trunc(np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = float(info.min), float(info.max)
    inside = np.where((known <= low) | (known >= high), 0.0, known).astype(wide)
    return np.where(known >= high, info.max, np.where(known <= low, info.min, inside)).astype(wide)


class ScalarEvaluator:
    """A scalar expression prepared to be evaluated many times.

    Args:
        types: `scalars.element_types` of the expression.
        result: the wanted type, which a bare literal takes.
    """

    def __init__(self, expr: Expr, types: Types, result: Attribute, arithmetic: Arithmetic):
        self.arithmetic, self.expr, self.result = arithmetic, expr, result
        self.steps = [(node, *_typed(node, types)) for node in postorder(expr)]

    def __call__(self, read: Callable[[Read], Array]) -> Array:
        """The value of the expression; reads give broadcastable arrays."""
        arithmetic, values = self.arithmetic, dict[Expr, Array]()
        with np.errstate(all="ignore"):
            for node, source, operand in self.steps:
                match node:
                    case Read():
                        values[node] = read(node)
                    case Const(value):
                        values[node] = arithmetic.literal(value, None)
                    case Cast(element, Const(value)):
                        values[node] = arithmetic.literal(value, element)
                    case Cast(element, arg):
                        values[node] = arithmetic.cast(values[arg], source, element)
                    case Call(_, args):
                        for arg in args:
                            if isinstance(arg, Const):
                                values[arg] = arithmetic.literal(arg.value, operand)
                        values[node] = arithmetic.call(node, [values[a] for a in args], operand)
                    case _:
                        raise TypeError(f"not a scalar expression: {node}")
        if isinstance(self.expr, Const):
            return arithmetic.literal(self.expr.value, self.result)
        return values[self.expr]


def _typed(node: Expr, types: Types) -> tuple[Attribute | None, Attribute | None]:
    """The type of a cast's operand, or of a call's operands."""
    source = types[node.arg] if isinstance(node, Cast) else None
    return source, operand_type(node, types) if isinstance(node, Call) else None


__all__ = ["Arithmetic", "ScalarEvaluator", "held"]
