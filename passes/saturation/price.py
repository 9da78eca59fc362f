"""What an e-node costs: the one cost interface for graph ops, a user's table for other dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Attribute

from ...dialects.errors import UserError
from ...dialects.graph import GraphOp
from ...dialects.graph.shaping import BroadcastOp
from ...dialects.weights_only import is_source
from ..cost.costs import FREE, Costs
from ..rules.op_table import Head, OpTable
from .egraph import LEAF, PROJECT, EGraph, ENode

TIE = 1e-15
"""Seconds a byte that is repeated: of programs that cost the same, that which repeats less.

A broadcast costs nothing where its reader has strides of 0, but not all readers have.
"""

_Key: TypeAlias = tuple[Head, tuple[Attribute, ...], tuple[bool, ...]]


@dataclass
class NodePrices:
    """Costs of e-nodes: modelled (or measured) seconds of graph ops, `table` by op name elsewhere.

    An op that is in neither costs 1 where there is no graph op at all, and nothing otherwise.
    """

    ops: OpTable
    costs: Costs | None = None
    table: Mapping[str, float] = field(default_factory=dict[str, float])
    default: float = 1.0
    _known: dict[_Key, float] = field(default_factory=dict["_Key", float])

    def of(self, graph: EGraph, node: ENode) -> float:
        """The cost of an e-node; of one that weights alone decide it is 0."""
        head = node.head
        if head.op in (LEAF, PROJECT) or graph.weights[node.klass]:
            return 0.0
        if head.op in self.table:
            return self.table[head.op]
        (type_, *_) = graph.types[node.klass]
        if head.op == BroadcastOp.name and self.costs is not None:
            return TIE * self.costs.bytes_of(type_)
        if head.op in FREE:
            return 0.0
        types = tuple(graph.types[c][0] for c in node.operands)
        weights = tuple(graph.weights[c] for c in node.operands)
        key = (head, types, weights)
        if key not in self._known:
            self._known[key] = self._priced(*key)
        return self._known[key]

    def _priced(self, head: Head, types: tuple[Attribute, ...], weights: tuple[bool, ...]) -> float:
        sample = self.ops.build(head, types)
        if sample is None or is_source(sample):
            return 0.0
        if not isinstance(sample, GraphOp) or self.costs is None:
            return self.default
        known = {v for v, weight in zip(sample.operands, weights, strict=True) if weight}
        return self.costs.op(sample, known).seconds


def parse_costs(entries: Sequence[str]) -> dict[str, float]:
    """A table from entries `dialect.op=cost`. Raises UserError for anything else."""
    found = dict[str, float]()
    for entry in entries:
        name, _, text = entry.partition("=")
        try:
            found[name] = float(text)
        except ValueError as error:
            raise UserError("a cost reads op=number", where="op-costs", found=entry) from error
        if not name or found[name] < 0:
            raise UserError("a cost reads op=number, at least 0", where="op-costs", found=entry)
    return found
