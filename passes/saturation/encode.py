"""From IR to the e-graph: every op of a block becomes one e-node.

An op that is more than operands and attributes (regions, effects) stays as it is: an anchor, whose
results are leaves and whose operands are roots. A concatenation of more than two shares a class
with its chain of binary ones, and a split into more than two its parts with a chain of splits:
patterns see the chain, extraction may take either. A product with a
transposed weight shares one with the product with the weight's transpose: merges match that form,
and transposing a weight costs nothing at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.graph.contraction import MatmulOp
from ...dialects.graph.shaping import SplitOp, TransposeOp
from ...dialects.types import placeholders
from ...dialects.weights_only import is_source
from ..rules.op_table import Head, OpTable, Types
from .egraph import LEAF, PROJECT, EGraph, ENode, projection

CHAINED = ("graph.concat",)
"""Variadic ops f with f(a, b, c) = f(f(a, b), c)."""


@dataclass
class Encoded:
    """A block as an e-graph, and how to get back."""

    block: Block
    graph: EGraph  # of the ops
    classes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])  # of the values
    anchors: list[Operation] = field(default_factory=list[Operation])  # ops that stay as they are
    _known: dict[tuple[Head, tuple[int, ...]], int] = field(
        default_factory=dict[tuple[Head, tuple[int, ...]], int]
    )

    def add(
        self,
        head: Head,
        operands: list[int],
        types: Types,
        level: int,
        *,
        weights: bool | None = None,
        origin: Operation | None = None,
    ) -> int:
        """The class of an e-node; makes both where they are new."""
        graph, key = self.graph, (head, tuple(operands))
        klass = self._known.setdefault(key, len(graph.types))
        if klass < len(graph.types):
            return klass
        if weights is None:
            weights = bool(operands) and all(graph.weights[c] for c in operands)
        graph.types.append(types)
        graph.weights.append(weights)
        graph.level.append(level)
        graph.nodes.append(ENode(head, key[1], klass, "", origin))
        return klass


def encode(block: Block, table: OpTable) -> Encoded:
    """The e-graph of a block."""
    table.learn(block.walk())
    encoded = Encoded(block, EGraph())
    for argument in block.args:
        _leaf(encoded, argument, 0)
    for op in block.ops:
        head = table.head(op)
        if head is None:
            _anchor(encoded, op)
        else:
            _op(encoded, op, head, table)
    return encoded


def is_program(node: ENode, origin: Operation, table: OpTable) -> bool:
    """Whether an e-node is the program's op itself, not a rule's nor another form."""
    whole = not node.made_by and len(origin.operands) == len(node.operands)
    return whole and (node.head.op == PROJECT or table.head(origin) == node.head)


def _leaf(encoded: Encoded, value: SSAValue, level: int) -> None:
    number = len(encoded.classes) + 1
    head = Head(LEAF, anchor=number)
    klass = encoded.add(head, [], (value.type,), level, weights=False)
    _name(encoded, value, klass)


def _name(encoded: Encoded, value: SSAValue, klass: int) -> None:
    encoded.classes[value] = klass
    encoded.graph.values.setdefault(klass, value)


def _anchor(encoded: Encoded, op: Operation) -> None:
    encoded.anchors.append(op)
    inside = [v for inner in op.walk() for v in inner.operands if v in encoded.classes]
    classes = [encoded.classes[v] for v in inside]
    encoded.graph.roots += classes
    level = 1 + max((encoded.graph.level[c] for c in classes), default=0)
    for result in op.results:
        _leaf(encoded, result, level)


def _op(encoded: Encoded, op: Operation, head: Head, table: OpTable) -> None:
    graph = encoded.graph
    operands = [encoded.classes[v] for v in op.operands]
    live = [graph.level[c] for c in operands if not graph.weights[c]]
    level = 1 + max(live, default=0)
    types = tuple(r.type for r in op.results)
    weights = True if is_source(op) or not operands else None
    klass = encoded.add(head, operands, types, level, weights=weights, origin=op)
    if len(op.results) == 1:
        _name(encoded, op.results[0], klass)
    else:
        for k, result in enumerate(op.results):
            part = encoded.add(projection(k), [klass], (result.type,), level, origin=op)
            _name(encoded, result, part)
    if op.name in CHAINED and len(operands) > 2:
        _chain(encoded, op, operands, table, level)
    if isinstance(op, SplitOp) and len(op.results) > 2:
        _split_chain(encoded, op, operands[0], table, level)
    if isinstance(op, MatmulOp):
        _untransposed(encoded, op, operands, table, level)


def _chain(
    encoded: Encoded, op: Operation, operands: list[int], table: OpTable, level: int
) -> None:
    """Make the op equal to its chain of binary ones."""
    graph, so_far = encoded.graph, operands[0]
    head = table.head(op)
    assert head is not None
    for operand in operands[1:]:
        types = (graph.types[so_far][0], graph.types[operand][0])
        sample = table.build(head, types)
        assert sample is not None, f"{op.name} is not a chain"
        found = tuple(r.type for r in sample.results)
        so_far = encoded.add(head, [so_far, operand], found, level, origin=op)
    graph.same.append((encoded.classes[op.results[0]], so_far))


def _split_chain(encoded: Encoded, op: SplitOp, whole: int, table: OpTable, level: int) -> None:
    """Make the parts of a split equal to those of a chain of binary ones, the last part first."""
    graph, axis, sizes = encoded.graph, op.value("axis"), list(op.ints("sizes"))
    while len(sizes) > 1:
        *first, last = sizes
        [value] = placeholders(graph.types[whole][:1])
        made: Any = SplitOp(value, axis=axis, sizes=[sum(first), last], results=2)
        head, types = table.head(made), tuple(r.type for r in made.results)
        assert head is not None
        klass = encoded.add(head, [whole], types, level, origin=op)
        whole, part = (
            encoded.add(projection(k), [klass], (type_,), level, origin=op)
            for k, type_ in enumerate(types)
        )
        graph.same.append((encoded.classes[op.results[len(first)]], part))
        sizes = first
    graph.same.append((encoded.classes[op.results[0]], whole))


def _untransposed(
    encoded: Encoded, op: MatmulOp, operands: list[int], table: OpTable, level: int
) -> None:
    """Make a product with a transposed weight equal to one with the weight's transpose."""
    graph, weight = encoded.graph, op.operands[1]
    is_matrix = isinstance(weight.type, TensorType) and len(weight.type.get_shape()) == 2
    if not op.value("transpose_b") or not is_matrix or not graph.weights[operands[1]]:
        return
    other, turnable = placeholders([op.operands[0].type, weight.type])
    turned = TransposeOp(turnable, perm=[1, 0])
    head = table.head(turned)
    plain = MatmulOp(other, turned.results[0], transpose_a=op.value("transpose_a"))
    product = table.head(plain)
    assert head is not None and product is not None
    types = tuple(r.type for r in turned.results)
    transposed = encoded.add(head, [operands[1]], types, level, origin=op)
    types = tuple(r.type for r in op.results)
    made = encoded.add(product, [operands[0], transposed], types, level, origin=op)
    graph.same.append((encoded.classes[op.results[0]], made))
