"""infer-shapes: recompute the types of graph values from the program's inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from ..dialects.errors import UserError
from ..dialects.floats import BITS, Floats
from ..dialects.graph import GraphOp
from ..dialects.program import main_of, return_of, where
from ..dialects.types import Tensor


@dataclass(frozen=True)
class InferShapes(ModulePass):
    """Recompute the result types of graph ops from their operands, and the function's type.

    For IR with stale types, as after changing an input's shape by hand: `isoform-opt
    --disable-verify` reads it. Shapes in properties (reshape, broadcast) are not changed; where
    they no longer fit, the error names the op.

    Before:

        func.func @main(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
          %y = graph.relu %x : tensor<1x3xf32>
          func.return %y : tensor<1x3xf32>
        }

    After:

        func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
          %y = graph.relu %x : tensor<2x3xf32>
          func.return %y : tensor<2x3xf32>
        }
    """

    name = "infer-shapes"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Infer op by op, in order."""
        main = main_of(op)
        for graph_op in main.body.block.ops:
            if isinstance(graph_op, GraphOp):
                infer_op(graph_op)
        inputs = [argument.type for argument in main.body.block.args]
        outputs = [value.type for value in return_of(op).arguments]
        main.function_type = FunctionType.from_lists(inputs, outputs)


def infer_op(op: GraphOp) -> None:
    """Give one op's results their inferred types.

    Raises:
        UserError: its operands do not fit it.
    """
    try:
        found = op.infer()
    except UserError as error:
        error.where = where(op)
        raise
    types = (found,) if isinstance(found, TensorType) else tuple(found)
    for result, type_ in zip(op.results, types, strict=True):
        _retype(op, result, type_)


def _retype(op: GraphOp, value: SSAValue, type_: Tensor) -> None:
    if value.type != type_:
        PatternRewriter(op).replace_value_with_new_type(value, type_)
