"""Replace the ops of a block by those of the e-nodes that extraction chose.

Chosen ops of the program are cloned with their attributes; ops that rules made get the rule's name
as provenance and the location of the op they replace. Chains of binary
concatenations whose links have one user become one op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.graph.shaping import SplitOp
from ...dialects.program import add_provenance
from ..rules.flatten_splits import flatten_splits
from ..rules.op_table import OpTable
from .egraph import LEAF, PROJECT, ENode
from .encode import CHAINED, Encoded
from .problem import Choice, Problem


@dataclass
class Decoder:
    """Writes the chosen program into the block.

    Attributes:
        made: the new ops that rules made, with their e-nodes.
    """

    encoded: Encoded
    table: OpTable
    problem: Problem
    choice: Choice  # an e-node of each class
    values: dict[int, tuple[SSAValue, ...]] = field(default_factory=dict[int, tuple[SSAValue, ...]])
    made: list[tuple[Operation, ENode]] = field(default_factory=list[tuple[Operation, ENode]])
    _members: dict[int, list[ENode]] = field(default_factory=dict[int, list[ENode]])
    _origins: dict[int, Operation] = field(default_factory=dict[int, Operation])
    _chains: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def run(self) -> bool:
        """Rewrite the block; False, with no change, where the choice has no valid order."""
        order = self.problem.order(self.choice)
        if order is None or not self._fits(order):
            return False
        self._members = self.encoded.graph.classes()
        self._flatten(order)
        self._stand_in(order)
        block = self.encoded.block
        anchors = set(self.encoded.anchors)
        old = [op for op in block.ops if op not in anchors]
        for argument in block.args:
            self.values[self.encoded.classes[argument]] = (argument,)
        for anchor in self.encoded.anchors:
            for k, value in enumerate(anchor.operands):
                if value in self.encoded.classes:
                    klass = self.encoded.classes[value]
                    anchor.operands[k] = self._value(klass, block, anchor)
            self._inside(anchor, block)
            for result in anchor.results:
                self.values[self.encoded.classes[result]] = (result,)
        for op in reversed(old):
            op.detach()
            op.drop_all_references()
        flatten_splits(block)
        return True

    def _inside(self, anchor: Operation, block: Block) -> None:
        """Operands of ops in an anchor's regions that come from the block."""
        for inner in anchor.walk():
            for k, value in enumerate(inner.operands):
                if inner is not anchor and value in self.encoded.classes:
                    klass = self.encoded.classes[value]
                    inner.operands[k] = self._value(klass, block, anchor)

    def _fits(self, order: Sequence[int]) -> bool:
        """Whether all leaves that an anchor's operands need come before that anchor."""
        known = set[int]()
        ready = {self.encoded.classes[a] for a in self.encoded.block.args}
        leaves = {c for c in order if self._node(c).head.op == LEAF}

        def complete(klass: int) -> bool:
            stack = [klass]
            while stack:
                c = stack.pop()
                if c in known or c in ready:
                    continue
                if c in leaves:
                    return False
                known.add(c)
                stack += self.problem.operands[c][self.choice[c]]
            return True

        for anchor in self.encoded.anchors:
            inside = [v for op in anchor.walk() for v in op.operands if v in self.encoded.classes]
            if not all(complete(self.encoded.classes[v]) for v in inside):
                return False
            ready |= {self.encoded.classes[r] for r in anchor.results}
        return True

    def _node(self, klass: int) -> ENode:
        return self.problem.nodes[klass][self.choice[klass]]

    def _operands(self, klass: int) -> tuple[int, ...]:
        """Classes of the operands, repeated ones as often as they stand there."""
        if klass in self._chains:
            return self._chains[klass]
        operands = self._node(klass).operands
        if self._part(klass) is not None:
            return self.problem.operands[klass][self.choice[klass]]
        return operands

    def _part(self, klass: int) -> int | None:
        """Which part of another split a chosen split divides further."""
        node, taken = self._node(klass), self.problem.operands[klass][self.choice[klass]]
        if node.head.op != SplitOp.name:
            return None
        operand = node.operands[0]
        if operand in taken:
            return None
        parts = self._members.get(operand, ())
        found = (n for n in parts if n.head.op == PROJECT and n.operands[0] in taken)
        index = next(found).head.attributes[0][1]
        assert isinstance(index, IntAttr)
        return index.data

    def _flatten(self, order: Sequence[int]) -> None:
        """Join chains: a link with no other reader becomes part of the chain."""
        users = dict.fromkeys(order, 0)
        for klass in order:
            for c in self._operands(klass):
                users[c] += 1
        for root in self.encoded.graph.roots:
            users[root] += 1
        for klass in order:
            head = self._node(klass).head
            if head.op not in CHAINED:
                continue
            flat = list[int]()
            for c in self._operands(klass):
                link = self._node(c).head == head and users[c] == 1
                flat += self._operands(c) if link else (c,)
            self._chains[klass] = tuple(flat)

    def _stand_in(self, order: Sequence[int]) -> None:
        """The op that gives each class its location: its own in the program, or its reader's."""
        for klass in reversed(order):
            ops = (n.origin for n in self._members[klass] if n.origin is not None)
            origin = next(ops, None) or self._origins.get(klass)
            if origin is None:
                continue
            self._origins[klass] = origin
            for operand in self._operands(klass):
                self._origins.setdefault(operand, origin)

    def _value(self, klass: int, block: Block, before: Operation) -> SSAValue:
        """The value of a class, its ops written before an anchor."""
        stack = [klass]
        while stack:
            here = stack[-1]
            if here in self.values:
                stack.pop()
                continue
            waiting = [c for c in self._operands(here) if c not in self.values]
            if waiting:
                stack += reversed(waiting)
            else:
                self.values[here] = self._write(here, block, before)
                stack.pop()
        return self.values[klass][0]

    def _write(self, klass: int, block: Block, before: Operation) -> tuple[SSAValue, ...]:
        node, operands = self._node(klass), self._operands(klass)
        if node.head.op == PROJECT:
            index = node.head.attributes[0][1]
            assert isinstance(index, IntAttr)
            value = self.values[operands[0]][index.data]
            self._hint(klass, value)
            return (value,)
        op = self._op(klass, node, [self.values[c][self._part(klass) or 0] for c in operands])
        block.insert_op_before(op, before)
        if len(op.results) == 1:
            self._hint(klass, op.results[0])
        return tuple(op.results)

    def _op(self, klass: int, node: ENode, operands: list[SSAValue]) -> Operation:
        origin = node.origin or self._origins.get(klass)
        if origin is not None and self._is_program(origin, node, operands):
            copy = origin.clone()
            copy.operands = operands
            copy.location = origin.location
            return copy
        made = self.table.make(node.head, operands, None)
        assert made is not None, f"{node.head.op} was refused only now"
        if origin is not None:
            made.location = origin.location
        if node.made_by:
            add_provenance(made, [node.made_by])
            self.made.append((made, node))
        return made

    def _is_program(self, origin: Operation, node: ENode, operands: list[SSAValue]) -> bool:
        """Whether an e-node is the program's op itself, not a rule's nor a link of its chain."""
        whole = not node.made_by and len(origin.operands) == len(operands)
        return whole and self.table.head(origin) == node.head

    def _hint(self, klass: int, value: SSAValue) -> None:
        """The name the class had in the program."""
        named = self.encoded.graph.values.get(klass)
        if named is not None and named.name_hint and value.name_hint is None:
            value.name_hint = named.name_hint
