"""The operators of mutants, PET's Table 1, each defined by the scope that it is written as.

The enumeration evaluates the same scopes on residues.

Reshapes and transposes are in `views.py`. Batch norm in inference is a scale and a bias, which fold
into a convolution before (`fold-batch-norm`). A split comes from looking up several outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...dialects.canonical_scope import collect, normal, scope
from ...dialects.canonical_types import ONE, Extents, Guard, Read, Scope, Source
from ...dialects.index import Index, iterators
from ..derivation.body import build


class ProductReads(NamedTuple):
    """The reads of a product: indices over its positions and then its sums."""

    sums: Extents
    left: list[Index]
    right: list[Index]


class ProductOperator(ABC):
    """An operator that multiplies two tensors: a scope of one sum of products."""

    @abstractmethod
    def shape(self, x: Extents, w: Extents) -> Extents | None:
        """The shape of the result; None if it does not take these operands."""

    @abstractmethod
    def reads(self, x: Extents, w: Extents) -> ProductReads:
        """Extents of the sums, and the operands' indices."""

    def build(self, x: Source, w: Source) -> Scope:
        """The result as a scope."""
        shape = self.shape(x.shape, w.shape)
        assert shape is not None
        sums, left, right = self.reads(x.shape, w.shape)
        return build(shape, sums, (Read(x, tuple(left)), Read(w, tuple(right))), x.element)


@dataclass(frozen=True)
class Conv(ProductOperator):
    """x [n, c, *in] with w [f, c / groups, *taps], padded alike on both sides of each dim."""

    stride: int  # of every spatial dim
    dilation: int  # likewise
    groups: int
    same: bool  # padding so that stride 1 keeps the size; else none

    def __str__(self) -> str:
        padded = "same" if self.same else "valid"
        return f"conv stride {self.stride} dilation {self.dilation} groups {self.groups} {padded}"

    def pads(self, taps: Sequence[int]) -> list[int]:
        """Zeros before each spatial dim."""
        return [self.dilation * (t - 1) // 2 if self.same else 0 for t in taps]

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        if len(x) < 3 or len(w) != len(x) or x[1] != w[1] * self.groups or w[0] % self.groups:
            return None
        if self.same and not any(self.pads(w[2:])):
            return None  # the same as valid
        sizes = [
            (n + 2 * p - self.dilation * (t - 1) - 1) // self.stride + 1
            for n, t, p in zip(x[2:], w[2:], self.pads(w[2:]), strict=True)
        ]
        return (x[0], w[0], *sizes) if min(sizes) > 0 else None

    def channel(self, features: int, channels: int, f: Index, c: Index) -> Index:
        """The channel that a feature reads, at position c of its group."""
        if self.groups == 1:
            return c
        return (f // (features // self.groups)) * (channels // self.groups) + c

    def reads(self, x: Extents, w: Extents) -> ProductReads:
        features, per_group, *taps = w
        n, f, *at = iterators(len(x))
        c, *tap = iterators(1 + len(taps), len(x))
        channel = self.channel(features, per_group * self.groups, f, c)
        where = [
            a * self.stride + t * self.dilation - p
            for a, t, p in zip(at, tap, self.pads(taps), strict=True)
        ]
        return ProductReads((per_group, *taps), [n, channel, *where], [f, c, *tap])


@dataclass(frozen=True)
class Matmul(ProductOperator):
    """a [*batch, m, k] with b [*batch, k, n], or with one b [k, n]."""

    def __str__(self) -> str:
        return "matmul"

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        if len(x) < 2 or len(w) not in (2, len(x)) or x[len(x) - 1] != w[len(w) - 2]:
            return None
        if len(w) > 2 and x[:-2] != w[:-2]:
            return None
        return (*x[: len(x) - 1], w[len(w) - 1])

    def reads(self, x: Extents, w: Extents) -> ProductReads:
        *batch, m, n = iterators(len(x))
        (k,) = iterators(1, len(x))
        over = batch if len(w) == len(x) else []
        return ProductReads((x[-1],), [*batch, m, k], [*over, k, n])


@dataclass(frozen=True)
class Multiply(ProductOperator):
    """The product of two tensors of one shape, position by position."""

    def __str__(self) -> str:
        return "mul"

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        return x if x == w else None

    def reads(self, x: Extents, w: Extents) -> ProductReads:
        at = list(iterators(len(x)))
        return ProductReads((), at, at)


def products(
    strides: Sequence[int], dilations: Sequence[int], groups: Sequence[int]
) -> Iterator[ProductOperator]:
    """Every operator of two operands that multiplies them."""
    for group in groups:
        for stride in strides:
            for dilation in dilations:
                yield Conv(stride, dilation, group, False)
                yield Conv(stride, dilation, group, True)
    yield Matmul()
    yield Multiply()


# --- without a product --------------------------------------------------------------------------


def averaging_weights(channels: int, size: int, depthwise: bool, like: Source) -> Scope:
    """The weights of a convolution that averages each channel; TASO's pool constant."""
    f, c = iterators(2)
    shape = (channels, 1 if depthwise else channels, size, size)
    guards = [] if depthwise else [Guard(f - c, 1)]
    return build(shape, (), guards, like.element, Fraction(1, size * size))


@dataclass(frozen=True)
class Joined:
    """Tensors one after another: the shape, and where each of them begins."""

    shape: Extents
    starts: tuple[tuple[int, ...], ...]


def joined(shapes: Sequence[Extents], dim: int, *, blocks: bool = False) -> Joined | None:
    """Where tensors one after another stand; None if they do not fit.

    Smaller kernels are centred in the largest size, if the margins are whole numbers.

    Args:
        blocks: each takes as much room as the largest in the first two dims, as the members of a
            group do; it begins there, and zeros follow. None where all are alike.
    """
    first = shapes[0]
    if any(len(s) != len(first) for s in shapes):
        return None
    shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
    if blocks and all(list(s[:2]) == shape[:2] for s in shapes):
        return None
    for s in shapes:
        unlike = [k for k, n in enumerate(s) if k != dim and n != shape[k]]
        if any((shape[k] - s[k]) % 2 if k > 1 else not blocks for k in unlike):
            return None
    centred = [
        [(n - m) // 2 if k > 1 else 0 for k, (n, m) in enumerate(zip(shape, s, strict=True))]
        for s in shapes
    ]
    start = 0
    for at, s in zip(centred, shapes, strict=True):
        at[dim] = start
        start += shape[dim] if blocks else s[dim]
    shape[dim] = start
    return Joined(tuple(shape), tuple(map(tuple, centred)))


def side_by_side(shapes: Sequence[Extents], dim: int, *, blocks: bool = False) -> Extents | None:
    """The shape of tensors one after another; None if they do not fit."""
    found = joined(shapes, dim, blocks=blocks)
    return None if found is None else found.shape


def side_by_side_scope(parts: Sequence[Source], dim: int, *, blocks: bool = False) -> Scope:
    """Tensors one after another, smaller ones among zeros (`joined`).

    A sum of reads, each 0 outside its part.
    """
    found = joined([p.shape for p in parts], dim, blocks=blocks)
    assert found is not None
    terms = []
    for part, start in zip(parts, found.starts, strict=True):
        at = tuple(e - by for e, by in zip(iterators(len(start)), start, strict=True))
        terms += normal((ONE, (), (Read(part, at),)), found.shape)
    return scope(found.shape, parts[0].element, collect(terms))


def gathered(source: Source, index: Sequence[Index], shape: Sequence[int]) -> Scope:
    """The tensor with the source's value at an index of each position; zero outside the source."""
    return build(shape, (), [Read(source, tuple(index))], source.element)
