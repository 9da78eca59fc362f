"""A dialect from outside: ops with scopes, with a numpy meaning only, with two results."""

from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from isoform.dialects.graph.base import GraphOp
from isoform.dialects.index import iterators


@irdl_op_definition
class AxpyOp(GraphOp):
    """alpha * x + y."""

    name = "mine.axpy"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    alpha = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"alpha": 2.0}

    def infer(self):
        if self.operand_type(0) != self.operand_type(1):
            raise self.fail("operands must agree", found=self.operand_type(1))
        return self.operand_type(0)

    def as_scopes(self, build, x, y):
        here = iterators(len(x.shape))
        return build.scope(self.type, x[here] * self.value("alpha") + y[here])


@irdl_op_definition
class BothOp(GraphOp):
    """x + y, and 2 x: two results, each a scope."""

    name = "mine.both"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    total = result_def(TensorType)
    twice = result_def(TensorType)

    def infer(self):
        return [self.operand_type(0), self.operand_type(0)]

    def as_scopes(self, build, x, y):
        here = iterators(len(x.shape))
        types = [r.type for r in self.results]
        return [build.scope(types[0], x[here] + y[here]), build.scope(types[1], x[here] * 2.0)]


@irdl_op_definition
class SortRowsOp(GraphOp):
    """Sort each row: no tensor expression, a numpy meaning."""

    name = "mine.sort_rows"
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def infer(self):
        return self.operand_type(0)

    def reference(self, x):
        return [np.sort(x, axis=-1)]


@irdl_op_definition
class MinMaxOp(GraphOp):
    """The least and the greatest of each column: two results, a numpy meaning."""

    name = "mine.min_max"
    x = operand_def(TensorType)
    low = result_def(TensorType)
    high = result_def(TensorType)

    def infer(self):
        x = self.operand_type(0)
        kept = TensorType(x.element_type, x.get_shape()[1:])
        return [kept, kept]

    def reference(self, x):
        return [x.min(axis=0), x.max(axis=0)]


DIALECTS = [Dialect("mine", [AxpyOp, BothOp, SortRowsOp, MinMaxOp])]
