"""merge-parts: products of neighbouring parts of one tensor as one batch.

Each part has an operand of its own, and those are stacked; the parts are read where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...dialects.canonical_scope import add, collect, normal
from ...dialects.canonical_types import ONE, Guard, Read, Scope, scope
from ...dialects.index import Index, iterators
from .body import SumOfProducts, build, renaming
from .side_by_side import Merger, correspondence
from .step import DerivationStep

PARTS = "merge-parts"


def merge_parts(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    """Compute products of parts of one tensor as a batch; the first may be a batch of such.

    The parts follow one another at equal distances; all extents agree, but that of the batch.

    Before:

        %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
        %z = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k + 4] * %c[k, n] : tensor<8x3xf32>

    After, users of %z reading %y at [1, m, n] and those of %y at [0, m, n]; %y.0 holds %b and %c:

        %y = algebra.scope (i0: 2, i1: 8, i2: 3) sum (k0: 4) %a[i1, k0 + 4 * i0] * %y.0[i0, k0, i2]
    """
    if first.coefficient != second.coefficient or first.guards or second.guards:
        return None
    for one in _views(first, second.rank):
        for b, other in (second.reads, second.reads[::-1]) if len(second.reads) == 2 else ():
            made = _appended(one, second, b, other)
            if made is not None:
                return made
    return None


def may_be_parts(first: SumOfProducts, second: SumOfProducts) -> bool:
    """A quick test: the second's extents are the first's, up to a batch's in front."""
    more = first.rank - second.rank
    return more in (0, 1) and sorted(first.extents[more:]) == sorted(second.extents)


@dataclass(frozen=True)
class BatchView:
    """A product as a batch, perhaps of one.

    Attributes:
        inner: one member of it; the place of its part is left out.
        steps: how far the part moves from one member to the next, in each dim of the tensor; None
            for a batch of one.
        start: where the first part begins.
    """

    count: int
    inner: SumOfProducts
    part: Read
    own: Read
    steps: tuple[int, ...] | None
    start: tuple[int, ...]
    stacked: bool


def _views(body: SumOfProducts, rank: int) -> Iterator[BatchView]:
    """A product as one member, or as a batch of as many as its first dim has."""
    for part, own in (body.reads, body.reads[::-1]) if len(body.reads) == 2 else ():
        start = tuple(e.constant for e in part.index)
        if body.rank == rank:
            yield BatchView(1, _member(body, part, own, 0), part, own, None, start, False)
        elif own.index and own.index[0] == Index.iterator(0):
            steps = tuple(e.coefficient(0) for e in part.index)
            moved = [Index.iterator(0) * step for step in steps]
            rest = [e - by for e, by in zip(part.index, moved, strict=True)]
            alone = not any(0 in e.iterators for e in (*rest, *own.index[1:]))
            if alone and any(steps) and own.source.shape[0] == body.shape[0]:
                inner = _member(body, part, own, 1)
                yield BatchView(body.shape[0], inner, part, own, steps, start, True)


def _member(body: SumOfProducts, part: Read, own: Read, batch: int) -> SumOfProducts:
    """One member of a batch, its part at the beginning of the tensor."""
    images = renaming(len(body.extents), range(batch, len(body.extents)))
    moved = tuple(e.substitute(images) for e in _unplaced(part))
    index = tuple(e.substitute(images) for e in own.index[batch:])
    # Only indices are compared: what is read of a stack of operands is one of them.
    factors = Read(part.source, moved), Read(part.source, index)
    return replace(body, shape=body.shape[batch:], factors=factors)


def _unplaced(read: Read) -> list[Index]:
    return [e - e.constant for e in read.index]


def _appended(one: BatchView, second: SumOfProducts, b: Read, other: Read) -> Merger | None:
    """The batch with one member more."""
    source = one.part.source
    shape = one.own.source.shape[1 if one.stacked else 0 :]
    if b.source is not source or other.source.shape != shape:
        return None
    if other.source.element != one.own.source.element:
        return None
    bare = Read(source, tuple(_unplaced(b))), Read(source, other.index)
    alone = replace(second, factors=bare)
    reads = list(zip(one.inner.factors, bare, strict=True))
    pairs = correspondence(one.inner, alone, reads)  # pyright: ignore[reportArgumentType]
    if pairs is None:
        return None
    if any(one.inner.extents[k] != second.extents[j] for k, j in pairs.items()):
        return None
    apart = [f.constant - at for f, at in zip(b.index, one.start, strict=True)]
    steps = one.steps or tuple(apart)
    if not any(steps) or apart != [step * one.count for step in steps]:
        return None
    new = grown_batch(one, other, steps)
    here = iterators(one.inner.rank)
    there = [here[pairs[k]] for k in range(one.inner.rank)]
    first = iterators(one.inner.rank + 1) if one.stacked else [Index(0), *here]
    return Merger(
        new,
        DerivationStep(PARTS, new, (), tuple(first)),
        DerivationStep(PARTS, new, (), (Index(one.count), *there)),
    )


def grown_batch(one: BatchView, other: Read, steps: Sequence[int]) -> Scope:
    """The scope of the batch with one member more."""
    which, count = Index.iterator(0), one.count + 1
    moved = iterators(len(one.inner.extents), 1)
    unplaced, index = one.inner.reads
    places = zip(unplaced.index, one.start, steps, strict=True)
    part = Read(
        one.part.source,
        tuple(e.substitute(moved) + at + which * step for e, at, step in places),
    )
    inside = other.source.shape
    within = tuple(iterators(len(inside), 1))
    shape = (count, *inside)
    last = (ONE, (), (Read(other.source, within), Guard(which - one.count, 1)))
    if one.stacked:
        before = (ONE, (), (Read(one.own.source, (which, *within)),))
    else:
        before = (ONE, (), (Read(one.own.source, within), Guard(which, 1)))
    parts = [collect(normal(made, shape)) for made in (before, last)]
    stacked = scope(shape, other.source.element, add(*parts))
    own = Read(stacked, (which, *(e.substitute(moved) for e in index.index)))
    inner = one.inner
    return build((count, *inner.shape), inner.sums, (part, own), inner.element, inner.coefficient)
