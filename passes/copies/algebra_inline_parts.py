"""algebra-inline-parts: compute an elementwise scope where its parts are read."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import iterators
from ...dialects.program import main_of
from ...dialects.scalars import Expr, Read, map_reads
from ...dialects.types import shape_of, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from .algebra_inline_copies import copied

# A scope in so many parts is stored: its expression would stand in all of them.
MAX_PARTS = 16

Box: TypeAlias = "list[range]"
"""The positions that a read takes, a range of each dim."""


@dataclass(frozen=True)
class AlgebraInlineParts(ModulePass):
    """Compute an elementwise scope in the elementwise scopes that read parts of it.

    No part may overlap another: each place is computed once, as before, but not stored. A scope
    that is the epilogue of a product stays, where it is computed at no cost.

    Before:

        %s = algebra.scope (m: 4, n: 6) %x[m, n] + %y[m, n] : tensor<4x6xf32>
        %p = algebra.scope (m: 4, n: 3) tanh(%s[m, n]) : tensor<4x3xf32>
        %q = algebra.scope (m: 4, n: 3) exp(%s[m, n + 3]) : tensor<4x3xf32>

    After:

        %p = algebra.scope (m: 4, n: 3) tanh(%x[m, n] + %y[m, n]) : tensor<4x3xf32>
        %q = algebra.scope (m: 4, n: 3) exp(%x[m, n + 3] + %y[m, n + 3]) : tensor<4x3xf32>
    """

    name = "algebra-inline-parts"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline, starting with the last scope: what it reads may then be read in parts, too."""
        constants = constant_values(op)
        scopes = [s for s in main_of(op).body.block.ops if isinstance(s, ScopeOp)]
        epilogues: set[ScopeOp] = set()
        for scope in scopes:
            if _is_epilogue(scope, epilogues):
                epilogues.add(scope)
        for scope in reversed(scopes):
            if scope.result not in constants and scope not in epilogues:
                _inline(scope)


def _inline(scope: ScopeOp) -> None:
    if not scope.is_pointwise or copied(scope) is not None:
        return
    readers = list(dict.fromkeys(use.operation for use in scope.result.uses))
    scopes = [op for op in readers if isinstance(op, ScopeOp) and op.is_pointwise]
    reads = [(s, r) for s in scopes for r in s.reads() if r.source is scope.result]
    if len(scopes) != len(readers) or not 1 < len(reads) <= MAX_PARTS:
        return
    boxes = [_box(read, reader.traversal) for reader, read in reads]
    found = [box for box in boxes if box is not None]
    pairs = itertools.combinations(found, 2)
    if len(found) < len(boxes) or any(_meet(a, b) for a, b in pairs):
        return
    for reader in scopes:
        _replace(reader, scope)
    Rewriter.erase_op(scope)


def _is_epilogue(scope: ScopeOp, epilogues: Container[ScopeOp]) -> bool:
    """Whether a scope reads all of a reduction or of its epilogue, which nothing else reads."""
    own = tuple(iterators(len(scope.traversal)))
    return any(
        isinstance(owner := read.source.owner, ScopeOp)
        and read.index == own
        and owner.traversal == scope.traversal
        and all(use.operation is scope for use in read.source.uses)
        and (bool(owner.summation) or owner in epilogues)
        for read in scope.reads()
    )


def _box(read: Read, traversal: Sequence[int]) -> Box | None:
    """The positions of a read inside its source, each met once; None where that is not plain."""
    shape, used = shape_of(read.source), set[int]()
    found: Box = []
    for index, size in zip(read.index, shape, strict=True):
        terms = index.terms
        if len(terms) > 1 or any(not isinstance(k, int) or c != 1 for k, c in terms):
            return None
        own = [k for k, _ in terms if isinstance(k, int)]
        count = traversal[own[0]] if own else 1
        if used & {*own} or index.constant < 0 or index.constant + count > size:
            return None
        used |= {*own}
        found.append(range(index.constant, index.constant + count))
    return found if all(k in used for k, n in enumerate(traversal) if n > 1) else None


def _meet(one: Box, other: Box) -> bool:
    """Whether two boxes share a position."""
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))


def _replace(reader: ScopeOp, scope: ScopeOp) -> None:
    """Let a reader compute what it reads of a scope."""
    value = scope.result

    def computed(read: Read) -> Expr:
        return _at(scope, read) if read.source is value else read

    expr = map_reads(reader.expr(), computed)
    new = ScopeOp(tensor_type(reader.result), expr, names=reader.names)
    new.attributes |= reader.attributes
    new.location = reader.location
    new.result.name_hint = reader.result.name_hint
    Rewriter.replace_op(reader, new)


def _at(scope: ScopeOp, read: Read) -> Expr:
    """What a scope computes at the place that is read."""

    def moved(inner: Read) -> Read:
        index = tuple(e.substitute(read.index) for e in inner.index)
        return Read(inner.source, index, inner.outside)

    return map_reads(scope.expr(), moved)
