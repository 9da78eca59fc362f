"""The data of `dense<...>` and `dense_resource<...>`."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ...dialects.types import Array, Tensor, is_bool, is_float, to_numpy


def dense(data: Any, type_: Tensor) -> Array:
    """The array of the parsed elements of a literal: a splat, nested lists or a string of bytes.

    Raises:
        ValueError, OverflowError: they do not fit the type.
    """
    shape = type_.get_shape()
    if isinstance(data, str) and data.startswith('"'):
        return of_bytes(bytes.fromhex(data.strip('"').removeprefix("0x")), type_)
    if isinstance(data, str):
        return np.broadcast_to(_element(data, type_), shape)
    flat = np.array([_element(text, type_) for text in _flattened(data)], _dtype(type_))
    return flat.reshape(shape)


def resource(text: str, name: str, type_: Tensor) -> Array:
    """The array of a resource, which stands at the end of the text. Raises ValueError."""
    if name == "__elided__":
        raise ValueError("the text leaves its constants out: print it with all their elements")
    found = re.search(rf'\b{re.escape(name)}\s*:\s*"0x([0-9A-Fa-f]*)"', text)
    if found is None:
        raise ValueError(f"resource '{name}' is not in the text")
    return of_bytes(bytes.fromhex(found[1])[4:], type_)  # after the alignment


def of_bytes(data: bytes, type_: Tensor) -> Array:
    """An array in the machine's order; one element stands for all. Raises ValueError."""
    dtype, shape = _dtype(type_), type_.get_shape()
    count = math.prod(shape)
    if is_bool(type_.element_type) and count > 1 and len(data) == (count + 7) // 8:
        packed = np.frombuffer(data, np.uint8)
        return np.unpackbits(packed, bitorder="little")[:count].astype(bool).reshape(shape)
    found = np.frombuffer(data, dtype)
    return np.broadcast_to(found, shape) if found.size == 1 else found.reshape(shape)


def _flattened(data: Any) -> list[str]:
    if isinstance(data, str):
        return [data]
    return [text for item in data for text in _flattened(item)]


def _element(text: str, type_: Tensor) -> Any:
    """One number; of floats also its bits, as `0x7FC00000`."""
    dtype = _dtype(type_)
    if is_bool(type_.element_type):
        if text not in ("true", "false"):
            raise ValueError(f"'{text}' is no boolean")
        return np.bool_(text == "true")
    if not is_float(type_.element_type):
        bits, value = 8 * np.dtype(dtype).itemsize, int(text, 0)
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise ValueError(f"'{text}' is out of range")
        return np.array(value).astype(dtype)[()]
    if text.startswith("0x"):
        bits = np.array(int(text, 16), f"uint{8 * dtype.itemsize}")
        return bits.view(dtype)[()]
    return np.array(float(text)).astype(dtype)[()]


def _dtype(type_: Tensor) -> Any:
    return to_numpy(type_.element_type)
