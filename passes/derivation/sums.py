"""Rules about summations: splitting a sum over factors, a sum into digits, deltas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ...dialects.canonical_types import Guard, Read
from ...dialects.index import FloorDiv, Index, iterators, range_of
from .body import Link, SumOfProducts, build, mapped, renaming, substituted, together, used_by
from .step import DerivationStep, ProposalOptions, applicable, named


def sum_split(body: SumOfProducts, inner: Sequence[int]) -> DerivationStep | None:
    """Sum over some iterators in a scope of its own, which the others read.

    Distributivity: factors that use no inner sum move out of it. The new scope's traversals are the
    iterators that its factors use. None unless the inner sums are a proper, non-empty subset.

    Before:

        %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>

    After `sums="c"`:

        %y.0 = algebra.scope (i0: 8, i1: 3) sum (k0: 4) %x[k0, i0 + i1 - 1] * %k[k0, i1]
        %y = algebra.scope (i0: 8) sum (k0: 3) %y.0[i0, k0] : tensor<8xf32>
    """
    first, count = body.rank, len(body.extents)
    chosen = sorted(first + k for k in set(inner))
    if not 0 < len(chosen) < len(body.sums):
        return None
    inside = [f for f in body.factors if used_by(f) & set(chosen)]
    outside = [f for f in body.factors if f not in inside]
    used = sorted(frozenset[int]().union(*(used_by(f) for f in inside)) - set(chosen))
    within = renaming(count, [*used, *chosen])
    child = build(
        [body.extents[k] for k in used],
        [body.extents[k] for k in chosen],
        [substituted(f, within) for f in inside],
        body.element,
    )
    outer = [k for k in range(first, count) if k not in chosen]
    around = renaming(count, [*range(first), *outer])
    reader = Read(child, tuple(around[k] for k in used))
    new = build(
        body.shape,
        [body.extents[k] for k in outer],
        [*(substituted(f, around) for f in outside), reader],
        body.element,
        body.coefficient,
    )
    return DerivationStep("sum-split", new, (("sums", named((k - first for k in chosen), "k")),))


def every_sum_split(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Split over every proper subset of the sums."""
    count = len(body.sums)
    if count > options.sums:
        return
    for size in range(1, count):
        subsets = itertools.combinations(range(count), size)
        yield from applicable(sum_split(body, inner) for inner in subsets)


def split_sum(body: SumOfProducts, numbers: Sequence[int], by: int) -> DerivationStep | None:
    """Write sum iterators as two digits each, k = by * high + low.

    Where `by` does not divide an extent, the positions past it get a guard, which the canonical
    form drops again where a read is out of bounds there.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4) %x[h + r] * %k[r] : tensor<8xf32>

    After `sums="r" by=2`:

        %y = algebra.scope (i0: 8) sum (k0: 2, k1: 2) %x[i0 + 2 * k0 + k1] * %k[2 * k0 + k1]
    """
    chosen = sorted(set(numbers))
    if not chosen or not all(1 < by < body.sums[k] for k in chosen):
        return None
    sums, images, guards = list(body.sums), iterators(len(body.extents)), list[Link]()
    for number in chosen:
        position, n = body.rank + number, body.sums[number]
        images[position] = Index.iterator(position) * by + Index.iterator(body.rank + len(sums))
        sums[number] = -(-n // by)
        sums.append(by)
        if n % by:
            guards.append(Guard(images[position], n))
    factors: list[Link] = [*(substituted(f, images) for f in body.factors), *guards]
    new = build(body.shape, sums, factors, body.element, body.coefficient)
    return DerivationStep("split-sum", new, (("sums", named(chosen, "k")), ("by", by)))


def every_split_sum(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Split the sums that move along an index with another iterator: windows.

    Digits are the coefficients beside them, and small numbers. Each sum is split alone, and all
    that a digit suits together: the dims of a window are often alike.
    """
    digits: dict[int, list[int]] = {}
    for number in range(len(body.sums)):
        for by in _digits(body, number, options):
            digits.setdefault(by, []).append(number)
    together = [(whole, by) for by, whole in sorted(digits.items()) if len(whole) > 1]
    alone = [([k], by) for k in range(len(body.sums)) for by in sorted(digits) if k in digits[by]]
    yield from applicable(split_sum(body, numbers, by) for numbers, by in [*alone, *together])


def _digits(body: SumOfProducts, number: int, options: ProposalOptions) -> list[int]:
    """The digits by which a sum may be split; none if it moves alone."""
    position = body.rank + number
    beside = {
        abs(c)
        for row, _ in body.rows()
        if row.coefficient(position) != 0 and len(row.terms) > 1
        for atom, c in row.terms
        if atom != position
    }
    small = set(range(2, options.digit + 1)) if beside else set[int]()
    return [by for by in sorted(beside | small) if 1 < by < body.sums[number]]


def shear_sum(body: SumOfProducts, number: int, along: int) -> DerivationStep | None:
    """Count a sum iterator from a traversal: k' = k + i, where [0 <= k' - i < n] says what k was.

    For each i it is a bijection of the positions of k. The canonical form drops the guard where a
    read is out of bounds beyond.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4) %x[h + r] * %k[r] : tensor<8xf32>

    After `sum="r" along="h"` (beyond %k's edges a read is 0):

        %y = algebra.scope (i0: 8) sum (k0: 11) %x[k0] * %k[k0 - i0] : tensor<8xf32>
    """
    position, n = body.rank + number, body.sums[number]
    images = iterators(len(body.extents))
    images[position] -= Index.iterator(along)
    factors: list[Link] = [substituted(f, images) for f in body.factors]
    factors.append(Guard(images[position], n))
    wide = n + body.shape[along] - 1
    sums = (*body.sums[:number], wide, *body.sums[number + 1 :])
    new = build(body.shape, sums, factors, body.element, body.coefficient)
    return DerivationStep("shear-sum", new, (("sum", f"k{number}"), ("along", f"i{along}")))


def every_shear_sum(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Every sum that moves along an index with a traversal."""
    if not options.block:
        return
    pairs = together(body, range(body.rank, len(body.extents)))
    yield from applicable(shear_sum(body, position - body.rank, along) for along, position in pairs)


def delta_intro(body: SumOfProducts, number: int) -> DerivationStep | None:
    """Replace the quotient of a division that a guard says is whole by a sum of its own.

    With a guard [e mod d == 0], f(e floordiv d) = sum over i of [e == d * i] f(i), i over the range
    of the quotient: exactly one i meets the guard. Sums that the new guard solves then vanish.
    None unless guard `number` has that form.

    Before, a read of ones being a guard:

        %y = algebra.scope (h: 8) sum (r: 4)
               %x[(h + r) floordiv 2] * %k[r] * %one[(h + r) mod 2] : tensor<8xf32>

    After:

        %y = algebra.scope (i0: 8) sum (k0: 6) %x[k0] * %k[2 * k0 - i0] : tensor<8xf32>
    """
    if number >= len(body.guards):
        return None
    guard = body.guards[number]
    atom = _divided(guard)
    if atom is None:
        return None
    low, high = range_of(Index(0, ((atom, 1),)), body.extents)
    quotient = Index.iterator(len(body.extents)) + low

    def replaced(e: Index) -> Index:
        c = e.coefficient(atom)
        return e - Index(0, ((atom, c),)) + quotient * c if c else e

    factors: list[Link] = [mapped(f, replaced) for f in body.factors if f is not guard]
    factors.append(Guard(atom.numerator - quotient * atom.divisor, 1))
    sums = (*body.sums, high - low + 1)
    new = build(body.shape, sums, factors, body.element, body.coefficient)
    return DerivationStep("delta-intro", new, (("guard", number),))


def _divided(guard: Guard) -> FloorDiv | None:
    """The quotient e floordiv d of a guard e mod d == 0."""
    if guard.extent != 1:
        return None
    for atom, c in guard.index.terms:
        if isinstance(atom, FloorDiv) and abs(c) == atom.divisor:
            remainder = atom.numerator - Index(0, ((atom, atom.divisor),))
            if guard.index in (remainder, -remainder):
                return atom
    return None


def every_delta_intro(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Every guard that says a division is whole."""
    yield from applicable(delta_intro(body, number) for number in range(len(body.guards)))


def delta_elim(body: SumOfProducts, guard: int, number: int) -> DerivationStep | None:
    """Solve a guard e == 0 for a sum iterator of coefficient 1 or -1 and substitute it.

    The solution must be a position of the sum: a guard says so, which the canonical form drops
    where a read is out of bounds beyond. None unless the guard can be solved so.

    Before:

        %y = algebra.scope (h: 8) sum (r: 4, i: 8) %x[i] * %k[r] * %one[h - i - r] : tensor<8xf32>

    After `sum="i"`:

        %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[i0 - k0] : tensor<8xf32>
    """
    if guard >= len(body.guards):
        return None
    delta, position = body.guards[guard], body.rank + number
    sign = delta.index.coefficient(position)
    rest = delta.index - Index.iterator(position) * sign
    if delta.extent != 1 or sign not in (1, -1) or position in rest.iterators:
        return None
    solution = rest * -sign
    kept = [k for k in range(len(body.extents)) if k != position]
    names = renaming(len(body.extents), kept)
    names[position] = solution.substitute(names)
    factors: list[Link] = [substituted(f, names) for f in body.factors if f is not delta]
    factors.append(Guard(names[position], body.sums[number]))
    sums = body.sums[:number] + body.sums[number + 1 :]
    new = build(body.shape, sums, factors, body.element, body.coefficient)
    return DerivationStep("delta-elim", new, (("guard", guard), ("sum", f"k{number}")))


def every_delta_elim(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Every guard and sum; canonical scopes have none left (it is part of their form)."""
    pairs = itertools.product(range(len(body.guards)), range(len(body.sums)))
    yield from applicable(delta_elim(body, guard, number) for guard, number in pairs)
