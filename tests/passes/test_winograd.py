"""Winograd: exact matrices, the same meaning in float64, close results on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.kernel import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.passes.convolution import winograd
from isoform.passes.convolution.winograd import Winograd, WinogradForm, applies
from isoform.passes.convolution.winograd_matrices import POINTS, matrices
from isoform.passes.equivalence import compare
from isoform.passes.plan_memory import PlanMemory

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("m", "taps"), [(2, 3), (4, 3), (4, 4), (2, 5), (4, 5), (2, 7), (4, 7), (1, 4), (3, 2)]
)
def test_matrices_compute_a_correlation_exactly(m: int, taps: int) -> None:
    """sum_i AT[k, i] G[i, r] / d[i] BT[i, s] is 1 where s = k + r, else 0: in rationals."""
    found = matrices(m, taps)
    a = m + taps - 1
    for k, r, s in product(range(m), range(taps), range(a)):
        total = sum(
            Fraction(float(found.at[k, i]))
            * Fraction(float(found.g[i, r]))
            / Fraction(float(found.divisors[i]))
            * Fraction(float(found.bt[i, s]))
            for i in range(a)
        )
        assert total == (1 if s == k + r else 0)


def convolution(
    channels: int,
    features: int,
    sizes: tuple[int, ...],
    window: tuple[int, ...],
    pads: tuple[int, ...],
    batch: int = 1,
    groups: int = 1,
) -> Program:
    """A convolution with bias and relu, and the same without them added to it."""
    b = GraphBuilder()
    x = b.input("x", (batch, channels, *sizes))
    filters = (features, channels // groups, *window)
    w = b.weight("w", RANDOM.standard_normal(filters).astype(np.float32))
    bias = b.weight("b", RANDOM.standard_normal(features).astype(np.float32))
    ones = [1] * len(window)
    geometry = {"strides": ones, "pads": [*pads, *pads], "dilations": ones, "groups": groups}
    y = b.relu(b.conv(x, w, bias, **geometry))
    b.output("y", b.add(y, b.conv(x, w, **geometry)))
    return b.build()


def lowered(program: Program, m: int, taps: int | None = None) -> Program:
    result = program.clone()
    for name in LOWER_TO_KERNEL:
        run_passes(result, name)
    Winograd(m, taps).apply(Context(), result.module)
    PlanMemory().apply(Context(), result.module)
    result.module.verify()
    assert not any(isinstance(op, ConvOp) for op in result.main.body.block.ops)
    return result


SQUARES = (
    (5, 7, (6, 9), (3, 3), (1, 1), 1),
    (16, 32, (7, 7), (3, 3), (1, 1), 2),
    (33, 17, (5, 4), (3, 3), (0, 0), 1),
    (3, 16, (13, 3), (3, 3), (1, 1), 1),
)
# Channels, features, sizes, window, padding, m, taps: one dim, unequal ones, blocks of taps.
WINDOWS = (
    (5, 7, (6, 9), (1, 7), (0, 3), 4, None),
    (16, 20, (9, 5), (7, 1), (3, 0), 2, None),
    (9, 16, (8, 8), (1, 3), (1, 2), 4, None),
    (6, 17, (9, 8), (2, 2), (1, 1), 3, None),
    (7, 33, (11, 4), (5, 1), (0, 0), 4, None),
    (6, 5, (10,), (3,), (1,), 4, None),
    (4, 18, (7, 8), (5, 3), (2, 1), 2, None),
    (3, 4, (6, 7), (5, 5), (2, 2), 4, None),
    (2, 5, (3, 4, 5), (1, 3, 3), (0, 1, 0), 2, None),
    (2, 3, (4, 3, 5), (3, 3, 3), (1, 1, 1), 2, None),
    (17, 6, (5, 13), (1, 11), (0, 5), 4, 4),
    (4, 17, (14, 3), (7, 1), (3, 0), 2, 3),
    (5, 3, (9, 8), (5, 5), (2, 2), 2, 3),
)


# The same with groups: of eight channels and more, of unlike channels and features.
GROUPS = (
    (16, 16, (6, 9), (3, 3), (1, 1), 2, 2, 4, None),
    (24, 51, (5, 4), (3, 3), (1, 1), 1, 3, 2, None),
    (36, 16, (7, 9), (1, 7), (0, 3), 1, 2, 4, None),
    (16, 48, (9,), (3,), (1,), 2, 2, 2, None),
    (16, 16, (3, 4, 5), (1, 3, 3), (0, 1, 0), 1, 2, 2, None),
)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("shape", SQUARES)
def test_same_meaning_and_close_results(shape: tuple[Any, ...], m: int) -> None:
    program = convolution(*shape)
    same_meaning(program, lowered(program, m))


@pytest.mark.parametrize("shape", WINDOWS)
def test_windows_in_any_number_of_dims_and_taps(shape: tuple[Any, ...]) -> None:
    program = convolution(*shape[:5])
    same_meaning(program, lowered(program, *shape[5:]))


@pytest.mark.parametrize("shape", GROUPS)
def test_groups_have_products_of_their_own(shape: tuple[Any, ...]) -> None:
    program = convolution(*shape[:7])
    rewritten = lowered(program, *shape[7:])
    same_meaning(program, rewritten)
    assert compare(program, rewritten).kind == "equal"


def test_features_of_another_group_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both comparisons can fail: plant a result whose groups are read in reverse."""

    def reversed_groups(self: Any, at: Sequence[Index]) -> list[Index]:
        n, f, *tile = at
        each = self.features // self.groups
        return [n, -(f // each) + (self.groups - 1), f % each, *tile]

    monkeypatch.setattr(winograd._Steps, "_features_apart", reversed_groups)  # pyright: ignore
    program = convolution(*GROUPS[0][:7])
    x = RANDOM.standard_normal((2, 16, 6, 9)).astype(np.float32)
    rewritten = lowered(program, 4)
    found = reference.run(rewritten, {"x": x})["y"]
    assert np.abs(found - reference.run(program, {"x": x})["y"]).max() > 1e-2
    assert compare(program, rewritten).kind == "different"


def same_meaning(program: Program, rewritten: Program) -> None:
    (type_,) = program.inputs.values()
    x = RANDOM.standard_normal(type_.get_shape()).astype(np.float32)
    expected = reference.run(program, {"x": x})["y"]
    np.testing.assert_allclose(reference.run(rewritten, {"x": x})["y"], expected, atol=1e-9)
    session = CpuSession(rewritten)
    np.testing.assert_allclose(
        session.run({"x": x})["y"], expected, atol=3e-5 * np.abs(expected).max()
    )
    session.close()


@pytest.mark.parametrize(
    ("channels", "window", "m", "taps"),
    [
        (160, (1, 7), 4, None),
        (160, (5, 1), 4, None),
        (160, (1, 11), 4, 4),
        (160, (3, 3), 4, None),
        (48, (5, 5), 4, None),
    ],
)
def test_the_error_is_below_the_default_tolerance(
    channels: int, window: tuple[int, int], m: int, taps: int | None
) -> None:
    pads = (window[0] // 2, window[1] // 2)
    program = convolution(channels, 16, (12, 17), window, pads)
    x = RANDOM.standard_normal((1, channels, 12, 17)).astype(np.float32)
    expected = reference.run(program, {"x": x})["y"]
    session = CpuSession(lowered(program, m, taps))
    found = session.run({"x": x})["y"]
    session.close()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_points_of_f4_err_less_than_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setitem(POINTS, 6, tuple(Fraction(p) for p in (0, 1, -1, 2, -2)))
    assert chosen < 3e-6
    assert chosen < error() / 2


@pytest.mark.parametrize("m", [2, 4])
def test_the_equivalence_engine_proves_it(m: int) -> None:
    program = convolution(*SQUARES[0])
    assert compare(program, lowered(program, m)).kind == "equal"


@pytest.mark.parametrize("shape", WINDOWS)
def test_the_equivalence_engine_proves_windows(shape: tuple[Any, ...]) -> None:
    program = convolution(*shape[:5])
    assert compare(program, lowered(program, *shape[5:])).kind == "equal"


@pytest.mark.parametrize(
    ("window", "pads", "taps"),
    [((3, 3), (1, 1), None), ((1, 3), (0, 1), None), ((5, 1), (2, 0), 3)],
)
def test_a_wrong_divisor_is_seen(
    window: tuple[int, int],
    pads: tuple[int, int],
    taps: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both comparisons above can fail: plant a bug in one row of G."""
    right = matrices(2, 3)
    wrong = replace(right, divisors=right.divisors * np.array([1, 2, 1, 1], np.float32))
    monkeypatch.setattr(winograd, "matrices", lambda m, taps: wrong)
    program = convolution(4, 4, (6, 6), window, pads)
    x = RANDOM.standard_normal((1, 4, 6, 6)).astype(np.float32)
    found = reference.run(lowered(program, 2, taps), {"x": x})["y"]
    assert np.abs(found - reference.run(program, {"x": x})["y"]).max() > 1e-2
    assert compare(program, lowered(program, 2, taps)).kind == "different"


def test_forms_that_do_not_apply_leave_a_convolution() -> None:
    def left(window: tuple[int, ...], m: int, taps: int | None = None, groups: int = 1) -> bool:
        sizes = tuple(n + 4 for n in window)
        program = convolution(4, 4, sizes, window, (0,) * len(window), groups=groups)
        for name in LOWER_TO_KERNEL:
            run_passes(program, name)
        ops = program.main.body.block.ops
        return not any(applies(op, WinogradForm(m, taps)) for op in ops if isinstance(op, ConvOp))

    assert left((1, 1), 4)
    assert left((1, 11), 4)  # no points
    assert left((7, 7), 4)  # too many positions
    assert left((1, 3), 4, 4)  # one block
    assert left((1, 7), 4, 1)
    assert left((1, 11), 4, 4, groups=2)
    assert left((3, 3), 4, groups=2)  # two channels of a group leave lanes empty
    assert not left((1, 11), 4, 4)
    assert not left((7, 7), 2)
