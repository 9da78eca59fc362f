"""Branches of an If whose results differ in one dim: both as large as the larger, and a count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, shape_of
from .padded import PaddedDim
from .regions import SubgraphBody
from .values import NeedsNumbers


def aligned(
    taken: Sequence[SubgraphBody], results: Sequence[Sequence[SSAValue]]
) -> tuple[list[list[SSAValue]], list[tuple[int, int]]] | None:
    """The results of both branches with equal types, then the counts of those with padding.

    The second value holds, for each count, which result it belongs to and the padded dim. None if
    results differ in more than the size of one dim.
    """
    found: list[list[SSAValue]] = [[], []]
    counts: list[list[SSAValue]] = [[], []]
    padded: list[tuple[int, int]] = []
    for k, pair in enumerate(zip(*results, strict=True)):
        shapes = [shape_of(v) for v in pair]
        if element_of(pair[0]) != element_of(pair[1]) or len(shapes[0]) != len(shapes[1]):
            return None
        rows = [b.importer.sizes.counts.get(v) for b, v in zip(taken, pair, strict=True)]
        dims = {j for j, (m, n) in enumerate(zip(*shapes, strict=True)) if m != n}
        dims |= {r.dim for r in rows if r is not None}
        if len(dims) > 1:
            return None
        if dims and taken[0].importer.sizes.symbolic:
            raise NeedsNumbers("branches differ in a dim, beside symbols")
        for body, value, own, into, numbers in zip(taken, pair, rows, found, counts, strict=True):
            if not dims:
                into.append(value)
                continue
            (dim,) = dims
            into.append(_extended(body, value, dim, max(shape[dim] for shape in shapes)))
            numbers.append(_count(body, value, dim, own))
        padded += [(k, dim) for dim in dims]
    return [[*v, *n] for v, n in zip(found, counts, strict=True)], padded


def _count(body: SubgraphBody, value: SSAValue, dim: int, rows: PaddedDim | None) -> SSAValue:
    if rows is not None:
        return rows.count
    return body.importer.build.constant(np.asarray(shape_of(value)[dim], np.int64), i64)


def _extended(body: SubgraphBody, value: SSAValue, dim: int, size: int) -> SSAValue:
    """The value with zeros after its rows, up to a size."""
    build, shape = body.importer.build, shape_of(value)
    if shape[dim] == size:
        return value
    more = [size - n if k == dim else n for k, n in enumerate(shape)]
    zeros = build.expand(build.constant(np.asarray(0), element_of(value)), more)
    return build.concat(value, zeros, axis=dim)


__all__ = ["aligned"]
