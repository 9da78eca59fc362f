"""Run a linked program: bind the addresses of inputs and outputs, and make the native calls.

Outputs are written where the caller gets them. Only those that have no buffer of their own (an
input, a constant, a part of something else) are copied.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....dialects.errors import UserError
from ....dialects.index_range import check_columns, out_of_range
from ....dialects.types import Array, strided
from .runner import KernelTable, Pool, TableRunner

ALIGNMENT = 64


@dataclass(frozen=True)
class Outside:
    """Name, dtype and shape of an array outside the arena: an input, or an output handed out."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Patch:
    """A position in an argument table that holds an outside array's address plus `shift` bytes."""

    table: Array
    position: int
    outside: int
    shift: int

    @cached_property
    def words(self) -> memoryview:
        """The table; a memoryview is written in less time than an array."""
        return self.table.data


@dataclass(frozen=True)
class View:
    """A value's elements: in outside array number `outside`, or at a fixed address.

    Units: `strides`, `offset` (of the first element) and `size` (of the buffer) are bytes.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()
    address: int = 0
    offset: int = 0
    size: int = 0
    outside: int | None = None

    def array(self) -> Array:
        """The elements in place; the buffer must outlive the array."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        memory = (ctypes.c_uint8 * self.size).from_address(self.address)
        flat = np.ctypeslib.as_array(memory)[self.offset :]
        flat = flat[: flat.size // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype)
        return strided(flat, self.shape, self.strides)


@dataclass(frozen=True)
class Alarm:
    """The source of an op's alarm: `row` of table number `step`, or a later one, met a bad index.

    The alarm itself is an i64 in the session's memory, in the order of these ops.
    """

    step: int
    row: int
    indices: View | None  # the operand; None in a loop or a branch, where it may be gone
    sizes: tuple[int, ...]  # of the dim, or of each column's
    where: str  # the op, for the error


Step = KernelTable | Callable[[], None]


class Execution:
    """A linked program on a pool of threads. Calls from several threads run one after the other.

    Args:
        inputs: the first outside arrays.
        handed_out: the outside arrays after those; each is an output.
    """

    def __init__(
        self,
        inputs: Sequence[Outside],
        handed_out: Sequence[Outside],
        patches: Sequence[Patch],
        threads: int,
    ) -> None:
        self.inputs = inputs
        self.handed_out = handed_out
        self.steps: list[Step] = []
        self.outputs: dict[str, View] = {}
        self.alarms: Sequence[Alarm] = ()
        self.alarmed: Array = np.zeros(0, np.int64)
        self.pool = Pool(threads)
        self._patches = patches
        self._runner = TableRunner(self.pool)
        self._memory = [OutputMemory(output.dtype, output.shape) for output in handed_out]
        self._bound: Sequence[Array | Callable[[], Array]] = ()
        self._addresses: Sequence[int] = ()
        self._lock = threading.Lock()
        _executions.add(self)

    @property
    def calls(self) -> int:
        """Count the native calls made so far."""
        return self._runner.calls

    def run(
        self,
        inputs: Mapping[str, Array],
        out: Mapping[str, Array] | None = None,
        shared: Collection[str] = (),
    ) -> dict[str, Array]:
        """Run once. Inputs by name, of the exact shapes and dtypes.

        Args:
            out: arrays that outputs are written into, of the exact shapes and dtypes.
            shared: the outputs of `out` whose array is an input's, and which the program writes
                only where no kernel reads it afterwards.

        Raises:
            UserError: an input is missing or has another shape or dtype, or an index that is data
                is out of range.
        """
        arrays = [checked(wanted, inputs) for wanted in self.inputs]
        addresses = [_address(array) for array in arrays]
        return self._run(arrays, addresses, out or {}, arrays, shared)

    def run_at(
        self, inputs: Sequence[Callable[[], Array]], addresses: Sequence[int]
    ) -> dict[str, Array]:
        """Run once on memory that is not numpy's, of the exact shapes and dtypes.

        Args:
            inputs: what holds the memory of each input, and makes an array of it if one is needed.
            addresses: of their first elements.

        Raises:
            UserError: as `run`.
        """
        return self._run(inputs, addresses, {}, ())

    def _run(
        self,
        inputs: Sequence[Array | Callable[[], Array]],
        addresses: Sequence[int],
        out: Mapping[str, Array],
        arrays: Sequence[Array],
        shared: Collection[str] = (),
    ) -> dict[str, Array]:
        with self._lock:
            self._bound = ()  # so that memory which the caller let go can be given out again
            self._bind(inputs, addresses, self._receivers(out, arrays, shared))
            if self.alarms:
                self.alarmed[...] = 0
            for step in self.steps:
                if isinstance(step, KernelTable):
                    self._runner.run(step)
                    if self.alarms and self.alarmed.any():
                        raise self._out_of_range()
                else:
                    step()
            return self._results(out)

    def _receivers(
        self, out: Mapping[str, Array], inputs: Sequence[Array], shared: Collection[str]
    ) -> list[Array]:
        """Where outputs are written: a caller's array that suits, or memory of our own."""
        if not out:
            return [memory.take() for memory in self._memory]
        found: list[Array] = []
        for output, memory in zip(self.handed_out, self._memory, strict=True):
            given = out.get(output.name)
            suits = given is not None and (output.name in shared or _suits(given, inputs, out))
            found.append(given if given is not None and suits else memory.take())
        return found

    def _bind(
        self,
        inputs: Sequence[Array | Callable[[], Array]],
        addresses: Sequence[int],
        outputs: Sequence[Array],
    ) -> None:
        """Put the outside arrays' addresses into the tables, and hold the arrays."""
        self._bound = [*inputs, *outputs]
        self._addresses = [*addresses, *(_address(array) for array in outputs)]
        for patch in self._patches:
            patch.words[patch.position] = self._addresses[patch.outside] + patch.shift

    def _bind_copies(self) -> None:
        """Let kernels write into copies of the outputs: callers have those of the last run."""
        first = len(self.inputs)
        copies = [self._array(k).copy() for k in range(first, len(self._bound))]
        self._bind(self._bound[:first], self._addresses[:first], copies)

    def _array(self, outside: int) -> Array:
        bound = self._bound[outside]
        return bound() if callable(bound) else bound

    def _results(self, out: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name: what was handed out as it is, the others as copies."""
        first = len(self.inputs)
        handed = {o.name: self._array(k) for k, o in enumerate(self.handed_out, first)}
        if not out and len(handed) == len(self.outputs):
            return handed
        # All are read before any is written: an array in `out` may lie in an input's memory.
        found = {
            name: handed[name] if name in handed else self.read(view).copy()
            for name, view in self.outputs.items()
        }
        for name, array in out.items():
            if found[name] is not array:
                array[...] = found[name]
        return {**found, **out}

    def _out_of_range(self) -> UserError:
        """Find the invalid index: the first of the first op that has one.

        Its input may have been overwritten since, so the program is run again up to there.
        """
        alarm = self.alarms[int(np.flatnonzero(self.alarmed)[0])]
        if alarm.indices is None:
            return out_of_range("(in a loop or a branch)", alarm.sizes[0], alarm.where)
        for step in self.steps[: alarm.step]:
            if isinstance(step, KernelTable):
                self._runner.run(step)
            else:
                step()
        last = self.steps[alarm.step]
        assert isinstance(last, KernelTable)
        self._runner.run(KernelTable(last.rows[: alarm.row]))
        try:
            check_columns(self.read(alarm.indices), alarm.sizes, alarm.where)
        except UserError as error:
            return error
        return out_of_range("(drawn at random)", alarm.sizes[0], alarm.where)

    def read(self, view: View) -> Array:
        """A value's current elements."""
        if view.outside is None:
            return view.array()
        flat = self._array(view.outside).reshape(-1)[view.offset // view.dtype.itemsize :]
        written = view.outside >= len(self.inputs)
        return strided(flat, view.shape, view.strides, writeable=written)

    def time(self, table: KernelTable) -> float:
        """Seconds that a table takes on the buffers of the last run."""
        clock = thread_clock(self.pool.threads)
        with self._lock:
            self._bind_copies()
            started = clock()
            self._runner.run(table)
            return clock() - started

    def step_seconds(self, rounds: int) -> list[list[float]]:
        """Seconds of each kernel and host step, in order, in each of so many runs.

        They run on the inputs of the last run, each kernel by a native call of its own.
        """
        parts: list[Step] = []
        for step in self.steps:
            rows = step.rows if isinstance(step, KernelTable) else None
            parts += [step] if rows is None else [KernelTable(r) for r in np.split(rows, len(rows))]
        found: list[list[float]] = [[] for _ in parts]
        with self._lock:
            self._bind_copies()
            for _ in range(rounds):
                for part, seconds in zip(parts, found, strict=True):
                    started = time.perf_counter()
                    if isinstance(part, KernelTable):
                        self._runner.run(part)
                    else:
                        part()
                    seconds.append(time.perf_counter() - started)
        return found

    def close(self) -> None:
        """Stop the worker threads."""
        self.pool.close()

    def renew_lock(self) -> None:
        """Replace the lock, which another thread may have held when this process was forked."""
        self._lock = threading.Lock()


class OutputMemory:
    """Memory for one output, given out again once nobody holds what was given out before.

    New pages cost more than the run of a fast kernel: the system clears them one by one.
    """

    # The caller often holds one result while it asks for the next.
    KEPT = 2

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._dtype = dtype
        self._shape = shape
        self._size = math.prod(shape) * dtype.itemsize
        self._owners: list[tuple[Array, int]] = []  # each with its first aligned byte

    def take(self, shape: tuple[int, ...] | None = None) -> Array:
        """An array that nobody else holds; its elements are undefined.

        Args:
            shape: one that the memory has room for; its own by default.
        """
        shape = self._shape if shape is None else shape
        for k in range(len(self._owners)):
            # The list and the argument hold it; every view of it that a caller has does, too.
            if sys.getrefcount(self._owners[k][0]) <= 2:
                return self._array(k, shape)
        owner = np.empty(self._size + ALIGNMENT, np.uint8)
        self._owners = [*self._owners, (owner, -_address(owner) % ALIGNMENT)][-self.KEPT :]
        return self._array(-1, shape)

    def _array(self, k: int, shape: tuple[int, ...]) -> Array:
        owner, start = self._owners[k]
        return np.ndarray(shape, self._dtype, owner, start)


_executions: weakref.WeakSet[Execution] = weakref.WeakSet()


def _after_fork() -> None:
    for execution in list(_executions):
        execution.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def thread_clock(threads: int) -> Callable[[], float]:
    """The clock for timing a run: on one thread its own time, which other load does not affect."""
    if threads == 1 and time.get_clock_info("thread_time").resolution <= 1e-6:
        return time.thread_time
    return time.perf_counter


def checked(wanted: Outside, inputs: Mapping[str, Array]) -> Array:
    """The array for an input, contiguous.

    Raises:
        UserError: it is missing or has another shape or dtype.
    """
    if wanted.name not in inputs:
        raise UserError(f"input '{wanted.name}' is missing", found=", ".join(inputs) or "none")
    array = np.asarray(inputs[wanted.name])
    if array.shape != wanted.shape or array.dtype != wanted.dtype:
        raise UserError(
            f"input '{wanted.name}' does not fit",
            expected=f"{wanted.dtype}{list(wanted.shape)}",
            found=f"{array.dtype}{list(array.shape)}",
        )
    return np.ascontiguousarray(array)


def _suits(array: Array, inputs: Sequence[Array], out: Mapping[str, Array]) -> bool:
    """Whether kernels may write an output into it: aligned, and apart from all others."""
    others = [*inputs, *(other for other in out.values() if other is not array)]
    plain = array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0
    return plain and not any(np.may_share_memory(array, other) for other in others)


def _address(array: Array) -> int:
    """The address of the first element; `array.ctypes` makes an object that takes longer."""
    return array.__array_interface__["data"][0]


def aligned(array: Array) -> Array:
    """A copy aligned to `ALIGNMENT`."""
    flat = np.ascontiguousarray(array)
    target = room(flat.nbytes).view(flat.dtype).reshape(flat.shape)
    target[...] = flat
    return target


def alarms_in(arena: Array, count: int) -> Array:
    """The alarms of this many gathers: an i64 each, at the end of an arena with room for them."""
    return arena[arena.nbytes - 8 * count :].view(np.int64)


def room(size: int) -> Array:
    """Aligned zeros; large arrays take no memory until they are used."""
    space = np.zeros(size + ALIGNMENT, np.uint8)
    start = -space.ctypes.data % ALIGNMENT
    return space[start : start + size]
