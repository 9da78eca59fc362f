"""Emit what AVX-512 has instructions for, and LLVM no name: powers of two, rough reciprocals.

They are there only while code for such a processor is emitted (`emitting`): LLVM stops the process
where it cannot select an instruction.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .types import F32, I16, I32, Type, Value, constant

if TYPE_CHECKING:
    from .emitter import Emitter
    from .module import Module

LANES = 16
_VECTOR = F32.vector(LANES)
_AVAILABLE: ContextVar[bool] = ContextVar("AVX-512", default=False)
# The divisors, and the least dividend, for which a remainder is exact and a quotient normal.
_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-20, 2.0**26
_LEAST_BITS = (127 - 100) << 23


@contextmanager
def emitting(*, available: bool) -> Generator[None]:
    """Emit code in the block for a processor that has the instructions, or has not."""
    before = _AVAILABLE.set(available)
    try:
        yield
    finally:
        _AVAILABLE.reset(before)


def has(dtype: Type) -> bool:
    """Say whether the functions below take vectors of this type now."""
    return dtype == _VECTOR and _AVAILABLE.get()


def scaled(b: Emitter, x: Value, power: Value) -> Value:
    """Multiply by two to an integral power (floats), rounding once; of any size."""
    mask, nearest = constant(I16, -1), constant(I32, 4)
    args = [x, power, constant(_VECTOR, 0), mask, nearest]
    return b.intrinsic("x86.avx512.mask.scalef.ps.512", _VECTOR, args)


def reciprocal(b: Emitter, x: Value) -> Value:
    """Give 1 / x within an ulp, where both are normal: 14 bits of it, corrected once."""
    args = [x, constant(_VECTOR, 0), constant(I16, -1)]
    rough = b.intrinsic("x86.avx512.rcp14.ps.512", _VECTOR, args)
    return _fma(b, rough, _fma(b, b.negate(x), rough, constant(_VECTOR, 1)), rough)


def divided(b: Emitter, x: Value, divisor: Value) -> Value:
    """Divide by a scalar, rounded as division is, in a third of its time where many are divided.

    A quotient of the dividend and the rounded reciprocal, corrected once, is one of the two floats
    around the exact one; corrected again it is the nearest (Markstein 1990). That needs exact
    remainders and no overflow: other dividends and divisors, which the signs of zeros do not
    make, take the instruction.
    """
    with b.flags(""):
        y = b.broadcast(divisor, LANES)
        inverse = b.broadcast(b.div(1.0, divisor), LANES)
        quotient = b.mul(x, inverse)
        for _ in range(2):
            rest = _fma(b, b.negate(quotient), y, x)
            quotient = _fma(b, rest, inverse, quotient)
        quotient = b.intrinsic(f"copysign.{_VECTOR.suffix}", _VECTOR, [quotient, x])
        size = b.logic("shl", b.bitcast(x, I32.vector(LANES)), 1)
        small = b.compare("lt", b.sub(size, 1), 2 * _LEAST_BITS - 1, signed=False)
        other = b.reduce("or", b.logic("or", small, b.compare("ne", quotient, quotient)))
        usual = b.logic(
            "and",
            b.compare("ge", divisor, _LEAST_DIVISOR),
            b.compare("le", divisor, _MOST_DIVISOR),
        )
        plain = b.logic("and", usual, b.compare("eq", other, 0))
        # In a function of its own: LLVM would divide first, and then choose.
        slow = b.module.once("divide", lambda name: _divide_function(b.module, name))
        return b.if_else(plain, lambda: [quotient], lambda: [b.call(slow, _VECTOR, [x, y])])[0]


def _divide_function(module: Module, name: str) -> None:
    with module.function(name, [_VECTOR, _VECTOR], attributes="noinline cold") as b:
        b.result = b.div(*b.parameters)


def _fma(b: Emitter, x: Value, y: Value, z: Value) -> Value:
    return b.intrinsic(f"fma.{_VECTOR.suffix}", _VECTOR, [x, y, z])
