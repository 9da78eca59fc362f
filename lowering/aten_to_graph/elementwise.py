"""Elementwise arithmetic, comparisons, logic and casts."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.types import (
    element_of,
    finite_range,
    is_bool,
    is_float,
    is_signed_int,
    shape_of,
    tensor_type,
)
from .aten import DType, UnsupportedAten
from .node import AtenNode, Converter, Number, Operand, composed, wide


def unary(op: str) -> Converter:
    """The graph op with the same meaning; integers become floats first where the result is one."""

    def convert(n: AtenNode, x: SSAValue) -> SSAValue:
        return n.op(op, n.cast(x, n.element))

    return convert


def rounding(op: str) -> Converter:
    """A rounding: integers stay what they are."""
    return lambda n, x: n.op(op, x) if is_float(n.element) else x


def binary(op: str) -> Converter:
    """The graph op with the same meaning, on operands of the result's type."""
    return lambda n, a, b: n.op(op, *n.operands(a, b))


def add(n: AtenNode, a: Operand, b: Operand, alpha: Number = 1) -> SSAValue:
    """a + alpha * b; of booleans `or`."""
    if is_bool(n.element):
        return n.op("or", *n.operands(a, b))
    return n.op("add", *_scaled(n, a, b, alpha))


def sub(n: AtenNode, a: Operand, b: Operand, alpha: Number = 1) -> SSAValue:
    """a - alpha * b."""
    return n.op("sub", *_scaled(n, a, b, alpha))


def rsub(n: AtenNode, a: Operand, b: Operand, alpha: Number = 1) -> SSAValue:
    """b - alpha * a."""
    return sub(n, b, a, alpha)


def _scaled(n: AtenNode, a: Operand, b: Operand, alpha: Number) -> list[SSAValue]:
    if alpha == 1:
        return n.operands(a, b)
    scaled = n.op("mul", *n.operands(b, alpha))
    return n.operands(a, scaled)


def mul(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
    """a * b; of booleans `and`."""
    return n.op("and" if is_bool(n.element) else "mul", *n.operands(a, b))


def div(n: AtenNode, a: Operand, b: Operand, rounding_mode: str | None = None) -> SSAValue:
    """a / b, of integers as floats; or rounded to zero, or down."""
    if rounding_mode == "floor":
        return floor_divide(n, a, b)
    if rounding_mode == "trunc":
        quotient = n.op("div", *_exactly(n, a, b))
        return n.cast(_truncated(n, quotient), n.element) if is_float(n.element) else quotient
    return n.op("div", *n.operands(a, b))


def floor_divide(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
    """The quotient rounded down: exact, from the remainder."""
    x, y = _exactly(n, a, b)
    one, rest = n.literal(1, x), _rest(n, x, y)
    quotient = n.op("div", n.op("sub", x, rest), y)
    quotient = n.op("where", _other_sign(n, rest, y), n.op("sub", quotient, one), quotient)
    if not is_float(n.element):
        return quotient
    down = n.op("floor", quotient)  # the division may have rounded a whole number
    far = n.op("greater", n.op("sub", quotient, down), n.literal(0.5, x))
    down = n.op("where", far, n.op("add", down, one), down)
    by_zero = n.op("equal", y, n.literal(0, y))
    return n.cast(n.op("where", by_zero, n.op("div", x, y), down), n.element)


def remainder(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
    """The remainder with the divisor's sign."""
    x, y = (n.cast(v, wide(n.element)) for v in n.operands(a, b))
    rest = _rest(n, x, y)
    rest = n.op("where", _other_sign(n, rest, y), n.op("add", rest, y), rest)
    return n.cast(rest, n.element)


def fmod(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
    """The remainder with the dividend's sign."""
    return n.cast(_rest(n, *(n.cast(v, wide(n.element)) for v in n.operands(a, b))), n.element)


def _exactly(n: AtenNode, *values: Operand) -> list[SSAValue]:
    """The operands of a rounded quotient: numbers are not rounded to half floats before."""
    return n.operands(
        *(n.cast(v, n.element) if isinstance(v, SSAValue) and shape_of(v) else v for v in values),
        element=wide(n.element),
    )


def _rest(n: AtenNode, x: SSAValue, y: SSAValue) -> SSAValue:
    """The exact remainder with the sign of x; a node runs it for floats."""
    if is_float(n.element):
        return n.onnx("Mod", [x, y], [tensor_type(x)], fmod=1)[0]
    if not is_signed_int(n.element):
        raise UnsupportedAten("unsigned integers are not divided")
    return n.op("sub", x, n.op("mul", n.op("div", x, y), y))


def _other_sign(n: AtenNode, rest: SSAValue, y: SSAValue) -> SSAValue:
    """Whether a remainder is not 0 and has another sign than the divisor."""
    zero = n.literal(0, y)
    differ = n.op("xor", n.op("less", rest, zero), n.op("less", y, zero))
    return n.op("and", differ, n.op("not", n.op("equal", rest, zero)))


def power(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
    """a ** b; small whole exponents and roots as products and square roots."""
    if not isinstance(b, SSAValue) and isinstance(a, SSAValue) and is_float(n.element):
        x = n.cast(a, n.element)
        match float(b):
            case 1.0:
                return x
            case 2.0:
                return n.op("mul", x, x)
            case 3.0:
                return n.op("mul", n.op("mul", x, x), x)
            case 0.5:
                return n.op("sqrt", x)
            case -0.5:
                return n.op("reciprocal", n.op("sqrt", x))
            case -1.0:
                return n.op("reciprocal", x)
            case _:
                pass
    if not is_float(n.element):
        if not isinstance(b, SSAValue) and b == 2:
            x = n.value(a, n.element)
            return n.op("mul", x, x)
        raise UnsupportedAten("a power of integers")
    return n.op("pow", *n.operands(a, b))


def compare(op: str, negated: bool = False) -> Converter:
    """A comparison in the promoted type; booleans as integers."""

    def convert(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
        x, y = n.promoted(a, b)
        if is_bool(element_of(x)):
            x, y = n.cast(x, i32), n.cast(y, i32)
        found = n.op(op, x, y)
        return n.op("not", found) if negated else found

    return convert


def logical(op: str) -> Converter:
    """A logical op: numbers count as true where they are not 0."""
    return lambda n, a, b: n.op(op, *n.operands(a, b))


def bitwise(op: str) -> Converter:
    """A bitwise op, of booleans."""

    def convert(n: AtenNode, a: Operand, b: Operand) -> SSAValue:
        if not is_bool(n.element):
            raise UnsupportedAten("bits of integers")
        return n.op(op, *n.operands(a, b))

    return convert


def logical_not(n: AtenNode, x: SSAValue) -> SSAValue:
    """Whether x is 0."""
    return n.op("not", n.cast(x, n.element))


def bitwise_not(n: AtenNode, x: SSAValue) -> SSAValue:
    """Not; of integers -x - 1."""
    if is_bool(n.element):
        return n.op("not", x)
    return n.op("sub", n.op("neg", x), n.literal(1, x))


def where(n: AtenNode, condition: SSAValue, a: Operand, b: Operand) -> SSAValue:
    """a where the condition holds, b elsewhere."""
    x, y = n.value(a, n.element), n.value(b, n.element)
    return n.op("where", *n.together(condition, x, y))


def masked_fill(n: AtenNode, x: SSAValue, mask: SSAValue, value: Operand) -> SSAValue:
    """The value where the mask holds, x elsewhere."""
    return where(n, mask, value, x)


def clamp(
    n: AtenNode, x: SSAValue, low: Operand | None = None, high: Operand | None = None
) -> SSAValue:
    """min(max(x, low), high), in torch's order; NaN stays NaN."""
    y = n.cast(x, n.element)
    if low is not None:
        y = n.op("max", *n.operands(y, low))
    if high is not None:
        y = n.op("min", *n.operands(y, high))
    return n.expand(y, n.shape)


def clamp_min(n: AtenNode, x: SSAValue, low: Operand) -> SSAValue:
    """max(x, low)."""
    return clamp(n, x, low)


def clamp_max(n: AtenNode, x: SSAValue, high: Operand) -> SSAValue:
    """min(x, high)."""
    return clamp(n, x, None, high)


def to_copy(n: AtenNode, x: SSAValue, **_: Any) -> SSAValue:
    """A conversion to the result's element type."""
    source, target = element_of(x), n.element
    if is_float(source) and not is_float(target) and not is_bool(target):
        return n.cast(n.op("clip", x, min=-(2.0**62), max=2.0**62), target)
    return n.cast(x, target)


def convert_element_type(n: AtenNode, x: SSAValue, dtype: DType) -> SSAValue:
    """A conversion of the element type."""
    return to_copy(n, x)


def identity(n: AtenNode, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """The operand itself."""
    return x


def sign(n: AtenNode, x: SSAValue) -> SSAValue:
    """-1, 0 or 1; 0 for NaN, where the graph op keeps NaN."""
    if is_bool(n.element):
        return x
    zero, one = n.literal(0, x), n.literal(1, x)
    negative = n.op("where", n.op("less", x, zero), n.op("neg", one), zero)
    return n.op("where", n.op("greater", x, zero), one, negative)


def is_nan(n: AtenNode, x: SSAValue) -> SSAValue:
    """Whether NaN."""
    return (
        n.op("is_nan", x)
        if is_float(element_of(x))
        else n.expand(n.scalar(False, n.element), n.shape)
    )


def is_inf(n: AtenNode, x: SSAValue) -> SSAValue:
    """Whether an infinity."""
    if not is_float(element_of(x)):
        return n.expand(n.scalar(False, n.element), n.shape)
    return n.op("equal", n.op("abs", x), n.literal(math.inf, x))


def _truncated(n: AtenNode, x: SSAValue) -> SSAValue:
    down, up = n.op("floor", x), n.op("ceil", x)
    return n.op("where", n.op("less", x, n.literal(0, x)), up, down)


def truncate(n: AtenNode, x: SSAValue) -> SSAValue:
    """Rounded to zero."""
    return _truncated(n, x) if is_float(n.element) else x


def _frac(n: AtenNode, x: SSAValue) -> SSAValue:
    return n.op("sub", x, _truncated(n, x))


def expm1(n: AtenNode, x: SSAValue) -> SSAValue:
    """exp(x) - 1, exact near 0: elu has it for x < 0, and -exp(x) * expm1(-x) for the others."""
    below = n.op("elu", x, alpha=1.0)
    mirrored = n.op("elu", n.op("neg", x), alpha=1.0)
    above = n.op("neg", n.op("mul", n.op("exp", x), mirrored))
    return n.op("where", n.op("less", x, n.literal(0, x)), below, above)


def _logarithm(base: float) -> Converter:
    scale = 1.0 / math.log(base)
    return composed(lambda n, x: n.op("mul", n.op("log", x), n.literal(scale, x)))


def reciprocal_root(n: AtenNode, x: SSAValue) -> SSAValue:
    """1 / sqrt(x)."""
    return n.op("reciprocal", n.op("sqrt", x))


def exp2(n: AtenNode, x: SSAValue) -> SSAValue:
    """2 to the power of x."""
    return n.op("pow", n.literal(2.0, x), x)


def lerp(n: AtenNode, a: SSAValue, b: SSAValue, weight: Operand) -> SSAValue:
    """a + weight * (b - a)."""
    element = wide(n.element)
    x, y, w = n.operands(a, b, weight, element=element)
    near = n.op("add", x, n.op("mul", w, n.op("sub", y, x)))
    one = n.literal(1.0, w)
    far = n.op("sub", y, n.op("mul", n.op("sub", y, x), n.op("sub", one, w)))
    return n.cast(
        n.op("where", n.op("less", n.op("abs", w), n.literal(0.5, w)), near, far), n.element
    )


def addcmul(n: AtenNode, x: SSAValue, a: SSAValue, b: SSAValue, value: Number = 1) -> SSAValue:
    """x + value * a * b."""
    return _added(n, x, "mul", a, b, value)


def addcdiv(n: AtenNode, x: SSAValue, a: SSAValue, b: SSAValue, value: Number = 1) -> SSAValue:
    """x + value * a / b."""
    return _added(n, x, "div", a, b, value)


def _added(n: AtenNode, x: SSAValue, op: str, a: SSAValue, b: SSAValue, value: Number) -> SSAValue:
    element = wide(n.element)
    term, y = n.operands(a, b, element=element)
    if value != 1:
        term = n.op("mul", term, n.literal(value, term))
    total = n.op("add", *n.operands(x, n.op(op, term, y), element=element))
    return n.cast(total, n.element)


def nan_to_num(
    n: AtenNode, x: SSAValue, nan: float | None = None, posinf: float | None = None,
    neginf: float | None = None,
) -> SSAValue:  # fmt: skip
    """NaN becomes 0 (or `nan`), infinities the greatest finite numbers."""
    if not is_float(n.element):
        return x
    lowest, greatest = finite_range(n.element)
    high = greatest if posinf is None else posinf
    low = lowest if neginf is None else neginf
    y = n.op("where", n.op("is_nan", x), n.literal(nan or 0.0, x), x)
    y = n.op("where", n.op("equal", x, n.literal(math.inf, x)), n.literal(high, x), y)
    return n.op("where", n.op("equal", x, n.literal(-math.inf, x)), n.literal(low, x), y)


_FUNCTIONS = (
    "exp", "log", "sqrt", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "acosh", "atanh", "sigmoid", "reciprocal",
)  # fmt: skip

TABLE: dict[str, Converter] = {
    **{f"{name}.default": unary(name) for name in (*_FUNCTIONS, "neg")},
    "abs.default": lambda n, x: x if is_bool(n.element) else n.op("abs", x),
    **{f"{name}.default": rounding(name) for name in ("floor", "ceil", "round")},
    "trunc.default": truncate,
    "frac.default": composed(_frac),
    "expm1.default": composed(expm1),
    "log2.default": _logarithm(2.0),
    "log10.default": _logarithm(10.0),
    "exp2.default": composed(exp2),
    "rsqrt.default": composed(reciprocal_root),
    "sign.default": sign,
    "isnan.default": is_nan,
    "isinf.default": is_inf,
    "nan_to_num.default": nan_to_num,
    **dict.fromkeys(("add.Tensor", "add.Scalar"), add),
    **dict.fromkeys(("sub.Tensor", "sub.Scalar"), sub),
    **dict.fromkeys(("rsub.Tensor", "rsub.Scalar"), rsub),
    **dict.fromkeys(("mul.Tensor", "mul.Scalar"), mul),
    **dict.fromkeys(("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode"), div),
    "floor_divide.default": floor_divide,
    **dict.fromkeys(("remainder.Tensor", "remainder.Scalar"), remainder),
    **dict.fromkeys(("fmod.Tensor", "fmod.Scalar"), fmod),
    **dict.fromkeys(("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar"), power),
    "maximum.default": lambda n, a, b: _greater(n, a, b),
    "minimum.default": lambda n, a, b: _less(n, a, b),
    **dict.fromkeys(("eq.Tensor", "eq.Scalar"), compare("equal")),
    **dict.fromkeys(("ne.Tensor", "ne.Scalar"), compare("equal", negated=True)),
    **dict.fromkeys(("lt.Tensor", "lt.Scalar"), compare("less")),
    **dict.fromkeys(("le.Tensor", "le.Scalar"), compare("less_equal")),
    **dict.fromkeys(("gt.Tensor", "gt.Scalar"), compare("greater")),
    **dict.fromkeys(("ge.Tensor", "ge.Scalar"), compare("greater_equal")),
    "logical_and.default": logical("and"),
    "logical_or.default": logical("or"),
    "logical_xor.default": logical("xor"),
    "logical_not.default": logical_not,
    **dict.fromkeys(("bitwise_and.Tensor", "bitwise_and.Scalar"), bitwise("and")),
    **dict.fromkeys(("bitwise_or.Tensor", "bitwise_or.Scalar"), bitwise("or")),
    **dict.fromkeys(("bitwise_xor.Tensor", "bitwise_xor.Scalar"), bitwise("xor")),
    "bitwise_not.default": bitwise_not,
    "where.self": where,
    **dict.fromkeys(("masked_fill.Scalar", "masked_fill.Tensor"), masked_fill),
    **dict.fromkeys(("clamp.default", "clamp.Tensor"), clamp),
    **dict.fromkeys(("clamp_min.default", "clamp_min.Tensor"), clamp_min),
    **dict.fromkeys(("clamp_max.default", "clamp_max.Tensor"), clamp_max),
    **dict.fromkeys(("lerp.Scalar", "lerp.Tensor"), lerp),
    "addcmul.default": addcmul,
    "addcdiv.default": addcdiv,
    "_to_copy.default": to_copy,
    "convert_element_type.default": convert_element_type,
    **dict.fromkeys(
        ("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default",
        ), identity,
    ),
}  # fmt: skip


def _greater(n: AtenNode, a: SSAValue, b: SSAValue) -> SSAValue:
    return n.op("or" if is_bool(n.element) else "max", *n.operands(a, b))


def _less(n: AtenNode, a: SSAValue, b: SSAValue) -> SSAValue:
    return n.op("and" if is_bool(n.element) else "min", *n.operands(a, b))
