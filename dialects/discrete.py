"""Constants past a jump: computed as the machine does, whatever the arithmetic.

A cast to an integer, a floor or a comparison turns the last bit of its operand into a whole step.
Where that operand depends on weights alone, what the program computes is known, and it is what the
operand's own dtype makes of it: log(16) / log(16) * 8 may be 7.9999995, and its bucket 7. Exact
arithmetic would give the bucket of another program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation, SSAValue

from .arithmetic import Arithmetic
from .graph import GraphOp, WeightOp
from .scope_builder import ScopeBuilder, Source
from .types import Array, element_of, is_float
from .weights_only import depends_on_weights_only, is_source

_JUMPS = (
    arith.CmpfOp
    | arith.FPToSIOp
    | math_dialect.FloorOp
    | math_dialect.CeilOp
    | math_dialect.TruncOp
    | math_dialect.RoundEvenOp
)


def discrete_constants(
    ops: Iterable[Operation], weights: Mapping[str, Array]
) -> dict[SSAValue, Array]:
    """The values of a block that are constants past a jump, as computed, in reference dtypes.

    Those that depend on weights without data are left out.
    """
    known: set[SSAValue] = set()
    found: dict[SSAValue, Array] = {}
    values = _Computed(weights)
    for op in ops:
        if isinstance(op, WeightOp) and op.key not in weights:
            continue
        if not is_source(op) and not depends_on_weights_only(op, known):
            continue
        known.update(op.results)
        if not is_source(op) and jumps(op):
            found.update((result, values[result]) for result in op.results)
    return found


def jumps(op: Operation) -> bool:
    """Whether an op's results are no continuous functions of its float operands."""
    floats = any(is_float(element_of(v)) for v in op.operands)
    if not floats:
        return False
    if not all(is_float(element_of(v)) for v in op.results):
        return True
    if not isinstance(op, GraphOp) or not type(op).has_scopes():
        return any(isinstance(inner, _JUMPS) for inner in op.walk())
    build = ScopeBuilder()
    op.as_scopes(build, *(Source(v) for v in op.operands))
    found = any(isinstance(inner, _JUMPS) for step in build.ops for inner in step.walk())
    for step in reversed(build.ops):
        step.drop_all_references()
    return found


class _Computed(dict[SSAValue, Array]):
    """Values that depend on weights alone, as computed, when they are asked for."""

    def __init__(self, weights: Mapping[str, Array]):
        super().__init__()
        self._weights = weights

    def __missing__(self, value: SSAValue) -> Array:
        from .reference import evaluate_op  # which itself asks for these values

        pending: list[SSAValue] = [value]
        while pending:
            op = pending[-1].owner
            assert isinstance(op, Operation)
            missing = [v for v in op.operands if v not in self]
            if missing:
                pending += missing
                continue
            operands: Sequence[Array] = [self[v] for v in op.operands]
            made = evaluate_op(op, operands, self._weights, Arithmetic.COMPUTED)
            self.update(zip(op.results, made, strict=True))
            pending.pop()
        return self[value]


__all__ = ["discrete_constants", "jumps"]
