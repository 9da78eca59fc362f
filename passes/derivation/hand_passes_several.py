"""Rules about several scopes as passes, and the canonical and library forms of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import scalars
from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope, Source
from ...dialects.errors import UserError
from ...dialects.floats import BITS, DISTRIBUTED, DROPPED, GUARDED, ROUNDING, Floats
from ...lowering.algebra_to_kernel.table import library_kernels, matches
from . import merges, rules, side_by_side, traversals
from .body import SumOfProducts, body_of
from .by_hand import apply_rule, find_scope, replace_op
from .hand_passes import place_of
from .instantiate import instantiate
from .lift import Lift, family
from .price import ScopePrices
from .step import DerivationStep


@dataclass(frozen=True)
class AlgebraNormalise(ModulePass):
    """Write a scope in its canonical form: iterators i0, i1, ... and k0, k1, ... in a fixed order.

    Sums that a guard pins are substituted, extents of 1 and sums that nothing reads vanish, guards
    that reads imply are dropped. An elementwise scope whose terms would combine or cancel is
    refused: its floats would change.

    Before:

        %y = algebra.scope (h: 8) sum (r: 3, c: 4) %k[c, r] * %x[c, h + r] : tensor<8xf32>

    After:

        %y = algebra.scope (i0: 8) sum (k0: 3, k1: 4) %k[k1, k0] * %x[k1, i0 + k0] : tensor<8xf32>
    """

    name = "algebra-normalise"
    floats: ClassVar[Floats] = DROPPED
    at: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite. Raises UserError if there is no such scope, or its floats would change."""
        scope = find_scope(op, self.at)
        lift = Lift(op, family(scope))
        new = lift.scope(scope)
        _require_terms(scope, new)
        replace_op(op, scope, DerivationStep("normalise", new), lift.values)


def _require_terms(op: ScopeOp, new: Scope) -> None:
    """Refuse to combine terms of an elementwise scope.

    Raises:
        UserError: the canonical form has fewer of them, and literals or equal reads met.
    """
    expr = op.expr()
    reads = [node for node in _leaves(expr) if isinstance(node, scalars.Read)]
    met = len(set(reads)) < len(reads) or any(isinstance(x, scalars.Const) for x in _leaves(expr))
    if op.is_pointwise and met and len(new.expr.terms) < _terms(expr):
        hint = "x + c - c is not x in floats: isoform-opt -p fast-math lets generated code do it"
        raise UserError("its terms would be combined", where=f"%{op.result.name_hint}", hint=hint)


def _leaves(expr: scalars.Expr) -> list[scalars.Expr]:
    """Reads and literals, as often as they are written."""
    parts = scalars.children(expr)
    return [leaf for part in parts for leaf in _leaves(part)] if parts else [expr]


def _terms(expr: scalars.Expr) -> int:
    """Terms of an expression multiplied out, none combined."""
    match expr:
        case scalars.Call("add" | "sub", (left, right)):
            return _terms(left) + _terms(right)
        case scalars.Call("mul", (left, right)):
            return _terms(left) * _terms(right)
        case scalars.Call("neg", (inner,)) | scalars.Cast(_, inner):
            return _terms(inner)
        case _:
            return 1


def _is_copy(op: object) -> TypeGuard[ScopeOp]:
    """Whether a scope only moves data: canonical forms read through those that are inside."""
    return isinstance(op, ScopeOp) and op.is_pointwise and len(op.inputs) == 1


@dataclass(frozen=True)
class AlgebraMergeCopies(ModulePass):
    """Read the sources of pure copies instead of the copies, in one scope; it becomes canonical.

    Before:

        %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
        %y = algebra.scope (i: 8) sum (j: 4) %t[i, j] * %k[j] : tensor<8xf32>

    After:

        %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<8xf32>
    """

    name = "algebra-merge-copies"
    floats: ClassVar[Floats] = GUARDED
    at: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite. Raises UserError where it reads no copy."""
        scope = find_scope(op, self.at)
        copies = [v.owner for v in scope.inputs if _is_copy(v.owner)]
        if not copies:
            raise UserError("it reads no copy", where=f"%{self.at}")
        own = family(scope)
        chosen = [c for c in copies if own(c)] or copies
        lift = Lift(op, lambda o: o in chosen or own(o))
        new = lift.scope(scope)
        _require_terms(scope, new)
        replace_op(op, scope, DerivationStep("merge-copies", new), lift.values)


@dataclass(frozen=True)
class AlgebraTraversalMerge(ModulePass):
    """Compute a scope where it is read, instead of on its own; `read` names it.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r] * %k[c, r] : tensor<8x3xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>

    After `algebra-traversal-merge{at="y" read="t"}`:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r] * %k[c, r] : tensor<8x3xf32>
        %y = algebra.scope (i0: 8) sum (k0: 3, k1: 4) %k[k1, k0] * %x[k1, i0 + k0] : tensor<8xf32>
    """

    name = "algebra-traversal-merge"
    floats: ClassVar[Floats] = DISTRIBUTED
    at: str
    read: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge. Raises UserError where it does not apply."""
        inner = find_scope(op, self.read)

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            found = [k for k, r in enumerate(body.reads) if isinstance(r.source, Scope)]
            return merges.traversal_merge(body, found[0]) if found else None

        condition = rules.named("traversal-merge").condition
        apply_rule(op, self.at, make, condition, inside=lambda o: o is inner)


@dataclass(frozen=True)
class AlgebraExpressionSplit(ModulePass):
    """Compute a scope in two pieces along a traversal.

    Before:

        %y = algebra.scope (h: 8) sum (c: 4) %x[c, h] * %k[c] : tensor<8xf32>

    After `algebra-expression-split{traversal="h" position=5}`:

        %y.0 = algebra.scope (i0: 5) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<5xf32>
        %y.1 = algebra.scope (i0: 3) sum (k0: 4) %k[k0] * %x[k0, i0 + 5] : tensor<3xf32>
        %y = algebra.scope (i0: 8) %y.0[i0] + %y.1[i0 - 5] : tensor<8xf32>
    """

    name = "algebra-expression-split"
    floats: ClassVar[Floats] = BITS
    traversal: str
    position: int
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split. Raises UserError where it does not apply."""

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            if not self.at and self.traversal not in scope.names:
                return None
            number = place_of(scope, self.traversal, summed=False)
            return traversals.expression_split(body, number, self.position)

        apply_rule(op, self.at, make, rules.named("expression-split").condition)


@dataclass(frozen=True)
class AlgebraExpressionFuse(ModulePass):
    """Compute as one scope what is the sum of two pieces of it: undoes algebra-expression-split.

    Before:

        %a = algebra.scope (h: 5) sum (c: 4) %x[c, h] * %k[c] : tensor<5xf32>
        %b = algebra.scope (h: 3) sum (c: 4) %x[c, h + 5] * %k[c] : tensor<3xf32>
        %y = algebra.scope (h: 8) %a[h] + %b[h - 5] : tensor<8xf32>

    After (%a and %b are left to dce):

        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<8xf32>
    """

    name = "algebra-expression-fuse"
    floats: ClassVar[Floats] = BITS
    at: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse. Raises UserError where it does not apply."""
        scope = find_scope(op, self.at)
        lift = Lift(op, lambda o: o.result in scope.inputs)
        step = merges.expression_fuse(lift.scope(scope))
        if step is None:
            condition = rules.named("expression-fuse").condition
            raise UserError("the rule does not apply", where=f"%{self.at}", hint=condition)
        replace_op(op, scope, step, lift.values)


@dataclass(frozen=True)
class AlgebraMergeSharedOperand(ModulePass):
    """Compute two products that share an operand as one, their other operands stacked.

    Before:

        %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
        %z = algebra.scope (m: 8, n: 2) sum (k: 4) %a[m, k] * %c[k, n] : tensor<8x2xf32>

    After, users of %z reading %y at [m, n + 3]:

        %y.0 = algebra.scope (i0: 4, i1: 5) %b[i0, i1] + %c[i0, i1 - 3] : tensor<4x5xf32>
        %y = algebra.scope (i0: 8, i1: 5) sum (k0: 4) %a[i0, k0] * %y.0[k0, i1] : tensor<8x5xf32>
    """

    name = "algebra-merge-shared-operand"
    floats: ClassVar[Floats] = GUARDED
    first: str
    second: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge. Raises UserError where it does not apply."""
        _merge(op, self.first, self.second, side_by_side.merge_shared, self.name)


@dataclass(frozen=True)
class AlgebraMergeBatch(ModulePass):
    """Compute two products of equal extents as a batch of two.

    Before:

        %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
        %z = algebra.scope (m: 8, n: 3) sum (k: 4) %c[m, k] * %d[k, n] : tensor<8x3xf32>

    After, users of %z reading %y at [1, m, n] and those of %y at [0, m, n]; %y.0 and %y.1 hold both
    left and both right operands:

        %y = algebra.scope (i0: 2, i1: 8, i2: 3) sum (k0: 4) %y.0[i0, i1, k0] * %y.1[i0, k0, i2]
    """

    name = "algebra-merge-batch"
    floats: ClassVar[Floats] = ROUNDING
    first: str
    second: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge. Raises UserError where it does not apply."""
        _merge(op, self.first, self.second, side_by_side.merge_batch, self.name)


def _merge(module: ModuleOp, first: str, second: str, merge: side_by_side.Merge, name: str) -> None:
    one, other = find_scope(module, first), find_scope(module, second)
    lift = Lift(module)
    bodies = body_of(lift.scope(one)), body_of(lift.scope(other))
    made = None
    if bodies[0] is not None and bodies[1] is not None and one is not other:
        made = merge(bodies[0], bodies[1])
    if made is None:
        condition = rules.named(name.removeprefix("algebra-")).condition
        raise UserError("the rule does not apply", where=f"%{first}", hint=condition)
    merge_ops(module, one, other, made, lift.values)


def merge_ops(
    module: ModuleOp,
    one: ScopeOp,
    other: ScopeOp,
    made: side_by_side.Merger,
    values: dict[Source, SSAValue],
) -> list[ScopeOp]:
    """Replace two scopes by what they are read from. Returns the new scopes.

    Raises:
        UserError: one of them depends on the other.
    """
    block = list(one.parent_block().ops)  # pyright: ignore[reportOptionalMemberAccess]
    first, last = sorted((block.index(one), block.index(other)))
    early, late = block[first], block[last]
    wanted = {v.owner for v in late.operands}
    for op in reversed(block[first + 1 : last]):
        if op in wanted:
            wanted |= {v.owner for v in op.operands}
    if early in wanted:
        where = f"%{late.results[0].name_hint}"
        raise UserError("one of the two scopes depends on the other", where=where)
    for op in block[first + 1 : last]:
        if op in wanted:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(early))
    place = early if early is not one else None
    found = replace_op(module, one, made.first, values, place)
    return found + replace_op(module, other, made.second, values)


@dataclass(frozen=True)
class AlgebraMatch(ModulePass):
    """Write a scope in the form that a library kernel takes, with scopes that lay out its operands.

    `kernel` is a name of the iterator table, `number` counts its matches; by default the cheapest
    is taken (modelled).

    Before:

        %y = algebra.scope (n: 2, f: 3, h: 6) sum (c: 4, r: 3)
               %x[n, c, h + r - 1] * %k[f, c, r] : tensor<2x3x6xf32>

    After `algebra-match{at="y" kernel="gemm"}`, an im2col and a matrix product:

        %y.0 = algebra.scope (i0: 2, i1: 6, i2: 3, i3: 4) %x[i0, i3, i1 + i2 - 1]
        %y.1 = algebra.scope (i0: 2, i1: 6, i2: 3) sum (k0: 3, k1: 4)
                 %y.0[i0, i1, k0, k1] * %k[i2, k1, k0] : tensor<2x6x3xf32>
        %y = algebra.scope (n: 2, f: 3, h: 6) %y.1[n, h, f] : tensor<2x3x6xf32>
    """

    name = "algebra-match"
    floats: ClassVar[Floats] = GUARDED
    kernel: str
    number: int = -1
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Match. Raises UserError where the kernel does not compute the scope."""
        table = [k for k in library_kernels() if k.name == self.kernel]
        if not table:
            known = ", ".join(k.name for k in library_kernels())
            raise UserError(f"the iterator table has no '{self.kernel}'", hint=f"it has: {known}")

        def make(scope: ScopeOp, body: SumOfProducts) -> DerivationStep | None:
            found = matches(body.scope(), table)
            if self.number >= len(found):
                return None
            prices = ScopePrices(table=table)
            chosen = found[self.number] if self.number >= 0 else min(found, key=prices.match)
            return instantiate(chosen) if found else None

        apply_rule(op, self.at, make, f"{self.kernel} does not compute it")
