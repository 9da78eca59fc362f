"""An e-graph as data: what a program is as one (encode.py), and what egglog made of it.

Here nothing is joined or looked up: equal e-nodes, classes that congruence joins and what rules add
are egglog's (engine.py).
"""

from __future__ import annotations

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

    head: Head  # op and attributes
    operands: tuple[int, ...]  # classes
    klass: int  # its class
    made_by: str = ""
    origin: Operation | None = None


@dataclass
class EGraph:
    """Classes are numbered from 0.

    Attributes:
        types: of each class; several for the results of one op together.
        weights: whether a class depends on weights and constants alone.
        level: longest way from the inputs in the program; of what rules made that of the op it
            stands in for.
        values: the program's value of a class, for its name.
        roots: classes the program returns or reads from ops that stay as they are.
        same: pairs of classes that are one (of a program as it was encoded).
    """

    nodes: list[ENode] = field(default_factory=list[ENode])
    types: list[Types] = field(default_factory=list[Types])
    weights: list[bool] = field(default_factory=list[bool])
    level: list[int] = field(default_factory=list[int])
    values: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    roots: list[int] = field(default_factory=list[int])
    same: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def classes(self) -> dict[int, list[ENode]]:
        """The e-nodes of each class, in the order they stand in."""
        found = dict[int, list[ENode]]()
        for node in self.nodes:
            found.setdefault(node.klass, []).append(node)
        return found
