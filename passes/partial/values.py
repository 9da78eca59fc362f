"""The factors of mutants: values made of the inputs, with each position computed on demand.

Most values are evaluated at a few hundred positions and then dropped. Moves say where those
positions come from, so the cost of a value does not depend on its size.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from ...dialects.canonical_types import Extents, Leaf, Source
from .point_evaluation import Inside
from .views import Lanes, Positions, Step, index_of

Inputs: TypeAlias = Mapping[Leaf, Source]

# Positions of a value that its key is made of: different views differ in a slice of some dim.
_NAMED = 2048


@dataclass(frozen=True, eq=False)
class InputValue:
    """A value made of the inputs without multiplying them.

    Attributes:
        made: residues [lane, *shape], which `steps` then move.
        holds: the inputs in it.
        text: how it was made; build: makes it from any inputs with these shapes or more channels.
        steps: the moves that made it from an input; None if anything else did.
    """

    made: Lanes
    holds: frozenset[Leaf]
    text: str
    build: Callable[[Inputs], Source]
    steps: tuple[Step, ...] | None = None

    @cached_property
    def shapes(self) -> list[Extents]:
        """The shape before each step, and after the last."""
        shapes: list[Extents] = [self.made.shape[1:]]
        for step in self.steps or ():
            shapes.append(step.shape(shapes[-1]))
        return shapes

    @property
    def shape(self) -> Extents:
        return self.shapes[-1]

    @property
    def nbytes(self) -> int:
        """The bytes that all its residues take."""
        return self.made.itemsize * self.made.shape[0] * math.prod(self.shape)

    @cached_property
    def values(self) -> Lanes:
        """All residues, [lane, *shape]."""
        return self.sample(tuple(np.indices(self.shape))) if self.steps else self.made

    def sample(self, at: Sequence[Positions], inside: Inside | None = None) -> Lanes:
        """The residues at some positions, given dim by dim; 0 outside."""
        positions: list[Any] = list(at)
        pairs = list(zip(self.steps or (), self.shapes, strict=False))
        for step, shape in reversed(pairs):
            old, beyond = index_of(step, shape)
            positions = [e.evaluate(positions) for e in old]
            for dim in beyond:
                fits = positions[dim] < shape[dim]
                inside = fits if inside is None else inside & fits
                positions[dim] = np.minimum(positions[dim], shape[dim] - 1)
        flat: Any = 0
        for position, size in zip(positions, self.shapes[0], strict=True):
            flat = flat * size + position
        found = np.take(self.made.reshape(self.made.shape[0], -1), flat, axis=1)
        return found if inside is None else np.where(inside, found, 0.0)

    def name(self) -> bytes:
        """A key from shape and values."""
        made = hashlib.blake2b(self.sample(_some(self.shape, _NAMED)).tobytes(), digest_size=16)
        made.update(repr(self.shape).encode())
        return made.digest()


@lru_cache(maxsize=1024)
def _some(shape: Extents, most: int) -> tuple[Positions, ...]:
    """Positions of a shape: all, or this many drawn, the same each time."""
    if not shape:
        return ()  # a single number, for which numpy has no positions
    size = math.prod(shape)
    flat = np.arange(size)
    if size > most:
        flat = np.random.default_rng(size).integers(0, size, most)
    return tuple(np.unravel_index(flat, shape))


@lru_cache(maxsize=1024)
def drawn(shape: Extents, count: int) -> tuple[Positions, ...]:
    """This many positions of a shape, the same each time."""
    rng = np.random.default_rng(math.prod(shape))
    return tuple(rng.integers(0, n, count) for n in shape)
