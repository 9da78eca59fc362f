"""The e-graph around a rewrite: the equal forms of what a rule made, and of what those read.

%y   chosen  graph.matmul %e7, %v     1.2 us   matmul-associates
             graph.matmul %x, %e9     3.4 us   of the program
%e7  ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from ..rules.op_table import OpTable
from .egraph import LEAF, PROJECT, EGraph, ENode
from .problem import Problem

# A reader looks at a few: the cheapest forms of the class, and the classes that these read.
_FORMS = 8
_CLASSES = 6


@dataclass(frozen=True)
class Surroundings:
    """Tells of a saturated e-graph what stands around an e-node.

    Attributes:
        problem: all e-nodes with their prices.
        chosen: the e-node that was extracted, of each class that was needed.
    """

    graph: EGraph
    table: OpTable
    problem: Problem
    chosen: Mapping[int, ENode]

    def of(self, klass: int) -> list[dict[str, Any]]:
        """A class, then those that its forms read and that have several forms, for a report."""
        own = self._cheapest(klass)
        read = dict.fromkeys(c for node, _ in own for c in node.operands)
        others = [
            c for c in read if c != klass and len(self._forms(c)) > 1 and not self._is_leaf(c)
        ]
        return [self._class(c) for c in (klass, *others)][:_CLASSES]

    def _is_leaf(self, klass: int) -> bool:
        return any(node.head.op == LEAF for node, _ in self._forms(klass))

    def _class(self, klass: int) -> dict[str, Any]:
        best, shown = self.chosen.get(klass), self._cheapest(klass)
        forms = [
            {"ir": self._text(n), "seconds": s, "rule": n.made_by, "chosen": n is best}
            for n, s in shown
        ]
        more = len(self._forms(klass)) - len(forms)
        return {"value": f"%{self._name(klass)}", "forms": forms, "more": more}

    def _forms(self, klass: int) -> Sequence[tuple[ENode, float]]:
        nodes = self.problem.nodes.get(klass, [])
        return list(zip(nodes, self.problem.costs.get(klass, []), strict=True))

    def _cheapest(self, klass: int) -> list[tuple[ENode, float]]:
        """The chosen form first, then the cheapest."""
        best = self.chosen.get(klass)
        return sorted(self._forms(klass), key=lambda form: (form[0] is not best, form[1]))[:_FORMS]

    def _name(self, klass: int) -> str:
        value = self.graph.values.get(klass)
        return f"e{klass}" if value is None or value.name_hint is None else value.name_hint

    def _text(self, node: ENode) -> str:
        """The op, on the names of classes."""
        names = [f"%{self._name(c)}" for c in node.operands]
        if node.head.op == LEAF:
            return "what no rule looks into"
        if node.head.op == PROJECT:
            return f"a result of {names[0]}"
        op = self.table.make(node.head, [self._value(c) for c in node.operands], None)
        return node.head.op if op is None else str(op).partition(" = ")[2]

    def _value(self, klass: int) -> SSAValue:
        value = create_ssa_value(self.graph.types[klass][0])
        value.name_hint = self._name(klass)
        return value
