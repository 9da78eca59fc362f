"""Rules about two scopes: inlining one into its reader, computing two as one, pieces as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...dialects.canonical_scope import add, factor
from ...dialects.canonical_types import Read, Scope, Source, Term, scope
from ...dialects.index import Index, iterators
from .basis import is_plain
from .body import Body, Link, body_of, build, guards_of, links_of, substituted
from .replace import rewritten
from .step import Options, Step
from .traversals import expression_split


def traversal_merge(body: Body, number: int) -> Step | None:
    """Compute what read `number` reads where it is read, instead of in a scope of its own.

    The inner scope must be one sum of products (so no function is applied to its sum). It is 0
    beyond its shape, so guards say that the read stays inside where it may not.
    """
    read = body.reads[number]
    inner = body_of(read.source)
    if inner is None:
        return None
    extents = body.extents + inner.sums
    images = [*read.index, *iterators(len(inner.sums), len(body.extents))]
    factors: list[Link] = [f for f in body.factors if f is not read]
    factors += guards_of(read.index, read.source.shape, body.extents)
    factors += [substituted(f, images) for f in inner.factors]
    coefficient = body.coefficient * inner.coefficient
    new = build(body.shape, extents[body.rank :], factors, body.element, coefficient)
    return Step("traversal-merge", new, (("read", number),))


def every_traversal_merge(body: Body, options: Options) -> Iterator[Step]:
    """Every read of a sum of products."""
    for number in range(len(body.reads)):
        if (step := traversal_merge(body, number)) is not None:
            yield step


def merge_copies(old: Scope) -> Step | None:
    """Read the source of a pure copy instead of the copy, wherever a scope reads one."""

    def change(read: Read, extents: tuple[int, ...]) -> list[Link] | None:
        copied = _copied(read.source)
        if copied is None:
            return None
        through = Read(copied.source, tuple(e.substitute(read.index) for e in copied.index))
        return [through, *guards_of(read.index, read.source.shape, extents)]

    new = rewritten(old, change)
    return None if new is old else Step("merge-copies", new)


def _copied(source: Source) -> Read | None:
    """The one read of a scope that only moves data."""
    body = body_of(source)
    if body is None or body.sums or body.coefficient != 1 or len(body.factors) != 1:
        return None
    only = body.factors[0]
    return only if isinstance(only, Read) else None


# --- two scopes as one --------------------------------------------------------------------------


@dataclass(frozen=True)
class Merger:
    """Two scopes as parts of one: each is what `step` (first, second) reads of `new`."""

    new: Scope
    first: Step
    second: Step


def merge_shared(first: Body, second: Body) -> Merger | None:
    """Compute two products that share an operand as one, the other operands stacked.

    Both must be a sum of a shared read times a read of their own, every index one iterator, with
    iterators that correspond through the shared operand's dims. The operands of their own are
    stacked along one dim that the shared operand does not have; other extents must agree.
    """
    for a in first.reads:
        for b in second.reads:
            if a.source is b.source:
                found = _merge_along(first, second, a, b)
                if found is not None:
                    return found
    return None


def _merge_along(first: Body, second: Body, a: Read, b: Read) -> Merger | None:
    own, other = _other(first, a), _other(second, b)
    if own is None or other is None or first.element != second.element:
        return None
    if first.coefficient != second.coefficient:
        return None
    pairs = _correspondence(first, second, (a, own), (b, other))
    if pairs is None:
        return None
    ways = [
        k
        for k in range(first.rank)
        if pairs.get(k) is not None
        and not any(k in e.iterators for e in a.index)
        and all(first.extents[j] == second.extents[pairs[j]] for j in pairs if j != k)
    ]
    return _stack(first, second, own, other, pairs, ways[0]) if ways else None


def _other(body: Body, shared: Read) -> Read | None:
    """The one other factor, if every index of both is an iterator of its own or 0."""
    if len(body.factors) != 2 or len(body.reads) != 2:
        return None
    own = next(f for f in body.reads if f is not shared)
    for read in (shared, own):
        used = [e for e in read.index if e != Index(0)]
        if not all(is_plain(e) for e in used) or len(set(used)) != len(used):
            return None
    return own


def _correspondence(
    first: Body, second: Body, ones: tuple[Read, Read], others: tuple[Read, Read]
) -> dict[int, int] | None:
    """Iterators of the second that play the part of those of the first."""
    pairs: dict[int, int] = {}
    for one, other in zip(ones, others, strict=True):
        if len(one.index) != len(other.index):
            return None
        for e, f in zip(one.index, other.index, strict=True):
            if e == Index(0) or f == Index(0):
                if e != f:
                    return None
                continue
            k, j = next(iter(e.iterators)), next(iter(f.iterators))
            if pairs.setdefault(k, j) != j or (k < first.rank) != (j < second.rank):
                return None
    whole = len(set(pairs.values())) == len(pairs)
    sizes = len(first.extents) == len(second.extents) == len(pairs)
    return pairs if whole and sizes and first.rank == second.rank else None


def _stack(
    first: Body, second: Body, own: Read, other: Read, pairs: dict[int, int], along: int
) -> Merger:
    """Stack the operands of their own along the dim that iterator `along` indexes."""
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
    if inside.shape != cut:  # beyond the places that `first` uses the source has more
        inside = build(cut, (), [Read(own.source, tuple(lower))], first.element)
    parts = [
        factor(Read(inside, tuple(lower)), tuple(shape)),
        factor(Read(other.source, tuple(upper)), tuple(shape)),
    ]
    stacked = scope(shape, first.element, add(*parts))
    extents = [total if k == along else n_ for k, n_ in enumerate(first.extents)]
    shared = next(f for f in first.reads if f is not own)
    new = build(
        extents[: first.rank],
        extents[first.rank :],
        [shared, Read(stacked, own.index)],
        first.element,
        first.coefficient,
    )
    here = iterators(first.rank)
    there = [here[pairs[k]] for k in range(first.rank)]
    there[along] += n
    name = "merge-shared-operand"
    return Merger(new, Step(name, new, (), tuple(here)), Step(name, new, (), tuple(there)))


# --- pieces as a whole --------------------------------------------------------------------------


def expression_fuse(old: Scope) -> Step | None:
    """Compute as one what is a sum of two pieces of one scope: the inverse of expression-split.

    The whole is the first piece with its extent widened; it must split into just these two.
    """
    terms = [_plain_term(t) for t in old.expr.terms]
    if len(terms) != 2:
        return None
    for one, other in (terms, terms[::-1]):
        if one is None or other is None:
            continue
        found = _fused(old, one, other)
        if found is not None:
            return found
    return None


def _plain_term(term: Term) -> Read | None:
    """The single read that a term is."""
    links = links_of(term)
    if links is None or len(links) != 1 or term.sums or term.coefficient != 1:
        return None
    return links[0] if isinstance(links[0], Read) else None


def _fused(old: Scope, one: Read, other: Read) -> Step | None:
    body = body_of(one.source)
    if body is None or len(one.source.shape) != len(old.shape):
        return None
    for k, (n, whole) in enumerate(zip(one.source.shape, old.shape, strict=True)):
        if n < whole:
            wide = Body(old.shape, body.sums, body.coefficient, body.factors, body.element)
            split = expression_split(wide, k, n)
            if split is not None and split.new is old:
                words = (("traversal", f"i{k}"), ("position", n))
                return Step("expression-fuse", wide.scope(), words)
    return None
