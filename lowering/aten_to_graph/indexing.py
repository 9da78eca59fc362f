"""Reads at positions that are data: all become graph.gather on a suitable view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_bool, is_signed_int, shape_of
from .aten import UnsupportedAten
from .node import AtenNode, Converter, axis


def positions(n: AtenNode, indices: SSAValue) -> SSAValue:
    """Positions as graph ops take them: signed integers of 32 or 64 bits."""
    if not is_signed_int(element_of(indices)):
        raise UnsupportedAten("positions are not signed integers")
    return indices if str(element_of(indices)) in ("i32", "i64") else n.cast(indices, i64)


def embedding(n: AtenNode, weight: SSAValue, indices: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Rows of a matrix."""
    return n.op("gather", weight, positions(n, indices), axis=0)


def index_select(n: AtenNode, x: SSAValue, dim: int, indices: SSAValue) -> SSAValue:
    """Slices along a dim."""
    at = positions(n, indices)
    if not shape_of(x):
        raise UnsupportedAten("positions in a scalar")
    return n.op(
        "gather", x, n.reshape(at, [math.prod(shape_of(at))]), axis=axis(dim, len(shape_of(x)))
    )


def index(n: AtenNode, x: SSAValue, indices: Sequence[SSAValue | None]) -> SSAValue:
    """Elements at positions given for neighbouring dims: a gather from those dims flattened."""
    given = [k for k, value in enumerate(indices) if value is not None]
    values = [value for value in indices if value is not None]
    if any(is_bool(element_of(v)) for v in values):
        raise UnsupportedAten("the result's shape depends on data")
    if given != list(range(given[0], given[0] + len(given))):
        raise UnsupportedAten("positions of dims that are no neighbours")
    shape, first, last = shape_of(x), given[0], given[-1] + 1
    parts = n.together(*(n.cast(positions(n, v), i64) for v in values))
    if len(parts) == 1:
        return n.op("gather", x, parts[0], axis=first)
    flat: SSAValue | None = None
    for part, k in zip(parts, given, strict=True):
        step = _steps(n, part, shape[k], math.prod(shape[k + 1 : last]))
        flat = step if flat is None else n.op("add", flat, step)
    assert flat is not None
    merged = [*shape[:first], math.prod(shape[first:last]), *shape[last:]]
    return n.op("gather", n.reshape(x, merged), flat, axis=first)


def _steps(n: AtenNode, indices: SSAValue, size: int, stride: int) -> SSAValue:
    """The distance of elements from the first: position times stride, negative ones from the end.

    A table says it where there are several dims: graph.gather then raises for one outside, where
    arithmetic would silently select an element of another row.
    """
    if size == 0:
        raise UnsupportedAten("positions in an empty dim")
    return n.op("gather", n.range(size, step=stride), indices, axis=0)


def gather(
    n: AtenNode, x: SSAValue, dim: int, indices: SSAValue, sparse_grad: bool = False
) -> SSAValue:
    """One element for each index, at its own place in the other dims."""
    shape, out = shape_of(x), shape_of(indices)
    if not shape or math.prod(out) == 0:
        raise UnsupportedAten("a gather from a scalar, or of nothing")
    k = axis(dim, len(shape))
    strides = [math.prod(shape[j + 1 :]) for j in range(len(shape))]
    table = n.range(shape[k], step=strides[k])
    flat = n.op("gather", table, n.cast(positions(n, indices), i64), axis=0)
    for j, size in enumerate(out):
        if j != k and size > 1:
            steps = n.op("broadcast", n.range(size, step=strides[j]), shape=list(out), dims=[j])
            flat = n.op("add", flat, steps)
    return n.op("gather", n.reshape(x, [math.prod(shape)]), flat, axis=0)


TABLE: dict[str, Converter] = {
    "embedding.default": embedding,
    "index_select.default": index_select,
    "index.Tensor": index,
    "gather.default": gather,
}
