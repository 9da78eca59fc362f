"""Write mutants into a program: at one scope, or at several that become parts of one product."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_scope import scope
from ...dialects.canonical_types import Leaf, Scope, Source
from ...dialects.errors import UserError
from ...dialects.program import main_of
from ...dialects.weights_only import weights_only
from ..copies.algebra_gather_sums import added_contractions
from ..derivation.apply_steps import replace_op
from ..derivation.lift import MUTATED, Lift, scope_ops
from ..derivation.step import DerivationStep
from ..equivalence.inline import Inliner
from .search import Candidate

RULE = MUTATED


def lifted(module: ModuleOp, ops: Sequence[ScopeOp]) -> tuple[list[Scope], Lift]:
    """Canonical forms by position, so that equal ops have equal forms; their operands are leaves.

    A scope that adds contractions is one expression with them.
    """
    given, lift = as_given(module, ops)
    pairs = zip(ops, given, strict=True)
    return [_in_one(root) if added_contractions(op) else root for op, root in pairs], lift


def as_given(module: ModuleOp, ops: Sequence[ScopeOp]) -> tuple[list[Scope], Lift]:
    """The same, but a scope that adds contractions reads them: the form that runs."""
    known = weights_only(main_of(module).body.block.ops)
    inside = [part for op in ops for part in added_contractions(op)]
    lift = Lift(module, inside.__contains__, constants=known, positional=True)
    return [lift.scope(op) for op in ops], lift


def windowed(ops: Sequence[ScopeOp]) -> list[ScopeOp]:
    """The contractions of ops: the addends of an op that adds them, else the op itself."""
    return [part for op in ops for part in added_contractions(op) or [op]]


def _in_one(root: Scope) -> Scope:
    return scope(root.shape, root.element, Inliner().inline_scope(root))


def apply_to(module: ModuleOp, ops: Sequence[ScopeOp], candidate: Candidate) -> list[ScopeOp]:
    """Replace ops by a candidate for their scopes. Returns the new scopes, in order.

    Raises:
        UserError: one of the ops depends on another; nothing is changed.
    """
    _, lift = lifted(module, ops)
    order = list(main_of(module).body.block.ops)
    pairs = sorted(zip(ops, candidate.results, strict=True), key=lambda one: order.index(one[0]))
    _bring_together([op for op, _ in pairs], order)
    before, parts = set(scope_ops(module)), [part for op in ops for part in added_contractions(op)]
    values: dict[Source, SSAValue] = {
        source: v for source, v in lift.values.items() if isinstance(source, Leaf)
    }
    for op, result in pairs:
        replace_op(module, op, DerivationStep(RULE, result), values)
    for part in parts:
        if not part.result.uses:
            Rewriter.erase_op(part)
    return [op for op in scope_ops(module) if op not in before]


def _bring_together(ops: Sequence[ScopeOp], order: Sequence[Operation]) -> None:
    """Move the dependencies of later ops before the first op, where the shared product will be.

    Raises:
        UserError: one of the ops depends on another.
    """
    first, last = order.index(ops[0]), order.index(ops[-1])
    wanted: set[object] = {v.owner for op in ops[1:] for v in op.operands}
    moved: list[Operation] = []
    for op in reversed(order[first:last]):
        if op not in wanted:
            continue
        if op in ops:
            where = f"%{op.results[0].name_hint}"
            raise UserError("one of the scopes depends on another", where=where)
        wanted |= {v.owner for v in op.operands}
        moved.append(op)
    for op in reversed(moved):
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(ops[0]))
