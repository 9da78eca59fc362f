"""Operands as ONNX takes them: broadcasting is left to the op that reads them.

An op that broadcasts by itself (elementwise ops, the batch dims of a product) gets the operand
of the `graph.broadcast` before it, so that no copy is made:

    %c = graph.broadcast %bias {shape = [1, 197, 768], dims = [2]}
    %y = graph.add %x, %c                                               Add(x, bias)

An Expand is written for other ops only, and where all operands are broadcast at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.graph.shaping import BroadcastOp, TransposeOp
from ...dialects.types import shape_of
from .nodes import NodeWriter

Shape: TypeAlias = "tuple[int, ...]"


@dataclass(frozen=True)
class Unbroadcast:
    """A value before it is broadcast: dim k of `value` is dim `dims[k]` of the read shape.

    `shape` is what numpy's broadcasting needs: aligned at the right, without leading 1s
    unless `value` has them.
    """

    value: SSAValue
    dims: Shape
    shape: Shape


def unbroadcast(value: SSAValue) -> Unbroadcast:
    """The value before the broadcasts that made it."""
    rank = len(shape_of(value))
    dims = tuple(range(rank))
    while isinstance(owner := value.owner, BroadcastOp):
        outer = owner.ints("dims")
        value, dims = owner.x, tuple(dims[d] for d in outer)
    own = shape_of(value)
    if dims == tuple(range(rank - len(own), rank)):
        return Unbroadcast(value, dims, own)
    first = dims[0] if dims else rank
    aligned = [own[dims.index(k)] if k in dims else 1 for k in range(first, rank)]
    return Unbroadcast(value, dims, tuple(aligned))


def write_unbroadcast(e: NodeWriter, found: Unbroadcast) -> str:
    """The name of the value in the shape that broadcasts: itself, or a Reshape of it."""
    name = e.name(found.value)
    return name if shape_of(found.value) == found.shape else reshaped(e, name, found.shape)


def reshaped(e: NodeWriter, name: str, shape: Sequence[int]) -> str:
    """The result of a Reshape, one for each name and shape."""
    key = (name, tuple(shape))
    if key not in e.reshapes:
        flags: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
        e.reshapes[key] = e.emit("Reshape", [name, e.integers(shape, "shape")], **flags)
    return e.reshapes[key]


def expand(e: NodeWriter, value: SSAValue, outputs: Sequence[str]) -> None:
    """Write a broadcast as a node."""
    shape = e.integers(shape_of(value), "shape")
    e.emit("Expand", [write_unbroadcast(e, unbroadcast(value)), shape], outputs)


def broadcastable(e: NodeWriter, operands: Sequence[SSAValue], shape: Shape) -> list[str]:
    """Names that numpy broadcasts to `shape`, unexpanded where that suffices."""
    found = [unbroadcast(v) for v in operands]
    whole = _whole_operand([f.value for f in found], [f.shape for f in found], shape)
    return [
        e.name(v) if k == whole else write_unbroadcast(e, f)
        for k, (v, f) in enumerate(zip(operands, found, strict=True))
    ]


def _whole_operand(values: Sequence[SSAValue], shapes: Sequence[Shape], shape: Shape) -> int | None:
    """The operand that must be expanded for all to have `shape` together, if any.

    One suffices; the largest is chosen, since a small one may be a literal.
    """
    if np.broadcast_shapes(*shapes) == shape:
        return None
    return max(range(len(values)), key=lambda k: math.prod(shape_of(values[k])))


def batched(e: NodeWriter, operands: Sequence[SSAValue], flags: Sequence[bool]) -> list[str]:
    """Names of a product's operands; MatMul broadcasts batch dims; flagged ones are transposed."""
    found = [_unbroadcast_batch(v) for v in operands]
    batch = shape_of(operands[0])[:-2]
    whole = _whole_operand([f.value for f in found], [f.shape[:-2] for f in found], batch)
    names: list[str] = []
    for k, (value, flag) in enumerate(zip(operands, flags, strict=True)):
        one = with_broadcasts(value) if k == whole else found[k]
        names.append(_swapped(e, one) if flag else write_unbroadcast(e, one))
    return names


def with_broadcasts(value: SSAValue) -> Unbroadcast:
    """A value with its broadcasts."""
    shape = shape_of(value)
    return Unbroadcast(value, tuple(range(len(shape))), shape)


def _unbroadcast_batch(value: SSAValue) -> Unbroadcast:
    """As `unbroadcast`, where the two dims of the matrices themselves are not broadcast."""
    found, shape = unbroadcast(value), shape_of(value)
    rank, own = len(shape), shape_of(found.value)
    if found.dims[-2:] == (rank - 2, rank - 1) and own[-2:] == shape[-2:]:
        return found
    return with_broadcasts(value)


def _swapped(e: NodeWriter, found: Unbroadcast) -> str:
    """Swap the last two dims with one Transpose, merged with one before it."""
    rank = len(found.shape)
    perm = [*range(rank - 2), rank - 1, rank - 2]
    owner = found.value.owner
    if isinstance(owner, TransposeOp) and e.is_waiting(found.value):
        before = owner.ints("perm")
        return e.emit("Transpose", [e.name(owner.x)], perm=[before[k] for k in perm])
    return e.emit("Transpose", [write_unbroadcast(e, found)], perm=perm)
