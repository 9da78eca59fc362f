"""The operators that mutants are made of: PET's Table 1, each on residues and as a scope.

The residues (numpy arrays [lane, *shape]) are what the enumeration computes with; the scope is what
a mutant that is chosen is written as. Tests compare the two for every operator.

Reshapes and transposes are in `views.py`; batch norm in inference is a scale and a bias, which fold
into a convolution before (`fold-batch-norm`); a split is what the lookup of several outputs does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...dialects.canonical_scope import collect, normal, scope
from ...dialects.canonical_types import ONE, Extents, Guard, Read, Scope, Source
from ...dialects.index import Index, iterators
from ..derivation.body import build
from ..equivalence.residues import Residues
from .views import Lanes, Places

# Places of an image, and whether they are inside of it: [position, element of the weights].
Windows: TypeAlias = "tuple[list[Places], np.ndarray[Any, np.dtype[np.bool_]]]"


class Product(Protocol):
    """An operator that multiplies two tensors."""

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        """The shape of the result; None where it does not take these operands."""
        ...

    def values(self, field: Residues, x: Lanes, w: Lanes) -> Lanes:
        """The result as residues."""
        ...

    def build(self, x: Source, w: Source) -> Scope:
        """The result as a scope."""
        ...


@dataclass(frozen=True)
class Conv:
    """x [n, c, *in] with w [f, c / groups, *taps], padded alike on both sides of each dim."""

    stride: int
    dilation: int
    groups: int
    same: bool

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

    def values(self, field: Residues, x: Lanes, w: Lanes) -> Lanes:
        lanes, n, _, *_ = x.shape
        features, per_group, *taps = w.shape[1:]
        pads = [(0, 0)] * 3 + [(p, p) for p in self.pads(taps)]
        reach = [self.dilation * (t - 1) + 1 for t in taps]
        axes = tuple(range(3, x.ndim))
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads), reach, axes)
        step = (slice(None, None, self.stride),) * len(taps)
        tap = (slice(None, None, self.dilation),) * len(taps)
        windows = windows[(slice(None),) * 3 + step + tap]
        sizes, rank = windows.shape[3 : 3 + len(taps)], len(taps)
        grouped = windows.reshape(lanes, n, self.groups, per_group, *sizes, *taps)
        order = (0, 2, 1, *range(4, 4 + rank), 3, *range(4 + rank, 4 + 2 * rank))
        inner = per_group * math.prod(taps)
        left = grouped.transpose(order).reshape(lanes, self.groups, -1, inner)
        right = w.reshape(lanes, self.groups, -1, inner).swapaxes(2, 3)
        made = field.matmul(left, right).reshape(lanes, self.groups, n, *sizes, -1)
        moved = np.moveaxis(np.moveaxis(made, 1, 2), -1, 3)  # lane, n, group, feature, *sizes
        return moved.reshape(lanes, n, features, *sizes)

    def windows(self, x: Extents, w: Extents, at: Sequence[Places]) -> Windows:
        """What some positions (n, *out) read.

        For one group: with more, not every position reads the same channels.
        """
        per_group, *taps = w[1:]
        elements = np.unravel_index(np.arange(math.prod(w[1:])), (per_group, *taps))
        places = [at[0][:, None], elements[0][None, :]]
        inside = np.ones((1, 1), bool)
        for out, tap, n, pad in zip(at[1:], elements[1:], x[2:], self.pads(taps), strict=True):
            place = out[:, None] * self.stride + tap[None, :] * self.dilation - pad
            if pad:
                inside = inside & (place >= 0) & (place < n)
            places.append(place)
        return places, inside

    def channel(self, features: int, channels: int, f: Index, c: Index) -> Index:
        """The channel that a feature reads, at place c of its group."""
        if self.groups == 1:
            return c
        return (f // (features // self.groups)) * (channels // self.groups) + c

    def build(self, x: Source, w: Source) -> Scope:
        shape = self.shape(x.shape, w.shape)
        assert shape is not None
        features, per_group, *taps = w.shape
        n, f, *at = iterators(len(shape))
        c, *tap = iterators(1 + len(taps), len(shape))
        channel = self.channel(features, per_group * self.groups, f, c)
        where = [
            a * self.stride + t * self.dilation - p
            for a, t, p in zip(at, tap, self.pads(taps), strict=True)
        ]
        factors = Read(x, (n, channel, *where)), Read(w, (f, c, *tap))
        return build(shape, (per_group, *taps), factors, x.element)


@dataclass(frozen=True)
class Matmul:
    """a [*batch, m, k] with b [*batch, k, n], or with one b [k, n]."""

    def __str__(self) -> str:
        return "matmul"

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        if len(x) < 2 or len(w) not in (2, len(x)) or x[len(x) - 1] != w[len(w) - 2]:
            return None
        if len(w) > 2 and x[:-2] != w[:-2]:
            return None
        return (*x[: len(x) - 1], w[len(w) - 1])

    def values(self, field: Residues, x: Lanes, w: Lanes) -> Lanes:
        lanes, m, k, n = x.shape[0], x.shape[-2], x.shape[-1], w.shape[-1]
        if w.ndim < x.ndim:
            made = field.matmul(x.reshape(lanes, 1, -1, k), w.reshape(lanes, 1, k, n))
        else:
            made = field.matmul(x.reshape(lanes, -1, m, k), w.reshape(lanes, -1, k, n))
        return made.reshape(*x.shape[:-1], n)

    def build(self, x: Source, w: Source) -> Scope:
        shape = self.shape(x.shape, w.shape)
        assert shape is not None
        *batch, m, n = iterators(len(shape))
        (k,) = iterators(1, len(shape))
        over = batch if len(w.shape) == len(shape) else []
        factors = Read(x, (*batch, m, k)), Read(w, (*over, k, n))
        return build(shape, (x.shape[-1],), factors, x.element)


@dataclass(frozen=True)
class Multiply:
    """The product of two tensors of one shape, place by place."""

    def __str__(self) -> str:
        return "mul"

    def shape(self, x: Extents, w: Extents) -> Extents | None:
        return x if x == w else None

    def values(self, field: Residues, x: Lanes, w: Lanes) -> Lanes:
        return field.reduce(x * w)

    def build(self, x: Source, w: Source) -> Scope:
        at = tuple(iterators(len(x.shape)))
        return build(x.shape, (), (Read(x, at), Read(w, at)), x.element)


def products(
    strides: Sequence[int], dilations: Sequence[int], groups: Sequence[int]
) -> Iterator[Product]:
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


def side_by_side(shapes: Sequence[Extents], dim: int) -> Extents | None:
    """The shape of tensors one after another; None where they do not fit.

    Kernels of other sizes are enlarged to the largest, in the middle, if that is a whole number.
    """
    first = shapes[0]
    if any(len(s) != len(first) for s in shapes):
        return None
    shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
    for s in shapes:
        for k, n in enumerate(s):
            if k != dim and n != shape[k] and (k < 2 or (shape[k] - n) % 2):
                return None
    shape[dim] = sum(s[dim] for s in shapes)
    return tuple(shape)


def side_by_side_values(parts: Sequence[Lanes], dim: int) -> Lanes:
    """Tensors one after another, enlarged in the middle where they are smaller."""
    shape = [max(sizes) for sizes in zip(*(p.shape for p in parts), strict=True)]
    grown: list[Lanes] = []
    for part in parts:
        more = [(n - m) // 2 for n, m in zip(shape, part.shape, strict=True)]
        more[dim + 1] = 0
        grown.append(np.pad(part, [(k, k) for k in more]) if any(more) else part)
    return np.concatenate(grown, axis=dim + 1)


def side_by_side_scope(parts: Sequence[Source], dim: int) -> Scope:
    """The same as a scope: a sum of reads, each 0 beyond its part."""
    shape = side_by_side([p.shape for p in parts], dim)
    assert shape is not None
    start, terms = 0, []
    for part in parts:
        shift = [(n - m) // 2 for n, m in zip(shape, part.shape, strict=True)]
        shift[dim] = start
        at = tuple(index - by for index, by in zip(iterators(len(shape)), shift, strict=True))
        terms += normal((ONE, (), (Read(part, at),)), shape)
        start += part.shape[dim]
    return scope(shape, parts[0].element, collect(terms))


def gathered(source: Source, index: Sequence[Index], shape: Sequence[int]) -> Scope:
    """The tensor with the source's value at an index of each position; zero beyond the source."""
    return build(shape, (), [Read(source, tuple(index))], source.element)
