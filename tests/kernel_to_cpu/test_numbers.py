"""Products and convolutions of bytes are exact on every instruction set; those of float64 round
as float64 does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f64, i32
from xdsl.ir import SSAValue

import isoform
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.types import Array, from_numpy
from isoform.lowering.kernel_to_cpu.isa import runnable

ISAS = [isa.name for isa in runnable()]
# c, f, size, kernel, stride, pad, groups
CONVOLUTIONS = [
    (64, 32, 9, 3, 1, 1, 1),
    (3, 16, 12, 7, 2, 3, 1),
    (40, 40, 9, 3, 2, 1, 40),
    (64, 64, 6, 3, 1, 1, 16),
    (5, 7, 6, 3, 1, 1, 1),
    (16, 48, 7, 1, 1, 0, 2),
]


def bytes_of(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Random bytes, or the extreme ones alone: then every sum is as large as it may be."""
    info = np.iinfo(dtype)
    if rng.random() < 0.3:
        return np.full(shape, info.max if info.min == 0 else info.min, dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def widened(b: GraphBuilder, value: SSAValue) -> SSAValue:
    return b.cast(value, to=i32)


def product(m: int, k: int, n: int, dtype: Any, weights: Array) -> Program:
    b = GraphBuilder()
    x = b.input("x", (m, k), from_numpy(dtype))
    b.output("y", b.matmul(widened(b, x), widened(b, b.weight("w", weights))))
    return b.build()


def apart_from_zero(x: Array, y: Array, flip: bool) -> Program:
    """A product of two inputs minus their zero points, 3 and 5."""
    b = GraphBuilder()

    def whole(name: str, array: Array, zero: int) -> SSAValue:
        value = widened(b, b.input(name, array.shape, from_numpy(array.dtype)))
        zeros = b.broadcast(b.constant(np.int32(zero)), shape=list(array.shape), dims=[])
        return b.sub(value, zeros)

    right = whole("y", y.swapaxes(1, 2) if flip else y, 5)
    right = b.transpose(right, perm=[0, 2, 1]) if flip else right
    b.output("z", b.matmul(whole("x", x, 3), right))
    return b.build()


def kernels(program: Program) -> set[str]:
    from isoform.compiler.targets.levels import lower_to

    return {op.name for op in lower_to(program, "kernel").main.body.block.ops}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products_of_bytes_are_exact(monkeypatch: pytest.MonkeyPatch, isa: str, dtype: Any) -> None:
    monkeypatch.setenv("ISOFORM_ISA", isa)
    rng = np.random.default_rng(3)
    for m, k, n in ((5, 7, 33), (17, 1, 40), (30, 770, 48), (1, 66, 20)):
        x, w = bytes_of(rng, dtype, (m, k)), bytes_of(rng, np.int8, (k, n))
        program = product(m, k, n, dtype, w)
        assert k == 1 or "kernel.gemm" in kernels(program)
        found = isoform.compile(program, threads=1, effort="quick")(x=x)["y"]
        np.testing.assert_array_equal(found, x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("flip", [False, True])
def test_products_of_two_results_are_exact(
    monkeypatch: pytest.MonkeyPatch, isa: str, flip: bool
) -> None:
    monkeypatch.setenv("ISOFORM_ISA", isa)
    rng = np.random.default_rng(4)
    for dtypes, (m, k, n) in (
        ((np.uint8, np.int8), (30, 33, 47)),
        ((np.int8, np.int8), (7, 770, 40)),
        ((np.uint8, np.uint8), (33, 66, 20)),
        ((np.int8, np.uint8), (5, 3, 9)),
    ):
        x, y = (bytes_of(rng, t, s) for t, s in zip(dtypes, ((2, m, k), (2, k, n)), strict=True))
        program = apart_from_zero(x, y, flip)
        assert k < 8 or "kernel.gemm" in kernels(program)
        given = y.swapaxes(1, 2) if flip else y
        found = isoform.compile(program, threads=1, effort="quick")(x=x, y=given)["z"]
        wanted = (x.astype(np.int32) - 3) @ (y.astype(np.int32) - 5)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("setting", CONVOLUTIONS)
def test_convolutions_of_bytes_are_exact(
    monkeypatch: pytest.MonkeyPatch, isa: str, setting: tuple[int, ...]
) -> None:
    monkeypatch.setenv("ISOFORM_ISA", isa)
    rng = np.random.default_rng(sum(setting))
    c, f, size, kernel, stride, pad, groups = setting
    dtype: Any = np.uint8 if rng.random() < 0.5 else np.int8
    b = GraphBuilder()
    x = b.input("x", (2, c, size, size), from_numpy(dtype))
    w = b.weight("w", bytes_of(rng, np.int8, (f, c // groups, kernel, kernel)))
    windows: dict[str, Any] = {
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "dilations": [1, 1],
        "groups": groups,
    }
    b.output("y", b.conv(widened(b, x), widened(b, w), **windows))
    program, data = b.build(), bytes_of(rng, dtype, (2, c, size, size))
    assert "kernel.conv" in kernels(program)
    found = isoform.compile(program, threads=1, effort="quick")(x=data)["y"]
    wanted = isoform.compile(program, target="reference")(x=data)["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("constant", [True, False])
def test_products_of_float64_keep_its_digits(constant: bool) -> None:
    rng = np.random.default_rng(5)
    for m, k, n, flip in ((1, 17, 9, False), (33, 65, 17, True), (20, 1500, 33, False)):
        x, w = rng.standard_normal((m, k)), rng.standard_normal((n, k) if flip else (k, n))
        b = GraphBuilder()
        right = b.weight("w", w) if constant else b.input("w", w.shape, f64)
        b.output("y", b.matmul(b.input("x", (m, k), f64), right, transpose_b=flip))
        program = b.build()
        assert "kernel.gemm" in kernels(program)
        given = {} if constant else {"w": w}
        found = isoform.compile(program, threads=1, effort="quick")(x=x, **given)["y"]
        np.testing.assert_allclose(found, x @ (w.T if flip else w), rtol=1e-12, atol=1e-11)
