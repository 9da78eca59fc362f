"""How many matches a pattern can have, before it is matched: egglog cannot be stopped in a step.

    most(t, c)      matches of term t in class c: 1 for a variable, else the sum over the e-nodes
                    of c with t's op of the product over their operands
    bound(p)        the largest sum of most(t, c) over all classes, of the terms t of pattern p

Other conditions of a pattern (equal variables, attributes, shapes) only remove matches. A join
also makes partial matches, of some of a term's operands and not the others: a product counts each
operand as 1 at least, so these are bounded as well. The sums are one numpy pass a term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...dialects.types import Array
from ..rules.rule import Node, Out, Term, Var
from .egraph import PROJECT
from .read_back import Kind


@dataclass
class Bounds:
    """Bounds on one e-graph as it is.

    Attributes:
        rows: the e-nodes of each kind: their class, then their operands.
        classes: one more than the largest number of a class.
    """

    rows: Mapping[Kind, Array]
    classes: int
    prefix: str
    _most: dict[Term, Array] = field(default_factory=dict[Term, Array])

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
        size = self.classes
        match term:
            case Var():
                return np.ones(size)
            case Out():
                kind, operands = (PROJECT, term.index), (term.node,)
            case Node():
                operands = term.operands
                kind = self.prefix + term.op, len(operands)
        rows = self.rows.get(kind)
        if rows is None:
            return np.zeros(size)
        product = np.ones(len(rows))
        for k, operand in enumerate(operands, start=1):
            if not isinstance(operand, Var):
                product *= np.maximum(self._matches(operand)[rows[:, k]], 1.0)
        return np.bincount(rows[:, 0], product, size)
