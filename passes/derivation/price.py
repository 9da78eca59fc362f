"""The cost of a program of scopes: library calls where they match, generated loops elsewhere.

Modelled, by passes/cost: a match has everything that the cost of an op depends on, so no ops are
built for the states of a search. Code generation is delayed: a scope that only moves or adds data
(an eOperator) is priced by its bytes, and written when its program is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...dialects.canonical_types import Read, Scope, Source
from ...dialects.index import flatten, normalise, row_major_strides, stays_inside
from ...dialects.layout import layout_inside
from ...lowering.algebra_to_kernel.table import (
    LibraryKernel,
    Match,
    contraction_of,
    library_kernels,
    matches,
)
from ...lowering.targets import TARGETS, Target
from ..convolution.conv_algorithms import ConvolutionProblem, Estimate, Product, conv_algorithms
from ..cost.costs import Box, Costs, box_of, places_in
from .body import body_of
from .replace import scopes_of

INFINITE = math.inf


@dataclass(frozen=True)
class Priced:
    """Seconds, and which library kernel computes which scope."""

    seconds: float
    choices: tuple[tuple[Scope, Match], ...] = ()


class ScopePrices:
    """Prices of scopes on a target; each scope is matched and priced once.

    Args:
        constants: tokens of the leaves that are known before the program runs.
        threshold: a scope with more operations a byte than this must match a library kernel.
        costs: of the target, with a cost file; by default the model alone.
    """

    def __init__(
        self,
        constants: Iterable[str] = (),
        target: Target = TARGETS["cpu"],
        threshold: float = 4.0,
        table: Sequence[LibraryKernel] | None = None,
        costs: Costs | None = None,
    ):
        self.target = target if costs is None else costs.target
        self.costs = Costs(target) if costs is None else costs
        self.threshold = threshold
        self.table = library_kernels() if table is None else table
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
        """Seconds of one scope, and the cheapest library kernel for it.

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
            after = self._moving(scope, 2 * self.bytes_of(scope)) if fixed else 0.0
            priced = [
                (self.match(m) + (0.0 if m.in_order else after), number)
                for number, m in enumerate(found)
            ]
            seconds, number = min(priced)
            return seconds, found[number]
        return self.loops(scope), None

    def match(self, match: Match) -> float:
        """A library call and the layout copies before it."""
        found = match.contraction
        seconds, weights, moved = 0.0, 0, self.bytes_of(found.scope)
        for position, read in enumerate((found.first.read, found.second.read)):
            known = self.constant(read.source)
            if not match.direct[position] and not known:
                seconds += self.copy(read, match, position)
            size = self.bytes_of(read.source) * match.moved(position)
            weights, moved = weights + size * known, moved + size * (not known)
        algorithms = self.algorithms(match)
        return seconds + min(
            self._seconds(algorithm, found.scope, weights, moved) for algorithm in algorithms
        )

    def algorithms(self, match: Match) -> list[Estimate]:
        """The algorithms by which the kernel may compute it."""
        groups, extents = match.groups, match.contraction.extents
        batch, m, n, k = (match.extent(groups[name]) for name in ("batch", "m", "n", "k"))
        outer = tuple(extents[w.outer] for w in match.windows)
        inner = tuple(extents[w.inner] for w in match.windows)
        if match.kernel.window is None:
            return [Estimate("gemm", match.flops, "gemm", product=Product(batch, m, n, k))]
        dilations = tuple(abs(w.dilation) for w in match.windows)
        if match.kernel.window.outer == "batch":
            if not self.target.tiled:  # no cpu kernel: it becomes loops
                return [Estimate("other", match.flops, "loops")]
            band = Product(batch, outer[0], inner[0], k, dilations[0])
            return [Estimate("gemm", match.flops, "band", product=band)]
        strides = tuple(w.stride for w in match.windows)
        conv = ConvolutionProblem(m, batch * n, outer, k, inner, strides, dilations, batch)
        return conv_algorithms(conv, match.flops / 2, self.target, self.costs.fitted)

    def copy(self, read: Read, match: Match, position: int) -> float:
        """A layout copy: the distance of an operand from the layout that the library takes."""
        found = match.contraction
        used = found.operands[position].uses
        windows = {w.inner for w in match.windows} if position == 0 else set[int]()
        points = math.prod(found.extents[k] for k in used - windows)
        moved = points * _width(read.source) + min(
            self.bytes_of(read.source), points * _width(read.source)
        )
        return self._moving(read.source, moved)

    def loops(self, scope: Scope) -> float:
        """A generated loop nest; infinite for much arithmetic."""
        if is_view(scope):
            return 0.0
        flops = 0
        boxes: dict[Source, set[Box]] = {}
        for term in scope.expr.terms:
            reads = [f for f in term.factors if isinstance(f, Read)]
            extents = scope.shape + term.sums
            for read in reads:
                box = box_of(read.index, read.source.shape, extents)
                boxes.setdefault(read.source, set()).add(box)
            points = math.prod(extents)
            flops += points * (len(reads) if term.sums or len(scope.expr.terms) > 1 else 0)
        read_bytes = {
            source: min(self.bytes_of(source), places_in(found) * _width(source))
            for source, found in boxes.items()
        }
        weights = sum(size for source, size in read_bytes.items() if self.constant(source))
        moved = self.bytes_of(scope) + sum(read_bytes.values()) - weights
        product = contraction_of(scope) is not None and any(t.sums for t in scope.expr.terms)
        if product and flops > self.threshold * (moved + weights):
            return INFINITE
        return self._seconds(Estimate("other", flops, ""), scope, weights, moved)

    def bytes_of(self, source: Source) -> int:
        return math.prod(source.shape) * _width(source)

    def _moving(self, source: Source, moved: float) -> float:
        return self._seconds(Estimate("other", 0.0, ""), source, 0, moved)

    def _seconds(self, algorithm: Estimate, source: Source, weights: float, moved: float) -> float:
        return self.costs.seconds(algorithm, source.element, weights, moved)


def _width(source: Source) -> int:
    width = getattr(source.element, "bitwidth", None)
    return width // 8 if isinstance(width, int) and width >= 8 else 4


def is_view(scope: Scope) -> bool:
    """Whether a scope is a copy of elements that some layout describes where they are: it costs
    nothing.
    """
    body = body_of(scope)
    if body is None or body.sums or len(body.factors) != 1 or body.coefficient != 1:
        return False
    (read,) = body.factors
    if not isinstance(read, Read) or not stays_inside(read.index, read.source.shape, scope.shape):
        return False
    flat = normalise(flatten(read.index, row_major_strides(read.source.shape)), scope.shape)
    order, count = range(len(scope.shape)), math.prod(read.source.shape)
    return layout_inside(scope.shape, order, flat, count) is not None
