"""Conversions to floats of 8 and 4 bits, by the tables of ONNX's Cast.

`graph.cast` overflows to infinity or NaN. To saturate, numbers are clipped before:

    Cast(x, to = FLOAT8E4M3FN)    becomes    cast(clip(x, -448, 448))

Powers of two (FLOAT8E8M0) are rounded up by default, or down; these are made of the nearest one.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import Float4E2M1FNType, Float8E8M0FNUType, f32, f64
from xdsl.ir import Attribute, SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, finite_range, is_float, is_small_float
from .node import OnnxNode

_LEAST, _GREATEST = 2.0**-127, 2.0**127
# For each mode the least number that rounds to a power of two in range, and half of the greatest
# (which may leave float32). The greater end is in range if numbers are rounded up, else the lesser.
_IN_RANGE = {
    "up": (_LEAST / 2, _GREATEST / 2),
    "down": (_LEAST, _GREATEST),
    "nearest": (0.75 * _LEAST, 0.75 * _GREATEST),
}


def to_small_float(node: OnnxNode, x: SSAValue, target: Attribute) -> SSAValue:
    """Convert as Cast does, by the node's attributes `saturate` and `round_mode`.

    Raises:
        UserError: there is no such rounding mode.
    """
    if not is_float(element_of(x)) or is_small_float(element_of(x)):
        x = node.cast(x, f32)
    saturate = node.flag("saturate", True)
    if isinstance(target, Float8E8M0FNUType):
        return node.cast(_power_of_two(node, x, saturate), target)
    if saturate and not isinstance(target, Float4E2M1FNType):
        low, high = finite_range(target)
        x = node.build.clip(x, min=low, max=high)
    return node.cast(x, target)


def _power_of_two(node: OnnxNode, x: SSAValue, saturate: bool) -> SSAValue:
    """Powers of two in float32 or float64. NaN stays; what is not positive has no fixed result."""
    mode = node.string("round_mode", "up")
    if mode not in _IN_RANGE:
        found = f"'{mode}'"
        raise UserError("there is no such round_mode", expected="up, down or nearest", found=found)
    build, x = node.build, x if element_of(x) == f64 else node.cast(x, f32)
    inside = build.clip(x, min=_LEAST, max=_GREATEST)
    near = node.cast(node.cast(inside, Float8E8M0FNUType()), element_of(x))
    half = build.mul(near, node.literal(0.5, x))
    found = build.where(build.less(inside, near), half, near)
    if mode != "down":
        doubled = build.add(found, found)
        middle = found if mode == "up" else build.mul(found, node.literal(1.5, x))
        rises = build.less(middle, inside)
        if mode == "nearest":
            rises = build.not_(build.less(inside, middle))
        found = build.where(rises, doubled, found)
    if saturate:
        return found
    halved = build.mul(x, node.literal(0.5, x))
    low, high = (node.literal(end, x) for end in _IN_RANGE[mode])
    if mode == "up":
        inside = build.and_(build.less(low, x), build.not_(build.less(high, halved)))
    else:
        inside = build.and_(build.not_(build.less(x, low)), build.less(halved, high))
    return build.where(inside, found, node.literal(math.nan, x))


__all__ = ["to_small_float"]
