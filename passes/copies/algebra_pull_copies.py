"""algebra-pull-copies: compute elementwise scopes in their reader's order, so that copies meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import Index, iterators
from ...dialects.program import add_provenance, main_of
from ...dialects.scalars import Read, map_reads
from ...dialects.types import element_of, tensor
from .algebra_inline_copies import copied

RULE = "pull-copies"


@dataclass(frozen=True)
class AlgebraPullCopies(ModulePass):
    """Compute an elementwise scope in the order in which its one reader, elementwise too, reads it.

    The reader then reads it in its own order, and the transpose moves to the scope's operand.
    There it cancels with an inverse transpose: two transposes that undo each other vanish, however
    many elementwise scopes are between them. Applies only if the scope has one operand of its own
    rank, so that no transpose becomes two. `algebra-inline-copies` then reads through the remaining
    copies in plain order.

    Before:

        %r = algebra.scope (i: 4, j: 8) max(%x[j, i] + %b[i], 0.0) : tensor<4x8xf32>
        %y = algebra.scope (j: 8, i: 4) %r[i, j] : tensor<8x4xf32>

    After:

        %r = algebra.scope (i0: 8, i1: 4) max(%x[i0, i1] + %b[i1], 0.0) : tensor<8x4xf32>
        %y = algebra.scope (j: 8, i: 4) %r[j, i] : tensor<8x4xf32>
    """

    name = "algebra-pull-copies"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Pull, starting with the last op: the readers of an op have their final order by then."""
        for scope in reversed(list(main_of(op).body.block.ops)):
            if isinstance(scope, ScopeOp) and scope.is_pointwise and copied(scope) is None:
                _pull(scope)


def _pull(scope: ScopeOp) -> None:
    users = {use.operation for use in scope.result.uses}
    reader = next(iter(users), None)
    if len(users) != 1 or not isinstance(reader, ScopeOp) or not reader.is_pointwise:
        return
    orders = {read.index for read in reader.reads() if read.source is scope.result}
    order = _completed(next(iter(orders)), reader.traversal)
    if len(orders) != 1 or not _permutes(order, scope.traversal, reader.traversal):
        return
    if sum(len(read.index) == len(scope.traversal) for read in scope.reads()) != 1:
        return
    _reorder(scope, reader, order)


def _completed(order: Sequence[Index], wanted: Sequence[int]) -> list[Index]:
    """The index with iterators of extent 1, which are written 0, restored."""
    own = iterators(len(wanted))
    idle = [e for e, n in zip(own, wanted, strict=True) if n == 1 and e not in order]
    return [idle.pop(0) if e == Index(0) and idle else e for e in order]


def _permutes(order: Sequence[Index], shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether these are all iterators over `wanted`, each indexing a whole dim of the shape."""
    own = iterators(len(wanted))
    if list(order) == own or len(order) != len(own) or set(order) != set(own):
        return False
    return all(wanted[own.index(e)] == n for e, n in zip(order, shape, strict=True))


def _reorder(scope: ScopeOp, reader: ScopeOp, order: Sequence[Index]) -> None:
    def moved(read: Read) -> Read:
        return Read(read.source, tuple(e.substitute(order) for e in read.index), read.outside)

    type_ = tensor(reader.traversal, element_of(scope.result))
    early = ScopeOp(type_, map_reads(scope.expr(), moved))
    early.attributes |= scope.attributes
    early.location = scope.location
    early.result.name_hint = scope.result.name_hint
    add_provenance(early, [RULE])
    Rewriter.insert_op(early, InsertPoint.before(scope))
    here = tuple(iterators(len(reader.traversal)))

    def plain(read: Read) -> Read:
        return Read(early.result, here, read.outside) if read.source is scope.result else read

    late = ScopeOp(reader.result.type, map_reads(reader.expr(), plain), names=reader.names)
    late.attributes |= reader.attributes
    late.location = reader.location
    late.result.name_hint = reader.result.name_hint
    Rewriter.replace_op(reader, late)
    Rewriter.erase_op(scope)
