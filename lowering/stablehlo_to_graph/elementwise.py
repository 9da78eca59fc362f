"""Elementwise arithmetic, comparisons, bits and conversions."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerType, Signedness, bf16, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.graph.elementwise import ExpOp
from ...dialects.types import (
    element_of,
    is_bool,
    is_float,
    is_half,
    is_unsigned,
    shape_of,
    tensor,
    to_numpy,
)
from .node import Converter, HloNode, composed, lowest, onnx_number


def unary(name: str) -> Converter:
    """The graph op with the same meaning."""
    return lambda n: n.op(name, n[0])


def binary(name: str) -> Converter:
    """The graph op with the same meaning, of any number type; booleans by their logic."""
    return lambda n: n.binary(name, n[0], n[1])


def _signed_only(name: str) -> Converter:
    """A graph op that leaves numbers without a sign alone."""
    return lambda n: n[0] if is_unsigned(n.element) else n.op(name, n[0])


def negate(n: HloNode) -> SSAValue:
    """-x; without a sign modulo 2^n."""
    if is_unsigned(n.element):
        return n.binary("sub", n.literal(0, n[0]), n[0])
    return n.op("neg", n[0])


def sign(n: HloNode) -> SSAValue:
    """-1, 0 or 1; NaN stays NaN."""
    if is_unsigned(n.element):
        return n.cast(n.cast(n[0], i1), n.element)
    return n.op("sign", n[0])


def not_(n: HloNode) -> SSAValue:
    """Not; of integers all bits."""
    if is_bool(n.element):
        return n.op("not", n[0])
    if is_unsigned(n.element):
        return n.onnx("BitwiseNot", [n[0]], [n.type])[0]
    return n.op("sub", n.literal(-1, n[0]), n[0])


def remainder(n: HloNode) -> SSAValue:
    """The remainder with the dividend's sign."""
    a, b = n[0], n[1]
    if is_float(n.element):
        return n.onnx("Mod", [a, b], [n.type], fmod=1)[0]
    return n.binary("sub", a, n.binary("mul", n.binary("div", a, b), b))


def power(n: HloNode) -> SSAValue:
    """a to the power of b; of integers by an ONNX node."""
    if is_float(n.element):
        return n.op("pow", n[0], n[1])
    exponent = n.number_of(n[1])
    if not isinstance(exponent, int) or not 0 <= exponent <= 64:
        raise n.refusal("a power of integers whose exponent is not known")
    result, square = n.literal(1, n[0]), n[0]
    while exponent:
        if exponent & 1:
            result = n.binary("mul", result, square)
        square, exponent = n.binary("mul", square, square), exponent >> 1
    return result


_DIRECTIONS = {
    "EQ": "equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


def compare(n: HloNode) -> SSAValue:
    """A comparison."""
    words = [*n.hlo.words, n.attr("comparison_direction"), n.attr("compare_type")]
    a, b = n[0], n[1]
    if "TOTALORDER" in words and is_float(element_of(a)):
        a, b = _in_order(n, a), _in_order(n, b)
    if "NE" in words:
        return n.op("not", n.binary("equal", a, b))
    found = next((_DIRECTIONS[w] for w in words if w in _DIRECTIONS), None)
    if found is None:
        raise n.refusal("its direction is unknown")
    return n.binary(found, a, b)


def _in_order(n: HloNode, x: SSAValue) -> SSAValue:
    """Floats as whole numbers in their total order: -NaN, ..., -0, 0, ..., NaN."""
    x = n.cast(x, f32) if is_half(element_of(x)) else x
    whole = i64 if element_of(x) == f64 else i32
    bits = n.onnx("BitCast", [x], [tensor(shape_of(x), whole)], to=onnx_number(whole))[0]
    turned = n.op("sub", n.op("sub", n.literal(int(lowest(whole)), bits), bits), n.literal(1, bits))
    return n.op("where", n.op("less", bits, n.literal(0, bits)), turned, bits)


def select(n: HloNode) -> SSAValue:
    """a where the condition holds, b elsewhere."""
    return n.op("where", n.expand(n[0], shape_of(n[1])), n[1], n[2])


def clamp(n: HloNode) -> SSAValue:
    """min(max(x, low), high)."""
    low, x, high = (n.expand(v, n.shape) for v in (n[0], n[1], n[2]))
    return n.binary("min", n.binary("max", x, low), high)


def convert(n: HloNode) -> SSAValue:
    """A conversion of the element type; numbers that are not 0 are true."""
    return n.cast(n[0], n.element)


def is_finite(n: HloNode) -> SSAValue:
    """Whether neither an infinity nor NaN."""
    return n.op("less", n.op("abs", n[0]), n.literal(math.inf, n[0]))


def is_infinite(n: HloNode) -> SSAValue:
    """Whether an infinity."""
    return n.op("equal", n.op("abs", n[0]), n.literal(math.inf, n[0]))


def reduce_precision(n: HloNode) -> SSAValue:
    """Rounded to the floats of so many bits, of those that have a type."""
    word = next((str(w) for w in (n.attr("format"), *n.hlo.words) if w is not None), "")
    bits = f"e{n.attr('exponent_bits')}m{n.attr('mantissa_bits')}"
    found: dict[str, Attribute] = {"e8m7": bf16, "e5m10": f16}
    for name in (word, bits):
        if name in found:
            return n.cast(n.cast(n[0], found[name]), n.element)
        if (name, str(n.element)) in (("e8m23", "f32"), ("e11m52", "f64")):
            return n[0]
    raise n.refusal(f"there is no type of format {word or bits}")


# --- functions of floats ---


def _expm1(n: HloNode, x: SSAValue) -> SSAValue:
    """exp(x) - 1, exact near 0: elu has it for x < 0, and -exp(x) * expm1(-x) for the others."""
    below = n.op("elu", x, alpha=1.0)
    mirrored = n.op("elu", n.op("neg", x), alpha=1.0)
    above = n.op("neg", n.op("mul", n.op("exp", x), mirrored))
    near = n.op("where", n.op("less", x, n.literal(0, x)), below, above)
    far = n.op("sub", n.op("exp", x), n.literal(1, x))  # where 1 is lost, and infinities
    return n.op("where", n.op("greater", x, n.literal(30, x)), far, near)


def _log1p(n: HloNode, x: SSAValue) -> SSAValue:
    """log(1 + x), exact near 0: 2 atanh(x / (2 + x)); of an exponential softplus."""
    if isinstance(x.owner, ExpOp):
        return n.op("softplus", x.owner.operands[0])
    near = n.op("atanh", n.op("div", x, n.op("add", x, n.literal(2, x))))
    far = n.op("log", n.op("add", x, n.literal(1, x)))
    small = n.op("less", n.op("abs", x), n.literal(0.5, x))
    return n.op("where", small, n.op("mul", near, n.literal(2, x)), far)


def _rsqrt(n: HloNode, x: SSAValue) -> SSAValue:
    return n.op("reciprocal", n.op("sqrt", x))


def _cbrt(n: HloNode, x: SSAValue) -> SSAValue:
    root = n.op("pow", n.op("abs", x), n.literal(1 / 3, x))
    return n.op("where", _is_negative(n, x), n.op("neg", root), root)


def _is_negative(n: HloNode, x: SSAValue) -> SSAValue:
    return n.op("less", x, n.literal(0, x))


def _atan2(n: HloNode, y: SSAValue, x: SSAValue) -> SSAValue:
    """The angle of (x, y), of all signs and zeros."""

    def negative(v: SSAValue) -> SSAValue:
        """Whether below 0, or -0."""
        zero = n.op("equal", v, n.literal(0, v))
        below = n.op("less", n.op("reciprocal", v), n.literal(0, v))
        return n.op("or", _is_negative(n, v), n.op("and", zero, below))

    above, beside = n.op("abs", y), n.op("abs", x)
    angle = n.op("atan", n.op("div", above, beside))
    equal = n.op("equal", above, beside)  # both 0, or both infinite: no quotient
    none = n.op("equal", above, n.literal(0, y))
    corner = n.op("where", none, n.literal(0, y), n.literal(math.pi / 4, y))
    angle = n.op("where", equal, corner, angle)
    angle = n.op("where", negative(x), n.op("sub", n.literal(math.pi, y), angle), angle)
    return n.op("where", negative(y), n.op("neg", angle), angle)


def _round_away(n: HloNode, x: SSAValue) -> SSAValue:
    """Rounded to the nearest, ties away from zero."""
    size = n.op("abs", x)
    down = n.op("floor", size)
    up = n.op("greater_equal", n.op("sub", size, down), n.literal(0.5, x))
    found = n.op("where", up, n.op("add", down, n.literal(1, x)), down)
    return n.op("where", _is_negative(n, x), n.op("neg", found), found)


def _erfc(n: HloNode, x: SSAValue) -> SSAValue:
    return n.op("sub", n.literal(1, x), n.op("erf", x))


def _square(n: HloNode, x: SSAValue) -> SSAValue:
    return n.op("mul", x, x)


# --- bits ---


def shift(direction: str, arithmetic: bool = False) -> Converter:
    """A shift; by as many bits as there are, or more, nothing or the sign is left."""

    def converted(n: HloNode) -> SSAValue:
        x, by, element = n[0], n[1], n.element
        width = 8 * to_numpy(element).itemsize
        plain = IntegerType(width, Signedness.UNSIGNED)
        flip = arithmetic and not is_unsigned(element)
        minus = n.op("less", x, n.literal(0, x)) if flip else None
        if minus is not None:  # of a negative number all bits are flipped before and after
            x = n.op("where", minus, n.op("sub", n.literal(-1, x), x), x)
        bits, amount = n.cast(x, plain), n.cast(by, plain)
        most = n.literal(width - 1, amount)
        within = n.binary("less_equal", amount, most)
        amount = n.binary("min", amount, most)
        type_ = tensor(n.shape, plain)
        found = n.onnx("BitShift", [bits, amount], [type_], direction=direction)[0]
        found = n.cast(n.op("where", within, found, n.literal(0, found)), element)
        if minus is None:
            return found
        return n.op("where", minus, n.op("sub", n.literal(-1, found), found), found)

    return converted


def bitcast(n: HloNode) -> SSAValue:
    """The same bits as another type of the same size."""
    source, target = (to_numpy(e).itemsize for e in (element_of(n[0]), n.element))
    if source != target or shape_of(n[0]) != n.shape:
        raise n.refusal("a type of another size")
    if element_of(n[0]) == n.element:
        return n[0]
    return n.onnx("BitCast", [n[0]], [n.type], to=onnx_number(n.element))[0]


_FUNCTIONS = {
    "exponential": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "sine": "sin",
    "cosine": "cos", "tan": "tan", "floor": "floor", "ceil": "ceil", "logistic": "sigmoid",
    "round_nearest_even": "round",
}  # fmt: skip
_CHLO = ("erf", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "tan")
_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "maximum": "max",
    "minimum": "min", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip

TABLE: dict[str, Converter] = {
    **{f"stablehlo.{name}": unary(op) for name, op in _FUNCTIONS.items()},
    **{f"chlo.{name}": unary(name) for name in _CHLO},
    **{f"stablehlo.{name}": binary(op) for name, op in _BINARY.items()},
    "stablehlo.abs": _signed_only("abs"),
    "stablehlo.negate": negate,
    "stablehlo.sign": sign,
    "stablehlo.not": not_,
    "stablehlo.remainder": remainder,
    "stablehlo.power": power,
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "stablehlo.convert": convert,
    "stablehlo.is_finite": is_finite,
    "chlo.is_inf": is_infinite,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.exponential_minus_one": composed(_expm1),
    "stablehlo.log_plus_one": composed(_log1p),
    "stablehlo.rsqrt": composed(_rsqrt),
    "stablehlo.cbrt": composed(_cbrt),
    "stablehlo.atan2": composed(_atan2),
    "stablehlo.round_nearest_afz": composed(_round_away),
    "chlo.erfc": composed(_erfc),
    "chlo.square": composed(_square),
    "stablehlo.shift_left": shift("LEFT"),
    "stablehlo.shift_right_logical": shift("RIGHT"),
    "stablehlo.shift_right_arithmetic": shift("RIGHT", arithmetic=True),
    "stablehlo.bitcast_convert": bitcast,
}
