"""Tensors made of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dims import is_symbolic
from ...dialects.types import is_float, to_numpy
from .aten import UnsupportedAten
from .node import AtenNode, Converter, Number


def filled(n: AtenNode, value: Number) -> SSAValue:
    """The number everywhere."""
    return n.expand(n.scalar(value, n.element), n.shape)


def full(n: AtenNode, size: Sequence[int], value: Number, **_: Any) -> SSAValue:
    """`full(size, value)`."""
    return filled(n, value)


def full_like(n: AtenNode, x: SSAValue, value: Number, **_: Any) -> SSAValue:
    """`full_like(x, value)`."""
    return filled(n, value)


def new_full(n: AtenNode, x: SSAValue, size: Sequence[int], value: Number, **_: Any) -> SSAValue:
    """`x.new_full(size, value)`."""
    return filled(n, value)


def constant(value: Number) -> Converter:
    """One number everywhere, whatever the arguments are."""

    def convert(n: AtenNode, *_: Any, **__: Any) -> SSAValue:
        return filled(n, value)

    return convert


def fill(n: AtenNode, x: SSAValue, value: Number | SSAValue) -> SSAValue:
    """x's shape, filled."""
    if isinstance(value, SSAValue):
        return n.expand(n.cast(value, n.element), n.shape)
    return filled(n, value)


def scalar_tensor(n: AtenNode, value: Number, **_: Any) -> SSAValue:
    """A number as a tensor of rank 0."""
    return filled(n, value)


def arange(n: AtenNode, start: Number, end: Number, step: Number = 1, **_: Any) -> SSAValue:
    """start, start + step, ..."""
    if is_symbolic(n.shape):
        if is_float(n.element):
            raise UnsupportedAten("a range of floats without a number of them")
        return n.cast(n.range(n.shape[0], int(start), int(step)), n.element)
    values = np.asarray(start) + np.arange(n.shape[0]) * np.asarray(step)
    return n.data(values.astype(to_numpy(n.element)))


def arange_start(n: AtenNode, start: Number, end: Number, **_: Any) -> SSAValue:
    """start, start + 1, ..."""
    return arange(n, start, end)


def arange_end(n: AtenNode, end: Number, **_: Any) -> SSAValue:
    """0, 1, ..."""
    return arange(n, 0, end)


def iota(n: AtenNode, length: int, *, start: int, step: int, **_: Any) -> SSAValue:
    """start, start + step, ..., this many."""
    return arange(n, start, 0, step)


def eye(n: AtenNode, *_: Any, **__: Any) -> SSAValue:
    """Ones on the diagonal."""
    return n.data(np.eye(*n.shape, dtype=to_numpy(n.element)))


TABLE: dict[str, Converter] = {
    "full.default": full,
    "full_like.default": full_like,
    "new_full.default": new_full,
    **dict.fromkeys(("zeros.default", "zeros_like.default", "new_zeros.default"), constant(0)),
    **dict.fromkeys(("ones.default", "ones_like.default", "new_ones.default"), constant(1)),
    # What is in new memory is nobody's business: zeros, like anything else.
    **dict.fromkeys(("empty.memory_format", "empty_permuted.default"), constant(0)),
    **dict.fromkeys(("fill.Scalar", "fill.Tensor"), fill),
    "scalar_tensor.default": scalar_tensor,
    "arange.start_step": arange,
    "arange.start": arange_start,
    "arange.default": arange_end,
    "iota.default": iota,
    **dict.fromkeys(("eye.default", "eye.m"), eye),
}
