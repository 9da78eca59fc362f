"""Reads and writes at data-dependent positions.

onnx.reference's GatherElements requires equal extents off the axis, and it has no Scatter.

Source: ONNX operators GatherElements, Scatter (9).
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


def _gather_elements(call: NodeCall) -> list[Array]:
    x, positions = call[0], call[1].astype(np.int64)
    axis = call.get("axis", 0) % max(x.ndim, 1)
    _require_inside(positions, x.shape[axis])
    if positions.ndim != x.ndim:
        raise ValueError("the indices have another rank than the operand")
    return [x[_at(positions % max(x.shape[axis], 1), axis)]]


def _scatter(call: NodeCall) -> list[Array]:
    """What ScatterElements does without reduction."""
    y, positions = call[0].copy(), call[1].astype(np.int64)
    axis = call.get("axis", 0) % max(y.ndim, 1)
    _require_inside(positions, y.shape[axis])
    y[_at(positions % max(y.shape[axis], 1), axis)] = call[2]
    return [y]


def _require_inside(positions: Array, size: int) -> None:
    wrong = positions[(positions < -size) | (positions >= size)]
    if wrong.size:
        raise ValueError(f"index {wrong.flat[0]} is outside [-{size}, {size})")


def _at(positions: Array, axis: int) -> tuple[Array, ...]:
    """For each element its own position, with `positions` along the axis."""
    grids = list(np.indices(positions.shape))
    grids[axis] = positions
    return tuple(grids)


KERNELS: dict[str, Kernel] = {"GatherElements": _gather_elements, "Scatter": _scatter}
