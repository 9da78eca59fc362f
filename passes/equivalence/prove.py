"""Prove two sources equal over the values at a cut: by structure, monomials or the field check."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...dialects.canonical_scope import (
    Expr,
    Extents,
    Scope,
    Source,
    modulo,
    scope,
    substitute,
)
from ...dialects.index import Index
from ...dialects.wrapping import bits_of, is_whole
from . import symbolic
from .cancellation import NAME as CANCELLING
from .cancellation import needs_cancelling
from .evaluator import dependency_order
from .field_check import TARGET, FieldLimits, expression_work, field_check, work
from .inline import Inliner, NarrowInliner, TooManyTermsError
from .shrink import Shrinking, shrunk, statement
from .translate import whole

# In large scopes multiplications are matrix products, and so many times faster than points of
# calls; with fewer points than this it does not matter.
_BLAS, _FEW = 50, 1e7

STRUCTURAL, SYMBOLIC, FIELD = "structural", "symbolic", "field"


class OutOfTimeError(Exception):
    """The time budget is spent."""


@dataclass(frozen=True)
class Place:
    """Which values a proof is about: the first program's op, and how many values were seen."""

    op: str
    values: int


@dataclass(frozen=True)
class Proof:
    """The answer for one pair.

    Attributes:
        equal: None if unknown.
        method: "structural", "symbolic", "field"; the last two also say whether sizes were shrunk.
        bound: the probability that `equal` is wrongly True.
        statements: what was proved, once as given and once with its scopes opened, both at the
            smallest sizes; empty if nobody asked, or if both sides became one expression.
        shrinkings: the extents that a smaller one stood for, and that one.
        opened: tokens of the scopes that the statement is about, if anybody asked.
        place: which values it is about, if anybody asked.
    """

    equal: bool | None
    method: str = ""
    bound: float = 0.0
    reason: str = ""
    primes: tuple[int, ...] = ()  # of the field check
    assumptions: tuple[str, ...] = ()  # that the proof needs
    statements: tuple[str, ...] = ()
    shrinkings: tuple[Shrinking, ...] = ()
    opened: tuple[str, ...] = ()
    place: Place | None = None


@dataclass
class Prover:
    """Settings of all proofs of one comparison.

    Attributes:
        deadline: of time.monotonic.
        most_work: multiplications (all lanes) that one field check may take.
        names: by token, of the sources that statements name; None if nobody asks for statements.
    """

    seed: int = 0
    deadline: float = math.inf
    most_work: float = 4e10
    target: float = TARGET
    names: Mapping[str, str] | None = None

    def check(self) -> None:
        """Raise OutOfTimeError past the deadline."""
        if time.monotonic() > self.deadline:
            raise OutOfTimeError

    def prove(self, a: Source, b: Source, cut: Iterable[str] = ()) -> Proof:
        """Whether two sources with one shape are equal for all values at the cut.

        A proof that needs terms to cancel says so in its assumptions.
        """
        cut = frozenset(cut)
        proof = self._prove(a, b, cut)
        if proof.equal and needs_cancelling(a, b, cut, self._proves):
            return replace(proof, assumptions=(*proof.assumptions, CANCELLING))
        return proof

    def _proves(self, a: Source, b: Source, cut: frozenset[str]) -> bool:
        return self._prove(a, b, cut).equal is True

    def _prove(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        if a is b:
            return Proof(True, STRUCTURAL)
        if not isinstance(a, Scope) and not isinstance(b, Scope):
            return Proof(None, reason="calls of different operands are not compared")
        a, b = whole(a), whole(b)
        cut = cut - {a.token, b.token}
        small, opened = shrunk(a.expr, b.expr, a.shape, cut=cut), self._opened(a, b, cut)
        if small.first is not a.expr:
            a = scope(small.shape, a.element, small.first)
            b = scope(small.shape, b.element, small.second)
            found = self._whole(a, b, cut)
            found = replace(found, method=found.method.replace("full", "shrunk"))
        else:
            found = self._whole(a, b, cut)
        found = self._stated(found, a.expr, b.expr, a.shape, cut, small.shrinkings)
        return replace(found, opened=opened)

    def _opened(self, a: Source, b: Source, cut: frozenset[str]) -> tuple[str, ...]:
        """The scopes above the cut, if anybody asks."""
        if self.names is None:
            return ()
        nodes = [node for source in (a, b) for node in dependency_order(source, cut)]
        return tuple(n.token for n in nodes if isinstance(n, Scope) and n.token not in cut)

    def _stated(
        self,
        proof: Proof,
        a: Expr,
        b: Expr,
        shape: Extents,
        cut: frozenset[str],
        shrinkings: tuple[Shrinking, ...],
    ) -> Proof:
        """A proof that says what it proved, if anybody asks."""
        if self.names is None or not proof.equal:
            return proof
        said = (statement(a, b, shape, cut, self.names), *proof.statements)
        return replace(proof, statements=said, shrinkings=shrinkings + proof.shrinkings)

    def _whole(self, a: Scope, b: Scope, cut: frozenset[str]) -> Proof:
        for kind in (Inliner, NarrowInliner):
            inliner = kind(cut, self.check)
            try:
                first, second = inliner.inline_scope(a), inliner.inline_scope(b)
                if is_whole(a.element):
                    bits = bits_of(a.element)
                    first, second = (modulo(e, bits, a.shape) for e in (first, second))
            except TooManyTermsError:
                continue
            return self.expressions(first, second, a.shape, (a, b, cut))
        return self.by_field(a, b, cut)

    def expressions(
        self,
        a: Expr,
        b: Expr,
        shape: Extents,
        given: tuple[Scope, Scope, frozenset[str]] | None = None,
    ) -> Proof:
        """Whether two expressions over leaves are equal; `given` are their original sources."""
        if a.token == b.token:
            return Proof(True, SYMBOLIC)
        self.check()
        small = shrunk(a, b, shape)
        size = "full" if small.first is a else "shrunk"
        if small.first.token == small.second.token:
            return Proof(True, f"{SYMBOLIC}, {size}", shrinkings=small.shrinkings)
        answer = symbolic.compare(small.first, small.second, small.shape)
        plain = small.first.size[1] == small.second.size[1] == 0
        if answer or (answer is False and plain):  # calls may be equal in ways it does not see
            proof = Proof(answer, f"{SYMBOLIC}, {size}")
        else:
            element = given[0].element if given is not None else None
            proof = self._small(small.first, small.second, small.shape, element, size, given)
        every = frozenset[str]()
        return self._stated(proof, small.first, small.second, small.shape, every, small.shrinkings)

    def _small(
        self,
        a: Expr,
        b: Expr,
        shape: Extents,
        element: Any,
        size: str,
        given: tuple[Scope, Scope, frozenset[str]] | None,
    ) -> Proof:
        """The field check: first at one position, which rejects most pairs, then at all.

        An inlined scope is computed again for every call around it. Programs of many layers are
        cheaper to evaluate in their original form.
        """
        given_work = math.inf if given is None else work(*given) / _BLAS
        point = self._at_a_point(a, b, shape, element, given_work)
        if point.equal is False:
            return replace(point, method=f"{FIELD}, {size}")
        small_work = expression_work(a, shape) + expression_work(b, shape)
        if given is not None and (size == "full" or max(given_work, _FEW) < small_work):
            return self.by_field(*given)
        found = self.by_field(scope(shape, element, a), scope(shape, element, b), frozenset())
        return replace(found, method=f"{FIELD}, {size}")

    def _at_a_point(
        self, a: Expr, b: Expr, shape: Extents, element: Any, most_work: float
    ) -> Proof:
        rng = np.random.default_rng((self.seed, 0xA7))
        images = [Index(int(rng.integers(0, n))) if n > 1 else Index(0) for n in shape]
        ones = (1,) * len(shape)
        at = [substitute(e, images, ones) for e in (a, b)]
        if sum(expression_work(e, ones) for e in at) > max(most_work, _FEW):
            return Proof(None)
        made = [scope(ones, element, e) for e in at]
        return self.by_field(made[0], made[1], frozenset())

    def by_field(self, a: Source, b: Source, cut: frozenset[str]) -> Proof:
        """The field check of two sources, as a proof."""
        limits = FieldLimits(self.target, self.most_work)
        answer = field_check(a, b, cut, self.seed, limits, self.check)
        if answer.equal is None:
            return Proof(None, FIELD, reason=answer.reason)
        return Proof(answer.equal, f"{FIELD}, full", answer.bound, primes=answer.primes)


Check = Callable[[], None]
