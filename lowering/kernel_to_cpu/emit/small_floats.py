"""Convert between float32 and the codes of floats of 8 and 4 bits, scalars and vectors alike.

A code is sign, exponent and mantissa. To float32, the last two are shifted into place, which gives
the number times a power of two, denormals too. From float32, the mantissa is cut by an integer
addition that rounds ties to even; what becomes denormal is rounded by adding a float whose last
bit is the least denormal. dialects/small_floats.py says what the conversions mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
)
from xdsl.ir import Attribute

from .emitter import Emitter
from .types import F32, I8, I32, Value

_INFINITY, _NAN, _SIGN = 0x7F800000, 0x7FC00000, -(1 << 31)


@dataclass(frozen=True)
class Format:
    """The codes of a type.

    Attributes:
        mantissa: bits of it.
        bias: of the exponent.
        sign: where its bit is.
        greatest: code of the greatest finite number.
        infinity: code without sign of what lies past it.
        nan: code of NaN.
        signed: whether zero has a sign; else the code of the sign alone is NaN.
    """

    mantissa: int
    bias: int
    sign: int
    greatest: int
    infinity: int
    nan: int
    signed: bool = True

    @property
    def shift(self) -> int:
        """Bits that float32's mantissa has more."""
        return 23 - self.mantissa


FORMATS: Mapping[type[Attribute], Format] = {
    Float8E4M3FNType: Format(3, 7, 7, 0x7E, 0x7F, 0x7F),
    Float8E4M3FNUZType: Format(3, 8, 7, 0x7F, 0x80, 0x80, signed=False),
    Float8E5M2Type: Format(2, 15, 7, 0x7B, 0x7C, 0x7E),
    Float8E5M2FNUZType: Format(2, 16, 7, 0x7F, 0x80, 0x80, signed=False),
    Float4E2M1FNType: Format(1, 1, 3, 0x7, 0x7, 0),
}


def from_code(b: Emitter, code: Value, element: Attribute) -> Value:
    """Floats of codes in bytes."""
    wide = b.cast(code, I32, signed=False)
    floats = F32.vector(code.type.lanes)
    if isinstance(element, Float8E8M0FNUType):
        bits = b.select(b.compare("eq", wide, 0), 1 << 22, b.logic("shl", wide, 23))
        return b.bitcast(b.select(b.compare("eq", wide, 255), _NAN, bits), floats)
    form = FORMATS[type(element)]
    magnitude = b.logic("and", wide, (1 << form.sign) - 1)
    small = b.bitcast(b.logic("shl", magnitude, form.shift), floats)
    bits = b.bitcast(b.mul(small, 2.0 ** (127 - form.bias)), I32.vector(code.type.lanes))
    if isinstance(element, Float8E5M2Type):
        bits = b.select(b.compare("ge", magnitude, form.infinity), _INFINITY, bits)
    if form.signed and form.nan > form.greatest:
        bits = b.select(b.compare("gt", magnitude, form.nan - 1 - _payloads(form)), _NAN, bits)
    sign = b.logic("and", b.logic("shl", wide, 31 - form.sign), _SIGN)
    bits = b.logic("or", bits, sign)
    if not form.signed:
        bits = b.select(b.compare("eq", wide, form.nan), _NAN, bits)
    return b.bitcast(bits, floats)


def _payloads(form: Format) -> int:
    """How many codes of NaN stand before the usual one."""
    return form.nan - form.infinity - 1 if form.nan > form.infinity else 0


def to_code(b: Emitter, x: Value, element: Attribute) -> Value:
    """Codes in bytes of floats, rounded to nearest even."""
    bits = b.bitcast(x, I32.vector(x.type.lanes))
    if isinstance(element, Float8E8M0FNUType):
        return b.cast(_exponent(b, bits), I8)
    form = FORMATS[type(element)]
    magnitude = b.logic("and", bits, ~_SIGN)
    code = _rounded(b, magnitude, form)
    code = b.select(b.compare("gt", code, form.greatest), form.infinity, code)
    sign = b.logic("and", b.logic("lshr", bits, 31 - form.sign), 1 << form.sign)
    is_nan = b.compare("gt", magnitude, _INFINITY)
    if form.signed and form.nan > form.greatest:
        code = b.logic("or", b.select(is_nan, form.nan, code), sign)
    else:
        signed = b.logic("or", code, sign)
        if not form.signed:
            signed = b.select(b.compare("eq", code, 0), 0, signed)
        code = b.select(is_nan, form.nan, signed)
    return b.cast(code, I8)


def _rounded(b: Emitter, magnitude: Value, form: Format) -> Value:
    """The code of a number without sign, past the greatest one where it is too large."""
    odd = b.logic("and", b.logic("lshr", magnitude, form.shift), 1)
    near = b.add(b.add(magnitude, odd), (1 << form.shift - 1) - 1)
    normal = b.sub(b.logic("lshr", near, form.shift), (127 - form.bias) << form.mantissa)
    step = 2.0 ** (1 - form.bias - form.mantissa + 23)
    with b.flags(""):  # no rule of arithmetic may join the addition with others
        sums = b.add(b.bitcast(magnitude, F32.vector(magnitude.type.lanes)), step)
    exponent = 1 - form.bias - form.mantissa + 23 + 127
    denormal = b.sub(b.bitcast(sums, magnitude.type), exponent << 23)
    return b.select(b.compare("lt", magnitude, 128 - form.bias << 23), denormal, normal)


def _exponent(b: Emitter, bits: Value) -> Value:
    """The nearest power of two, ties up; NaN of what is not positive."""
    normal = b.logic("lshr", b.add(bits, 1 << 22), 23)
    least = b.cast(b.compare("ge", bits, 3 << 21), I32, signed=False)
    code = b.select(b.compare("lt", bits, 1 << 23), least, normal)
    known = b.logic("and", b.compare("gt", bits, 0), b.compare("le", bits, _INFINITY))
    return b.select(known, code, 255)


__all__ = ["from_code", "to_code"]
