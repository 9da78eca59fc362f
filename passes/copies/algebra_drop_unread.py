"""algebra-drop-unread: compute only the places of a scope that its readers read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import Index, iterators, normalise, range_of
from ...dialects.program import main_of
from ...dialects.scalars import Expr, Read, map_reads
from ...dialects.types import Tensor, element_of, tensor, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm
from .algebra_inline_copies import copied


@dataclass(frozen=True)
class AlgebraDropUnread(ModulePass):
    """Restrict a scope to the places that other scopes read: a box, or every few places of one.

    What the scope itself reads is then restricted too. A slice after it is left with nothing to do
    and vanishes. Only for values that no output and no call reads. A convolution is restricted to a
    box, but keeps its stride: fewer of its algorithms have another one.

    Before:

        %p = algebra.scope (m: 256, n: 512) sum (k: 512) %a[m, k] * %b[k, n] : tensor<256x512xf32>
        %y = algebra.scope (m: 256, n: 8) max(%p[m, n + 4], 0.0) : tensor<256x8xf32>

    After:

        %p = algebra.scope (m: 256, n: 8) sum (k: 512) %a[m, k] * %b[k, n + 4] : tensor<256x8xf32>
        %y = algebra.scope (m: 256, n: 8) max(%p[m, n], 0.0) : tensor<256x8xf32>
    """

    name = "algebra-drop-unread"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Restrict, starting with the last scope: what its readers read is final by then."""
        constants = constant_values(op)
        for scope in reversed(list(main_of(op).body.block.ops)):
            if isinstance(scope, ScopeOp) and scope.result not in constants:
                _restrict(scope)


@dataclass(frozen=True)
class _Places:
    """The places `first + step * k` of a dim, for k in [0, count)."""

    first: int
    step: int
    count: int

    def of(self, k: Index) -> Index:
        return k * self.step + self.first

    def number(self, place: Index) -> Index:
        """The number k of one of these places; of others, a number outside."""
        moved, step = place - self.first, self.step
        return Index(moved.constant // step, tuple((atom, c // step) for atom, c in moved.terms))


def _restrict(scope: ScopeOp) -> None:
    readers = list(dict.fromkeys(use.operation for use in scope.result.uses))
    scopes = [op for op in readers if isinstance(op, ScopeOp)]
    if not readers or len(scopes) != len(readers) or 0 in scope.traversal:
        return
    convolution = match_conv(scope) is not None
    wanted = _places_read(scope, scopes, steps=not convolution)
    if math.prod(p.count for p in wanted) == math.prod(scope.traversal):
        return
    places = _keeping_kernel(scope, wanted)
    new = _at(scope, places)
    Rewriter.insert_op(new, InsertPoint.before(scope))
    for reader in scopes:
        _read_new(reader, scope.result, new.result, places)
    Rewriter.erase_op(scope)


def _keeping_kernel(scope: ScopeOp, wanted: Sequence[_Places]) -> list[_Places]:
    """The dims restricted one by one, as far as a scope with a library kernel keeps it."""
    found = [_Places(0, 1, size) for size in scope.traversal]
    library = _has_kernel(scope)
    for dim, places in enumerate(wanted):
        trial = [*found[:dim], places, *found[dim + 1 :]]
        new = _at(scope, trial)
        if not library or _has_kernel(new):
            found = trial
        new.drop_all_references()
    return found


def _has_kernel(scope: ScopeOp) -> bool:
    return match_gemm(scope) is not None or match_conv(scope) is not None


def _places_read(scope: ScopeOp, readers: Sequence[ScopeOp], *, steps: bool) -> list[_Places]:
    """For each dim, the places that any of the readers reads."""
    reads = [
        (read.index, reader.extents) for reader in readers for read in reader.reads_of(scope.result)
    ]
    return [
        _of_dim([(index[dim], extents) for index, extents in reads], size, steps)
        for dim, size in enumerate(scope.traversal)
    ]


def _of_dim(reads: Sequence[tuple[Index, tuple[int, ...]]], size: int, steps: bool) -> _Places:
    """The least box with all places that are read, and the largest step that meets them all."""
    ranges = [range_of(e, extents) for e, extents in reads]
    first, last = min(low for low, _ in ranges), max(high for _, high in ranges)
    step = 1
    if steps and first >= 0 and last < size and not any(e.has_floor for e, _ in reads):
        moves = [c for e, extents in reads for k, c in e.terms if extents[k] > 1]  # pyright: ignore
        step = math.gcd(*moves, *(low - first for low, _ in ranges)) or 1
    first, last = min(max(first, 0), size - 1), max(min(last, size - 1), 0)
    return _Places(first, step, (last - first) // step + 1)


def _at(scope: ScopeOp, places: Sequence[_Places]) -> ScopeOp:
    """The scope at these places; it is in no block."""
    rank, shape = len(places), [p.count for p in places]
    own = [p.of(k) for p, k in zip(places, iterators(rank), strict=True)]
    images = [*own, *iterators(len(scope.summation), rank)]
    extents = (*shape, *scope.summation)

    def moved(read: Read) -> Read:
        index = (e.substitute(images) for e in read.index)
        plain = tuple(normalise(e, extents) if e.has_floor else e for e in index)
        return Read(read.source, plain, read.outside)

    type_ = tensor(shape, element_of(scope.result))
    return _like(scope, type_, map_reads(scope.expr(), moved))


def _like(scope: ScopeOp, type_: Tensor, expr: Expr) -> ScopeOp:
    """A scope with another result or body; it is in no block."""
    new = ScopeOp(type_, expr, scope.summation, scope.reduction.data, scope.names)
    new.attributes |= scope.attributes
    new.location = scope.location
    new.result.name_hint = scope.result.name_hint
    return new


def _read_new(reader: ScopeOp, old: SSAValue, new: SSAValue, places: Sequence[_Places]) -> None:
    """Let a reader read the restricted value; a reader that only copies all of it is dropped."""

    def moved(read: Read) -> Read:
        if read.source is not old:
            return read
        index = tuple(p.number(e) for p, e in zip(places, read.index, strict=True))
        return Read(new, index, read.outside)

    late = _like(reader, tensor_type(reader.result), map_reads(reader.expr(), moved))
    if _is_whole(late, new):
        late.drop_all_references()
        new.name_hint = reader.result.name_hint
        Rewriter.replace_op(reader, [], [new])
        return
    Rewriter.replace_op(reader, late)


def _is_whole(scope: ScopeOp, value: SSAValue) -> bool:
    """Whether a scope copies a value as it is."""
    read = copied(scope)
    if read is None or read.source is not value or scope.result.type != value.type:
        return False
    pairs = zip(read.index, iterators(len(scope.traversal)), strict=True)
    return all(normalise(a - b, scope.extents) == Index(0) for a, b in pairs)
