"""Searches stop in time, whatever a step of theirs takes; what was found by then comes out.

What else the machine does must not decide a test: the clock counts calls, or what was evaluated.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clock import clock_of_calls

from isoform.compiler.frontends.program_file import parse
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.partial.generate import Generator, Options
from isoform.passes.partial.lookup import ResultKeys, occurrences
from isoform.passes.partial.propose import MutationSettings, search
from isoform.passes.partial.search import groupable
from isoform.passes.search_result import Limits
from isoform.testing.derivation_cases import conv

SLACK = 1.2


def dilated() -> Program:
    """Dilated convolutions in a row, no two alike."""
    rng = np.random.default_rng(7)
    b = GraphBuilder()
    x = b.input("x", (1, 64, 14, 14))
    for k, (channels, features) in enumerate([(64, 48), (48, 32), (32, 24)]):
        w = b.weight(f"w{k}", rng.standard_normal((features, channels, 3, 3)).astype("f"))
        x = b.relu(b.conv(x, w, strides=[1, 1], pads=[2] * 4, dilations=[2, 2]))
    b.output("y", x)
    return b.build("dilated")


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_search_takes_its_time_and_no_more(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, costs = dilated(), Costs(target_named("v100"))
    settings, limits = MutationSettings(depth=3, rounds=rounds), Limits(2.0)
    with clock_of_calls(monkeypatch, "monotonic", "process_time"):
        result = search(program, costs, limits, None, settings)
        spent = time.perf_counter()
    assert result.stop_reason == "time"
    assert spent <= limits.seconds * SLACK
    result.program.module.verify()


def test_what_a_generation_begins_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three programs of one input: their results are evaluated before any mutant is."""
    now, evaluated = 0.0, Evaluator.value

    def ten_seconds(self: Evaluator, source: Any) -> Any:
        nonlocal now
        now += 10.0
        return evaluated(self, source)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(Evaluator, "value", ten_seconds)
    roots = [conv((1, 4, 8, 8), 4, (3, 3), dilation=d) for d in (1, 2, 3)]
    generator = Generator(roots, replace(Options(), seconds=35.0))
    assert list(generator.run()) == []
    assert generator.count.stopped == "time"
    assert now <= 35.0 + 10.0


def test_keys_are_found_where_they_stand_once() -> None:
    rng = np.random.default_rng(5)
    target, made = rng.integers(0, 60, (4, 6)), rng.integers(0, 60, (5, 7))
    found = occurrences(ResultKeys(target), made)
    for at, key in np.ndenumerate(target):
        there = np.argwhere(made == key)
        if key and len(there) == 1:
            assert found[(slice(None), *at)].tolist() == there[0].tolist()
        else:
            assert np.isnan(found[(slice(None), *at)]).all()
    assert np.isnan(occurrences(ResultKeys(target), np.zeros((3, 3), int))).all()


def test_products_whose_results_have_one_dim_are_searched_apart() -> None:
    """Groups are put side by side along the second dim, which vectors do not have."""
    assert groupable([(4, 8), (4, 3)]) and not groupable([(4, 8), (5, 8)])
    assert not groupable([(8,), (8,)])
    text = """
    func.func @main(%x: tensor<64xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
      %v = graph.weight @v : tensor<64x32xf32>
      %w = graph.weight @w : tensor<64x32xf32>
      %a = algebra.scope (n: 32) sum (k: 64) %x[k] * %v[k, n] : tensor<32xf32>
      %b = algebra.scope (n: 32) sum (k: 64) %x[k] * %w[k, n] : tensor<32xf32>
      func.return %a, %b : tensor<32xf32>, tensor<32xf32>
    }
    """
    found = search(parse(text, "vectors"), Costs(target_named("h100")), Limits(10.0))
    assert found.stop_reason == "finished"
