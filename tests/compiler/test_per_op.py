"""Kernels alone: what the table says, and the rates it is measured against."""

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.testing import peaks
from isoform.testing.per_op import format_ops, per_op

CONV = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}


def network() -> Program:
    b = GraphBuilder()
    x = b.input("x", (1, 8, 12, 12))
    y = b.conv(x, b.weight("v", np.ones((16, 8, 3, 3), np.float32)), **CONV)
    y = b.conv(y, b.weight("d", np.ones((16, 1, 3, 3), np.float32)), groups=16, **CONV)
    y = b.reshape(y, shape=[16, 144])
    b.output("y", b.matmul(y, b.weight("w", np.ones((144, 32), np.float32))))
    return b.build("small")


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 1 GFLOP/s and 1 GB/s."""
    monkeypatch.setattr(peaks, "fma_peak", lambda threads: 1e9)
    monkeypatch.setattr(peaks, "copy_rate", lambda size, threads: 1e9)


def test_every_kernel_has_its_algorithm_and_its_bound(rates):
    rows = {row["algorithm"]: row for row in per_op(network(), 1, "quick")}
    direct, gemm = rows["direct conv"], rows["gemm"]
    assert "conv, 16 groups" in rows
    assert direct["mflop"] == pytest.approx(2 * 8 * 9 * 16 * 144 / 1e6)
    assert gemm["mflop"] == pytest.approx(2 * 16 * 144 * 32 / 1e6)
    assert gemm["mbyte"] == pytest.approx(4 * (16 * 144 + 144 * 32 + 16 * 32) / 1e6)
    for row in (direct, gemm):
        assert row["bound_by"] == "fma"
        assert row["of_bound"] == pytest.approx(row["mflop"] / row["ms"])
        assert row["lost_ms"] == pytest.approx(row["ms"] - row["mflop"])


def test_rows_are_sorted_by_what_they_lose_and_shares_add_up(rates):
    rows = per_op(network(), 1, "quick")
    lost = [row["lost_ms"] for row in rows]
    assert lost == sorted(lost, reverse=True)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    text = format_ops(rows)
    assert len(text.splitlines()) == len(rows) + 2
    assert "lost ms" in text.splitlines()[0]


@pytest.mark.bench
def test_the_peak_is_above_what_a_large_product_reaches():
    a = np.ones((512, 512), np.float32)
    b = GraphBuilder()
    b.output("y", b.matmul(b.input("x", a.shape), b.weight("w", a)))
    (row,) = (row for row in per_op(b.build("product"), 1, "quick") if row["algorithm"] == "gemm")
    assert 0.2 < row["of_bound"] < 1.1


def test_a_copy_of_any_size_has_a_rate_between_its_neighbours():
    rates = peaks.copy_rates(1)
    assert all(rate > 1e8 for rate in rates.values())
    assert peaks.copy_rate(1, 1) == rates[min(rates)]
    assert peaks.copy_rate(1 << 40, 1) == rates[max(rates)]
    near = rates[1 << 20], rates[1 << 22]
    assert min(near) <= peaks.copy_rate(1 << 21, 1) <= max(near)
