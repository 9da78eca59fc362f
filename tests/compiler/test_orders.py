"""Where the model decides, searches below the graph level also run without those of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdsl.dialects.builtin import StringAttr

from isoform.compiler.search import orders
from isoform.compiler.search.orders import search_in_best_order
from isoform.compiler.search.records import ComparisonRequest, Searched
from isoform.compiler.search.strategies import Strategy, chosen
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs


def program(mark: str = "") -> Program:
    b = GraphBuilder()
    b.output("y", b.relu(b.input("x", (4,))))
    made = b.build()
    made.module.attributes["test.by"] = StringAttr(mark)
    return made


def asked(
    monkeypatch: pytest.MonkeyPatch, both: float, below: float, unmeasured: str | None = "no GPU"
) -> tuple[Searched, list[list[str]]]:
    """What is returned where all searches reach `both` seconds, and those below alone `below`."""
    ran: list[list[str]] = []

    def run(given: Program, strategies: Sequence[Strategy], request: Any) -> Searched:
        names = [strategy.name for strategy in strategies]
        ran.append(names)
        searches = [{"strategy": n, "kept": True, "reason": "", "stop_reason": "x"} for n in names]
        rejected = [{"rule": n, "place": "main", "reason": ""} for n in names]
        rewrites = [{"rule": n} for n in names]
        made = program(",".join(names))
        return Searched(made, rewrites, rejected, searches, dict.fromkeys(names, 1.0))

    def seconds(made: Program, request: Any) -> float:
        return both if "saturate" in str(made.module) else below

    monkeypatch.setattr(orders, "run_searches", run)
    monkeypatch.setattr(orders, "_seconds", seconds)
    target = target_named("h100")
    request = ComparisonRequest(target, Costs(target), 0, None, 1e12, unmeasured)  # pyright: ignore
    return search_in_best_order(program(), chosen("optimize", "kernel"), request), ran


def test_the_better_order_is_taken_and_the_report_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    found, ran = asked(monkeypatch, both=2.0, below=1.0)
    assert ran == [["saturate", "derive", "mutate"], ["derive", "mutate"]]
    assert [(s["strategy"], s["kept"]) for s in found.searches] == [
        ("saturate", False),
        ("derive", True),
        ("mutate", True),
    ]
    assert "0.500 of the time" in found.searches[0]["reason"]
    assert [rewrite["rule"] for rewrite in found.rewrites] == ["derive", "mutate"]
    assert found.seconds == {"saturate": 1.0, "derive": 2.0, "mutate": 2.0}


def test_the_first_order_stays_where_it_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    found, ran = asked(monkeypatch, both=1.0, below=1.0)
    assert len(ran) == 2
    assert [s["kept"] for s in found.searches] == [True, True, True]
    assert [rewrite["rule"] for rewrite in found.rewrites] == ["saturate", "derive", "mutate"]


def test_measured_programs_have_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(asked(monkeypatch, both=2.0, below=1.0, unmeasured=None)[1]) == 1


def with_substitution(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]
) -> tuple[Searched, list[list[str]]]:
    """What is returned and what ran, where programs made by these searches take so long."""
    ran: list[list[str]] = []

    def run(given: Program, strategies: Sequence[Strategy], request: Any) -> Searched:
        names = [strategy.name for strategy in strategies]
        ran.append(names)
        mark = given.module.attributes["test.by"]
        assert isinstance(mark, StringAttr)
        made = program(",".join(filter(None, (mark.data, *names))))
        searches = [{"strategy": n, "kept": True, "reason": "", "stop_reason": "x"} for n in names]
        return Searched(made, [{"rule": n} for n in names], [], searches, dict.fromkeys(names, 1.0))

    def taken(made: Program, request: Any) -> float:
        mark = made.module.attributes["test.by"]
        assert isinstance(mark, StringAttr)
        return seconds[mark.data]

    monkeypatch.setattr(orders, "run_searches", run)
    monkeypatch.setattr(orders, "_seconds", taken)
    target = target_named("h100")
    request = ComparisonRequest(target, Costs(target), 0, None, 1e12, "no GPU")  # pyright: ignore
    strategies = chosen("saturate,substitute,derive", "kernel")
    return search_in_best_order(program(), strategies, request), ran


def test_a_graph_search_alone_may_be_better_than_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {"saturate,substitute": 3.0, "substitute": 2.0, "substitute,derive": 1.5}
    found, ran = with_substitution(monkeypatch, {**seconds, "derive": 1.6})
    assert ran == [["saturate", "substitute"], ["substitute"], ["derive"], ["derive"]]
    assert [rewrite["rule"] for rewrite in found.rewrites] == ["substitute", "derive"]
    kept = [(s["strategy"], s["kept"]) for s in found.searches]
    assert kept == [("saturate", False), ("substitute", True), ("derive", True)]
    assert found.seconds == {"saturate": 1.0, "substitute": 2.0, "derive": 2.0}


def test_graph_searches_in_turn_stay_where_they_are_as_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {"saturate,substitute": 2.0, "substitute": 2.0, "saturate,substitute,derive": 1.5}
    found, _ = with_substitution(monkeypatch, {**seconds, "derive": 1.6})
    assert [r["rule"] for r in found.rewrites] == ["saturate", "substitute", "derive"]


def test_substitution_is_part_of_optimize_where_the_model_decides() -> None:
    modelled = [s.name for s in chosen("optimize", "kernel", measured=False)]
    assert modelled == ["saturate", "substitute", "derive", "mutate"]
    assert "substitute" not in [s.name for s in chosen("optimize", "kernel")]


def test_a_graph_search_that_had_no_time_begins_from_the_given_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(given: Program, strategies: Sequence[Strategy], request: Any) -> Searched:
        names = [strategy.name for strategy in strategies]
        ran.append(names)
        searches = [{"strategy": names[0], "kept": False, "reason": "", "stop_reason": "time"}]
        return Searched(given, [], [], searches, {names[0]: 1.0})

    monkeypatch.setattr(orders, "run_searches", run)
    monkeypatch.setattr(orders, "_seconds", lambda made, request: 1.0)
    target = target_named("h100")
    request = ComparisonRequest(target, Costs(target), 0, None, 1e12, "no GPU")  # pyright: ignore
    search_in_best_order(program(), chosen("saturate,substitute,derive", "kernel"), request)
    assert ran == [["saturate", "substitute"], ["substitute"], ["derive"]]
