"""Compare two expressions exactly: their monomials at every output position, with coefficients.

A monomial is an output position and the sorted addresses of its factors. Functions are
variables: two calls are one variable if this same check finds their arguments equal. The answer is
True or False with certainty, or None if unknown: too many monomials, or a call that could
not be compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Leaf,
    Read,
    Reduce,
    Symbol,
    Term,
    substitute,
)
from ...dialects.index import Index, grid
from ...dialects.scalar_laws import COMMUTATIVE

# Points enumerated for one expression, over all its terms.
MAX_POINTS = 1 << 21
# Points of one comparison with all inner comparisons; each tried order of iterators adds some.
MOST_WORK, ORDER_WORK = 1 << 24, 1 << 12
_MAX_KEY = 1 << 62

Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class _Call:
    """An earlier call: its expression over its iterators, and its first address."""

    function: str
    extents: Extents
    args: tuple[Expr, ...]
    sums: Extents
    start: int


class _GiveUpError(Exception):
    """The answer is unknown."""


class Variables:
    """Addresses of all factors: elements of leaves, values of calls."""

    def __init__(self) -> None:
        self.count = 1
        self.starts: dict[str, int] = {}
        self.calls: list[_Call] = []
        self.found: dict[object, tuple[int, Sequence[int]]] = {}
        self.uncertain = False
        self.work = 0

    def spend(self, work: int) -> None:
        """Count work. Raises _GiveUpError past the bound: nested calls multiply it."""
        self.work += work
        if self.work > MOST_WORK:
            raise _GiveUpError

    def block(self, name: str, size: int) -> int:
        """First address of a named block of variables."""
        if name not in self.starts:
            self.starts[name] = self.count
            self.count += size
        return self.starts[name]

    def call(self, f: Apply | Reduce, extents: Extents) -> tuple[int, Sequence[int]]:
        """First address of a call's values, and the order of its iterators there."""
        used = sorted(f.iterators)
        made = _abstract(f, used, extents)
        key = (made.function, made.extents, tuple(a.token for a in made.args), made.sums)
        if key not in self.found:
            for arg in made.args:
                self._inner(arg, made.extents + made.sums)
            self.found[key] = self._find(made)
        start, order = self.found[key]
        return start, [used[k] for k in order]

    def _inner(self, arg: Expr, extents: Extents) -> None:
        """Register calls inside an argument first, so that comparing arguments terminates."""
        for term in arg.terms:
            for f in term.factors:
                if isinstance(f, Apply | Reduce):
                    self.call(f, extents + term.sums)

    def _find(self, made: _Call) -> tuple[int, Sequence[int]]:
        for known in self.calls:
            if (order := self._same(known, made)) is not None:
                return known.start, order
        start = self.count
        self.count += math.prod(made.extents)
        self.calls.append(_Call(made.function, made.extents, made.args, made.sums, start))
        if any(c.function == made.function for c in self.calls[:-1]):
            self.uncertain = True
        return start, range(len(made.extents))

    def _same(self, known: _Call, made: _Call) -> Sequence[int] | None:
        """The order of iterators in which two calls are equal, if one is found."""
        if known.function != made.function or len(known.args) != len(made.args):
            return None
        for order in _orders(made.extents, known.extents):
            self.spend(ORDER_WORK)
            args = _permuted(made, order)
            if self._equal_args(known, args):
                return order
        return None

    def _equal_args(self, known: _Call, args: Sequence[Expr]) -> bool:
        extents = known.extents + known.sums
        if len(args) == 2 and known.function in COMMUTATIVE:
            choices = [list(args), list(args)[::-1]]
        else:
            choices = [list(args)]
        for choice in choices:
            pairs = list(zip(known.args, choice, strict=True))
            if all(a.token == b.token for a, b in pairs):
                return True
            if not known.sums and all(self._equal(a, b, extents) for a, b in pairs):
                return True
            if known.sums and self._equal_sets(known, choice[0]):
                return True
        return False

    def _equal(self, a: Expr, b: Expr, extents: Extents) -> bool:
        return a.token == b.token or compare(a, b, extents, self) is True

    def _equal_sets(self, known: _Call, arg: Expr) -> bool:
        """Whether two reductions run over the same multiset of single reads at every point."""
        lists: list[Integers] = []
        for expr in (known.args[0], arg):
            only = expr.terms[0] if len(expr.terms) == 1 else None
            if only is None or only.coefficient != 1 or only.sums or len(only.factors) != 1:
                return False
            if not isinstance(only.factors[0], Read):
                return False
            bound = Term(Fraction(1), known.sums, only.factors)
            rows = _rows(bound, known.extents, self, keep_outside=True)
            lists.append(rows[np.lexsort(rows.T[::-1])])
        return lists[0].shape == lists[1].shape and bool((lists[0] == lists[1]).all())


def _abstract(f: Apply | Reduce, used: Sequence[int], extents: Extents) -> _Call:
    """The call with its iterators numbered from 0."""
    own = tuple(extents[k] for k in used)
    images = [Index(0)] * len(extents)
    for position, k in enumerate(used):
        images[k] = Index.iterator(position)
    if isinstance(f, Apply):
        args = tuple(substitute(a, images[: f.depth], own) for a in f.args)
        return _Call(f.function, own, args, (), 0)
    inner = [*images[: f.depth], *(Index.iterator(len(own) + k) for k in range(len(f.sums)))]
    arg = substitute(f.arg, inner, own + f.sums)
    return _Call(f"reduce {f.kind} {f.sums}", own, (arg,), f.sums, 0)


def _orders(extents: Extents, wanted: Extents) -> Iterator[Sequence[int]]:
    """Orders of iterators with the wanted extents, the given order first."""
    if sorted(extents) != sorted(wanted):
        return
    groups = [[k for k, n in enumerate(extents) if n == size] for size in sorted(set(extents))]
    positions = [[k for k, n in enumerate(wanted) if n == size] for size in sorted(set(extents))]
    # Lazily, group by group: itertools.product would list all orders of each group at once.
    chosen = [0] * len(extents)

    def fill(number: int) -> Iterator[Sequence[int]]:
        if number == len(groups):
            yield tuple(chosen)
            return
        for images in itertools.permutations(groups[number]):
            for position, k in zip(positions[number], images, strict=True):
                chosen[position] = k
            yield from fill(number + 1)

    yield from fill(0)


def _permuted(made: _Call, order: Sequence[int]) -> list[Expr]:
    """Arguments with iterator order[k] renamed k."""
    extents = tuple(made.extents[k] for k in order) + made.sums
    images = [Index(0)] * len(order)
    for position, k in enumerate(order):
        images[k] = Index.iterator(position)
    images += [Index.iterator(len(order) + k) for k in range(len(made.sums))]
    if list(order) == sorted(order):
        return list(made.args)
    return [substitute(a, images, extents) for a in made.args]


def compare(a: Expr, b: Expr, extents: Extents, variables: Variables | None = None) -> bool | None:
    """Whether two expressions have the same value at every point of the extents, as polynomials."""
    if a.token == b.token:
        return True
    variables = Variables() if variables is None else variables
    common = math.lcm(*(t.coefficient.denominator for e in (a, b) for t in e.terms))
    try:
        first = _monomials(a, extents, variables, common)
        second = _monomials(b, extents, variables, common)
    except _GiveUpError:
        return None
    same = first.keys() == second.keys() and all(
        np.array_equal(x, y) for d in first for x, y in zip(first[d], second[d], strict=True)
    )
    return True if same else (None if variables.uncertain else False)


def differing(
    a: Expr, b: Expr, extents: Extents, variables: Variables | None = None
) -> Integers | None:
    """The flat positions where two expressions differ as polynomials, in order.

    None if unknown: too many monomials, or calls that could not be compared.
    """
    variables = Variables() if variables is None else variables
    common = math.lcm(*(t.coefficient.denominator for e in (a, b) for t in e.terms))
    signed = [(t, 1) for t in a.terms] + [(t, -1) for t in b.terms]
    if sum(math.prod(extents + t.sums) for t, _ in signed) > MAX_POINTS:
        return None
    rows: dict[int, list[tuple[Integers, int]]] = {}
    try:
        for term, sign in signed:
            made = _rows(term, extents, variables)
            part = (made, sign * int(term.coefficient * common))
            rows.setdefault(made.shape[1], []).append(part)
    except _GiveUpError:
        return None
    found = [_summed(parts)[0][:, 0] for parts in rows.values()]
    if variables.uncertain and any(len(f) for f in found):
        return None
    return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


def _monomials(
    expr: Expr, extents: Extents, variables: Variables, common: int
) -> dict[int, tuple[Integers, Integers]]:
    """By degree, the distinct monomials, sorted, and their coefficients times `common`."""
    total = sum(math.prod(extents + t.sums) for t in expr.terms)
    if total > MAX_POINTS:
        raise _GiveUpError
    variables.spend(total)
    rows: dict[int, list[tuple[Integers, int]]] = {}
    for term in expr.terms:
        made = _rows(term, extents, variables)
        rows.setdefault(made.shape[1], []).append((made, int(term.coefficient * common)))
    found: dict[int, tuple[Integers, Integers]] = {}
    for degree in sorted(rows):
        keys, coefficients = _summed(rows[degree])
        if len(keys):
            found[degree] = keys, coefficients
    return found


def _summed(parts: Sequence[tuple[Integers, int]]) -> tuple[Integers, Integers]:
    """The distinct rows and the sums of their coefficients, without zeros."""
    keys = np.concatenate([rows for rows, _ in parts])
    if not len(keys):
        return keys, np.zeros(0, np.int64)
    small = sum(len(rows) * abs(c) for rows, c in parts) < _MAX_KEY
    kind = np.int64 if small else object
    values = np.concatenate([np.full(len(rows), c, kind) for rows, c in parts])
    order = _sorted_order(keys)
    keys, values = keys[order], values[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    total = np.add.reduceat(values, np.flatnonzero(new))
    kept = total != 0
    return keys[new][kept], total[kept]


def _sorted_order(keys: Integers) -> Integers:
    """Rows in lexicographic order, sorted by one packed key if it fits."""
    spans = [int(column.max()) + 1 for column in keys.T]
    if math.prod(spans) < _MAX_KEY:
        packed = keys[:, 0].copy()
        for column, span in zip(keys.T[1:], spans[1:], strict=True):
            packed = packed * span + column
        return np.argsort(packed, kind="stable")
    return np.lexsort(keys.T[::-1])


def _rows(
    term: Term, extents: Extents, variables: Variables, keep_outside: bool = False
) -> Integers:
    """One row for each point with a nonzero product: output address, sorted variable addresses."""
    wide = extents + term.sums
    values = grid(wide, range(len(wide)))
    out: Any = np.zeros([1] * len(wide), np.int64)
    for k, n in enumerate(extents):
        out = out * n + values[k]
    columns: list[Any] = [out]
    inside: Any = np.ones([1] * len(wide), bool)
    for f in term.factors:
        address, ok = _address(f, wide, values, variables, keep_outside)
        if address is not None:
            columns.append(address)
        if ok is not None:
            inside = inside & ok
    mask = np.broadcast_to(inside, wide).reshape(-1)
    flat = [np.broadcast_to(c, wide).reshape(-1)[mask] for c in columns]
    rows = np.stack(flat, axis=1).astype(np.int64)
    rows[:, 1:].sort(axis=1)
    return rows


def _address(
    f: Factor, wide: Extents, values: Sequence[Any], variables: Variables, keep_outside: bool
) -> tuple[Any, Any]:
    """Variable address of a factor at each point (None for a guard), and where it is nonzero."""
    match f:
        case Read(source, index, outside):
            if isinstance(source, Leaf) and source.data is not None:
                raise _GiveUpError  # its elements are numbers, not variables
            start = variables.block(source.token, math.prod(source.shape))
            at: Any = 0
            ok: Any = True
            for e, size in zip(index, source.shape, strict=True):
                value = np.asarray(e.evaluate(values))
                ok = ok & ((value >= 0) & (value < size))
                at = at * size + value
            if outside != 0.0 and not np.all(ok):
                if not keep_outside:
                    raise _GiveUpError
                special = variables.block(f"symbol {outside}", 1)
                return np.where(ok, start + at, special), None
            return start + np.where(ok, at, 0), ok
        case Guard(index, extent):
            value = np.asarray(index.evaluate(values))
            return None, (value >= 0) & (value < extent)
        case Symbol(value):
            return np.asarray(variables.block(f"symbol {value}", 1)), None
        case Apply() | Reduce():
            start, order = variables.call(f, wide)
            at = 0
            for k in order:
                at = at * wide[k] + values[k]
            return np.asarray(start + at), None
        case _:
            raise _GiveUpError
