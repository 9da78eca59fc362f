"""A pass in a file: isoform-opt model.mlir --plugin custom_pass.py -p relu-once"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from isoform.dialects.graph.elementwise import ReluOp


class ReluOfRelu(RewritePattern):
    """relu(relu(x)) = relu(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReluOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.x.owner, ReluOp):
            rewriter.replace(op, [], [op.x])


@dataclass(frozen=True)
class ReluOnce(ModulePass):
    """Drop a relu of a relu.

    Before:
        %y = graph.relu %x : tensor<4xf32>
        %z = graph.relu %y : tensor<4xf32>
    After, with %y in the place of %z:
        %y = graph.relu %x : tensor<4xf32>
    """

    name = "relu-once"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite until nothing changes."""
        PatternRewriteWalker(ReluOfRelu()).rewrite_module(op)


PASSES = [ReluOnce]
