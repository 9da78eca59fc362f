"""What egglog holds, by numbers of classes: e-nodes for bounds, matches for groups, all at the end.

A class has the least number that the program gave it; those that rules made have the numbers after
the program's, in the order they are met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from ...dialects.types import Array
from ..rules.op_table import Head
from .egraph import LEAF, PROJECT, EGraph, ENode, projection
from .encode import Encoded
from .encoding import PROGRAM, Row, Shape
from .engine import Engine
from .rule_program import MatchTable

_Key: TypeAlias = "tuple[Head, tuple[int, ...]]"

Kind: TypeAlias = "tuple[str, int]"
"""An op and its operand count; of a projection its index."""


@dataclass(frozen=True)
class PatternMatch:
    """A row of a table of matches.

    Attributes:
        question: types and attributes, by their numbers.
    """

    roots: tuple[int, ...]  # classes of the outputs
    tensors: tuple[int, ...]  # classes of the variables
    question: Row


class Snapshot:
    """egglog's tables as they are now.

    Args:
        program: how many classes the program was given.
    """

    def __init__(self, engine: Engine, program: int) -> None:
        self._engine, self._next, self._program = engine, program, program
        self._tables: Mapping[str, Any] = engine.freeze()
        self._values = {engine.whole(row.inputs[0]): row.output for row in self._tables["V"].rows}
        self._numbers = dict[Any, int]()
        for number in sorted(self._values):
            if number < program:
                self._numbers.setdefault(self._values[number], number)

    def number(self, value: Any) -> int:
        """The number of a class."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = self._next
            self._next += 1
        return found

    def find(self, number: int) -> int | None:
        """The class that was given a number; None where egglog has none."""
        value = self._values.get(number)
        return None if value is None else self.number(value)

    def kinds(self) -> dict[Kind, Array]:
        """The e-nodes of each op and operand count: their class, then their operands."""
        rows, number = dict[Kind, list[list[int]]](), self.number
        for row in self._tables["part"].rows:
            kind = PROJECT, self._engine.whole(row.inputs[1])
            rows.setdefault(kind, []).append([number(row.output), number(row.inputs[0])])
        encoding = self._engine.program.encoding
        for shape in encoding.shapes:
            count, found = shape[1], rows.setdefault(shape[:2], [])
            for row in self._tables[encoding.constructor(shape)].rows:
                found.append([number(row.output), *map(number, row.inputs[:count])])
        return {kind: np.array(found, dtype=np.int64) for kind, found in rows.items() if found}

    def classes(self) -> int:
        """One more than the largest number of a class met so far."""
        return self._next

    def matches(self, table: MatchTable) -> list[PatternMatch]:
        """The matches of a left side, in order."""
        number, whole = self.number, self._engine.whole
        roots = len(table.roots)
        last = roots + len(table.tensors)
        found = list[PatternMatch]()
        for row in self._tables[table.name].rows:
            cells = row.inputs
            classes = [number(v) for v in cells[:last]]
            question = tuple([whole(v) for v in cells[last:]])
            found.append(PatternMatch(tuple(classes[:roots]), tuple(classes[roots:]), question))
        return sorted(found, key=lambda m: (m.roots, m.tensors, m.question))

    def levels(self) -> dict[int, int]:
        """The level of each class."""
        whole = self._engine.whole
        return {self.number(r.inputs[0]): whole(r.output) for r in self._tables["level"].rows}

    def weights(self) -> set[int]:
        """The classes that depend on weights alone."""
        return {self.number(r.inputs[0]) for r in self._tables["weight"].rows}

    def readers(self, roots: Iterable[int]) -> dict[int, set[int]]:
        """Which of the program's classes read each class; -1 stands for what it returns."""
        readers = dict[int, set[int]]()
        for root in roots:
            readers.setdefault(self.known(root), set()).add(-1)
        for rows in self.kinds().values():
            for klass, *operands in rows.tolist():
                if klass < self._program:
                    for c in operands:
                        readers.setdefault(c, set()).add(klass)
        return readers

    def known(self, number: int) -> int:
        found = self.find(number)
        assert found is not None, f"class {number} was never given"
        return found

    def graph(self, encoded: Encoded) -> EGraph:
        """All of it; the names of the program's values and what it returns are taken over.

        The values of `encoded` get their classes in it.
        """
        before, encoding = encoded.graph, self._engine.program.encoding
        for value in sorted(row.inputs[0] for row in self._tables["typ"].rows):
            self.number(value)  # in the order they were made
        encoded.classes = {v: self.known(c) for v, c in encoded.classes.items()}
        kinds, light = dict[int, int](), self.weights()
        for row in self._tables["typ"].rows:
            kinds[self.number(row.inputs[0])] = self._engine.whole(row.output)
        graph = EGraph(roots=[self.known(c) for c in before.roots])
        for klass, value in before.values.items():
            graph.values.setdefault(self.known(klass), value)
        graph.types = [encoding.types[kinds[c]] if c in kinds else () for c in range(self._next)]
        graph.weights = [c in light for c in range(self._next)]
        leaves, origins = list[ENode](), dict[_Key, Operation]()
        for node in before.nodes:
            if node.head.op == LEAF:
                leaves.append(ENode(node.head, (), self.known(node.klass)))
            elif node.origin is not None:
                operands = tuple(map(self.known, node.operands))
                origins.setdefault((node.head, operands), node.origin)
        graph.nodes = leaves
        for shape in (None, *encoding.shapes):
            graph.nodes += self._nodes(shape, graph, origins)
        graph.nodes.sort(key=lambda node: (node.klass, node.made_by != ""))
        return graph

    def _nodes(
        self, shape: Shape | None, graph: EGraph, origins: Mapping[_Key, Operation]
    ) -> list[ENode]:
        """The e-nodes of one shape, in order."""
        program, whole, number = self._engine.program, self._engine.whole, self.number
        name = program.encoding.constructor(shape)
        by = {tuple(r.inputs): whole(r.output) for r in self._tables[f"by-{name}"].rows}
        count, heads = (1 if shape is None else shape[1]), dict[Row, Head]()
        found = list[tuple[tuple[int, ...], Row, ENode]]()
        for row in self._tables[name].rows:
            cells = row.inputs
            operands = tuple([number(v) for v in cells[:count]])
            values = tuple([whole(v) for v in cells[count:]])
            klass = number(row.output)
            head = heads.get(values)
            if head is None:
                head = heads[values] = self._head(shape, values, len(graph.types[klass]))
            rule = by[tuple(cells)]
            made_by = "" if rule == PROGRAM else program.members[rule].rule.name
            origin = origins.get((head, operands)) if rule == PROGRAM else None
            found.append((operands, values, ENode(head, operands, klass, made_by, origin)))
        return [node for _, _, node in sorted(found, key=lambda f: f[:2])]

    def _head(self, shape: Shape | None, values: Row, results: int) -> Head:
        if shape is None:
            return projection(values[0])
        attributes = self._engine.program.encoding.attributes
        named = zip(shape[2], (attributes[v] for v in values), strict=True)
        return Head(shape[0], tuple(named), results)
