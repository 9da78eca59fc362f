"""Nests as both printers run them: the bits of the kernels of today, and their meaning."""

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.nest_kernels import KERNELS, one_kernel, run_code, run_on_cpu, work
from support.nest_values import run_nest
from xdsl.parser import Parser

from isoform.compiler.registry import make_context
from isoform.dialects.nest import NestOp, parallel_loops
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.nest_to_cuda import print_cuda
from isoform.lowering.nest_to_llvm.printer import print_llvm
from isoform.testing.cuda_emulator.kernels import ORDERS, emulate

# Ops that a nest may run in Python.
MOST_WORK = 50_000
# Their sums are taken in lanes, in another order than without a schedule, or LLVM makes other
# products and additions one.
ROWS_WITH_SUMS = {
    "softmax",
    "softmax of short rows",
    "long softmax",
    "layer norm",
    "sum",
    "product of all",
    "sum of two dims",
    "softmax of halves",
    "blurred softmax",
    "blurred softmax of short rows",
    "rows of bools",
    "rows in registers",
}
ISAS = [isa.name for isa in runnable()]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("level", ISAS)
def test_a_nest_gives_the_bits_of_the_kernel_without_one(name: str, level: str) -> None:
    kernel, isa = one_kernel(name), Isa.named(level)
    nest, arguments = kernel.nest(isa)
    nest.verify()
    found = run_on_cpu(kernel, print_llvm(nest), arguments, isa)
    wanted = run_on_cpu(kernel, *kernel.now(isa), isa)
    if name in ROWS_WITH_SUMS:
        rtol = 2e-3 if found.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol / 20)
        return
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("name", KERNELS)
def test_a_nest_means_what_its_kernel_computes(name: str) -> None:
    """In float64, place by place, whatever the loops are marked as."""
    kernel, isa = one_kernel(name), runnable()[-1]
    nest, arguments = kernel.nest(isa)
    if work(nest.body.block) > MOST_WORK:
        pytest.skip("too much for Python")
    wanted = run_on_cpu(kernel, *kernel.now(isa), isa)
    arrays, result = kernel.bind(arguments)
    exact = [array.astype(np.float64) for array in arrays[:-1]]
    found = np.full(result.shape, np.nan)
    run_nest(nest, exact, found)
    np.testing.assert_allclose(found, wanted.astype(np.float64), rtol=2e-3, atol=1e-5)


CUDA = [
    "broadcasts",
    "transpose",
    "channels last",
    "pad",
    "softmax",
    "blurred softmax of short rows",
    "rows in registers",
    "windows in registers",
    "rows of bools",
    "product",
]


@pytest.mark.parametrize("name", CUDA)
def test_cuda_text_of_the_same_nest_is_right_in_every_order(name: str) -> None:
    need_compiler()
    kernel, isa = one_kernel(name), runnable()[0]
    nest, arguments = kernel.nest(isa)
    wanted = run_on_cpu(kernel, *kernel.now(isa), isa)
    (emulated,) = emulate([print_cuda(nest, "kernel")])
    for order in ORDERS:
        arrays, result = kernel.bind(arguments)
        emulated.launch([array.ctypes.data for array in arrays], order)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


# y[i] = sum(j) x[j], j from 3 * i - 1 on: three places of seven, or fewer
TILES = """
nest.kernel (%x: memref<7xf32>, %y: memref<4xf32>) {
  nest.for %i < 4 parallel {
    %t = nest.alloc : memref<1xf32, "registers">
    %0 = nest.identity sum : f32
    nest.store %0, %t[0] : memref<1xf32, "registers">
    nest.for %j < 7 from [3 * %i - 1] below [3 * %i + 2] {
      %1 = nest.load %x[%j] : memref<7xf32>
      nest.accumulate sum %1, %t[0] : memref<1xf32, "registers">
    }
    %2 = nest.load %t[0] : memref<1xf32, "registers">
    nest.store %2, %y[%i] : memref<4xf32>
  }
}"""


def test_both_printers_keep_to_the_bounds_of_a_tile() -> None:
    (nest,) = Parser(make_context(), TILES).parse_module().body.block.ops
    assert isinstance(nest, NestOp)
    x, wanted = np.arange(1, 8, dtype=np.float32), [3, 12, 13, 0]
    y = np.full(4, np.nan, np.float32)
    run_nest(nest, [x], y)
    assert y.tolist() == wanted
    assert run_code(print_llvm(nest), [x, np.zeros(4, np.float32)], Isa.host()).tolist() == wanted
    need_compiler()
    (emulated,) = emulate([print_cuda(nest, "tiles")])
    found = np.full(4, np.nan, np.float32)
    emulated.launch([x.ctypes.data, found.ctypes.data])
    assert found.tolist() == wanted


ROWS = """
nest.kernel @rows (%x: memref<67xf32>, %y: memref<68xf32>) {
  nest.for %i < 1 parallel {
    %zero = nest.index [0]
    %one = nest.index [1]
    %end = nest.index [67]
    nest.range %k from %zero to %end {
      %a = nest.read %x[%k] : memref<67xf32>
      %b = nest.read %y[%zero] : memref<68xf32>
      %c = arith.addf %a, %b : f32
      nest.write %c, %y[%zero] : memref<68xf32>
    }
    nest.range %k from %zero to %end {
      %at = arith.addi %k, %one : i64
      %a = nest.read %x[%k] : memref<67xf32>
      %b = nest.read %y[%at] : memref<68xf32>
      %c = arith.addf %a, %b : f32
      nest.write %c, %y[%at] : memref<68xf32>
    }
  }
}
"""


def test_rows_are_written_in_vectors_and_a_sum_in_memory_keeps_its_order() -> None:
    (nest,) = Parser(make_context(), ROWS).parse_module().body.block.ops
    assert isinstance(nest, NestOp)
    draw = np.random.default_rng(0)
    x, y = (draw.standard_normal(n).astype(np.float32) for n in (67, 68))
    wanted = y + np.r_[np.float32(0), x]
    for number in x:
        wanted[0] += number
    code = print_llvm(nest)
    assert code.ir.count(", !llvm.loop") == 1
    np.testing.assert_array_equal(run_code(code, [x, y], Isa.host()), wanted)


def test_items_are_the_positions_of_the_outermost_parallel_loops() -> None:
    nest, _ = one_kernel("transpose of a batch").nest(runnable()[-1])
    items = int(np.prod([loop.size for loop in parallel_loops(nest)]))
    assert items == print_llvm(nest).items > 1


def test_a_maximum_of_rows_keeps_nan_and_infinities() -> None:
    kernel, isa = one_kernel("largest"), Isa.host()
    (data,) = kernel.data.values()
    rows = data.reshape(5, 149)
    rows[0, 7], rows[1, 148], rows[2, :] = np.nan, np.inf, -np.inf
    rows[3, 3], rows[3, 4] = np.inf, -np.inf
    nest, arguments = kernel.nest(isa)
    found = run_on_cpu(kernel, print_llvm(nest), arguments, isa)
    np.testing.assert_array_equal(found, rows.max(1))
