"""Normalisations: batch, instance, group, layer, RMS, local response."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, shape_of
from .node import OnnxNode
from .tensor_data import element_of_number
from .values import NotNative


def batch_normalization(node: OnnxNode) -> list[SSAValue]:
    """The inference form; from opset 14 on also the training form, with the batch's statistics."""
    if node.version >= 14:
        training = node.flag("training_mode")
    else:
        training = any(node.wants(k) for k in range(1, 5))
    if (training and node.version < 14) or not node.flag("spatial", True):
        raise NotNative
    x, build = node[0], node.build
    scale, bias, mean, variance = (node.cast(node[k], element_of(x)) for k in range(1, 5))
    epsilon = node.float("epsilon", 1e-5)
    if not training:
        return [build.batch_norm(x, scale, bias, mean, variance, epsilon=epsilon)]
    axes = [k for k in range(len(shape_of(x))) if k != 1]
    current = build.reduce_mean(x, axes=axes)
    centred = build.sub(x, build.expand(current, shape_of(x)))
    spread = build.reduce_mean(build.mul(centred, centred), axes=axes, keep_dims=False)
    current = node.reshape(current, shape_of(mean))
    momentum = node.float("momentum", 0.9)
    running = [
        build.add(
            build.mul(old, node.literal(momentum, old)),
            build.mul(new, node.literal(1 - momentum, new)),
        )
        for old, new in ((mean, current), (variance, spread))
    ]
    return [build.batch_norm(x, scale, bias, current, spread, epsilon=epsilon), *running]


def instance_normalization(node: OnnxNode) -> list[SSAValue]:
    """Per plane, scaled per channel."""
    epsilon = node.float("epsilon", 1e-5)
    return [node.build.instance_norm(node[0], node[1], node[2], epsilon=epsilon)]


def group_normalization(node: OnnxNode) -> list[SSAValue]:
    """Instance normalisation of the groups; scale and bias per group (opset 18) or channel (21)."""
    x, groups, build = node[0], node.int("num_groups", 0), node.build
    n, c, *rest = shape_of(x)
    single = node.int("stash_type", TensorProto.FLOAT) == TensorProto.FLOAT
    if node.version >= 21 and element_of(x) == f64 and single:
        raise NotNative  # its body normalises in float32
    if groups < 1 or c % groups != 0:
        raise UserError(f"{c} channels do not make {groups} groups")
    grouped = node.reshape(x, [n, groups, int(c // groups * np.prod(rest, dtype=int))])
    scale, bias = (node.cast(node[k], element_of(x)) for k in (1, 2))
    epsilon = node.float("epsilon", 1e-5)
    if node.version < 21:
        return [
            node.reshape(build.instance_norm(grouped, scale, bias, epsilon=epsilon), shape_of(x))
        ]
    one, zero = (build.expand(node.scalar(v, element_of(x)), [groups]) for v in (1.0, 0.0))
    normal = node.reshape(build.instance_norm(grouped, one, zero, epsilon=epsilon), shape_of(x))
    per_channel = [c, *[1] * len(rest)]
    scale, bias = (build.expand(node.reshape(v, per_channel), shape_of(x)) for v in (scale, bias))
    return [build.add(build.mul(normal, scale), bias)]


def layer_normalization(node: OnnxNode) -> list[SSAValue]:
    """Over dims `axis` to the last; mean and inverse deviation if requested."""
    x, build = node[0], node.build
    axis = node.axis(node.int("axis", -1), len(shape_of(x)))
    epsilon = node.float("epsilon", 1e-5)
    normal = shape_of(x)[axis:]
    parameters = [_broadcast_parameter(node, k, normal) for k in (1, 2) if node.has(k)]
    results = [build.layer_norm(x, *parameters, axis=axis, epsilon=epsilon)]
    if node.wants(1) or node.wants(2):
        axes = list(range(axis, len(shape_of(x))))
        mean = build.reduce_mean(x, axes=axes)
        centred = build.sub(x, build.expand(mean, shape_of(x)))
        variance = build.reduce_mean(build.mul(centred, centred), axes=axes)
        deviation = build.sqrt(build.add(variance, node.literal(epsilon, variance)))
        stash = element_of_number(node.int("stash_type", TensorProto.FLOAT), node.where)
        results += [node.cast(v, stash) for v in (mean, build.reciprocal(deviation))]
    return results


def _broadcast_parameter(node: OnnxNode, k: int, shape: tuple[int, ...]) -> SSAValue:
    """A parameter broadcast to the normalised dims; NotNative if it varies over the others."""
    value = node.cast(node[k], element_of(node[0]))
    extra = len(shape_of(value)) - len(shape)
    if extra > 0:
        if any(n != 1 for n in shape_of(value)[:extra]):
            raise NotNative
        value = node.reshape(value, shape_of(value)[extra:])
    return node.build.expand(value, shape)


def rms_normalization(node: OnnxNode) -> list[SSAValue]:
    """x * rsqrt(mean of squares + epsilon) * scale over dims `axis` to the last."""
    x, build = node[0], node.build
    axis = node.axis(node.int("axis", -1), len(shape_of(x)))
    squares = build.reduce_mean(build.mul(x, x), axes=list(range(axis, len(shape_of(x)))))
    shifted = build.add(squares, node.literal(node.float("epsilon", 1e-5), squares))
    normal = build.div(x, build.expand(build.sqrt(shifted), shape_of(x)))
    scale = build.expand(node.cast(node[1], element_of(x)), shape_of(x))
    return [build.mul(normal, scale)]


def mean_variance_normalization(node: OnnxNode) -> list[SSAValue]:
    """(x - mean) / (deviation + 1e-9) along the axes."""
    x, build = node[0], node.build
    axes = node.axes(node.ints("axes", [0, 2, 3]), len(shape_of(x)))
    centred = build.sub(x, build.expand(build.reduce_mean(x, axes=axes), shape_of(x)))
    deviation = build.sqrt(build.reduce_mean(build.mul(centred, centred), axes=axes))
    bottom = build.add(deviation, node.literal(1e-9, deviation))
    return [build.div(centred, build.expand(bottom, shape_of(x)))]


def lrn(node: OnnxNode) -> list[SSAValue]:
    """Local response normalisation across channels."""
    return [
        node.build.lrn(
            node[0],
            size=node.int("size", 1),
            alpha=node.float("alpha", 1e-4),
            beta=node.float("beta", 0.75),
            bias=node.float("bias", 1.0),
        )
    ]
