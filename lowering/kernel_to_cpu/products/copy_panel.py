"""Emit the copies that put a block of a matrix into the order a microkernel reads."""

from dataclasses import dataclass
from functools import partial

from ..emit.emitter import Emitter
from ..emit.module import Module
from ..emit.types import F32, PTR, Index, Type, Value, constant
from .blocks import Panel
from .numbers import FLOATS, Numbers


def copy_rows(
    b: Emitter,
    source: tuple[Value, int],
    target: tuple[Value, int],
    rows: Index,
    columns: Index,
    lanes: int,
    dtype: Type = F32,
) -> None:
    """Copy adjacent elements of `rows` rows; source and target are a pointer and a row stride."""
    vector = dtype.vector(lanes)
    whole = b.mul(b.split(columns, lanes)[0], lanes)
    with b.loop(0, rows, unroll=1) as row:
        read = b.address(dtype, source[0], b.mul(row, source[1]))
        write = b.address(dtype, target[0], b.mul(row, target[1]))
        with b.loop(0, whole, lanes, unroll=4) as i:
            b.store(b.load(vector, read, i), write, i)
        with b.loop(whole, columns, unroll=1) as i:
            b.store(b.load(dtype, read, i), write, i)


def copy_panel(
    b: Emitter,
    source: Value,
    target: Value,
    strides: tuple[int, int],
    panel: Panel,
    lanes: int,
    depth: Index,
    numbers: Numbers = FLOATS,
) -> None:
    """Copy a panel of `depth` rows so that its columns are adjacent, padded with zeros.

    Half floats are widened on the way.

    Units: `strides` are the source's, from row to row and from column to column.
    """
    if strides[1] == 1:
        _copy_vectors(b, source, target, strides[0], panel, lanes, depth, numbers)
    elif strides[0] == 1 and numbers.right == F32:
        _copy_transposed(b, source, target, strides[1], panel, lanes, depth)
    else:
        _copy_elements(b, source, target, strides, panel, lanes, (0, depth), numbers)


def _copy_vectors(
    b: Emitter,
    source: Value,
    target: Value,
    stride: int,
    panel: Panel,
    lanes: int,
    depth: Index,
    numbers: Numbers,
) -> None:
    vector = numbers.right.vector(lanes)
    with b.loop(0, depth, unroll=1) as k:
        for v in range(panel.vectors):
            start = v * lanes
            offset = b.add(b.mul(k, stride), start)
            row = b.load(vector, source, offset, mask=panel.channels - start)
            # The next panel's: rows lie too far apart for the processor to see where this goes.
            b.prefetch(numbers.right, source, b.add(offset, panel.vectors * lanes))
            b.store(numbers.widened(b, row), target, b.add(b.mul(k, panel.vectors * lanes), start))


def _copy_transposed(
    b: Emitter,
    source: Value,
    target: Value,
    stride: int,
    panel: Panel,
    lanes: int,
    depth: Index,
) -> None:
    """Copy columns that are contiguous in the source: square blocks, then the rows left over."""
    width = panel.vectors * lanes
    whole = b.mul(b.split(depth, lanes)[0], lanes)
    with b.loop(0, whole, lanes, unroll=1) as k:
        for v in range(panel.vectors):
            square = _Square(lanes, stride, width, min(lanes, panel.channels - v * lanes))
            read = b.address(F32, source, b.add(k, v * lanes * stride))
            write = b.address(F32, target, b.add(b.mul(k, width), v * lanes))
            name = b.module.once(str(square), partial(_square, b.module, square))
            b.call(name, None, [read, write])
    _copy_elements(b, source, target, (1, stride), panel, lanes, (whole, depth), FLOATS)


@dataclass(frozen=True)
class _Square:
    """Describe a square block to transpose; `valid` of its columns exist in the source."""

    lanes: int
    stride: int
    width: int
    valid: int


def _square(module: Module, square: _Square, name: str) -> None:
    vector = F32.vector(square.lanes)
    with module.function(name, [PTR, PTR], attributes="noinline") as b:
        source, target = b.parameters
        columns = [b.load(vector, source, i * square.stride) for i in range(square.valid)]
        columns += [constant(vector, 0.0)] * (square.lanes - square.valid)
        for i, row in enumerate(b.transpose(columns)):
            b.store(row, target, i * square.width)


def _copy_elements(
    b: Emitter,
    source: Value,
    target: Value,
    strides: tuple[int, int],
    panel: Panel,
    lanes: int,
    rows: tuple[Index, Index],
    numbers: Numbers,
) -> None:
    width = panel.vectors * lanes
    with b.loop(*rows, unroll=1) as k:
        for column in range(panel.channels, width):
            b.store(b.value(0.0, numbers.total), target, b.add(b.mul(k, width), column))
        with b.loop(0, panel.channels, unroll=1) as column:
            offset = b.linear((k, strides[0]), (column, strides[1]))
            value = numbers.widened(b, b.load(numbers.right, source, offset))
            b.store(value, target, b.add(b.mul(k, width), column))
