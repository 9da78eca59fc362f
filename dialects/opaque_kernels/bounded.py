"""Ops whose results have as many rows as the data say: padded with zeros, their number beside them.

They are nodes of the domain `isoform`, with the operands and attributes of ONNX. The last result is
the number of rows (i64). Scatters from such rows have their number as the last operand, and an
attribute that says of which dim.

Source: ONNX operators NonZero, Compress, Unique, NonMaxSuppression, ScatterND, ScatterElements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall

DOMAIN = "isoform"


def bound_of(op_type: str, shapes: Sequence[Sequence[int]], axis: int | None, most: int) -> int:
    """The most rows that a node can have.

    Args:
        shapes: of its operands.
        axis: of Compress and Unique, None where they flatten.
        most: the boxes of each class, for NonMaxSuppression.
    """
    x = shapes[0]
    if op_type == "NonMaxSuppression":
        return x[0] * shapes[1][1] * min(most, x[1])
    size = math.prod(x) if axis is None else x[axis]
    return min(size, math.prod(shapes[1])) if op_type == "Compress" else size


def _padded(rows: Array, count: int, dim: int) -> Array:
    """Zeros after the rows of a dim, up to `count`."""
    widths = [(0, count - n if k == dim else 0) for k, n in enumerate(rows.shape)]
    return np.pad(rows, widths)


def _number(rows: Array, dim: int) -> Array:
    return np.asarray(rows.shape[dim], np.int64)


def _non_zero(call: NodeCall) -> list[Array]:
    found = np.stack(np.nonzero(np.atleast_1d(call[0]))).astype(np.int64)
    return [_padded(found, call[0].size, 1), _number(found, 1)]


def _axis(call: NodeCall) -> int | None:
    axis = call.get("axis")
    return None if axis is None else int(axis) % call[0].ndim


def _compress(call: NodeCall) -> list[Array]:
    x, axis, condition = call[0], _axis(call), call[1].astype(bool)
    most = bound_of("Compress", [x.shape, condition.shape], axis, 0)
    found = np.compress(condition[:most], x, axis)
    return [_padded(found, most, axis or 0), _number(found, axis or 0)]


def _unique(call: NodeCall) -> list[Array]:
    x, axis = call[0], _axis(call)
    found, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        place = np.argsort(order, kind="stable")
        found = np.take(found, order, axis or 0)
        first, counts, inverse = first[order], counts[order], place[inverse]
    number = _number(found, axis or 0)
    most = x.size if axis is None else x.shape[axis]
    rows = [_padded(a.astype(np.int64), most, 0) for a in (first, counts)]
    values = _padded(found, most, axis or 0)
    return [values, rows[0], inverse.astype(np.int64), rows[1], number]


def _corners(boxes: Array, center: bool) -> Array:
    """Lower and upper ends of boxes along both dims: [n, 4]."""
    if center:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    return np.concatenate(
        [np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1
    )


def _suppressed(box: Array, others: Array, threshold: float) -> Array:
    """Which boxes overlap one by more than a share of their union."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), 1)
    area = np.prod(box[2:] - box[:2])
    union = area + np.prod(others[:, 2:] - others[:, :2], 1) - common
    return (union > 0) & (common > threshold * union)


def _number_of(call: NodeCall, k: int, default: float) -> float:
    return float(call[k].reshape(-1)[0]) if call.has(k) else default


def _non_max_suppression(call: NodeCall) -> list[Array]:
    boxes, scores = call[0], call[1]
    most = max(int(_number_of(call, 2, 0)), 0)
    overlap, least = _number_of(call, 3, 0.0), _number_of(call, 4, -math.inf)
    rows: list[tuple[int, int, int]] = []
    for b in range(scores.shape[0]):
        ends = _corners(boxes[b], bool(call.get("center_point_box", 0)))
        for c in range(scores.shape[1]):
            alive = scores[b, c] > least
            for _ in range(min(most, boxes.shape[1])):
                if not alive.any():
                    break
                best = int(np.argmax(np.where(alive, scores[b, c], -np.inf)))
                rows.append((b, c, best))
                alive &= ~_suppressed(ends[best], ends, overlap)
                alive[best] = False
    found = np.array(rows, np.int64).reshape(-1, 3)
    shapes = [boxes.shape, scores.shape]
    bound = bound_of("NonMaxSuppression", shapes, None, int(call.get("most", most)))
    return [_padded(found, bound, 0), _number(found, 0)]


def counted(inputs: Sequence[Array | None], dim: int) -> list[Array]:
    """The operands of a scatter without those rows of a dim that do not count."""
    x, indices, updates, count = (a for a in inputs if a is not None)
    rows = (slice(None),) * dim + (slice(int(count)),)
    return [x, indices[rows], updates[rows]]


def _scatter_nd(call: NodeCall) -> list[Array]:
    x, indices, updates = counted(call.inputs, call.get("dim"))
    y, at = x.copy(), tuple(np.moveaxis(indices.astype(np.int64), -1, 0))
    return [_scattered(y, at, updates, call.get("reduction", "none"))]


def _scatter_elements(call: NodeCall) -> list[Array]:
    x, indices, updates = counted(call.inputs, call.get("dim"))
    y, axis = x.copy(), call.get("axis", 0) % x.ndim
    at = list(np.indices(indices.shape))
    at[axis] = indices.astype(np.int64)
    return [_scattered(y, tuple(at), updates, call.get("reduction", "none"))]


def _scattered(y: Array, at: tuple[Array, ...], updates: Array, how: str) -> Array:
    """Updates put into an array, in order."""
    if how == "none":
        y[at] = updates
    else:
        {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how].at(
            y, at, updates
        )
    return y


KERNELS: dict[str, Kernel] = {
    "Compress": _compress,
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _non_zero,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Unique": _unique,
}
