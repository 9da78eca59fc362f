"""The rules as passes, for people who derive by hand and for traces that are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import BITS, DISTRIBUTED, DROPPED, GUARDED, Floats
from ...dialects.index import Index, range_of
from . import rules, sums, traversals
from .body import SumOfProducts, body_of
from .by_hand import apply_rule
from .index_text import parse_indices, words
from .step import DerivationStep


def place_of(op: ScopeOp, name: str, *, summed: bool) -> int:
    """The number of an iterator among the sums (or traversals) of an op.

    Raises:
        UserError: it has no such iterator.
    """
    rank = len(op.traversal)
    names = op.names[rank:] if summed else op.names[:rank]
    if name in names:
        return names.index(name)
    kind = "summation" if summed else "traversal"
    raise UserError(
        f"%{op.result.name_hint} has no {kind} iterator '{name}'",
        hint=did_you_mean(name, names) or f"it has: {', '.join(names) or 'none'}",
    )


def _has(op: ScopeOp, names: Sequence[str]) -> bool:
    return all(name in op.names for name in names)


@dataclass(frozen=True)
class AlgebraSumSplit(ModulePass):
    """Sum over some iterators in a scope of its own, which the others read.

    `sums` are the iterators that the new scope sums over; its traversals are what its factors use.
    `at` names the scope where several have such iterators.

    Before:

        %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>

    After `algebra-sum-split{sums="c"}`:

        %y.0 = algebra.scope (i0: 8, i1: 3) sum (k0: 4) %x[k0, i0 + i1 - 1] * %k[k0, i1]
        %y = algebra.scope (i0: 8) sum (k0: 3) %y.0[i0, k0] : tensor<8xf32>
    """

    name = "algebra-sum-split"
    floats: ClassVar[Floats] = DISTRIBUTED
    sums: tuple[str, ...]
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and not _has(scope, self.sums):
                return None
            return sums.sum_split(body, [place_of(scope, s, summed=True) for s in self.sums])

        apply_rule(op, self.at, make, rules.named("sum-split").condition)


@dataclass(frozen=True)
class AlgebraReindex(ModulePass):
    """Compute a scope over other coordinates, of which everything it reads is a function.

    `phi` gives the coordinates, one expression each, in the scope's traversals; they run over all
    values between the least and the greatest. Readers read at the coordinates of what they want.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r - 1] * %k[c, r] : tensor<8x3xf32>

    After `algebra-reindex{at="t" phi="h + r","r"}`:

        %t = algebra.scope (i0: 10, i1: 3) sum (k0: 4) %x[k0, i0 - 1] * %k[k0, i1]
    """

    name = "algebra-reindex"
    floats: ClassVar[Floats] = GUARDED
    phi: tuple[str, ...]
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reindex. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            names = scope.names[: body.rank]
            if not self.at and any(w not in names for e in self.phi for w in words(e)):
                return None
            phi: list[Index] = parse_indices(self.phi, names)
            return traversals.reindex(body, phi)

        apply_rule(op, self.at, make, rules.named("reindex").condition)


@dataclass(frozen=True)
class AlgebraSplitSum(ModulePass):
    """Write summation iterators as two digits each, `by` times the first plus the second.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4) %x[h + r] * %k[r] : tensor<8xf32>

    After `algebra-split-sum{sums="r" by=2}`:

        %y = algebra.scope (i0: 8) sum (k0: 2, k1: 2) %x[i0 + 2 * k0 + k1] * %k[2 * k0 + k1]
    """

    name = "algebra-split-sum"
    floats: ClassVar[Floats] = GUARDED
    sums: tuple[str, ...]
    by: int
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and not _has(scope, self.sums):
                return None
            numbers = [place_of(scope, name, summed=True) for name in self.sums]
            return sums.split_sum(body, numbers, self.by)

        apply_rule(op, self.at, make, rules.named("split-sum").condition)


@dataclass(frozen=True)
class AlgebraShearSum(ModulePass):
    """Count a summation iterator from a traversal that moves along an index with it.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4) %x[h + r] * %k[r] : tensor<8xf32>

    After `algebra-shear-sum{sum="r" along="h"}` (beyond %k's edges a read is 0):

        %y = algebra.scope (i0: 8) sum (k0: 11) %x[k0] * %k[k0 - i0] : tensor<8xf32>
    """

    name = "algebra-shear-sum"
    floats: ClassVar[Floats] = GUARDED
    sum: str
    along: str
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Shear. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and not _has(scope, [self.sum, self.along]):
                return None
            number = place_of(scope, self.sum, summed=True)
            return sums.shear_sum(body, number, place_of(scope, self.along, summed=False))

        apply_rule(op, self.at, make, rules.named("shear-sum").condition)


@dataclass(frozen=True)
class AlgebraSplitTraversal(ModulePass):
    """Write a traversal iterator as two digits; readers read at the quotient and the remainder.

    Before:

        %t = algebra.scope (h: 8) sum (r: 3) %x[h + 2 * r] * %k[r] : tensor<8xf32>
        %y = algebra.scope (h: 8) exp(%t[h]) : tensor<8xf32>

    After `algebra-split-traversal{at="t" traversal="h" by=2}`:

        %t = algebra.scope (i0: 4, i1: 2) sum (k0: 3) %x[2 * i0 + i1 + 2 * k0] * %k[k0]
        %y = algebra.scope (h: 8) exp(%t[h floordiv 2, h - 2 * (h floordiv 2)]) : tensor<8xf32>
    """

    name = "algebra-split-traversal"
    floats: ClassVar[Floats] = GUARDED
    traversal: str
    by: int
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and not _has(scope, [self.traversal]):
                return None
            return traversals.split_traversal(
                body, place_of(scope, self.traversal, summed=False), self.by
            )

        apply_rule(op, self.at, make, rules.named("split-traversal").condition)


@dataclass(frozen=True)
class AlgebraTighten(ModulePass):
    """Leave out the places at the ends of a scope where something it multiplies is 0.

    Before:

        %t = algebra.scope (h: 10) sum (c: 4) %x[c, h - 1] * %k[c] : tensor<10xf32>
        %y = algebra.scope (h: 8) %t[h] : tensor<8xf32>

    After, with 8 places in each row of %x:

        %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] : tensor<8xf32>
        %y = algebra.scope (h: 8) %t[h - 1] : tensor<8xf32>
    """

    name = "algebra-tighten"
    floats: ClassVar[Floats] = DROPPED
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Tighten. Raises UserError where it does not apply."""
        condition = rules.named("tighten").condition
        apply_rule(op, self.at, lambda scope, body: traversals.tighten(body), condition)


@dataclass(frozen=True)
class AlgebraTightenSums(ModulePass):
    """Leave out the places at the ends of a scope's sums where something it multiplies is 0.

    Before:

        %y = algebra.scope (h: 8) sum (r: 5) %x[h + r] * %k[r - 1] : tensor<8xf32>

    After, with three places in %k:

        %y = algebra.scope (i0: 8) sum (k0: 3) %k[k0] * %x[i0 + k0 + 1] : tensor<8xf32>
    """

    name = "algebra-tighten-sums"
    floats: ClassVar[Floats] = DROPPED
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Tighten. Raises UserError where it does not apply."""
        condition = rules.named("tighten-sums").condition
        apply_rule(op, self.at, lambda scope, body: traversals.tighten_sums(body), condition)


@dataclass(frozen=True)
class AlgebraDropDead(ModulePass):
    """Leave out the traversals that nothing a scope reads depends on.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h] * %k[c] : tensor<8x3xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>

    After:

        %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] : tensor<8xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h] : tensor<8xf32>
    """

    name = "algebra-drop-dead"
    floats: ClassVar[Floats] = BITS
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Leave out. Raises UserError where it does not apply."""
        condition = rules.named("drop-dead").condition
        apply_rule(op, self.at, lambda scope, body: traversals.drop_dead(body), condition)


@dataclass(frozen=True)
class AlgebraDeltaIntro(ModulePass):
    """Sum over a quotient that a guard says is whole; sums that this decides vanish.

    `guard` is the number of the guard among the scope's guards.

    Before, a read of ones being a guard:

        %y = algebra.scope (h: 8) sum (r: 4)
               %x[(h + r) floordiv 2] * %k[r] * %one[(h + r) mod 2] : tensor<8xf32>

    After:

        %y = algebra.scope (i0: 8) sum (k0: 6) %x[k0] * %k[2 * k0 - i0] : tensor<8xf32>
    """

    name = "algebra-delta-intro"
    floats: ClassVar[Floats] = GUARDED
    guard: int = 0
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Introduce. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            canonical = body_of(body.scope())
            if canonical is None or self.guard >= len(canonical.guards):
                return None
            return sums.delta_intro(canonical, self.guard)

        apply_rule(op, self.at, make, rules.named("delta-intro").condition)


@dataclass(frozen=True)
class AlgebraDeltaElim(ModulePass):
    """Solve a guard e == 0 for a summation iterator and substitute the solution.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4, i: 8) %x[i] * %k[r] * %one[h - i - r] : tensor<8xf32>

    After `algebra-delta-elim{sum="i"}`:

        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[i0 - k0] : tensor<8xf32>
    """

    name = "algebra-delta-elim"
    floats: ClassVar[Floats] = DROPPED
    sum: str
    guard: int = 0
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Eliminate. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if self.guard >= len(body.guards) or (not self.at and self.sum not in scope.names):
                return None
            return sums.delta_elim(body, self.guard, place_of(scope, self.sum, summed=True))

        apply_rule(op, self.at, make, rules.named("delta-elim").condition)


@dataclass(frozen=True)
class AlgebraRestrict(ModulePass):
    """Compute only the places low .. high - 1 of a traversal, where readers stay inside them.

    Before:

        %t = algebra.scope (h: 10) sum (c: 4) %x[c, h] * %k[c] : tensor<10xf32>
        %y = algebra.scope (h: 6) %t[h + 2] : tensor<6xf32>

    After `algebra-restrict{at="t" traversal="h" low=2 high=8}`:

        %t = algebra.scope (i0: 6) sum (k0: 4) %k[k0] * %x[k0, i0 + 2] : tensor<6xf32>
        %y = algebra.scope (h: 6) %t[h] : tensor<6xf32>
    """

    name = "algebra-restrict"
    floats: ClassVar[Floats] = BITS
    traversal: str
    low: int
    high: int
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Restrict. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and self.traversal not in scope.names:
                return None
            number = place_of(scope, self.traversal, summed=False)
            if not _readers_within(scope, number, self.low, self.high):
                return None
            return traversals.restrict(body, number, self.low, self.high)

        apply_rule(op, self.at, make, rules.named("restrict").condition)


def _readers_within(scope: ScopeOp, dim: int, low: int, high: int) -> bool:
    """Whether all users are scopes that read nothing else of a dim than low .. high - 1."""
    for use in scope.result.uses:
        user = use.operation
        if not isinstance(user, ScopeOp):
            return False
        for read in user.reads():
            if read.source is scope.result:
                first, last = range_of(read.index[dim], user.extents)
                first, last = max(first, 0), min(last, scope.traversal[dim] - 1)
                if first <= last and (first < low or last >= high):
                    return False
    return True
