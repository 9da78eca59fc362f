"""PET's own test: a few positions of each box between split points, instead of every position.

A dim is split where the sums change (a read leaves or enters its tensor, a guard changes) or an
index steps (a quotient or remainder does). Within a box of intervals between splits every index is
affine and every sum runs over the same positions. PET's Theorem 1 then says that two programs which
agree at the box's first position and one step along each dim, m + 1 positions, agree in all of it.

That holds if each position's monomials are the first one's, moved, and the moved ones are different
each time. It fails for sums of index maps: X[v + 3] + X[4 - v] and X[3] + X[4] agree at v = 0 and 1
alone (Theorem 1 takes both sides as vectors in v, which they are not). So a mask from here is only
a proposal; the equivalence engine refutes a wrongly corrected program, like any other.

Source: Wang et al., PET, OSDI 2021, sections 5.2 to 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...dialects.canonical_types import Expr, Extents, Guard, Read, Scope, Term
from ...dialects.index import Index, grid
from ..equivalence.evaluator import Evaluator
from ..equivalence.inline import Inliner
from .point_evaluation import points_of, product_at, read_at
from .region import Mask
from .views import Lanes

Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
# Monomials that are computed at a time.
_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Tested:
    """The result of the test: a box is wrong in full, or not at all.

    Attributes:
        boxes: between split points; positions: the number of compared positions in them.
    """

    mask: Mask
    boxes: int
    positions: int


def mask_by_split_points(first: Scope, second: Scope, evaluator: Evaluator) -> Tested:
    """Where two multilinear scopes of one shape differ, by m + 1 positions of each box.

    Raises TooManyTermsError if a scope with its operands opened has too many terms.
    """
    inliner = Inliner()
    exprs = [inliner.inline_scope(scope) for scope in (first, second)]
    starts = [split_points(e, first.shape) for e in exprs]
    splits = [sorted({*a, *b}) for a, b in zip(*starts, strict=True)]
    ends = [[*cut[1:], n] for cut, n in zip(splits, first.shape, strict=True)]
    at, of_box = _positions(splits, ends)
    values = [values_at(e, first.shape, at, evaluator) for e in exprs]
    differ = ~evaluator.field.equal(values[0], values[1])
    wrong = np.zeros(math.prod(map(len, splits)), bool)
    wrong[of_box[differ]] = True
    mask = wrong.reshape([len(cut) for cut in splits])
    for dim, (cut, end) in enumerate(zip(splits, ends, strict=True)):
        mask = np.repeat(mask, np.subtract(end, cut), axis=dim)
    return Tested(mask, len(wrong), at.shape[1])


# --- boxes --------------------------------------------------------------------------------------


def split_points(expr: Expr, shape: Extents) -> list[list[int]]:
    """For each dim the positions that start an interval, 0 first."""
    starts: list[set[int]] = [{0} for _ in shape]
    for term in expr.terms:
        extents = shape + term.sums
        for index, size in _bounds(term):
            for dim in sorted(index.iterators):
                if dim < len(shape):
                    starts[dim] |= _steps(index, size, dim, extents)
    return [sorted(found) for found in starts]


def _bounds(term: Term) -> Iterator[tuple[Index, int]]:
    """Every index of a term with the extent that bounds it."""
    for factor in term.factors:
        if isinstance(factor, Read):
            yield from zip(factor.index, factor.source.shape, strict=True)
        elif isinstance(factor, Guard):
            yield factor.index, factor.extent
        else:
            raise TypeError(f"not multilinear: {factor}")


def _steps(index: Index, size: int, dim: int, extents: Extents) -> set[int]:
    """The positions of a dim at which the index enters or leaves [0, size), or a floor steps."""
    used = sorted(index.iterators)
    values = grid(extents, used)
    at = np.asarray(index.evaluate(values))
    tables = [(at >= 0) & (at < size)]
    tables += [np.asarray(floor.evaluate(values)) for floor in _floors(index)]
    axis = used.index(dim)
    found: set[int] = set()
    for table in tables:
        if table.shape[axis] > 1:
            changed = np.moveaxis(np.diff(table, axis=axis) != 0, axis, 0)
            rows = changed.reshape(len(changed), -1).any(axis=1)
            found |= {int(k) + 1 for k in np.flatnonzero(rows)}
    return found


def _floors(index: Index) -> Iterator[Index]:
    """Every quotient in an index, those in numerators included."""
    for atom, _ in index.terms:
        if not isinstance(atom, int):
            yield Index(0, ((atom, 1),))
            yield from _floors(atom.numerator)


def _positions(starts: Sequence[Sequence[int]], ends: Sequence[Sequence[int]]) -> Any:
    """[dim, position] of each box's first position and one step along each dim; and whose they are.

    A box that is one wide along a dim has no step there.
    """
    first = np.stack([g.reshape(-1) for g in np.meshgrid(*starts, indexing="ij")])
    width = np.stack([g.reshape(-1) for g in np.meshgrid(*ends, indexing="ij")]) - first
    at, of_box = [first], [np.arange(first.shape[1])]
    for dim in range(len(first)):
        (wide,) = np.nonzero(width[dim] > 1)
        step = first[:, wide].copy()
        step[dim] += 1
        at.append(step)
        of_box.append(wide)
    return np.concatenate(at, axis=1), np.concatenate(of_box)


# --- values -------------------------------------------------------------------------------------


def values_at(expr: Expr, shape: Extents, at: Positions, evaluator: Evaluator) -> Lanes:
    """A sum of products of reads of leaves at [dim, position]: [lane, position]."""
    field = evaluator.field
    total = np.zeros((field.lanes, at.shape[1]))
    for term in expr.terms:
        step = max(1, _AT_ONCE // math.prod(term.sums))
        for start in range(0, at.shape[1], step):
            part = slice(start, start + step)
            made = _term_at(term, at[:, part], evaluator)
            total[:, part] = field.reduce(total[:, part] + made)
    return total


def _term_at(term: Term, at: Positions, evaluator: Evaluator) -> Lanes:
    field, points = evaluator.field, points_of(list(at), term.sums)
    ones = np.ones((field.lanes, at.shape[1], math.prod(term.sums)))
    found: list[Lanes] = [ones]
    for factor in term.factors:
        if isinstance(factor, Read):
            positions, inside = read_at(factor.index, factor.source.shape, points)
            found.append(evaluator.value(factor.source)[(slice(None), *positions)])
        elif isinstance(factor, Guard):
            _, inside = read_at([factor.index], (factor.extent,), points)
        else:
            raise TypeError(f"not multilinear: {factor}")
        found += [] if inside is None else [inside[None].astype(np.float64)]
    return field.scale(product_at(field, found), term.coefficient)


__all__ = ["Tested", "mask_by_split_points", "split_points", "values_at"]
