"""fold-constants: replace values that depend on weights alone by new weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, i32
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint

from ..dialects.arithmetic import Arithmetic
from ..dialects.context import weights_of
from ..dialects.dims_attr import DimsAttr
from ..dialects.errors import UserError
from ..dialects.floats import ROUNDING, Floats
from ..dialects.graph import ConstantOp, WeightOp
from ..dialects.graph.elementwise import CastOp
from ..dialects.graph.shaping import BroadcastOp
from ..dialects.program import (
    EXPRESSION,
    add_provenance,
    expression_of,
    main_of,
    return_of,
    where,
)
from ..dialects.reference import run_block
from ..dialects.types import (
    Array,
    element_count,
    element_of,
    is_byte,
    is_float,
    tensor_type,
    to_numpy,
)
from ..dialects.weights import Weights
from ..dialects.weights_only import is_source, weights_only

RULE = "fold-constants"
# Results of constants alone stay in the text up to this many elements.
INLINE_ELEMENTS = 64


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace each value that depends on weights alone by a new weight.

    The value is the reference's, each op rounded to its own type as at run time
    (dialects/arithmetic.py). It is computed when the weight is first read. Its expression is kept
    as the attribute `isoform.expression`, over the original program's weights: earlier folds are
    expanded. A broadcast before its user stays: it is an index, and folding it would only enlarge
    the weight. So does a cast of bytes to wider integers: products of bytes read the bytes.

    Before:

        %w = graph.weight @w : tensor<2x3xf32>
        %t = graph.transpose %w {perm = [1, 0]} : tensor<3x2xf32>
        %y = graph.matmul %x, %t : tensor<4x2xf32>

    After:

        %t = graph.weight @folded.3f1c9a5d20b1 {isoform.expression = "...", ...} : tensor<3x2xf32>
        %y = graph.matmul %x, %t : tensor<4x2xf32>
    """

    name = "fold-constants"
    floats: ClassVar[Floats] = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold the largest such values, then drop the ops that only they used."""
        block = main_of(op).body.block
        known = weights_only(op for op in block.ops if not op.name.startswith("kernel."))
        known = _sized(known, block)
        order = {op: k for k, op in enumerate(block.ops)}
        for root in _roots(block, known):
            _fold(root, order, ctx)
        for old in reversed(list(block.ops)):
            unused = all(result.first_use is None for result in old.results)
            if unused and old.results and all(result in known for result in old.results):
                old.detach()
                old.erase()


def _sized(known: set[SSAValue], block: Block) -> set[SSAValue]:
    """Those of the values that no symbolic dim decides."""
    found = set[SSAValue]()
    for op in block.ops:
        symbolic = any(isinstance(a, DimsAttr) for a in op.properties.values())
        if symbolic or not all(v in found for v in op.operands):
            continue
        found |= {r for r in op.results if r in known and _is_static(r.type)}
    return found


def _is_static(type_: Attribute) -> bool:
    return not isinstance(type_, TensorType) or not isinstance(type_.encoding, DimsAttr)


def _roots(block: Block, known: set[SSAValue]) -> list[SSAValue]:
    """Computed values of `known` with an outside user, in order, before what enlarges them."""
    outside = (op for op in block.ops if not op.results or op.results[0] not in known)
    used = (_before_larger(v) for op in outside for v in op.operands if v in known)
    return [v for v in dict.fromkeys(used) if not is_source(v.owner)]


def _before_larger(value: SSAValue) -> SSAValue:
    """The value under broadcasts, and under a cast of bytes to wider integers."""
    while isinstance(value.owner, BroadcastOp | CastOp):
        if isinstance(value.owner, CastOp) and not _widens_bytes(value.owner):
            break
        value = value.owner.x
    return value


def _widens_bytes(op: CastOp) -> bool:
    return is_byte(element_of(op.x)) and element_of(op.result) == i32


def _fold(root: SSAValue, order: dict[Operation, int], ctx: Context) -> None:
    """Replace one value; the replacement takes its op's position in `order`."""
    owner = root.owner
    assert isinstance(owner, Operation)
    steps = slice_of(root, order)
    new = _replacement(root, steps, ctx)
    new.location = owner.location
    add_provenance(new, [RULE])
    rewriter = PatternRewriter(owner)
    rewriter.insert(new, InsertPoint.before(owner))
    order[new] = order[owner]
    new.results[0].name_hint = root.name_hint
    root.replace_all_uses_with(new.results[0])
    rewriter.has_done_action = True


def _replacement(root: SSAValue, steps: Sequence[Operation], ctx: Context) -> Operation:
    """A literal for a small value of literals alone, otherwise a weight."""
    type_ = tensor_type(root)
    body = _standalone(steps, root)
    text = expression_text(_standalone(steps, root, expand=True))
    named = [step for step in steps if isinstance(step, WeightOp)]
    if not named and element_count(type_) <= INLINE_ELEMENTS:
        literal = ConstantOp(evaluate(body, Weights()), type_.element_type)
        if is_float(type_.element_type):  # integers and booleans are exact
            literal.attributes[EXPRESSION] = StringAttr(text)
        return literal
    weights = weights_of(ctx)
    for step in named:
        if step.key not in weights:
            raise UserError(f"weight '{step.key}' is not at hand", where=where(step))
    name = f"folded.{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if name not in weights:
        keys = [step.key for step in named]
        weights.add_made(name, lambda: evaluate(body, weights), text, keys)
    new = WeightOp(name, type_)
    new.attributes[EXPRESSION] = StringAttr(text)
    return new


def slice_of(root: SSAValue, order: Mapping[Operation, int]) -> list[Operation]:
    """The ops that a value depends on, in the given order."""
    seen: set[Operation] = set()
    stack = [root]
    while stack:
        owner = stack.pop().owner
        if isinstance(owner, Operation) and owner not in seen:
            seen.add(owner)
            stack.extend(owner.operands)
    return sorted(seen, key=lambda op: order[op])


def _standalone(steps: Sequence[Operation], root: SSAValue, expand: bool = False) -> Block:
    """A copy of the ops without names and notes, returning the value.

    With `expand`, earlier folded weights are replaced by their expressions.
    """
    mapper: dict[SSAValue, SSAValue] = {}
    block = Block()
    for step in steps:
        text = expression_of(step)
        if expand and text is not None:
            mapper[step.results[0]] = _inline(text, step.results[0], block)
            continue
        copy = step.clone(value_mapper=mapper, clone_name_hints=False)
        copy.attributes.clear()
        block.add_op(copy)
    block.add_op(ReturnOp(mapper[root]))
    return block


def _inline(text: str, folded: SSAValue, block: Block) -> SSAValue:
    """Append the ops of an expression to a block; return its value."""
    from .equivalence.translate import parse_expression  # which imports this file

    module = parse_expression(text, folded.type)
    (found,) = return_of(module).arguments
    for op in list(main_of(module).body.block.ops):
        op.detach()
        if isinstance(op, ReturnOp):
            op.erase()
        else:
            block.add_op(op)
    return found


def expression_text(block: Block) -> str:
    """The ops of an expression in one line, with numbered values; the last one is the result.

    If the last op has several results, a `func.return` says which one it is.
    """
    *steps, last = block.ops
    out = StringIO()
    printer = Printer(out)
    owner = last.operands[0].owner
    alone = bool(steps) and owner is steps[-1] and len(steps[-1].results) == 1
    for op in steps if alone else [*steps, last]:
        printer.print_op(op)
        out.write("; ")
    return out.getvalue().removesuffix("; ")


def evaluate(block: Block, weights: Weights) -> Array:
    """The value that a block returns, with each op computed in its own type."""
    (value,) = run_block(block.ops, {}, weights, Arithmetic.COMPUTED)
    last = block.last_op
    assert last is not None
    dtype = to_numpy(tensor_type(last.operands[0]).element_type)
    return np.asarray(value, order="C").astype(dtype)  # exact: it is rounded already
