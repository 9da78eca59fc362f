"""Parse an ONNX file without the data of its large weights: they stay in the file.

A parsed protobuf holds every weight, beside the bytes that it was parsed from. Here the data are
left out of what is parsed, and the tensor names the place in the file instead, as one does whose
data lie in another file ("external data").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from ...dialects.files import ArrayFile
from .tensor_data import is_supported, packed_size

# Smaller files are read whole; smaller tensors stay in what is parsed.
LEAST_FILE, LEAST_TENSOR = 1 << 26, 1 << 16

GRAPH = onnx.ModelProto.GRAPH_FIELD_NUMBER
INITIALIZER = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER


def parse_without_data(path: Path) -> onnx.ModelProto:
    """The model in a file, the data of its large initialisers left there.

    Raises:
        DecodeError: this is no model.
        OSError: the file cannot be opened.
        UserError: it cannot be read.
    """
    path = path.resolve()
    file, model = ArrayFile.of(path), onnx.ModelProto()
    for field in _fields(file, 0, path.stat().st_size):
        if field.number != GRAPH:
            model.MergeFromString(field.whole(file))
            continue
        for inner in _fields(file, field.start, field.end):
            if inner.number == INITIALIZER and inner.end - inner.start >= LEAST_TENSOR:
                model.graph.initializer.append(_tensor(file, path.name, inner))
            else:
                model.graph.MergeFromString(inner.whole(file))
    return model


def _tensor(file: ArrayFile, name: str, field: _Field) -> TensorProto:
    """An initialiser whose data are named by their place in the file, where that is possible."""
    parts = list(_fields(file, field.start, field.end))
    data = [part for part in parts if part.number == RAW_DATA]
    rest = b"".join(part.whole(file) for part in parts if part.number != RAW_DATA)
    found = TensorProto.FromString(rest)
    size = sum(part.end - part.start for part in data)
    usual = is_supported(found.data_type) and found.data_location == TensorProto.DEFAULT
    if not usual or len(data) != 1 or size != packed_size(found.data_type, math.prod(found.dims)):
        return TensorProto.FromString(file.read(field.start, field.end - field.start))
    found.data_location = TensorProto.EXTERNAL
    place = {"location": name, "offset": str(data[0].start), "length": str(size)}
    for key, value in place.items():
        found.external_data.add(key=key, value=value)
    return found


@dataclass(frozen=True)
class _Field:
    """A field of a message: where its tag is, and where its value starts and ends."""

    number: int
    tag: int
    start: int
    end: int

    def whole(self, file: ArrayFile) -> bytes:
        """Its tag, its size and its value."""
        return file.read(self.tag, self.end - self.tag)


def _fields(file: ArrayFile, at: int, end: int) -> Iterator[_Field]:
    """The fields of the message in these bytes. Raises DecodeError where it is none."""
    while at < end:
        head = file.read(at, min(20, end - at))  # a tag and a size have ten bytes at most
        tag, start = _varint(head, 0)
        number, kind = tag >> 3, tag & 7
        size = _SIZES.get(kind, 0)
        if kind == _BYTES:
            size, start = _varint(head, start)
        elif kind == _VARINT:
            size = _varint(head, start)[1] - start
        elif kind not in _SIZES:
            raise DecodeError(f"a field of kind {kind}")
        stop = at + start + size
        if number == 0 or stop > end:
            raise DecodeError("a field ends after its message")
        yield _Field(number, at, at + start, stop)
        at = stop


_VARINT, _BYTES = 0, 2
_SIZES = {1: 8, 5: 4}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the place after it. Raises DecodeError where it does not end."""
    found = 0
    for k, byte in enumerate(data[at : at + 10]):
        found |= (byte & 127) << (7 * k)
        if byte < 128:
            return found, at + k + 1
    raise DecodeError("a number does not end")
