"""Read arrays at quasi-affine indices, over a grid of iterators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .index import Index
from .types import Array


class GatherPositions:
    """A gather at fixed indices, prepared for many arrays of the same dims.

    Dims that are read along an iterator of their own, in bounds, are slices. The other dims are
    read together, at one flat index.

    Args:
        index: for each dim, over the iterators.
        shape: of the dims; arrays may have leading dims before them, which are kept.
        points: the values of the iterators: a number, or consecutive numbers along an axis of the
            grid.
    """

    def __init__(self, index: Sequence[Index], shape: Sequence[int], points: Sequence[Any]) -> None:
        self.shape, rank = tuple(shape), max(map(np.ndim, points), default=0)
        self.slices: list[slice] = [slice(None)] * len(shape)
        plain: dict[int, int] = {}  # the grid axis of each dim that is sliced
        fixed: list[int] = []  # dims read at one position
        for dim, e in enumerate(index):
            position = np.asarray(e.evaluate(points))
            if not position.size or position.flat[0] < 0 or position.flat[-1] >= shape[dim]:
                continue
            if position.size == 1:
                fixed.append(dim)
            elif _is_alone(dim, index):
                plain[dim] = int(np.argmax(position.shape))
            else:
                continue
            self.slices[dim] = slice(int(position.flat[0]), int(position.flat[-1]) + 1)
        others = [dim for dim in range(len(shape)) if dim not in plain and dim not in fixed]
        self.order, self.others = [*others, *plain, *fixed], len(others)
        self.total = math.prod(shape[dim] for dim in others)
        flat, self.inside = _flat([index[d] for d in others], [shape[d] for d in others], points)
        self.flat = flat.reshape(-1)
        used = {axis: n for axis, n in enumerate(flat.shape) if n > 1}
        parts = (self.slices[dim] for dim in plain)
        sizes = {
            **used,
            **{k: s.stop - s.start for k, s in zip(plain.values(), parts, strict=True)},
        }
        self.taken = list(sizes.values())
        self.back = [list(sizes).index(k) for k in sorted(sizes)]
        self.grid = [sizes.get(axis, 1) for axis in range(rank)]

    def of(self, array: Array, outside: Array) -> Array:
        """The gathered array, [*leading dims, *grid], with extent 1 for axes it does not depend on.

        Args:
            outside: the value read outside the dims: a number, or one for each leading dim.
        """
        lead = array.shape[: array.ndim - len(self.shape)]
        before = range(len(lead))
        if self.others < len(self.order):
            array = array[(..., *self.slices)]
            array = array.transpose(*before, *(len(lead) + dim for dim in self.order))
        if self.others:
            array = array.reshape((*lead, self.total, *array.shape[len(lead) + self.others :]))
            if not self.inside:
                fill = outside.reshape((*outside.shape, *(1,) * (array.ndim - outside.ndim)))
                beyond = (*lead, 1, *array.shape[len(lead) + 1 :])
                row = np.broadcast_to(fill.astype(array.dtype), beyond)
                array = np.concatenate([array, row], axis=len(lead))
            array = np.take(array, self.flat, axis=len(lead))
        array = array.reshape((*lead, *self.taken))
        array = array.transpose(*before, *(len(lead) + k for k in self.back))
        return array.reshape((*lead, *self.grid))


def _flat(
    index: Sequence[Index], shape: Sequence[int], points: Sequence[Any]
) -> tuple[Array, bool]:
    """The row-major index, past the end where it is outside; and whether it is always inside."""
    flat, inside = np.zeros((), np.int64), np.ones((), bool)
    for e, size in zip(index, shape, strict=True):
        position = np.asarray(e.evaluate(points))
        if position.size and (position.min() < 0 or position.max() >= size):
            inside = inside & ((position >= 0) & (position < size))
            position = np.clip(position, 0, max(size - 1, 0))
        flat = flat * size + position
    if inside.all():
        return flat, True
    return np.where(inside, flat, math.prod(shape)), False


def _is_alone(dim: int, index: Sequence[Index]) -> bool:
    """Whether a dim is read along an iterator of its own, position by position."""
    e = index[dim]
    if len(e.terms) != 1 or e.has_floor or e.terms[0][1] != 1:
        return False
    return not any(e.iterators & other.iterators for k, other in enumerate(index) if k != dim)


__all__ = ["GatherPositions"]
