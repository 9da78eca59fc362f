"""Evaluate a sum of products at some of its positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...dialects.canonical_types import Extents
from ...dialects.index import Index
from ..equivalence.residues import Lanes, Residues

Inside: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
# Where a tensor is read, dim by dim and in bounds; and where that is inside, None for everywhere.
At: TypeAlias = "tuple[list[Any], Inside | None]"


def points_of(at: Sequence[Any], sums: Extents) -> list[Any]:
    """Values of iterators over [position, point of the sums].

    Args:
        at: the positions, dim by dim.
    """
    inner = np.indices(sums).reshape(len(sums), 1, math.prod(sums))
    return [*(np.asarray(position)[:, None] for position in at), *inner]


def read_at(index: Sequence[Index], shape: Extents, points: Sequence[Any]) -> At:
    """Where a tensor of a shape is read at some points."""
    inside: Inside | None = None
    positions: list[Any] = []
    for e, size in zip(index, shape, strict=True):
        position = np.atleast_2d(e.evaluate(points))
        if position.min() < 0 or position.max() >= size:
            fits = (position >= 0) & (position < size)
            inside = fits if inside is None else inside & fits
            position = np.clip(position, 0, size - 1)
        positions.append(position)
    return positions, inside


def product_at(field: Residues, factors: Sequence[Lanes]) -> Lanes:
    """The product of factors over [lane, position, point of the sums], summed over the latter."""
    product, *rest = factors
    for k, factor in enumerate(rest):
        product = (field.reduce(product) if k else product) * factor
    if product.shape[2] > field.most_terms:
        product = field.reduce(product)
    return field.reduce(product.sum(axis=2))
