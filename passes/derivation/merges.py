"""Rules about a scope and its operands: inlining, reading through copies, joining pieces."""

from __future__ import annotations

from collections.abc import Iterator

from ...dialects.canonical_types import Read, Scope, Source, Term
from ...dialects.index import iterators
from .body import Link, SumOfProducts, body_of, build, guards_of, links_of, substituted
from .replace import rewritten
from .step import DerivationStep, ProposalOptions, applicable
from .traversals import expression_split

TRAVERSAL_MERGE = "traversal-merge"


def traversal_merge(body: SumOfProducts, number: int) -> DerivationStep | None:
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
    return DerivationStep(TRAVERSAL_MERGE, new, (("read", number),))


def merge_into_reader(body: SumOfProducts) -> DerivationStep | None:
    """Compute a scope where it is read, instead of on its own; `read` names it.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r] * %k[c, r] : tensor<8x3xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>

    After `at="y" read="t"`:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r] * %k[c, r] : tensor<8x3xf32>
        %y = algebra.scope (i0: 8) sum (k0: 3, k1: 4) %k[k1, k0] * %x[k1, i0 + k0] : tensor<8xf32>
    """
    found = [k for k, r in enumerate(body.reads) if isinstance(r.source, Scope)]
    return traversal_merge(body, found[0]) if found else None


def every_traversal_merge(
    body: SumOfProducts, options: ProposalOptions
) -> Iterator[DerivationStep]:
    """Every read of a sum of products."""
    yield from applicable(traversal_merge(body, number) for number in range(len(body.reads)))


def merge_copies(old: Scope) -> DerivationStep | None:
    """Read the source of a pure copy instead of the copy, wherever a scope reads one."""

    def change(read: Read, extents: tuple[int, ...]) -> list[Link] | None:
        copied = _copied(read.source)
        if copied is None:
            return None
        through = Read(copied.source, tuple(e.substitute(read.index) for e in copied.index))
        return [through, *guards_of(read.index, read.source.shape, extents)]

    new = rewritten(old, change)
    return None if new is old else DerivationStep("merge-copies", new)


def copies_read_through(new: Scope) -> DerivationStep:
    """Read the sources of pure copies instead of the copies, in one scope; it becomes canonical.

    Before:

        %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
        %y = algebra.scope (i: 8) sum (j: 4) %t[i, j] * %k[j] : tensor<8xf32>

    After:

        %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<8xf32>
    """
    return DerivationStep("merge-copies", new)


def _copied(source: Source) -> Read | None:
    """The one read of a scope that only moves data."""
    body = body_of(source)
    if body is None or body.sums or body.coefficient != 1 or len(body.factors) != 1:
        return None
    only = body.factors[0]
    return only if isinstance(only, Read) else None


# --- pieces as a whole --------------------------------------------------------------------------


def expression_fuse(old: Scope) -> DerivationStep | None:
    """Compute as one what is a sum of two pieces of one scope: the inverse of expression-split.

    The whole is the first piece with its extent widened; it must split into just these two.

    Before:

        %a = algebra.scope (h: 5) sum (c: 4) %x[c, h] * %k[c] : tensor<5xf32>
        %b = algebra.scope (h: 3) sum (c: 4) %x[c, h + 5] * %k[c] : tensor<3xf32>
        %y = algebra.scope (h: 8) %a[h] + %b[h - 5] : tensor<8xf32>

    After (%a and %b are left to dce):

        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<8xf32>
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
    """The single read of a term, if it is one."""
    links = links_of(term)
    if links is None or len(links) != 1 or term.sums or term.coefficient != 1:
        return None
    return links[0] if isinstance(links[0], Read) else None


def _fused(old: Scope, one: Read, other: Read) -> DerivationStep | None:
    body = body_of(one.source)
    if body is None or len(one.source.shape) != len(old.shape):
        return None
    for k, (n, whole) in enumerate(zip(one.source.shape, old.shape, strict=True)):
        if n < whole:
            wide = SumOfProducts(old.shape, body.sums, body.coefficient, body.factors, body.element)
            split = expression_split(wide, k, n)
            if split is not None and split.new is old:
                words = (("traversal", f"i{k}"), ("position", n))
                return DerivationStep("expression-fuse", wide.scope(), words)
    return None
