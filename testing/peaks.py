"""Measured peak rates of the cores: multiply-adds and copying."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from ..dialects.types import Array
from ..lowering.kernel_to_cpu.isa import Isa
from ..lowering.kernel_to_cpu.runtime.execute import aligned, thread_clock
from ..lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from ..lowering.kernel_to_cpu.runtime.runner import ROW, KernelTable, Pool, TableRunner

CHAINS = 12  # independent multiply-adds; each has a register
STEPS = 20_000
ITEMS = 16
COPY_BYTES = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
SECONDS = 0.03


@cache
def fma_peak(threads: int) -> float:
    """Float32 operations per second of multiply-adds in registers; each counts as two."""
    isa = Isa.host()
    lanes = isa.vector_bytes // 4
    kernel = _kernel(_fma_text(lanes), [np.zeros(ITEMS * lanes, np.float32)], threads)
    best = _best(kernel)
    kernel.pool.close()
    return 2 * lanes * CHAINS * STEPS * ITEMS / best


@cache
def copy_rates(threads: int) -> Mapping[int, float]:
    """Bytes per second, read and written together, of a copy that touches this many bytes."""
    return {size: size / _copy_seconds(size, threads) for size in COPY_BYTES}


def copy_rate(size: int, threads: int) -> float:
    """Bytes per second of a copy of about this size (interpolated from nearby sizes)."""
    rates = copy_rates(threads)
    for low, high in pairwise(COPY_BYTES):
        if size < high:
            share = max(0.0, np.log(max(1, size) / low) / np.log(high / low))
            return float(rates[low] + share * (rates[high] - rates[low]))
    return rates[COPY_BYTES[-1]]


class Copy:
    """The C library's copy of half of `size` bytes, to be timed in turn with something else.

    `times` is how often one timing runs it; the seconds are for one copy.
    """

    def __init__(self, size: int, threads: int, times: int = 1) -> None:
        half = max(1, size // 2 // ITEMS) * ITEMS
        arrays = [aligned(np.ones(half, np.uint8)) for _ in range(2)]
        self.execution = _kernel(_copy_text(half // ITEMS), arrays, threads, times)
        self.times = times

    def time(self) -> float:
        """Seconds of one copy."""
        return self.execution.time() / self.times

    def close(self) -> None:
        """Stop the worker threads."""
        self.execution.pool.close()


def _copy_seconds(size: int, threads: int) -> float:
    copy = Copy(size, threads)
    found = _best(copy.execution)
    copy.close()
    return found


@dataclass
class _Timed:
    """One kernel over its `ITEMS`, with the objects it depends on."""

    pool: Pool
    table: KernelTable
    alive: tuple[object, ...]

    def __post_init__(self) -> None:
        self.runner = TableRunner(self.pool)

    def time(self) -> float:
        """Seconds of one run; on one thread by the thread's own clock, as kernels are timed."""
        clock = thread_clock(self.pool.threads)
        started = clock()
        self.runner.run(self.table)
        return clock() - started


def _kernel(text: str, arrays: list[Array], threads: int, times: int = 1) -> _Timed:
    library = Library([compile_object(text, Isa.host())])
    addresses = np.array([array.ctypes.data for array in arrays], np.uint64)
    rows = np.array([(library.address("peak"), addresses.ctypes.data, ITEMS, 0)] * times, ROW)
    return _Timed(Pool(threads), KernelTable(rows), (library, arrays, addresses))


def _best(kernel: _Timed) -> float:
    """Seconds of the fastest of many runs."""
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(found) < 5 or time.perf_counter() < end:
        found.append(kernel.time())
    return min(found)


def _fma_text(lanes: int) -> str:
    """Each item does `STEPS` multiply-adds in each of `CHAINS` vectors; the sum is stored."""
    vector = f"<{lanes} x float>"
    ones = "splat (float 1.0)"
    half = "splat (float 0.5)"
    phis = [f"  %v{k} = phi {vector} [ {ones}, %item ], [ %w{k}, %step ]" for k in range(CHAINS)]
    work = [
        f"  %w{k} = call {vector} @llvm.fma.v{lanes}f32({vector} %v{k}, {vector} {half}, "
        f"{vector} %x)"
        for k in range(CHAINS)
    ]
    sums = ["  %s0 = fadd " + f"{vector} %w0, %w1"]
    sums += [f"  %s{k} = fadd {vector} %s{k - 1}, %w{k + 1}" for k in range(1, CHAINS - 1)]
    lines = [
        "define void @peak(ptr %args, i64 %lo, i64 %hi) {",
        "entry:",
        "  %p = load ptr, ptr %args",
        f"  %x = load {vector}, ptr %p, align 4",
        "  br label %item",
        "item:",
        "  %i = phi i64 [ %lo, %entry ], [ %i1, %done ]",
        "  br label %step",
        "step:",
        "  %n = phi i64 [ 0, %item ], [ %n1, %step ]",
        *phis,
        *work,
        "  %n1 = add i64 %n, 1",
        f"  %more = icmp ult i64 %n1, {STEPS}",
        "  br i1 %more, label %step, label %done",
        "done:",
        *sums,
        f"  %at = getelementptr {vector}, ptr %p, i64 %i",
        f"  store {vector} %s{CHAINS - 2}, ptr %at, align 4",
        "  %i1 = add i64 %i, 1",
        "  %again = icmp ult i64 %i1, %hi",
        "  br i1 %again, label %item, label %out",
        "out:",
        "  ret void",
        "}",
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
    ]
    return "\n".join(lines)


def _copy_text(size: int) -> str:
    """Copy `size` bytes for each item."""
    return f"""define void @peak(ptr %args, i64 %lo, i64 %hi) {{
  %next = getelementptr i8, ptr %args, i64 8
  %from = load ptr, ptr %args
  %to = load ptr, ptr %next
  %start = mul i64 %lo, {size}
  %count = sub i64 %hi, %lo
  %bytes = mul i64 %count, {size}
  %source = getelementptr i8, ptr %from, i64 %start
  %target = getelementptr i8, ptr %to, i64 %start
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
