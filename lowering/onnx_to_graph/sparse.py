"""Sparse initialisers and constants, written out: a program has dense tensors only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto

from ...dialects.errors import UserError
from ...dialects.types import Array
from .tensor_data import is_supported, packed_size, reader, tensor_shape, to_proto, type_name

# A tensor in a message has 2 GB at most.
MAX_BYTES = 1 << 30


def without_sparse(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model with dense tensors in place of its sparse ones; itself if it has none.

    Raises:
        UserError: values and indices do not fit the dims, or the dense tensor is too large.
    """
    if not any(_sparse(model)):
        return model
    dense = onnx.ModelProto()
    dense.CopyFrom(model)
    for found in list(_sparse(dense)):
        if isinstance(found, AttributeProto):
            array = _written_out(found.sparse_tensor, folder, "a sparse constant")
            found.CopyFrom(onnx.helper.make_attribute("value", to_proto(array)))
            continue
        for proto in found.sparse_initializer:
            name = proto.values.name
            array = _written_out(proto, folder, f"initialiser '{name}'")
            found.initializer.append(to_proto(array, name))
        del found.sparse_initializer[:]
    return dense


def _sparse(model: onnx.ModelProto) -> Iterator[GraphProto | AttributeProto]:
    """The graphs with sparse initialisers, and the attributes that are sparse tensors."""
    graphs: list[GraphProto] = [model.graph]
    nodes: list[NodeProto] = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if not nodes:
            graph = graphs.pop()
            nodes = list(graph.node)
            if graph.sparse_initializer:
                yield graph
            continue
        for attribute in nodes.pop().attribute:
            graphs += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
            if attribute.name == "sparse_value":
                yield attribute


def _written_out(proto: onnx.SparseTensorProto, folder: Path | None, where: str) -> Array:
    """The dense tensor: 0 where no index is."""
    shape, number = tuple(proto.dims), proto.values.data_type
    if any(n < 0 for n in shape):
        raise UserError("a tensor has a negative dim", where=where, found=list(shape))
    if not is_supported(number):
        raise UserError(f"element type {type_name(number)} is not supported", where=where)
    if packed_size(number, math.prod(shape)) > MAX_BYTES:
        raise UserError("too large to be written out as a dense tensor", where=where)
    values = reader(proto.values, folder, where)()
    flat = _flat(proto, shape, folder, where)
    if values.shape != flat.shape:
        raise UserError(
            "a sparse tensor needs an index for each value",
            where=where,
            expected=list(values.shape),
            found=list(tensor_shape(proto.indices, where)),
        )
    dense = np.zeros(math.prod(shape), values.dtype)
    dense[flat] = values
    return dense.reshape(shape)


def _flat(
    proto: onnx.SparseTensorProto, shape: tuple[int, ...], folder: Path | None, where: str
) -> Array:
    """The places of the values in the flattened tensor; ONNX gives them, or indices by dim."""
    indices = reader(proto.indices, folder, where)()
    if indices.ndim == 1:
        limits: tuple[int, ...] = (math.prod(shape),)
        indices = indices[:, None]
    else:
        limits = shape
    fits = indices.dtype == np.int64 and indices.ndim == 2 and indices.shape[1] == len(limits)
    if not fits or bool((indices < 0).any()) or bool((indices >= np.asarray(limits)).any()):
        raise UserError("a sparse tensor's indices do not fit its dims", where=where)
    return np.asarray(np.ravel_multi_index(tuple(indices.T), limits))


__all__ = ["MAX_BYTES", "without_sparse"]
