"""The same question to `optimize` is answered by what an earlier run found."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoform.compiler.api import optimize
from isoform.compiler.frontends.program_file import module_text
from isoform.compiler.reports.report_text import report_text
from isoform.compiler.search import acceptance, optimizer
from isoform.compiler.search.strategies import Strategy
from isoform.compiler.targets import cpu
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.floats import BITS
from isoform.dialects.program import Program
from isoform.passes.cost.cost_file import CostFile
from isoform.passes.search_result import Applied, SearchResult, StopReason


class Searches:
    """A search that finds a program of one op, and counts how often it runs."""

    def __init__(self) -> None:
        self.count = 0
        self.stop: StopReason = "finished"

    def __call__(self, program: Program, *_: object) -> SearchResult:
        self.count += 1
        b = GraphBuilder()
        b.output("y", b.relu(b.input("x", (4096, 64))))
        found = b.build()
        found.main.arg_attrs = program.main.arg_attrs
        applied = [Applied("shorter", "main", "exact", -1e-6, BITS)]
        return SearchResult(found, self.stop, applied)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Searches:
    made = Searches()
    use(monkeypatch, made)
    monkeypatch.setenv("ISOFORM_DEBUG", "0")
    monkeypatch.setattr(cpu, "_package_state", lambda: "frozen")
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "cache"))
    return made


def use(monkeypatch: pytest.MonkeyPatch, search: Any, name: str = "drop") -> None:
    strategies = (Strategy(name, "algebra", 1.0, search, BITS),)
    monkeypatch.setattr(optimizer, "chosen", lambda *_, **__: strategies)


def program(weight: float | None = None, name: str = "x") -> Program:
    b = GraphBuilder()
    x = b.input(name, (4096, 64))
    if weight is not None:
        x = b.mul(x, b.weight("w", np.full((4096, 64), weight, np.float32)))
    b.output("y", b.relu(b.softmax(b.softmax(x, axis=1), axis=0)))
    return b.build()


def test_the_second_run_answers_as_the_first_without_a_search(searches: Searches):
    first, second = (optimize(program(), target="h100") for _ in range(2))
    assert searches.count == 1
    assert module_text(first.module) == module_text(second.module)
    differ = ("elapsed_s", "stages_s", "remembered")
    one, two = ({k: v for k, v in r.report.items() if k not in differ} for r in (first, second))
    assert json.dumps(one) == json.dumps(two)
    assert [entry["rule"] for entry in second.report["rewrites"]] == ["shorter"]
    assert (first.report["remembered"], second.report["remembered"]) == (False, True)
    assert "remembered of an earlier run" in report_text(second.report)


def test_what_an_answer_depends_on_makes_another_question(
    searches: Searches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "own.rules").write_text("rule own: relu(relu(?x)) => relu(?x)\n")
    costs = tmp_path / "costs.json"
    CostFile("h100", class_scale={"other": 2.0}).save(costs)
    asked: Sequence[dict[str, Any]] = (
        {},
        {"seed": 1},
        {"threads": 2},
        {"effort": "quick"},
        {"tolerance": 1e-3},
        {"strict_nan": True},
        {"fast_math": True},
        {"target": "a100"},
        {"cost_file": costs},
        {"rules": tmp_path / "own.rules"},
    )
    for number, more in enumerate(asked, 1):
        optimize(program(), **{"target": "h100", **more})
        assert searches.count == number, more
    for number, other in enumerate((program(2.0), program(3.0), program(name="z")), len(asked) + 1):
        optimize(other, target="h100")
        assert searches.count == number
    monkeypatch.setattr(cpu, "_package_state", lambda: "changed")
    optimize(program(), target="h100")
    use(monkeypatch, searches, "another")
    optimize(program(), target="h100")
    assert searches.count == len(asked) + 5


def test_what_time_cut_short_serves_no_larger_budget(searches: Searches):
    searches.stop = "time"
    for budget, count in ((20.0, 1), (20.0, 1), (10.0, 1), (30.0, 2), (20.0, 2)):
        optimize(program(), target="h100", budget=budget)
        assert searches.count == count
    searches.stop = "steps"
    for budget in (40.0, 80.0):
        optimize(program(), target="h100", budget=budget)
    assert searches.count == 3


@pytest.mark.parametrize("fault", ["interrupted", "uncompared"])
def test_what_is_not_an_answer_is_not_remembered(
    searches: Searches, monkeypatch: pytest.MonkeyPatch, fault: str
):
    if fault == "interrupted":
        searches.stop = "interrupted"
    else:
        missed = optimizer.Comparison(1.0, 1.0, 1.0, "modelled", "late", missed="time")
        monkeypatch.setattr(optimizer, "_compare", lambda *_: missed)
    for _ in range(2):
        optimize(program(), target="h100")
    assert searches.count == 2


def test_a_result_with_weights_of_its_own_is_not_remembered(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
):
    count = 0

    def search(given: Program, *_: object) -> SearchResult:
        nonlocal count
        count += 1
        made = program(2.0)
        made.weights = given.weights
        if "w" not in given.weights:
            given.weights.add("w", np.ones((4096, 64), np.float32))
        return SearchResult(made, "finished")

    use(monkeypatch, search)
    monkeypatch.setattr(
        acceptance, "program_seconds", lambda programs, _: [2.0, 1.0][: len(programs)]
    )
    monkeypatch.setattr(optimizer, "_modelled", lambda *_: (2.0, 1.0))
    for _ in range(2):
        optimize(program(), target="h100")
    assert count == 2


def test_a_damaged_answer_is_searched_again(searches: Searches, tmp_path: Path):
    optimize(program(), target="h100")
    (file,) = (tmp_path / "cache" / "answers").glob("*.json")
    whole = file.read_text()
    another = whole.replace("graph.relu", "graph.tanh")
    assert another != whole
    for damaged in ("", whole[:-30], whole.replace("graph.relu", "graph.nothing"), "{}", another):
        file.write_text(damaged)
        optimize(program(), target="h100")
    assert searches.count == 6


def test_in_debug_mode_nothing_is_remembered(searches: Searches, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ISOFORM_DEBUG", "1")
    for _ in range(2):
        optimize(program(), target="h100")
    assert searches.count == 2


def test_with_a_plugin_nothing_is_remembered(searches: Searches, tmp_path: Path):
    from isoform.compiler.plugin import using

    (tmp_path / "p.py").write_text("PASSES = []\n")
    with using([str(tmp_path / "p.py")]):
        for _ in range(2):
            optimize(program(), target="h100")
    assert searches.count == 2
