"""Bytes over the range of data, in graph ops: what ONNX's DynamicQuantizeLinear computes."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from .builder import GraphBuilder
from .types import from_numpy, shape_of

UINT8 = from_numpy(np.uint8)


def to_bytes(build: GraphBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Unsigned bytes of floats, their scale, their zero point: x = (bytes - zero) * scale.

    The range is that of the data, widened to hold 0; where all are 0 the scale is 1.

    Dtypes: x is f32; the bytes and the zero point are ui8, the scale is f32.
    """
    axes = list(range(len(shape_of(x))))
    zero = _number(build, 0.0)
    low = build.min(build.reduce_min(x, axes=axes, keep_dims=False), zero)
    high = build.max(build.reduce_max(x, axes=axes, keep_dims=False), zero)
    scale = build.div(build.sub(high, low), _number(build, 255.0))
    scale = build.where(build.equal(high, low), _number(build, 1.0), scale)
    point = build.round(build.div(build.sub(zero, low), scale))
    point = build.cast(point, to=UINT8)
    whole = build.round(build.div(x, build.expand(scale, shape_of(x))))
    shifted = build.add(whole, build.expand(build.cast(point, to=f32), shape_of(x)))
    return build.cast(shifted, to=UINT8), scale, point


def _number(build: GraphBuilder, value: float, element: Attribute = f32) -> SSAValue:
    return build.constant(np.asarray(value), element)


__all__ = ["UINT8", "to_bytes"]
