"""Corrections: the mutant outside the mask, the program itself inside.

A correction has a form. `plain` is the program restricted to each box. `library` is the same with
each contraction in a library kernel's form, its operands laid out by copies. `pieces` is that of
boxes which are cut further. `fused` (fuse.py) computes the boxes with the mutant's own product,
from images put beside its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from ...dialects.canonical_scope import collect, normal, scope, substitute
from ...dialects.canonical_types import ONE, Extents, Read, Scope, Source, Term
from ...dialects.index import FloorDiv, Index, iterators, range_of
from ..derivation.body import body_of
from ..derivation.price import ScopePrices
from .library import in_library_form
from .lookup import inverse, positions
from .operators import gathered
from .region import Box, Mask, boxes

Form: TypeAlias = Literal["plain", "library", "pieces", "fused"]
# A box is cut into at most this many, so that its reads do not depend on digits of positions.
_MAX_PIECES = 8


@dataclass(frozen=True)
class Correction:
    """A program equal to the one that a mutant was made for.

    Attributes:
        result: the corrected program; parts: the restricted programs in it, one for each box.
        inside: whether the boxes are of the mutant's positions, not the result's.
        form: how the parts are computed.
    """

    result: Scope
    parts: tuple[Scope, ...]
    inside: bool = False
    form: Form = "plain"


@dataclass(frozen=True)
class Cover:
    """A mask as boxes, of the result's positions or of the mutant's.

    Attributes:
        program: the program at the positions that the boxes contain.
        made: the mutant's value; index: the position in it of each result position.
        at: the box position of each result position.
        shape: of the result.
    """

    program: Scope
    made: Source
    index: tuple[Index, ...]
    mask: Mask
    wrong: tuple[Box, ...]  # the boxes
    at: tuple[Index, ...]
    shape: Extents
    inside: bool = False

    @property
    def parts(self) -> tuple[Scope, ...]:
        """The program restricted to each box."""
        return tuple(restricted(self.program, box) for box in self.wrong)


def covers(program: Scope, made: Source, index: Sequence[Index], mask: Mask) -> list[Cover]:
    """The ways to cover a mask, the one with the fewest boxes first."""
    here, index = tuple(iterators(len(program.shape))), tuple(index)
    found = [Cover(program, made, index, mask, tuple(boxes(mask)), here, program.shape)]
    back = inverse(index, program.shape, made.shape)
    if back is not None:
        moved = _moved(mask, index, made.shape)
        there = scope(made.shape, made.element, substitute(program.expr, back, made.shape))
        wrong = tuple(boxes(moved))
        found.append(Cover(there, made, index, moved, wrong, index, program.shape, True))
    return sorted(found, key=lambda cover: len(cover.wrong))


def correct(program: Scope, made: Source, index: Sequence[Index], mask: Mask) -> Correction:
    """The program as the mutant `made[index]`, corrected where the mask is True.

    The boxes are of the result's positions or of the mutant's, whichever are fewer.
    """
    if not mask.any():
        return Correction(gathered(made, index, program.shape), ())
    return plain(covers(program, made, index, mask)[0])


def plain(cover: Cover) -> Correction:
    """Each box by the program as it stands."""
    return Correction(joined(cover, cover.parts), cover.parts, cover.inside)


def by_library(cover: Cover, prices: ScopePrices, form: Form = "library") -> Correction | None:
    """Each box by a library kernel; None if no box has a form different from its own."""
    made = [in_library_form(part, prices) for part in cover.parts]
    if all(one is part for one, part in zip(made, cover.parts, strict=True)):
        return None
    return Correction(joined(cover, made), cover.parts, cover.inside, form)


def restricted(program: Scope, box: Box) -> Scope:
    """The program at the positions of a box only."""
    shape = tuple(high - low for low, high in box)
    images = [Index.iterator(k) + low for k, (low, _) in enumerate(box)]
    return scope(shape, program.element, substitute(program.expr, images, shape))


def cut(cover: Cover) -> Cover:
    """The cover with boxes cut where a digit of their positions that the program reads changes.

    Reads of an image through a view then read a strided part of it. A box that would be cut into
    many stays whole.
    """
    wrong: list[Box] = []
    for box in cover.wrong:
        pieces = [box]
        for dim in range(len(box)):
            pieces = [piece for one in pieces for piece in _cut_along(cover.program, one, dim)]
        wrong += pieces if len(pieces) <= _MAX_PIECES else [box]
    return replace(cover, wrong=tuple(wrong))


def _cut_along(program: Scope, box: Box, dim: int) -> list[Box]:
    body = body_of(restricted(program, box))
    low, high = box[dim]
    if body is None or high - low == 1:
        return [box]
    rows = [row for row, _ in body.rows()]
    atoms = [a for row in rows for a, _ in row.terms if isinstance(a, FloorDiv)]
    cuts = {0, high - low}
    for atom in atoms:
        if atom.numerator.iterators == frozenset([dim]):
            at: list[np.ndarray | int] = [0] * len(body.extents)
            at[dim] = np.arange(high - low)
            values = np.asarray(Index(0, ((atom, 1),)).evaluate(at))
            cuts |= {int(k) + 1 for k in np.flatnonzero(values[1:] != values[:-1])}
    ends = sorted(cuts)
    sides = [(low + a, low + b) for a, b in pairwise(ends)]
    return [(*box[:dim], side, *box[dim + 1 :]) for side in sides]


def _moved(mask: Mask, index: Sequence[Index], shape: Extents) -> Mask:
    """The mask over the mutant's positions; positions without a result position do not matter."""
    at, _ = positions(index, mask.shape, shape)
    moved = np.zeros(shape, bool)
    moved[tuple(a[mask] for a in at)] = True
    return moved


def joined(cover: Cover, parts: Sequence[Source]) -> Scope:
    """The tensor of the mutant's right boxes and the parts, one for each wrong box.

    A sum of reads that are 0 outside their box: nothing outside a box is read, so the mutant's
    values in the mask (perhaps infinity or NaN) do not matter.
    """
    terms = right(cover, cover.made)
    for box, value in zip(cover.wrong, parts, strict=True):
        at = [e - low for e, (low, _) in zip(cover.at, box, strict=True)]
        terms += normal((ONE, (), (Read(value, tuple(at)),)), cover.shape)
    return scope(cover.shape, cover.made.element, collect(terms))


def right(cover: Cover, made: Source) -> list[Term]:
    """The mutant's values in its right boxes; `made` may be larger than the mutant."""
    terms: list[Term] = []
    for box in boxes(~cover.mask):
        terms += read_in_box(made, cover.index, cover, box)
    return terms


def read_in_box(source: Source, index: Sequence[Index], cover: Cover, box: Box) -> list[Term]:
    """A read of a source where a result position is in a box, 0 elsewhere.

    Elsewhere its index is outside the source: each bounded dim of the box moves one source dim
    outside. If the box bounds more dims than the source has, a copy of the box is read.
    """
    sides = zip(cover.at, box, cover.mask.shape, strict=True)
    bounds = [(e, low, high) for e, (low, high), n in sides if (low, high) != (0, n)]
    if len(bounds) > len(source.shape):
        shape = cover.shape
        source, index = gathered(source, index, shape), iterators(len(shape))
    at = list(index)
    for dim, (e, low, high) in enumerate(bounds):
        least, most = range_of(at[dim], cover.shape)
        beyond = max(source.shape[dim] - least, most + 1)
        at[dim] = at[dim] + ((e - low) // (high - low)) * beyond
    return normal((ONE, (), (Read(source, tuple(at)),)), cover.shape)


__all__ = [
    "Correction",
    "Cover",
    "Form",
    "by_library",
    "correct",
    "covers",
    "cut",
    "joined",
    "plain",
    "read_in_box",
    "restricted",
    "right",
]
