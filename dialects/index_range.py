"""Data-dependent indices must be in [-size, size); any other index is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .errors import UserError
from .types import Array


def check_range(indices: Array, size: int, where: str) -> None:
    """Require all indices in [-size, size).

    Raises:
        UserError: for the first index outside, in row-major order.
    """
    # First a plain pass, which is the whole cost if all indices are good.
    if indices.size == 0 or (indices.min() >= -size and indices.max() < size):
        return
    outside = (indices < -size) | (indices >= size)
    position = np.unravel_index(np.flatnonzero(outside)[0], indices.shape)
    at = f" at {[int(k) for k in position]}" if position else ""
    raise out_of_range(f"{int(indices[position])}{at}", size, where)


def check_columns(indices: Array, sizes: Sequence[int], where: str) -> None:
    """Require all indices in range: of one size, or the columns along the last dim of several.

    Raises:
        UserError: as `check_range`.
    """
    if len(sizes) == 1:
        check_range(indices, sizes[0], where)
        return
    for k, size in enumerate(sizes):
        check_range(indices[..., k], size, where)


def out_of_range(index: str, size: int, where: str) -> UserError:
    """The error for an index into a dim of this size."""
    if size == 0:
        return UserError(f"index {index} is out of range: the dim is empty", where=where)
    return UserError(
        f"index {index} is out of range",
        where=where,
        expected=f"{-size} to {size - 1}, as the dim's size is {size}",
    )


# --- ONNX nodes ---------------------------------------------------------------------------------

Arrays: TypeAlias = "Sequence[Array | None]"
Sizes: TypeAlias = "Callable[[Array, Array, Mapping[str, int]], Sequence[tuple[Array, int]]]"


def _along_axis(x: Array, indices: Array, ints: Mapping[str, int]) -> Sequence[tuple[Array, int]]:
    axis = ints.get("axis", 0)
    return [(indices, x.shape[axis])] if -x.ndim <= axis < x.ndim else []


def _rows(x: Array, indices: Array, ints: Mapping[str, int]) -> Sequence[tuple[Array, int]]:
    batch = ints.get("batch_dims", 0)
    depth = indices.shape[-1] if indices.ndim else 0
    if batch + depth > x.ndim:
        return []
    return [(indices[..., k], x.shape[batch + k]) for k in range(depth)]


_INDEXED: dict[str, Sizes] = {
    "Gather": _along_axis,
    "GatherElements": _along_axis,
    "GatherND": _rows,
    "Scatter": _along_axis,
    "ScatterElements": _along_axis,
    "ScatterND": _rows,
}


def check_node(op_type: str, ints: Mapping[str, int], operands: Arrays, where: str) -> None:
    """Require the indices of an ONNX node, its second operand, to be in range; skip other nodes.

    Args:
        ints: the node's integer attributes.

    Raises:
        UserError: as `check_range`.
    """
    sizes = _INDEXED.get(op_type)
    if sizes is None or len(operands) < 2:
        return
    x, indices = operands[:2]
    if x is None or indices is None or indices.dtype.kind not in "iu":
        return
    for array, size in sizes(x, indices, ints):
        check_range(array, size, where)


def ints_of(node: Any) -> dict[str, int]:
    """A NodeProto's integer attributes."""
    return {a.name: a.i for a in node.attribute if a.HasField("i")}
