"""The matrices of minimal filtering, F(m, taps): m results of a window from m + taps - 1 products.

They are made from interpolation points, exactly, in rationals (Toom-Cook; Winograd 1980). Points
are multiples of 1/8, so B^T and A^T are exact in floating point, and G's rows carry the divisors:
nothing is rounded before run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...dialects.types import Array


def _points(*pairs: str, one: Sequence[str] = ()) -> tuple[Fraction, ...]:
    """0, each point with its opposite, and further points without."""
    both = [Fraction(sign + point) for point in pairs for sign in ("", "-")]
    return (Fraction(0), *both, *map(Fraction, one))


# Points besides infinity, by the number of products. Those with the least error were found by
# trying: those of F(4, 3) err least in two dims on random data with 512 channels, among the pairs
# of eighths up to 2 that were best with 32; those of F(4, 4), F(4, 5) and F(4, 7) in one dim with
# 256. Lavin and Gray's 0, 1, -1, 2, -2 err four times as much (Barabasz et al. 2020 explain why).
POINTS: dict[int, tuple[Fraction, ...]] = {
    4: _points("1"),
    6: _points("5/8", "3/2"),
    7: _points("5/8", "9/8", one=["9/4"]),
    8: _points("5/8", "1", "7/4"),
    10: _points("3/8", "3/4", "11/8", "2"),
}


@dataclass(frozen=True)
class Matrices:
    """A^T [m, a], G [a, taps] without the divisors of its rows, B^T [a, a]; a = m + taps - 1."""

    at: Array  # A^T
    g: Array  # G
    divisors: Array  # of the rows of G
    bt: Array  # B^T


def matrices(m: int, taps: int) -> Matrices:
    """The matrices of F(m, taps), for its points and infinity."""
    a = m + taps - 1
    points = POINTS[a]
    at = [[p**k for p in points] + [Fraction(int(k == m - 1))] for k in range(m)]
    g = [[p**k for k in range(taps)] for p in points] + [[Fraction(0)] * (taps - 1) + [Fraction(1)]]
    divisors = [_norm(points, i) for i in range(len(points))] + [Fraction(1)]
    bt = [[*_without(points, i), Fraction(0)] for i in range(len(points))]
    bt.append(_polynomial(points))
    assert all(len(row) == a for row in bt)
    as_array = [
        np.array([[float(x) for x in row] for row in part], np.float32) for part in (at, g, bt)
    ]
    return Matrices(
        as_array[0], as_array[1], np.array([float(d) for d in divisors], np.float32), as_array[2]
    )


def _norm(points: Sequence[Fraction], i: int) -> Fraction:
    product = Fraction(1)
    for j, p in enumerate(points):
        if j != i:
            product *= points[i] - p
    return product


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of prod (x - root), lowest first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [c * root for c in coefficients] + [Fraction(0)]
        coefficients = [s - t for s, t in zip(shifted, scaled, strict=True)]
    return coefficients


def _without(points: Sequence[Fraction], i: int) -> list[Fraction]:
    return _polynomial([p for j, p in enumerate(points) if j != i])
