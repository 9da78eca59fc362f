"""Every graph up to N operators of a world, each distinct term evaluated once.

A term is one result of an operator on earlier terms, so a graph without duplicated computation is a
term and the set of nodes below it. The table keeps for each term its operator, operands, nodes and
a 64-bit hash of its exact value; values themselves are kept only where larger terms need them.

Source: Jia et al., TASO (SOSP 2019), section 2; here breadth first and vectorised: all terms of one
operator on operands of one shape are a handful of array operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from ....dialects.errors import UserError
from ...equivalence.residues import Lanes, Words, mix
from ..exact import Plan, Shape, constant, draw, plan
from ..rule import Attributes, Node, Out, Term, Var
from ..terms import resolved_attributes
from .operators import POSITIONS, Operator, World

Ids: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"

DRAWS = 3
NONE = np.int32(2**31 - 1)  # in a row of nodes: no node, sorts last
REPRESENTATIVES_FROM = 4
_CHUNK = 1 << 14  # terms evaluated at once
_BRUTE = 1 << 20  # pairs looked at at once


class Table:
    """All terms of a world. Row k of the arrays is term k.

    Attributes:
        made_by: for each block of terms, its operator, which result of it, and the block's shape.
        operands: of each term, padded with NONE.
        nodes: operators each is made of, sorted, padded with NONE; an operator with several results
            is known by its first term.
        hashes: fingerprints of the exact values.
        commuting: operators of which larger terms have one order of operands only.
    """

    def __init__(self, world: World, most: int) -> None:
        self.world, self.most = world, most
        self.leaves: list[Term] = []
        self.made_by: list[tuple[int, int, Shape]] = []
        self.block: Ids = np.zeros(0, np.int32)
        self.operands: Ids = np.zeros((0, 3), np.int32)
        self.nodes: Ids = np.zeros((0, most), np.int32)
        self.hashes: Words = np.zeros(0, np.uint64)
        self.commuting: set[int] = set()

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def sizes(self) -> Ids:
        """The number of operators of each term."""
        return (self.nodes != NONE).sum(axis=1).astype(np.int32)

    def shape(self, term: int) -> Shape:
        return self.made_by[self.block[term]][2]

    def operands_of(self, term: int) -> tuple[int, ...]:
        return tuple(int(i) for i in self.operands[term] if i != NONE)

    def operator_of(self, term: int) -> Operator | None:
        """The operator that made a term; None for variables and constants."""
        which = self.made_by[self.block[term]][0]
        return None if which < 0 else self.world.operators[which]

    def term(self, term: int) -> Term:
        """The term in the syntax of rules, with attributes as numbers."""
        operator = self.operator_of(term)
        if operator is None:
            return self.leaves[term]
        operands = self.operands_of(term)
        given = attributes_at(operator.attributes, [self.shape(i) for i in operands])
        assert given is not None
        node = Node(operator.op, tuple(self.term(i) for i in operands), given)
        return Out(node, self.made_by[self.block[term]][1]) if operator.results > 1 else node


def attributes_at(attributes: Attributes, shapes: Sequence[Shape]) -> Attributes | None:
    """Attributes of an operator as numbers at these operand shapes; None if they are not valid."""
    try:
        return resolved_attributes(attributes, dict(zip(POSITIONS, shapes, strict=False)))
    except UserError:
        return None


class Enumerator:
    """Fills a table level by level.

    Args:
        representatives_from: from this size on, operands are only the first term of each class of
            equal values; what is left out follows from smaller equalities.
    """

    def __init__(
        self, world: World, seed: int, most: int, representatives_from: int = REPRESENTATIVES_FROM
    ) -> None:
        self.world, self.most, self.narrow = world, most, representatives_from
        self.table = Table(world, most)
        self.values: dict[Shape, Lanes] = {}
        self.row: Ids = np.zeros(0, np.int32)
        self.by: dict[tuple[int, Shape], Ids] = {}
        self.results: Ids = np.zeros((0, 2), np.int32)
        self.seed = seed

    def run(self) -> Table:
        """Enumerate up to `most` operators."""
        self._leaves()
        for size in range(1, self.most + 1):
            if size == self.narrow:
                self._keep_representatives()
            blocks = [
                block
                for which, operator in enumerate(self.world.operators)
                for block in self._operator(size, which, operator)
            ]
            for block in blocks:
                self._add(size, *block)
        return self.table

    def _leaves(self) -> None:
        for name, shape in self.world.variables:
            self._add_leaf(Var(name), shape, draw(shape, DRAWS, self.seed, name))
        for node in self.world.constants:
            found = constant(node.op, node.attributes)
            assert found is not None, node
            shape = found.shape[1:]
            self._add_leaf(node, shape, np.broadcast_to(found, (DRAWS, *shape)))
        self.variables = len(self.world.variables)

    def _add_leaf(self, term: Term, shape: Shape, drawn: Lanes) -> None:
        value = drawn.reshape(1, -1)
        self.table.leaves.append(term)
        nothing = np.full((1, 3), NONE)
        nodes = np.full((1, self.most), NONE)
        self._add(0, -1, nothing, nodes, [(shape, value, fingerprint(value, shape))])

    def _add(
        self,
        size: int,
        which: int,
        operands: Ids,
        nodes: Ids,
        results: list[tuple[Shape, Lanes | None, Words]],
    ) -> None:
        """Append the terms of one operator on rows of operands, one block for each result."""
        table, count, first = self.table, len(operands), len(self.table)
        if which >= 0:
            own = np.arange(first, first + count, dtype=np.int32)[:, None]
            nodes = np.sort(np.concatenate([nodes[:, : self.most - 1], own], axis=1), axis=1)
        for k, (shape, value, hashes) in enumerate(results):
            ids = np.arange(len(table), len(table) + count, dtype=np.int32)
            key = (size, shape)
            self.by[key] = np.concatenate([self.by.get(key, ids[:0]), ids])
            block = np.full(count, len(table.made_by), np.int32)
            table.made_by.append((which, k, shape))
            table.block = np.concatenate([table.block, block])
            table.operands = np.concatenate([table.operands, operands])
            table.nodes = np.concatenate([table.nodes, nodes])
            table.hashes = np.concatenate([table.hashes, hashes])
            self._keep_values(shape, value, count)
        both = np.full((count * len(results), 2), NONE)
        for k in range(len(results)):
            both[:count, k] = np.arange(first + k * count, first + (k + 1) * count)
        self.results = np.concatenate([self.results, both])

    def _keep_values(self, shape: Shape, value: Lanes | None, count: int) -> None:
        known = self.values.get(shape)
        start = 0 if known is None else len(known)
        self.row = np.concatenate([self.row, np.arange(start, start + count, dtype=np.int32)])
        if value is not None:
            self.values[shape] = value if known is None else np.concatenate([known, value])

    def _keep_representatives(self) -> None:
        """From now on, use only the first term of each class as an operand."""
        _, first = np.unique(self.table.hashes, return_index=True)
        kept = np.zeros(len(self.table), bool)
        kept[first] = True
        self.by = {key: ids[kept[ids]] for key, ids in self.by.items()}

    # --- one operator ---

    def _operator(
        self, size: int, which: int, operator: Operator
    ) -> Iterator[tuple[int, Ids, Ids, list[tuple[Shape, Lanes | None, Words]]]]:
        shapes = sorted({shape for _, shape in self.by})
        for operand_shapes in product(shapes, repeat=operator.arity):
            given = attributes_at(operator.attributes, operand_shapes)
            compiled = None if given is None else plan(operator.op, given, operand_shapes)
            if compiled is None or not self._fits(compiled):
                continue
            if size > 1 and self._commutes(operator, compiled, operand_shapes):
                self.table.commuting.add(which)
            pieces = list(self._tuples(size, operator, operand_shapes, compiled))
            if not pieces:
                continue
            operands = np.concatenate([ids for ids, _ in pieces])
            nodes = np.concatenate([nodes for _, nodes in pieces])
            results = self._evaluate(compiled, operands, operand_shapes, size == self.most)
            pad = np.full((len(operands), 3 - operator.arity), NONE)
            yield which, np.concatenate([operands, pad], axis=1), nodes, results

    def _fits(self, compiled: Plan) -> bool:
        return all(n in self.world.extents for shape in compiled.shapes for n in shape)

    def _evaluate(
        self, compiled: Plan, operands: Ids, shapes: Sequence[Shape], last: bool
    ) -> list[tuple[Shape, Lanes | None, Words]]:
        """Shape, values (not at the last level) and hashes of each result, in chunks."""
        kept: list[list[Lanes]] = [[] for _ in compiled.shapes]
        hashes: list[list[Words]] = [[] for _ in compiled.shapes]
        for start in range(0, len(operands), _CHUNK):
            chunk = operands[start : start + _CHUNK]
            given = [
                self.values[shape][self.row[chunk[:, k]]].reshape(len(chunk) * DRAWS, *shape)
                for k, shape in enumerate(shapes)
            ]
            for k, value in enumerate(compiled.run(given)):
                flat = value.reshape(len(chunk), -1)
                hashes[k].append(fingerprint(flat, compiled.shapes[k]))
                if not last:
                    kept[k].append(flat)
        return [
            (shape, None if last else np.concatenate(kept[k]), np.concatenate(hashes[k]))
            for k, shape in enumerate(compiled.shapes)
        ]

    # --- which operands ---

    def _tuples(
        self, size: int, operator: Operator, shapes: Sequence[Shape], compiled: Plan
    ) -> Iterator[tuple[Ids, Ids]]:
        """Rows of operands that have size - 1 nodes in total, with these nodes."""
        if operator.arity == 1:
            ids = self._ids(size - 1, shapes[0], operator)
            ids = ids[ids < self.variables] if size == 1 else ids
            if len(ids):
                yield ids[:, None], self.table.nodes[ids]
        elif operator.arity == 2:
            once = size > 1 and self._commutes(operator, compiled, shapes)
            yield from self._pairs(size, operator, shapes, once)
        else:
            yield from self._triples(size, operator, shapes)

    def _ids(self, size: int, shape: Shape, operator: Operator) -> Ids:
        ids = self.by.get((size, shape), np.zeros(0, np.int32))
        return ids[ids < self.variables] if operator.inputs_only else ids

    def _pairs(
        self, size: int, operator: Operator, shapes: Sequence[Shape], once: bool
    ) -> Iterator[tuple[Ids, Ids]]:
        """Pairs of operands. With `once`, only one of (a, b) and (b, a)."""
        left, right = shapes
        full = size - 1
        for sizes in {(full, 0): 0, (0, full): 1}:
            if not (once and sizes[0] < sizes[1]):
                lists = [self._ids(s, x, operator) for s, x in zip(sizes, shapes, strict=True)]
                yield from self._brute(size, lists)
        if full:
            yield from self._inside(full, left, right, False)
            if not once:
                yield from self._inside(full, right, left, True)
        for a, b in product(range(1, full), repeat=2):
            if not (once and a < b) and a + b >= full:
                lists = [self._ids(a, left, operator), self._ids(b, right, operator)]
                yield from self._brute(size, lists, once and a == b)

    def _inside(self, full: int, big: Shape, small: Shape, swap: bool) -> Iterator[tuple[Ids, Ids]]:
        """A term of all the nodes, with a term of some of its nodes.

        With `swap` the second stands first, and has fewer nodes: pairs of equal nodes come once.
        """
        ids = self.by.get((full, big), np.zeros(0, np.int32))
        if not len(ids):
            return
        nodes = self.table.nodes[ids][:, :full]
        partners = self.results[nodes].reshape(len(ids), -1)
        rows, positions = np.nonzero(partners != NONE)
        a, b = ids[rows], partners[rows, positions]
        smaller = [self.by.get((s, small), ids[:0]) for s in range(1, full + 1)]
        fits = np.isin(b, np.concatenate(smaller))
        if swap:
            fits &= (self.table.nodes[b] != NONE).sum(axis=1) < full
        a, b = a[fits], b[fits]
        if len(a):
            yield np.stack([b, a] if swap else [a, b], axis=1), self.table.nodes[a]

    def _brute(
        self, size: int, lists: Sequence[Ids], once: bool = False
    ) -> Iterator[tuple[Ids, Ids]]:
        """All pairs, filtered to those with size - 1 nodes in total."""
        for rows in _combinations([len(ids) for ids in lists]):
            a, b = (ids[r] for ids, r in zip(lists, rows, strict=True))
            if once:
                a, b = a[a <= b], b[a <= b]
            nodes = self._union(size, a, b)
            fits = (nodes != NONE).sum(axis=1) == size - 1
            if size == 1:  # an operator on constants alone is a constant
                fits &= (a < self.variables) | (b < self.variables)
            if fits.any():
                yield np.stack([a[fits], b[fits]], axis=1), self._packed(nodes[fits])

    def _triples(
        self, size: int, operator: Operator, shapes: Sequence[Shape]
    ) -> Iterator[tuple[Ids, Ids]]:
        """All triples, filtered to those with size - 1 nodes in total; pairs are filtered first."""
        for sizes in product(range(size), repeat=2):
            lists = [self._ids(s, x, operator) for s, x in zip(sizes, shapes, strict=False)]
            pairs = [np.zeros((0, 2), np.int32), *self._few(size, lists)]
            first, second = np.concatenate(pairs).T
            for third in (self._ids(s, shapes[2], operator) for s in range(size)):
                for row, other in _combinations([len(first), len(third)]):
                    a, b, c = first[row], second[row], third[other]
                    nodes = _union(self._union(size, a, b), self.table.nodes[c][:, : size - 1])
                    fits = (nodes != NONE).sum(axis=1) == size - 1
                    if size == 1:
                        fits &= (np.stack([a, b, c]) < self.variables).any(axis=0)
                    if fits.any():
                        kept = np.stack([a[fits], b[fits], c[fits]], axis=1)
                        yield kept, self._packed(nodes[fits])

    def _few(self, size: int, lists: Sequence[Ids]) -> Iterator[Ids]:
        """Pairs with at most size - 1 nodes in total."""
        for rows in _combinations([len(ids) for ids in lists]):
            a, b = (ids[r] for ids, r in zip(lists, rows, strict=True))
            fits = (self._union(size, a, b) != NONE).sum(axis=1) < size
            yield np.stack([a[fits], b[fits]], axis=1)

    def _union(self, size: int, a: Ids, b: Ids) -> Ids:
        """The nodes of both; an operand of a graph of `size` operators has fewer."""
        return _union(self.table.nodes[a][:, : size - 1], self.table.nodes[b][:, : size - 1])

    def _packed(self, nodes: Ids) -> Ids:
        """Sort the nodes and pad them to the width of the table's rows."""
        kept = np.sort(nodes, axis=1)
        room = np.full((len(kept), self.most), NONE)
        width = min(self.most, kept.shape[1])
        room[:, :width] = kept[:, :width]
        return room

    def _commutes(self, operator: Operator, compiled: Plan, shapes: Sequence[Shape]) -> bool:
        if operator.arity != 2 or shapes[0] != shapes[1]:
            return False
        a, b = (draw(shape, DRAWS, 0, name) for shape, name in zip(shapes, POSITIONS, strict=False))
        forth, back = compiled.run([a, b]), compiled.run([b, a])
        return all(np.array_equal(x, y) for x, y in zip(forth, back, strict=True))


def _combinations(counts: Sequence[int]) -> Iterator[list[Ids]]:
    """All combinations of rows, in blocks of bounded size."""
    total = int(np.prod(counts, dtype=np.int64))
    for start in range(0, total, _BRUTE):
        flat = np.arange(start, min(total, start + _BRUTE), dtype=np.int64)
        rows = list[Ids]()
        for count in reversed(counts):
            rows.append((flat % count).astype(np.int32))
            flat = flat // count
        yield rows[::-1]


def _union(a: Ids, b: Ids) -> Ids:
    """Rows of the union of both node sets. The rows become wider."""
    fresh = b.copy()
    for k in range(a.shape[1]):
        fresh[fresh == a[:, k : k + 1]] = NONE
    return np.concatenate([a, fresh], axis=1)


def fingerprint(values: Lanes, shape: Shape) -> Words:
    """A 64-bit hash of each row: a random linear form, then a permutation; knows the shape."""
    keys = np.random.default_rng([7, *shape]).integers(0, 2**63, values.shape[1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        words = values.astype(np.int64).view(np.uint64)
        total = (words * (keys | np.uint64(1))).sum(axis=1, dtype=np.uint64)
        return mix(mix(total) ^ keys.sum(dtype=np.uint64))
