"""Arithmetic without a sign, bits, shifts, remainders and casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from xdsl.dialects.builtin import f32, f64

from ...dialects.types import byte_width, is_float, is_half, is_unsigned
from .code import Scalar
from .node import KeptNode, NoNest, Writer
from .points import elementwise


def _pointwise(body: Callable[..., Scalar]) -> Writer:
    """An op of all its operands at each point."""

    def write(node: KeptNode) -> None:
        operands = [b for b in node.operands if b is not None]
        elementwise(node.code, operands, node.result, body)

    return write


def _folded(name: str) -> Writer:
    return _pointwise(lambda *values: reduce(lambda a, b: a.call(name, b), values))


def _bit_shift(node: KeptNode) -> None:
    left = node.get("direction", "LEFT") == "LEFT"
    body = (lambda a, b: a << b) if left else (lambda a, b: a >> b)
    elementwise(node.code, [node[0], node[1]], node.result, body)


def _mod(node: KeptNode) -> None:
    """The sign of the dividend with fmod, else that of the divisor."""
    truncated = bool(node.get("fmod", 0))

    def body(a: Scalar, b: Scalar) -> Scalar:
        rest = a.remainder(b)
        if truncated or is_unsigned(a.element):
            return rest
        wrong = rest.differs(0) & ((rest < 0) ^ (b < 0))
        return a.code.select(wrong, rest + b, rest)

    elementwise(node.code, [node[0], node[1]], node.result, body)


def _pow(node: KeptNode) -> None:
    """Floats to a power without a sign; of an integer base nothing is known here."""
    base, exponent, y = node[0], node[1], node.result
    if not is_float(base.element) or is_half(base.element):
        raise NoNest

    def body(a: Scalar, b: Scalar) -> Scalar:
        return a.to(f64).call("pow", b.to(f64)).to(y.element)

    elementwise(node.code, [base, exponent], y, body)


def _cast(node: KeptNode) -> None:
    x, y = node[0], node.result
    elementwise(node.code, [x], y, lambda v: v.to(y.element))


def _bitcast(node: KeptNode) -> None:
    """The same bits as another type of the same size."""
    if byte_width(node[0].element) != byte_width(node.result.element):
        raise NoNest
    node.code.copy_all(node[0], node.result)


def _clip(node: KeptNode) -> None:
    bounds = [(name, node[k]) for k, name in ((1, "max"), (2, "min")) if node.has(k)]

    def body(x: Scalar, *limits: Scalar) -> Scalar:
        for (name, _), limit in zip(bounds, limits, strict=True):
            x = x.call(name, limit)
        return x

    elementwise(node.code, [node[0], *(b for _, b in bounds)], node.result, body)


def _sign(x: Scalar) -> Scalar:
    return x.differs(0).to(x.element)


def _prelu(x: Scalar, slope: Scalar) -> Scalar:
    return x if is_unsigned(x.element) else x.code.select(x < 0, slope * x, x)


def _shrink(node: KeptNode) -> None:
    """Computed in floats, as the attributes are."""
    bias, threshold = float(node.get("bias", 0.0)), float(node.get("lambd", 0.5))
    y = node.result

    def body(x: Scalar) -> Scalar:
        wide = x.to(f64 if not is_half(x.element) else f32)
        below, above = wide < -threshold, wide > threshold
        rest = x.code.select(above, wide - bias, 0.0)
        return x.code.select(below, wide + bias, rest).to(y.element)

    elementwise(node.code, [node[0]], y, body)


def _compared(name: str) -> Writer:
    return _pointwise(lambda a, b: a.call(name, b))


WRITERS: dict[str, Writer] = {
    "Abs": _pointwise(lambda x: x if is_unsigned(x.element) else x.call("abs")),
    "Add": _folded("add"),
    "BitCast": _bitcast,
    "BitShift": _bit_shift,
    "BitwiseAnd": _folded("and"),
    "BitwiseNot": _pointwise(lambda x: ~x),
    "BitwiseOr": _folded("or"),
    "BitwiseXor": _folded("xor"),
    "Cast": _cast,
    "CastLike": lambda node: _cast(node),
    "Clip": _clip,
    "Div": _folded("div"),
    "Equal": _compared("eq"),
    "Greater": _compared("gt"),
    "GreaterOrEqual": _compared("ge"),
    "Less": _compared("lt"),
    "LessOrEqual": _compared("le"),
    "Max": _folded("max"),
    "Min": _folded("min"),
    "Mod": _mod,
    "Mul": _folded("mul"),
    "PRelu": _pointwise(_prelu),
    "Pow": _pow,
    "Shrink": _shrink,
    "Sign": _pointwise(_sign),
    "Sub": _folded("sub"),
}
