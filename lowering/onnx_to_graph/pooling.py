"""Pools: windows, global ones, and the norms built from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, shape_of, to_numpy
from .contraction import window_pads
from .node import OnnxNode
from .values import NotNative


def _window(node: OnnxNode) -> dict[str, Any]:
    """Properties of a pool."""
    size = list(node.shape(0)[2:])
    kernel, ones = node.ints("kernel_shape"), [1] * len(size)
    if len(kernel) != len(size) or not size:
        raise UserError("kernel_shape does not fit the operand", expected=len(size), found=kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    pads = window_pads(node, size, kernel, strides, dilations)
    ceil = node.flag("ceil_mode") and node.string("auto_pad", "NOTSET") in ("NOTSET", "")
    return {
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "ceil_mode": ceil,
    }


def max_pool(node: OnnxNode) -> list[SSAValue]:
    """MaxPool without positions."""
    return [node.build.max_pool(node[0], **_window(node))]


def average_pool(node: OnnxNode) -> list[SSAValue]:
    """AveragePool of every opset."""
    included = node.flag("count_include_pad")
    return [node.build.avg_pool(node[0], **_window(node), count_include_pad=included)]


def lp_pool(node: OnnxNode) -> list[SSAValue]:
    """The p-norm of a window: its mean of powers times its size, to 1/p."""
    p, x, build = _order(node), node[0], node.build
    window = _window(node)
    powers = build.mul(x, x) if p == 2 else build.pow(build.abs(x), node.literal(float(p), x))
    mean = build.avg_pool(powers, **window, count_include_pad=True)
    return [_root(node, build.mul(mean, _counts(node, mean, window)), p)]


def _counts(node: OnnxNode, mean: SSAValue, window: Mapping[str, Any]) -> SSAValue:
    """How many elements each window has, with padding; fewer where ceil_mode cuts it."""
    size, out = node.shape(0)[2:], shape_of(mean)[2:]
    rank, counts = len(size), np.ones([1] * len(size))
    for k, (n, o) in enumerate(zip(size, out, strict=True)):
        positions = np.arange(o)[:, None] * window["strides"][k] - window["pads"][k]
        positions = positions + np.arange(window["kernel"][k]) * window["dilations"][k]
        line = (positions < n + window["pads"][rank + k]).sum(axis=1)
        counts = counts * line.reshape([-1 if k == j else 1 for j in range(rank)])
    if (counts == counts.flat[0]).all():
        return node.literal(float(counts.flat[0]), mean)
    dtype = to_numpy(element_of(mean))
    return node.build.expand(node.data(counts.astype(dtype), "counts"), shape_of(mean))


def _order(node: OnnxNode) -> int:
    """The p of a p-norm. Raises UserError where it is not positive."""
    p = node.int("p", 2)
    if p < 1:
        raise UserError("p is not positive", found=p)
    return p


def _root(node: OnnxNode, x: SSAValue, p: int) -> SSAValue:
    if p == 1:
        return x
    return node.build.sqrt(x) if p == 2 else node.build.pow(x, node.literal(1.0 / p, x))


def _spatial(node: OnnxNode) -> list[int]:
    rank = len(node.shape(0))
    if rank < 3:
        raise UserError("an operand of rank at least 3 is needed", found=list(node.shape(0)))
    return list(range(2, rank))


def global_average_pool(node: OnnxNode) -> list[SSAValue]:
    """Mean over all spatial dims, kept at extent 1."""
    return [node.build.reduce_mean(node[0], axes=_spatial(node))]


def global_max_pool(node: OnnxNode) -> list[SSAValue]:
    """Maximum over all spatial dims, kept at extent 1."""
    return [node.build.reduce_max(node[0], axes=_spatial(node))]


def global_lp_pool(node: OnnxNode) -> list[SSAValue]:
    """p-norm over all spatial dims, kept at extent 1."""
    p, x, build = _order(node), node[0], node.build
    powers = build.mul(x, x) if p == 2 else build.pow(build.abs(x), node.literal(float(p), x))
    return [_root(node, build.reduce_sum(powers, axes=_spatial(node)), p)]


def lp_normalization(node: OnnxNode) -> list[SSAValue]:
    """x / its norm along the axis; 0 where the norm is 0."""
    x, build = node[0], node.build
    if not is_float(element_of(x)):
        raise NotNative
    axes, p = [node.axis(node.int("axis", -1), len(shape_of(x)))], node.int("p", 2)
    if p not in (1, 2):
        raise UserError("p is 1 or 2", found=p)
    powers = build.mul(x, x) if p == 2 else build.abs(x)
    norm = build.expand(_root(node, build.reduce_sum(powers, axes=axes), p), shape_of(x))
    zero = node.literal(0.0, x)
    return [build.where(build.equal(norm, zero), zero, build.div(x, norm))]
