"""Quasi-affine index expressions over iterators: one normal form.

An `Index` is a constant plus integer multiples of atoms. An atom is an iterator (its position) or a
`FloorDiv`. There is no mod atom: `e % d` is `e - d * (e // d)`, so `W * (z // W) + z % W` is
`z` by cancellation alone. `normalise` uses the iterators' extents (every iterator runs over
[0, extent)) to remove floors that the ranges decide; see `range_of` for the ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

# With more points than this, the exact range of an expression with floors is not tabulated.
# Interval arithmetic is used instead, which is sound but may be wider.
EXACT_RANGE_POINTS = 1 << 20


@dataclass(frozen=True, eq=False, init=False)
class FloorDiv:
    """The atom floor(`numerator` / `divisor`), divisor >= 2. Interned: equality is identity."""

    numerator: Index
    divisor: int

    def __new__(cls, numerator: Index, divisor: int) -> FloorDiv:
        key = (numerator, divisor)
        found = _FLOORS.get(key)
        if found is not None:
            return found
        made = super().__new__(cls)
        vars(made).update(numerator=numerator, divisor=divisor)
        return _FLOORS.setdefault(key, made)

    def __reduce__(self) -> tuple[Any, ...]:
        return FloorDiv, (self.numerator, self.divisor)

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (1, self.divisor, self.numerator.key)


Atom: TypeAlias = "int | FloorDiv"
Range: TypeAlias = tuple[int, int]
"""The smallest and the largest value; both ends are inclusive."""


def _atom_key(atom: Atom) -> tuple[object, ...]:
    return (0, atom) if isinstance(atom, int) else atom.key


def _term_key(term: tuple[Atom, int]) -> tuple[object, ...]:
    return _atom_key(term[0])


@dataclass(frozen=True, eq=False, init=False)
class Index:
    """`constant + sum(coefficient * atom)`, atoms in a fixed order, no zero coefficient.

    Interned: there is one object for each expression, so equality is identity. `__new__` sets the
    fields, and only of a new object: most calls return an existing one.
    """

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()  # atom and coefficient

    def __new__(cls, constant: int, terms: tuple[tuple[Atom, int], ...] = ()) -> Index:
        key = (constant, terms)
        found = _INDICES.get(key)
        if found is not None:
            return found
        made = super().__new__(cls)
        vars(made).update(constant=constant, terms=terms)
        return _INDICES.setdefault(key, made)

    def __reduce__(self) -> tuple[Any, ...]:
        return Index, (self.constant, self.terms)

    @staticmethod
    def make(constant: int, coefficients: Mapping[Atom, int]) -> Index:
        kept = [term for term in coefficients.items() if term[1] != 0]
        if len(kept) > 1:
            kept.sort(key=_term_key)
        return Index(constant, tuple(kept))

    @staticmethod
    @lru_cache(maxsize=1 << 10)
    def iterator(position: int) -> Index:
        return Index(0, ((position, 1),))

    @staticmethod
    def of(value: Index | int) -> Index:
        return value if isinstance(value, Index) else Index(int(value))

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (self.constant, tuple((_atom_key(atom), c) for atom, c in self.terms))

    @cached_property
    def iterators(self) -> frozenset[int]:
        """Positions of every iterator that occurs, including those inside floors."""
        found: set[int] = set()
        for atom, _ in self.terms:
            found |= {atom} if isinstance(atom, int) else atom.numerator.iterators
        return frozenset(found)

    @property
    def has_floor(self) -> bool:
        return any(isinstance(atom, FloorDiv) for atom, _ in self.terms)

    def coefficient(self, atom: Atom) -> int:
        return next((c for a, c in self.terms if a == atom), 0)

    def __add__(self, other: Index | int) -> Index:
        other = Index.of(other)
        if not other.terms:
            return Index(self.constant + other.constant, self.terms)
        if not self.terms:
            return Index(self.constant + other.constant, other.terms)
        total: dict[Atom, int] = dict(self.terms)
        for atom, c in other.terms:
            total[atom] = total.get(atom, 0) + c
        return Index.make(self.constant + other.constant, total)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + Index.of(other) * -1

    def __rsub__(self, other: Index | int) -> Index:
        return Index.of(other) - self

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return Index(0)
        return Index(self.constant * factor, tuple((atom, c * factor) for atom, c in self.terms))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        return _floordiv(self, divisor, None)

    def __mod__(self, divisor: int) -> Index:
        return self - (self // divisor) * divisor

    def substitute(self, images: Sequence[Index]) -> Index:
        """Replace iterator k by `images[k]`."""
        constant, total = self.constant, dict[Atom, int]()
        for atom, c in self.terms:
            if isinstance(atom, int):
                image = images[atom]
            else:
                image = _floordiv(atom.numerator.substitute(images), atom.divisor, None)
            constant += image.constant * c
            for inner, d in image.terms:
                total[inner] = total.get(inner, 0) + d * c
        return Index.make(constant, total)

    def evaluate(self, values: Sequence[np.ndarray | int]) -> np.ndarray | int:
        """Value at integer (or broadcastable integer array) iterator values."""
        total: np.ndarray | int = self.constant
        for k, (atom, c) in enumerate(self.terms):
            if isinstance(atom, int):
                part = values[atom]
            else:
                part = atom.numerator.evaluate(values) // atom.divisor
            part = part if c == 1 else c * part
            total = part if k == 0 and self.constant == 0 else total + part
        return total

    def text(self, names: Sequence[str]) -> str:
        """Print as in `2 * h + r - 1`, `(h + 1) floordiv 2`."""
        parts: list[str] = []
        for atom, c in self.terms:
            if isinstance(atom, int):
                name = names[atom]
            else:
                inner = atom.numerator.text(names)
                inner = f"({inner})" if " " in inner or inner.startswith("-") else inner
                name = f"{inner} floordiv {atom.divisor}"
                name = name if c == 1 else f"({name})"
            body = name if abs(c) == 1 else f"{abs(c)} * {name}"
            sign = "-" if c < 0 else "+"
            parts.append(f" {sign} {body}" if parts else (f"-{body}" if c < 0 else body))
        if self.constant != 0 or not parts:
            sign = "-" if self.constant < 0 else "+"
            shown = f" {sign} {abs(self.constant)}" if parts else str(self.constant)
            parts.append(shown)
        return "".join(parts)

    def __str__(self) -> str:
        width = max(self.iterators, default=-1) + 1
        return self.text([f"d{k}" for k in range(width)])

    def to_affine(self) -> AffineExpr:
        total: AffineExpr | None = None
        for atom, c in self.terms:
            if isinstance(atom, int):
                base: AffineExpr = AffineDimExpr(atom)
            else:
                base = AffineBinaryOpExpr(
                    AffineBinaryOpKind.FloorDiv,
                    atom.numerator.to_affine(),
                    AffineConstantExpr(atom.divisor),
                )
            part = (
                base
                if c == 1
                else AffineBinaryOpExpr(AffineBinaryOpKind.Mul, base, AffineConstantExpr(c))
            )
            total = (
                part if total is None else AffineBinaryOpExpr(AffineBinaryOpKind.Add, total, part)
            )
        constant = AffineConstantExpr(self.constant)
        if total is None:
            return constant
        if self.constant == 0:
            return total
        return AffineBinaryOpExpr(AffineBinaryOpKind.Add, total, constant)


# The live objects of each class; an entry is removed with its object.
_FLOORS: WeakValueDictionary[tuple[Index, int], FloorDiv] = WeakValueDictionary()
_INDICES: WeakValueDictionary[tuple[int, tuple[tuple[Atom, int], ...]], Index] = (
    WeakValueDictionary()
)


@lru_cache(maxsize=1 << 16)
def from_affine(expr: AffineExpr) -> Index:
    """Read an affine expression over dims only. Raises ValueError on symbols or products."""
    if isinstance(expr, AffineConstantExpr):
        return Index(expr.value)
    if isinstance(expr, AffineDimExpr):
        return Index.iterator(expr.position)
    if not isinstance(expr, AffineBinaryOpExpr):
        raise ValueError(f"index expressions have no symbols: {expr}")
    left, right = from_affine(expr.lhs), from_affine(expr.rhs)
    match expr.kind:
        case AffineBinaryOpKind.Add:
            return left + right
        case AffineBinaryOpKind.Mul if not right.terms:
            return left * right.constant
        case AffineBinaryOpKind.Mul if not left.terms:
            return right * left.constant
        case AffineBinaryOpKind.FloorDiv if not right.terms and right.constant > 0:
            return left // right.constant
        case AffineBinaryOpKind.Mod if not right.terms and right.constant > 0:
            return left % right.constant
        case AffineBinaryOpKind.CeilDiv if not right.terms and right.constant > 0:
            return -((-left) // right.constant)
        case _:
            raise ValueError(f"not quasi-affine: {expr}")


def iterators(count: int, start: int = 0) -> list[Index]:
    """Iterators number `start` .. `start + count - 1` as expressions."""
    return [Index.iterator(start + k) for k in range(count)]


def normalise(index: Index, extents: Sequence[int]) -> Index:
    """Bring to normal form, every iterator k in [0, extents[k])."""
    if not index.has_floor:
        kept = tuple(term for term in index.terms if extents[term[0]] != 1)  # pyright: ignore
        return index if len(kept) == len(index.terms) else Index(index.constant, kept)
    result = Index(index.constant)
    for atom, c in index.terms:
        if isinstance(atom, int):
            result += Index(0, ((atom, c),)) if extents[atom] != 1 else Index(0)
        else:
            inner = normalise(atom.numerator, extents)
            result += _floordiv(inner, atom.divisor, tuple(extents)) * c
    return result


@lru_cache(maxsize=1 << 16)
def range_of(index: Index, extents: tuple[int, ...]) -> Range:
    """Return the smallest and the largest value.

    Exact, unless terms with floors that share iterators span more than EXACT_RANGE_POINTS points.

    An empty iterator counts as its first value: nothing is read, so any range is valid.
    """
    if 0 in extents:
        return range_of(index, tuple(n or 1 for n in extents))
    if not index.has_floor:
        low = high = index.constant
        for atom, c in index.terms:
            assert isinstance(atom, int)
            reach = c * (extents[atom] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high
    low = high = index.constant
    for part in _independent_parts(index):
        a, b = _range_of_part(part, extents)
        low, high = low + a, high + b
    return low, high


def stays_inside(index: Sequence[Index], shape: Sequence[int], extents: tuple[int, ...]) -> bool:
    """Whether a read at `index` never leaves a tensor of this shape."""
    for e, size in zip(index, shape, strict=True):
        low, high = range_of(e, extents)
        if low < 0 or high >= size:
            return False
    return True


def _independent_parts(index: Index) -> list[Index]:
    """Split the terms into parts without common iterators: the ranges of parts add up exactly."""
    parts: list[tuple[frozenset[int], list[tuple[Atom, int]]]] = []
    for atom, c in index.terms:
        shared = frozenset((atom,)) if isinstance(atom, int) else atom.numerator.iterators
        terms = [(atom, c)]
        disjoint: list[tuple[frozenset[int], list[tuple[Atom, int]]]] = []
        for other_iterators, other_terms in parts:
            if shared & other_iterators:
                shared, terms = shared | other_iterators, other_terms + terms
            else:
                disjoint.append((other_iterators, other_terms))
        parts = [*disjoint, (shared, terms)]
    return [Index.make(0, dict(terms)) for _, terms in parts]


def _range_of_part(index: Index, extents: tuple[int, ...]) -> Range:
    used = sorted(index.iterators)
    if len(index.terms) == 1:  # one atom: an iterator, or a floor, which is monotone
        return _interval(index, extents)
    if math.prod(extents[k] for k in used) <= EXACT_RANGE_POINTS:
        values = np.asarray(index.evaluate(grid(extents, used)))
        return int(values.min()), int(values.max())
    return _interval(index, extents)


def grid(extents: Sequence[int], used: Sequence[int]) -> list[np.ndarray | int]:
    """Broadcastable value arrays for the iterators in `used` (axis order), 0 for the others."""
    values: list[np.ndarray | int] = [0] * len(extents)
    for axis, k in enumerate(used):
        shape = [1] * len(used)
        shape[axis] = extents[k]
        values[k] = np.arange(extents[k]).reshape(shape)
    return values


def _interval(index: Index, extents: tuple[int, ...]) -> Range:
    low = high = index.constant
    for atom, c in index.terms:
        if isinstance(atom, int):
            a, b = 0, extents[atom] - 1
        else:
            a, b = range_of(atom.numerator, extents)
            a, b = a // atom.divisor, b // atom.divisor
        low, high = low + min(c * a, c * b), high + max(c * a, c * b)
    return low, high


def _floordiv(index: Index, divisor: int, extents: tuple[int, ...] | None) -> Index:
    """floor(index / divisor), simplified as far as the ranges (if given) allow."""
    if divisor <= 0:
        raise ValueError(f"index division needs a positive divisor, found {divisor}")
    if divisor == 1:
        return index
    divisible = {atom: c // divisor for atom, c in index.terms if c % divisor == 0}
    rest = {atom: c for atom, c in index.terms if c % divisor != 0}
    quotient = Index.make(index.constant // divisor, divisible)
    remainder = index.constant % divisor
    if not rest:
        return quotient
    common = math.gcd(divisor, *rest.values())
    undivided = Index.make(remainder // common, {atom: c // common for atom, c in rest.items()})
    divisor //= common
    if divisor == 1:
        return quotient + undivided
    if (
        extents is not None
        and (simplified := _floordiv_by_ranges(undivided, divisor, extents)) is not None
    ):
        return quotient + simplified
    if (nested := _nested(undivided, divisor, extents)) is not None:
        return quotient + nested
    return quotient + Index(0, ((FloorDiv(undivided, divisor), 1),))


def _nested(index: Index, divisor: int, extents: tuple[int, ...] | None) -> Index | None:
    """floor((floor(e / a) + c) / b) = floor((e + c * a) / (a * b))."""
    if len(index.terms) != 1 or index.terms[0][1] != 1:
        return None
    atom = index.terms[0][0]
    if not isinstance(atom, FloorDiv):
        return None
    inner = atom.numerator + index.constant * atom.divisor
    return _floordiv(inner, atom.divisor * divisor, extents)


def _floordiv_by_ranges(index: Index, divisor: int, extents: tuple[int, ...]) -> Index | None:
    """Simplify floor(index / divisor) by ranges; None if they decide nothing.

    The quotient may be constant, or part of the index may be too small to carry into it.
    """
    low, high = range_of(index, extents)
    if low // divisor == high // divisor:
        return Index(low // divisor)
    for step in _divisors_above_one(divisor):
        high_part = {a: c // step for a, c in index.terms if c % step == 0}
        low_part = Index.make(
            index.constant % step, {a: c for a, c in index.terms if c % step != 0}
        )
        if not high_part or not low_part.terms:
            continue
        a, b = range_of(low_part, extents)
        if a >= 0 and b < step:
            carried = Index.make(index.constant // step, high_part)
            return _floordiv(carried, divisor // step, extents)
    return None


@lru_cache(maxsize=4096)
def _divisors_above_one(number: int) -> tuple[int, ...]:
    """Return the divisors of `number` other than 1, largest first."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({d for s in small for d in (s, number // s)} - {1}, reverse=True))


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a dense row-major tensor."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if shape else ()


def flatten(indices: Iterable[Index], strides: Iterable[int]) -> Index:
    """The flat address `sum(stride * index)`."""
    total = Index(0)
    for index, stride in zip(indices, strides, strict=True):
        total += index * stride
    return total


def unflatten(flat: Index, shape: Sequence[int]) -> list[Index]:
    """Row-major coordinates of a flat address known to lie inside `shape`."""
    strides = row_major_strides(shape)
    coordinates: list[Index] = []
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        digit = flat // (stride or 1)  # an empty tensor has no positions: any expression will do
        coordinates.append(digit if axis == 0 else digit % (size or 1))
    return coordinates


def points(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every point of the box, in row-major order."""
    return product(*(range(n) for n in extents))


def is_chain(coefficients: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether iterators, outermost first, cover one strided range: a[j] = a[j+1] * n[j+1]."""
    pairs = list(zip(coefficients, extents, strict=True))
    return all(outer[0] == inner[0] * inner[1] for outer, inner in pairwise(pairs))
