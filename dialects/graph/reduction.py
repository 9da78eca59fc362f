"""Reductions along axes, and the normalisations built from them.

Ops with several steps compute half floats in float32 and round once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from ..index import Index, iterators
from ..scalars import Expr, call
from ..scope_builder import ScopeBuilder, Source, cast, exp
from ..types import Tensor, dims_of, is_bool, is_float, is_unsigned, same_type, tensor
from .base import GraphOp


def reduce_scope(
    build: ScopeBuilder,
    x: Source,
    axes: Sequence[int],
    reduction: str,
    keep: bool,
    element: Attribute | None = None,
) -> Source:
    """Reduce `x` along `axes` (sorted); `keep` leaves them at extent 1.

    `element` is the type to reduce in, x's own if None.
    """
    element = x.element if element is None else element
    rank = len(x.shape)
    kept = [k for k in range(rank) if k not in axes]
    shape = (
        [1 if k in axes else x.shape[k] for k in range(rank)]
        if keep
        else [x.shape[k] for k in kept]
    )
    traversal = iterators(len(shape))
    sums = iterators(len(axes), len(shape))
    index: list[Index] = [Index(0)] * rank
    for position, axis in enumerate(axes):
        index[axis] = sums[position]
    for position, axis in enumerate(kept):
        index[axis] = traversal[axis if keep else position]
    extents = [x.shape[axis] for axis in axes]
    value = x[index] if element == x.element else cast(element, x[index])
    return build.scope(tensor(shape, element), value, extents, reduction)


def along(x: Source, reduced: Source, axes: Sequence[int]) -> Expr:
    """Read a keep-dims reduction of `x` at x's own point."""
    here = iterators(len(x.shape))
    return reduced[[Index(0) if k in axes else here[k] for k in range(len(x.shape))]]


class ReduceOp(GraphOp):
    """Reduce along `axes` (sorted, non-negative); `keep_dims` leaves extent 1."""

    x = operand_def(TensorType)
    axes = prop_def(DenseArrayBase)
    keep_dims = prop_def(BoolAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"keep_dims": True}
    REDUCTION: ClassVar[str] = "sum"

    def infer(self) -> Tensor:
        x, axes = self.operand_type(0), self.ints("axes")
        rank = len(dims_of(x))
        if sorted(set(axes)) != list(axes) or any(not 0 <= a < rank for a in axes):
            raise self.fail(f"axes must be sorted, distinct and in [0, {rank})", found=list(axes))
        if is_unsigned(x.element_type) or is_bool(x.element_type):
            raise self.fail_element("operands must be floats or signed integers", x)
        keep = self.value("keep_dims")
        shape = [1 if k in axes else n for k, n in enumerate(dims_of(x)) if keep or k not in axes]
        return tensor(shape, x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        return reduce_scope(
            build, operands[0], self.ints("axes"), self.REDUCTION, self.value("keep_dims")
        )


@irdl_op_definition
class ReduceSumOp(ReduceOp):
    """Sum along axes. ONNX ReduceSum."""

    name = "graph.reduce_sum"


@irdl_op_definition
class ReduceMaxOp(ReduceOp):
    """Maximum along axes. ONNX ReduceMax, GlobalMaxPool."""

    name = "graph.reduce_max"
    REDUCTION: ClassVar[str] = "max"


@irdl_op_definition
class ReduceMinOp(ReduceOp):
    """Minimum along axes. ONNX ReduceMin."""

    name = "graph.reduce_min"
    REDUCTION: ClassVar[str] = "min"


@irdl_op_definition
class ReduceProdOp(ReduceOp):
    """Product along axes. ONNX ReduceProd."""

    name = "graph.reduce_prod"
    REDUCTION: ClassVar[str] = "prod"


@irdl_op_definition
class ReduceMeanOp(ReduceOp):
    """Mean along axes. ONNX ReduceMean, GlobalAveragePool."""

    name = "graph.reduce_mean"

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        axes, keep = self.ints("axes"), self.value("keep_dims")
        count = math.prod(x.shape[axis] for axis in axes)
        if is_float(x.element):  # a division: the mean of equal numbers is that number
            x = build.widened(x)
            total = reduce_scope(build, x, axes, "sum", keep)
            return build.narrowed(self.type, total.here() / float(count), x)
        total = reduce_scope(build, x, axes, "sum", keep, i64)  # neither may overflow x's type
        return build.pointwise(self.type, cast(x.element, total.here() / count))


def _reciprocal(count: int) -> float:
    """1 / count; the mean of nothing is NaN."""
    return 1.0 / count if count else float("nan")


def _shifted(build: ScopeBuilder, x: Source, axis: int) -> Expr:
    """The argument minus its greatest value along `axis`."""
    return x.here() - along(x, reduce_scope(build, x, [axis], "max", keep=True), [axis])


class SoftmaxBaseOp(GraphOp):
    """The base of softmax and log-softmax."""

    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        x, axis = self.operand_type(0), self.value("axis")
        if not 0 <= axis < len(dims_of(x)) or not is_float(x.element_type):
            raise self.fail(f"axis {axis} does not fit a float tensor", found=x)
        return x


@irdl_op_definition
class SoftmaxOp(SoftmaxBaseOp):
    """exp(x - max) / sum(exp(x - max)) along `axis`. ONNX Softmax (opset 13 meaning)."""

    name = "graph.softmax"

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, axis = build.widened(operands[0]), self.value("axis")
        powers = build.pointwise(tensor(x.shape, x.element), exp(_shifted(build, x, axis)))
        total = reduce_scope(build, powers, [axis], "sum", keep=True)
        return build.narrowed(self.type, powers.here() / along(x, total, [axis]), x)


@irdl_op_definition
class LogSoftmaxOp(SoftmaxBaseOp):
    """x - max - log(sum(exp(x - max))) along `axis`. ONNX LogSoftmax (opset 13 meaning)."""

    name = "graph.log_softmax"

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, axis = build.widened(operands[0]), self.value("axis")
        wide = tensor(x.shape, x.element)
        shifted = build.pointwise(wide, _shifted(build, x, axis))
        powers = build.pointwise(wide, exp(shifted.here()))
        total = reduce_scope(build, powers, [axis], "sum", keep=True)
        result = shifted.here() - call("log", along(x, total, [axis]))
        return build.narrowed(self.type, result, x)


@irdl_op_definition
class LayerNormOp(GraphOp):
    """(x - mean) * rsqrt(variance + epsilon) * scale + bias over dims `axis` ... rank-1.

    scale and bias have the shape of the normalised dims. ONNX LayerNormalization (first output).
    """

    name = "graph.layer_norm"
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"epsilon": 1e-5}

    def infer(self) -> Tensor:
        x, axis = self.operand_type(0), self.value("axis")
        if not 0 <= axis < len(dims_of(x)) or not is_float(x.element_type):
            raise self.fail(f"axis {axis} does not fit a float tensor", found=x)
        expected = tensor(dims_of(x)[axis:], x.element_type)
        for k in range(1, len(self.operands)):
            if not same_type(self.operand_type(k), expected):
                raise self.fail(
                    "scale and bias have the normalised dims' shape",
                    expected=expected,
                    found=self.operand_type(k),
                )
        return x

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, scale, *bias = map(build.widened, operands)
        axes = list(range(self.value("axis"), len(x.shape)))
        here = iterators(len(x.shape))
        normal = normalised(build, x, axes, self.value("epsilon")) * scale[here[axes[0] :]]
        if bias:
            normal = normal + bias[0][here[axes[0] :]]
        return build.narrowed(self.type, normal, x)


def normalised(build: ScopeBuilder, x: Source, axes: Sequence[int], epsilon: float) -> Expr:
    """(x - mean) * rsqrt(variance + epsilon), statistics along `axes`."""
    count = math.prod(x.shape[a] for a in axes)
    total = reduce_scope(build, x, axes, "sum", keep=True)
    mean = build.pointwise(tensor(total.shape, x.element), total.here() * _reciprocal(count))
    centred = build.pointwise(tensor(x.shape, x.element), x.here() - along(x, mean, axes))
    rank = len(x.shape)
    here, sums = iterators(rank), iterators(len(axes), rank)
    at = [sums[axes.index(k)] if k in axes else here[k] for k in range(rank)]
    square = build.scope(
        tensor(total.shape, x.element), centred[at] * centred[at], [x.shape[a] for a in axes]
    )
    variance = square.here() * _reciprocal(count) + epsilon
    inverse = build.pointwise(tensor(total.shape, x.element), call("rsqrt", variance))
    return centred.here() * along(x, inverse, axes)


@irdl_op_definition
class InstanceNormOp(GraphOp):
    """Normalise each (n, c) plane over its spatial dims, then scale and bias per channel.

    ONNX InstanceNormalization.
    """

    name = "graph.instance_norm"
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"epsilon": 1e-5}

    def infer(self) -> Tensor:
        x = self.operand_type(0)
        if len(dims_of(x)) < 3 or not is_float(x.element_type):
            raise self.fail("a float tensor of rank at least 3 is needed", found=x)
        expected = tensor(dims_of(x)[1:2], x.element_type)
        if not all(same_type(self.operand_type(k), expected) for k in (1, 2)):
            raise self.fail("scale and bias are per channel", expected=expected)
        return x

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, scale, bias = map(build.widened, operands)
        channel = iterators(2)[1]
        normal = normalised(build, x, list(range(2, len(x.shape))), self.value("epsilon"))
        return build.narrowed(self.type, normal * scale[channel] + bias[channel], x)


@irdl_op_definition
class BatchNormOp(GraphOp):
    """(x - mean) * scale * rsqrt(variance + epsilon) + bias, all four per channel (dim 1).

    The inference form of ONNX BatchNormalization.
    """

    name = "graph.batch_norm"
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"epsilon": 1e-5}

    def infer(self) -> Tensor:
        x = self.operand_type(0)
        if len(dims_of(x)) < 2 or not is_float(x.element_type):
            raise self.fail("a float tensor of rank at least 2 is needed", found=x)
        expected = tensor(dims_of(x)[1:2], x.element_type)
        for k in range(1, 5):
            if not same_type(self.operand_type(k), expected):
                raise self.fail(
                    "statistics are per channel", expected=expected, found=self.operand_type(k)
                )
        return x

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, scale, bias, mean, variance = map(build.widened, operands)
        channel = iterators(2)[1]
        per_channel = tensor(scale.shape, x.element)
        (c,) = iterators(1)
        factor = build.pointwise(
            per_channel, scale[c] * call("rsqrt", variance[c] + self.value("epsilon"))
        )
        shift = build.pointwise(per_channel, bias[c] - mean[c] * factor[c])
        return build.narrowed(self.type, x.here() * factor[channel] + shift[channel], x)


@irdl_op_definition
class LrnOp(GraphOp):
    """x / (bias + alpha / size * squares of `size` neighbours, summed) ^ beta. ONNX LRN."""

    name = "graph.lrn"
    x = operand_def(TensorType)
    size = prop_def(IntegerAttr)
    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)
    bias = prop_def(FloatAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}

    def infer(self) -> Tensor:
        x = self.operand_type(0)
        if len(dims_of(x)) < 2 or not is_float(x.element_type) or self.value("size") < 1:
            raise self.fail("a float tensor of rank at least 2 and a size of at least 1", found=x)
        return x

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x = build.widened(operands[0])
        rank, size = len(x.shape), self.value("size")
        n, c, *rest = iterators(rank)
        (j,) = iterators(1, rank)
        at = [n, c + j - (size - 1) // 2, *rest]
        square = build.scope(tensor(x.shape, x.element), x[at] * x[at], [size])
        scaled = square.here() * (self.value("alpha") / size) + self.value("bias")
        result = x.here() / call("pow", scaled, self.value("beta"))
        return build.narrowed(self.type, result, x)


REDUCTION_OPS = (
    ReduceSumOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceMeanOp,
    SoftmaxOp,
    LogSoftmaxOp,
    LayerNormOp,
    InstanceNormOp,
    BatchNormOp,
    LrnOp,
)
