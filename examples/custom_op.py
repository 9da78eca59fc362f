"""An op of one's own, as good as any of ours: isoform run m.mlir --plugin custom_op.py

The op says what type it gives and what it computes, as scopes: expressions over indices. That is
its meaning, which `verify` and the searches use, and its lowering, from which kernels are made.
"""

from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from isoform.dialects.graph.base import GraphOp
from isoform.dialects.index import iterators
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import Tensor


@irdl_op_definition
class LerpOp(GraphOp):
    """x + weight * (y - x): between x and y, elementwise."""

    name = "demo.lerp"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    weight = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"weight": 0.5}

    def infer(self) -> Tensor:
        """The type of both operands."""
        if self.operand_type(0) != self.operand_type(1):
            raise self.fail("operands must agree", found=self.operand_type(1))
        return self.operand_type(0)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        """One scope over all positions."""
        x, y = operands
        here = iterators(len(x.shape))
        return build.scope(self.type, x[here] + (y[here] - x[here]) * self.value("weight"))


DIALECTS = [Dialect("demo", [LerpOp])]
