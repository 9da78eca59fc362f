"""Define the LLVM types and values that the emitter handles, and print constants exactly."""

import struct
from collections.abc import Sequence
from functools import lru_cache

_BITS = {"ptr": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}
_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


class Type(str):
    """Name a scalar LLVM type (`lanes` 0) or a vector of `lanes` of them, as LLVM's text does.

    There is one object for each type.

    Attributes:
        element: the type of one lane.
        bits, bytes: of one lane, the bytes as it lies in memory.
        is_float: whether lanes are floating point numbers; `is_int`: integers.
        suffix: the type as intrinsic names spell it, as in `v16f32`.
    """

    scalar: str
    lanes: int
    element: "Type"
    bits: int
    bytes: int
    is_float: bool
    is_int: bool
    suffix: str

    def __new__(cls, scalar: str, lanes: int = 0) -> "Type":
        found = _TYPES.get((scalar, lanes))
        if found is not None:
            return found
        made = super().__new__(cls, f"<{lanes} x {scalar}>" if lanes else scalar)
        made.scalar, made.lanes = scalar, lanes
        made.element = Type(scalar) if lanes else made
        made.bits = _BITS.get(scalar) or int(scalar[1:])
        made.bytes = (made.bits + 7) // 8
        made.is_float = scalar in ("half", "bfloat", "float", "double")
        made.is_int = scalar[0] == "i"
        short = _SUFFIX.get(scalar, scalar)
        made.suffix = f"v{lanes}{short}" if lanes else short
        return _TYPES.setdefault((scalar, lanes), made)

    def __reduce__(self) -> tuple[type["Type"], tuple[str, int]]:
        return Type, (self.scalar, self.lanes)

    def vector(self, lanes: int) -> "Type":
        """Give the vector of `lanes` of this scalar; 0 gives the scalar itself."""
        return self if lanes == self.lanes else Type(self.scalar, lanes)


_TYPES: dict[tuple[str, int], Type] = {}

I1, I8, I16, I32, I64 = (Type(f"i{bits}") for bits in (1, 8, 16, 32, 64))
F16, BF16, F32, F64 = Type("half"), Type("bfloat"), Type("float"), Type("double")
PTR = Type("ptr")


class Value(str):
    """Name an SSA value or constant with its type before it, as LLVM's operands do.

    Attributes:
        text: the name or constant alone.
    """

    __slots__ = ("text", "type")
    text: str
    type: Type

    def __new__(cls, text: str, dtype: Type) -> "Value":
        made = super().__new__(cls, f"{dtype} {text}")
        made.text, made.type = text, dtype
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return Value, (self.text, self.type)


Index = Value | int
"""An i64 that may be known at emission, and then folds."""

Operand = Value | int | float
"""A value, or a number that takes the type of the other operand."""


def constant(dtype: Type, number: float) -> Value:
    """Make the constant `number`, in every lane if `dtype` is a vector."""
    text = _scalar_text(dtype.element, number)
    return Value(f"splat ({dtype.scalar} {text})" if dtype.lanes else text, dtype)


def constant_vector(dtype: Type, numbers: Sequence[float]) -> Value:
    """Make a vector constant of the scalar `dtype`, one number for each lane."""
    if dtype.is_int:
        return _integer_vector(dtype, tuple(numbers))
    return _constant_vector(dtype, numbers)


@lru_cache(maxsize=1 << 12)
def _integer_vector(dtype: Type, numbers: tuple[float, ...]) -> Value:
    return _constant_vector(dtype, numbers)


def _constant_vector(dtype: Type, numbers: Sequence[float]) -> Value:
    lanes = ", ".join(f"{dtype.scalar} {_scalar_text(dtype.element, x)}" for x in numbers)
    return Value(f"<{lanes}>", dtype.vector(len(numbers)))


def _scalar_text(dtype: Type, number: float) -> str:
    if dtype.scalar == "ptr":
        return "null"
    if dtype.scalar == "i1":
        return "true" if number else "false"
    if dtype.is_int:
        return str(int(number))
    if dtype.scalar == "double":
        return f"0x{_bits('>d', number):016X}"
    if dtype.scalar == "half":
        return f"0xH{_bits('>e', _fit(number, '>e')):04X}"
    single = _fit(number, ">f")
    if dtype.scalar == "bfloat":
        return f"0xR{_bfloat_bits(single):04X}"
    return f"0x{_bits('>d', struct.unpack('>f', struct.pack('>f', single))[0]):016X}"


def _bits(layout: str, number: float) -> int:
    return int.from_bytes(struct.pack(layout, number), "big")


def _fit(number: float, layout: str) -> float:
    """Turn what `layout` cannot hold into an infinity, as hardware rounding does."""
    try:
        struct.pack(layout, number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return float(number)


def _bfloat_bits(number: float) -> int:
    bits = _bits(">f", number)
    if number != number:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
