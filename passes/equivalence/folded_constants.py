"""Constants folded by another tool, recognised by their values where no expression is kept.

Two expressions are equal up to such constants if, for each product of data (inputs, values at the
cut), the coefficients agree. Coefficients are tensors computed from weights alone, in float64, on
both sides. The typical case is a convolution with batch norm, and the convolution into which some
other tool folded it. The distance of coefficients is stated in ulps of the sum of their parts'
magnitudes. Beyond `most_ulps` they are different; so are coefficients whose computation overflows:
a distance that is NaN is not agreement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ...dialects.canonical_scope import (
    Apply,
    Extents,
    Factor,
    Leaf,
    Read,
    Scope,
    Source,
    Term,
    render_factor,
)
from ...dialects.scalars import FUNCTIONS
from ...dialects.types import Array, is_float, to_numpy
from .evaluator import Evaluator, TooLargeError, sources_of
from .float_lane import DrawnFloats
from .inline import Inliner, TooManyTermsError
from .prove import Proof, Prover
from .residue_einsum import Part, contract
from .roundings import most_ulps

NAME = "inferred-folding"
STATEMENT = (
    "constants that carry no expression stand for the expressions over the other program's weights "
    "whose values they have, up to rounding"
)
METHOD = "coefficients"
_MAX_ELEMENTS = 1 << 24
# A constant that is added may be made of numbers this many times larger.
_MAX_TIMES = 8.0

Data = Mapping[str, Callable[[], Array]]


class _UnknownError(Exception):
    """An expression of weights cannot be evaluated here."""


@dataclass(frozen=True)
class ConstantFactors:
    """The constant part of a term.

    Attributes:
        factors: its constants, over iterators of extents `wide`.
        axes: the iterators of the coefficient's axes.
    """

    coefficient: Fraction
    factors: tuple[Factor, ...]
    wide: Extents
    axes: tuple[int, ...]


@dataclass
class ConstantGroup:
    """One product of data, with its coefficients on both sides, over [outer, its sums]."""

    tokens: list[str]  # of the factors that are no constants
    extents: Extents  # of outer, then sums
    sums: Extents
    parts: tuple[list[Array], list[Array]] = field(default_factory=lambda: ([], []))
    whence: tuple[list[ConstantFactors], list[ConstantFactors]] = field(
        default_factory=lambda: ([], [])
    )

    def add(
        self, side: int, term: Term, ours: Sequence[Factor], order: Sequence[int], numbers: _Numbers
    ) -> None:
        """A term of one side whose factors `ours` are constants."""
        first = len(self.extents)
        wide = self.extents + term.sums
        self.parts[side].append(_coefficient(term, ours, wide, first, order, numbers))
        made = ConstantFactors(term.coefficient, tuple(ours), wide, (*range(first), *order))
        self.whence[side].append(made)


def prove_up_to_constants(
    prover: Prover, a: Source, b: Source, cut: Iterable[str], data: Data
) -> tuple[Proof, float]:
    """Compare two scopes by their coefficients; the largest distance in ulps.

    Args:
        data: by token, the weights that count as constants.
    """
    groups = coefficients(prover, a, b, cut, data)
    if groups is None:
        return Proof(None), 0.0
    apart = max((most for _, most in groups), default=0.0)
    if not apart <= most_ulps(to_numpy(a.element)):
        return Proof(None), apart
    return Proof(True, METHOD, assumptions=(NAME,)), apart


def coefficients(
    prover: Prover, a: Source, b: Source, cut: Iterable[str], data: Data
) -> list[tuple[ConstantGroup, float]] | None:
    """The products of data of two scopes, and the distance of their coefficients.

    None if it cannot be computed.
    """
    if not isinstance(a, Scope) or not isinstance(b, Scope) or not is_float(a.element):
        return None
    try:
        inliner = Inliner(frozenset(cut) - {a.token, b.token}, prover.check)
        groups, numbers = list[ConstantGroup](), _Numbers(data)
        for side, expr in enumerate((inliner.inline_scope(a), inliner.inline_scope(b))):
            for term in expr.terms:
                _add(groups, side, term, a.shape, numbers)
        with np.errstate(all="ignore"):  # `largest_distance` finds what overflows
            return [(g, largest_distance(g, to_numpy(a.element))) for g in groups]
    except (TooManyTermsError, TooLargeError, _UnknownError):
        return None


def _add(
    groups: list[ConstantGroup], side: int, term: Term, shape: Extents, numbers: _Numbers
) -> None:
    """Add a term to the group of its product of data."""
    ours = [f for f in term.factors if _is_constant(f, numbers.data)]
    rest = [f for f in term.factors if f not in ours]
    wide, first = shape + term.sums, len(shape)
    live = sorted(k for k in frozenset[int]().union(*(f.iterators for f in rest)) if k >= first)
    for group in groups:
        for order in itertools.permutations(live):
            if _tokens(rest, first, order, len(wide)) == group.tokens and group.sums == tuple(
                wide[k] for k in order
            ):
                group.add(side, term, ours, order, numbers)
                return
    sums = tuple(wide[k] for k in live)
    made = ConstantGroup(_tokens(rest, first, live, len(wide)), shape, sums)
    made.add(side, term, ours, live, numbers)
    groups.append(made)


def _tokens(factors: Sequence[Factor], first: int, order: Sequence[int], count: int) -> list[str]:
    names = [f"i{k}" for k in range(first)] + ["u"] * (count - first)
    for position, k in enumerate(order):
        names[k] = f"s{position}"
    return sorted(render_factor(f, names or ["u"]) for f in factors)


def _is_constant(f: Factor, data: Data) -> bool:
    """Whether a factor depends on constants alone."""
    if isinstance(f, Read):
        return _is_data(f.source, data) and f.outside == 0.0
    if isinstance(f, Apply):
        return all(_is_data(s, data) for a in f.args for s in sources_of(a))
    return False


def _is_data(source: Source, data: Data) -> bool:
    return source.token in data or (isinstance(source, Leaf) and source.data is not None)


class _Numbers(Evaluator):
    """Factors of constants alone, in float64. Raises `_UnknownError` where one is none."""

    def __init__(self, data: Data) -> None:
        super().__init__(DrawnFloats((1,), 0), data)
        self.data = data

    def compute(self, source: Source) -> Array:
        if source.token in self.data:
            return np.asarray(self.data[source.token]())[None]
        if isinstance(source, Leaf) and source.data is not None:
            return super().compute(source)
        raise _UnknownError

    def factor(self, factor: Factor, extents: Extents) -> Part:
        if isinstance(factor, Read):
            self.value(factor.source)
        return super().factor(factor, extents)

    def symbol(self, name: str) -> Array:
        raise _UnknownError

    def apply(self, function: str, args: Sequence[Array], shape: Sequence[int]) -> Array:
        known = FUNCTIONS.get(function)
        if function != "recip" and (known is None or known.arity > len(args)):
            raise _UnknownError  # casts among them: they round
        return super().apply(function, args, shape)


def _coefficient(
    term: Term,
    factors: Sequence[Factor],
    wide: Extents,
    first: int,
    order: Sequence[int],
    numbers: _Numbers,
) -> Array:
    """The product of a term's constants, over the outer iterators and then its sums."""
    kept = [*range(first), *order]
    read = {k for f in factors for k in f.iterators}
    if math.prod(wide[k] for k in kept if k in read) > _MAX_ELEMENTS:
        raise _UnknownError
    lanes, used = contract(numbers.field, [numbers.factor(f, wide) for f in factors], kept)
    ways = math.prod(wide[k] for k in range(first, len(wide)) if k not in order and k not in read)
    axes = [k for k in kept if k in used]
    value = lanes[0].transpose([used.index(k) for k in axes])
    shape = [wide[k] if k in used else 1 for k in kept]
    return value.reshape(shape) * (float(term.coefficient) * ways)


def _measured(size: Array) -> Array:
    """The unit for a constant that is added, with no counterpart on its own side.

    It may be a difference of constants that only the other tool knew, as a batch norm's shift. The
    median magnitude of its tensor stands for them, up to a multiple of its own.
    """
    return np.maximum(size, np.minimum(_MAX_TIMES * size, np.median(size)))


def largest_distance(group: ConstantGroup, dtype: np.dtype[Any]) -> float:
    """The distance of the coefficients of both sides, in ulps of their parts."""
    apart = distances(group, dtype)
    return float(apart.max()) if np.isfinite(apart).all() else float("inf")


def distances(group: ConstantGroup, dtype: np.dtype[Any]) -> Array:
    """The distance of each coefficient from the other side's; NaN where one overflows."""
    shape = np.broadcast_shapes(*(p.shape for side in group.parts for p in side))
    if math.prod(shape) > _MAX_ELEMENTS:
        raise _UnknownError
    totals: list[Any] = []
    size: Any = np.zeros(shape)
    for side in group.parts:
        total: Any = np.zeros(shape)
        for part in side:
            total = total + part
            size = np.maximum(size, np.abs(part))
        totals.append(total)
    wrong = np.abs(totals[0] - totals[1])
    if not group.tokens and all(len(side) == 1 for side in group.parts):
        size = _measured(size)
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.spacing(size.astype(dtype)).astype(np.float64)
        beside = 4 * np.spacing((size / 4).astype(dtype)).astype(np.float64)
        return wrong / np.where(np.isfinite(unit), unit, beside)  # none is above the largest
