"""Find the layout in which one tensor's elements occur in another, from two drawn values.

A value of one program may be a value of the other with dims split, joined or swapped. On drawn
inputs most elements are distinct, so the numbers show where each went. If the map permutes digits
of the position, the tensor is read through an index map. The result is only a candidate for a
proof.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ...dialects.canonical_body import read
from ...dialects.canonical_scope import Scope, Source, scope
from ...dialects.index import Index, flatten, iterators, normalise, row_major_strides, unflatten
from ...dialects.types import Array

# Digits of a position, outermost first: extent, and stride in the other tensor.
Digits: TypeAlias = "tuple[tuple[int, int], ...]"

_MAX_DIMS = 5


def layout(wanted: Array, found: Array, tolerance: float) -> Digits | None:
    """The digits with which `found` holds the elements of `wanted`; None if it does not.

    Args:
        tolerance: of differences, relative to the largest element.
    """
    if wanted.size != found.size or not wanted.size:
        return None
    near = tolerance * float(np.abs(wanted).max())
    flat, other = wanted.reshape(-1), found.reshape(-1)
    if (np.abs(flat - other) <= near).all():
        return ((wanted.size, 1),)
    length, difference = float(flat @ flat), float(flat @ flat) - float(other @ other)
    if abs(difference) > 4 * (near * math.sqrt(length * len(flat)) + near * near * len(flat)):
        return None
    if (np.abs(np.sort(flat) - np.sort(other)) > near).any():
        return None
    digits = _by_elements(flat, other)
    choices = [] if digits is None else [digits]
    for chosen in itertools.chain(choices, _permutations(wanted.shape, found.shape)):
        if (np.abs(flat - other[positions_of(chosen)]) <= near).all():
            return chosen
    return None


def through(source: Source, digits: Digits, like: Scope) -> Source:
    """The source, read in the layout and shape of another."""
    shape = like.shape
    if digits == ((math.prod(shape), 1),) and source.shape == shape:
        return source
    flat = flatten(iterators(len(shape)), row_major_strides(shape))
    positions = unflatten(flat, [n for n, _ in digits])
    total = Index(0)
    for position, (_, stride) in zip(positions, digits, strict=True):
        total = total + position * stride
    index = [normalise(e, shape) for e in unflatten(total, source.shape)]
    return scope(shape, source.element, read(source, index, shape))


def _by_elements(flat: Array, other: Array) -> Digits | None:
    """Follow distinct elements: each digit is a run of positions with one stride."""
    positions = np.empty(flat.size, np.int64)
    positions[np.argsort(flat, kind="stable")] = np.argsort(other, kind="stable")
    if positions[0] != 0:
        return None
    digits: list[tuple[int, int]] = []
    done, size = 1, flat.size
    while done < size:
        step = positions[done::done]
        stride = int(step[0])
        if stride < 1:
            return None
        runs = np.flatnonzero(step != stride * np.arange(1, len(step) + 1))
        count = int(runs[0]) + 1 if len(runs) else len(step) + 1
        if size % (done * count):
            return None
        digits.append((count, stride))
        done *= count
    last = sum((count - 1) * stride for count, stride in digits)
    return tuple(reversed(digits)) if last == size - 1 else None


def _permutations(shape: Sequence[int], other: Sequence[int]) -> Iterator[Digits]:
    """The ways to swap the dims of the finer shape and join them to the other's."""
    mine, theirs = ([n for n in s if n != 1] for s in (shape, other))
    if max(len(mine), len(theirs)) > _MAX_DIMS:
        return
    for order in itertools.permutations(range(len(theirs))):
        if _joins([theirs[k] for k in order], mine):
            strides = row_major_strides(theirs)
            yield tuple((theirs[k], strides[k]) for k in order)
    for order in itertools.permutations(range(len(mine))):
        swapped = [mine[k] for k in order]
        if _joins(swapped, theirs):
            strides = row_major_strides(swapped)
            yield tuple((n, strides[order.index(k)]) for k, n in enumerate(mine))


def _joins(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    """Whether each dim of the coarse shape joins neighbouring dims of the fine one."""
    ends = set(itertools.accumulate(fine, operator.mul))
    return ends.issuperset(itertools.accumulate(coarse, operator.mul))


def positions_of(digits: Digits) -> Array:
    """For each position of one tensor the position in the other."""
    positions = np.zeros(1, np.int64)
    for count, stride in digits:
        positions = (positions[:, None] + np.arange(count) * stride).reshape(-1)
    return positions


__all__ = ["Digits", "layout", "positions_of", "through"]
