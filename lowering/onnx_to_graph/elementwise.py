"""Elementwise ops: arithmetic with numpy broadcasting, comparisons, logic, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ...dialects.errors import UserError
from ...dialects.types import (
    element_of,
    finite_range,
    is_bool,
    is_float,
    is_signed_int,
    is_small_float,
    is_storage,
    is_unsigned,
    shape_of,
)
from .node import OnnxNode
from .small_floats import to_small_float
from .tensor_data import element_of_number
from .values import NotNative, as_float

Converter: TypeAlias = Callable[[OnnxNode], list[SSAValue]]


def unary(op: str) -> Converter:
    """The graph op with the same meaning, on one operand."""
    return lambda node: [node.build.op(op, node[0])]


def with_floats(op: str, **defaults: float) -> Converter:
    """A unary graph op whose float attributes have ONNX's names and these defaults."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        given: dict[str, Any] = {n: node.float(n, value) for n, value in defaults.items()}
        return [node.build.op(op, node[0], **given)]

    return convert


def binary(op: str) -> Converter:
    """The graph op with the same meaning, on operands broadcast together."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        return [node.build.op(op, *operands(node))]

    return convert


def operands(node: OnnxNode) -> list[SSAValue]:
    """Both operands in their common shape; opset 6 broadcasts only on request, from `axis` on."""
    a, b = node[0], node[1]
    if node.version >= 7 or not node.flag("broadcast"):
        return node.together(a, b)
    if math.prod(shape_of(b)) == 1:
        return node.together(a, node.reshape(b, []))
    lead = len(shape_of(a)) - len(shape_of(b))
    axis = node.axis(node.int("axis", lead), max(len(shape_of(a)), 1)) if lead else 0
    tail = len(shape_of(a)) - axis - len(shape_of(b))
    return node.together(a, node.reshape(b, [*shape_of(b), *[1] * tail]))


def variadic(op: str) -> Converter:
    """Fold a binary op over any number of operands."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        values = node.operands()
        if not values:
            raise UserError("at least one operand is needed")
        return [reduce(lambda a, b: node.build.op(op, a, b), node.together(*values))]

    return convert


def mean(node: OnnxNode) -> list[SSAValue]:
    """The mean of any number of operands."""
    (total,) = variadic("add")(node)
    return [node.build.mul(total, node.literal(1.0 / len(node), total))]


def identity(node: OnnxNode) -> list[SSAValue]:
    """The operand itself: no op."""
    return [node[0]]


def mod(node: OnnxNode) -> list[SSAValue]:
    """The sign of the divisor (fmod=0) or of the dividend (fmod=1); integers only."""
    a, b = operands(node)
    if not is_signed_int(element_of(a)):
        raise NotNative
    build = node.build
    rest = build.sub(a, build.mul(build.div(a, b), b))
    if node.flag("fmod"):
        return [rest]
    zero = node.literal(0, a)
    other_sign = build.xor(build.less(rest, zero), build.less(b, zero))
    wrong = build.and_(other_sign, build.not_(build.equal(rest, zero)))
    return [build.where(wrong, build.add(rest, b), rest)]


def power(node: OnnxNode) -> list[SSAValue]:
    """Base and exponent may differ in type; the result has the base's."""
    base, exponent = node[0], node[1]
    element = element_of(base)
    if is_unsigned(element_of(exponent)):
        raise NotNative
    working = element if is_float(element) else element_of(exponent)
    if node.version < 7:
        base, exponent = operands(node)
    number = node.known(1)
    if number is not None and number.size == 1:  # of the file: kernels are written for it
        exponent = node.reshape(node.scalar(number.item(), working), shape_of(exponent))
    a, b = node.together(node.cast(base, working), node.cast(exponent, working))
    return [node.cast(node.build.pow(a, b), element)]


def equal(node: OnnxNode) -> list[SSAValue]:
    """Equality; of booleans as not-xor."""
    a, b = operands(node)
    if is_bool(element_of(a)):
        return [node.build.not_(node.build.xor(a, b))]
    return [node.build.equal(a, b)]


def where(node: OnnxNode) -> list[SSAValue]:
    """Condition and both operands broadcast together."""
    return [node.build.where(*node.together(node[0], node[1], node[2]))]


def cast(node: OnnxNode) -> list[SSAValue]:
    """Casts to any element type; those to floats of 8 and 4 bits saturate by default."""
    if "to" not in node.attributes:
        raise UserError("attribute 'to' is missing")
    target = element_of_number(node.int("to", 0), node.where)
    return [_converted(node, target)]


def _converted(node: OnnxNode, target: Attribute) -> SSAValue:
    """A conversion; to integers of 2 and 4 bits floats are rounded, not truncated, and wrap."""
    x = node[0]
    if is_small_float(target) and element_of(x) != target:
        return to_small_float(node, x, target)
    if is_storage(target) and is_float(element_of(x)):
        x = node.build.round(x)
    return node.cast(node.cast(x, i32) if is_storage(target) else x, target)


def cast_like(node: OnnxNode) -> list[SSAValue]:
    """Cast to the type of the second operand, whose data are not used."""
    source, target = node.value(0).element, node.value(1).element
    if source is None or target is None:
        raise NotNative
    return [_converted(node, target)]


def is_inf(node: OnnxNode) -> list[SSAValue]:
    """Equal to either infinity, or to one of them."""
    build, x = node.build, node[0]
    positive, negative = node.flag("detect_positive", True), node.flag("detect_negative", True)
    found: list[SSAValue] = []
    if positive:
        found.append(build.equal(x, node.literal(float("inf"), x)))
    if negative:
        found.append(build.equal(x, node.literal(float("-inf"), x)))
    if not found:
        return [build.expand(node.scalar(False, element_of_number(9, "")), shape_of(x))]
    return [reduce(build.or_, found)]


def clip(node: OnnxNode) -> list[SSAValue]:
    """Literal bounds if they are constants that a float64 holds, else min and max ops.

    A missing bound is the lowest or greatest finite number, as in ONNX: infinities are clipped
    to it.
    """
    build, x = node.build, node[0]
    lowest, greatest = finite_range(element_of(x))
    if node.version < 11:
        low, high = (np.asarray(node.float(k, v)) for k, v in (("min", lowest), ("max", greatest)))
    else:
        low = node.known(1) if node.has(1) else np.asarray(lowest)
        high = node.known(2) if node.has(2) else np.asarray(greatest)
    for bound in (low, high):
        if bound is not None and bound.size != 1:
            raise UserError("a bound is not a single number", found=list(bound.shape))
    if low is not None and high is not None:
        least, most = as_float(low), as_float(high)
        if least is not None and most is not None:
            return [build.clip(x, min=least, max=most)]
    for k, end, by in ((1, lowest, build.max), (2, greatest, build.min)):
        if node.has(k):
            x = by(x, build.expand(node.reshape(node[k], []), shape_of(x)))
        elif is_float(element_of(x)):
            x = by(x, node.literal(end, x))
    return [x]


def prelu(node: OnnxNode) -> list[SSAValue]:
    """x where x >= 0, slope * x elsewhere; the slope broadcasts (opset 6: per channel)."""
    x, slope = node[0], node[1]
    if len(shape_of(slope)) == 1 and len(shape_of(x)) > 2 and node.version < 7:
        slope = node.reshape(slope, [*shape_of(slope), *[1] * (len(shape_of(x)) - 2)])
    slope = node.build.expand(slope, shape_of(x))
    negative = node.build.less(x, node.literal(0, x))
    return [node.build.where(negative, node.build.mul(slope, x), x)]


def bitwise_not(node: OnnxNode) -> list[SSAValue]:
    """-x - 1 in two's complement."""
    x = node[0]
    if not is_signed_int(element_of(x)):
        raise NotNative
    return [node.build.sub(node.build.neg(x), node.literal(1, x))]
