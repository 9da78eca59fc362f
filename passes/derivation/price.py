"""What a program of scopes would cost: library calls where they match, generated loops elsewhere.

Modelled, by the roofline of passes/cost.py on the scopes themselves: building ops for every state
of a search would cost more than the search. Code generation is delayed: a scope that only moves or
adds data (an eOperator) is priced by its bytes, and written when its program is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...dialects.canonical_types import Read, Scope, Source
from ...dialects.index import flatten, iterators, normalise, row_major_strides
from ...lowering.algebra_to_kernel.iterator_table import (
    TABLE,
    LibraryKernel,
    Match,
    contraction_of,
    matches,
)
from ...lowering.targets import TARGETS, Target
from ..cost import EFFICIENCY
from .body import body_of, stays_inside
from .replace import scopes_of

INFINITE = math.inf
_CLASS = {"gemm": "gemm", "batched-gemm": "gemm", "conv": "conv", "band-matmul": "other"}


@dataclass(frozen=True)
class Priced:
    """Seconds, and which scope is computed by which library kernel."""

    seconds: float
    choices: tuple[tuple[Scope, Match], ...] = ()


class Prices:
    """Prices of scopes on a target; each scope is matched and priced once.

    Args:
        constants: tokens of the leaves that are known before the program runs.
        threshold: a scope with more operations a byte than this must match a library kernel.
    """

    def __init__(
        self,
        constants: Iterable[str] = (),
        target: Target = TARGETS["cpu"],
        threshold: float = 4.0,
        table: Sequence[LibraryKernel] = TABLE,
    ):
        self.target = target
        self.threshold = threshold
        self.table = table
        self._constant: dict[Source, bool] = {}
        self._given = frozenset(constants)
        self._best: dict[tuple[Scope, bool], tuple[float, Match | None]] = {}

    def program(self, roots: Sequence[Scope]) -> Priced:
        """The price of a program whose results are the roots."""
        total, choices = 0.0, list[tuple[Scope, Match]]()
        for scope in scopes_of(roots):
            if self.constant(scope):
                continue
            seconds, match = self.scope(scope, fixed=scope in roots)
            total += seconds
            if match is not None:
                choices.append((scope, match))
        return Priced(total, tuple(choices))

    def constant(self, source: Source) -> bool:
        """Whether a value is known before the program runs."""
        if source not in self._constant:
            if isinstance(source, Scope):
                reads = [f for t in source.expr.terms for f in t.factors if isinstance(f, Read)]
                known = all(self.constant(f.source) for f in reads)
            else:
                known = source.token in self._given
            self._constant[source] = known
        return self._constant[source]

    def scope(self, scope: Scope, fixed: bool = False) -> tuple[float, Match | None]:
        """Seconds of one scope, with the library kernel that was the cheapest.

        Args:
            fixed: its layout is given (a root's), not free (an intermediate's).
        """
        key = scope, fixed
        if key not in self._best:
            self._best[key] = self._priced(scope, fixed)
        return self._best[key]

    def _priced(self, scope: Scope, fixed: bool) -> tuple[float, Match | None]:
        found = matches(scope, self.table)
        if found:
            after = self._roofline(0, 1.0, 2 * self.bytes_of(scope)) if fixed else 0.0
            priced = [
                (self.match(m) + (0.0 if m.in_order else after), number)
                for number, m in enumerate(found)
            ]
            seconds, number = min(priced)
            return seconds, found[number]
        return self.loops(scope), None

    def match(self, match: Match) -> float:
        """A library call and the layout kernels before it."""
        found = match.contraction
        seconds = 0.0
        for place, read in enumerate((found.first, found.second)):
            if not match.direct[place] and not self.constant(read.source):
                seconds += self.copy(read, match, place)
        moved = [self.bytes_of(found.scope)]
        for place, read in enumerate((found.first, found.second)):
            moved.append(self.bytes_of(read.source) * match.moved(place))
        rate = self.target.rate("f32") * EFFICIENCY[_CLASS[match.kernel.name]]
        return seconds + self._roofline(match.flops, rate, sum(moved))

    def native(self, class_: str, flops: float, moved: float) -> float:
        """A kernel of a class of passes/cost.py."""
        return self._roofline(flops, self.target.rate("f32") * EFFICIENCY[class_], moved)

    def copy(self, read: Read, match: Match, place: int) -> float:
        """A layout kernel: the distance of an operand from what the library takes."""
        found = match.contraction
        used = frozenset[int]().union(*(e.iterators for e in read.index))
        for guard in found.guards[place]:
            used |= guard.index.iterators
        windows = {w.inner for w in match.windows} if place == 0 else set[int]()
        points = math.prod(found.extents[k] for k in used - windows)
        moved = points * _width(read.source) + min(
            self.bytes_of(read.source), points * _width(read.source)
        )
        return self._roofline(0, 1.0, moved)

    def loops(self, scope: Scope) -> float:
        """A generated loop nest; infinite where it would do much arithmetic."""
        if is_view(scope):
            return 0.0
        flops = 0
        sources: dict[Source, None] = {}
        for term in scope.expr.terms:
            reads = [f for f in term.factors if isinstance(f, Read)]
            sources.update(dict.fromkeys(f.source for f in reads))
            points = math.prod(scope.shape + term.sums)
            flops += points * (len(reads) if term.sums or len(scope.expr.terms) > 1 else 0)
        moved = self.bytes_of(scope) + sum(map(self.bytes_of, sources))
        product = contraction_of(scope) is not None and any(t.sums for t in scope.expr.terms)
        if product and flops > self.threshold * moved:
            return INFINITE
        rate = self.target.rate("f32") * EFFICIENCY["other"]
        return self._roofline(flops, rate, moved)

    def bytes_of(self, source: Source) -> int:
        return math.prod(source.shape) * _width(source)

    def _roofline(self, flops: float, rate: float, moved: float) -> float:
        fits = moved <= self.target.caches[-1] / 2
        speed = self.target.cache_bandwidth if fits else self.target.bandwidth
        return max(flops / rate, moved / speed) + self.target.launch


def _width(source: Source) -> int:
    width = getattr(source.element, "bitwidth", None)
    return width // 8 if isinstance(width, int) and width >= 8 else 4


def is_view(scope: Scope) -> bool:
    """Whether a scope is a copy that keeps the row-major order: a reshape, which costs nothing."""
    body = body_of(scope)
    if body is None or body.sums or len(body.factors) != 1 or body.coefficient != 1:
        return False
    (read,) = body.factors
    if not isinstance(read, Read) or math.prod(read.source.shape) != math.prod(scope.shape):
        return False
    if not stays_inside(read.index, read.source.shape, scope.shape):
        return False
    flat = normalise(flatten(read.index, row_major_strides(read.source.shape)), scope.shape)
    own = flatten(iterators(len(scope.shape)), row_major_strides(scope.shape))
    return flat == normalise(own, scope.shape)
