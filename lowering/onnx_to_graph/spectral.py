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
    inverse, one_sided = node.flag("inverse"), node.flag("onesided")
    whole = 2 * (shape[axis] - 1) if inverse and one_sided else shape[axis]
    length = node.constant_int(1, "the length") if node.has(1) else whole
    if length > MAX_LENGTH or length < 1:
        raise NotNative
    length = int(length)  # the matrices are data
    if inverse and one_sided:
        return [_real_inverse(node, x, axis, length)]
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


def _real_inverse(node: OnnxNode, x: SSAValue, axis: int, length: int) -> SSAValue:
    """The real signal of one-sided frequencies: all but the first and the middle count twice."""
    bins = length // 2 + 1
    real, imaginary = _parts(node, _resized(node, x, axis, bins))
    angles = 2 * np.pi * np.outer(np.arange(bins), np.arange(length)) / length
    times = np.full((bins, 1), 2.0)
    times[0] = 1
    cosine, sine = np.cos(angles), np.sin(angles)
    sine[0] = 0
    if length % 2 == 0:
        times[-1], sine[-1] = 1, 0
    dtype = to_numpy(element_of(x))
    cosine, sine = ((m * times / length).astype(dtype) for m in (cosine, sine))
    found = along_axis(node, real, axis, cosine)
    if imaginary is None:
        return found
    return node.build.sub(found, along_axis(node, imaginary, axis, sine))


def stft(node: OnnxNode) -> list[SSAValue]:
    """Transforms of windows of a signal: a convolution whose filters are waves times the window.

    Shapes: [batch, length, 1 or 2] gives [batch, frames, frequencies, 2].
    """
    x = node[0]
    batch, signal, parts = node.of_rank(0, 3)
    if parts not in (1, 2) or not is_float(element_of(x)):
        raise UserError("the last dim holds one or two numbers", found=parts)
    step = node.constant_int(1, "the step")
    known = [signal] if not node.has(2) else list(node.shape(2))
    length = node.constant_int(3, "the frame's length") if node.has(3) else known[0]
    if node.has(2) and known != [length]:
        raise UserError("the window has another length", expected=length, found=known)
    if step < 1 or not 0 < length <= signal:
        raise UserError("no frame fits the signal", found=f"length {length}, step {step}")
    one_sided = node.flag("onesided", True)
    if length > MAX_LENGTH or (one_sided and parts == 2):
        raise NotNative
    bins = length // 2 + 1 if one_sided else length
    angles = 2 * np.pi * np.outer(np.arange(bins), np.arange(length)) / length
    cosine, sine = np.cos(angles), np.sin(angles)
    # Rows are filters: the real parts, then the imaginary ones; columns read x's parts.
    waves = np.stack([np.stack([cosine, -sine]), np.stack([sine, cosine])], 2)[:, :, :parts]
    waves = waves.reshape(2 * bins, parts, length).astype(to_numpy(element_of(x)))
    filters = node.data(waves, "waves")
    if node.has(2):
        filters = node.build.mul(filters, node.build.expand(node[2], waves.shape))
    found = node.build.conv(
        node.transpose(x, [0, 2, 1]), filters, strides=[step], pads=[0, 0], dilations=[1]
    )
    frames = (signal - length) // step + 1
    apart = node.reshape(found, [batch, 2, bins, frames])
    return [node.transpose(apart, [0, 3, 2, 1])]


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
