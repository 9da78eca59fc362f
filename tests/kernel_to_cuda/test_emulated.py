"""CUDA text on the CPU: right results in every thread order, and planted bugs are caught."""

import re

import numpy as np
import pytest
from support.cuda_kernels import (
    ADD,
    MATMUL,
    REDUCE,
    WARPS,
    K,
    M,
    N,
    add_relu,
    build,
    halve,
    kernel,
    matmul,
    need_compiler,
    row_max,
    row_sum,
    run,
)

from isoform.dialects.errors import UserError
from isoform.testing.cuda_emulator import kernels as emulated
from isoform.testing.cuda_emulator.kernels import ORDERS, EmulationError

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((M, K), np.float32), RNG.standard_normal((K, N), np.float32)
ROWS = RNG.standard_normal((5, 1000), np.float32)
SHORT = RNG.standard_normal((12, 70), np.float32)
X, Y = RNG.standard_normal((2, 1003), np.float32)

CASES = {
    "matmul": (matmul, (A, B), A.astype(np.float64) @ B),
    "row_sum": (row_sum, (ROWS,), ROWS.sum(1, np.float64)),
    "row_max": (row_max, (SHORT,), SHORT.max(1)),
    "add_relu": (add_relu, (X, Y), np.maximum(X.astype(np.float64) + Y, 0)),
}


@pytest.fixture(autouse=True)
def _needs_compiler() -> None:
    need_compiler()


def agrees(made, inputs, expected) -> bool:
    """Whether a kernel gives the expected values in all three orders of threads."""
    compiled = build(made)
    return all(
        np.allclose(run(compiled, inputs, order)[0], expected.ravel(), rtol=1e-4, atol=1e-5)
        for order in ORDERS
    )


@pytest.mark.parametrize("name", CASES)
def test_a_golden_kernel_is_right_in_every_order(name: str) -> None:
    make, inputs, expected = CASES[name]
    assert agrees(make(), inputs, expected)


def test_blocks_are_shared_by_os_threads() -> None:
    (found,) = run(build(matmul()), (A, B), "shuffled", workers=3)
    np.testing.assert_allclose(found.reshape(M, N), A @ B, rtol=1e-4, atol=1e-5)


def test_halves_are_rounded_as_numpy_rounds_them() -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    (found,) = run(build(halve()), (every,))
    with np.errstate(invalid="ignore"):
        expected = (every.astype(np.float32) * np.float32(0.5)).astype(np.float16)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    assert same.all()


# --- planted bugs -------------------------------------------------------------------------------

WRONG = [
    ("first barrier removed", "matmul", MATMUL, r"__syncthreads\(\);  // both.*", ""),
    ("second barrier removed", "matmul", MATMUL, r"__syncthreads\(\);  // all.*", ""),
    ("swapped index", "matmul", MATMUL, r"tb\[i\]\[threadIdx.x\]", "tb[threadIdx.x][i]"),
    ("guard of a row left out", "matmul", MATMUL, r"row < 37 && ka", "ka"),
    ("guard off by one", "matmul", MATMUL, r"if \(row < 37", "if (row <= 37"),
    ("inner guard off by one", "matmul", MATMUL, r"ka < 41 \?", "ka <= 41 ?"),
    ("loop into the padding", "matmul", MATMUL, r"i < 16; \+\+i", "i < 17; ++i"),
    ("past the padding", "matmul", MATMUL, r"i < 16; \+\+i", "i < 18; ++i"),
    ("barrier removed", "row_sum", REDUCE, r"__syncthreads\(\);", ""),
    ("guard off by one", "row_sum", REDUCE, r"i < 1000", "i <= 1000"),
    ("half the sum", "row_sum", REDUCE, r"half = 64", "half = 32"),
    ("barrier in a branch", "row_sum", REDUCE, r"__syncthreads\(\);\n",
     "if (threadIdx.x < 64) { __syncthreads(); } else {\n __syncthreads(); }\n"),
    ("too few steps", "row_max", WARPS, r"step = 16", "step = 8"),
    ("half the warp leaves", "row_max", WARPS, r"  for \(int step",
     "  if (threadIdx.x % 32 >= 16) return;\n  for (int step"),
    ("lanes left out of the mask", "row_max", WARPS, r"0xffffffffu", "0x0000ffffu"),
    ("guard off by one", "row_max", WARPS, r"i < 70", "i <= 70"),
    ("vector past the end", "add_relu", ADD, r"i \+ 3 < 1003", "i < 1003"),
    ("misaligned vectors", "add_relu", ADD, r"threadIdx.x\) \* 4", "threadIdx.x) * 4 + 1"),
    ("tail off by one", "add_relu", ADD, r"j < 1003", "j < 1002"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("bug", "name", "text", "pattern", "wrong"), WRONG, ids=[f"{n}: {b}" for b, n, *_ in WRONG]
)
def test_a_planted_bug_is_caught(bug, name, text, pattern, wrong) -> None:
    make, inputs, expected = CASES[name]
    planted, count = re.subn(pattern, wrong, text, count=1)
    assert count == 1, f"{bug}: the pattern matches nothing"
    try:
        caught = not agrees(make(planted), inputs, expected)
    except EmulationError as complaint:
        assert "refuses the text" not in str(complaint), "the planted bug is no C++"
        caught = True
    assert caught


def test_a_complaint_says_what_where_and_who() -> None:
    wrong = matmul(MATMUL.replace("c[row * 50 + column] = sum", "c[row * 50 + column + 1] = sum"))
    with pytest.raises(EmulationError) as caught:
        run(build(wrong), (A, B))
    expected = "matmul: access outside 'c': element 1850 of 1850, block (3, 2, 0), thread (1, 4, 0)"
    assert str(caught.value) == expected


def test_arrays_in_shared_memory_know_their_end() -> None:
    wrong = REDUCE.replace("parts[threadIdx.x + half]", "parts[threadIdx.x + half + 1]")
    with pytest.raises(EmulationError, match="line 8: index 128 outside an array"):
        run(build(row_sum(wrong)), (ROWS,))


def test_a_parameter_that_is_not_as_said_is_refused() -> None:
    wrong = kernel(ADD, (4,), (64,), [("x", "float", 1003, True)] * 3)
    with pytest.raises(EmulationError, match="its text takes"):
        build(wrong)


def test_a_text_that_is_no_program_is_refused_in_one_line() -> None:
    with pytest.raises(EmulationError, match=r"refuses the text.*zz") as caught:
        build(add_relu(ADD.replace("0.0f", "zz")))
    assert "\n" not in str(caught.value)


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(emulated, "compiler", lambda: None)
    with pytest.raises(UserError, match=r"needs a C\+\+ compiler \(install g"):
        build(add_relu(ADD.replace("1003", "1001")))
