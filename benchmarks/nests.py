"""Time kernels printed from loop nests against others, in turn, in one process, on one thread.

    taskset -c 1 python benchmarks/nests.py product       products, which have both
    taskset -c 1 python benchmarks/nests.py rows --against before.json --rounds 15
    python benchmarks/nests.py product --check            compare values only
    python benchmarks/nests.py --compile                  what compiling takes
    python benchmarks/nests.py --save now.json            the kernels of programs, as text
    python benchmarks/nests.py --against before.json      these against kernels saved before
    python benchmarks/nests.py --print "softmax 128x768"  the nest of one shape

Both kernels work on the same buffers: where these lie decides by up to a tenth how fast one is. The
results are compared first.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import SSAValue

from isoform.compiler.commands.subcommands import table
from isoform.compiler.targets.cpu import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import GemmOp, KernelOp, LoopsOp, physical
from isoform.dialects.nest import NestOp
from isoform.dialects.types import tensor_type, to_numpy
from isoform.lowering.kernel_to_cpu.constants import Constants
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.kernel_call import Argument
from isoform.lowering.kernel_to_cpu.nests.loops import emit_loops
from isoform.lowering.kernel_to_cpu.products.contraction import lower_gemm, matrix_of
from isoform.lowering.kernel_to_cpu.runtime.execute import room
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from isoform.lowering.kernel_to_nest.product import ProductNest, product
from isoform.lowering.kernel_to_nest.schedule import loops
from isoform.lowering.nest_to_llvm.printer import print_llvm
from isoform.lowering.onnx_to_graph.resizing import interpolation, positions, window

ROUNDS = 25
LEAST_SECONDS = 1e-3  # of one measurement: small kernels are run several times
Make = Callable[[GraphBuilder], SSAValue]


@dataclass(frozen=True)
class Case:
    """One kernel of a kind."""

    kind: str
    name: str
    make: Make


def _vector(b: GraphBuilder, *shape: int, name: str = "w") -> SSAValue:
    drawn = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    return b.weight(name, drawn.astype(np.float32))


def _wide(b: GraphBuilder, x: SSAValue, name: str = "bias") -> SSAValue:
    shape = tensor_type(x).get_shape()
    return b.expand(_vector(b, shape[-1], name=name), shape)


def _constant(b: GraphBuilder, x: SSAValue, number: float) -> SSAValue:
    return b.expand(b.constant(np.float32(number)), tensor_type(x).get_shape())


def _add_relu(*shape: int) -> Make:
    return lambda b: b.relu(b.add(b.input("x", shape), b.input("z", shape)))


def _bias(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        return b.add(x, _wide(b, x))

    return make


def _gelu(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        x = b.add(x, _wide(b, x))
        half, root, one = (_constant(b, x, c) for c in (0.5, 2**-0.5, 1.0))
        return b.mul(b.mul(x, half), b.add(b.erf(b.mul(x, root)), one))

    return make


def _residual(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        return b.add(b.add(x, _wide(b, x)), b.input("z", shape))

    return make


def _column(*shape: int) -> Make:
    return lambda b: b.mul(b.input("x", shape), b.expand(b.input("z", (*shape[:-1], 1)), shape))


def _swish(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        return b.mul(x, b.sigmoid(x))

    return make


def _norm(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        return b.batch_norm(x, *(_vector(b, shape[1], name=f"p{k}") for k in range(4)))

    return make


def _tanh(*shape: int) -> Make:
    return lambda b: b.tanh(b.input("x", shape))


def _cast(source: Any, target: Any, *shape: int) -> Make:
    return lambda b: b.cast(b.input("x", shape, source), to=target)


def _transpose(perm: Sequence[int], *shape: int) -> Make:
    return lambda b: b.transpose(b.input("x", shape), perm=list(perm))


def _pad(n: int, *shape: int) -> Make:
    pads = [0] * (len(shape) - 2) + [n] * 2
    return lambda b: b.pad(b.input("x", shape), pads=[*pads, *pads])


def _concat(axis: int, *shape: int) -> Make:
    return lambda b: b.concat(b.input("x", shape), b.input("z", shape), axis=axis)


def _softmax(*shape: int) -> Make:
    return lambda b: b.softmax(b.input("x", shape), axis=len(shape) - 1)


def _masked_softmax(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x = b.input("x", shape)
        x = b.add(b.mul(x, _constant(b, x, 0.125)), _wide(b, x, "mask"))
        return b.softmax(x, axis=len(shape) - 1)

    return make


def _log_softmax(*shape: int) -> Make:
    return lambda b: b.op("log_softmax", b.input("x", shape), axis=len(shape) - 1)


def _layer_norm(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        x, n = b.input("x", shape), shape[-1]
        scale, bias = _vector(b, n, name="g"), _vector(b, n, name="b")
        return b.layer_norm(x, scale, bias, axis=len(shape) - 1, epsilon=1e-5)

    return make


def _reduce(kind: str, *shape: int) -> Make:
    return lambda b: b.op(
        f"reduce_{kind}", b.input("x", shape), axes=[len(shape) - 1], keep_dims=False
    )


def _reduced(kind: str, axes: Sequence[int], *shape: int) -> Make:
    return lambda b: b.op(f"reduce_{kind}", b.input("x", shape), axes=axes, keep_dims=False)


def _pool(kind: str, size: int, step: int, pad: int, *shape: int) -> Make:
    rank = len(shape) - 2
    geometry: dict[str, Any] = {
        "strides": [step] * rank,
        "pads": [pad] * 2 * rank,
        "dilations": [1] * rank,
    }
    if kind == "avg":
        geometry["count_include_pad"] = False
    return lambda b: b.op(f"{kind}_pool", b.input("x", shape), kernel=[size] * rank, **geometry)


def _half_norm(*shape: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        scale, bias = (_vector(b, shape[-1], name=name) for name in ("g", "b"))
        x = b.cast(b.input("x", shape, f16), to=f32)
        y = b.layer_norm(x, scale, bias, axis=len(shape) - 1, epsilon=1e-5)
        return b.cast(y, to=f16)

    return make


def _half_softmax(*shape: int) -> Make:
    return lambda b: b.softmax(b.input("x", shape, f16), axis=len(shape) - 1)


def _resized(factor: int, *shape: int) -> Make:
    return lambda b: _interpolated(b, b.input("x", shape), factor)


def _mixed(factor: int, *shape: int) -> Make:
    """A convolution leaves its channels last."""

    def make(b: GraphBuilder) -> SSAValue:
        kernel = b.weight("w", np.eye(shape[1], dtype=np.float32)[:, :, None, None])
        y = b.conv(b.input("x", shape), kernel, strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
        return _interpolated(b, y, factor)

    return make


def _interpolated(b: GraphBuilder, x: SSAValue, factor: int) -> SSAValue:
    """Linear interpolation of pictures, `factor` times as high and wide."""
    shape = tensor_type(x).get_shape()
    for axis in (2, 3):
        at = positions("half_pixel", shape[axis], shape[axis] * factor, factor, None)
        matrix = interpolation(at, shape[axis], "linear", {})
        found = window(at, matrix)
        assert found is not None
        weights = b.constant(found.weights(matrix).astype(np.float32))
        geometry = {"step": found.step, "shift": found.shift, "per": found.per}
        x = b.resample(x, weights, axis=axis, **geometry)
    return x


def _blurred(*shape: int) -> Make:
    """Windows of a softmax: rows that are read at other places than where they were made."""

    def make(b: GraphBuilder) -> SSAValue:
        x = b.softmax(b.input("x", shape), axis=len(shape) - 1)
        return b.avg_pool(x, kernel=[5], strides=[1], pads=[2, 2], dilations=[1])

    return make


def _centred(*shape: int) -> Make:
    """What differs from the mean by at least the mean difference: rows of bools."""

    def make(b: GraphBuilder) -> SSAValue:
        x, axis = b.input("x", shape), len(shape) - 1

        def mean(y: SSAValue) -> SSAValue:
            y = b.reduce_mean(y, axes=[axis], keep_dims=True)
            return b.expand(y, shape)

        far = b.abs(b.sub(x, mean(x)))
        return b.mul(far, b.cast(b.less(mean(far), far), to=f32))

    return make


def _product(m: int, n: int, k: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        return b.relu(b.matmul(b.input("x", (m, k)), _scaled(b, k, n)))

    return make


def _scaled(b: GraphBuilder, k: int, n: int) -> SSAValue:
    drawn = np.random.default_rng(2).standard_normal((k, n)) / math.sqrt(k)
    return b.weight("w", drawn.astype(np.float32))


def _biased(m: int, n: int, k: int) -> Make:
    def make(b: GraphBuilder) -> SSAValue:
        y = b.matmul(b.input("x", (m, k)), _scaled(b, k, n))
        return b.add(b.add(y, _wide(b, y)), b.input("z", (m, n)))

    return make


def _cases(kind: str, *made: tuple[str, Callable[..., Make], Sequence[Any]]) -> list[Case]:
    def name(word: str, args: Sequence[Any]) -> str:
        return f"{word} " + "x".join(str(a) for a in args if isinstance(a, int))

    return [Case(kind, name(word, args), make(*args)) for word, make, args in made]


CASES = [
    *_cases(
        "points",
        ("add relu", _add_relu, (16384,)),
        ("add relu", _add_relu, (1, 64, 56, 56)),
        ("add relu", _add_relu, (64, 1000)),
        ("bias", _bias, (128, 768)),
        ("bias", _bias, (512, 197)),
        ("gelu", _gelu, (128, 3072)),
        ("residual", _residual, (512, 768)),
        ("times column", _column, (197, 512)),
        ("swish", _swish, (1, 64, 28, 28)),
        ("batch norm", _norm, (1, 64, 56, 56)),
        ("tanh", _tanh, (64, 1000)),
        ("to f16", _cast, (f32, f16, 256, 1024)),
        ("transpose", _transpose, ((1, 0), 512, 512)),
        ("transpose", _transpose, ((1, 0), 197, 301)),
        ("heads", _transpose, ((1, 0, 2), 128, 12, 64)),
        ("channels last", _transpose, ((0, 2, 3, 1), 1, 64, 56, 56)),
        ("image last", _transpose, ((0, 2, 3, 1), 1, 3, 224, 224)),
        ("image first", _transpose, ((0, 3, 1, 2), 1, 224, 224, 3)),
        ("pad 1", _pad, (1, 1, 64, 56, 56)),
        ("concat", _concat, (1, 1, 64, 28, 28)),
    ),
    *_cases(
        "sums",
        ("max pool", _pool, ("max", 3, 2, 1, 1, 64, 112, 112)),
        ("max pool", _pool, ("max", 3, 2, 0, 1, 96, 55, 55)),
        ("max pool", _pool, ("max", 2, 2, 0, 1, 64, 56, 56)),
        ("max pool", _pool, ("max", 3, 1, 1, 1, 192, 28, 28)),
        ("max pool", _pool, ("max", 5, 1, 2, 1, 128, 20, 20)),
        ("max pool", _pool, ("max", 3, 1, 1, 1, 64, 301, 301)),
        ("max pool", _pool, ("max", 3, 2, 0, 1, 64, 1000)),
        ("max pool", _pool, ("max", 2, 2, 0, 1, 32, 16, 28, 28)),
        ("average", _pool, ("avg", 3, 1, 1, 1, 192, 35, 35)),
        ("average", _pool, ("avg", 2, 2, 0, 1, 128, 56, 56)),
        ("average", _pool, ("avg", 7, 1, 0, 1, 256, 14, 14)),
        ("average", _pool, ("avg", 3, 1, 1, 1, 64, 301, 301)),
        ("sum of columns", _reduced, ("sum", (0,), 512, 768)),
        ("sum of columns", _reduced, ("sum", (0,), 64, 1000)),
        ("sum of columns", _reduced, ("sum", (0,), 1024, 4096)),
        ("max of columns", _reduced, ("max", (0,), 512, 768)),
        ("max of columns", _reduced, ("max", (1,), 16, 128, 100)),
        ("mean of columns", _reduced, ("mean", (1,), 8, 196, 768)),
        ("sum of pictures", _reduced, ("sum", (1, 2), 4, 14, 14, 256)),
        ("product of columns", _reduced, ("prod", (1,), 64, 5, 300)),
    ),
    *_cases(
        "rows",
        ("softmax", _softmax, (128, 768)),
        ("softmax", _softmax, (12, 128, 128)),
        ("softmax", _softmax, (64, 1000)),
        ("softmax", _softmax, (197, 197)),
        ("softmax", _softmax, (16, 4096)),
        ("softmax", _softmax, (512, 64)),
        ("masked softmax", _masked_softmax, (12, 128, 128)),
        ("masked softmax", _masked_softmax, (384, 384)),
        ("log softmax", _log_softmax, (64, 1000)),
        ("layer norm", _layer_norm, (128, 768)),
        ("layer norm", _layer_norm, (512, 768)),
        ("layer norm", _layer_norm, (197, 192)),
        ("layer norm", _layer_norm, (64, 1023)),
        ("layer norm", _layer_norm, (8, 4096)),
        ("sum", _reduce, ("sum", 512, 768)),
        ("sum", _reduce, ("sum", 64, 49)),
        ("max", _reduce, ("max", 512, 768)),
        ("max", _reduce, ("max", 100, 301)),
        ("mean", _reduce, ("mean", 512, 49)),
        ("mean", _reduce, ("mean", 2048, 196)),
    ),
    *_cases(
        "windows",
        ("linear", _resized, (2, 1, 64, 28, 28)),
        ("linear", _resized, (2, 1, 64, 112, 112)),
        ("linear", _resized, (2, 1, 16, 15, 20)),
        ("linear, channels last", _mixed, (2, 1, 64, 28, 28)),
        ("linear, channels last", _mixed, (2, 1, 37, 28, 28)),
        ("linear, channels last", _mixed, (3, 1, 32, 56, 56)),
        ("linear, channels last", _mixed, (2, 1, 128, 112, 112)),
        ("blurred softmax", _blurred, (8, 64, 200)),
        ("blurred softmax", _blurred, (8, 64, 37)),
        ("half norm", _half_norm, (128, 768)),
        ("half softmax", _half_softmax, (12, 128, 128)),
        ("centred", _centred, (128, 768)),
        ("centred", _centred, (64, 37)),
        ("sum of two dims", _reduced, ("sum", (0, 2), 8, 64, 196)),
        ("max of two dims", _reduced, ("max", (0, 2), 8, 64, 196)),
        ("sum of all", _reduced, ("sum", (0, 1), 512, 768)),
    ),
    *_cases(
        "product",
        ("product", _product, (128, 768, 768)),
        ("product", _product, (128, 3072, 768)),
        ("product", _product, (128, 768, 3072)),
        ("product", _product, (512, 768, 768)),
        ("product", _product, (384, 1024, 1024)),
        ("product", _product, (3136, 64, 64)),
        ("product", _product, (3136, 64, 576)),
        ("product", _product, (784, 128, 512)),
        ("product", _product, (196, 256, 1024)),
        ("product", _product, (49, 512, 2048)),
        ("product", _product, (49, 512, 4608)),
        ("product", _product, (64, 1000, 2048)),
        ("product", _product, (197, 197, 64)),
        ("product", _product, (100, 301, 77)),
        ("product", _product, (14, 32, 256)),
        ("product", _product, (1, 1000, 2048)),
        ("product", _product, (4, 768, 768)),
        ("product", _product, (1024, 1024, 1024)),
        ("bias and sum", _biased, (128, 768, 768)),
        ("bias and sum", _biased, (197, 192, 768)),
    ),
]


@dataclass
class Kernel:
    """A loaded kernel on its operands."""

    code: KernelCode
    function: Any
    table: np.ndarray
    result: np.ndarray
    kept: list[Any]

    def run(self, times: int = 1) -> None:
        address, items = self.table.ctypes.data, self.code.items
        for _ in range(times):
            self.function(address, 0, items)

    def seconds(self, times: int) -> float:
        start = time.thread_time_ns()
        self.run(times)
        return (time.thread_time_ns() - start) / 1e9 / times


def kernels(case: Case) -> tuple[KernelOp, Any]:
    """The case's kernel op, that of the most scopes, and the program's constants."""
    b = GraphBuilder()
    b.output("y", case.make(b))
    program = place(b.build(), CpuOptions(1, "quick", tolerance=0.0))
    constants = Constants(program)
    ops = [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]
    ops = [op for op in ops if op.result not in constants.known]
    return max(ops, key=lambda op: len(op.scopes)), constants


def load(code: KernelCode, op: KernelOp, arguments: Sequence[Any], data: dict[Any, Any]) -> Kernel:
    """Compile and link a kernel; `data` holds its operands and its result."""
    library = Library([compile_object(code.ir, Isa.host())])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    addresses: list[int] = []
    kept: list[Any] = [library, data]
    for argument in arguments:
        if argument.data is not None:
            copy = room(argument.data.nbytes + 4096)
            copy[: argument.data.nbytes] = (
                np.ascontiguousarray(argument.data).view(np.uint8).ravel()
            )
            kept.append(copy)
            addresses.append(copy.ctypes.data)
        else:
            array = data[argument.value]
            addresses.append(array.ctypes.data + argument.offset * array.itemsize)
    return Kernel(
        code,
        kind(library.address(code.symbol)),
        np.array(addresses, np.uint64),
        data[op.result],
        kept,
    )


def operands(op: KernelOp, constants: Any) -> dict[SSAValue, np.ndarray]:
    """Data for what the op reads, constants or drawn, and room for its result."""
    rng, found = np.random.default_rng(0), dict[SSAValue, np.ndarray]()
    for value in op.inputs:
        type_ = tensor_type(value)
        count, dtype = physical(type_)[2], to_numpy(type_.element_type)
        array = room(count * dtype.itemsize + 4096).view(dtype)[:count]
        if value in constants.known:
            assert count == math.prod(type_.get_shape())
            array[...] = np.asarray(constants[value]).ravel()
        else:
            array[...] = rng.standard_normal(count).astype(dtype)
        found[value] = array
    count, dtype = physical(op.type)[2], to_numpy(op.type.element_type)
    found[op.result] = room(count * dtype.itemsize).view(dtype)
    return found


def text_of(case: Case) -> KernelCode:
    """The kernel that a program would run."""
    op, constants = kernels(case)
    if isinstance(op, GemmOp):
        known = {v: constants[v] for v in op.inputs if v in constants.known}
        return lower_gemm(op, known, Isa.host())[0].code
    return emit_loops(op, Isa.host())


def pair(case: Case, before: Mapping[str, Sequence[Any]]) -> tuple[Kernel, Kernel, float]:
    """Today's kernel, the nest's, and seconds that it took to build and print the nest.

    Where a kernel was saved `before`, that one, today's, and no seconds.
    """
    op, constants = kernels(case)
    if case.name in before and isinstance(op, LoopsOp):
        arguments, data = [Argument(v) for v in (*op.inputs, op.result)], operands(op, constants)
        saved, now = KernelCode(*before[case.name]), text_of(case)
        return load(saved, op, arguments, data), load(now, op, arguments, data), 0.0
    isa, data = Isa.host(), operands(op, constants)
    start = time.perf_counter()
    if isinstance(op, GemmOp):
        known = {v: constants[v] for v in op.inputs if v in constants.known}
        made = product(op, isa)
        code = print_llvm(made.nest)
        seconds = time.perf_counter() - start
        (call,) = lower_gemm(op, known, isa)
        arguments = arguments_of(op, made, known)
        return load(call.code, op, call.arguments, data), load(code, op, arguments, data), seconds
    raise AssertionError(f"{case.name} runs on nests only")


def arguments_of(
    op: GemmOp, made: ProductNest, known: Mapping[SSAValue, np.ndarray]
) -> list[Argument]:
    """What a product's nest works on, its weights packed."""
    a, b = (op.outer(read.source) for read in (made.found.a, made.found.b))
    packed = made.packing.pack(matrix_of(known[b], made.found))
    extras = [Argument(value) for value in made.extras]
    return [
        Argument(a, offset=made.found.a_offset),
        Argument(data=packed),
        *extras,
        Argument(op.result),
    ]


def difference(now: Kernel, nest: Kernel) -> float:
    """The largest difference relative to the largest value; 0 where all bits are equal."""
    results: list[np.ndarray] = []
    for kernel in (now, nest):
        kernel.result.view(np.uint8)[...] = 255
        kernel.run()
        results.append(kernel.result.copy())
    first, second = (r.view(np.uint8) for r in results)
    if np.array_equal(first, second):
        return 0.0
    wanted, found = (r.astype(np.float64) for r in results)
    return float(np.abs(wanted - found).max() / np.abs(wanted).max())


def measure(case: Case, rounds: int, before: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Medians of both, in turns whose order alternates."""
    now, nest, seconds = pair(case, before)
    differs = difference(now, nest)
    now.run(3)
    once = min(now.seconds(1) for _ in range(3))
    times = max(1, math.ceil(LEAST_SECONDS / max(once, 1e-7)))
    taken: dict[str, list[float]] = {"now": [], "nest": []}
    for k in range(rounds):
        order = [("now", now), ("nest", nest)][:: 1 if k % 2 else -1]
        for name, kernel in order:
            kernel.run()
            taken[name].append(kernel.seconds(times))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    ratios = [b / a for a, b in zip(taken["now"], taken["nest"], strict=True)]
    return {
        "kind": case.kind,
        "shape": case.name,
        "now_us": medians["now"] * 1e6,
        "nest_us": medians["nest"] * 1e6,
        "ratio": statistics.median(ratios),
        "difference": differs,
        "build_ms": seconds * 1e3,
    }


def compile_times(case: Case) -> list[float]:
    """Milliseconds: today's emission and LLVM; building the nest, printing it, and LLVM."""
    (op, constants), isa = kernels(case), Isa.host()

    def now() -> KernelCode:
        if isinstance(op, LoopsOp):
            return emit_loops(op, isa)
        assert isinstance(op, GemmOp)
        known = {v: constants[v] for v in op.inputs if v in constants.known}
        return lower_gemm(op, known, isa)[0].code

    def build() -> NestOp:
        if isinstance(op, LoopsOp):
            return loops(op, isa)
        assert isinstance(op, GemmOp)
        return product(op, isa).nest

    old, nest = now(), build()
    new = print_llvm(nest)
    steps: list[Callable[[], object]] = [
        now,
        lambda: compile_object(old.ir, isa),
        build,
        lambda: print_llvm(nest),
        lambda: compile_object(new.ir, isa),
    ]
    return [min(_milliseconds(step) for _ in range(3)) for step in steps]


def _milliseconds(step: Callable[[], object]) -> float:
    start = time.thread_time_ns()
    step()
    return (time.thread_time_ns() - start) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description="Loop nests against today's kernels")
    add = parser.add_argument
    add(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="points, sums, rows, windows, product",
    )
    add("--rounds", type=int, default=ROUNDS)
    add("--only", help="shapes whose name holds this")
    add("--check", action="store_true", help="compare values only")
    add("--compile", action="store_true", help="measure what compiling takes")
    add("--print", dest="shown", metavar="SHAPE", help="print the nest of one shape")
    add("--save", metavar="FILE", help="write the kernels of programs, and measure nothing")
    add("--against", metavar="FILE", help="measure against kernels that --save wrote before")
    add("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    chosen = [c for c in CASES if not parsed.kinds or c.kind in parsed.kinds]
    chosen = [c for c in chosen if parsed.only is None or parsed.only in c.name]
    if parsed.shown:
        for case in (c for c in CASES if c.name == parsed.shown):
            op, _ = kernels(case)
            print(loops(op, Isa.host()) if isinstance(op, LoopsOp) else op)
        return
    if parsed.save:
        codes = {case.name: text_of(case) for case in chosen}
        texts = {name: [c.symbol, c.ir, c.items, c.arguments] for name, c in codes.items()}
        Path(parsed.save).write_text(json.dumps(texts))
        return
    before = {} if parsed.against is None else json.loads(Path(parsed.against).read_text())
    alone = [c.name for c in chosen if c.kind != "product" and c.name not in before]
    if alone and not parsed.compile:
        parser.error(f"'{alone[0]}' runs on nests only: compare with --against FILE")
    if parsed.compile:
        head = ["shape", "emitted now", "LLVM", "nest built", "printed", "LLVM"]
        rows = [[c.name, *(f"{ms:.1f}" for ms in compile_times(c))] for c in chosen]
        print(table(head, rows))
        return
    if parsed.check:
        for case in chosen:
            now, nest, _ = pair(case, before)
            print(f"{case.name}: {difference(now, nest):.2g}", flush=True)
        return
    found = [measure(case, parsed.rounds, before) for case in chosen]
    print(json.dumps(found, indent=2) if parsed.json else _report(found))


def _report(found: Sequence[dict[str, Any]]) -> str:
    rows = [
        [
            row["kind"],
            row["shape"],
            f"{row['now_us']:.1f}",
            f"{row['nest_us']:.1f}",
            f"{row['ratio']:.3f}",
            "equal" if not row["difference"] else f"{row['difference']:.1g}",
        ]
        for row in found
    ]
    lines = [table(["kind", "shape", "now us", "nest us", "ratio", "values"], rows)]
    for kind in (*dict.fromkeys(row["kind"] for row in found), "all"):
        ratios = [row["ratio"] for row in found if kind in (row["kind"], "all")]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines.append(f"{kind}: geometric mean {mean:.3f}, worst {max(ratios):.3f}")
    isa = Isa.host()
    load_ = os.getloadavg()[0]
    lines.append(
        f"{platform.machine()} {isa.cpu} ({isa.name}), 1 thread, llvmlite {llvmlite.__version__}, "
        f"load {load_:.1f}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
