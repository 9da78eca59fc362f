"""Values that depend on weights and literals alone: they cost nothing at run time."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.graph import ConstantOp, OpaqueOp, WeightOp
from ...dialects.program import main_of


def constant_values(module: ModuleOp) -> set[SSAValue]:
    """Values of `@main` computed from weights, constants and ones only, at any level.

    Opaque nodes are left out: onnx.reference need not be deterministic (random ops).
    """
    found: set[SSAValue] = set()
    for op in main_of(module).body.block.ops:
        source = isinstance(op, WeightOp | ConstantOp)
        derived = not isinstance(op, OpaqueOp) and all(v in found for v in op.operands)
        opaque = "callee" in op.properties and "graph.opaque" in str(op.properties["callee"])
        if source or (derived and not opaque):
            found.update(op.results)
    return found
