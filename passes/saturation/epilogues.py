"""What a product may write with its result, at no launch of its own.

A price of an e-graph is a sum over e-nodes, each by itself, while kernels fuse a bias and an
activation into the product before them. A relu that a rule moves behind a concatenation would look
as cheap as those of the products that it replaces, and is a kernel more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...dialects.graph.contraction import ConvolutionOp, MatmulOp
from ...dialects.graph.elementwise import ElementwiseOp
from ..rules.op_table import OpTable
from .egraph import EGraph, ENode
from .price import NodePrices

_SHARE = 0.02
"""Of its price as a kernel, what an op costs that a product may write: fewer are better."""


@dataclass(frozen=True)
class Epilogues:
    """Prices of the e-nodes of one graph that know what precedes them.

    Attributes:
        written: the classes that a product, or an elementwise op of such a class, may write.
    """

    graph: EGraph
    prices: NodePrices
    written: frozenset[int]

    @classmethod
    def of(cls, graph: EGraph, prices: NodePrices) -> Epilogues:
        """Those of a graph; none where no kernels are priced."""
        written = frozenset[int]() if prices.costs is None else _written(graph, prices.ops)
        return cls(graph, prices, written)

    def price(self, node: ENode) -> float:
        """The cost of an e-node: little of what is elementwise and reads such a class."""
        seconds = self.prices.of(self.graph, node)
        fused = any(c in self.written for c in node.operands)
        return seconds * _SHARE if fused and _is(node, self.prices.ops, ElementwiseOp) else seconds


def _written(graph: EGraph, table: OpTable) -> frozenset[int]:
    products = (MatmulOp, ConvolutionOp)
    waiting = [n.klass for n in graph.nodes if _is(n, table, *products)]
    readers = _elementwise_readers(graph, table)
    found = set[int]()
    while waiting:
        klass = waiting.pop()
        if klass not in found and not graph.weights[klass]:
            found.add(klass)
            waiting += readers.get(klass, ())
    return frozenset(found)


def _elementwise_readers(graph: EGraph, table: OpTable) -> Mapping[int, list[int]]:
    """The classes of the elementwise e-nodes that read each class."""
    found = dict[int, list[int]]()
    for node in graph.nodes:
        if _is(node, table, ElementwiseOp):
            for operand in node.operands:
                found.setdefault(operand, []).append(node.klass)
    return found


def _is(node: ENode, table: OpTable, *kinds: type) -> bool:
    kind = table.classes.get(node.head.op)
    return kind is not None and issubclass(kind, kinds)
