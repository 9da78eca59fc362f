"""The probability that the field check accepts different programs: a rigorous bound.

Take one output position at which two programs differ as formal expressions: polynomials with
rational coefficients in the leaves and in the values of functions. Here f(a) and f(b) are one
variable exactly if a = b formally (and a law like f(0) = 0 makes a value a constant). A lane with
prime p misses a nonzero difference of two such polynomials in two ways:

- p divides every coefficient, after clearing denominators. A coefficient of B bits has at most
  B / log2(least prime) prime divisors in the pool, and p is drawn from the pool: at most `beta`.
- otherwise the random point is a root: at most d / p, with the degree d (Schwartz, Zippel).

So a lane misses with probability at most e = beta + d / p, and all t lanes with at most e^t, since
they are drawn independently. The functions under one output have s arguments (for max, min and prod
elements of sets). If no two formally distinct ones (nor one and the point of a law) agree in all
lanes, their values are independent and uniform, and the same holds one level up. Over all levels
this gives at most (s (s + LAWS) / 2 + 1) e^t, plus the chance that two 128-bit hashes collide.
No union over output positions is needed: if the programs differ, they differ at some position.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Factor,
    Leaf,
    Read,
    Reduce,
    Scope,
    Source,
    Symbol,
)
from .evaluator import dependency_order
from .residues import LEAST_PRIME, prime_pool

# Points at which a law fixes a function's value, and neutral elements: at most this many a
# function.
LAWS = 6
MAX_LANES = 8


@dataclass(frozen=True)
class Measure:
    """The measures of an expression that the bound needs.

    Attributes:
        degree: most leaves and function values in one monomial.
        worst: the largest degree at any level, arguments included.
        arguments: function arguments under one point, with multiplicity; of a source at most as
            many as all its scopes have.
        denominator: log2 of a common denominator of all coefficients.
        norm: log2 of the sum of absolute values of all coefficients.
        bits: largest 2 * denominator + norm at any level.
        binary: whether every denominator is a power of two, so that one divides the other.
    """

    degree: int = 0
    worst: int = 0
    arguments: float = 0.0
    denominator: float = 0.0
    norm: float = 0.0
    bits: float = 0.0
    binary: bool = True


class Measurer:
    """Measures of sources over a cut, memoised."""

    def __init__(self, cut: Iterable[str] = ()):
        self.cut = frozenset(cut)
        self.memo: dict[str, Measure] = {}

    def source(self, source: Source) -> Measure:
        for needed in dependency_order(source, self.cut):
            if needed.token in self.memo:
                continue
            if isinstance(needed, Scope) and needed.token not in self.cut:
                self.memo[needed.token] = self.expr(needed.expr)
            else:
                self.memo[needed.token] = _given(needed)
        found = self.memo[source.token]
        return replace(found, arguments=min(found.arguments, self._all_arguments(source)))

    def _all_arguments(self, source: Source) -> float:
        """Function arguments at all points of a program's scopes, a bound for distinct ones."""
        total = 0.0
        for node in dependency_order(source, self.cut):
            if isinstance(node, Scope) and node.token not in self.cut:
                total += math.prod(node.shape) * Measurer().expr(node.expr).arguments
        return total

    def expr(self, expr: Expr) -> Measure:
        """The sources that the expression reads must be measured or be leaves."""
        parts = [self._term(t.factors) for t in expr.terms]
        norm = arguments = bits = 0.0
        degree = worst = 0
        denominators: list[float] = []
        binary = True
        for term, part in zip(expr.terms, parts, strict=True):
            points, below = math.prod(term.sums), term.coefficient.denominator
            denominators.append(_log2(below) + part.denominator)
            binary = binary and part.binary and below & (below - 1) == 0
            size = _log2(abs(term.coefficient.numerator)) - _log2(below)
            norm = _log_add(norm, size + _log2(points) + part.norm)
            degree, worst = max(degree, part.degree), max(worst, part.worst)
            arguments += points * part.arguments
            bits = max(bits, part.bits)
        denominator = max(denominators, default=0.0) if binary else sum(denominators)
        bits = max(bits, 2 * denominator + max(norm, 0.0) + 2)
        return Measure(degree, max(worst, degree), arguments, denominator, norm, bits, binary)

    def _term(self, factors: Iterable[Factor]) -> Measure:
        return _product(self._factor(f) for f in factors)

    def _factor(self, factor: Factor) -> Measure:
        match factor:
            case Read(source, _, _):
                known = self.memo.get(source.token)
                return _given(source) if known is None else known
            case Symbol():
                return Measure(degree=1, worst=1)
            case Apply("mul", args, _):
                return _product(self.expr(a) for a in args)
            case Apply(_, args, _):
                parts = [self.expr(a) for a in args]
                worst = max((m.worst for m in parts), default=0)
                inside = sum(m.arguments for m in parts)
                bits = max((m.bits for m in parts), default=0.0)
                return Measure(1, worst, inside + max(1, len(args)), 0.0, 0.0, bits)
            case Reduce(_, sums, arg, _):
                m = self.expr(arg)
                return Measure(1, m.worst, math.prod(sums) * (m.arguments + 1) + 1, bits=m.bits)
            case _:
                return Measure()


def _given(source: Source) -> Measure:
    """A leaf: a variable, or the numbers of a literal."""
    if not isinstance(source, Leaf) or source.data is None:
        return Measure(degree=1, worst=1)
    below = math.lcm(*(v.denominator for v in source.data))
    largest = max((math.ceil(abs(v)) for v in source.data), default=0)
    binary = below & (below - 1) == 0
    return Measure(denominator=_log2(below), norm=_log2(largest), binary=binary)


def _product(parts: Iterable[Measure]) -> Measure:
    total = Measure()
    for m in parts:
        total = Measure(
            total.degree + m.degree,
            max(total.worst, m.worst),
            total.arguments + m.arguments,
            total.denominator + m.denominator,
            total.norm + m.norm,
            max(total.bits, m.bits),
            total.binary and m.binary,
        )
    return total


def lane_error(measures: Iterable[Measure], least_prime: int = LEAST_PRIME, pool: int = 0) -> float:
    """The chance that one lane misses a difference; `pool` 0 means primes of `prime_pool`.

    With another pool (tests use one small prime) the coefficients must not vanish modulo it.
    """
    measures = list(measures)
    degree = max((max(m.worst, m.degree) for m in measures), default=0)
    bits = max((m.bits for m in measures), default=0.0)
    beta = 0.0 if pool else math.floor(bits / math.log2(LEAST_PRIME)) / len(prime_pool())
    return min(1.0, beta + degree / least_prime)


def miss(measures: Iterable[Measure], lanes: int, lane: float) -> float:
    """The chance that all lanes miss a difference, nested functions included."""
    s = sum(m.arguments for m in measures)
    pairs = s * (s + LAWS) / 2
    return min(1.0, (pairs + 1) * lane**lanes + pairs * 2.0**-120)


def lanes_for(measures: Iterable[Measure], target: float) -> int | None:
    """The fewest lanes, at least two, that reach the target bound; None if too many."""
    measures = list(measures)
    lane = lane_error(measures)
    for lanes in range(2, MAX_LANES + 1):
        if miss(measures, lanes, lane) <= target:
            return lanes
    return None


def _log2(n: int) -> float:
    return math.log2(n) if n > 0 else 0.0


def _log_add(a: float, b: float) -> float:
    """log2(2^a + 2^b), never less than either."""
    high, low = max(a, b), min(a, b)
    return high + math.log2(1 + 2.0 ** max(low - high, -1000.0))
