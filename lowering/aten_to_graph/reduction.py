"""Reductions, softmax and normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_bool, is_float, shape_of, tensor
from .aten import UnsupportedAten
from .node import AtenNode, Converter, Number, axes, axis, composed, wide


def reduced(
    n: AtenNode, op: str, x: SSAValue, dim: Any, keepdim: bool, element: Any = None
) -> SSAValue:
    """A reduction in an element type (the result's), of the result's shape."""
    y = n.cast(x, n.element if element is None else element)
    found = axes(dim, len(shape_of(x)))
    return n.op(op, y, axes=found, keep_dims=keepdim) if found else y


def sum_(
    n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SSAValue:
    """The sum; half floats are added in float32."""
    return n.cast(reduced(n, "reduce_sum", x, dim, keepdim, wide(n.element)), n.element)


def mean(
    n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SSAValue:
    """The mean."""
    return n.cast(reduced(n, "reduce_mean", x, dim, keepdim, wide(n.element)), n.element)


def prod(
    n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SSAValue:
    """The product."""
    return n.cast(reduced(n, "reduce_prod", x, dim, keepdim, wide(n.element)), n.element)


def extreme(op: str) -> Converter:
    """The greatest or least element; booleans as integers."""

    def convert(n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
        element = i32 if is_bool(n.element) else n.element
        return n.cast(reduced(n, op, x, dim, keepdim, element), n.element)

    return convert


def extreme_along(op: str) -> Converter:
    """The greatest or least element along a dim, and its position."""

    def convert(n: AtenNode, x: SSAValue, dim: int, keepdim: bool = False) -> list[SSAValue]:
        values = extreme(op)(n, x, dim, keepdim)
        at = _position(n, x, dim, keepdim, least=op == "reduce_min")
        assert isinstance(values, SSAValue)
        return [values, at]

    return convert


def position(least: bool) -> Converter:
    """The first position of the greatest or least element."""

    def convert(
        n: AtenNode, x: SSAValue, dim: int | None = None, keepdim: bool = False
    ) -> SSAValue:
        if dim is not None:
            return _position(n, x, dim, keepdim, least)
        return n.reshape(
            _position(n, n.reshape(x, [math.prod(shape_of(x))]), 0, False, least), n.shape
        )

    return convert


def _position(n: AtenNode, x: SSAValue, dim: int, keepdim: bool, least: bool) -> SSAValue:
    shape = shape_of(x)
    if not shape:
        return n.scalar(0, i64)
    k = axis(dim, len(shape))
    if is_bool(element_of(x)):
        x = n.cast(x, i32)
    found = n.op("arg_max", n.op("neg", x) if least else x, axis=k)
    return found if keepdim else n.reshape(found, [d for j, d in enumerate(shape) if j != k])


def any_(n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
    """Whether any element is not 0."""
    return _some(n, n.cast(x, n.element), dim, keepdim)


def all_(n: AtenNode, x: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
    """Whether no element is 0."""
    return n.op("not", _some(n, n.op("not", n.cast(x, n.element)), dim, keepdim))


def _some(n: AtenNode, x: SSAValue, dim: Any, keepdim: bool) -> SSAValue:
    if not is_bool(n.element):
        raise UnsupportedAten("the result is no boolean")
    total = reduced(n, "reduce_sum", x, dim, keepdim, i32)
    return n.op("greater", total, n.literal(0, total))


def variance(
    n: AtenNode,
    x: SSAValue,
    dim: Any = None,
    correction: Number | None = None,
    keepdim: bool = False,
) -> list[SSAValue]:
    """The variance, and the mean."""
    found = axes(dim, len(shape_of(x)))
    count = math.prod(shape_of(x)[k] for k in found)
    y = n.cast(x, wide(n.element))
    middle = n.op("reduce_mean", y, axes=found, keep_dims=True)
    centred = n.op("sub", y, n.expand(middle, shape_of(y)))
    total = n.op("reduce_sum", n.op("mul", centred, centred), axes=found, keep_dims=keepdim)
    rest = max(0.0, count - (1 if correction is None else correction))
    spread = n.op("div", total, n.literal(rest, total))
    return [n.cast(spread, n.element), n.cast(n.reshape(middle, shape_of(total)), n.element)]


def variance_only(
    n: AtenNode, x: SSAValue, dim: Any = None, correction: Number | None = None,
    keepdim: bool = False,
) -> SSAValue:  # fmt: skip
    """The variance."""
    return variance(n, x, dim, correction, keepdim)[0]


def softmax(op: str) -> Converter:
    """Softmax and log-softmax."""

    def convert(n: AtenNode, x: SSAValue, dim: int, half_to_float: bool = False) -> SSAValue:
        if not shape_of(x):
            return n.reshape(convert_flat(n, n.reshape(x, [1]), 0), [])
        return convert_flat(n, x, dim)

    def convert_flat(n: AtenNode, x: SSAValue, dim: int) -> SSAValue:
        return n.op(op, n.cast(x, n.element), axis=axis(dim, len(shape_of(x))))

    return convert


def safe_softmax(n: AtenNode, x: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    """Softmax that is 0 where all scores are minus infinity."""
    x = n.cast(x, n.element)
    k = axis(dim, len(shape_of(x)))
    most = n.op("reduce_max", x, axes=[k], keep_dims=True)
    empty = n.op("equal", most, n.literal(-math.inf, most))
    y = n.op("softmax", x, axis=k)
    return n.op("where", n.expand(empty, shape_of(x)), n.literal(0, y), y)


def logsumexp(n: AtenNode, x: SSAValue, dim: Any, keepdim: bool = False) -> SSAValue:
    """log(sum(exp(x))), shifted by the greatest element."""
    found = axes(dim, len(shape_of(x)))
    most = n.op("reduce_max", x, axes=found, keep_dims=True)
    finite = n.op("less", n.op("abs", most), n.literal(math.inf, most))
    shift = n.op("where", finite, most, n.literal(0, most))
    powers = n.op("exp", n.op("sub", x, n.expand(shift, shape_of(x))))
    total = n.op("reduce_sum", powers, axes=found, keep_dims=True)
    return n.reshape(n.op("add", n.op("log", total), shift), n.shape)


def norm(
    n: AtenNode, x: SSAValue, order: Number = 2, dim: Any = None, keepdim: bool = False,
    dtype: Any = None,
) -> SSAValue:  # fmt: skip
    """The 1, 2 or infinity norm."""
    y, found = n.op("abs", n.cast(x, wide(n.element))), axes(dim, len(shape_of(x)))
    if order == 2:
        square = n.op("reduce_sum", n.op("mul", y, y), axes=found, keep_dims=keepdim)
        return n.cast(n.op("sqrt", square), n.element)
    if order not in (1, math.inf):
        raise UnsupportedAten(f"the norm of order {order}")
    op = "reduce_sum" if order == 1 else "reduce_max"
    return n.cast(n.op(op, y, axes=found, keep_dims=keepdim), n.element)


def cumsum(n: AtenNode, x: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    """Running sums, which a node runs; as in torch, float32 is added as float64."""
    shape = shape_of(x)
    if not shape or 0 in shape:
        return n.cast(x, n.element)
    element = f64 if n.element == f32 else wide(n.element)
    place = n.scalar(axis(dim, len(shape)), i64)
    return n.cast(
        n.onnx("CumSum", [n.cast(x, element), place], [tensor(shape, element)])[0], n.element
    )


def layer_norm(
    n: AtenNode,
    x: SSAValue,
    normalised: Sequence[int],
    weight: SSAValue | None,
    bias: SSAValue | None,
    eps: float,
) -> list[SSAValue]:
    """Layer normalisation; mean and deviation, its other results, are for gradients."""
    shape = list(normalised)
    scale = n.expand(n.scalar(1.0, n.element), shape) if weight is None else weight
    operands = [x, n.cast(scale, n.element)]
    if bias is not None:
        operands.append(n.cast(bias, n.element))
    first = len(shape_of(x)) - len(shape)
    return [n.op("layer_norm", *operands, axis=first, epsilon=float(eps))]


def batch_norm(
    n: AtenNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    mean: SSAValue,
    var: SSAValue,
    momentum: float,
    eps: float,
) -> list[SSAValue]:
    """Batch normalisation by known statistics."""
    channels = [shape_of(x)[1]]
    scale = n.expand(n.scalar(1.0, n.element), channels) if weight is None else weight
    shift = n.expand(n.scalar(0.0, n.element), channels) if bias is None else bias
    given = [n.cast(v, n.element) for v in (scale, shift, mean, var)]
    return [n.op("batch_norm", x, *given, epsilon=float(eps))]


def batch_norm_flag(
    n: AtenNode, x: SSAValue, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
    momentum: float, eps: float,
) -> list[SSAValue]:  # fmt: skip
    """`native_batch_norm`, not in training."""
    if training:
        raise UnsupportedAten("batch normalisation in training")
    return batch_norm(n, x, weight, bias, mean, var, momentum, eps)


def group_norm(
    n: AtenNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> list[SSAValue]:
    """Each group of channels normalised, then scale and bias per channel."""
    element, shape = wide(n.element), shape_of(x)
    planes = n.reshape(n.cast(x, element), [batch, groups, channels // groups * size])
    one, zero = (n.expand(n.scalar(v, element), [groups]) for v in (1.0, 0.0))
    y = n.reshape(n.op("instance_norm", planes, one, zero, epsilon=float(eps)), shape)
    per_channel = [channels, *[1] * (len(shape) - 2)]
    if weight is not None:
        w = n.reshape(n.cast(weight, element), per_channel)
        y = n.op("mul", y, n.expand(w, shape))
    if bias is not None:
        b = n.reshape(n.cast(bias, element), per_channel)
        y = n.op("add", y, n.expand(b, shape))
    return [n.cast(y, n.element)]


def _in_floats(function: Converter) -> Converter:
    def convert(n: AtenNode, x: SSAValue, *args: Any, **kwargs: Any) -> Any:
        if not is_float(element_of(x)):
            raise UnsupportedAten("operands must be floats")
        return function(n, x, *args, **kwargs)

    return convert


TABLE: dict[str, Converter] = {
    **dict.fromkeys(("sum.default", "sum.dim_IntList"), sum_),
    **dict.fromkeys(("mean.default", "mean.dim"), mean),
    **dict.fromkeys(("prod.default", "prod.dim_int"), prod),
    **dict.fromkeys(("amax.default", "max.default"), extreme("reduce_max")),
    **dict.fromkeys(("amin.default", "min.default"), extreme("reduce_min")),
    "max.dim": extreme_along("reduce_max"),
    "min.dim": extreme_along("reduce_min"),
    "argmax.default": position(least=False),
    "argmin.default": position(least=True),
    **dict.fromkeys(("any.default", "any.dim", "any.dims"), any_),
    **dict.fromkeys(("all.default", "all.dim", "all.dims"), all_),
    "var_mean.correction": _in_floats(variance),
    "var.correction": _in_floats(variance_only),
    "_softmax.default": softmax("softmax"),
    "_log_softmax.default": softmax("log_softmax"),
    "_safe_softmax.default": safe_softmax,
    "logsumexp.default": composed(logsumexp),
    "linalg_vector_norm.default": norm,
    "cumsum.default": cumsum,
    "native_layer_norm.default": layer_norm,
    **dict.fromkeys(
        ("_native_batch_norm_legit_no_training.default", "_batch_norm_no_update.default"),
        batch_norm,
    ),
    "native_batch_norm.default": batch_norm_flag,
    "native_group_norm.default": group_norm,
}
