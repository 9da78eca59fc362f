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
from ...dialects.extent_text import read_extent
from ...dialects.program import ENDS, KEPT, SIZE, Program, return_of
from ...dialects.specialize import sizes_of_shapes
from ...dialects.types import Array
from ...lowering.kernel_to_cpu.runtime.execute import OutputMemory, room
from .grown_arrays import claim, hand_out
from .session import Session
from .value_info import check_out

Extents = Sequence[int | Expression]


class PaddedSession(Session):
    """Runs a program made by `bound-dims` on arrays of any size up to its bounds.

    Arrays are copied into larger ones, with zeros behind their rows; results are cut, into memory
    that the caller no longer holds. A result that grows an input (`Program.grows`) is the first
    rows of a larger array instead: given to a later call, it is not copied, and rows are put behind
    its own.

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
        self._grows = session.program.grows
        self._counts = {
            info.name: read_extent(info.name.removeprefix(SIZE))
            for info in session.inputs
            if info.name.startswith(SIZE) and info.name not in symbolic.input_names
        }
        added = {*self._counts, *(p + g for g, _ in self._grows.values() for p in (KEPT, ENDS))}
        self.inputs = tuple(i for i in session.inputs if i.name not in added)
        self._shapes: dict[str, Any] = {info.name: info.shape for info in session.inputs}
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
            and info.name not in self._grows
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
            sizes, out = self._sizes(feeds), out or {}
            given = {name: _scalar(value_at(e, sizes)) for name, e in self._counts.items()}
            if not self._grows and all(sizes[name] == n for name, n in self.bounds.items()):
                return self._whole({**feeds, **given}, out)
            shapes = {name: _at(dims, sizes) for name, dims in self._results.items()}
            into = {**self._room, **(self._fixed_outputs(shapes, out) if out else {})}
            grown = {name: self._grown(name, feeds, shapes[name]) for name in self._grows}
            for name, (source, axis) in self._grows.items():
                given[source] = into[name] = grown[name]
                given[KEPT + source] = _scalar(feeds[source].shape[axis])
                given[ENDS + source] = _scalar(shapes[name][axis])
            for name, array in feeds.items():
                if name not in given:
                    given[name] = self._padded(name, array)
            found = self._bounded(given, into)
            for name, memory in self._given_out.items():
                rows = found[name][tuple(map(slice, shapes[name]))]
                found[name] = memory.take(shapes[name]) if name not in out else out[name]
                found[name][...] = rows
            for name, (_, axis) in self._grows.items():
                found[name] = hand_out(grown[name], axis, shapes[name][axis])
                if name in out:
                    out[name][...] = found[name]
                    found[name] = out[name]
        return found

    def _bounded(self, given: dict[str, Array], into: Mapping[str, Array]) -> dict[str, Array]:
        """Run the bounded program; results that grow an input lie in the input's array."""
        if self._grows:
            runner: Any = self.runner
            return runner.run_into(given, into, self._grows)
        return dict(zip(self._results, self.session.run(None, given, into), strict=True))

    def _grown(self, name: str, feeds: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """The array for a result that grows an input, which holds the input's rows already."""
        source, axis = self._grows[name]
        array, whole = feeds[source], self._shapes[source]
        found = claim(array, whole, axis, shape[axis])
        if found is None:
            found = aligned(whole, array.dtype)
            found[tuple(map(slice, array.shape))] = array
        return found

    def _fixed_outputs(
        self, shapes: Mapping[str, tuple[int, ...]], out: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Of arrays that fit, those that the program itself may write into."""
        check_out([replace(o, shape=shapes[o.name]) for o in self.outputs], out)
        return {name: array for name, array in out.items() if name not in self._room}

    def _whole(self, feeds: Mapping[str, Array], out: Mapping[str, Array]) -> dict[str, Array]:
        """Run at the bounds: nothing is copied."""
        found = self.session.run(None, feeds, out)
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
            buffer = self._buffers[name] = np.zeros(self._shapes[name], array.dtype)
        elif any(n < m for n, m in zip(array.shape, self._held[name], strict=True)):
            buffer[...] = 0
        buffer[tuple(map(slice, array.shape))] = array
        self._held[name] = array.shape
        return buffer


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array at an address that 64 divides: kernels write into it without a copy."""
    size = math.prod(shape) * dtype.itemsize
    return room(size)[:size].view(dtype).reshape(shape)


def _scalar(number: int) -> Array:
    return np.asarray(number, np.int64)


def _at(dims: Extents, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else value_at(d, sizes) for d in dims)
