"""Reshapes and transposes as index maps: the views that a mutant applies to its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...dialects.canonical_types import Extents, Read, Scope, Source
from ...dialects.index import Index, iterators, range_of
from ..derivation.body import build, guards_of

Lanes: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
T = TypeVar("T")


@dataclass(frozen=True)
class Move:
    """Split dim `dim` into digits of `by`, and merge one of them into dim `into`.

    One reshape, transpose, reshape. If `by` does not divide the extent the last block is padded
    with zeros, and `gap` zeros can be put between merged blocks. Both are positions whose
    old index is outside the tensor, where a read is 0.

    Attributes:
        inner: whether the digit below `by` moves, or the one above.
        minor: whether it becomes the fast digit of `into`, or the slow one.
        gap: zeros after each block of `into`; for the slow digit only.
    """

    dim: int
    by: int
    inner: bool
    into: int
    minor: bool
    gap: int = 0

    def __str__(self) -> str:
        part = f"mod {self.by}" if self.inner else f"div {self.by}"
        position = "minor" if self.minor else "major"
        gap = f" gap {self.gap}" if self.gap else ""
        return f"move d{self.dim} {part} into d{self.into} {position}{gap}"

    def shape(self, shape: Sequence[int]) -> Extents:
        """The new shape."""
        blocks = -(-shape[self.dim] // self.by)
        kept, count = (blocks, self.by) if self.inner else (self.by, blocks)
        new, gap = list(shape), 0 if self.minor else self.gap
        new[self.dim] = kept
        new[self.into] = (shape[self.into] + gap) * count - gap
        return tuple(new)

    def apply(self, shape: Sequence[int]) -> tuple[Extents, list[Index]]:
        """The new shape, and the old index of each new position."""
        blocks = -(-shape[self.dim] // self.by)
        count = self.by if self.inner else blocks
        block = shape[self.into] + (0 if self.minor else self.gap)
        old = list(iterators(len(shape)))
        here = Index.iterator(self.into)
        within, digit = (
            (here // count, here % count) if self.minor else (here % block, here // block)
        )
        rest = Index.iterator(self.dim)
        old[self.into] = within
        old[self.dim] = rest * self.by + digit if self.inner else digit * self.by + rest
        return self.shape(shape), old


@dataclass(frozen=True)
class Swap:
    """Transpose two dims. Redundant for images: windows of both sides are tried alike."""

    dim: int
    into: int

    def __str__(self) -> str:
        return f"swap d{self.dim} d{self.into}"

    def shape(self, shape: Sequence[int]) -> Extents:
        """The new shape."""
        return tuple(self._swapped(shape))

    def apply(self, shape: Sequence[int]) -> tuple[Extents, list[Index]]:
        """The new shape, and the old index of each new position."""
        return self.shape(shape), self._swapped(iterators(len(shape)))

    def _swapped(self, parts: Sequence[T]) -> list[T]:
        found = list(parts)
        found[self.dim], found[self.into] = found[self.into], found[self.dim]
        return found


Step: TypeAlias = Move | Swap


@lru_cache(maxsize=4096)
def index_of(step: Step, shape: Extents) -> tuple[list[Index], list[int]]:
    """The old index of each position after a step, and the dims in which it may be outside.

    Outside `shape`, the old one, there is zero.
    """
    new, old = step.apply(shape)
    return old, [dim for dim, e in enumerate(old) if range_of(e, new)[1] >= shape[dim]]


def moves(shape: Sequence[int], dims: Sequence[int], gaps: Sequence[int]) -> Iterator[Move]:
    """Every move between the given dims, with digits of at most 4 on one side or the other."""
    for dim in dims:
        for by in _sizes(shape[dim]):
            blocks = -(-shape[dim] // by)
            for inner in (True, False):
                for into in (d for d in dims if d != dim):
                    if (blocks if not inner else by) == 1:
                        continue
                    yield from _placed(dim, by, inner, into, shape, gaps)


def swaps(shape: Sequence[int]) -> Iterator[Swap]:
    """Every transpose of two dims, except for images."""
    if len(shape) < 4:
        yield from (Swap(dim, into) for dim, into in combinations(range(len(shape)), 2))


def _sizes(extent: int) -> list[int]:
    """Sizes of blocks: small ones, or few of them; the whole extent.

    If they do not divide the extent, the last block is padded by at most an eighth of it; among
    equal numbers of blocks those with the least padding are tried.
    """
    found = {2, 3, 4, extent, *(-(-extent // blocks) for blocks in (2, 3, 4))}
    padded = {by: -(-extent // by) * by - extent for by in found if 2 <= by <= extent}
    return sorted(by for by, more in padded.items() if more <= max(1, extent // 8))


def _placed(
    dim: int, by: int, inner: bool, into: int, shape: Sequence[int], gaps: Sequence[int]
) -> Iterator[Move]:
    yield Move(dim, by, inner, into, False)
    if shape[into] > 1:
        yield Move(dim, by, inner, into, True)
        for gap in gaps:
            yield Move(dim, by, inner, into, False, gap)


def is_redundant(shapes: Sequence[Extents], steps: Sequence[Step], move: Step) -> bool:
    """Whether another chain gives the same values, or the same images in another order.

    An image is anything with four dims or more. Its first dim does not matter to a convolution, and
    the positions of its results are looked up.

    Args:
        shapes: before each of the steps, and after the last.
    """
    shape = shapes[-1]
    if isinstance(move, Swap):
        return bool(steps) and isinstance(steps[-1], Swap) and steps[-1].dim > move.dim
    images = len(shape) > 3
    if images and move.into == 0 and (move.minor or move.gap):
        return True
    if images and move.dim == 0 and move.by != shape[0] and (move.inner or shape[0] % move.by):
        return True
    if not steps:
        return False
    last = steps[-1]
    if isinstance(last, Swap):
        return False
    apart = not {last.dim, last.into} & {move.dim, move.into}
    if (apart or (images and last.into == move.into == 0)) and last.dim > move.dim:
        return True
    # A digit that was put into a dim of its own, and is moved on from there.
    return move.dim == last.into and shapes[-2][last.into] == 1


def view(source: Source, steps: Sequence[Step]) -> Scope:
    """The tensor after some moves: one copy, except that a move which pads reads its own copy.

    Its zeros are reads outside its source; inside the tensor before that there may be any
    element.
    """
    shape: Extents = source.shape
    old: list[Index] = list(iterators(len(shape)))
    for number, step in enumerate(steps):
        new, back = step.apply(shape)
        if number and guards_of(back, shape, new):
            source, old = _copy(source, old, shape), list(iterators(len(shape)))
        old = [index.substitute(back) for index in old]
        shape = new
    return _copy(source, old, shape)


def _copy(source: Source, index: Sequence[Index], shape: Extents) -> Scope:
    return build(shape, (), [Read(source, tuple(index))], source.element)
