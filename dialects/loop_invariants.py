"""Move out of a loop's body what every iteration computes from the same values.

Only ops that cannot fail are moved, as the loop may have no iteration. What moves data alone stays:
its readers do that while they read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from .builder import GraphBuilder
from .graph import GraphOp, shaping
from .weights_only import is_source


def hoisted(
    block: Block, captured: Mapping[SSAValue, SSAValue], build: GraphBuilder
) -> dict[SSAValue, SSAValue]:
    """The values of a body that are the same in all iterations, each computed outside.

    Args:
        captured: the arguments that are so, each with its outside value.
        build: where the copies are added.
    """
    fixed = _fixed(block, captured)
    moving = [op for op, works in fixed.items() if works and _is_read_by_others(op, fixed)]
    outside: dict[SSAValue, SSAValue] = dict(captured)
    for op in _needed(moving, fixed):
        copy = op.clone(outside)
        build.block.add_op(copy)
        outside.update(zip(op.results, copy.results, strict=True))
    return {v: outside[v] for op in moving for v in op.results}


def _fixed(block: Block, captured: Mapping[SSAValue, SSAValue]) -> dict[Operation, bool]:
    """The ops whose results no iteration changes, in order; whether a captured value is computed
    with, not only moved."""
    found: dict[Operation, bool] = {}
    values: dict[SSAValue, bool] = dict.fromkeys(captured, False)
    outer = set(captured)
    for op in block.ops:
        fits = is_source(op) or (isinstance(op, GraphOp) and type(op).has_scopes())
        if not fits or not all(v in values for v in op.operands):
            continue
        dependent = any(v in outer for v in op.operands)
        moves = type(op).__module__ == shaping.__name__
        works = dependent and (not moves or any(values[v] for v in op.operands))
        found[op] = works
        values |= dict.fromkeys(op.results, works)
        if dependent:
            outer.update(op.results)
    return found


def _is_read_by_others(op: Operation, fixed: Mapping[Operation, bool]) -> bool:
    return any(use.operation not in fixed for value in op.results for use in value.uses)


def _needed(moving: Sequence[Operation], fixed: Mapping[Operation, bool]) -> list[Operation]:
    """The ops and what they are computed from, in the body's order."""
    wanted = set(moving)
    for op in reversed(list(fixed)):
        if op in wanted:
            wanted |= {v.owner for v in op.operands if isinstance(v.owner, Operation)}
    return [op for op in fixed if op in wanted]
