"""Flattening: several traversals as one, and two products of one operand as one product of rows.

`merge-shared-operand` needs two products that are alike but for one extent. Here each own operand
is first written as a matrix: its traversals that the shared operand lacks are one iterator, its
rows. Rows stack whatever they were made of.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...dialects.canonical_scope import add, collect, normal
from ...dialects.canonical_types import ONE, Expr, Guard, Read, Scope, Source, scope
from ...dialects.index import Index, iterators, range_of
from .basis import is_plain
from .body import Link, SumOfProducts, build, renaming, substituted, used_by
from .side_by_side import Merger
from .step import DerivationStep, ProposalOptions, applicable

ROWS = "merge-rows"


def flatten(body: SumOfProducts, numbers: Sequence[int]) -> DerivationStep | None:
    """Write several traversals as one, the first outermost: the inverse of split-traversal.

    The places of the box are numbered, a bijection.

    Before:

        %t = algebra.scope (f: 4, h: 8, r: 3) sum (c: 5) %k[f, c, r] * %x[c, h] : tensor<4x8x3xf32>
        %y = algebra.scope (f: 4, h: 8) sum (r: 3) %t[f, h + r, r] : tensor<4x8xf32>

    After `at="t" traversals="f","r"`:

        %t = algebra.scope (i0: 12, i1: 8) sum (k0: 5)
               %x[k0, i1] * %k[i0 floordiv 3, k0, i0 mod 3] : tensor<12x8xf32>
        %y = algebra.scope (f: 4, h: 8) sum (r: 3) %t[3 * f + r, h + r] : tensor<4x8xf32>
    """
    chosen = list(dict.fromkeys(numbers))
    if len(chosen) < 2 or not all(0 <= k < body.rank for k in chosen):
        return None
    kept = [k for k in range(body.rank) if k not in chosen[1:]]
    images = renaming(len(body.extents), [*kept, *range(body.rank, len(body.extents))])
    sizes = [body.shape[k] for k in chosen]
    for k, digit in zip(chosen, _digits(images[chosen[0]], sizes), strict=True):
        images[k] = digit
    factors = [substituted(f, images) for f in body.factors]
    shape = [math.prod(sizes) if k == chosen[0] else body.shape[k] for k in kept]
    new = build(shape, body.sums, factors, body.element, body.coefficient)
    here = iterators(body.rank)
    image = [_number([here[k] for k in chosen], sizes) if k == chosen[0] else here[k] for k in kept]
    words = (("traversals", tuple(f"i{k}" for k in chosen)),)
    return DerivationStep("flatten", new, words, tuple(image))


def every_flatten(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Every two traversals."""
    pairs = itertools.combinations(range(body.rank), 2)
    yield from applicable(flatten(body, pair) for pair in pairs)


def _digits(row: Index, sizes: Sequence[int]) -> list[Index]:
    """The digits of a row number, the first without an upper end."""
    found: list[Index] = []
    for place in range(len(sizes)):
        digit = row // math.prod(sizes[place + 1 :])
        found.append(digit % sizes[place] if place else digit)
    return found


def _number(digits: Sequence[Index], sizes: Sequence[int]) -> Index:
    total = Index(0)
    for digit, n in zip(digits, sizes, strict=True):
        total = total * n + digit
    return total


# --- two products of one operand ----------------------------------------------------------------


@dataclass(frozen=True)
class _Own:
    """A product seen as rows: the shared read, and its own read with the guards that go with it."""

    body: SumOfProducts
    shared: Read
    own: Read
    guards: tuple[Guard, ...]

    @property
    def common(self) -> list[int]:
        """The traversals that index the shared operand."""
        return [k for k in range(self.body.rank) if k in used_by(self.shared)]

    @property
    def private(self) -> list[int]:
        """The traversals that are flattened into rows."""
        return [k for k in range(self.body.rank) if k not in used_by(self.shared)]

    @property
    def rows(self) -> int:
        return math.prod(self.body.shape[k] for k in self.private)


@dataclass(frozen=True)
class _Window:
    """A sum of the merged product, and what each of the two sums over: `first` its first place.

    Attributes:
        sums: the two products' sums, None where one has a single place.
        starts, sizes: the places of the two, counted from the merged sum's first place.
        row: the dim of the shared operand that it moves along, by this step.
    """

    sums: tuple[int | None, int | None]
    starts: tuple[int, int]
    sizes: tuple[int, int]
    row: int
    step: int

    @property
    def extent(self) -> int:
        return max(start + size for start, size in zip(self.starts, self.sizes, strict=True))


@dataclass(frozen=True)
class _Fit:
    """How a second product lies in the coordinates of a first one.

    Attributes:
        images: for each common traversal of the first, its value in the second's traversals.
        windows: the sums of both as one.
    """

    images: dict[int, Index]
    windows: tuple[_Window, ...]


def merge_rows(first: SumOfProducts, second: SumOfProducts) -> Merger | None:
    """Compute two products that share an operand as one: their own operands as rows, stacked.

    The traversals that do not index the shared operand are flattened into the rows. A sum that
    moves along a dim of the shared operand is widened to the places of both (the own operand is 0
    at those it had not), and so are the common traversals.

    Before:

        %y = algebra.scope (f: 3, r: 2, m: 8) sum (k: 4) %w[f, k, r] * %a[k, m] : tensor<3x2x8xf32>
        %z = algebra.scope (f: 5, m: 8) sum (k: 4) %v[f, k] * %a[k, m] : tensor<5x8xf32>

    After, users of %y reading it at [2 * f + r, m] and those of %z reading %y at [f + 6, m] (%one
    being ones of six places):

        %y.0 = algebra.scope (i0: 11, i1: 4)
                 %one[5 - i0] * %w[i0 floordiv 2, i1, i0 mod 2] + %v[i0 - 6, i1] : tensor<11x4xf32>
        %y = algebra.scope (i0: 11, i1: 8) sum (k0: 4) %a[k0, i1] * %y.0[i0, k0] : tensor<11x8xf32>
    """
    if first.element != second.element or first.coefficient != second.coefficient:
        return None
    for one in _owns(first):
        for other in _owns(second):
            if one.shared.source is not other.shared.source:
                continue
            if one.own.source.element != other.own.source.element:
                continue
            if (fit := _fit(one, other)) is not None:
                return _merged(one, other, fit)
            if (fit := _fit(other, one)) is not None:
                made = _merged(other, one, fit)
                return Merger(made.new, made.second, made.first)
    return None


@lru_cache(maxsize=4096)
def _owns(body: SumOfProducts) -> tuple[_Own, ...]:
    """The two ways to see a product of two reads: either may be shared."""
    if len(body.reads) != 2:
        return ()
    found: list[_Own] = []
    for shared, own in (body.reads, body.reads[::-1]):
        guarded = all(used_by(g) <= used_by(own) for g in body.guards)
        summed = all(k in used_by(shared) for k in range(body.rank, len(body.extents)))
        if guarded and summed and not any(e.has_floor for e in shared.index):
            found.append(_Own(body, shared, own, tuple(body.guards)))
    return tuple(found)


@lru_cache(maxsize=4096)
def _steps(body: SumOfProducts) -> dict[Source, list[tuple[int, ...]]]:
    """For each operand that may be shared, by which steps sums move along its dims."""
    return {
        one.shared.source: [
            tuple(c for _, c in _without_sums(e, body.rank)[1]) for e in one.shared.index
        ]
        for one in _owns(body)
    }


def may_be_rows(first: SumOfProducts, second: SumOfProducts) -> bool:
    """Whether sums move along the dims of a shared operand alike: a quick test before a merger."""
    one, other = _steps(first), _steps(second)
    return any(
        all(
            max(len(a), len(b)) <= 1 and (not a or not b or a == b)
            for a, b in zip(one[source], other[source], strict=True)
        )
        for source in one.keys() & other.keys()
    )


# --- the coordinates of one in those of the other -----------------------------------------------


def _fit(one: _Own, other: _Own) -> _Fit | None:
    """The second product in the coordinates of the first; None if there are none."""
    rows = list(zip(one.shared.index, other.shared.index, strict=True))
    windows: list[_Window] = []
    left: list[tuple[Index, Index]] = []
    for dim, (e, f) in enumerate(rows):
        (e, e_sums), (f, f_sums) = (
            _without_sums(e, one.body.rank),
            _without_sums(f, other.body.rank),
        )
        if e_sums or f_sums:
            window = _window(dim, (one.body, other.body), (e_sums, f_sums), f.constant - e.constant)
            if window is None:
                return None
            windows.append(window)
            e, f = e - e.constant, f - f.constant
        left.append((e, f))
    for side, body in enumerate((one.body, other.body)):
        used = sorted(k for w in windows if (k := w.sums[side]) is not None)
        if used != list(range(body.rank, len(body.extents))):
            return None
    images = _solved(left, one.common)
    if images is None or not _keeps(other, images):
        return None
    return _Fit(images, tuple(windows))


def _without_sums(e: Index, rank: int) -> tuple[Index, list[tuple[int, int]]]:
    """An index without its sums, and those with their coefficients."""
    sums = [(k, c) for k, c in e.terms if isinstance(k, int) and k >= rank]
    for k, c in sums:
        e -= Index.iterator(k) * c
    return e, sums


def _window(
    dim: int,
    bodies: tuple[SumOfProducts, SumOfProducts],
    sums: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    apart: int,
) -> _Window | None:
    """One sum that takes the places of both along a dim, `apart` places of the operand apart."""
    steps = {c for found in sums for _, c in found}
    if len(steps) != 1 or any(len(found) > 1 for found in sums):
        return None
    (step,) = steps
    if apart % step:
        return None
    numbers = [found[0][0] if found else None for found in sums]
    sizes = [1 if k is None else b.extents[k] for k, b in zip(numbers, bodies, strict=True)]
    starts = [0, apart // step]
    low = min(starts)
    return _Window(
        (numbers[0], numbers[1]),
        (starts[0] - low, starts[1] - low),
        (sizes[0], sizes[1]),
        dim,
        step,
    )


def _solved(rows: Sequence[tuple[Index, Index]], common: Sequence[int]) -> dict[int, Index] | None:
    """The images of the first's traversals under which the indices are equal; None if none."""
    images: dict[int, Index] = {}
    for _ in rows:
        for e, f in rows:
            unknown = [(k, c) for k, c in e.terms if isinstance(k, int) and k not in images]
            if len(unknown) != 1:
                continue
            (k, c), rest = unknown[0], f - e.constant
            for j, d in e.terms:
                if isinstance(j, int) and j != k:
                    rest -= images[j] * d
            if rest.constant % c or any(d % c for _, d in rest.terms):
                return None
            images[k] = Index.make(rest.constant // c, {a: d // c for a, d in rest.terms})
    if set(images) != set(common):
        return None
    whole = [images.get(k, Index(0)) for k in range(max(common, default=-1) + 1)]
    return images if all(e.substitute(whole) == f for e, f in rows) else None


def _keeps(other: _Own, images: dict[int, Index]) -> bool:
    """Whether the merged product has every traversal of the shared operand that the own one has."""
    needed = used_by(other.own) & set(other.common)
    return all(Index.iterator(k) in images.values() for k in needed)


# --- the merged product -------------------------------------------------------------------------


def _merged(one: _Own, other: _Own, fit: _Fit) -> Merger:
    """The rows of `one`, then those of `other`, times the shared operand."""
    common = one.common
    ranges = [_hull(one.body.shape[k], range_of(fit.images[k], other.body.extents)) for k in common]
    lows = dict(zip(common, (low for low, _ in ranges), strict=True))
    shape = [one.rows + other.rows, *(high - low + 1 for low, high in ranges)]
    places = {k: Index.iterator(1 + at) + lows[k] for at, k in enumerate(common)}
    sums = [w.extent for w in fit.windows]
    taps = iterators(len(sums), len(shape))
    extents = (*shape, *sums)

    images = [places.get(k, Index(0)) for k in range(len(one.body.extents))]
    for w, tap in zip(fit.windows, taps, strict=True):
        if (k := w.sums[0]) is not None:
            images[k] = tap - w.starts[0]
    index = [e.substitute(images) for e in one.shared.index]
    for w, tap in zip(fit.windows, taps, strict=True):
        if w.sums[0] is None:
            index[w.row] += (tap - w.starts[0]) * w.step

    there = {k: places[j] for j, e in fit.images.items() if is_plain(e) for k in e.iterators}
    parts = [
        _part(one, places, 0, taps, fit.windows, 0),
        _part(other, there, one.rows, taps, fit.windows, 1),
    ]
    stacked, at = _stacked(parts, extents, one)
    body = one.body
    factors: list[Link] = [Read(one.shared.source, tuple(index)), Read(stacked, at)]
    new = build(shape, sums, factors, body.element, body.coefficient)
    here = [Index.iterator(k) - lows[k] for k in common]
    moved = [fit.images[k] - lows[k] for k in common]
    return Merger(
        new,
        DerivationStep(ROWS, new, (), (_row(one, 0), *here)),
        DerivationStep(ROWS, new, (), (_row(other, one.rows), *moved)),
    )


def _hull(n: int, other: tuple[int, int]) -> tuple[int, int]:
    return min(0, other[0]), max(n - 1, other[1])


def _row(one: _Own, before: int) -> Index:
    sizes = [one.body.shape[k] for k in one.private]
    return _number([Index.iterator(k) for k in one.private], sizes) + before


def _part(
    one: _Own,
    places: dict[int, Index],
    before: int,
    taps: Sequence[Index],
    windows: Sequence[_Window],
    side: int,
) -> list[Link]:
    """An own operand at the merged product's iterators, 0 outside its rows and its windows."""
    sizes = [one.body.shape[k] for k in one.private]
    row = Index.iterator(0) - before
    images = [places.get(k, Index(0)) for k in range(len(one.body.extents))]
    for k, digit in zip(one.private, _digits(row, sizes), strict=True):
        images[k] = digit
    guards = [Guard(row, one.rows)]
    for w, tap in zip(windows, taps, strict=True):
        if (k := w.sums[side]) is not None:
            images[k] = tap - w.starts[side]
        if w.sizes[side] != w.extent:
            guards.append(Guard(tap - w.starts[side], w.sizes[side]))
    return [substituted(f, images) for f in (one.own, *one.guards)] + guards


def _stacked(
    parts: Sequence[Sequence[Link]], extents: Sequence[int], one: _Own
) -> tuple[Scope, tuple[Index, ...]]:
    """The own operands as one, over the iterators that they use, and how it is read."""
    used = sorted({0, *(k for part in parts for f in part for k in used_by(f))})
    names = renaming(len(extents), used)
    shape = tuple(extents[k] for k in used)
    terms: list[Expr] = [
        collect(normal((ONE, (), tuple(moved)), shape))
        for moved in ([substituted(f, names) for f in part] for part in parts)
    ]
    stacked = scope(shape, one.own.source.element, add(*terms))
    return stacked, tuple(Index.iterator(k) for k in used)
