"""algebra-gather-sums: collect added contractions in a scope of their own, for searches."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import scalars
from ...dialects.algebra import ScopeOp
from ...dialects.errors import UserError
from ...dialects.floats import ROUNDING, Floats
from ...dialects.index import iterators
from ...dialects.program import add_provenance, main_of
from ...dialects.scalars import factors
from ...dialects.types import shape_of, tensor_type
from ...dialects.weights_only import weights_only
from ..derivation.apply_steps import find_scope
from ..derivation.lift import fresh_name, names_in

RULE = "gather-sums"


@dataclass(frozen=True)
class AlgebraGatherSums(ModulePass):
    """Add contractions in a separate scope if only one elementwise scope reads them.

    A search can replace such a scope with all its products: `algebra-mutate` looks for one product
    that computes all of it (two convolutions and their sum as one convolution of images side by
    side). Scopes that add a bias to a contraction are inlined into the elementwise
    scope. With `at` only the scope of that name is changed.

    Before:

        %a = algebra.scope (m: 8, n: 6) sum (k: 4) %x[m, k] * %u[k, n]
        %b = algebra.scope (m: 8, n: 6) sum (k: 5) %h[m, k] * %v[k, n]
        %y = algebra.scope (m: 8, n: 6) max(%a[m, n] + %c[n] + %b[m, n], 0.0)

    After:

        %a = algebra.scope (m: 8, n: 6) sum (k: 4) %x[m, k] * %u[k, n]
        %b = algebra.scope (m: 8, n: 6) sum (k: 5) %h[m, k] * %v[k, n]
        %y.sum.0 = algebra.scope (m: 8, n: 6) %a[m, n] + %b[m, n]
        %y = algebra.scope (m: 8, n: 6) max(%y.sum.0[m, n] + %c[n], 0.0)
    """

    name = "algebra-gather-sums"
    floats: ClassVar[Floats] = ROUNDING
    at: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Collect the contractions. Raises UserError if the named scope adds none."""
        if not self.at:
            collect_all(op)
        elif collect_contractions(op, find_scope(op, self.at)) is None:
            hint = "it must add two contractions that nothing else reads"
            raise UserError("there is no sum to gather", where=f"%{self.at}", hint=hint)


def collect_all(module: ModuleOp) -> list[ScopeOp]:
    """Collect every sum of contractions; the scopes that only add them, new or not, in order."""
    ops = [op for op in main_of(module).body.block.ops if isinstance(op, ScopeOp)]
    found = [collect_contractions(module, op) for op in ops if op.parent is not None]
    return [made for made in found if made is not None]


def collect_contractions(module: ModuleOp, op: ScopeOp) -> ScopeOp | None:
    """Give the contractions that a scope adds a scope of their own; None if it adds none.

    A scope that does nothing else is returned as it is.
    """
    if not op.is_pointwise:
        return None
    if added_contractions(op):
        return op
    biased = [inner for read in op.reads() if (inner := _biased(read, op)) is not None]
    whole = scalars.map_reads(op.expr(), lambda read: _inlined(read, biased))
    if all(len(_parts(total, op, set())) < 2 for total in _sums(whole)):
        return None  # most scopes end here, before the walk over the whole program
    weights_only_values = weights_only(main_of(module).body.block.ops)
    sums = [(total, _parts(total, op, weights_only_values)) for total in _sums(whole)]
    total, parts = next(((t, p) for t, p in sums if len(p) > 1), (None, []))
    if total is None:
        return None
    rest = [e for e in _addends(total) if e not in parts]
    added = ScopeOp(tensor_type(op.result), reduce(operator.add, parts), names=op.names)
    added.result.name_hint = fresh_name(names_in(module), f"{op.result.name_hint or 'scope'}.sum")
    here = scalars.Read(added.result, tuple(iterators(len(op.traversal))))
    expr = _replaced(whole, total, reduce(operator.add, rest, here))
    new = ScopeOp(tensor_type(op.result), expr, names=op.names)
    new.attributes |= op.attributes
    new.result.name_hint = op.result.name_hint
    for made in (added, new):
        made.location = op.location
        add_provenance(made, [RULE])
    Rewriter.insert_op(added, InsertPoint.before(op))
    Rewriter.replace_op(op, new)
    for inner in biased:
        if not inner.result.uses:
            Rewriter.erase_op(inner)
    return added


def added_contractions(op: ScopeOp) -> list[ScopeOp]:
    """The contractions that a scope only adds; empty if it does anything else."""
    if not op.is_pointwise:
        return []
    made = [_read_alone(expr, op) for expr in _addends(op.expr())]
    found = [owner for owner in made if owner is not None and _is_contraction(owner)]
    return found if len(set(found)) == len(made) > 1 else []


def _parts(
    expr: scalars.Expr, op: ScopeOp, weights_only_values: set[SSAValue]
) -> list[scalars.Expr]:
    """The addends that are contractions, occur once, and have no other reader."""
    every = _addends(expr)
    made = [(e, _read_alone(e, op)) for e in every if every.count(e) == 1]
    return [
        e
        for e, o in made
        if o is not None and o.result not in weights_only_values and _is_contraction(o)
    ]


def _is_contraction(op: ScopeOp) -> bool:
    """Whether a scope sums a product of two reads or more."""
    return bool(op.summation) and op.reduction.data == "sum" and len(factors(op.expr()) or ()) > 1


def _biased(read: scalars.Read, op: ScopeOp) -> ScopeOp | None:
    """The elementwise scope behind a read, if it adds a contraction and has no other reader."""
    owner = _read_alone(read, op)
    if owner is None or not owner.is_pointwise:
        return None
    made = [_read_alone(expr, owner) for expr in _addends(owner.expr())]
    adds = len(made) > 1 and any(o is not None and _is_contraction(o) for o in made)
    return owner if adds else None


def _inlined(read: scalars.Read, inner: Sequence[ScopeOp]) -> scalars.Expr:
    """The formula of the scope that is read, if it is one of `inner`; else the read."""
    owner = read.source.owner
    return owner.expr() if isinstance(owner, ScopeOp) and owner in inner else read


def _read_alone(expr: scalars.Expr, op: ScopeOp) -> ScopeOp | None:
    """The scope of the same positions that is read here, if nothing else reads it."""
    if not isinstance(expr, scalars.Read) or not isinstance(expr.source.owner, ScopeOp):
        return None
    own = tuple(iterators(len(op.traversal)))
    plain = expr.index == own and shape_of(expr.source) == op.traversal
    return expr.source.owner if plain and len(list(expr.source.uses)) == 1 else None


def _sums(expr: scalars.Expr) -> list[scalars.Expr]:
    """The outermost sums in an expression, none contained in another."""
    if isinstance(expr, scalars.Call):
        return [expr] if expr.function == "add" else [s for a in expr.args for s in _sums(a)]
    return []


def _addends(expr: scalars.Expr) -> list[scalars.Expr]:
    if isinstance(expr, scalars.Call) and expr.function == "add":
        return [e for arg in expr.args for e in _addends(arg)]
    return [expr]


def _replaced(expr: scalars.Expr, old: scalars.Expr, new: scalars.Expr) -> scalars.Expr:
    if expr == old:
        return new
    if isinstance(expr, scalars.Call):
        return scalars.Call(expr.function, tuple(_replaced(a, old, new) for a in expr.args))
    return expr
