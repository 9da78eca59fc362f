"""A compiled program of the largest sizes as a session for smaller ones."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dialects.dims_attr import dims_as_written
from ...dialects.errors import UserError
from ...dialects.extent_math import Expression, value_at
from ...dialects.program import SIZE, Program, return_of
from ...dialects.specialize import sizes_of_shapes
from ...dialects.types import Array
from ...lowering.kernel_to_cpu.runtime.execute import OutputMemory, room
from .session import Session
from .value_info import check_out

Extents = Sequence[int | Expression]


class PaddedSession(Session):
    """Runs a program made by `bound-dims` on arrays of any size up to its bounds.

    Arrays are copied into larger ones, with zeros behind their rows; results are cut, into memory
    that the caller no longer holds.

    Args:
        session: of the bounded program.
        symbolic: the program with symbols that it was made of.
        bounds: the largest size of each symbol that has one.
        fixed: the sizes of the others.
    """

    def __init__(
        self,
        session: Session,
        symbolic: Program,
        bounds: Mapping[str, int],
        fixed: Mapping[str, int],
    ) -> None:
        self.session, self.runner, self.program = session, session.runner, session.program
        self.bounds, self.fixed = dict(bounds), dict(fixed)
        sizes = {SIZE + name for name in bounds}
        self.inputs = tuple(i for i in session.inputs if i.name not in sizes)
        self.outputs = session.outputs
        self._defaults, self._cuts, self._closed = {}, {}, False
        self._lock = threading.Lock()
        args = symbolic.main.body.block.args
        names = self._names = symbolic.input_names
        self._symbolic = symbolic
        self._dims = {n: dims_as_written(arg.type) for n, arg in zip(names, args, strict=True)}
        results = return_of(symbolic.module).arguments
        self._results = {
            name: dims_as_written(value.type)
            for name, value in zip(symbolic.output_names, results, strict=True)
        }
        most = {**self.fixed, **self.bounds}
        # What padded results are written into: fresh memory of the largest size costs more.
        self._room = {
            info.name: aligned(_at(self._results[info.name], most), info.dtype)
            for info in session.outputs
            if not all(isinstance(dim, int) for dim in self._results[info.name])
        }
        self._given_out = {
            name: OutputMemory(array.dtype, array.shape) for name, array in self._room.items()
        }
        # The arrays that the program reads, and the shapes that were copied into them last.
        self._buffers: dict[str, Array] = {}
        self._held: dict[str, tuple[int, ...]] = {}

    def _run(
        self, feeds: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        if self._closed:
            raise UserError("this session is closed")
        with self._lock:
            sizes = self._sizes(feeds)
            if all(sizes[name] == n for name, n in self.bounds.items()):
                return self._whole(feeds, out)
            given = {name: self._padded(name, array) for name, array in feeds.items()}
            given |= {SIZE + name: np.asarray(sizes[name], np.int64) for name in self.bounds}
            shapes = {name: _at(dims, sizes) for name, dims in self._results.items()}
            fixed = self._fixed_outputs(shapes, out or {})
            whole = self.session.run(None, given, {**self._room, **fixed})
            found = dict(zip(self._results, whole, strict=True))
            for name, memory in self._given_out.items():
                rows = found[name][tuple(map(slice, shapes[name]))]
                into = (out or {}).get(name)
                found[name] = memory.take(shapes[name]) if into is None else into
                found[name][...] = rows
        return found

    def _fixed_outputs(
        self, shapes: Mapping[str, tuple[int, ...]], out: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Of arrays that fit, those that the program itself may write into."""
        check_out([replace(o, shape=shapes[o.name]) for o in self.outputs], out)
        return {name: array for name, array in out.items() if name not in self._room}

    def _whole(
        self, feeds: Mapping[str, Array], out: Mapping[str, Array] | None
    ) -> dict[str, Array]:
        """Run at the bounds: nothing is copied."""
        bounds = {SIZE + name: np.asarray(n, np.int64) for name, n in self.bounds.items()}
        found = self.session.run(None, {**feeds, **bounds}, out)
        return dict(zip(self._results, found, strict=True))

    def _sizes(self, feeds: Mapping[str, Array]) -> dict[str, int]:
        """The size of each symbol, for arrays that fit the types."""
        sizes = dict(self.fixed)
        for name, array in feeds.items():
            for dim, n in zip(self._dims[name], array.shape, strict=True):
                if not isinstance(dim, int) and dim.is_Symbol:
                    sizes[dim.name] = n
        if all(name in sizes for name in self.bounds):
            return sizes
        shapes = {name: array.shape for name, array in feeds.items()}
        return sizes_of_shapes(self._symbolic.main, self._names, shapes)

    def _padded(self, name: str, array: Array) -> Array:
        """An array of the bounds' shape, zeros behind the rows of this one."""
        if all(isinstance(dim, int) for dim in self._dims[name]):
            return array
        buffer = self._buffers.get(name)
        if buffer is None:
            shape = _at(self._dims[name], {**self.fixed, **self.bounds})
            buffer = self._buffers[name] = np.zeros(shape, array.dtype)
        elif any(n < m for n, m in zip(array.shape, self._held[name], strict=True)):
            buffer[...] = 0
        buffer[tuple(map(slice, array.shape))] = array
        self._held[name] = array.shape
        return buffer


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array at an address that 64 divides: kernels write into it without a copy."""
    size = math.prod(shape) * dtype.itemsize
    return room(size)[:size].view(dtype).reshape(shape)


def _at(dims: Extents, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else value_at(d, sizes) for d in dims)
