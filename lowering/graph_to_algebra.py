"""graph-to-algebra: replace every graph op by the scopes that define it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.algebra import ExternOp
from ..dialects.floats import BITS, Floats
from ..dialects.graph import GraphOp, OpaqueOp
from ..dialects.program import main_of
from ..dialects.types import tensor_type


@dataclass(frozen=True)
class GraphToAlgebra(ModulePass):
    """Replace every graph op by the scopes that define it.

    An op defines its own meaning (`as_scopes`); this pass only loops. Ops that are not tensor
    expressions become `algebra.extern`. Weights and constants stay: they are data, not operations.

    Before:

        %y = graph.relu %x : tensor<4xf32>

    After:

        %y = algebra.scope (i0: 4) max(%x[i0], 0.0) : tensor<4xf32>
    """

    name = "graph-to-algebra"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph_op in list(main_of(op).body.block.ops):
            if isinstance(graph_op, GraphOp | OpaqueOp):
                lower(graph_op)


def lower(op: GraphOp | OpaqueOp) -> None:
    """Replace one op, keeping names, location and provenance."""
    if isinstance(op, GraphOp) and type(op).has_scopes():
        steps, values = op.scopes()
    else:
        extern = _extern(op)
        steps, values = [extern], list(extern.outputs)
    for new in steps:
        new.location = op.location
        new.attributes |= op.attributes
    for old, new in zip(op.results, values, strict=True):
        if old.name_hint is not None and new.owner in steps:
            new.name_hint = old.name_hint
    Rewriter.replace_op(op, steps, values)
    for step in steps:  # the op's name belongs to its result, not to a step before it
        for value in step.results:
            value.name_hint = value.name_hint if value in values else None


def _extern(op: Operation) -> ExternOp:
    types = [tensor_type(result) for result in op.results]
    config = DictionaryAttr(dict(op.properties))
    return ExternOp(op.name, list(op.operands), config, types)
