"""Integer linear algebra over index expressions: atoms (iterators and floors) are coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ...dialects.index import Atom, Index


def primitive(index: Index) -> Index:
    """The non-constant part divided by the gcd of its coefficients.

    A single atom gets the coefficient 1; longer expressions keep their sign.
    """
    common = math.gcd(*(c for _, c in index.terms))
    if len(index.terms) == 1:
        return Index(0, ((index.terms[0][0], 1),))
    return Index(0, tuple((atom, c // common) for atom, c in index.terms))


def is_plain(index: Index) -> bool:
    """Whether the expression is one iterator."""
    term = index.terms[0] if len(index.terms) == 1 else None
    return term is not None and index.constant == 0 and isinstance(term[0], int) and term[1] == 1


def atoms_of(rows: Sequence[Index]) -> list[Atom]:
    """The atoms of some expressions, each once, in order of occurrence."""
    return list(dict.fromkeys(atom for row in rows for atom, _ in row.terms))


def rank(rows: Sequence[Index]) -> int:
    """Number of linearly independent rows."""
    atoms = atoms_of(rows)
    matrix = [[Fraction(row.coefficient(a)) for a in atoms] for row in rows]
    return len(_eliminate(matrix, len(atoms)))


def reduced(rows: Sequence[Index]) -> tuple[Index, ...]:
    """A basis of the lattice that the rows span, ignoring constants: the Hermite normal form.

    Single atoms where the lattice has them: of `6 * g + f` and `g` it is `g` and `f`.
    """
    atoms = atoms_of(rows)
    left = [[row.coefficient(a) for a in atoms] for row in rows]
    found: list[list[int]] = []
    for column in range(len(atoms)):
        pivot, left = _pivot(left, column)
        if pivot is None:
            continue
        for k, row in enumerate(found):
            by = row[column] // pivot[column]
            found[k] = [x - by * y for x, y in zip(row, pivot, strict=True)]
        found.append(pivot)
    return tuple(Index.make(0, dict(zip(atoms, row, strict=True))) for row in found)


def _pivot(rows: list[list[int]], column: int) -> tuple[list[int] | None, list[list[int]]]:
    """A row with the gcd of a column, and the others with 0 in it (Euclid's algorithm)."""
    used, rest = [r for r in rows if r[column]], [r for r in rows if not r[column]]
    while len(used) > 1:
        used.sort(key=lambda r: abs(r[column]))
        least = used[0]
        for k, row in enumerate(used[1:], 1):
            by = row[column] // least[column]
            used[k] = [x - by * y for x, y in zip(row, least, strict=True)]
        rest += [r for r in used if not r[column] and any(r)]
        used = [r for r in used if r[column]]
    if not used:
        return None, rest
    return [x if used[0][column] > 0 else -x for x in used[0]], rest


def solve(basis: Sequence[Index], target: Index) -> list[int] | None:
    """The integers v with target = sum of v[k] * basis[k], ignoring constants; None if none exist.

    The basis must be independent, else None.
    """
    atoms = atoms_of([*basis, target])
    matrix = [
        [*(Fraction(b.coefficient(a)) for b in basis), Fraction(target.coefficient(a))]
        for a in atoms
    ]
    pivots = _eliminate(matrix, len(basis))
    if len(pivots) != len(basis) or any(row[-1] != 0 for row in matrix[len(basis) :]):
        return None
    found = [matrix[k][-1] for k in range(len(basis))]
    return [int(v) for v in found] if all(v.denominator == 1 for v in found) else None


def _eliminate(matrix: list[list[Fraction]], columns: int) -> list[int]:
    """Gauss-Jordan in place over the first columns; the pivot columns."""
    pivots: list[int] = []
    for column in range(columns):
        done = len(pivots)
        position = next((k for k in range(done, len(matrix)) if matrix[k][column] != 0), None)
        if position is None:
            continue
        matrix[done], matrix[position] = matrix[position], matrix[done]
        lead = matrix[done][column]
        if lead != 1:
            matrix[done] = [x / lead for x in matrix[done]]
        for k, row in enumerate(matrix):
            if k != done and row[column] != 0:
                by = row[column]
                matrix[k] = [x - by * y for x, y in zip(row, matrix[done], strict=True)]
        pivots.append(column)
    return pivots
