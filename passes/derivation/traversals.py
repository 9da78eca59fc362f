"""Rules about a scope's output coordinates: reindexing, digits, tightening, restricting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_scope import add, factor
from ...dialects.canonical_types import Read, scope
from ...dialects.index import Atom, FloorDiv, Index, iterators, normalise, range_of
from .basis import is_plain, primitive, rank, reduced, solve
from .body import SumOfProducts, build, mapped, renaming, substituted, together, used_by
from .step import DerivationStep, Parameters, ProposalOptions, applicable

# A box of coordinates with this many times the positions of the smallest, or more, is wide.
WIDE = 2

Terms = list[tuple[Atom, int]]


class _UnsolvedError(Exception):
    """A body is not a function of the chosen coordinates."""


# --- reindex ------------------------------------------------------------------------------------


def reindex(body: SumOfProducts, phi: Sequence[Index]) -> DerivationStep | None:
    """Compute over coordinates y = phi(x), if the body depends on x through phi alone.

    L_x f(tau(x)) = L_x { L_y f(sigma(y)) }[phi(x)] whenever sigma(phi(x)) = tau(x) and phi(x) lies
    in the box of y: y runs over the hull of phi, and sigma is found by solving each index's
    traversal part as an integer combination of phi. Neither injectivity nor surjectivity is needed.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r - 1] * %k[c, r] : tensor<8x3xf32>

    After `at="t" phi="h + r","r"`:

        %t = algebra.scope (i0: 10, i1: 3) sum (k0: 4) %x[k0, i0 - 1] * %k[k0, i1]
    """
    phi = [normalise(e, body.shape) for e in phi]
    ranges = [range_of(e, body.shape) for e in phi]
    positions = [
        Index.iterator(k) + low - e.constant
        for k, (e, (low, _)) in enumerate(zip(phi, ranges, strict=True))
    ]
    shape = [high - low + 1 for low, high in ranges]
    mover = _Mover(body.rank, phi, positions)
    try:
        factors = [mapped(f, mover.moved) for f in body.factors]
    except _UnsolvedError:
        return None
    new = build(shape, body.sums, factors, body.element, body.coefficient)
    image = tuple(e - low for e, (low, _) in zip(phi, ranges, strict=True))
    names = [f"i{k}" for k in range(body.rank)]
    return DerivationStep("reindex", new, (("phi", tuple(e.text(names) for e in phi)),), image)


class _Mover:
    """Writes indices over (x, s) as indices over (y, s)."""

    def __init__(self, rank_: int, phi: Sequence[Index], positions: Sequence[Index]):
        self.rank = rank_
        self.phi = phi
        self.positions = positions
        self.solved: dict[tuple[tuple[Atom, int], ...], Index] = {}

    def moved(self, index: Index) -> Index:
        """The index in new coordinates. Raises _UnsolvedError."""
        traversal, rest = _parts(index, self.rank)
        total = Index(index.constant)
        for atom, c in rest:
            if isinstance(atom, FloorDiv):
                total += self.moved(atom.numerator) // atom.divisor * c
            else:
                total += Index.iterator(len(self.phi) + atom - self.rank) * c
        return total + self._solve(tuple(traversal)) if traversal else total

    def _solve(self, terms: tuple[tuple[Atom, int], ...]) -> Index:
        if terms not in self.solved:
            weights = solve(self.phi, Index(0, terms))
            if weights is None:
                raise _UnsolvedError
            total = Index(0)
            for v, position in zip(weights, self.positions, strict=True):
                total += position * v
            self.solved[terms] = total
        return self.solved[terms]


def _parts(index: Index, rank_: int) -> tuple[Terms, Terms]:
    """Terms over traversals alone, and the others."""
    inner: Terms = []
    rest: Terms = []
    for atom, c in index.terms:
        used = {atom} if isinstance(atom, int) else atom.numerator.iterators
        (inner if all(k < rank_ for k in used) else rest).append((atom, c))
    return inner, rest


def _generators(index: Index, rank_: int) -> Iterator[Index]:
    """Primitive traversal parts of an index, and of floors that mix traversals with sums."""
    inner, rest = _parts(index, rank_)
    if inner:
        yield primitive(Index(0, tuple(inner)))
    for atom, _ in rest:
        if isinstance(atom, FloorDiv):
            yield from _generators(atom.numerator, rank_)


def every_reindex(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Coordinates that are bases of the distinct primitive traversal parts of the indices."""
    rows: list[Index] = []
    for index, _ in body.rows():
        for row in _generators(index, body.rank):
            if row not in rows and -row not in rows:
                rows.append(row)
    choices = [_bases(group, body.shape) for group in _components(rows)]
    found = 0
    for choice in itertools.product(*choices):
        phi = [row for group in choice for row in group]
        if all(is_plain(row) for row in phi):
            continue
        step = reindex(body, phi)
        if step is not None:
            found += 1
            yield step
        if found >= options.bases:
            return
    if options.block:
        yield from _shears(body)


def _shears(body: SumOfProducts) -> Iterator[DerivationStep]:
    """Coordinates in which one traversal is counted from another that moves along with it."""
    for fixed, moved in together(body, range(body.rank)):
        phi = iterators(body.rank)
        phi[moved] += phi[fixed]
        if (step := reindex(body, phi)) is not None:
            yield step


def _components(rows: Sequence[Index]) -> list[list[Index]]:
    """Groups of rows that share atoms, in order of first occurrence."""
    groups: list[tuple[set[Atom], list[Index]]] = []
    for row in rows:
        atoms, members = {a for a, _ in row.terms}, [row]
        apart: list[tuple[set[Atom], list[Index]]] = []
        for others, their in groups:
            if atoms & others:
                atoms, members = atoms | others, [*their, *members]
            else:
                apart.append((others, their))
        groups = [*apart, (atoms, members)]
    return [members for _, members in groups]


def _bases(rows: Sequence[Index], shape: Sequence[int]) -> list[tuple[Index, ...]]:
    """Subsets of the rows of which all are integer combinations; if wide, the reduced basis.

    The only such subset of `6 * g + f` and `g` is both, with a box of all `6 * g + f` times all
    `g`. The reduced basis is `f` and `g`, whose box has no position twice. A narrow relaxed box
    needs no such alternative: where it helps, so does the scope as it stands.
    """
    if len(rows) == 1:
        return [(rows[0],)]
    size = rank(rows)
    found = [
        chosen
        for chosen in itertools.combinations(rows, size)
        if all(row in chosen or solve(chosen, row) is not None for row in rows)
    ]
    least = reduced(rows)
    wide = WIDE * _box(least, shape)
    return [*found, least] if all(_box(basis, shape) >= wide for basis in found) else found


def _box(basis: Sequence[Index], shape: Sequence[int]) -> int:
    """The positions of the box that holds a basis' values."""
    ranges = [range_of(row, shape) for row in basis]
    return math.prod(high - low + 1 for low, high in ranges)


# --- digits -------------------------------------------------------------------------------------


def split_traversal(body: SumOfProducts, number: int, by: int) -> DerivationStep | None:
    """Write a traversal as two digits, i = by * high + low: always sound.

    Before:

        %t = algebra.scope (h: 8) sum (r: 3) %x[h + 2 * r] * %k[r] : tensor<8xf32>
        %y = algebra.scope (h: 8) exp(%t[h]) : tensor<8xf32>

    After `at="t" traversal="h" by=2`:

        %t = algebra.scope (i0: 4, i1: 2) sum (k0: 3) %x[2 * i0 + i1 + 2 * k0] * %k[k0]
        %y = algebra.scope (h: 8) exp(%t[h floordiv 2, h - 2 * (h floordiv 2)]) : tensor<8xf32>
    """
    return _in_digits(body, [number], by, "split-traversal", (("traversal", f"i{number}"),))


def split_traversals(body: SumOfProducts, numbers: Sequence[int], by: int) -> DerivationStep | None:
    """Write several traversals as two digits each: always sound.

    Before:

        %t = algebra.scope (h: 8, w: 8) sum (r: 3, s: 3)
               %x[h + 2 * r, w + 2 * s] * %k[r, s] : tensor<8x8xf32>
        %y = algebra.scope (h: 8, w: 8) exp(%t[h, w]) : tensor<8x8xf32>

    After `at="t" traversals="h","w" by=2`:

        %t = algebra.scope (i0: 4, i1: 2, i2: 4, i3: 2) sum (k0: 3, k1: 3)
               %x[2 * i0 + i1 + 2 * k0, 2 * i2 + i3 + 2 * k1] * %k[k0, k1] : tensor<4x2x4x2xf32>
        %y = algebra.scope (h: 8, w: 8)
               exp(%t[h floordiv 2, h mod 2, w floordiv 2, w mod 2]) : tensor<8x8xf32>
    """
    words = (("traversals", tuple(f"i{k}" for k in numbers)),)
    return _in_digits(body, numbers, by, "split-traversals", words) if len(numbers) > 1 else None


def _in_digits(
    body: SumOfProducts, numbers: Sequence[int], by: int, rule: str, words: Parameters
) -> DerivationStep | None:
    if not all(0 <= k < body.rank and 1 < by < body.shape[k] for k in numbers):
        return None
    shape, images, image = list[int](), list[Index](), list[Index]()
    for k, (n, here) in enumerate(zip(body.shape, iterators(body.rank), strict=True)):
        new = Index.iterator(len(shape))
        if k in numbers:
            images.append(new * by + Index.iterator(len(shape) + 1))
            shape += [-(-n // by), by]
            image += [normalise(e, body.shape) for e in (here // by, here % by)]
        else:
            images.append(new)
            shape.append(n)
            image.append(here)
    images += [Index.iterator(len(shape) + k) for k in range(len(body.sums))]
    factors = [substituted(f, images) for f in body.factors]
    made = build(shape, body.sums, factors, body.element, body.coefficient)
    return DerivationStep(rule, made, (*words, ("by", by)), tuple(image))


def every_split_traversal(
    body: SumOfProducts, options: ProposalOptions
) -> Iterator[DerivationStep]:
    """Digits that coefficients and divisors beside a traversal of coefficient 1 or -1 suggest, and
    blocks of traversals that move along an index with another iterator."""
    wanted: set[tuple[int, int]] = set()
    for row, _ in body.rows():
        wanted |= _digits(row, body.rank)
    if options.block:
        wanted |= {(k, options.block) for k, _ in together(body, range(len(body.extents)))}
    yield from applicable(split_traversal(body, number, by) for number, by in sorted(wanted))


def every_split_traversals(
    body: SumOfProducts, options: ProposalOptions
) -> Iterator[DerivationStep]:
    """All traversals for which coefficients suggest one digit: phases of what is read in steps."""
    wanted = sorted({one for row, _ in body.rows() for one in _digits(row, body.rank)})
    for by in sorted({by for _, by in wanted}):
        step = split_traversals(body, [k for k, one in wanted if one == by], by)
        if step is not None:
            yield step


def _digits(row: Index, rank_: int) -> set[tuple[int, int]]:
    units = [a for a, c in row.terms if isinstance(a, int) and a < rank_ and abs(c) == 1]
    found = {(a, abs(c)) for a in units for _, c in row.terms if abs(c) > 1}
    for atom, _ in row.terms:
        if isinstance(atom, FloorDiv):
            inner = atom.numerator.terms
            found |= {
                (a, atom.divisor)
                for a, c in inner
                if isinstance(a, int) and a < rank_ and abs(c) == 1
            }
            found |= _digits(atom.numerator, rank_)
    return found


# --- where a scope is 0, or not read -------------------------------------------------------------


def tighten(body: SumOfProducts) -> DerivationStep | None:
    """Leave out the positions at both ends where a read or guard is provably out of bounds.

    Before:

        %t = algebra.scope (h: 10) sum (c: 4) %x[c, h - 1] * %k[c] : tensor<10xf32>
        %y = algebra.scope (h: 8) %t[h] : tensor<8xf32>

    After, with 8 positions in each row of %x:

        %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] : tensor<8xf32>
        %y = algebra.scope (h: 8) %t[h - 1] : tensor<8xf32>
    """
    box = [_alive(body, k) for k in range(body.rank)]
    if any(low > high for low, high in box):
        return None
    if all(low == 0 and high == n - 1 for (low, high), n in zip(box, body.shape, strict=True)):
        return None
    new = _restricted(body, box)
    image = tuple(Index.iterator(k) - low for k, (low, _) in enumerate(box))
    return DerivationStep("tighten", new.scope(), (), image, zero_beyond=True)


def tighten_sums(body: SumOfProducts) -> DerivationStep | None:
    """Leave out the positions of sums at which a read or guard is provably out of bounds.

    Before:

        %y = algebra.scope (h: 8) sum (r: 5) %x[h + r] * %k[r - 1] : tensor<8xf32>

    After, with three positions in %k:

        %y = algebra.scope (i0: 8) sum (k0: 3) %k[k0] * %x[i0 + k0 + 1] : tensor<8xf32>
    """
    box = [(0, n - 1) for n in body.shape]
    box += [_alive(body, k) for k in range(body.rank, len(body.extents))]
    if any(low > high for low, high in box):
        return None
    if all(high - low + 1 == n for (low, high), n in zip(box, body.extents, strict=True)):
        return None
    return DerivationStep("tighten-sums", _restricted(body, box).scope())


def _alive(body: SumOfProducts, k: int) -> tuple[int, int]:
    """The range of iterator k in which every index is in bounds, whatever the others are."""
    n = body.extents[k]
    first, last = 0, n - 1
    for row, size in body.rows():
        c = row.coefficient(k)
        low, high = range_of(row, body.extents)
        if c == 0 or (low >= 0 and high < size) or _in_floor(k, row):
            continue
        if row.has_floor:
            low, high = range_of(row - Index.iterator(k) * c, body.extents)
        else:
            low, high = low - min(c * (n - 1), 0), high - max(c * (n - 1), 0)
        # 0 <= c * x + rest < size for some value of the rest in [low, high]
        at_least, at_most = -high, size - 1 - low
        if c < 0:
            at_least, at_most, c = -at_most, -at_least, -c
        first, last = max(first, -(-at_least // c)), min(last, at_most // c)
    return first, last


def _in_floor(k: int, row: Index) -> bool:
    return any(isinstance(a, FloorDiv) and k in a.numerator.iterators for a, _ in row.terms)


def _restricted(body: SumOfProducts, box: Sequence[tuple[int, int]]) -> SumOfProducts:
    """The body over a box of the traversals, or of all iterators."""
    extents = [high - low + 1 for low, high in box]
    extents += body.extents[len(box) :]
    images = iterators(len(body.extents))
    for k, (low, _) in enumerate(box):
        images[k] += low
    factors = tuple(substituted(f, images) for f in body.factors)
    shape, sums = tuple(extents[: body.rank]), tuple(extents[body.rank :])
    return SumOfProducts(shape, sums, body.coefficient, factors, body.element)


def restrict(body: SumOfProducts, number: int, low: int, high: int) -> DerivationStep | None:
    """Compute only positions low .. high - 1 of a traversal. Sound where readers stay inside them.

    Before:

        %t = algebra.scope (h: 10) sum (c: 4) %x[c, h] * %k[c] : tensor<10xf32>
        %y = algebra.scope (h: 6) %t[h + 2] : tensor<6xf32>

    After `at="t" traversal="h" low=2 high=8`:

        %t = algebra.scope (i0: 6) sum (k0: 4) %k[k0] * %x[k0, i0 + 2] : tensor<6xf32>
        %y = algebra.scope (h: 6) %t[h] : tensor<6xf32>
    """
    n = body.shape[number]
    if not 0 <= low < high <= n or high - low == n:
        return None
    box = [(0, m - 1) for m in body.shape]
    box[number] = (low, high - 1)
    image = iterators(body.rank)
    image[number] -= low
    words = (("traversal", f"i{number}"), ("low", low), ("high", high))
    return DerivationStep(
        "restrict", _restricted(body, box).scope(), words, tuple(image), zero_beyond=True
    )


def readers_within(op: ScopeOp, dim: int, low: int, high: int) -> bool:
    """Whether all users are scopes that read nothing else of a dim than low .. high - 1."""
    for use in op.result.uses:
        user = use.operation
        if not isinstance(user, ScopeOp):
            return False
        for read in user.reads():
            if read.source is op.result:
                first, last = range_of(read.index[dim], user.extents)
                first, last = max(first, 0), min(last, op.traversal[dim] - 1)
                if first <= last and (first < low or last >= high):
                    return False
    return True


def drop_dead(body: SumOfProducts) -> DerivationStep | None:
    """Leave out traversals that no factor uses: the value is the same all along them.

    Before:

        %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h] * %k[c] : tensor<8x3xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>

    After:

        %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] : tensor<8xf32>
        %y = algebra.scope (h: 8) sum (r: 3) %t[h] : tensor<8xf32>
    """
    used = frozenset[int]().union(*(used_by(f) for f in body.factors))
    kept = [k for k in range(body.rank) if k in used]
    if len(kept) == body.rank:
        return None
    images = renaming(len(body.extents), [*kept, *range(body.rank, len(body.extents))])
    factors = [substituted(f, images) for f in body.factors]
    shape = [body.shape[k] for k in kept]
    new = build(shape, body.sums, factors, body.element, body.coefficient)
    return DerivationStep("drop-dead", new, (), tuple(Index.iterator(k) for k in kept))


def expression_split(body: SumOfProducts, number: int, at: int) -> DerivationStep | None:
    """Compute a scope in two pieces along a traversal, each 0 outside its own positions.

    Before:

        %y = algebra.scope (h: 8) sum (c: 4) %x[c, h] * %k[c] : tensor<8xf32>

    After `traversal="h" position=5`:

        %y.0 = algebra.scope (i0: 5) sum (k0: 4) %k[k0] * %x[k0, i0] : tensor<5xf32>
        %y.1 = algebra.scope (i0: 3) sum (k0: 4) %k[k0] * %x[k0, i0 + 5] : tensor<3xf32>
        %y = algebra.scope (i0: 8) %y.0[i0] + %y.1[i0 - 5] : tensor<8xf32>
    """
    n = body.shape[number]
    lower, upper = restrict(body, number, 0, at), restrict(body, number, at, n)
    if lower is None or upper is None:
        return None
    moved = iterators(body.rank)
    moved[number] -= at
    parts = [
        factor(Read(lower.new, tuple(iterators(body.rank))), body.shape),
        factor(Read(upper.new, tuple(moved)), body.shape),
    ]
    new = scope(body.shape, body.element, add(*parts))
    return DerivationStep("expression-split", new, (("traversal", f"i{number}"), ("position", at)))


def every_expression_split(
    body: SumOfProducts, options: ProposalOptions
) -> Iterator[DerivationStep]:
    """Halves of every traversal."""
    yield from applicable(expression_split(body, k, n // 2) for k, n in enumerate(body.shape))
