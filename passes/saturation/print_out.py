"""A saturated e-graph as IR of xDSL's `equivalence` dialect, for other tools.

    %a = graph.matmul %x_, %w_            an e-node, on classes
    %b = graph.add %c_, %d_
    %y_ = equivalence.class %a, %b {min_cost_index = 1}

A class is an `equivalence.class` of its e-nodes' results; result i of several belongs to the class
of projection i. `min_cost_index` is the extracted e-node, or the first where the class was not
needed: xDSL's `eqsat-extract` then gives the extracted program where every op has one result. An
e-graph has cycles, so a value may be used above the op that makes it; only the generic form reads
back then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import equivalence
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.program import add_provenance
from ...dialects.types import placeholders
from ..rules.op_table import OpTable
from .egraph import LEAF, PROJECT, ENode
from .encode import Encoded


def print_out(encoded: Encoded, table: OpTable, chosen: Mapping[int, ENode]) -> Block:
    """A block of the whole e-graph; ops that are not e-nodes stand at its end, in their order.

    Args:
        chosen: the e-node that was extracted, of each class that was needed.
    """
    return _Printer(encoded, table, chosen).run()


@dataclass
class _Printer:
    """Writes one block.

    Attributes:
        placeholders: the value of a class until its op is written.
        members: the e-nodes of each class.
        ops: by the id of an e-node, without leaves and projections.
        leaves: values of classes that are leaves.
    """

    encoded: Encoded
    table: OpTable
    chosen: Mapping[int, ENode]
    members: dict[int, list[ENode]] = field(default_factory=dict[int, "list[ENode]"])
    placeholders: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    ops: dict[int, Operation] = field(default_factory=dict[int, Operation])
    leaves: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])

    def run(self) -> Block:
        encoded = self.encoded
        block = Block(arg_types=[a.type for a in encoded.block.args])
        for old, new in zip(encoded.block.args, block.args, strict=True):
            new.name_hint = old.name_hint
            self.leaves[encoded.classes[old]] = new
        anchors = [self._anchor(anchor) for anchor in encoded.anchors]
        self.members = encoded.graph.classes()
        for node in encoded.graph.nodes:
            if node.head.op not in (LEAF, PROJECT):
                self.ops[id(node)] = self._op(node)
        for klass, nodes in self.members.items():
            block.add_ops(self.ops[id(n)] for n in nodes if id(n) in self.ops)
            if len(encoded.graph.types[klass]) == 1:
                block.add_op(self._class(klass, nodes))
        block.add_ops(anchors)
        return block

    def _placeholder(self, klass: int) -> SSAValue:
        if klass not in self.placeholders:
            [self.placeholders[klass]] = placeholders(self.encoded.graph.types[klass][:1])
        return self.placeholders[klass]

    def _anchor(self, anchor: Operation) -> Operation:
        """A copy that reads classes."""
        classes = self.encoded.classes
        inside = {v for op in anchor.walk() for v in op.operands if v in classes}
        copy = anchor.clone({v: self._placeholder(classes[v]) for v in inside})
        for old, new in zip(anchor.results, copy.results, strict=True):
            self.leaves[classes[old]] = new
        return copy

    def _op(self, node: ENode) -> Operation:
        op = self.table.make(node.head, [self._placeholder(c) for c in node.operands], None)
        assert op is not None, f"{node.head.op} was refused only now"
        if node.made_by:
            add_provenance(op, [node.made_by])
        return op

    def _class(self, klass: int, nodes: list[ENode]) -> Operation:
        members = [member for node in nodes for member in self._members(klass, node)]
        values = list(dict.fromkeys(value for _, value in members))
        best = self.chosen.get(klass)
        index = next((values.index(value) for node, value in members if node is best), 0)
        made = equivalence.ClassOp(*values, min_cost_index=IntAttr(index))
        named = self.encoded.graph.values.get(klass)
        if named is not None and values[0].name_hint is None:
            made.result.name_hint = named.name_hint
        self._placeholder(klass).replace_all_uses_with(made.result)
        return made

    def _members(self, klass: int, node: ENode) -> Iterator[tuple[ENode, SSAValue]]:
        """The results by which an e-node is a member of its class."""
        if node.head.op == LEAF:
            yield node, self.leaves[klass]
        elif node.head.op == PROJECT:
            index = node.head.attributes[0][1]
            assert isinstance(index, IntAttr)
            inner = node.operands[0]
            best = self.chosen.get(inner)
            for part in self.members[inner]:
                value = self.ops[id(part)].results[index.data]
                yield (node if part is best else part), value
        else:
            yield node, self.ops[id(node)].results[0]
