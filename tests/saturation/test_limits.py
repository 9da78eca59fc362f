"""Limits that hold: nodes, time within a fifth, memory; the best program so far comes out.

What else the machine does must not decide a test: where time is the limit, the clock counts calls.
The slow tests look at the real one.
"""

import time
from pathlib import Path

import numpy as np
import pytest
from support.clock import clock_of_calls

from isoform.compiler import zoo
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule import Node, Out, Term, Var, subterms
from isoform.passes.rules.rule_set import read_rules, rules_named
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.bounds import Bounds
from isoform.passes.saturation.egraph import EGraph, ENode
from isoform.passes.saturation.limits import Caps, resident_mebibytes
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.read_back import Kind
from isoform.passes.saturation.search import BlockOutcome, SaturationSettings, saturate_block
from isoform.testing.random_programs import random_graph, random_inputs

MERGES = read_rules(Path(__file__).parent / "merges.rules")
ADDS = tuple(r for r in MERGES if r.name in ("add-commutative", "add-associative"))
H100 = Costs(target_named("h100"))
SLACK = 1.2


def saturate(program: Program, rules, caps: Caps, **settings) -> BlockOutcome:
    table = OpTable()
    given = SaturationSettings(rules=tuple(rules), caps=caps, **settings)
    return saturate_block(program.main.body.block, table, NodePrices(table, H100), given)


def sum_of(terms: int) -> Program:
    b = GraphBuilder()
    values = [b.input(f"x{k}", (4, 4)) for k in range(terms)]
    total = values[0]
    for value in values[1:]:
        total = b.add(total, value)
    b.output("y", total)
    return b.build()


@pytest.mark.parametrize(
    ("caps", "reason"),
    [
        (Caps(nodes=5000, seconds=600.0), "nodes"),
        (Caps(nodes=10**9, seconds=600.0, iterations=99, mebibytes=60), "memory"),
        (Caps(nodes=10**9, seconds=600.0, matches=1000), "steps"),
    ],
)
def test_sums_of_twelve_terms_stop_within_each_limit(caps: Caps, reason: str) -> None:
    program, memory = sum_of(12), resident_mebibytes()
    outcome = saturate(program, ADDS, caps, extract_seconds=2.0)
    assert outcome.saturation.stop_reason == reason
    assert outcome.saturation.nodes[-1] <= caps.nodes
    assert resident_mebibytes() - memory <= caps.mebibytes
    assert outcome.after <= outcome.before
    program.module.verify()


def test_sums_of_twelve_terms_stop_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    program, caps = sum_of(12), Caps(nodes=10**9, seconds=3.0, iterations=99)
    saturate(sum_of(3), ADDS, caps)  # what the rules themselves take once
    with clock_of_calls(monkeypatch):
        outcome = saturate(program, ADDS, caps)
        spent = time.perf_counter()
    assert outcome.saturation.stop_reason == "time"
    assert spent <= caps.seconds * SLACK
    assert outcome.after <= outcome.before
    program.module.verify()


def inception(slices: int) -> Program:
    """The towers of one Inception block, `slices` times one after another."""
    b = GraphBuilder()
    x = b.input("x", (1, 64, 8, 8))
    for s in range(slices):
        towers = list[object]()
        for k, channels in enumerate((16, 24, 8, 16)):
            w = b.weight(f"w{s}{k}", np.ones((channels, 64, 1, 1), np.float32))
            towers.append(b.relu(b.conv(x, w, strides=[1, 1], pads=[0] * 4, dilations=[1, 1])))
        x = b.concat(*towers, axis=1)
    b.output("y", x)
    return b.build()


def test_unguarded_merges_stop_within_their_limits() -> None:
    program, caps = inception(3), Caps(nodes=500, k_multi=2, seconds=600.0)
    outcome = saturate(program, MERGES, caps, cycles="in-ilp", extract_seconds=20.0)
    assert outcome.saturation.stop_reason == "nodes"
    assert outcome.saturation.nodes[-1] <= caps.nodes
    assert outcome.after < outcome.before
    program.module.verify()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10.0, 60.0])
def test_unguarded_merges_on_inception_stop_within_their_limits(seconds: float) -> None:
    program, caps = zoo.build("inception-v3"), Caps(k_multi=2, seconds=seconds, mebibytes=1500)
    begun, memory = time.perf_counter(), resident_mebibytes()
    outcome = saturate(program, MERGES, caps, cycles="in-ilp")
    assert outcome.saturation.stop_reason in ("nodes", "time")
    assert outcome.saturation.nodes[-1] <= caps.nodes
    assert time.perf_counter() - begun <= caps.seconds * SLACK
    assert resident_mebibytes() - memory <= caps.mebibytes
    assert outcome.after <= outcome.before
    program.module.verify()


# On these the shipped rules make more nodes in every round.
@pytest.mark.parametrize("seed", [200, 207, 210])
def test_a_random_program_that_grows_stops_and_keeps_its_meaning(seed: int) -> None:
    program, caps = random_graph(seed), Caps(nodes=70, seconds=600.0)
    better = program.clone()
    outcome = saturate(better, rules_named("default"), caps)
    assert outcome.saturation.stop_reason == "nodes"
    better.module.verify()
    inputs = random_inputs(program, seed)
    before, after = run(program, inputs), run(better, inputs)
    for name, array in before.items():
        assert np.allclose(after[name], array, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_rules_that_are_set_aside_are_said_and_the_others_go_on() -> None:
    b = GraphBuilder()
    total = b.input("x", (4, 4))
    for k in range(6):
        total = b.add(total, b.input(f"x{k}", (4, 4)))
    b.output("y", b.relu(b.relu(total)))
    relu = parse_rules("rule relu-twice\n  relu(relu(?x)) => relu(?x)")
    outcome = saturate(b.build(), (*ADDS, *relu), Caps(matches=4))
    assert outcome.saturation.stop_reason == "steps"
    assert set(outcome.saturation.aside) == {"add-commutative", "add-associative"}
    assert set(outcome.saturation.applied) == {"relu-twice"}
    assert outcome.changed


def matches(graph: EGraph, members: dict[int, list[ENode]], term: Term, klass: int) -> int:
    """Matches of a term in a class, counted one by one, whatever the names of its variables."""
    if isinstance(term, Var):
        return 1
    count = 0
    for node in members[klass]:
        match term:
            case Out():
                index = node.head.attributes[0][1] if node.head.op == "project" else None
                if getattr(index, "data", None) == term.index:
                    count += matches(graph, members, term.node, node.operands[0])
            case Node() if node.head.op == f"graph.{term.op}":
                found = 1
                for part, operand in zip(term.operands, node.operands, strict=True):
                    found *= matches(graph, members, part, operand)
                count += found
            case _:
                pass
    return count


def kinds(graph: EGraph) -> dict[Kind, np.ndarray]:
    """The e-nodes of each kind: class, operands."""
    rows = dict[Kind, list[tuple[int, ...]]]()
    for node in graph.nodes:
        index = node.head.attributes[0][1].data if node.head.op == "project" else None
        kind = node.head.op, len(node.operands) if index is None else index
        rows.setdefault(kind, []).append((node.klass, *node.operands))
    return {kind: np.array(found) for kind, found in rows.items()}


def test_no_pattern_has_more_matches_than_its_bound() -> None:
    outcome = saturate(sum_of(6), MERGES, Caps(), method="dag")
    graph, seen = outcome.encoded.graph, 0
    bounds, members = Bounds(kinds(graph), len(graph.types), "graph."), graph.classes()
    for rule in MERGES:
        for term in rule.left:
            count = sum(matches(graph, members, term, c) for c in members)
            assert count <= bounds.of(subterms((term,)))
            seen += count
    assert seen > 100
