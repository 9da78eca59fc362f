"""Discrete constants: computed as the machine does, whatever the arithmetic.

A cast to an integer, a floor or a comparison turns the last bit of its operand into a whole step.
Where that operand depends on weights alone, the program's value is known: the one that the
operand's own dtype gives. log(16) / log(16) * 8 may be 7.9999995, and its bucket 7; exact
arithmetic would give the bucket of another program. Where both arithmetics agree up to rounding, as
in a select between two branches that meet, nothing jumped, and the exact value is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import ml_dtypes
import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import Attribute, Operation, SSAValue

from .arithmetic import Arithmetic
from .graph import GraphOp, WeightOp
from .graph.base import discard
from .op_reference import evaluate_op
from .types import Array, element_of, is_float, to_numpy
from .weights_only import depends_on_weights_only, is_source

_JUMPS = (
    arith.CmpfOp
    | arith.FPToSIOp
    | arith.FPToUIOp
    | math_dialect.FloorOp
    | math_dialect.CeilOp
    | math_dialect.TruncOp
    | math_dialect.RoundEvenOp
)

# Units in the last place of a tensor's largest value that earlier ops may have rounded away.
_ROUNDINGS = 64


def discrete_constants(
    ops: Iterable[Operation], weights: Mapping[str, Array]
) -> dict[SSAValue, Array]:
    """The values of a block that are discrete constants, as computed, in reference dtypes.

    Values that depend on weights without data are left out.
    """
    known: set[SSAValue] = set()
    found: dict[SSAValue, Array] = {}
    computed = WeightsOnlyValues(weights, Arithmetic.COMPUTED)
    exact = WeightsOnlyValues(weights, Arithmetic.EXACT)
    for op in ops:
        if isinstance(op, WeightOp) and op.key not in weights:
            continue
        if not is_source(op) and not depends_on_weights_only(op, known):
            continue
        known.update(op.results)
        if is_source(op) or not is_discontinuous(op):
            continue
        for result in op.results:
            if not _is_rounding(computed[result], exact[result], element_of(result)):
                found[result] = exact[result] = computed[result]
    return found


def _is_rounding(computed: Array, exact: Array, element: Attribute) -> bool:
    """Whether two values differ by rounding at most; integers and booleans must be equal."""
    if not is_float(element):
        return False
    with np.errstate(all="ignore"):
        size = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
        far = np.abs(computed - exact) > _ROUNDINGS * ml_dtypes.finfo(to_numpy(element)).eps * size
    return not far.any() and bool(np.array_equal(np.isfinite(computed), np.isfinite(exact)))


def is_discontinuous(op: Operation) -> bool:
    """Whether an op's results are not continuous functions of its float operands."""
    floats = any(is_float(element_of(v)) for v in op.operands)
    if not floats:
        return False
    if not all(is_float(element_of(v)) for v in op.results):
        return True
    if not isinstance(op, GraphOp) or not type(op).has_scopes():
        return any(isinstance(inner, _JUMPS) for inner in op.walk())
    steps, _ = op.scopes()
    found = any(isinstance(inner, _JUMPS) for step in steps for inner in step.walk())
    discard(steps)
    return found


class WeightsOnlyValues(dict[SSAValue, Array]):
    """Values that depend on weights alone, in one arithmetic, computed on demand."""

    def __init__(self, weights: Mapping[str, Array], arithmetic: Arithmetic):
        super().__init__()
        self._weights = weights
        self._arithmetic = arithmetic

    def __missing__(self, value: SSAValue) -> Array:
        pending: list[SSAValue] = [value]
        while pending:
            op = pending[-1].owner
            assert isinstance(op, Operation)
            missing = [v for v in op.operands if v not in self]
            if missing:
                pending += missing
                continue
            operands: Sequence[Array] = [self[v] for v in op.operands]
            made = evaluate_op(op, operands, self._weights, self._arithmetic)
            self.update(zip(op.results, made, strict=True))
            pending.pop()
        return self[value]


__all__ = ["WeightsOnlyValues", "discrete_constants", "is_discontinuous"]
