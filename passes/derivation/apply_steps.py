"""Apply derivation steps to a program, for a user's rule or a search: replace ops, rewrite readers.

The steps come from `algebra-apply-rule` (apply_rule.py) or from what a search found (replay.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import scalars
from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.canonical_types import Source
from ...dialects.errors import UserError, did_you_mean
from ...dialects.index import Index, iterators, normalise
from ...dialects.program import add_provenance
from ...dialects.types import element_of, tensor, tensor_type
from .body import guards_of
from .lift import fresh_name, names_in, scope_names, write
from .side_by_side import Merger
from .step import DerivationStep


def find_scope(module: ModuleOp, name: str) -> ScopeOp:
    """The scope whose result has that printed name.

    Raises:
        UserError: there is none.
    """
    ops = {known: op for op, known in scope_names(module).items()}
    if name in ops:
        return ops[name]
    known = ", ".join(f"%{n}" for n in ops)
    hint = did_you_mean(name, ops) or f"scopes of @main: {known or 'none'}"
    raise UserError(f"no scope is named %{name}", hint=hint)


def replace_op(
    module: ModuleOp,
    op: ScopeOp,
    step: DerivationStep,
    values: dict[Source, SSAValue],
    place: Operation | None = None,
) -> list[ScopeOp]:
    """Compute an op as the step says. Returns the new scopes; the last one replaces the op.

    Args:
        values: of the sources that the step's scope reads; values of new scopes are added.
        place: where new ops go, before it; by default before the op itself.
    """
    taken = names_in(module)
    name = op.result.name_hint or "scope"
    ops, value, made = write(step.new, values)
    Rewriter.insert_op(ops, InsertPoint.before(op if place is None else place))
    for inner in made[:-1]:
        inner.result.name_hint = fresh_name(taken, name)
    for new in made:
        _inherit(new, op, step.rule)
    if step.image is None and step.new.shape == op.traversal:
        op.result.replace_all_uses_with(value)
    else:
        _move_readers(op, step, value)
        if op.result.uses:
            wrapper = _wrapper(op, step, value)
            Rewriter.insert_op(wrapper, InsertPoint.before(op))
            op.result.replace_all_uses_with(wrapper.result)
            wrapper.result.name_hint = name
            if value.name_hint is None:
                value.name_hint = fresh_name(taken, name)
            _inherit(wrapper, op, step.rule)
            Rewriter.erase_op(op)
            return [*made, wrapper]
    value.name_hint = name if value.name_hint is None else value.name_hint
    Rewriter.erase_op(op)
    return made


def merge_ops(
    module: ModuleOp,
    one: ScopeOp,
    other: ScopeOp,
    made: Merger,
    values: dict[Source, SSAValue],
) -> list[ScopeOp]:
    """Replace two scopes by reads of one new scope. Returns the new scopes.

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


def _inherit(new: ScopeOp, old: ScopeOp, rule: str) -> None:
    new.location = old.location
    for key, attribute in old.attributes.items():
        new.attributes.setdefault(key, attribute)
    add_provenance(new, [rule])


def _move_readers(op: ScopeOp, step: DerivationStep, value: SSAValue) -> None:
    """Make every scope that reads the op read the new value, at its own coordinates."""
    for user in list(dict.fromkeys(use.operation for use in op.result.uses)):
        if not isinstance(user, ScopeOp):
            continue
        moved = _Mover(user, op, step, value)
        expr = scalars.map_reads(user.expr(), moved.read)
        if moved.refused:
            continue
        new = ScopeOp(
            tensor_type(user.result), expr, user.summation, user.reduction.data, user.names
        )
        new.attributes |= user.attributes
        new.location = user.location
        new.result.name_hint = user.result.name_hint
        Rewriter.insert_op(moved.ones, InsertPoint.before(user))
        Rewriter.replace_op(user, new)


class _Mover:
    """Rewrites one reader's reads."""

    def __init__(self, user: ScopeOp, op: ScopeOp, step: DerivationStep, value: SSAValue):
        self.user, self.op, self.step, self.value = user, op, step, value
        self.ones: list[OnesOp] = []
        self.refused = False

    def read(self, read: scalars.Read) -> scalars.Expr:
        if read.source is not self.op.result:
            return read
        extents = self.user.extents
        outside = guards_of(read.index, self.op.traversal, extents)
        if read.outside != 0.0 and outside:
            self.refused = True
            return read
        at = _image(self.step, read.index, extents)
        made: scalars.Expr = scalars.Read(self.value, at)
        for guard in [] if self.step.zero_beyond else outside:
            ones = OnesOp(tensor((guard.extent,), element_of(self.op.result)))
            self.ones.append(ones)
            made = made * scalars.Read(ones.result, (guard.index,))
        return made


def _image(
    step: DerivationStep, index: Sequence[Index], extents: Sequence[int]
) -> tuple[Index, ...]:
    if step.image is None:
        return tuple(index)
    return tuple(normalise(e.substitute(index), extents) for e in step.image)


def _wrapper(op: ScopeOp, step: DerivationStep, value: SSAValue) -> ScopeOp:
    """A copy with the old coordinates, for users that are not scopes."""
    here = iterators(len(op.traversal))
    at = _image(step, here, op.traversal)
    names = op.names[: len(op.traversal)]
    return ScopeOp(tensor_type(op.result), scalars.Read(value, at), names=names)
