"""What we wrote ourselves, beside the libraries that could stand in its place.

    python benchmarks/own_parts.py

Three lines: writing LLVM text (llvmlite.ir), handing kernels to threads (concurrent.futures), and
normal forms of indices (sympy and islpy, where they are installed). docs/dependencies.md has them.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from isoform.dialects.index import flatten, iterators, normalise, row_major_strides, unflatten
from isoform.lowering.kernel_to_cpu.emit.emitter import Emitter
from isoform.lowering.kernel_to_cpu.emit.module import Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import F32, Index, Type, Value
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from isoform.lowering.kernel_to_cpu.runtime.runner import ROW, KernelTable, Pool, TableRunner

STEPS = 4000
LANES = 8
ROWS = 1000
THREADS = 2
SHAPES = ((2, 3, 8, 8), (6, 64), (2, 192))
ROUNDS = 9


def milliseconds(run: Callable[[], object]) -> float:
    """The median time of a call."""
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


# --- LLVM text ----------------------------------------------------------------------------------


def our_text() -> str:
    """Loads, fused multiply-adds and stores of vectors, by our emitter."""
    vector = Type("float", LANES)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        for k in range(STEPS):
            left, right = (b.load(vector, pointer, k * LANES) for pointer in pointers[:2])
            b.store(b.fma(left, right, left), pointers[2], k * LANES)

    return kernel(Module(), 3, 1, body).ir


def llvmlite_text() -> str:
    """The same by llvmlite's builder."""
    from llvmlite import ir

    vector, number = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)
    module = ir.Module()
    pointer = ir.PointerType(ir.FloatType())
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * 3), "kernel")
    fma = ir.Function(module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f32")
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def place(base: ir.Value, k: int) -> ir.Value:
        element = b.gep(base, [ir.Constant(number, k * LANES)])
        return b.bitcast(element, ir.PointerType(vector))

    for k in range(STEPS):
        left, right = (b.load(place(argument, k), align=4) for argument in function.args[:2])
        b.store(b.call(fma, [left, right, left]), place(function.args[2], k), align=4)
    b.ret_void()
    return str(module)


# --- threads ------------------------------------------------------------------------------------


def threads() -> tuple[float, float]:
    """Microseconds for each of `ROWS` kernels that do little: our pool, and Python's."""

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        with b.loop(low, high) as i:
            b.store(b.add(b.load(F32, pointers[0], i), b.load(F32, pointers[0], i)), pointers[0], i)

    items = 4096
    code = kernel(Module(), 1, items, body)
    library = Library([compile_object(code.ir, Isa.host())])
    data = np.zeros(items, np.float32)
    arguments = np.array([data.ctypes.data], np.uint64)
    rows = np.zeros(ROWS, ROW)
    rows["fn"], rows["items"] = library.address(code.symbol), items
    rows["args"] = arguments.ctypes.data
    table = KernelTable(rows)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function = kind(library.address(code.symbol))
    part = items // THREADS

    with Pool(THREADS) as pool, ThreadPoolExecutor(THREADS - 1) as python:
        runner = TableRunner(pool)

        def shared() -> None:
            address = arguments.ctypes.data
            for _ in range(ROWS):
                waiting = [
                    python.submit(function, address, k * part, (k + 1) * part)
                    for k in range(1, THREADS)
                ]
                function(address, 0, part)
                for task in waiting:
                    task.result()

        ours = milliseconds(lambda: runner.run(table))
        return ours * 1e3 / ROWS, milliseconds(shared) * 1e3 / ROWS


# --- indices ------------------------------------------------------------------------------------


def our_indices() -> bool:
    """Whether reshaping there and back is found to be nothing."""
    shape, *others = SHAPES
    found = iterators(len(shape))
    flat = flatten(found, row_major_strides(shape))
    for other in others:
        flat = normalise(flatten(unflatten(flat, other), row_major_strides(other)), shape)
    back = [normalise(index, shape) for index in unflatten(flat, shape)]
    return back == found


def sympy_indices() -> bool:
    """The same by sympy's floor, told that every symbol is a natural number."""
    import sympy

    shape, *others = SHAPES
    found = sympy.symbols("a b c d", integer=True, nonnegative=True)
    flat = sum(i * s for i, s in zip(found, row_major_strides(shape), strict=True))
    for other in others:
        strides = row_major_strides(other)
        parts = [sympy.Mod(sympy.floor(flat / s), n) for s, n in zip(strides, other, strict=True)]
        flat = sympy.simplify(sum(i * s for i, s in zip(parts, strides, strict=True)))
    strides = row_major_strides(shape)
    back = [sympy.Mod(sympy.floor(flat / s), n) for s, n in zip(strides, shape, strict=True)]
    return all(sympy.simplify(x - i) == 0 for x, i in zip(back, found, strict=True))


def isl_indices() -> bool:
    """The same by isl, which compares sets of points."""
    import islpy

    shape, *others = SHAPES
    names = [f"i{k}" for k in range(len(shape))]
    ranges = " and ".join(f"0 <= {i} < {n}" for i, n in zip(names, shape, strict=True))
    flat = " + ".join(f"{s}*{i}" for i, s in zip(names, row_major_strides(shape), strict=True))
    for other in others:
        strides = row_major_strides(other)
        parts = [f"(floor(({flat})/{s}) mod {n})" for s, n in zip(strides, other, strict=True)]
        flat = " + ".join(f"{s}*{part}" for part, s in zip(parts, strides, strict=True))
    places = zip(row_major_strides(shape), shape, strict=True)
    back = ", ".join(f"floor(({flat})/{s}) mod {n}" for s, n in places)
    domain = f"[{', '.join(names)}]"
    there = islpy.Map(f"{{ {domain} -> [{back}] : {ranges} }}")
    return there.is_equal(islpy.Map(f"{{ {domain} -> {domain} : {ranges} }}"))


def main() -> None:
    """Measure the three, each beside its library."""
    for name, run in (("ours", our_text), ("llvmlite.ir", llvmlite_text)):
        lines = run().count("\n")
        print(f"LLVM text: {name} {milliseconds(run):.1f} ms for {lines} lines")
    pool, python = threads()
    print(f"threads: {pool:.2f} us a kernel on {THREADS} threads, concurrent.futures {python:.2f}")
    for name, run in (("ours", our_indices), ("sympy", sympy_indices), ("isl", isl_indices)):
        try:
            found = run()
        except ImportError:
            print(f"indices: {name} is not installed")
            continue
        print(f"indices: {name} {milliseconds(run):.3f} ms, {'found' if found else 'not found'}")


if __name__ == "__main__":
    main()
