"""Element types in CUDA C: their types in memory, and their compute types."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from ...dialects.errors import UserError
from ...dialects.types import is_bool, is_float, is_half, is_unsigned, to_numpy

_MEMORY = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "bool": "bool",
}
_HEADERS = {"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h"}


def memory_type(element: Attribute) -> str:
    """An element's type in memory. Raises UserError if CUDA has no such type."""
    name = to_numpy(element).name
    if name not in _MEMORY:
        raise UserError(f"no CUDA type for element type {element}")
    return _MEMORY[name]


def compute_type(element: Attribute) -> str:
    """An element's compute type: float for half floats."""
    return "float" if is_half(element) else memory_type(element)


def header(ctype: str) -> str | None:
    """The header that defines a memory type; None for C's own."""
    return _HEADERS.get(ctype)


def loaded(text: str, element: Attribute) -> str:
    """Convert a loaded value to the compute type."""
    match element:
        case Float16Type():
            return f"__half2float({text})"
        case BFloat16Type():
            return f"__bfloat162float({text})"
        case _:
            return text


def stored(text: str, element: Attribute) -> str:
    """Convert a computed value to the memory type, rounding to nearest even."""
    match element:
        case Float16Type():
            return f"__float2half_rn({text})"
        case BFloat16Type():
            return f"__float2bfloat16_rn({text})"
        case _:
            return text


def literal(value: float | int | bool, element: Attribute) -> str:
    """A constant of the compute type, the shortest that reads back the same."""
    if is_bool(element):
        return "true" if value else "false"
    if not is_float(element):
        return _integer(int(value), element)
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if isinstance(element, Float64Type):
        return repr(number)
    text = str(np.float32(number))
    if text in ("inf", "-inf"):  # a literal past float's range
        return literal(math.copysign(math.inf, number), element)
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _integer(value: int, element: Attribute) -> str:
    assert isinstance(element, IntegerType)
    if is_unsigned(element) and element.width.data >= 32:
        return f"{value}{'ULL' if element.width.data == 64 else 'u'}"
    if element.width.data < 64:
        return str(value) if value != -(1 << 31) else f"({value + 1} - 1)"
    return f"{value}LL" if value != -(1 << 63) else f"({value + 1}LL - 1)"


def least(element: Attribute) -> str:
    """The least value of a type: where a maximum starts."""
    if is_float(element):
        return "-INFINITY"
    return "false" if is_bool(element) else _integer(int(np.iinfo(to_numpy(element)).min), element)


def greatest(element: Attribute) -> str:
    """The greatest value of a type: where a minimum starts."""
    if is_float(element):
        return "INFINITY"
    return "true" if is_bool(element) else _integer(int(np.iinfo(to_numpy(element)).max), element)
