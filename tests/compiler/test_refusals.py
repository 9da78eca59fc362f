"""When a program counts as simpler than another, so that a small measured gain is enough."""

from __future__ import annotations

from isoform.compiler.search.refusals import simpler

GEMMS = {"gemm": (3, 42e-6), "loops": (1, 3e-6)}


def test_fewer_kernels_of_the_same_kinds_are_simpler() -> None:
    assert simpler({"gemm": (1, 41e-6), "loops": (1, 3e-6)}, GEMMS)
    assert simpler({"gemm": (3, 42e-6)}, GEMMS)


def test_a_new_kernel_or_as_many_or_a_slower_model_is_not_simpler() -> None:
    assert not simpler({"gemm": (1, 40e-6), "loops": (2, 2e-6)}, GEMMS)
    assert not simpler({"conv": (1, 1e-6), "gemm": (1, 1e-6)}, GEMMS)
    assert not simpler(GEMMS, GEMMS)
    assert not simpler({"gemm": (2, 50e-6), "loops": (1, 3e-6)}, GEMMS)
