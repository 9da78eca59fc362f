"""The field check: compare two sources at random points of finite fields, with an error bound.

Both are evaluated over random values at the cut, modulo as many primes (lanes) as the bound needs
(error_bound.py). Values that differ prove the sources different as formal expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...dialects.canonical_scope import Apply, Expr, Extents, Reduce, Scope, Source
from .error_bound import Measurer, lane_error, lanes_for, miss
from .evaluator import Evaluator, TooLargeError, dependency_order
from .residues import BadPrimeError, Residues, draw_primes

# The error bound of one field check; a comparison of programs makes few of them.
TARGET = 1e-15
_TRIES = 4


@dataclass(frozen=True)
class FieldLimits:
    """Limits of one field check.

    Attributes:
        target: the largest probability of a wrong `equal`.
        most_work: multiplications, of all lanes together.
    """

    target: float
    most_work: float


@dataclass(frozen=True)
class FieldAnswer:
    """The answer of one field check.

    Attributes:
        equal: None if it was not decided, for the `reason`.
        bound: the probability that `equal` is wrongly True.
    """

    equal: bool | None
    bound: float = 0.0
    primes: tuple[int, ...] = ()
    reason: str = ""


def field_check(
    a: Source,
    b: Source,
    cut: frozenset[str],
    seed: int,
    limits: FieldLimits,
    check: Callable[[], None],
) -> FieldAnswer:
    """Evaluate both over random values at the cut, with as many lanes as the bound needs.

    Args:
        check: called now and then; it raises to end the evaluation.
    """
    measurer = Measurer(cut)
    measures = [measurer.source(a), measurer.source(b)]
    lanes = lanes_for(measures, limits.target)
    if lanes is None:
        return FieldAnswer(None, reason="the error bound cannot be made small enough")
    if work(a, b, cut) * lanes > limits.most_work:
        return FieldAnswer(None, reason="the field check would take too long")
    for attempt in range(_TRIES):
        primes = draw_primes(lanes, seed + 7919 * attempt)
        try:
            field = Residues(primes, seed)
            evaluator = Evaluator(field, cut, check)
            same = bool(field.equal(evaluator.value(a), evaluator.value(b)).all())
        except BadPrimeError:
            continue
        except (TooLargeError, MemoryError):
            return FieldAnswer(None, reason="the field check would take too much memory")
        bound = miss(measures, lanes, lane_error(measures))
        return FieldAnswer(same, bound if same else 0.0, primes)
    return FieldAnswer(None, reason="no prime fits the coefficients")


def work(a: Source, b: Source, cut: frozenset[str]) -> float:
    """About how many multiplications it takes to evaluate both."""
    nodes = {n.token: n for s in (a, b) for n in dependency_order(s, cut)}
    total = 0.0
    for node in nodes.values():
        total += math.prod(node.shape)
        if isinstance(node, Scope) and node.token not in cut:
            total += expression_work(node.expr, node.shape)
    return total


def expression_work(expr: Expr, extents: Extents) -> float:
    """Points of all terms, each over its iterators, including arguments of calls."""
    total = 0.0
    for term in expr.terms:
        wide = extents + term.sums
        used = frozenset[int]().union(*(f.iterators for f in term.factors))
        total += float(math.prod(wide[k] for k in used))
        for f in term.factors:
            if isinstance(f, Apply | Reduce):
                own = tuple(n if k in f.iterators else 1 for k, n in enumerate(wide[: f.depth]))
                inner = f.args if isinstance(f, Apply) else (f.arg,)
                sums = () if isinstance(f, Apply) else f.sums
                total += sum(expression_work(e, own + sums) for e in inner)
    return total
