"""Round to floats of 8 and 4 bits, as ONNX's Cast without saturation does.

Numbers go to the nearest float, ties to even. Past the greatest one they become infinities, or NaN
in a type without. Two types differ:

- f4E2M1FN has neither. Numbers saturate, and NaN becomes 0, as in a conversion to integers.
- f8E8M0FNU holds powers of two. Ties go up, positive numbers below the least one become it, and
  zero and negative numbers become NaN.

Source: ONNX operator Cast, and its pages on float8 and float4.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import Float4E2M1FNType, Float8E8M0FNUType
from xdsl.ir import Attribute

from .types import Array, to_numpy


def rounded_to(value: Array, element: Attribute) -> Array:
    """Numbers in a small float type, by way of float32, in the type's own dtype."""
    single = np.asarray(value).astype(np.float32)
    if isinstance(element, Float8E8M0FNUType):
        return _power_of_two(single)
    if isinstance(element, Float4E2M1FNType):
        single = np.where(np.isnan(single), np.float32(0), single)
    return single.astype(to_numpy(element))


def _power_of_two(value: Array) -> Array:
    """Round to exponents; ml_dtypes 0.6 rounds up all between 2^-127 and 2^-126."""
    bits = value.view(np.uint32).astype(np.int64)
    code = np.where(bits < 0x800000, bits >= 0x600000, (bits + 0x400000) >> 23)
    known = (bits > 0) & (bits <= 0x7F800000)
    return np.where(known, code, 255).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


__all__ = ["rounded_to"]
