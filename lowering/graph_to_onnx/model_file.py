"""Write an ONNX model with its weights into a file, one weight in memory at a time.

The exporter's model lacks the weights' data. They are put into the file where protobuf would write
them, so that the bytes are those of the whole message, which is never made; or beside the model,
where they are too large for a protobuf.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import TensorProto, helper

from ...dialects.errors import UserError
from ...dialects.files import atomic_write, cannot, write_whole
from ...dialects.types import Array
from ..onnx_to_graph.tensor_data import packed_size, to_proto

# Above this much data the weights go into a file beside the model (a protobuf ends at 2 GiB).
EXTERNAL_BYTES = 3 << 29


def write_model(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write a model; `weights` are the data of its initialisers that have none.

    Raises:
        UserError: a weight has another shape, or a file cannot be written.
    """
    if sum(_size(proto) for proto in model.graph.initializer) > EXTERNAL_BYTES:
        _write_external(model, weights, path)
        write_whole(path, model.SerializeToString(deterministic=True))
        return
    before, after = _around(model, "graph")
    first, last = _around(model.graph, "initializer")
    tensors = [_tensor(proto, weights) for proto in model.graph.initializer]
    heads = [_field(onnx.GraphProto, "initializer", len(t) + size) + t for t, size in tensors]
    data = sum(size for _, size in tensors)
    whole = len(first) + sum(map(len, heads)) + data + len(last)
    with atomic_write(path) as file:
        file.write(before + _field(onnx.ModelProto, "graph", whole) + first)
        for proto, head, (_, size) in zip(model.graph.initializer, heads, tensors, strict=True):
            file.write(head)
            if size:
                file.write(_data(_weight(weights, proto), proto))
        file.write(last + after)


def fill(model: onnx.ModelProto, weights: Mapping[str, Array]) -> None:
    """Put the data of the (so far empty) initialisers inside the model.

    Raises:
        UserError: a weight has another shape.
    """
    for proto in model.graph.initializer:
        if _is_empty(proto, weights):
            proto.CopyFrom(to_proto(_weight(weights, proto), proto.name))


# --- data ---


def _is_empty(proto: TensorProto, weights: Mapping[str, Array]) -> bool:
    return proto.name in weights and not proto.HasField("raw_data")


def _size(proto: TensorProto) -> int:
    return packed_size(proto.data_type, math.prod(proto.dims))


def _weight(weights: Mapping[str, Array], proto: TensorProto) -> Array:
    """A weight's data in its declared dtype."""
    array = np.asarray(weights[proto.name])
    if array.shape != tuple(proto.dims):
        raise UserError(
            f"weight '{proto.name}' has another shape",
            expected=list(proto.dims),
            found=list(array.shape),
        )
    return array.astype(helper.tensor_dtype_to_np_dtype(proto.data_type), copy=False)


def _data(array: Array, proto: TensorProto) -> Any:
    """The bytes of `raw_data`; those of whole bytes an element are not copied."""
    if _size(proto) != array.nbytes:  # elements share bytes
        return to_proto(array).raw_data
    return np.asarray(array, order="C").reshape(-1).view(np.uint8).data


def _write_external(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write the data to a file beside the model."""
    beside = path.with_name(path.name + ".data")
    try:
        with atomic_write(beside) as file:
            for proto in model.graph.initializer:
                if not _is_empty(proto, weights):
                    continue
                file.write(b"\0" * (-file.tell() % 64))
                proto.data_location = TensorProto.EXTERNAL
                size = _size(proto)
                entries = {"location": beside.name, "offset": file.tell(), "length": size}
                for key, value in entries.items():
                    proto.external_data.add(key=key, value=str(value))
                file.write(_data(_weight(weights, proto), proto))
    except OSError as error:
        raise cannot("write", beside, error) from error


# --- protobuf's format: fields in the order of their numbers, each a tag, a size and its bytes ---


def _around(message: Message, name: str) -> tuple[bytes, bytes]:
    """The bytes of the fields before the field of this name, and after it."""
    number = message.DESCRIPTOR.fields_by_name[name].number
    parts: list[bytes] = []
    for kept in (range(number), range(number + 1, 1 << 29)):
        part = type(message)()
        part.CopyFrom(message)
        for field, _ in message.ListFields():
            if field.number not in kept:
                part.ClearField(field.name)
        parts.append(part.SerializeToString(deterministic=True))
    return parts[0], parts[1]


def _tensor(proto: TensorProto, weights: Mapping[str, Array]) -> tuple[bytes, int]:
    """What stands before a tensor's data, and how many bytes of data follow."""
    head = proto.SerializeToString(deterministic=True)
    if not _is_empty(proto, weights):
        return head, 0
    return head + _field(TensorProto, "raw_data", _size(proto)), _size(proto)


def _field(message: type[Message], name: str, size: int) -> bytes:
    """What stands before the bytes of a field: its number with the kind `bytes`, and the size."""
    return _varint(message.DESCRIPTOR.fields_by_name[name].number << 3 | 2) + _varint(size)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
