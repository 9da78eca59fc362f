"""Which equalities of a table's largest terms follow from smaller laws: e-matching over its arrays.

Operands of the largest terms are representatives (the first terms) of their classes, so congruence
makes no two such terms equal: a law has to match at the root. Its other side is looked up in the
table, and the two terms join one part of their class. Inner operators of a law match every member
of an operand's class.

A class that stays in several parts needs a new law (largest.py).

Source: Nandi et al., Ruler (OOPSLA 2021), for minimising a rule set by what it derives; Willsey et
al., egg (POPL 2021), for e-matching; here on arrays, as the terms number millions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..rule import AttrValue, Out, Size, Term, Var, atoms_of
from .table import NONE, Ids, Table

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Keys: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_BITS = 19  # of an operand's number; laws with larger ones are kept without a look-up
_OPERATOR_BITS = 5
_CHUNK = 1 << 16  # roots matched at once


@dataclass(frozen=True)
class TermPattern:
    """An operator on patterns, variables (by name) and constants (by term)."""

    which: int  # number of the operator in its world
    result: int  # number of the result, of several
    operands: tuple[TermPattern | str | int, ...]


class Closure:
    """The classes of a table, and which of their terms are known to be equal.

    Attributes:
        first: of each term, the representative of its class.
        part: of each term, the least term that laws have made equal to it.
        large: terms of the size limit whose operands are representatives.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        _, first, inverse = np.unique(table.hashes, return_index=True, return_inverse=True)
        self.first: Ids = first[inverse].astype(np.int32)
        operands = np.where(table.operands == NONE, 0, table.operands)
        self.operands: Ids = np.where(table.operands == NONE, NONE, self.first[operands])
        made = np.array([(max(w, -1), k) for w, k, _ in table.made_by], np.int64)
        self.which: Keys = made[table.block, 0]
        self.result: Keys = made[table.block, 1]
        canonical = (self.operands == table.operands).all(axis=1)
        self.large: Mask = (table.sizes == table.most) & canonical
        lower = np.flatnonzero(table.sizes < table.most)
        self.part: Ids = np.arange(len(table), dtype=np.int32)
        self.part[lower] = self.first[lower]
        self._index(lower)

    # --- looking terms up ---

    def _index(self, lower: Keys) -> None:
        """Terms by operator and operands, and members of classes by operator."""
        assert len(self.table.world.operators) < 1 << _OPERATOR_BITS
        keys = self._keys(self.which, self.result, self.operands)
        self.keys, self.at = np.unique(keys, return_index=True)
        self.members: dict[tuple[int, int], tuple[Ids, Ids]] = {}
        self.roots: dict[tuple[int, int], Keys] = {}
        lower = lower[self.which[lower] >= 0]
        lower = lower[np.unique(keys[lower], return_index=True)[1]]
        for which, operator in enumerate(self.table.world.operators):
            for result in range(operator.results):
                mine = lower[(self.which[lower] == which) & (self.result[lower] == result)]
                mine = mine[np.argsort(self.first[mine], kind="stable")]
                self.members[which, result] = self.first[mine], mine.astype(np.int32)
                chosen = self.large & (self.which == which) & (self.result == result)
                self.roots[which, result] = np.flatnonzero(chosen)

    def _keys(self, which: Keys | int, result: Keys | int, operands: Ids) -> Keys:
        """Operator, result and operands as one number."""
        last = (1 << _BITS) - 1
        columns = np.where(operands == NONE, last, operands).astype(np.int64)
        fits = (columns <= last).all(axis=1)
        code = np.asarray(which, np.int64) * 2 + result
        packed = code << (3 * _BITS)
        for k in range(3):
            packed = packed | (columns[:, k] << (_BITS * (2 - k)))
        return np.where(fits, packed, -1)

    def _lookup(self, which: int, result: int, operands: Sequence[Ids]) -> Ids:
        """The terms of an operator on operands; -1 where the table has none."""
        count = len(operands[0])
        columns = np.full((count, 3), NONE)
        for k, ids in enumerate(operands):
            columns[:, k] = ids
        found = self._find(self._keys(which, result, columns))
        if len(operands) == 2:  # the table has one order of commuting operands
            swapped = self._find(self._keys(which, result, columns[:, [1, 0, 2]]))
            other = (found < 0) & (which in self.table.commuting)
            found = np.where(other, swapped, found)
        return np.where((columns < 0).any(axis=1), np.int32(-1), found)

    def _find(self, keys: Keys) -> Ids:
        position = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.keys[position] == keys) & (keys >= 0)
        return np.where(known, self.at[position], -1).astype(np.int32)

    # --- applying laws ---

    def pattern(self, term: Term) -> TermPattern | str | int:
        """Encode one side of a law by the table's numbers, without attributes that shapes fix.

        Raises:
            KeyError: an operator that the world does not have.
        """
        node, result = (term.node, term.index) if isinstance(term, Out) else (term, 0)
        if isinstance(node, Var):
            return node.name
        if node in self.table.leaves:
            return int(self.first[self.table.leaves.index(node)])
        for which, operator in enumerate(self.table.world.operators):
            fixed = [(n, v) for n, v in operator.attributes if not _computed(v)]
            given = dict(node.attributes)
            same = all(given.get(name) == value for name, value in fixed)
            if operator.op == node.op and operator.arity == len(node.operands) and same:
                return TermPattern(which, result, tuple(map(self.pattern, node.operands)))
        raise KeyError(node.op)

    def apply(self, laws: Sequence[tuple[Term, Term]]) -> None:
        """Join what these laws make equal, in both directions."""
        edges = [
            edge
            for left, right in laws
            for a, b in ((left, right), (right, left))
            for edge in self._edges(self.pattern(a), self.pattern(b))
        ]
        if edges:
            self.join(np.concatenate(edges, axis=1))

    def _edges(
        self, left: TermPattern | str | int, right: TermPattern | str | int
    ) -> Iterator[Ids]:
        """Pairs of large terms that a law makes equal: [2, n]."""
        if not isinstance(left, TermPattern):
            return
        every = self.roots[left.which, left.result]
        for start in range(0, len(every), _CHUNK):
            roots = every[start : start + _CHUNK].astype(np.int32)
            roots, bound = self._matches(left, roots)
            other = self._made(right, bound, len(roots))
            if other is None:
                return
            good = other >= 0
            good[good] &= self.first[other[good]] == self.first[roots[good]]
            yield np.stack([roots[good], other[good]])

    def _matches(self, pattern: TermPattern, roots: Ids) -> tuple[Ids, dict[str, Ids]]:
        """The terms that match the pattern, and the variables of each."""
        columns: dict[str, Ids] = {"": roots}
        todo: list[tuple[TermPattern, str]] = [(pattern, "")]

        def keep(rows: Any) -> None:
            for name in columns:
                columns[name] = columns[name][rows]

        while todo:
            node, position = todo.pop()
            inner = list[tuple[int, TermPattern]]()
            for k, child in enumerate(node.operands):
                at = self.operands[columns[position], k]
                if isinstance(child, TermPattern):
                    inner.append((k, child))
                elif isinstance(child, str) and child not in columns:
                    columns[child] = at
                else:
                    keep(at == (columns[child] if isinstance(child, str) else child))
            for k, child in inner:
                rows, found = self._of_classes(child, self.operands[columns[position], k])
                keep(rows)
                name = f"{position}/{k}"
                columns[name] = found
                todo.append((child, name))
        found = {name: ids for name, ids in columns.items() if name and name[0] != "/"}
        return columns[""], found

    def _of_classes(self, child: TermPattern, at: Ids) -> tuple[Keys, Ids]:
        """Members of the classes that have this operator: rows of `at`, and terms."""
        classes, members = self.members[child.which, child.result]
        low = np.searchsorted(classes, at, side="left")
        counts = np.searchsorted(classes, at, side="right") - low
        rows = np.repeat(np.arange(len(at)), counts)
        inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, members[np.repeat(low, counts) + inside]

    def _made(
        self, term: TermPattern | str | int, bound: dict[str, Ids], count: int, top: bool = True
    ) -> Ids | None:
        """The term a law gives; -1 where the table has none, None if it never has."""
        if isinstance(term, str):
            return bound.get(term)
        if isinstance(term, int):
            return np.full(count, term, np.int32)
        operands = [self._made(child, bound, count, False) for child in term.operands]
        given = [ids for ids in operands if ids is not None]
        if len(given) < len(operands):
            return None
        found = self._lookup(term.which, term.result, given)
        return found if top else np.where(found >= 0, self.first[found], np.int32(-1))

    def join(self, edges: Ids) -> None:
        """Make the two terms of each edge one part."""
        part = self.part
        while True:
            a, b = part[edges[0]], part[edges[1]]
            apart = a != b
            if not apart.any():
                break
            edges = edges[:, apart]
            low, high = np.minimum(a, b)[apart], np.maximum(a, b)[apart]
            np.minimum.at(part, high, low)
            while (part[part] != part).any():
                part[:] = part[part]


def _computed(value: AttrValue) -> bool:
    return any(isinstance(atom, Size) for atom in atoms_of(value))
