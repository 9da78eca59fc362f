"""Weights of one program with the same numbers as the other's: transposed, concatenated or sliced.

Another tool puts the weights of three products side by side, or stores one transposed. The numbers
are equal bit for bit. So such a weight is an expression over the other program's weights, without
any assumption.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.canonical_scope import (
    Expr,
    Guard,
    Read,
    Source,
    add,
    factor,
    multiply,
    scope,
)
from ...dialects.index import Index, iterators
from ...dialects.types import Array

# Limits: dims of a weight whose orders are tried, and positions at which a part may begin.
_MAX_DIMS, _MAX_POSITIONS = 4, 64
# A weight of one element may equal another by chance.
_LEAST = 2


@dataclass(frozen=True)
class OtherWeight:
    """A weight of the other program."""

    source: Source
    data: Array

    @property
    def array(self) -> Array:
        """The data without dims of extent 1."""
        return self.data.squeeze()


def as_expression(array: Array, others: Sequence[OtherWeight], like: Source) -> Source | None:
    """A weight as an expression over the other program's; None if it is not one.

    Args:
        like: a source with the weight's shape and element type.
    """
    if array.size < _LEAST:
        return None
    axes = [k for k, n in enumerate(like.shape) if n != 1]
    array = array.reshape([array.shape[k] for k in axes])
    for other in others:
        if other.source.element != like.element:
            continue
        for order, transposed in _orders(other.array):
            if transposed.size < array.size or transposed.ndim != array.ndim:
                continue
            start = next(_positions(array, transposed), None)
            if start is not None:
                return scope(like.shape, like.element, _read(other, order, start, like, axes))
    return _joined(array, others, like, axes)


def _joined(
    array: Array, others: Sequence[OtherWeight], like: Source, axes: Sequence[int]
) -> Source | None:
    """Weights side by side along one axis: each position comes from one of them."""
    for axis in range(array.ndim):
        total: list[Expr] = []
        done = 0
        while done < array.shape[axis]:
            rest = array[(slice(None),) * axis + (slice(done, None),)]
            found = _begins_with(rest, axis, others, like)
            if found is None:
                break
            other, order, extent = found
            start = [0] * array.ndim
            start[axis] = -done
            here = factor(Guard(Index.iterator(axes[axis]) - done, extent), like.shape)
            total.append(multiply(here, _read(other, order, start, like, axes), like.shape))
            done += extent
        else:
            return scope(like.shape, like.element, add(*total))
    return None


def _begins_with(
    rest: Array, axis: int, others: Sequence[OtherWeight], like: Source
) -> tuple[OtherWeight, Sequence[int], int] | None:
    """The weight that the array begins with along an axis, its dim order, and its extent."""
    for other in others:
        if other.source.element != like.element or other.array.ndim != rest.ndim:
            continue
        for order, transposed in _orders(other.array):
            extent = transposed.shape[axis]
            fits = extent <= rest.shape[axis] and all(
                n == m
                for k, (n, m) in enumerate(zip(transposed.shape, rest.shape, strict=True))
                if k != axis
            )
            part = rest[(slice(None),) * axis + (slice(0, extent),)]
            if fits and _same(part, transposed):
                return other, order, extent
    return None


def _orders(array: Array) -> Iterator[tuple[Sequence[int], Array]]:
    """An array with its dims in each order."""
    if array.ndim > _MAX_DIMS:
        yield range(array.ndim), array
        return
    for order in itertools.permutations(range(array.ndim)):
        yield order, array.transpose(order)


def _positions(part: Array, whole: Array) -> Iterator[Sequence[int]]:
    """Where a part begins in a larger array of the same rank."""
    if any(n > m for n, m in zip(part.shape, whole.shape, strict=True)):
        return
    starts_range = tuple(slice(0, m - n + 1) for n, m in zip(part.shape, whole.shape, strict=True))
    if math.prod(part.shape) == math.prod(whole.shape):
        starts: Array = np.zeros((1, part.ndim), np.int64)
    else:
        starts = np.argwhere(whole[starts_range] == part[(0,) * part.ndim])[:_MAX_POSITIONS]
    for start in starts.tolist():
        block = tuple(slice(s, s + n) for s, n in zip(start, part.shape, strict=True))
        if _same(whole[block], part):
            yield start


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays have the same bits; a few are compared first."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    few = tuple(slice(0, 4) for _ in a.shape)
    return _bits_equal(a[few], b[few]) and _bits_equal(a, b)


def _bits_equal(a: Array, b: Array) -> bool:
    kind = f"u{a.dtype.itemsize}"
    one, other = (np.ascontiguousarray(x).view(kind) for x in (a, b))
    return bool(np.array_equal(one, other))


def _read(
    other: OtherWeight,
    order: Sequence[int],
    start: Sequence[int],
    like: Source,
    axes: Sequence[int],
) -> Expr:
    """A weight with its dims permuted, read at the position plus `start`; 0 outside.

    order, start: of its dims with an extent other than 1; a start is negative where the weight
        begins after position 0.
    axes: the dims of `like` with an extent other than 1.
    """
    here = iterators(len(like.shape))
    kept = [k for k, n in enumerate(other.source.shape) if n != 1]
    index = [Index(0)] * len(other.source.shape)
    for position, dim in enumerate(order):
        index[kept[dim]] = here[axes[position]] + start[position]
    return factor(Read(other.source, tuple(index)), like.shape)


__all__ = ["OtherWeight", "as_expression"]
