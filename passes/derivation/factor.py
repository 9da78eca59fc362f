"""factor-sum: what products of one operand are multiplied by is added first.

Distributivity, from the sum to the product; sum-split goes the other way.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_scope import collect, normal
from ...dialects.canonical_types import ONE, Read, Scope, Term, scope
from ...dialects.index import Index, iterators
from .body import SumOfProducts, body_of, build, links_of, renaming, substituted, used_by
from .merges import traversal_merge
from .step import DerivationStep

FACTOR_SUM = "factor-sum"
# More sums than this are not put in every order.
_MAX_SUMS = 5


def factor_sum(old: Scope) -> DerivationStep | None:
    """Add what products of one operand multiply it by, instead of the products.

    Of several shared operands that of the most terms is taken; the other terms stay.

    Before:

        %s = algebra.scope (m: 8, n: 6) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x6xf32>
        %t = algebra.scope (m: 8, n: 6) sum (k: 4) %a[m, k] * %c[k, n] : tensor<8x6xf32>
        %y = algebra.scope (m: 8, n: 6) %s[m, n] - %t[m, n] : tensor<8x6xf32>

    After (%s and %t are left to dce):

        %y.0 = algebra.scope (i0: 4, i1: 6) %b[i0, i1] - %c[i0, i1] : tensor<4x6xf32>
        %y = algebra.scope (i0: 8, i1: 6) sum (k0: 4) %a[i0, k0] * %y.0[k0, i1] : tensor<8x6xf32>
    """
    if len(old.expr.terms) < 2:
        return None
    best: tuple[Read, dict[int, SumOfProducts]] | None = None
    bodies = [_opened(term, old) for term in old.expr.terms]
    for number, body in enumerate(bodies):
        for read in [] if body is None else body.reads:
            found = {} if body is None else _sharing(read, body, bodies[number:], number)
            if len(found) > (1 if best is None else len(best[1])):
                best = read, found
    return None if best is None else DerivationStep(FACTOR_SUM, _factored(old, *best))


def inner_contractions(op: ScopeOp) -> list[ScopeOp]:
    """The scopes with sums that an op reads and nothing else does."""
    owners = [v.owner for v in dict.fromkeys(op.inputs) if isinstance(v.owner, ScopeOp)]
    alone = [o for o in owners if all(use.operation is op for use in o.result.uses)]
    return [o for o in alone if o.summation]


def _sharing(
    read: Read, body: SumOfProducts, others: Sequence[SumOfProducts | None], number: int
) -> dict[int, SumOfProducts]:
    """What the terms from one on that have a read in common multiply it by, by their numbers."""
    own = _sums_of(read, body)
    if not own:
        return {}
    rests = [None if one is None else _shares(one, read, own, body) for one in others]
    return {number + k: rest for k, rest in enumerate(rests) if rest is not None}


def _opened(term: Term, old: Scope) -> SumOfProducts | None:
    """A term as a sum of products, with the sum of products that it reads multiplied out."""
    links = links_of(term)
    if links is None:
        return None
    body = SumOfProducts(old.shape, term.sums, term.coefficient, links, old.element)
    if term.sums or len(body.reads) != 1:
        return body
    step = traversal_merge(body, 0)
    return body if step is None else body_of(step.new)


def _sums_of(read: Read, body: SumOfProducts) -> list[int]:
    """The sums that a read uses, as iterators."""
    return sorted(k for k in used_by(read) if k >= body.rank)


def without_read(body: SumOfProducts, read: Read, own: Sequence[int]) -> SumOfProducts:
    """A body without a read, over the positions and the sums of it, in this order.

    The other sums stay.
    """
    others = [k for k in range(body.rank, len(body.extents)) if k not in own]
    images = renaming(len(body.extents), [*range(body.rank), *own, *others])
    position = body.factors.index(read)
    factors = [f for k, f in enumerate(body.factors) if k != position]
    return replace(
        body,
        shape=body.shape + tuple(body.extents[k] for k in own),
        sums=tuple(body.extents[k] for k in others),
        factors=tuple(substituted(f, images) for f in factors),
    )


def _shares(
    body: SumOfProducts, wanted: Read, sums: Sequence[int], first: SumOfProducts
) -> SumOfProducts | None:
    """The rest of a body that has a factor which is the wanted read, its sums in their order."""
    extents = [first.extents[k] for k in sums]
    for read in body.reads:
        own = _sums_of(read, body)
        if read.source is not wanted.source or len(own) != len(sums) or len(own) > _MAX_SUMS:
            continue
        for order in itertools.permutations(own):
            if [body.extents[k] for k in order] != extents:
                continue
            images = iterators(len(body.extents))
            for k, image in zip(order, sums, strict=True):
                images[k] = Index.iterator(image)
            if substituted(read, images).token == wanted.token:
                return without_read(body, read, order)
    return None


def _factored(old: Scope, read: Read, rests: dict[int, SumOfProducts]) -> Scope:
    """The shared read times the sum of the rests, and the terms that do not share it."""
    first = next(iter(rests.values()))
    rank, count = len(old.shape), len(first.shape)
    kept = sorted({k for r in rests.values() for f in r.factors for k in used_by(f) if k < count})
    shape = tuple(first.shape[k] for k in kept)
    terms: list[Term] = []
    for rest in rests.values():
        images = renaming(len(rest.extents), [*kept, *range(count, len(rest.extents))])
        factors = tuple(substituted(f, images) for f in rest.factors)
        terms += normal((rest.coefficient, rest.sums, factors), shape)
    added = scope(shape, old.element, collect(terms))
    own = sorted(k for k in used_by(read) if k >= rank)
    images = iterators(max(used_by(read)) + 1)
    for position, k in enumerate(own, rank):
        images[k] = Index.iterator(position)
    shared = substituted(read, images), Read(added, tuple(map(Index.iterator, kept)))
    product = build(old.shape, first.shape[rank:], shared, old.element)
    others = [t for k, t in enumerate(old.expr.terms) if k not in rests]
    if not others:
        return product
    here = (ONE, (), (Read(product, tuple(iterators(rank))),))
    return scope(old.shape, old.element, collect([*normal(here, old.shape), *others]))
