"""numpy functions for ONNX reductions, softmaxes, a norm, Det and Softsign.

They replace those of onnx.reference, which changes the dtype of integer sums of squares, fails on
integers under a logarithm, uses today's meaning of Softmax before opset 13, adds signed values for
a 1-norm, and fails on float16 in Det and on scalars in Softsign.

Source: ONNX operators ReduceSumSquare, ReduceLogSum, ReduceLogSumExp, ReduceL2, Softmax (11, 13),
LogSoftmax, Hardmax, LpNormalization, Det, Softsign.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def _reduction(compute: Callable[[Array, tuple[int, ...], bool], Array], since: int = 18) -> Kernel:
    """A reduction; integers are computed in float64 where `compute` needs it.

    `since`: the opset (`call.version`) from which the axes are an operand, not an attribute.
    """

    def run(call: NodeCall) -> list[Array]:
        x = call[0]
        given = call.get("axes")
        if call.version >= since:
            given = call[1].ravel().tolist() if call.has(1) else []
        axes = tuple(int(a) % max(x.ndim, 1) for a in given or [])
        if not axes and not call.get("noop_with_empty_axes", 0):
            axes = tuple(range(x.ndim))
        return [np.asarray(compute(x, axes, bool(call.get("keepdims", 1)))).astype(x.dtype)]

    return run


def _sum_square(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.sum(x * x, axis=axes, keepdims=keep, dtype=x.dtype)


def _integers_as_float64(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


def _l2(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    x = _integers_as_float64(x)
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=keep))


def _log_sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.log(np.sum(_integers_as_float64(x), axis=axes, keepdims=keep))


def _log_sum_exp(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    x = _integers_as_float64(x)
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    found = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return found if keep else np.squeeze(found, axis=axes)


def _along(compute: Callable[[Array], Array]) -> Kernel:
    """Along one axis; before opset 13 along all dims from `axis` (1 by default) on."""

    def run(call: NodeCall) -> list[Array]:
        x = call[0]
        if call.version < 13:
            axis = call.get("axis", 1)
            axis = axis + x.ndim if axis < 0 else axis
            rows = math.prod(x.shape[:axis])
            flat = x.reshape(rows, math.prod(x.shape[axis:]))
            return [compute(flat).reshape(x.shape)]
        moved = np.moveaxis(x, call.get("axis", -1), -1)
        return [np.moveaxis(compute(moved), -1, call.get("axis", -1))]

    return run


def _half_as_single(compute: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """2-byte floats are computed in float32 and rounded once."""

    def run(x: Array) -> Array:
        return compute(x.astype(np.float32) if x.dtype.itemsize == 2 else x).astype(x.dtype)

    return run


def _softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _hardmax(x: Array) -> Array:
    positions = np.arange(x.shape[-1])
    return (positions == x.argmax(axis=-1)[..., None]).astype(x.dtype)


def _lp_normalization(call: NodeCall) -> list[Array]:
    """x / its norm; 0 where the norm is 0."""
    x, axis, p = call[0], call.get("axis", -1), call.get("p", 2)
    norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1.0 / p)
    return [np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype)]


def _determinant(call: NodeCall) -> list[Array]:
    wide = call[0].astype(np.result_type(call[0].dtype, np.float32))
    return [np.asarray(np.linalg.det(wide)).astype(call[0].dtype)]


def _softsign(call: NodeCall) -> list[Array]:
    return [(call[0] / (1 + np.abs(call[0]))).astype(call[0].dtype)]


KERNELS: dict[str, Kernel] = {
    "Det": _determinant,
    "Hardmax": _along(_hardmax),
    "LogSoftmax": _along(_half_as_single(_log_softmax)),
    "LpNormalization": _lp_normalization,
    "ReduceL2": _reduction(_l2),
    "ReduceLogSum": _reduction(_log_sum),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceSumSquare": _reduction(_sum_square),
    "Softmax": _along(_half_as_single(_softmax)),
    "Softsign": _softsign,
}
