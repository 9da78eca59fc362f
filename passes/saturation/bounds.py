"""How many matches a pattern can have, before it is matched: egglog cannot be stopped in a step.

    most(t, c)      matches of term t in class c: 1 for a variable, else the sum over the e-nodes
                    of c with t's op of the product over their operands
    bound(p)        the largest sum of most(t, c) over all classes, of the terms t of pattern p

What a pattern asks besides (equal variables, attributes, shapes) only takes matches away. A join
also makes partial matches, of some of a term's operands and not the others: a product counts each
operand as 1 at least, so these are bounded as well. The sums are one numpy pass a term.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntAttr

from ...dialects.types import Array
from ..rules.rule import Node, Out, Term, Var
from .egraph import PROJECT, EGraph

Kind: TypeAlias = "tuple[str, int]"
"""An op and its operand count; of a projection its index."""


@dataclass
class Bounds:
    """Bounds on one e-graph as it is."""

    graph: EGraph
    prefix: str
    _rows: dict[Kind, Array] = field(default_factory=dict[Kind, Array])
    _most: dict[Term, Array] = field(default_factory=dict[Term, Array])

    def __post_init__(self) -> None:
        rows, find = dict[Kind, list[tuple[int, ...]]](), self.graph.find
        for node in self.graph.nodes:
            head = node.head
            index = head.attributes[0][1] if head.op == PROJECT else None
            kind = head.op, index.data if isinstance(index, IntAttr) else len(node.operands)
            rows.setdefault(kind, []).append((find(node.klass), *map(find, node.operands)))
        self._rows = {kind: np.array(found, dtype=np.int64) for kind, found in rows.items()}

    def of(self, terms: Iterable[Term]) -> float:
        """The bound of a pattern, given all terms in it."""
        whole = [self._matches(t) for t in terms if not isinstance(t, Var)]
        return max((float(most.sum()) for most in whole), default=0.0)

    def _matches(self, term: Term) -> Array:
        """The most matches of a term, by class."""
        if term not in self._most:
            self._most[term] = self._sum(term)
        return self._most[term]

    def _sum(self, term: Term) -> Array:
        size = len(self.graph.types)
        match term:
            case Var():
                return np.ones(size)
            case Out():
                kind, operands = (PROJECT, term.index), (term.node,)
            case Node():
                operands = term.operands
                kind = self.prefix + term.op, len(operands)
        rows = self._rows.get(kind)
        if rows is None:
            return np.zeros(size)
        product = np.ones(len(rows))
        for k, operand in enumerate(operands, start=1):
            if not isinstance(operand, Var):
                product *= np.maximum(self._matches(operand)[rows[:, k]], 1.0)
        return np.bincount(rows[:, 0], product, size)
