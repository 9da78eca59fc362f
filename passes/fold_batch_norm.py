"""fold-batch-norm: move the scale and shift of a batch norm into the weights before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ..dialects.floats import Floats, Label
from ..dialects.graph import ConstantOp, GraphOp
from ..dialects.graph.contraction import ConvOp, ConvTransposeOp, MatmulOp
from ..dialects.graph.elementwise import AddOp, CastOp, DivOp, MulOp, SqrtOp, SubOp
from ..dialects.graph.reduction import BatchNormOp
from ..dialects.graph.shaping import BroadcastOp, ReshapeOp
from ..dialects.program import add_provenance, main_of, provenance
from ..dialects.types import element_of, is_half, shape_of
from ..dialects.weights_only import weights_only

RULE = "fold-batch-norm"


@dataclass(frozen=True)
class FoldBatchNorm(ModulePass):
    """Fold the batch norm after a conv, conv_transpose or matmul into its weights and bias.

    Batch norm is y * a + b per channel with a = scale / sqrt(variance + epsilon) and
    b = bias - mean * a, so conv(x, w) * a + b = conv(x, w * a) + b. Applies if the convolution
    has no other user and weights and statistics are known before the program runs. The new weights
    are graph ops on weights: no data is computed here. Equal as real numbers; rounding differs.
    Half floats are computed with in float32 and rounded once, as in a batch norm.

    Before:

        %y = graph.conv %x, %w {...} : tensor<1x8x4x4xf32>
        %z = graph.batch_norm %y, %scale, %bias, %mean, %variance : tensor<1x8x4x4xf32>

    After (%a and %b as above, from weights):

        %a4 = graph.broadcast %a {shape = [8, 3, 3, 3], dims = [0]} : tensor<8x3x3x3xf32>
        %wa = graph.mul %w, %a4 : tensor<8x3x3x3xf32>
        %z = graph.conv %x, %wa, %b {...} : tensor<1x8x4x4xf32>
    """

    name = "fold-batch-norm"
    floats: ClassVar[Floats] = Floats(
        Label.ROUNDING, "a weight that the scale makes 0 (underflow): inf times it is NaN"
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold wherever it applies."""
        pattern = FoldPattern(weights_only(main_of(op).body.block.ops))
        PatternRewriteWalker(pattern).rewrite_module(op)


@dataclass
class FoldPattern(RewritePattern):
    """`known` are the values that depend on weights alone, including new ones."""

    known: set[SSAValue]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BatchNormOp, rewriter: PatternRewriter, /) -> None:
        """Fold one batch norm."""
        before = op.x.owner
        if not isinstance(before, ConvOp | ConvTransposeOp | MatmulOp):
            return
        if not op.x.has_one_use() or not self._foldable(before, op):
            return
        fold = Fold(before)
        factor, shift = fold.factor_and_shift(op)
        if isinstance(before, MatmulOp):
            last = fold.matmul(before, factor, shift)
        else:
            last = fold.convolution(before, factor, shift)
        for new in fold.ops:
            new.location = before.location
            if all(v in self.known for v in new.operands):
                self.known.update(new.results)
        for new in fold.computing:
            add_provenance(new, [*provenance(before), *provenance(op), RULE])
        rewriter.replace(op, fold.ops, [last])
        rewriter.erase(before)

    def _foldable(self, before: GraphOp, op: BatchNormOp) -> bool:
        if isinstance(before, MatmulOp) and len(shape_of(op.x)) != 2:
            return False
        return all(v in self.known for v in (*before.operands[1:], *op.operands[1:]))


@dataclass
class Fold:
    """The ops that replace one pair; `computing` are those that run with the program."""

    before: GraphOp
    ops: list[Operation] = field(default_factory=list[Operation])
    computing: list[Operation] = field(default_factory=list[Operation])

    def add(self, op: Operation) -> SSAValue:
        """Append a new op and return its result."""
        self.ops.append(op)
        return op.results[0]

    def wide(self, value: SSAValue) -> SSAValue:
        """A value in the type that it is computed with."""
        return self.add(CastOp(value, to=f32)) if is_half(element_of(value)) else value

    def rounded(self, value: SSAValue, like: SSAValue) -> SSAValue:
        """What was computed, in the type of another value."""
        element = element_of(like)
        return self.add(CastOp(value, to=element)) if element_of(value) != element else value

    def factor_and_shift(self, op: BatchNormOp) -> tuple[SSAValue, SSAValue]:
        """a = scale / sqrt(variance + epsilon), b = bias - mean * a."""
        scale, bias, mean, variance = (self.wide(v) for v in op.operands[1:])
        epsilon = np.full(shape_of(scale), op.value("epsilon"))
        safe = self.add(AddOp(variance, self.add(ConstantOp(epsilon, element_of(scale)))))
        factor = self.add(DivOp(scale, self.add(SqrtOp(safe))))
        return factor, self.add(SubOp(bias, self.add(MulOp(mean, factor))))

    def spread(self, value: SSAValue, shape: Sequence[int], dims: Sequence[int]) -> SSAValue:
        """Broadcast a value, its dims becoming `dims`."""
        return self.add(BroadcastOp(value, shape=shape, dims=dims))

    def convolution(
        self, conv: ConvOp | ConvTransposeOp, factor: SSAValue, shift: SSAValue
    ) -> SSAValue:
        """The convolution by scaled weights, with the shift as bias."""
        if conv.bias is not None:
            shift = self.add(AddOp(self.add(MulOp(self.wide(conv.bias), factor)), shift))
        scaled = self.add(MulOp(self.wide(conv.w), self._per_filter(conv, factor)))
        values = {name: conv.value(name) for name in conv.properties}
        rounded = self.rounded(scaled, conv.w), self.rounded(shift, conv.w)
        new = type(conv)(conv.x, *rounded, **values)
        self.computing.append(new)
        return self.add(new)

    def _per_filter(self, conv: ConvOp | ConvTransposeOp, factor: SSAValue) -> SSAValue:
        """The factor of each weight: output channels are w's dim 0, or 1 if transposed."""
        shape = shape_of(conv.w)
        if isinstance(conv, ConvOp):
            return self.spread(factor, shape, [0])
        groups, rows = conv.value("groups"), shape[0]
        by_group = self.add(ReshapeOp(factor, shape=[groups, shape[1]]))
        full = self.spread(by_group, [groups, rows // groups, *shape[1:]], [0, 2])
        return self.add(ReshapeOp(full, shape=shape))

    def matmul(self, op: MatmulOp, factor: SSAValue, shift: SSAValue) -> SSAValue:
        """The product by scaled columns, plus the shift."""
        column = 0 if op.value("transpose_b") else 1
        scaled = self.add(MulOp(self.wide(op.b), self.spread(factor, shape_of(op.b), [column])))
        values = {name: op.value(name) for name in op.properties}
        product, bias = (
            MatmulOp(op.a, self.rounded(scaled, op.b), **values),
            self.spread(self.rounded(shift, op.b), shape_of(op.result), [1]),
        )
        total = AddOp(self.add(product), bias)
        self.computing += [product, total]
        return self.add(total)
