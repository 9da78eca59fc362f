"""algebra-sink-copies: move elementwise work before a reordering copy, so that copies meet."""

from __future__ import annotations

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
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_of, shape_of, tensor
from .algebra_inline_copies import copied

RULE = "sink-copies"


@dataclass(frozen=True)
class AlgebraSinkCopies(ModulePass):
    """Compute an elementwise scope before the copy that reorders its operand.

    The copy then comes after it. There the next copy may undo it (`algebra-inline-copies`), and the
    elementwise scope becomes the epilogue of the operand's kernel. Only for copies with no other
    reader that `algebra-inline-copies` keeps (their index has floors). Other operands must be
    indexed by dims that the copy keeps, as a bias is.

    Before:

        %t = algebra.scope (f: 8, h: 6) %x[h mod 2, f, h floordiv 2] : tensor<8x6xf32>
        %y = algebra.scope (f: 8, h: 6) max(%t[f, h] + %b[f], 0.0) : tensor<8x6xf32>

    After:

        %0 = algebra.scope (i0: 2, i1: 8, i2: 3) max(%x[i0, i1, i2] + %b[i1], 0.0)
        %y = algebra.scope (f: 8, h: 6) %0[h mod 2, f, h floordiv 2] : tensor<8x6xf32>
    """

    name = "algebra-sink-copies"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Sink."""
        for scope in list(main_of(op).body.block.ops):
            if isinstance(scope, ScopeOp) and scope.is_pointwise and copied(scope) is None:
                _sink(scope)


def _sink(scope: ScopeOp) -> None:
    for read in scope.reads():
        copy = read.source.owner
        if not isinstance(copy, ScopeOp) or not _is_plain(read, scope):
            continue
        moved = copied(copy)
        if moved is None or not _reorders(copy, moved) or len(list(copy.result.uses)) > 1:
            continue
        images = _images(moved, scope)
        others = [r for r in scope.reads() if r != read]
        if any(r.source is copy.result or not _fits(r, images) for r in others):
            continue
        _replace(scope, copy, read, moved, images)
        return


def _is_plain(read: Read, scope: ScopeOp) -> bool:
    """Whether the scope reads exactly its own position, from an equal shape."""
    own = tuple(iterators(len(scope.traversal)))
    return read.index == own and shape_of(read.source) == scope.traversal


def _reorders(copy: ScopeOp, moved: Read) -> bool:
    """Whether it is a copy that is kept and reads only inside its source."""
    return any(e.has_floor for e in moved.index) and in_bounds(moved, copy.extents)


def _images(moved: Read, scope: ScopeOp) -> dict[int, Index]:
    """For each of the scope's iterators that the copy keeps as a dim, the source's iterator."""
    shape = shape_of(moved.source)
    found: dict[int, Index] = {}
    for dim, index in enumerate(moved.index):
        for k, extent in enumerate(scope.traversal):
            if index is Index.iterator(k) and shape[dim] == extent:
                found[k] = Index.iterator(dim)
    return found


def _fits(read: Read, images: dict[int, Index]) -> bool:
    return all(k in images for e in read.index for k in e.iterators)


def _replace(
    scope: ScopeOp, copy: ScopeOp, read: Read, moved: Read, images: dict[int, Index]
) -> None:
    """Compute over the copy's source, and copy the result."""
    shape = shape_of(moved.source)
    table = [images.get(k, Index(0)) for k in range(len(scope.traversal))]

    def before(one: Read) -> Read:
        if one == read:
            return Read(moved.source, tuple(iterators(len(shape))))
        return Read(one.source, tuple(e.substitute(table) for e in one.index), one.outside)

    type_ = tensor(shape, element_of(scope.result))
    early = ScopeOp(type_, map_reads(scope.expr(), before))
    Rewriter.insert_op(early, InsertPoint.before(scope))
    early.location = scope.location
    add_provenance(early, [RULE])
    late = ScopeOp(scope.result.type, Read(early.result, moved.index), names=scope.names)
    late.attributes |= scope.attributes
    late.location = scope.location
    late.result.name_hint = scope.result.name_hint
    Rewriter.replace_op(scope, late)
    Rewriter.erase_op(copy)
