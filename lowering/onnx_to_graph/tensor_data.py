"""Element types and data of ONNX tensors: type numbers, lazy reading, external files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from xdsl.dialects.builtin import (
    Float4E2M1FNType,
    IntegerType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ...dialects.errors import UserError
from ...dialects.files import ArrayFile, cannot
from ...dialects.types import Array, from_numpy, is_storage, to_numpy

_ELEMENTS: dict[int, Attribute] = {
    TensorProto.FLOAT: f32,
    TensorProto.DOUBLE: f64,
    TensorProto.FLOAT16: f16,
    TensorProto.BFLOAT16: bf16,
    TensorProto.INT8: i8,
    TensorProto.INT16: i16,
    TensorProto.INT32: i32,
    TensorProto.INT64: i64,
    TensorProto.UINT8: from_numpy(np.uint8),
    TensorProto.UINT16: from_numpy(np.uint16),
    TensorProto.UINT32: from_numpy(np.uint32),
    TensorProto.UINT64: from_numpy(np.uint64),
    TensorProto.BOOL: i1,
    TensorProto.INT4: from_numpy(ml_dtypes.int4),
    TensorProto.UINT4: from_numpy(ml_dtypes.uint4),
    TensorProto.INT2: from_numpy(ml_dtypes.int2),
    TensorProto.UINT2: from_numpy(ml_dtypes.uint2),
    TensorProto.FLOAT8E4M3FN: from_numpy(ml_dtypes.float8_e4m3fn),
    TensorProto.FLOAT8E4M3FNUZ: from_numpy(ml_dtypes.float8_e4m3fnuz),
    TensorProto.FLOAT8E5M2: from_numpy(ml_dtypes.float8_e5m2),
    TensorProto.FLOAT8E5M2FNUZ: from_numpy(ml_dtypes.float8_e5m2fnuz),
    TensorProto.FLOAT8E8M0: from_numpy(ml_dtypes.float8_e8m0fnu),
    TensorProto.FLOAT4E2M1: from_numpy(ml_dtypes.float4_e2m1fn),
}
_NUMBERS = {element: number for number, element in _ELEMENTS.items()}

# For each element type the typed field used without raw_data, and the elements per entry.
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
}


def element_of_number(number: int, where: str) -> Attribute:
    """The element type of an ONNX type number.

    Raises:
        UserError: isoform has no such type (strings, complex, 6-bit floats).
    """
    element = _ELEMENTS.get(number)
    if element is None:
        raise UserError(f"element type {type_name(number)} is not supported", where=where)
    return element


def number_of_element(element: Attribute) -> int:
    """The ONNX type number of an element type."""
    return _NUMBERS[element]


def is_supported(number: int) -> bool:
    """Whether isoform has the element type of this number."""
    return number in _ELEMENTS


def type_name(number: int) -> str:
    """`FLOAT16` and so on; the number itself if this onnx version does not know it."""
    try:
        return TensorProto.DataType.Name(number)  # pyright: ignore[reportArgumentType]
    except ValueError:
        return f"number {number}"


def tensor_shape(proto: TensorProto, where: str) -> tuple[int, ...]:
    """Dims of a tensor. Raises UserError where one is negative."""
    shape = tuple(proto.dims)
    if any(n < 0 for n in shape):
        raise UserError("a tensor has a negative dim", where=where, found=list(shape))
    return shape


def reader(proto: TensorProto, folder: Path | None, where: str) -> Callable[[], Array]:
    """A thunk that reads a tensor's data; size and position are checked now.

    Raises:
        UserError: the data are too short or too long, or the external file is missing, too short
            or outside the model's folder.
    """
    shape = tensor_shape(proto, where)
    if proto.data_location == TensorProto.EXTERNAL:
        return _external_reader(proto, shape, folder, where)
    if is_supported(proto.data_type):
        _check_size(proto, shape, where)
    return lambda: _read(proto, where)


def _read(proto: TensorProto, where: str) -> Array:
    try:
        return numpy_helper.to_array(proto)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise UserError(f"the tensor's data cannot be read ({error})", where=where) from error


def _check_size(proto: TensorProto, shape: tuple[int, ...], where: str) -> None:
    count = math.prod(shape)
    if proto.HasField("raw_data"):
        expected = packed_size(proto.data_type, count)
        found, unit = len(proto.raw_data), "bytes"
    else:
        expected, unit = count, "entries"
        if _bits(_ELEMENTS[proto.data_type]) < 8:  # an entry for each byte
            expected = packed_size(proto.data_type, count)
        found = len(getattr(proto, _FIELDS.get(proto.data_type, "int32_data")))
    if found != expected:
        raise UserError(
            f"the tensor's data do not fit its dims {list(shape)}",
            where=where,
            expected=f"{expected} {unit}",
            found=found,
        )


def packed_size(number: int, count: int) -> int:
    """Bytes of a tensor's raw data; numbers of 2 and 4 bits share bytes."""
    return -(-count * _bits(_ELEMENTS[number]) // 8)


def _bits(element: Attribute) -> int:
    """Bits of an element of raw data: several of 2 or 4 share a byte."""
    if is_storage(element):
        assert isinstance(element, IntegerType)
        return element.width.data
    return 4 if isinstance(element, Float4E2M1FNType) else 8 * to_numpy(element).itemsize


def _external_reader(
    proto: TensorProto, shape: tuple[int, ...], folder: Path | None, where: str
) -> Callable[[], Array]:
    dtype = to_numpy(element_of_number(proto.data_type, where))
    entries = {entry.key: entry.value for entry in proto.external_data}
    path = external_path(entries.get("location", ""), folder, where)
    packed = _bits(element_of_number(proto.data_type, where)) < 8
    size = packed_size(proto.data_type, math.prod(shape))
    offset = _number(entries.get("offset", "0"), where)
    length = _number(entries.get("length", str(size)), where)
    if length != size:
        raise UserError(
            "external data have another length", where=where, expected=size, found=length
        )
    if path.stat().st_size < offset + size:
        raise UserError(
            f"external file '{path.name}' is too short",
            where=where,
            expected=f"{offset + size} bytes",
            found=path.stat().st_size,
        )
    try:
        file = ArrayFile.of(path)
    except OSError as error:
        raise cannot("read", path, error) from error
    if packed:
        return lambda: _unpacked(proto, file.read(offset, size), where)
    return lambda: file.array(dtype, offset, shape)


def _unpacked(proto: TensorProto, raw: bytes, where: str) -> Array:
    """External data of 2 or 4 bits."""
    inline = TensorProto(data_type=proto.data_type, dims=proto.dims, raw_data=raw)
    return _read(inline, where)


def external_path(location: str, folder: Path | None, where: str) -> Path:
    """The file that `location` names, inside the model's folder.

    Raises:
        UserError: it leads outside (absolute, `..`, a symlink), is missing or is not a plain file.
    """
    if folder is None:
        raise UserError(
            "external data need the model's file", where=where, hint="pass the path, not the proto"
        )
    root = Path(os.path.realpath(folder))
    if "\0" in location:
        raise UserError("the name of an external file holds a zero byte", where=where)
    path = Path(os.path.realpath(root / location.replace("\\", "/")))
    if not location or root not in path.parents:
        raise UserError(f"external data '{location}' lie outside the model's folder", where=where)
    if not path.is_file():
        raise UserError(f"external data file '{location}' is missing", where=where)
    return path


def _number(text: str, where: str) -> int:
    if not text.isdecimal():
        raise UserError(f"external data have a bad offset or length '{text}'", where=where)
    return int(text)


def to_proto(array: Array, name: str = "") -> TensorProto:
    """An ONNX tensor with the data of an array (bfloat16 included)."""
    if array.dtype != ml_dtypes.bfloat16:
        return numpy_helper.from_array(np.asarray(array, order="C"), name)
    return onnx.helper.make_tensor(
        name, TensorProto.BFLOAT16, array.shape, array.tobytes(), raw=True
    )


def type_proto(shape: Sequence[Any], element: Attribute) -> onnx.TypeProto:
    """The ONNX type of a tensor; a symbolic extent is a dim of that name."""
    dims = [n if isinstance(n, int) else str(n) for n in shape]
    return onnx.helper.make_tensor_type_proto(number_of_element(element), dims)
