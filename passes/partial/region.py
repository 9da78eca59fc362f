"""Where two programs differ, at every position, and boxes that cover it.

A mask is an array of bool with the result's shape: True where the programs differ for some inputs.
Over the residues of t primes of about 2^20, a position at which two polynomials of degree d differ
is missed with probability at most (d / p)^t (Schwartz and Zippel): for N positions, N (d / p)^t.
`symbolic_mask` compares monomials instead, exactly. No result depends on either: the corrected
program is proved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...dialects.canonical_types import Scope
from ..equivalence.evaluator import Evaluator
from ..equivalence.inline import Inliner
from ..equivalence.symbolic import Variables, differing

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Box: TypeAlias = tuple[tuple[int, int], ...]


def field_mask(first: Scope, second: Scope, evaluator: Evaluator) -> Mask:
    """Where two scopes of one shape differ, by residues."""
    same = evaluator.field.equal(evaluator.value(first), evaluator.value(second))
    return np.broadcast_to(~same, first.shape)


def symbolic_mask(first: Scope, second: Scope) -> Mask | None:
    """Where two scopes of one shape differ, by their monomials; None if there are too many."""
    inliner = Inliner()
    exprs = [inliner.inline_scope(scope) for scope in (first, second)]
    found = differing(exprs[0], exprs[1], first.shape, Variables())
    if found is None:
        return None
    mask = np.zeros(math.prod(first.shape), bool)
    mask[found] = True
    return mask.reshape(first.shape)


def boxes(mask: Mask) -> list[Box]:
    """Disjoint boxes that cover exactly the positions where the mask is True.

    Equal neighbouring slices are merged first, so the work depends on how often the mask changes,
    not on its size. Then each box grows from the first uncovered position, in the order of dims
    that gives the largest box.
    """
    cuts = [_cuts(mask, dim) for dim in range(mask.ndim)]
    small = mask[np.ix_(*cuts)]
    ends = [[*c[1:], n] for c, n in zip(cuts, mask.shape, strict=True)]
    found: list[Box] = []
    left = small.copy()
    while left.any():
        low = tuple(int(position[0]) for position in np.nonzero(left))
        high = _grown(left, low)
        left[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = False
        sides = zip(cuts, ends, low, high, strict=True)
        found.append(tuple((cut[a], end[b - 1]) for cut, end, a, b in sides))
    return found


def _cuts(mask: Mask, dim: int) -> list[int]:
    """The positions along a dim where the slice differs from the one before."""
    rows = np.moveaxis(mask, dim, 0).reshape(mask.shape[dim], -1)
    changed = (rows[1:] != rows[:-1]).any(axis=1)
    return [0, *(int(k) + 1 for k in np.flatnonzero(changed))]


def _grown(left: Mask, low: Sequence[int]) -> tuple[int, ...]:
    """The end of the largest box from `low`, whichever dim grows first."""
    best: tuple[int, tuple[int, ...]] = (0, ())
    for order in itertools.permutations(range(left.ndim)):
        high = [k + 1 for k in low]
        for dim in order:
            while high[dim] < left.shape[dim]:
                side = [slice(a, b) for a, b in zip(low, high, strict=True)]
                side[dim] = slice(high[dim], high[dim] + 1)
                if not left[tuple(side)].all():
                    break
                high[dim] += 1
        size = math.prod(b - a for a, b in zip(low, high, strict=True))
        best = max(best, (size, tuple(high)), key=lambda found: found[0])
    return best[1]
