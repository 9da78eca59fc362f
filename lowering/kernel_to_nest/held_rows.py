"""Short rows that are read at shifted or repeated places: these stay in registers.

A load of what several stores have just written waits for them. Rows written out vector by vector
need no stores: what a vector reads of a row is a shuffle of the row's vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.ir import SSAValue

from ...dialects.index import Index
from ..kernel_to_cpu.nests.nest import NestOperand, NestPlan, ScopePlan
from .point_sums import UNROLLED

# Vectors that all rows of a point may have, and reads that are written out for them.
MOST_VECTORS = 128
MAX_READS = 768


def can_be_held(plan: NestPlan, lanes: int) -> bool:
    """Whether every scope makes a short row, and one is read elsewhere than where it is made."""
    made: dict[SSAValue, ScopePlan] = {scope.op.result: scope for scope in plan.scopes}
    vectors, reads = 0, 0
    for scope in plan.scopes:
        taps = math.prod(plan.extents[k] for k in scope.sums)
        if len(scope.own) != 1 or taps > UNROLLED:
            return False
        count = -(-plan.extents[scope.own[0]] // lanes)
        vectors, reads = vectors + count, reads + count * taps * len(scope.reads)
        if not all(_is_along(operand, scope, made) for operand in scope.reads):
            return False
    shifted = any(
        operand.source in made and _index(operand, made) != Index.iterator(scope.own[0])
        for scope in plan.scopes
        for operand in scope.reads
    )
    return shifted and vectors <= MOST_VECTORS and reads <= MAX_READS


def _index(operand: NestOperand, made: Mapping[SSAValue, ScopePlan]) -> Index:
    """What a read of a row says of the row's own dim."""
    own = made[operand.source].own[0]
    dim = next(d for d, e in enumerate(made[operand.source].here) if own in e.iterators)
    return operand.index[dim]


def _is_along(operand: NestOperand, scope: ScopePlan, made: Mapping[SSAValue, ScopePlan]) -> bool:
    """Whether a read of a row depends on known numbers only: its place in its own row, and taps."""
    if operand.source not in made:
        return True
    return _index(operand, made).iterators <= {*scope.own, *scope.sums}
