"""Quantised numbers: saturation, ties to even, scales per tensor, per axis or per block.

onnx.reference casts to int32 before it saturates, knows DequantizeLinear only from opset 19 on and
QLinearConv only in two dims.

Source: ONNX operators QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearConv,
QLinearMatMul.
"""

from __future__ import annotations

import itertools

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall

# ONNX numbers of the element types that a quantised tensor or its scale may have here.
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 10: "float16"}


def _spread(parameter: Array, x: Array, call: NodeCall) -> Array:
    """Scale or zero point at every element of x: one for all, per index, or per block."""
    if parameter.size == 1 and parameter.ndim <= 1 and not call.get("block_size", 0):
        return parameter.reshape(())
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if parameter.ndim == 1 and not call.get("block_size", 0):
        return parameter.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    block = call.get("block_size", 0)
    if block <= 0:
        raise ValueError("scales of the operand's rank need a positive block_size")
    positions = np.arange(x.shape[axis]) // block
    return np.take(parameter, positions, axis=axis)


def _saturated(values: Array, dtype: np.dtype) -> Array:
    """Whole numbers in float64, cut to the range of an integer dtype."""
    info = np.iinfo(dtype)
    return np.clip(values, info.min, info.max).astype(dtype)


def _dtype(number: int) -> np.dtype:
    if number not in _DTYPES:
        raise ValueError(f"element type number {number} is not supported")
    return np.dtype(_DTYPES[number])


def _quantize(call: NodeCall) -> list[Array]:
    x, scale = call[0], _spread(call[1], call[0], call)
    if call.get("precision", 0):
        x, scale = (a.astype(_dtype(call.get("precision"))) for a in (x, scale))
    zero = _spread(call[2], x, call) if call.has(2) else None
    dtype = _dtype(call.get("output_dtype", 0) or 2) if zero is None else zero.dtype
    rounded = np.rint(x / scale).astype(np.float64)
    return [_saturated(rounded if zero is None else rounded + zero, dtype)]


def _dequantize(call: NodeCall) -> list[Array]:
    x, scale = call[0], _spread(call[1], call[0], call)
    number = call.get("output_dtype", 0)
    dtype = _dtype(number) if number else scale.dtype
    zero = _spread(call[2], x, call).astype(np.int64) if call.has(2) else 0
    wide = (x.astype(np.int64) - zero).astype(np.float32)
    return [(wide * scale.astype(np.float32)).astype(dtype)]


def _dynamic(call: NodeCall) -> list[Array]:
    """To uint8, the range widened to hold 0; scale 1 where all is 0."""
    x = call[0].astype(np.float32)
    low, high = np.minimum(x.min(initial=0), 0), np.maximum(x.max(initial=0), 0)
    scale = np.float32(1) if high == low else np.float32((high - low) / np.float32(255))
    zero = _saturated(np.rint(-low / scale), np.dtype(np.uint8))
    y = _saturated(np.rint(x / scale).astype(np.float64) + zero, np.dtype(np.uint8))
    return [y, np.asarray(scale), zero]


def _requantized(total: Array, factor: Array, zero: Array) -> Array:
    """Sums of products times the scales, rounded once, in the dtype of the zero point."""
    scaled = np.rint(total.astype(np.float32) * factor.astype(np.float32))
    return _saturated(scaled.astype(np.float64) + zero, zero.dtype)


def _qlinear_matmul(call: NodeCall) -> list[Array]:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (call[k] for k in range(8))
    left = a_scale.reshape(*a_scale.shape, 1) if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    left_zero = a_zero.reshape(*a_zero.shape, 1) if a_zero.ndim == 1 and a_zero.size > 1 else a_zero
    total = (a.astype(np.int64) - left_zero) @ (b.astype(np.int64) - b_zero)
    return [_requantized(total, np.asarray(left * b_scale / y_scale), y_zero)]


def _qlinear_conv(call: NodeCall) -> list[Array]:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (call[k] for k in range(8))
    rank = x.ndim - 2
    ones = [1] * rank
    wide = [-1, *ones]
    kernels = w.astype(np.int64) - (
        w_zero.reshape(-1, 1, *ones) if w_zero.size > 1 else w_zero.reshape(())
    )
    total = _conv(x.astype(np.int64) - x_zero.reshape(()), kernels, call)
    if call.has(8):
        total = total + call[8].astype(np.int64).reshape(wide)
    factor = x_scale.reshape(()) * w_scale / y_scale.reshape(())
    factor = factor.reshape(wide) if factor.size > 1 else factor.reshape(())
    return [_requantized(total, np.asarray(factor), y_zero.reshape(()))]


def _conv(x: Array, w: Array, call: NodeCall) -> Array:
    """A grouped convolution of whole numbers."""
    rank, groups = x.ndim - 2, call.get("group", 1)
    kernel, size = w.shape[2:], x.shape[2:]
    strides = list(call.get("strides") or [1] * rank)
    dilations = list(call.get("dilations") or [1] * rank)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode = call.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max((-(-n // s) - 1) * s + e - n, 0)
            for n, s, e in zip(size, strides, extents, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = less + more if mode == "SAME_UPPER" else more + less
    else:
        pads = [0] * (2 * rank) if mode == "VALID" else list(call.get("pads") or [0] * (2 * rank))
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    out = [(n - e) // s + 1 for n, e, s in zip(x.shape[2:], extents, strides, strict=True)]
    parts: list[Array] = []
    for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True):
        part = np.zeros((x.shape[0], ws.shape[0], *out), np.int64)
        for position in itertools.product(*map(range, kernel)):
            spans = [
                slice(p * d, p * d + (o - 1) * s + 1, s)
                for p, d, o, s in zip(position, dilations, out, strides, strict=True)
            ]
            taken = xs[(slice(None), slice(None), *spans)]
            part += np.einsum("nc...,mc->nm...", taken, ws[(slice(None), slice(None), *position)])
        parts.append(part)
    return np.concatenate(parts, axis=1)


KERNELS: dict[str, Kernel] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
