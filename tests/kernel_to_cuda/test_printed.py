"""Printed kernels compute what their scopes say, in every thread order; planted bugs are caught."""

import contextlib
import random

import numpy as np
import pytest
from support.printed_cuda import (
    difference,
    edited,
    kernel_of,
    printed,
    random_contraction,
)
from xdsl.dialects.builtin import f32

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import ConvOp
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.print_contraction import is_tiled
from isoform.lowering.kernel_to_cuda.program_data import ConvCall, Gemm
from isoform.testing.cuda_emulator.kernels import ORDERS, EmulationError, Order
from isoform.testing.random_programs.graphs import FAMILIES, random_graph


def loops(inputs: str, result: str, *scopes: str, schedule: str = "") -> str:
    """A module with one `kernel.loops`; `inputs` are `name: type` pairs split by `;`."""
    pairs = [pair.split(":") for pair in inputs.split(";")]
    arguments = ", ".join(f"%{name.strip()}: {type_.strip()}" for name, type_ in pairs)
    operands = ", ".join(f"%a{k} = %{name.strip()}" for k, (name, _) in enumerate(pairs))
    body = "\n".join(f"  {scope}" for scope in scopes)
    logical = result.partition(", #")[0] + (">" if ", #" in result else "")
    last = scopes[-1].split("=")[0].strip()
    text = f"""
      func.func @main({arguments}) -> {result} {{
        %y = kernel.loops ({operands}) {schedule} {{
        {body}
          kernel.yield {last} : {logical}
        }} : {result}
        func.return %y : {result}
      }}"""
    return text


SOFTMAX = loops(
    "x: tensor<5x70xf32>",
    "tensor<5x70xf32>",
    "%m = algebra.scope (i: 5) max (k: 70) %a0[i, k] : tensor<5xf32>",
    "%e = algebra.scope (i: 5, j: 70) exp(%a0[i, j] - %m[i]) : tensor<5x70xf32>",
    "%s = algebra.scope (i: 5) sum (k: 70) %e[i, k] : tensor<5xf32>",
    "%r = algebra.scope (i: 5, j: 70) %e[i, j] / %s[i] : tensor<5x70xf32>",
)
SHIFT = loops(
    "x: tensor<3x37xf32>",
    "tensor<3x37xf32>",
    "%r = algebra.scope (i: 3, j: 37) %a0[i, j - 2] + %a0[i, j + 1] else 4.0 : tensor<3x37xf32>",
)
POOL = loops(
    "x: tensor<2x3x9x7xf32>",
    "tensor<2x3x5x4xf32>",
    "%r = algebra.scope (n: 2, c: 3, h: 5, w: 4) max (r: 3, s: 3) "
    "%a0[n, c, 2 * h + r - 1, 2 * w + s - 1] else -inf : tensor<2x3x5x4xf32>",
)
PRODUCT = """
func.func @main(%x: tensor<33x21xf32>, %z: tensor<21x27xf32>) -> tensor<33x27xf32> {
  %y = kernel.gemm (%a = %x, %b = %z) {
    %0 = algebra.scope (m: 33, n: 27) sum (k: 21) %a[m, k] * %b[k, n] : tensor<33x27xf32>
    %1 = algebra.scope (m: 33, n: 27) exp(%0[m, n] * 0.1) : tensor<33x27xf32>
    kernel.yield %1 : tensor<33x27xf32>
  } : tensor<33x27xf32>
  func.return %y : tensor<33x27xf32>
}
"""
KERNELS = {
    "product": PRODUCT,
    "product of depth 1": PRODUCT.replace("21", "1"),
    "product of one row": PRODUCT.replace("33", "1"),
    "softmax": SOFTMAX,
    "softmax of short rows": SOFTMAX.replace("70", "6"),
    "softmax of rows past shared memory": SOFTMAX.replace("70", "13000"),
    "shift": SHIFT,
    "max pool": POOL,
    "floors": loops(
        "x: tensor<35xf32>",
        "tensor<7x5xf32>",
        "%r = algebra.scope (i: 7, j: 5) %a0[(i + 7 * j) floordiv 1] * "
        "%a0[(i - j + 4) floordiv 2] : tensor<7x5xf32>",
    ),
    "mean": loops(
        "x: tensor<3x4x100xf32>",
        "tensor<3x4xf32>",
        "%s = algebra.scope (i: 3, j: 4) sum (k: 100) %a0[i, j, k] : tensor<3x4xf32>",
        "%r = algebra.scope (i: 3, j: 4) %s[i, j] * 0.01 : tensor<3x4xf32>",
    ),
    "sum of all": loops(
        "x: tensor<3x100xf32>",
        "tensor<f32>",
        "%r = algebra.scope () sum (i: 3, k: 100) %a0[i, k] : tensor<f32>",
    ),
    "product and least of rows": loops(
        "x: tensor<4x50xf64>",
        "tensor<4xf64>",
        "%p = algebra.scope (i: 4) prod (k: 50) %a0[i, k] : tensor<4xf64>",
        "%q = algebra.scope (i: 4) min (k: 50) %a0[i, k] : tensor<4xf64>",
        "%r = algebra.scope (i: 4) %p[i] + %q[i] : tensor<4xf64>",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_its_scopes(name: str) -> None:
    assert difference(parse(KERNELS[name])) is None


def test_rows_past_shared_memory_are_computed_where_they_are_read() -> None:
    kernel = kernel_of(KERNELS["softmax of rows past shared memory"])
    assert kernel.source.count("expf") == 2
    assert kernel.shared_bytes <= 48 << 10


def test_a_transposed_convolution_multiplies_no_zeros_between_strides() -> None:
    b = GraphBuilder()
    x, w = b.input("x", (1, 4, 5, 5), f32), b.weight("w", np.ones((4, 8, 4, 4), np.float32))
    window = {"strides": [2, 2], "dilations": [1, 1], "pads": [1] * 4, "output_padding": [0, 0]}
    b.output("y", b.conv_transpose(x, w, **window, groups=1))
    program = b.build()
    (op,) = (
        op for op in place(program, target="cuda").main.body.block.ops if isinstance(op, ConvOp)
    )
    found = is_tiled(op)
    assert found is not None
    assert (found.size(found.batch), found.size(found.depth)) == (4, 4 * 2 * 2)
    assert difference(program) is None


def test_a_schedule_says_threads_and_shape() -> None:
    by_thread = SOFTMAX.replace("(%a0 = %x)", '(%a0 = %x) schedule {"rows" = "thread"}')
    assert "__shared__" not in kernel_of(by_thread).source
    many = SHIFT.replace("(%a0 = %x)", '(%a0 = %x) schedule {"threads" = 64 : i64}')
    assert kernel_of(many).block == (64, 1, 1)
    with pytest.raises(UserError, match="a block cannot have so many threads"):
        kernel_of(SHIFT.replace("(%a0 = %x)", '(%a0 = %x) schedule {"threads" = 33 : i64}'))


def test_indices_are_wide_where_32_bits_do_not_reach() -> None:
    huge = loops(
        "x: tensor<70000x40000xi8>",
        "tensor<70000x40000xi8>",
        "%r = algebra.scope (i: 70000, j: 40000) %a0[i, 39999 - j] : tensor<70000x40000xi8>",
    ).replace("39999 - j", "-j + 39999")
    source = kernel_of(huge).source
    assert "const long long point = (long long)blockIdx.x * 256 + threadIdx.x;" in source
    assert "int i" not in source.replace("const long long i", "")


BUGS = {
    "an off-by-one guard": (SHIFT, "j >= 2", "j >= 1"),
    "a guard too strict": (SHIFT, "j < 36", "j < 35"),
    "a swapped index": (POOL, "14 * h", "14 * w"),
    "a reduction without its barrier": (SOFTMAX, "] = value;\n    __syncthreads();", "] = value;"),
    "a tile read before it is there": (PRODUCT, "keep(0);\n    __syncthreads();", "keep(0);"),
    "a tile written while it is read": (PRODUCT, "        __syncthreads();\n    }", "    }"),
    "a tile too narrow a guard": (PRODUCT, "k < 21", "k < 22"),
    "swapped rows and columns": (PRODUCT, "27 * m + n", "27 * n + m"),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    text, old, new = BUGS[name]
    program = parse(text)
    bad = edited(printed(text), old, new)
    with contextlib.suppress(EmulationError):  # an access outside its buffer: caught, too
        assert difference(program, made=bad) is not None


def check_random(seed: int) -> None:
    """A random contraction under a random schedule, in three thread orders."""
    rng = random.Random(seed)
    assert difference(random_contraction(rng), rng=rng) is None


@pytest.mark.parametrize("seed", range(8))
def test_random_contractions_under_random_schedules(seed: int) -> None:
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 160))
def test_more_random_contractions_under_random_schedules(seed: int) -> None:
    check_random(seed)


@pytest.mark.parametrize("seed", [2, 11, 16, 22, 28, 49])
def test_random_contractions_by_libraries(seed: int) -> None:
    program = random_contraction(random.Random(seed))
    libraries = ("cublas", "cudnn")
    steps = cuda_program(place(program, target="cuda"), libraries=libraries).steps
    assert any(isinstance(step, Gemm | ConvCall) for step in steps)
    assert difference(program, ORDERS[:1], libraries) is None


def check_random_program(seed: int, *orders: Order) -> None:
    """A program of all element types, with random schedules; only arg_max has no kernel."""
    families = [name for name in FAMILIES if name != "arg_max"]
    program = random_graph(seed, ops=6, empty=0.0, families=families)
    assert difference(program, orders, rng=random.Random(seed)) is None


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    check_random_program(seed, "shuffled")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 60))
def test_more_random_programs(seed: int) -> None:
    check_random_program(seed, *ORDERS)
