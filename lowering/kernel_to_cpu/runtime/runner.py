"""Run a table of kernels in one native call, over a pool of threads that sleep when idle."""

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....dialects.errors import UserError
from ..isa import Isa
from . import pool_ir
from .jit import Library
from .object_cache import ObjectCache

ROW = np.dtype([("fn", np.uint64), ("args", np.uint64), ("items", np.int64), ("flags", np.int64)])
"""One row of a program: a kernel's address, its argument array's, and its parallel size.

`flags` is 0, or `LOOP` for a loop: its arguments say what is run (control_ir.py).
"""
LOOP = 1


class _Native:
    """Hold the compiled runtime; it is never unloaded, since daemon threads may be inside."""

    def __init__(self) -> None:
        isa = Isa.host()
        self.library = Library([ObjectCache().object(pool_ir.runtime(), isa)])
        self.worker = self._function("worker", ctypes.c_void_p)
        self.run = self._function("run", ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self.stop = self._function("stop", ctypes.c_void_p)

    def _function(self, name: str, *params: type) -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, *params)(self.library.address(name))


@cache
def _native() -> _Native:
    return _Native()


def _work(memory: NDArray[np.uint8], address: int) -> None:
    """Run native code until told to stop; holding `memory` keeps `address` valid."""
    _native().worker(address)
    del memory


class Pool:
    """Own `threads - 1` native workers; the thread that runs a program is the remaining one.

    Several pools may coexist. After a fork the child's pools start new workers when they
    are next used. A closed pool still runs programs, on the caller alone.

    Attributes:
        workers: the threads that it has started in this process.
    """

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.threads = threads
        self.lock = threading.Lock()
        self._closed = False
        self._start()
        _pools.add(self)

    def _start(self) -> None:
        """Make the state that workers share, and start them."""
        _native()  # before any thread needs it: made twice, one would be freed with a worker inside
        workers = 0 if self._closed else self.threads - 1
        self._memory = np.zeros(pool_ir.STATE_BYTES + 128, np.uint8)
        base = self._memory.ctypes.data
        self.address = base + -base % 128
        ctypes.c_int64.from_address(self.address + pool_ir.WORKERS).value = workers
        self._process = os.getpid()
        self.workers = [
            threading.Thread(target=_work, args=(self._memory, self.address), daemon=True)
            for _ in range(workers)
        ]
        try:
            for thread in self.workers:
                thread.start()
        except RuntimeError as error:
            _native().stop(self.address)  # those that did start end by themselves
            raise UserError(f"the system starts no {workers} threads: {error}") from error
        self._forgotten = weakref.finalize(self, _native().stop, self.address)
        self._forgotten.atexit = False

    def ready(self) -> int:
        """Give the address of the shared state, with workers started in this process."""
        if self._process != os.getpid():
            self._forgotten.detach()
            self._start()
        return self.address

    def close(self, patience: float = -1) -> None:
        """Stop and join the workers once no program runs; closing twice is fine.

        Units: `patience` is how many seconds to wait for a running program; -1 is for ever.
        """
        if not self.lock.acquire(timeout=patience):
            return
        try:
            self._close()
        finally:
            self.lock.release()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._forgotten.detach()
        if self._process == os.getpid():
            _native().stop(self.address)
            for thread in self.workers:
                thread.join()
        self._start()

    def renew_lock(self) -> None:
        """Replace the lock, which another thread may have held when this process was forked."""
        self.lock = threading.Lock()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _close_all() -> None:
    """Leave no thread inside native code that the interpreter is about to unload."""
    for pool in list(_pools):
        pool.close(patience=1.0)


def _after_fork() -> None:
    for pool in list(_pools):
        pool.renew_lock()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class KernelTable:
    """Hold the rows (dtype `ROW`) of a program at a fixed address for native code."""

    def __init__(self, rows: NDArray[np.void]) -> None:
        self.rows = np.ascontiguousarray(rows, ROW)
        self.address = self.rows.ctypes.data
        self.count = len(self.rows)


class TableRunner:
    """Run tables of rows on a pool; `calls` counts native calls."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.calls = 0
        self._run = _native().run

    def run(self, table: KernelTable) -> None:
        """Execute the rows in order, by exactly one native call.

        The argument arrays and buffers must outlive the call. Threads that share a pool take turns.
        """
        pool = self.pool
        with pool.lock:
            self.calls += 1
            self._run(table.address, table.count, pool.ready())
