"""Extents that are known when the program runs: integer expressions over named symbols.

An `Extent` computes like an integer. Where code needs an answer (`n == 1`, `n > 512`, `range(n)`),
its `ShapeEnv` gives it: by what follows from the guards, or else by the symbols' example sizes, and
then notes the answer as a guard. Code written for numbers so works for symbols, and the guards say
for which sizes its result holds. A number itself is asked for by `int(n)`: that is the guard `n ==`
its example.

Source: PyTorch's ShapeEnv and SymInt (torch/fx/experimental/symbolic_shapes.py).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral, Number
from typing import Any, TypeAlias

import sympy

from .errors import UndecidedExtent
from .extent_math import (
    Bounds,
    Expression,
    FloorDivision,
    ShapeGuard,
    Sizes,
    bounds_of,
    make_guard,
    symbol,
    value_at,
)
from .extent_text import extent_text, guard_text


@dataclass
class ShapeEnv:
    """What is known of symbols.

    Args:
        sizes: an example of each symbol, or of none.
        guards: what holds, each with the place that first asked for it.
        frozen: whether no guard may be added: what does not follow is an `UndecidedExtent`.
    """

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    guards: dict[ShapeGuard, str] = field(default_factory=dict[ShapeGuard, str])
    frozen: bool = False
    place: str = ""
    _bounds: dict[Expression, Bounds] = field(default_factory=dict[Any, Bounds], init=False)
    _facts: set[ShapeGuard] = field(default_factory=set[ShapeGuard], init=False)
    _fixed: dict[Expression, float] = field(default_factory=dict[Any, Any], init=False)

    def __post_init__(self) -> None:
        for guard in self.guards:
            self._narrow(guard)

    def dim(self, name: str) -> Extent:
        """The extent that is this symbol."""
        return Extent(symbol(name), self)

    def decide(self, expr: Expression, relation: str) -> bool:
        """Whether `expr relation 0`; notes it where it does not follow from what is known.

        Raises:
            UndecidedExtent: it does not follow, and there are no sizes or the guards are frozen.
        """
        guard = make_guard(self._with_numbers(expr), relation)
        known = self._known(guard)
        if known is not None:
            return known
        if self.frozen or any(name not in self.sizes for name in guard.symbols):
            text = guard_text(guard)
            raise UndecidedExtent(
                f"whether {text} does not follow from the guards",
                where=self.place or None,
                hint=f'add "{text}" or its opposite to isoform.guards, or bind its symbols',
            )
        found = guard.holds(self.sizes)
        self.add(guard if found else guard.negated())
        return found

    def follows(self, guard: ShapeGuard) -> bool:
        """Whether a guard follows from those here."""
        known = self._known(make_guard(self._with_numbers(guard.expr), guard.relation))
        return bool(known)  # of sympy, perhaps

    def number(self, expr: Expression) -> int:
        """The number that an expression is, where only a number will do.

        Raises:
            UndecidedExtent: as `decide`.
        """
        low, high = self.bounds(expr)
        if low == high:
            return int(low)
        if self.frozen or any(s.name not in self.sizes for s in expr.free_symbols):
            raise UndecidedExtent(
                f"the extent {extent_text(expr)} must be a number here",
                where=self.place or None,
                hint="bind its symbols: specialize-dims, --shape",
            )
        value = value_at(expr, self.sizes)
        self.add(make_guard(expr - value, "=="))
        return value

    def bounds(self, expr: Expression) -> Bounds:
        """A range that holds every value."""
        return bounds_of(expr, self._bounds)

    def broken(self, sizes: Sizes) -> ShapeGuard | None:
        """The first guard that does not hold for these numbers of all symbols."""
        return next((guard for guard in self.guards if not guard.holds(sizes)), None)

    def add(self, guard: ShapeGuard) -> None:
        """Note a guard."""
        self.guards.setdefault(guard, self.place)
        self._narrow(guard)

    def _known(self, guard: ShapeGuard) -> bool | None:
        low, high = bounds_of(guard.expr, self._bounds)
        if guard.relation == ">=":
            if low >= 0 or high < 0:
                return low >= 0
        elif low == high == 0 or low > 0 or high < 0:
            return (low == high == 0) == (guard.relation == "==")
        if guard in self._facts:
            return True
        return False if guard.negated() in self._facts else None

    def _with_numbers(self, expr: Expression) -> Expression:
        """An expression with the symbols that are numbers replaced by them."""
        numbers = {s: self._fixed[s] for s in expr.free_symbols if s in self._fixed}
        return expr.subs(numbers) if numbers else expr

    def _narrow(self, guard: ShapeGuard) -> None:
        """Keep the guard, and the bounds of a symbol or floor that it alone gives."""
        self._facts.add(make_guard(self._with_numbers(guard.expr), guard.relation))
        rest, (term, *more) = guard.expr.as_coeff_add()[0], guard.expr.as_coeff_add()[1] or (0,)
        factor, name = sympy.sympify(term).as_coeff_Mul()
        if more or not isinstance(name, sympy.Symbol | FloorDivision):
            return
        low, high = bounds_of(name, self._bounds)
        at = sympy.Rational(-rest, factor)
        if guard.relation == "==":
            low, high = max(low, int(at)), min(high, int(at))
        elif guard.relation == "!=":
            low, high = (low + (at == low)), (high - (at == high))
        elif factor > 0:
            low = max(low, math.ceil(at))
        else:
            high = min(high, math.floor(at))
        self._bounds[name] = low, high
        if low == high:
            self._fixed[name] = low
            self._facts |= {make_guard(self._with_numbers(g.expr), g.relation) for g in self.guards}

    @contextmanager
    def active(self) -> Generator[None]:
        """Types read in the block have extents that ask this."""
        token = _ACTIVE.set(self)
        try:
            yield
        finally:
            _ACTIVE.reset(token)

    @contextmanager
    def at(self, place: str) -> Generator[None]:
        """Guards noted in the block say that `place` asked for them."""
        before, self.place = self.place, place
        try:
            yield
        finally:
            self.place = before


_ACTIVE: ContextVar[ShapeEnv | None] = ContextVar("shape env", default=None)


def active_env() -> ShapeEnv:
    """The `ShapeEnv` that types are read for; one that knows nothing where none is active."""
    found = _ACTIVE.get()
    return ShapeEnv(frozen=True) if found is None else found


class Extent:
    """A whole number that is an expression over symbols. It computes and compares like an int.

    It has no hash: a set or a dict would compare silently.
    """

    __slots__ = ("env", "expr")
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, expr: Expression, env: ShapeEnv) -> None:
        self.expr = expr
        self.env = env

    def _with(self, expr: Expression) -> Any:
        return extent(sympy.expand(expr), self.env)

    def __add__(self, other: Any) -> Any:
        return self._with(self.expr + _expr(other)) if _is_whole(other) else int(self) + other

    def __sub__(self, other: Any) -> Any:
        return self._with(self.expr - _expr(other)) if _is_whole(other) else int(self) - other

    def __rsub__(self, other: Any) -> Any:
        return self._with(_expr(other) - self.expr) if _is_whole(other) else other - int(self)

    def __mul__(self, other: Any) -> Any:
        return self._with(self.expr * _expr(other)) if _is_whole(other) else int(self) * other

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self._with(-self.expr)

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(self.expr, _expr(other)) if _is_whole(other) else int(self) // other

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(_expr(other), self.expr) if _is_whole(other) else other // int(self)

    def _divided(self, over: Expression, by: Expression) -> Any:
        """floor(over / by). A negative divisor changes both signs, as integers do."""
        if not self.env.decide(by, "!="):
            raise ZeroDivisionError("an extent is divided by zero")
        if not self.env.decide(by, ">="):
            over, by = -over, -by
        return self._with(FloorDivision(over, by))

    def __mod__(self, other: Any) -> Any:
        return self - (self // other) * other

    def __rmod__(self, other: Any) -> Any:
        return other - (other // self) * self

    def __truediv__(self, other: Any) -> float:
        return int(self) / other

    def __rtruediv__(self, other: Any) -> float:
        return other / int(self)

    def is_surely(self, other: Any) -> bool:
        """Whether it equals another by what is known; never notes a guard."""
        return self.env.follows(make_guard(self.expr - _expr(other), "=="))

    def __eq__(self, other: object) -> bool:
        if _is_whole(other):
            return self.env.decide(self.expr - _expr(other), "==")
        return int(self) == other if isinstance(other, Number) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, Extent | Number) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        if _is_whole(other):
            return self.env.decide(self.expr - _expr(other), ">=")
        return int(self) >= other

    def __le__(self, other: Any) -> bool:
        if _is_whole(other):
            return self.env.decide(_expr(other) - self.expr, ">=")
        return int(self) <= other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self) -> Extent:
        return self

    __floor__ = __ceil__ = __trunc__ = __round__

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        return self.env.number(self.expr)

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __str__(self) -> str:
        return extent_text(self.expr)

    __repr__ = __str__


Dims: TypeAlias = "tuple[int | Extent, ...]"


def extent(expr: Expression, env: ShapeEnv) -> Extent | int:
    """An expression as an extent, a number as a number."""
    return int(expr) if expr.is_Integer else Extent(expr, env)


def _is_whole(value: object) -> bool:
    """Whether it is an extent or an integer, numpy's too; a float computes with the number."""
    return isinstance(value, Extent | Integral)


def _expr(value: Any) -> Expression:
    return value.expr if isinstance(value, Extent) else sympy.Integer(int(value))


def names_in(shapes: Iterable[Dims]) -> list[str]:
    """The names of the symbols in dims, sorted."""
    exprs = (d.expr for dims in shapes for d in dims if isinstance(d, Extent))
    return sorted({s.name for expr in exprs for s in expr.free_symbols})


def at_sizes(values: Sequence[int | Extent], sizes: Sizes) -> tuple[int, ...]:
    """The numbers that extents are, for these numbers of all symbols."""
    return tuple(value_at(v.expr, sizes) if isinstance(v, Extent) else v for v in values)
