"""Slices, pads and two normalisations that onnx.reference gets wrong.

It slices as Python does; ONNX clamps a start before the first element to the first one if the step
is negative. It has no negative pads, treats BatchNormalization before opset 14 as training, and
counts LRN's channels wrongly.

Source: ONNX operators Slice, Pad, BatchNormalization (9, 14), LRN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def slice_positions(start: int, end: int, step: int, n: int) -> range:
    """The positions that a slice of a dim of extent `n` keeps, clamped as ONNX says.

    Raises:
        ValueError: the step is 0.
    """
    first, count = slice_extent(start, end, step, n)
    return range(first, first + count * step, step)


def slice_extent(start: Any, end: Any, step: int, n: Any) -> tuple[Any, Any]:
    """The first position that a slice keeps and how many, as `slice_positions`.

    Ends and extent may be symbolic.
    """
    if step == 0:
        raise ValueError("a step is 0")
    start, end = (v + n if v < 0 else v for v in (start, end))
    if step > 0:
        start, end = min(max(start, 0), n), min(max(end, 0), n)
        return start, max(-((start - end) // step), 0)
    start, end = min(max(start, 0), n - 1), min(max(end, -1), n - 1)
    return start, max(-((end - start) // -step), 0)


def _slice(call: NodeCall) -> list[Array]:
    x = call[0]
    if call.version < 10:
        starts, ends = call.get("starts"), call.get("ends")
        axes, steps = call.get("axes"), None
    else:
        starts, ends = call[1].ravel().tolist(), call[2].ravel().tolist()
        axes = call[3].ravel().tolist() if call.has(3) else None
        steps = call[4].ravel().tolist() if call.has(4) else None
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        positions = slice_positions(int(start), int(end), int(step), x.shape[axis])
        x = np.take(x, np.asarray(positions, np.int64), axis=axis)
    return [x]


def _pad(call: NodeCall) -> list[Array]:
    """Negative pads cut; the others extend what is left."""
    x, mode = call[0], call.get("mode", "constant")
    if call.version < 11:
        pads, axes, fill = list(call.get("pads")), None, call.get("value", 0.0)
    else:
        pads = call[1].ravel().tolist()
        axes = call[3].ravel().tolist() if call.has(3) else None
        fill = call[2].ravel()[0] if call.has(2) else 0
    axes = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    both = [(0, 0)] * x.ndim
    for k, axis in enumerate(axes):
        both[axis] = (pads[k], pads[len(axes) + k])
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(both, x.shape, strict=True))
    wider = [(max(a, 0), max(b, 0)) for a, b in both]
    if mode == "constant":
        return [np.pad(x[cut], wider, constant_values=np.asarray(fill).astype(x.dtype))]
    return [np.pad(x[cut], wider, mode=mode)]


def _batch_normalization(call: NodeCall) -> list[Array]:
    """The inference form, and the training form with the running mean and variance."""
    x = call[0]
    wide = [-1, *[1] * (x.ndim - 2)]
    scale, bias, mean, var = (call[k].reshape(wide) for k in range(1, 5))
    epsilon, momentum = call.get("epsilon", 1e-5), call.get("momentum", 0.9)
    if not call.get("training_mode", 0):
        if any(call.wanted[1:]):
            raise ValueError("mean and variance are results of training only")
        return [(scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype)]
    axes = (0, *range(2, x.ndim))
    now_mean, now_var = x.mean(axis=axes), x.var(axis=axes)
    y = scale * (x - now_mean.reshape(wide)) / np.sqrt(now_var.reshape(wide) + epsilon) + bias
    running = [
        momentum * old + (1 - momentum) * new
        for old, new in ((call[3], now_mean), (call[4], now_var))
    ]
    return [a.astype(t.dtype) for a, t in zip([y, *running], [x, call[3], call[4]], strict=True)]


def _lrn(call: NodeCall) -> list[Array]:
    """x / (bias + alpha / size * the sum of squares of `size` channels around)^beta."""
    x, size = call[0], call.get("size")
    alpha, beta = call.get("alpha", 1e-4), call.get("beta", 0.75)
    before, after = (size - 1) // 2, size // 2
    squares = np.pad(np.square(x), [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, k : k + x.shape[1]] for k in range(size))
    return [(x / (call.get("bias", 1.0) + alpha / size * total) ** beta).astype(x.dtype)]


KERNELS: dict[str, Kernel] = {
    "BatchNormalization": _batch_normalization,
    "LRN": _lrn,
    "Pad": _pad,
    "Slice": _slice,
}
