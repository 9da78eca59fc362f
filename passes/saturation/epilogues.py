"""What a product may write with its result, at no launch of its own, and what it cannot read.

A price of an e-graph is a sum over e-nodes, each by itself, while kernels fuse a bias and an
activation into the product before them. A relu that a rule moves behind a concatenation would look
as cheap as those of the products that it replaces, and is a kernel more. Nor is it seen that a
product's operand which is repeated within a dim (keys for the queries that share them) is stored:
no strides read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...dialects.graph.contraction import ConvolutionOp, MatmulOp
from ...dialects.graph.elementwise import ElementwiseOp
from ...dialects.graph.shaping import BroadcastOp, ReshapeOp
from ..rules.op_table import OpTable
from .egraph import EGraph, ENode
from .price import NodePrices

PRODUCTS = (MatmulOp, ConvolutionOp)
SHARE = 0.02
"""Of its price as a kernel, what an op costs that a product may write: fewer are better."""


@dataclass(frozen=True)
class Epilogues:
    """Prices of the e-nodes of one graph that know what precedes them.

    Attributes:
        written: the classes that a product, or an elementwise op of such a class, may write.
        repeated: the classes that repeat another within a dim: a broadcast under another shape.
    """

    graph: EGraph
    prices: NodePrices
    written: frozenset[int]
    repeated: frozenset[int]

    @classmethod
    def of(cls, graph: EGraph, prices: NodePrices) -> Epilogues:
        """Those of a graph; none where no kernels are priced."""
        if prices.costs is None:
            return cls(graph, prices, frozenset(), frozenset())
        return cls(graph, prices, _written(graph, prices.ops), _repeated(graph))

    def price(self, node: ENode) -> float:
        """The cost of an e-node: little of what is elementwise and reads what a product writes."""
        seconds = self.prices.of(self.graph, node)
        if seconds and any(c in self.repeated for c in node.operands):
            seconds += self._stored(node)
        fused = any(c in self.written for c in node.operands)
        return (
            seconds * SHARE if fused and is_kind(node, self.prices.ops, ElementwiseOp) else seconds
        )

    def _stored(self, node: ENode) -> float:
        """What storing a product's repeated operands takes, at the speed of memory."""
        costs = self.prices.costs
        if costs is None or not is_kind(node, self.prices.ops, *PRODUCTS):
            return 0.0
        found = {c: self.graph.types[c][0] for c in node.operands if c in self.repeated}
        sizes = filter(None, map(costs.bytes_of, found.values()))
        return sum(costs.target.launch + size / costs.target.bandwidth for size in sizes)


def _repeated(graph: EGraph) -> frozenset[int]:
    broadcasts = {n.klass for n in graph.nodes if n.head.op == BroadcastOp.name}
    reshapes = (n for n in graph.nodes if n.head.op == ReshapeOp.name)
    found = {n.klass for n in reshapes if n.operands[0] in broadcasts}
    return frozenset(c for c in found - broadcasts if not graph.weights[c])


def _written(graph: EGraph, table: OpTable) -> frozenset[int]:
    waiting = [n.klass for n in graph.nodes if is_kind(n, table, *PRODUCTS)]
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
        if is_kind(node, table, ElementwiseOp):
            for operand in node.operands:
                found.setdefault(operand, []).append(node.klass)
    return found


def is_kind(node: ENode, table: OpTable, *kinds: type) -> bool:
    """Whether an e-node's op is one of these kinds."""
    kind = table.classes.get(node.head.op)
    return kind is not None and issubclass(kind, kinds)
