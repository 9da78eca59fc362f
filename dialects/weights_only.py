"""Values that depend on weights and constants alone: they cost nothing when the program runs.

Passes never compute weight data; such values are evaluated once, at compile time.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from .algebra import ExternOp, OnesOp, ScopeOp
from .graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from .graph.data import IotaOp

SOURCES = (WeightOp, ConstantOp, OnesOp)


def is_source(op: object) -> bool:
    """Whether an op only names data."""
    return isinstance(op, SOURCES)


def is_deterministic(op: Operation) -> bool:
    """Whether equal operands always give equal results; an opaque node may be random."""
    if isinstance(op, ExternOp):
        return op.callee.data != OpaqueOp.name
    return isinstance(op, GraphOp | ScopeOp) or (
        op.name.startswith("kernel.") and op.name != "kernel.call"
    )


def weights_only(ops: Iterable[Operation]) -> set[SSAValue]:
    """The values of a block that depend on weights and constants alone."""
    known: set[SSAValue] = set()
    for op in ops:
        if is_source(op) or depends_on_weights_only(op, known):
            known.update(op.results)
    return known


def depends_on_weights_only(op: Operation, known: set[SSAValue]) -> bool:
    """Whether all operands of a deterministic op are in `known`."""
    given = bool(op.operands) or _names_no_data(op)
    return is_deterministic(op) and given and all(v in known for v in op.operands)


def _names_no_data(op: Operation) -> bool:
    """Whether it makes numbers of its properties alone."""
    return isinstance(op, IotaOp) or (isinstance(op, ExternOp) and op.callee.data == IotaOp.name)
