"""Corrections: the mutant outside of the mask, the program itself inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.canonical_scope import collect, normal, scope, substitute
from ...dialects.canonical_types import ONE, Extents, Read, Scope, Source, Term
from ...dialects.index import Index, iterators
from .lookup import inverse, positions
from .operators import gathered
from .region import Box, Mask, boxes


@dataclass(frozen=True)
class Correction:
    """A program equal to the one a mutant was made for.

    Attributes:
        result: the corrected program; parts: the restricted programs in it, one for each box.
        inside: whether the boxes are of the mutant's positions, not the result's.
    """

    result: Scope
    parts: tuple[Scope, ...]
    inside: bool = False


def correct(program: Scope, made: Source, index: Sequence[Index], mask: Mask) -> Correction:
    """The program as the mutant `made[index]`, corrected where the mask is True.

    The boxes are of the result's positions or of the mutant's, whichever are fewer.
    """
    if not mask.any():
        return Correction(gathered(made, index, program.shape), ())
    found = boxes(mask)
    back = inverse(index, program.shape, made.shape)
    if back is not None:
        moved = _moved(mask, index, made.shape)
        inner = boxes(moved)
        if len(inner) < len(found):
            there = scope(made.shape, made.element, substitute(program.expr, back, made.shape))
            parts = [restricted(there, box) for box in inner]
            return Correction(
                _joined(made, moved, inner, parts, index, program.shape), tuple(parts), True
            )
    parts = [restricted(program, box) for box in found]
    mutant = gathered(made, index, program.shape)
    here = iterators(len(program.shape))
    return Correction(_joined(mutant, mask, found, parts, here, program.shape), tuple(parts))


def restricted(program: Scope, box: Box) -> Scope:
    """The program at the positions of a box only."""
    shape = tuple(high - low for low, high in box)
    images = [Index.iterator(k) + low for k, (low, _) in enumerate(box)]
    return scope(shape, program.element, substitute(program.expr, images, shape))


def _moved(mask: Mask, index: Sequence[Index], shape: Extents) -> Mask:
    """The mask over the mutant's positions; where no result position stands, it does not matter."""
    at, _ = positions(index, mask.shape, shape)
    moved = np.zeros(shape, bool)
    moved[tuple(a[mask] for a in at)] = True
    return moved


def _joined(
    mutant: Source,
    mask: Mask,
    wrong: Sequence[Box],
    parts: Sequence[Scope],
    index: Sequence[Index],
    shape: Extents,
) -> Scope:
    """The tensor whose position x is position `index` of the mutant's right boxes and the parts.

    A sum of reads that are 0 outside of their box: what a box does not hold is never read, so that
    what the mutant computes in the mask (infinity or NaN, it may be) does not matter.
    """
    right = [(box, _part(mutant, box)) for box in boxes(~mask)]
    terms: list[Term] = []
    for box, value in [*right, *zip(wrong, parts, strict=True)]:
        at = tuple(e - low for e, (low, _) in zip(index, box, strict=True))
        terms += normal((ONE, (), (Read(value, at),)), shape)
    return scope(shape, mutant.element, collect(terms))


def _part(source: Source, box: Box) -> Scope:
    """A copy of a box of a tensor."""
    shape = tuple(high - low for low, high in box)
    return gathered(source, [Index.iterator(k) + low for k, (low, _) in enumerate(box)], shape)
