"""Quantised numbers: integers that stand for floats, by a scale and a zero point.

    x = (q - zero) * scale        q = saturated(round(x / scale) + zero)

A scale or zero point is one number, one for each index of an axis, or one for each block along it.
Differences with zero points are taken in 32 bits, products are sums of 32 bits: both are exact.

Source: ONNX operators QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearConv,
QLinearMatMul, MatMulInteger, ConvInteger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.byte_ranges import UINT8, to_bytes
from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, is_small_float, is_unsigned, shape_of
from .contraction import product, window, window_pads
from .node import OnnxNode
from .small_floats import to_small_float
from .tensor_data import element_of_number
from .values import NotNative

# --- scales and zero points ---


def spread(node: OnnxNode, parameter: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A scale or zero point at every element of a tensor of this shape.

    Raises:
        UserError: it has neither one number, nor one for each index or block of the axis.
    """
    given, block = shape_of(parameter), node.int("block_size", 0)
    if math.prod(given) == 1 and not (block and len(given) > 1):
        return node.build.expand(node.reshape(parameter, []), shape)
    axis = node.axis(node.int("axis", 1), len(shape))
    if len(given) == 1 and not block:
        if given[0] != shape[axis]:
            raise UserError(f"one scale for each of {shape[axis]} is needed", found=given[0])
        return node.build.expand(node.reshape(parameter, _along(given[0], axis, shape)), shape)
    return _blocked(node, parameter, shape, axis, block)


def _along(size: int, axis: int, shape: Sequence[int]) -> list[int]:
    return [size if k == axis else 1 for k in range(len(shape))]


def _blocked(
    node: OnnxNode, parameter: SSAValue, shape: Sequence[int], axis: int, block: int
) -> SSAValue:
    """Each number `block` times along the axis; the last block may be cut."""
    given = shape_of(parameter)
    if block <= 0:
        raise UserError("scales of the operand's rank need a positive block_size", found=block)
    wanted = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
    if given != wanted:
        raise UserError("scales fit no blocks", expected=list(wanted), found=list(given))
    apart = node.reshape(parameter, [*given[: axis + 1], 1, *given[axis + 1 :]])
    repeated = node.build.expand(apart, [*given[: axis + 1], block, *given[axis + 1 :]])
    whole = [*given[:axis], given[axis] * block, *given[axis + 1 :]]
    joined = node.reshape(repeated, whole)
    if whole[axis] == shape[axis]:
        return joined
    zeros, ones = [0] * len(shape), [1] * len(shape)
    return node.build.slice(joined, starts=zeros, sizes=list(shape), steps=ones)


def without_zero(node: OnnxNode, k: int, zero: int, *, rows: bool = False) -> SSAValue:
    """Operand `k` minus its zero point, in 32 bits (64 where the operand has 32).

    `rows` says that several zero points belong to the rows of a matrix.
    """
    x = node[k]
    element = _wide(element_of(x))
    wide = node.cast(x, element)
    known = node.known(zero) if node.has(zero) else np.zeros(1)
    if known is not None and not np.asarray(known).astype(np.float64).any():
        return wide
    return node.build.sub(wide, _zero(node, zero, element, shape_of(x), rows=rows))


def _wide(element: Attribute) -> Attribute:
    """The type in which a difference of two numbers of an integer or small float is exact."""
    if is_small_float(element):
        return f32
    if is_float(element) or not isinstance(element, IntegerType):
        raise NotNative
    bits = element.width.data + int(is_unsigned(element))
    if bits > 33:
        raise NotNative
    return i32 if bits < 32 else i64


def _zero(
    node: OnnxNode, k: int, element: Attribute, shape: Sequence[int], *, rows: bool
) -> SSAValue:
    """A zero point at every element: of rows, of columns, or as its scale is spread."""
    known = node.known(k)
    if known is not None and known.size == 1:  # as a literal: kernels are specialised to it
        return node.build.expand(node.scalar(int(known.ravel()[0]), element), shape)
    zero = node.cast(node[k], element)
    if rows and len(shape_of(zero)) == 1 and shape_of(zero) != (1,):
        zero = node.reshape(zero, [*shape_of(zero), 1])
    elif not rows:
        return spread(node, zero, shape)
    return node.build.expand(zero, shape)


# --- conversions ---


def dequantize(node: OnnxNode) -> list[SSAValue]:
    """(x - zero) * scale, in float32, rounded to the result's type."""
    scale = node[1]
    number = node.int("output_dtype", 0)
    element = element_of_number(number, node.where) if number else element_of(scale)
    if not is_float(element_of(scale)):
        raise NotNative
    wide = node.cast(without_zero(node, 0, 2), f32)
    by = spread(node, node.cast(scale, f32), shape_of(wide))
    return [node.cast(node.build.mul(wide, by), element)]


def quantize(node: OnnxNode) -> list[SSAValue]:
    """round(x / scale) + zero, ties to even, saturated; a small float rounds itself."""
    x, scale = (node.cast(v, _precision(node)) for v in (node[0], node[1]))
    number = node.int("output_dtype", 0)
    target = element_of_number(number, node.where) if number else UINT8
    if node.has(2):
        zero = node.value(2).element
        if zero is None:
            raise NotNative
        target = zero
    scaled = node.build.div(x, spread(node, scale, shape_of(x)))
    if is_small_float(target):
        return [to_small_float(node, _moved(node, scaled, 2), target)]
    if is_float(target):
        raise NotNative
    return [requantized(node, node.build.round(scaled), 2, target)]


def _precision(node: OnnxNode) -> Attribute:
    """The type of a quantiser's division: as it says, else the scale's."""
    if number := node.int("precision", 0):
        return element_of_number(number, node.where)
    wide = (t for v in (node[1], node[0]) if is_float(t := element_of(v)) and not is_small_float(t))
    return next(wide, f64)


def requantized(node: OnnxNode, rounded: SSAValue, zero: int, target: Attribute) -> SSAValue:
    """Whole floats plus a zero point, saturated: sums past 2^24 are out of range anyway."""
    wide = node.cast(rounded, f32) if element_of(rounded) != f64 else rounded
    return node.cast(_moved(node, wide, zero), target)


def _moved(node: OnnxNode, x: SSAValue, zero: int) -> SSAValue:
    """Floats plus a zero point; x itself where that is known to be 0."""
    known = node.known(zero) if node.has(zero) else np.zeros(1)
    if known is not None and not np.asarray(known).astype(np.float64).any():
        return x
    return node.build.add(x, _point(node, zero, element_of(x), shape_of(x)))


def _point(node: OnnxNode, k: int, element: Attribute, shape: Sequence[int]) -> SSAValue:
    """A zero point as a float, at every element."""
    known = node.known(k)
    if known is not None and known.size == 1:
        return node.build.expand(node.scalar(float(known.ravel()[0]), element), shape)
    return spread(node, node.cast(node[k], element), shape)


def dynamic_quantize(node: OnnxNode) -> list[SSAValue]:
    """To uint8, over the range of the data widened to hold 0; scale 1 where all is 0."""
    return list(to_bytes(node.build, node.cast(node[0], f32)))


# --- products ---


def matmul_integer(node: OnnxNode) -> list[SSAValue]:
    """Products of 8-bit integers, summed in 32 bits."""
    return [_integer_product(node, (0, 2), (1, 3))]


def _integer_product(node: OnnxNode, left: tuple[int, int], right: tuple[int, int]) -> SSAValue:
    """The product of two operands, each given with its zero points."""
    return product(node, without_zero(node, *left, rows=True), _columns(node, *right))


def _columns(node: OnnxNode, k: int, zero: int) -> SSAValue:
    """Operand `k` minus its zero points, which belong to the columns if there are several."""
    known = node.known(zero) if node.has(zero) else np.zeros(1)
    element, wide = _wide(element_of(node[k])), node.cast(node[k], _wide(element_of(node[k])))
    if known is not None and not np.asarray(known).any():
        return wide
    if known is not None and known.size == 1:
        return node.build.sub(wide, node.literal(int(known.ravel()[0]), wide))
    point = node.cast(node[zero], element)
    point = node.reshape(point, []) if math.prod(shape_of(point)) == 1 else point
    return node.build.sub(wide, node.build.expand(point, shape_of(wide)))


def conv_integer(node: OnnxNode) -> list[SSAValue]:
    """A convolution of 8-bit integers, summed in 32 bits; zeros of x lie outside."""
    return [_integer_conv(node, (0, 2), (1, 3))]


def _integer_conv(node: OnnxNode, data: tuple[int, int], filters: tuple[int, int]) -> SSAValue:
    """A convolution of two operands, each given with its zero points."""
    size, kernel, strides, dilations = window(node, data[0], filters[0])
    pads = window_pads(node, size, kernel, strides, dilations)
    x, w = without_zero(node, *data, rows=True), _filters(node, *filters)
    groups = node.int("group", 1)
    return node.build.conv(x, w, strides=strides, pads=pads, dilations=dilations, groups=groups)


def _filters(node: OnnxNode, k: int, zero: int) -> SSAValue:
    """Weights minus their zero points, which belong to the filters if there are several."""
    shape = node.shape(k)
    if not node.has(zero) or math.prod(node.shape(zero)) == 1:
        return _columns(node, k, zero)
    known = node.known(zero)
    wide = node.cast(node[k], i32)
    if known is not None and not known.any():
        return wide
    point = node.reshape(node.cast(node[zero], i32), _along(shape[0], 0, shape))
    return node.build.sub(wide, node.build.expand(point, shape))


def qlinear_matmul(node: OnnxNode) -> list[SSAValue]:
    """A product of integers, quantised: scales of rows and columns multiply it once."""
    total = _integer_product(node, (0, 2), (3, 5))
    a_scale = node.cast(node[1], f32)
    if len(shape_of(a_scale)) == 1 and shape_of(a_scale) != (1,):
        a_scale = node.reshape(a_scale, [*shape_of(a_scale), 1])
    factor = _factor(node, a_scale, node.cast(node[4], f32), node.cast(node[6], f32))
    return [_rescaled(node, total, factor, 7)]


def qlinear_conv(node: OnnxNode) -> list[SSAValue]:
    """A convolution of integers with a bias in 32 bits, quantised."""
    total = _integer_conv(node, (0, 2), (3, 5))
    shape = shape_of(total)
    if node.has(8):
        bias = node.reshape(node.cast(node[8], i32), _along(shape[1], 1, shape))
        total = node.build.add(total, node.build.expand(bias, shape))
    w_scale = node.cast(node[4], f32)
    if math.prod(shape_of(w_scale)) != 1:
        w_scale = node.reshape(w_scale, _along(shape[1], 1, shape))
    factor = _factor(node, node.cast(node[1], f32), w_scale, node.cast(node[6], f32))
    return [_rescaled(node, total, factor, 7)]


def _factor(node: OnnxNode, left: SSAValue, right: SSAValue, result: SSAValue) -> SSAValue:
    """left * right / result; those of one number count as scalars."""
    scales = (left, right, result)
    parts = [node.reshape(s, []) if math.prod(shape_of(s)) == 1 else s for s in scales]
    made = node.build.mul(*node.together(*parts[:2]))
    return node.build.div(*node.together(made, parts[2]))


def _rescaled(node: OnnxNode, total: SSAValue, factor: SSAValue, zero: int) -> SSAValue:
    """A sum of 32 bits times a factor, rounded once, plus the zero point, saturated."""
    floats = node.cast(total, f32)
    scaled = node.build.mul(floats, node.build.expand(factor, shape_of(floats)))
    target = node.value(zero).element
    if target is None:
        raise NotNative
    return requantized(node, node.build.round(scaled), zero, target)
