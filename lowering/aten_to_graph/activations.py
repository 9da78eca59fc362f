"""Activation functions. Compositions of several steps compute half floats in float32."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from ...dialects.types import element_of, shape_of
from .elementwise import expm1
from .node import AtenNode, Converter, Number, axis, composed


def gelu(n: AtenNode, x: SSAValue, approximate: str = "none") -> SSAValue:
    """x / 2 * (1 + erf(x / sqrt 2)), or its tanh approximation."""
    if approximate == "none":
        inner = n.op("erf", n.op("mul", x, n.literal(math.sqrt(0.5), x)))
    else:
        cube = n.op("mul", n.op("mul", x, x), n.op("mul", x, n.literal(0.044715, x)))
        scaled = n.op("mul", n.op("add", x, cube), n.literal(math.sqrt(2 / math.pi), x))
        inner = n.op("tanh", scaled)
    half = n.op("mul", x, n.literal(0.5, x))
    return n.op("mul", half, n.op("add", inner, n.literal(1.0, x)))


def silu(n: AtenNode, x: SSAValue) -> SSAValue:
    """x * sigmoid(x)."""
    return n.op("mul", x, n.op("sigmoid", x))


def mish(n: AtenNode, x: SSAValue) -> SSAValue:
    """x * tanh(softplus(x))."""
    return n.op("mul", x, n.op("tanh", n.op("softplus", x)))


def softplus(n: AtenNode, x: SSAValue, beta: Number = 1, threshold: Number = 20) -> SSAValue:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    scaled = n.op("mul", x, n.literal(beta, x))
    y = n.op("div", n.op("softplus", scaled), n.literal(beta, x))
    return n.op("where", n.op("greater", scaled, n.literal(threshold, x)), x, y)


def elu(
    n: AtenNode, x: SSAValue, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> SSAValue:
    """scale * (x, or alpha * (exp(input_scale * x) - 1) below 0)."""
    low = n.op("mul", expm1(n, n.op("mul", x, n.literal(input_scale, x))), n.literal(alpha, x))
    y = n.op("where", n.op("greater", x, n.literal(0, x)), x, low)
    return n.op("mul", y, n.literal(scale, x))


def leaky_relu(n: AtenNode, x: SSAValue, negative_slope: Number = 0.01) -> SSAValue:
    """x, or slope * x below 0."""
    return n.op("leaky_relu", x, alpha=float(negative_slope))


def hardtanh(n: AtenNode, x: SSAValue, min_val: Number = -1, max_val: Number = 1) -> SSAValue:
    """x between the bounds."""
    return n.op("clip", x, min=float(min_val), max=float(max_val))


def hardsigmoid(n: AtenNode, x: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6) / 6."""
    shifted = n.op("clip", n.op("add", x, n.literal(3.0, x)), min=0.0, max=6.0)
    return n.op("div", shifted, n.literal(6.0, x))


def hardswish(n: AtenNode, x: SSAValue) -> SSAValue:
    """x * min(max(x + 3, 0), 6) / 6."""
    shifted = n.op("clip", n.op("add", x, n.literal(3.0, x)), min=0.0, max=6.0)
    return n.op("div", n.op("mul", x, shifted), n.literal(6.0, x))


def log_sigmoid(n: AtenNode, x: SSAValue) -> list[SSAValue]:
    """-log(1 + exp(-x)); the second result is for gradients."""
    return [n.op("neg", n.op("softplus", n.op("neg", x)))]


def threshold(n: AtenNode, x: SSAValue, threshold: Number, value: Number) -> SSAValue:
    """x above the threshold, the value elsewhere; NaN stays NaN."""
    low = n.op("less_equal", x, n.literal(threshold, x))
    return n.op("where", low, n.literal(value, x), x)


def prelu(n: AtenNode, x: SSAValue, weight: SSAValue) -> SSAValue:
    """x, or weight * x below 0; the weight broadcasts."""
    x, w = n.together(x, weight)
    return n.op("where", n.op("greater", x, n.literal(0, x)), x, n.op("mul", w, x))


def glu(n: AtenNode, x: SSAValue, dim: int = -1) -> SSAValue:
    """The first half times the sigmoid of the second."""
    k = axis(dim, len(shape_of(x)))
    half = shape_of(x)[k] // 2
    a, b = n.build.split(x, axis=k, sizes=[half, half])
    return n.op("mul", a, n.op("sigmoid", b))


def relu(n: AtenNode, x: SSAValue) -> SSAValue:
    """max(x, 0), NaN kept."""
    return n.op("relu", n.cast(x, element_of(x)))


TABLE: dict[str, Converter] = {
    "relu.default": relu,
    "gelu.default": composed(gelu),
    "silu.default": composed(silu),
    "mish.default": composed(mish),
    "softplus.default": composed(softplus),
    "elu.default": composed(elu),
    "leaky_relu.default": composed(leaky_relu),
    "hardtanh.default": hardtanh,
    "hardsigmoid.default": composed(hardsigmoid),
    "hardswish.default": composed(hardswish),
    "log_sigmoid_forward.default": log_sigmoid,
    "threshold.default": threshold,
    "_prelu_kernel.default": prelu,
    "glu.default": composed(glu),
}
