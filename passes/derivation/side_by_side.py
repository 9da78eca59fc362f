"""Rules that compute two contractions as one: operands stacked, or a batch of the two.

The two must be alike: there is a bijection of their iterators under which their indices are equal,
except for the operands' names and, where operands are stacked, one extent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from ...dialects.canonical_scope import add, collect, factor, normal
from ...dialects.canonical_types import ONE, Expr, Guard, Read, Scope, Source, scope
from ...dialects.index import Index, iterators, normalise
from .basis import is_plain
from .body import Link, SumOfProducts, build, mapped, substituted, used_by
from .step import DerivationStep

SHARED = "merge-shared-operand"
BATCH = "merge-batch"

Pairs: TypeAlias = dict[int, int]
"""A map from the first scope's iterators to the second's."""


@dataclass(frozen=True)
class Merger:
    """Two scopes as parts of one: `step` (first, second) says how each reads `new`."""

    new: Scope
    first: DerivationStep
    second: DerivationStep


Merge: TypeAlias = Callable[[SumOfProducts, SumOfProducts], "Merger | None"]


def merge_shared(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    """Compute two products that share an operand as one, the other operands stacked.

    They are stacked along one dim of theirs, whose iterator the shared operand does not have; all
    other extents agree.

    Before:

        %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
        %z = algebra.scope (m: 8, n: 2) sum (k: 4) %a[m, k] * %c[k, n] : tensor<8x2xf32>

    After, users of %z reading %y at [m, n + 3]:

        %y.0 = algebra.scope (i0: 4, i1: 5) %b[i0, i1] + %c[i0, i1 - 3] : tensor<4x5xf32>
        %y = algebra.scope (i0: 8, i1: 5) sum (k0: 4) %a[i0, k0] * %y.0[k0, i1] : tensor<8x5xf32>
    """
    for one, two in _forms(first, second):
        if (made := _merge_shared(one, two)) is not None:
            return made
    return None


def _merge_shared(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    for (a, own), (b, other) in _pairings(first, second):
        if a.source is not b.source or own.source.element != other.source.element:
            continue
        pairs = correspondence(first, second, ((a, b), (own, other)))
        if pairs is None:
            continue
        for k in range(first.rank):
            if _stacks(first, second, own, other, pairs, k):
                return _stack(first, second, (a, own), other, pairs, k)
    return None


def merge_batch(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    """Compute two products of equal extents as a batch of two.

    Operands that are the same stay as they are, others are stacked along a new dim.

    Before:

        %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
        %z = algebra.scope (m: 8, n: 3) sum (k: 4) %c[m, k] * %d[k, n] : tensor<8x3xf32>

    After, users of %z reading %y at [1, m, n] and those of %y at [0, m, n]; %y.0 and %y.1 hold both
    left and both right operands:

        %y = algebra.scope (i0: 2, i1: 8, i2: 3) sum (k0: 4) %y.0[i0, i1, k0] * %y.1[i0, k0, i2]
    """
    if first.scope() is second.scope():
        return None
    for one, two in _forms(first, second):
        if (made := _merge_batch(one, two)) is not None:
            return made
    return None


def _merge_batch(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    for ones, others in _pairings(first, second):
        both = list(zip(ones, others, strict=True))
        if any(a.source.shape != b.source.shape for a, b in both):
            continue
        if any(a.source.element != b.source.element for a, b in both):
            continue
        pairs = correspondence(first, second, both)
        if pairs is None or any(first.extents[k] != second.extents[j] for k, j in pairs.items()):
            continue
        if all(a.source is b.source for a, b in both):
            continue
        return _batched(first, both, pairs)
    return None


MERGES: tuple[Merge, ...] = (merge_shared, merge_batch)


# --- whether two are alike ----------------------------------------------------------------------


def may_be_alike(first: SumOfProducts, second: SumOfProducts) -> bool:
    """Whether all extents but one are the same, up to their order: a quick test before a merger."""
    if first.rank != second.rank or len(first.extents) != len(second.extents):
        return False
    apart = Counter(first.extents) - Counter(second.extents)
    return apart.total() <= 1


def _forms(
    first: SumOfProducts, second: SumOfProducts
) -> Iterator[tuple[SumOfProducts, SumOfProducts]]:
    """The two scopes, and their private reads without the dims that a constant indexes."""
    yield first, second
    common = frozenset(r.source for r in first.reads) & {r.source for r in second.reads}
    forms = tuple(_squeezed(body, common) for body in (first, second))
    if forms != (first, second):
        yield forms[0], forms[1]


@lru_cache(maxsize=4096)
def _squeezed(body: SumOfProducts, common: frozenset[Source]) -> SumOfProducts:
    factors = [
        _squeezed_read(f) if isinstance(f, Read) and f.source not in common else f
        for f in body.factors
    ]
    return replace(body, factors=tuple(factors))


def _squeezed_read(read: Read) -> Read:
    kept = [dim for dim, e in enumerate(read.index) if e.terms]
    if len(kept) == len(read.index):
        return read
    index = list(read.index)
    for position, dim in enumerate(kept):
        index[dim] = Index.iterator(position)
    shape = [read.source.shape[dim] for dim in kept]
    source = build(shape, (), [Read(read.source, tuple(index))], read.source.element)
    return Read(source, tuple(read.index[dim] for dim in kept))


def _pairings(
    first: SumOfProducts, second: SumOfProducts
) -> Iterator[tuple[tuple[Read, Read], tuple[Read, Read]]]:
    """The two reads of each, in the orders in which they may correspond."""
    if len(first.reads) != 2 or len(second.reads) != 2 or first.rank != second.rank:
        return
    same = len(first.extents) == len(second.extents) and first.element == second.element
    if not same or first.coefficient != second.coefficient:
        return
    if len(first.guards) != len(second.guards):
        return
    (a, own), (b, other) = first.reads, second.reads
    yield (a, own), (b, other)
    yield (a, own), (other, b)
    yield (own, a), (b, other)
    yield (own, a), (other, b)


def correspondence(
    first: SumOfProducts, second: SumOfProducts, reads: Sequence[tuple[Read, Read]]
) -> Pairs | None:
    """The bijection under which these reads have equal indices, and the guards."""
    rows: list[tuple[Index, Index]] = []
    for a, b in reads:
        if len(a.index) != len(b.index):
            return None
        rows += zip(a.index, b.index, strict=True)
    pairs: Pairs = {}
    for _ in rows:
        before = len(pairs)
        for e, f in rows:
            _pair(e, f, (first.rank, second.rank), pairs)
        if len(pairs) == before:
            break
    _pair_idle(first, second, pairs)
    if len(pairs) != len(first.extents) or len(set(pairs.values())) != len(pairs):
        return None
    if any((k < first.rank) != (j < second.rank) for k, j in pairs.items()):
        return None
    images = _images(pairs)
    if any(not _same(e.substitute(images), f, second) for e, f in rows):
        return None
    guards = {(normalise(g.index, second.extents), g.extent) for g in second.guards}
    moved = [substituted(g, images) for g in first.guards]
    found = {(normalise(g.index, second.extents), g.extent) for g in moved if isinstance(g, Guard)}
    return pairs if guards == found else None


def _pair(e: Index, f: Index, ranks: tuple[int, int], pairs: Pairs) -> None:
    """Pair unpaired iterators of one kind whose coefficients no other has: `2 * a + b` has two."""
    taken = set(pairs.values())
    left = [k for k in e.iterators if k not in pairs]
    right = [j for j in f.iterators if j not in taken]
    ours = [(e.coefficient(k), k < ranks[0]) for k in left]
    theirs = [(f.coefficient(j), j < ranks[1]) for j in right]
    for k, role in zip(left, ours, strict=True):
        if ours.count(role) == theirs.count(role) == 1:
            pairs[k] = right[theirs.index(role)]


def _pair_idle(first: SumOfProducts, second: SumOfProducts, pairs: Pairs) -> None:
    """Pair iterators of extent 1, which occur in no index, in order."""
    taken = set(pairs.values())
    for low, high in ((0, first.rank), (first.rank, len(first.extents))):
        left = [k for k in range(low, high) if k not in pairs and first.extents[k] == 1]
        right = [j for j in range(low, high) if j not in taken and second.extents[j] == 1]
        pairs |= dict(zip(left, right, strict=False))


def _same(e: Index, f: Index, second: SumOfProducts) -> bool:
    return normalise(e, second.extents) == normalise(f, second.extents)


def _images(pairs: Pairs) -> list[Index]:
    return [Index.iterator(pairs[k]) for k in range(len(pairs))]


# --- operands stacked ---------------------------------------------------------------------------


def _stacks(
    first: SumOfProducts, second: SumOfProducts, own: Read, other: Read, pairs: Pairs, along: int
) -> bool:
    """Whether the private operands can be stacked along the dim that `along` indexes."""
    here = Index.iterator(along)
    if own.index.count(here) != 1 or not is_plain(here):
        return False
    users = [f for f in first.factors if f is not own and along in used_by(f)]
    if users or sum(along in e.iterators for e in own.index) != 1:
        return False
    if any(first.extents[k] != second.extents[j] for k, j in pairs.items() if k != along):
        return False
    # Where a read may leave its operand, both must be 0 at the same positions.
    dims = zip(own.index, own.source.shape, other.source.shape, strict=True)
    return all(is_plain(e) or n == m for e, n, m in dims)


def _stack(
    first: SumOfProducts,
    second: SumOfProducts,
    reads: tuple[Read, Read],
    other: Read,
    pairs: Pairs,
    along: int,
) -> Merger:
    """Stack the private operands along the dim that iterator `along` indexes."""
    shared, own = reads
    n = first.shape[along]
    total = n + second.shape[pairs[along]]
    dim = own.index.index(Index.iterator(along))
    shape = list(own.source.shape)
    shape[dim] = total
    lower = list(iterators(len(shape)))
    upper = list(lower)
    upper[dim] -= n
    cut = (*shape[:dim], n, *shape[dim + 1 :])
    inside = own.source
    if inside.shape != cut:  # the source is larger than the positions that `first` uses
        inside = build(cut, (), [Read(own.source, tuple(lower))], first.element)
    parts = [
        factor(Read(inside, tuple(lower)), tuple(shape)),
        factor(Read(other.source, tuple(upper)), tuple(shape)),
    ]
    stacked = scope(shape, first.element, add(*parts))
    extents = [total if k == along else size for k, size in enumerate(first.extents)]
    factors: list[Link] = [shared, Read(stacked, own.index), *first.guards]
    new = build(
        extents[: first.rank], extents[first.rank :], factors, first.element, first.coefficient
    )
    here = iterators(first.rank)
    there = [here[pairs[k]] for k in range(first.rank)]
    there[along] += n
    return Merger(
        new,
        DerivationStep(SHARED, new, (), tuple(here)),
        DerivationStep(SHARED, new, (), tuple(there)),
    )


# --- a batch of two -----------------------------------------------------------------------------


def _batched(first: SumOfProducts, reads: Sequence[tuple[Read, Read]], pairs: Pairs) -> Merger:
    """The first scope's form with one more traversal, which selects one of the two."""
    which = Index.iterator(0)
    moved = iterators(len(first.extents), 1)
    factors: list[Link] = [mapped(g, lambda e: e.substitute(moved)) for g in first.guards]
    for a, b in reads:
        index = tuple(e.substitute(moved) for e in a.index)
        if a.source is b.source:
            factors.append(Read(a.source, index))
            continue
        shape = (2, *a.source.shape)
        here = tuple(iterators(len(a.source.shape), 1))
        parts: list[Expr] = []
        for number, read in enumerate((a, b)):
            only = Guard(which - number, 1)
            parts.append(collect(normal((ONE, (), (Read(read.source, here), only)), shape)))
        stacked = scope(shape, a.source.element, add(*parts))
        factors.append(Read(stacked, (which, *index)))
    extents = first.extents
    new = build(
        (2, *extents[: first.rank]),
        extents[first.rank :],
        factors,
        first.element,
        first.coefficient,
    )
    here = iterators(first.rank)
    there = [here[pairs[k]] for k in range(first.rank)]
    steps = [DerivationStep(BATCH, new, (), (Index(k), *at)) for k, at in enumerate((here, there))]
    return Merger(new, *steps)
