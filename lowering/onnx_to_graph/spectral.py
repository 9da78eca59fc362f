"""Discrete Fourier transforms as products with constant matrices of cosines and sines."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, shape_of, to_numpy
from .node import OnnxNode
from .reductions import along_axis
from .shaping import sliced
from .values import NotNative

# The matrices have length^2 entries.
MAX_LENGTH = 2048


def dft(node: OnnxNode) -> list[SSAValue]:
    """Real or complex (last dim 1 or 2) along one axis; also one-sided, and the inverse."""
    x = node[0]
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] not in (1, 2) or not is_float(element_of(x)):
        raise UserError("the last dim holds one or two numbers", found=list(shape))
    axis = _axis(node, len(shape))
    length = node.constant_int(1, "the length") if node.has(1) else shape[axis]
    inverse, one_sided = node.flag("inverse"), node.flag("onesided")
    if length > MAX_LENGTH or length < 1 or (inverse and one_sided):
        raise NotNative
    x = _resized(node, x, axis, length)
    out = length // 2 + 1 if one_sided else length
    angles = 2 * np.pi * np.outer(np.arange(length), np.arange(out)) / length
    scale = 1 / length if inverse else 1.0
    dtype = to_numpy(element_of(x))
    cosine = (np.cos(angles) * scale).astype(dtype)
    sine = (np.sin(angles) * scale * (1 if inverse else -1)).astype(dtype)
    real, imaginary = _parts(node, x)
    build = node.build
    out_real, out_imaginary = (
        along_axis(node, real, axis, cosine),
        along_axis(node, real, axis, sine),
    )
    if imaginary is not None:
        out_real = build.sub(out_real, along_axis(node, imaginary, axis, sine))
        out_imaginary = build.add(out_imaginary, along_axis(node, imaginary, axis, cosine))
    return [build.concat(out_real, out_imaginary, axis=len(shape) - 1)]


def _axis(node: OnnxNode, rank: int) -> int:
    if node.version < 20:
        return node.axis(node.int("axis", 1), rank)
    return node.axis(node.constant_int(2, "the axis") if node.has(2) else -2, rank)


def _resized(node: OnnxNode, x: SSAValue, axis: int, length: int) -> SSAValue:
    """Cut or zero-padded at the end."""
    shape = shape_of(x)
    pads = [0] * (2 * len(shape))
    pads[len(shape) + axis] = length - shape[axis]
    return node.build.pad(x, pads=pads) if any(pads) else x


def _parts(node: OnnxNode, x: SSAValue) -> tuple[SSAValue, SSAValue | None]:
    shape = shape_of(x)
    ones = [1] * len(shape)
    if shape[-1] == 1:
        return x, None
    zeros = [0] * (len(shape) - 1)
    half = [*shape[:-1], 1]
    return sliced(node, x, [*zeros, 0], half, ones), sliced(node, x, [*zeros, 1], half, ones)
