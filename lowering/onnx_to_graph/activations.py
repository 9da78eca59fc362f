"""Activation functions that are short compositions of graph ops."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, shape_of
from .elementwise import Converter
from .node import OnnxNode
from .values import NotNative


def softsign(node: OnnxNode) -> list[SSAValue]:
    """x / (1 + |x|)."""
    build, x = node.build, node[0]
    return [build.div(x, build.add(build.abs(x), node.literal(1.0, x)))]


def mish(node: OnnxNode) -> list[SSAValue]:
    """x * tanh(softplus(x))."""
    return [node.build.mul(node[0], node.build.tanh(node.build.softplus(node[0])))]


def hard_swish(node: OnnxNode) -> list[SSAValue]:
    """x * max(0, min(1, x / 6 + 1 / 2))."""
    return [node.build.mul(node[0], node.build.hard_sigmoid(node[0], alpha=1 / 6, beta=0.5))]


def selu(node: OnnxNode) -> list[SSAValue]:
    """gamma * elu(x, alpha)."""
    alpha = node.float("alpha", 1.67326319217681884765625)
    gamma = node.float("gamma", 1.05070102214813232421875)
    y = node.build.elu(node[0], alpha=alpha)
    return [node.build.mul(y, node.literal(gamma, y))]


def celu(node: OnnxNode) -> list[SSAValue]:
    """alpha * elu(x / alpha), for alpha > 0."""
    alpha, build, x = node.float("alpha", 1.0), node.build, node[0]
    if alpha <= 0:  # the formula needs alpha > 0; NotNative: expanded, or kept opaque
        raise NotNative
    return [build.mul(build.elu(build.mul(x, node.literal(1 / alpha, x))), node.literal(alpha, x))]


def swish(node: OnnxNode) -> list[SSAValue]:
    """x * sigmoid(alpha * x)."""
    build, x, alpha = node.build, node[0], node.float("alpha", 1.0)
    inner = x if alpha == 1.0 else build.mul(x, node.literal(alpha, x))
    return [build.mul(x, build.sigmoid(inner))]


def gelu(node: OnnxNode) -> list[SSAValue]:
    """x / 2 * (1 + erf(x / sqrt 2)), or its tanh approximation."""
    build, x = node.build, node[0]
    kind = node.string("approximate", "none")
    if kind not in ("none", "tanh"):
        raise UserError(f"approximate '{kind}' is unknown", hint="none or tanh")
    if kind == "none":
        inner = build.erf(build.mul(x, node.literal(math.sqrt(0.5), x)))
    else:
        cube = build.mul(build.mul(x, x), build.mul(x, node.literal(0.044715, x)))
        inner = build.tanh(build.mul(build.add(x, cube), node.literal(math.sqrt(2 / math.pi), x)))
    half = build.mul(x, node.literal(0.5, x))
    return [build.mul(half, build.add(inner, node.literal(1.0, x)))]


def thresholded_relu(node: OnnxNode) -> list[SSAValue]:
    """x above alpha, 0 elsewhere."""
    build, x = node.build, node[0]
    above = build.greater(x, node.literal(node.float("alpha", 1.0), x))
    return [build.where(above, x, node.literal(0.0, x))]


def shrink(node: OnnxNode) -> list[SSAValue]:
    """x + bias below -lambd, x - bias above lambd, 0 between; integers are computed in f64."""
    build, element = node.build, element_of(node[0])
    x = node[0] if is_float(element) else node.cast(node[0], f64)
    bias, limit = node.float("bias", 0.0), node.float("lambd", 0.5)
    above = build.greater(x, node.literal(limit, x))
    below = build.less(x, node.literal(-limit, x))
    down = build.sub(x, node.literal(bias, x))
    up = build.add(x, node.literal(bias, x))
    found = build.where(below, up, build.where(above, down, node.literal(0, x)))
    return [node.cast(found, element)]


def coerced(node: OnnxNode, default: int) -> tuple[SSAValue, int]:
    """The operand and the axis of a softmax: before opset 13 flattened to a matrix at `axis`."""
    x, rank = node[0], len(shape_of(node[0]))
    if node.version >= 13:
        return x, node.axis(node.int("axis", -1), rank)
    axis = node.int("axis", default)
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis <= rank:
        raise UserError(f"axis {axis} is not in [0, {rank}]")
    if axis == rank - 1:
        return x, axis
    shape = shape_of(x)
    return node.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])]), 1


def softmax(op: str) -> Converter:
    """Softmax and LogSoftmax of every opset."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        x, axis = coerced(node, 1)
        return [node.reshape(node.build.op(op, x, axis=axis), shape_of(node[0]))]

    return convert


def hardmax(node: OnnxNode) -> list[SSAValue]:
    """1 at the first maximum along the axis, 0 elsewhere."""
    x, axis = coerced(node, 1)
    shape, build = shape_of(x), node.build
    if not is_float(element_of(x)):  # NotNative: expanded, or kept opaque
        raise NotNative
    if shape[axis] == 0:
        return [node[0]]
    positions = np.arange(shape[axis], dtype=np.int64).reshape([-1] + [1] * (len(shape) - axis - 1))
    # `together` broadcasts both to one shape.
    here = build.equal(*node.together(build.arg_max(x, axis=axis), node.data(positions, "places")))
    one_hot = build.where(here, node.literal(1, x), node.literal(0, x))
    return [node.reshape(one_hot, shape_of(node[0]))]
