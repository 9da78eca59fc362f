"""One lane of float64 instead of residues, with the real functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...dialects.errors import UserError
from ...dialects.scalars import FUNCTIONS
from .residues import Lanes, Residues

# Represents an infinite literal: it is compared, but never added.
HUGE = 1e30
_INFINITE = {"inf": HUGE, "-inf": -HUGE, "nan": math.nan}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "or": np.max,
    "raw": np.sum,
}


class DrawnFloats(Residues):
    """The interface of residues, for one lane of float64."""

    def reduce(self, x: Lanes) -> Lanes:
        return x

    def literal(self, value: Fraction) -> Lanes:
        return np.array([_number(value)])

    def scale(self, x: Lanes, by: Fraction) -> Lanes:
        return x if by == 1 else x * _number(by)

    def matmul(self, a: Lanes, b: Lanes) -> Lanes:
        return a @ b

    def draw(self, name: str, shape: Sequence[int]) -> Lanes:
        return np.random.default_rng((self.seed, *name.encode())).normal(size=(1, *shape))

    def symbol(self, name: str) -> Lanes:
        return np.array([_INFINITE[name]]) if name in _INFINITE else super().symbol(name)

    def apply(self, function: str, args: Sequence[Lanes]) -> Lanes:
        """The function, element by element. Raises UserError for an unknown name."""
        with np.errstate(all="ignore"):
            return np.asarray(_call(function, args), np.float64)

    def combine(self, kind: str, values: Lanes) -> Lanes:
        """The reduction of the values along axis 1. Raises UserError for an unknown name."""
        if kind not in _REDUCTIONS:
            raise UserError(f"no reduction '{kind}'")
        return np.asarray(_REDUCTIONS[kind](values, axis=1))


def _number(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return HUGE if value > 0 else -HUGE


def _call(function: str, args: Sequence[Lanes]) -> Any:
    name = function.removeprefix("raw.")
    if name == "recip":
        return 1.0 / args[0]
    if name == "mul":
        return math.prod(args[1:], start=args[0])
    if name.startswith("cast."):
        return np.trunc(args[0]) if ".i" in name or ".ui" in name else args[0]
    name = name[1:] if name[:1] in "ib" and name not in FUNCTIONS else name
    known = FUNCTIONS.get(name)
    if known is None or known.arity > len(args):
        raise UserError(f"no function '{function}'")
    whole = function.startswith("i") and name in ("div", "rem")
    given: list[Any] = [np.rint(a).astype(np.int64) if whole else a for a in args]
    value = known.numpy(*given[: known.arity])
    for arg in given[known.arity :]:
        value = known.numpy(value, arg)
    return value
