"""Layouts of matrix products, searched jointly with substitutions: one form, at no cost.

A library's product reads either operand row by row or column by column; which, is the op's
`transpose_a` and `transpose_b`. `unfold_transposes` writes these flags as transposes, so that a
rule about `matmul` and `transpose` sees every product; the search charges a transpose of the last
two dims only where something else than a product reads it (graph_form.py); `fold_transposes` makes
flags of them again.

Before:

    %y = graph.matmul %x, %w {transpose_b = true} : tensor<4x8xf32>

Unfolded:

    %wt = graph.transpose %w {perm = [1, 0]} : tensor<16x8xf32>
    %y = graph.matmul %x, %wt : tensor<4x8xf32>
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Block, SSAValue

from ...dialects.graph.contraction import MatmulOp
from ...dialects.graph.shaping import TransposeOp
from ...dialects.types import shape_of
from ..rules.graph_form import FLAGS, swap
from ..rules.rule import Node, Rule, Term, subterms
from ..rules.terms import mapped

RANKS = (2, 3, 4)
"""Of the products that rules with flags are unfolded for."""


def swapped(value: SSAValue) -> SSAValue | None:
    """The value whose last two dims this value transposes; None if it is not such a transpose."""
    op = value.owner
    if not isinstance(op, TransposeOp):
        return None
    rank = len(shape_of(op.x))
    return op.x if rank >= 2 and tuple(op.ints("perm")) == swap(rank) else None


def unfold_transposes(block: Block) -> None:
    """Write the flags of a block's products as transpose ops."""
    made = dict[SSAValue, SSAValue]()
    for op in list(block.ops):
        if not isinstance(op, MatmulOp):
            continue
        for k, flag in enumerate(FLAGS):
            if not op.value(flag):
                continue
            operand = op.operands[k]
            op.operands[k] = swapped(operand) or _transposed(operand, op, made)
            op.properties[flag] = BoolAttr.from_bool(False)
    _drop_unused(block)


def fold_transposes(block: Block) -> None:
    """Fold transposes of the last two dims into the products of a block."""
    for op in list(block.ops):
        if not isinstance(op, MatmulOp):
            continue
        for k, flag in enumerate(FLAGS):
            while (inner := swapped(op.operands[k])) is not None:
                op.operands[k] = inner
                op.properties[flag] = BoolAttr.from_bool(not op.value(flag))
    _drop_unused(block)


def _transposed(value: SSAValue, op: MatmulOp, made: dict[SSAValue, SSAValue]) -> SSAValue:
    """The transpose of a value, created once, before its first product."""
    if value not in made:
        transpose = TransposeOp(value, perm=swap(len(shape_of(value))))
        transpose.location = op.location
        block = op.parent_block()
        assert block is not None
        block.insert_op_before(transpose, op)
        made[value] = transpose.results[0]
    return made[value]


def _drop_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, TransposeOp) and not op.results[0].uses.get_length():
            op.detach()
            op.drop_all_references()


# --- rules --------------------------------------------------------------------------------------


def with_unfolded_transposes(rule: Rule) -> tuple[Rule, ...]:
    """The rule for unfolded programs: one for each rank, if its left side has flags."""
    nodes = [term for term in subterms(rule.left) if isinstance(term, Node)]
    if not any(node.attribute(flag) is True for node in nodes for flag in FLAGS):
        return (rule,)
    perms = [node.attribute("perm") for node in nodes]
    ranks = {len(perm) for perm in perms if isinstance(perm, tuple)} or set(RANKS)
    return tuple(_unfolded(rule, rank) for rank in sorted(ranks))


def _unfolded(rule: Rule, rank: int) -> Rule:
    def node(old: Node, operands: tuple[Term, ...]) -> Node:
        flags = [old.attribute(flag) is True for flag in FLAGS] if old.op == "matmul" else []
        transposed = [_transposed_term(o, rank) for o in operands[: len(flags)]]
        read = [t if flag else o for t, o, flag in zip(transposed, operands, flags, strict=False)]
        kept = tuple((n, v) for n, v in old.attributes if not (n in FLAGS and v is True))
        return Node(old.op, (*read, *operands[len(flags) :]), kept)

    left, right = mapped(rule.left, on_top=node), mapped(rule.right, on_top=node)
    return replace(rule, left=left, right=right)


def _transposed_term(term: Term, rank: int) -> Term:
    attributes = (("perm", swap(rank)),)
    if isinstance(term, Node) and (term.op, term.attributes) == ("transpose", attributes):
        return term.operands[0]
    return Node("transpose", (term,), attributes)
