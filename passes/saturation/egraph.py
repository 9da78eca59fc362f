"""The e-graph as this package keeps it: typed classes, e-nodes with where they came from.

egglog (engine.py) finds matches and closes the graph under congruence; what rules may build is
decided here, where the ops of the dialect are at hand. The two are kept equal class by class: class
k here is the class of `(V k)` there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Operation, SSAValue

from ..rules.op_table import Head, Types

PROJECT = "project"
LEAF = "leaf"


def projection(index: int) -> Head:
    """The head of "result `index` of an op with several"."""
    return Head(PROJECT, (("index", IntAttr(index)),))


@dataclass
class ENode:
    """An op on classes.

    Attributes:
        made_by: the rule that made it; empty for an op of the program.
        origin: the op of the program that it is, or in whose place the rule made it.
    """

    head: Head
    operands: tuple[int, ...]
    klass: int
    made_by: str = ""
    origin: Operation | None = None


@dataclass
class EGraph:
    """Classes are numbered from 0; `find` gives the number that stands for a class.

    Attributes:
        types: of each class; several for the results of one op together.
        kind: of each class, the number of its types among `kinds`.
        weights: whether a class depends on weights and constants alone.
        level: longest way from the inputs in the program; of classes that rules made that of the
            op they stand in for.
        values: the program's value of a class, for its name.
        roots: classes the program returns or reads from ops that stay as they are.
        origins: an op of the program of a class, in whose place rules work.
        unions: pairs put into one class by rules, with the rule's name.
    """

    nodes: list[ENode] = field(default_factory=list[ENode])
    types: list[Types] = field(default_factory=list[Types])
    kind: list[int] = field(default_factory=list[int])
    kinds: dict[Types, int] = field(default_factory=dict[Types, int])
    weights: list[bool] = field(default_factory=list[bool])
    level: list[int] = field(default_factory=list[int])
    values: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    origins: dict[int, Operation] = field(default_factory=dict[int, Operation])
    roots: list[int] = field(default_factory=list[int])
    unions: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    parent: list[int] = field(default_factory=list[int])
    index: dict[tuple[Head, tuple[int, ...]], ENode] = field(
        default_factory=dict[tuple[Head, tuple[int, ...]], ENode]
    )
    fresh_nodes: list[ENode] = field(default_factory=list[ENode])
    fresh_unions: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def find(self, klass: int) -> int:
        """The number that stands for a class."""
        parent = self.parent
        while parent[klass] != klass:
            parent[klass] = parent[parent[klass]]
            klass = parent[klass]
        return klass

    def lookup(self, head: Head, operands: Iterable[int]) -> ENode | None:
        """The e-node with this head on these classes, if there is one."""
        return self.index.get((head, tuple(map(self.find, operands))))

    def add(
        self,
        head: Head,
        operands: Iterable[int],
        types: Types,
        *,
        level: int = 0,
        weights: bool | None = None,
        made_by: str = "",
        origin: Operation | None = None,
    ) -> int:
        """The class of an e-node, which is made where there is none."""
        key = (head, tuple(map(self.find, operands)))
        known = self.index.get(key)
        if known is not None:
            return self.find(known.klass)
        klass = len(self.types)
        if weights is None:
            weights = bool(key[1]) and not head.anchor and all(self.weights[c] for c in key[1])
        self.parent.append(klass)
        self.types.append(types)
        self.kind.append(self.kinds.setdefault(types, len(self.kinds)))
        self.weights.append(weights)
        self.level.append(level)
        if origin is not None:
            self.origins[klass] = origin
        node = ENode(head, key[1], klass, made_by, origin)
        self.index[key] = node
        self.nodes.append(node)
        self.fresh_nodes.append(node)
        return klass

    def union(self, a: int, b: int, rule: str) -> bool:
        """Put two classes into one, as a rule says; False where they are one."""
        if not self._merge(a, b):
            return False
        self.unions.append((a, b, rule))
        self.fresh_unions.append((a, b))
        return True

    def _merge(self, a: int, b: int) -> bool:
        a, b = sorted((self.find(a), self.find(b)))
        if a == b:
            return False
        assert self.types[a] == self.types[b], (self.types[a], self.types[b])
        self.parent[b] = a
        self.weights[a] = self.weights[a] or self.weights[b]
        self.level[a] = min(self.level[a], self.level[b])
        if b in self.values:
            self.values.setdefault(a, self.values[b])
        if b in self.origins:
            self.origins.setdefault(a, self.origins[b])
        return True

    def congruent(self, groups: Iterable[list[int]]) -> None:
        """Take over classes that congruence joined, then drop e-nodes that became equal.

        Equal e-nodes of two classes join these, which may make others equal: until none are.
        """
        for group in groups:
            for other in group[1:]:
                self._merge(group[0], other)
        while self._drop_doubles():
            pass
        self._spread_weights()

    def _drop_doubles(self) -> bool:
        """Keep the first of equal e-nodes; whether that joined classes."""
        self.index = {}
        kept, joined = list[ENode](), False
        for node in self.nodes:
            node.operands = tuple(map(self.find, node.operands))
            node.klass = self.find(node.klass)
            first = self.index.setdefault((node.head, node.operands), node)
            if first is node:
                kept.append(node)
            else:
                joined = self._merge(first.klass, node.klass) or joined
        self.nodes = kept
        return joined

    def _spread_weights(self) -> None:
        """A class made of weights alone makes its users so, where they have no other operand."""
        changed = True
        while changed:
            changed = False
            for node in self.nodes:
                if self.weights[node.klass] or not node.operands or node.head.anchor:
                    continue
                if all(self.weights[c] for c in node.operands):
                    self.weights[node.klass] = changed = True

    def classes(self) -> dict[int, list[ENode]]:
        """The e-nodes of each class, in the order they were made."""
        found = dict[int, list[ENode]]()
        for node in self.nodes:
            found.setdefault(self.find(node.klass), []).append(node)
        return found
