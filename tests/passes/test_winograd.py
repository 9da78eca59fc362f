"""Winograd: exact matrices, the same meaning in float64, close results on the CPU."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler.levels import run_passes
from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.passes.equivalence import compare
from isoform.passes.plan_memory import PlanMemory
from isoform.passes.winograd import Winograd, matrices

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("m", [2, 4])
def test_matrices_compute_a_correlation_exactly(m: int) -> None:
    """sum_i AT[k, i] G[i, r] / d[i] BT[i, s] is 1 where s = k + r, else 0: in rationals."""
    found = matrices(m)
    a = m + 2
    for k, r, s in product(range(m), range(3), range(a)):
        total = sum(
            Fraction(float(found.at[k, i]))
            * Fraction(float(found.g[i, r]))
            / Fraction(float(found.divisors[i]))
            * Fraction(float(found.bt[i, s]))
            for i in range(a)
        )
        assert total == (1 if s == k + r else 0)


def convolution(
    channels: int, features: int, height: int, width: int, pad: int, batch: int
) -> Program:
    b = GraphBuilder()
    x = b.input("x", (batch, channels, height, width))
    w = b.weight("w", RANDOM.standard_normal((features, channels, 3, 3)).astype(np.float32))
    bias = b.weight("b", RANDOM.standard_normal(features).astype(np.float32))
    geometry = {"strides": [1, 1], "pads": [pad] * 4, "dilations": [1, 1]}
    y = b.relu(b.conv(x, w, bias, **geometry))
    b.output("y", b.add(y, b.conv(x, w, **geometry)))
    return b.build()


def lowered(program: Program, m: int | None) -> Program:
    result = program.clone()
    for name in LOWER_TO_KERNEL:
        run_passes(result, name)
    if m is not None:
        Winograd(m).apply(Context(), result.module)
    PlanMemory().apply(Context(), result.module)
    result.module.verify()
    return result


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize(
    ("channels", "features", "height", "width", "pad", "batch"),
    [(5, 7, 6, 9, 1, 1), (16, 32, 7, 7, 1, 2), (33, 17, 5, 4, 0, 1), (3, 16, 13, 3, 1, 1)],
)
def test_same_meaning_and_close_results(
    channels: int, features: int, height: int, width: int, pad: int, batch: int, m: int
) -> None:
    program = convolution(channels, features, height, width, pad, batch)
    rewritten = lowered(program, m)
    assert not any(isinstance(op, ConvOp) for op in rewritten.main.body.block.ops)
    shape = (batch, channels, height, width)
    x = RANDOM.standard_normal(shape).astype(np.float32)
    expected = reference.run(program, {"x": x})["y"]
    np.testing.assert_allclose(reference.run(rewritten, {"x": x})["y"], expected, atol=1e-9)
    session = CpuSession(rewritten)
    np.testing.assert_allclose(
        session.run({"x": x})["y"], expected, atol=3e-5 * np.abs(expected).max()
    )
    session.close()


def test_points_of_f4_err_less_than_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from isoform.passes import winograd

    b = GraphBuilder()
    x = b.input("x", (1, 64, 16, 16))
    w = b.weight("w", RANDOM.standard_normal((16, 64, 3, 3)).astype(np.float32))
    b.output("y", b.conv(x, w, strides=[1, 1], pads=[1] * 4, dilations=[1, 1]))
    program, data = b.build(), RANDOM.standard_normal((1, 64, 16, 16)).astype(np.float32)
    expected = reference.run(program, {"x": data})["y"]

    def error() -> float:
        session = CpuSession(lowered(program, 4))
        found = session.run({"x": data})["y"]
        session.close()
        return float(np.abs(found - expected).max() / np.abs(expected).max())

    chosen = error()
    monkeypatch.setitem(winograd.POINTS, 4, tuple(Fraction(p) for p in (0, 1, -1, 2, -2)))
    assert chosen < 3e-6
    assert chosen < error() / 2


@pytest.mark.parametrize("m", [2, 4])
def test_the_equivalence_engine_proves_it(m: int) -> None:
    program = convolution(5, 7, 6, 9, 1, 1)
    assert compare(program, lowered(program, m)).kind == "equal"


def test_a_wrong_divisor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both comparisons above can fail: plant a bug in one row of G."""
    from isoform.passes import winograd

    right = matrices(2)
    wrong = winograd.Matrices(right.at, right.g, right.divisors * [1, 2, 1, 1], right.bt)
    monkeypatch.setattr(winograd, "matrices", lambda m: wrong)
    program = convolution(4, 4, 6, 6, 1, 1)
    x = RANDOM.standard_normal((1, 4, 6, 6)).astype(np.float32)
    found = reference.run(lowered(program, 2), {"x": x})["y"]
    assert np.abs(found - reference.run(program, {"x": x})["y"]).max() > 1e-2
    assert compare(program, lowered(program, 2)).kind == "different"
