"""A dialect and its lowering: isoform-opt m.mlir --plugin custom_dialect.py -p demo-to-graph"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.traits import Pure

from isoform.dialects.graph.elementwise import MulOp


@irdl_op_definition
class SquareOp(IRDLOperation):
    """x * x, elementwise."""

    name = "demo.square"
    T: ClassVar = VarConstraint("T", base(TensorType))
    x = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x)"


class SquareIsProduct(RewritePattern):
    """square(x) = x * x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SquareOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, MulOp(op.x, op.x))


@dataclass(frozen=True)
class DemoToGraph(ModulePass):
    """Lower the demo dialect to the graph dialect.

    Before: %y = demo.square %x : tensor<4xf32>
    After:  %y = graph.mul %x, %x : tensor<4xf32>
    """

    name = "demo-to-graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every op of the dialect."""
        PatternRewriteWalker(SquareIsProduct()).rewrite_module(op)


DIALECTS = [Dialect("demo", [SquareOp])]
PASSES = [DemoToGraph]
