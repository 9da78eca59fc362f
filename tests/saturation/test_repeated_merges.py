"""Merges of more than two at once: what is joined, what is not, and that every step holds."""

from pathlib import Path

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.check import check_instances, evaluate
from isoform.passes.saturation.cycles import CYCLES
from isoform.passes.saturation.limits import Caps
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import BlockOutcome, SaturationSettings, saturate_block

RULES = read_rules(Path(__file__).parent / "merges.rules")
MERGE = tuple(r for r in RULES if r.name in ("matmul-merge-shared-left", "relu-merge"))
H100 = Costs(target_named("h100"))


def saturate(program: Program, rules=RULES, **settings) -> BlockOutcome:
    table = OpTable()
    given = SaturationSettings(rules=rules, **{"extract_seconds": 600.0, **settings})
    return saturate_block(program.main.body.block, table, NodePrices(table, H100), given)


def count(program: Program, name: str) -> int:
    return sum(op.name == name for op in program.main.body.block.ops)


def products(number: int, size: int = 256, relu: bool = True) -> Program:
    b = GraphBuilder()
    x = b.input("x", (64, size))
    for k in range(number):
        w = b.weight(f"w{k}", np.full((size, size), k, np.float32))
        y = b.matmul(x, w)
        b.output(f"y{k}", b.relu(y) if relu else y)
    return b.build()


def test_five_products_are_one_after_one_round() -> None:
    program = products(5)
    outcome = saturate(program, MERGE)
    assert count(program, "graph.matmul") == 1
    checked = check_instances(outcome.saturation.instances)
    assert checked.instances == len(list(outcome.saturation.instances))
    assert checked.questions == 3  # two of one, two of two, one of four and the fifth
    assert not checked.failed


def layers(number: int, size: int = 256) -> Program:
    """A chain of products, each also read by two others."""
    b, rng = GraphBuilder(), np.random.default_rng(0)

    def weight(name: str):
        return b.weight(name, rng.integers(-2, 3, (size, size)).astype(np.float32))

    x = b.input("x", (64, size))
    for k in range(number):
        for part in ("q", "v"):
            b.output(f"{part}{k}", b.relu(b.matmul(x, weight(f"{part}{k}"))))
        x = b.matmul(x, weight(f"w{k}"))
    b.output("y", x)
    return b.build()


def test_what_associativity_brings_to_one_input_is_one_product_without_what_is_not_read() -> None:
    program = layers(4, 64)
    given = {"x": np.random.default_rng(1).integers(-2, 3, (64, 64)).astype(np.float64)}
    before = run(program.clone(), given)
    outcome = saturate(program)
    live = [
        op.results[0].type.get_shape()
        for op in program.main.body.block.ops
        if op.name == "graph.matmul" and op.operands[0] in program.main.body.block.args
    ]
    assert live == [(64, 9 * 64)]  # q and v of four layers, and y; not the chain of w
    assert not check_instances(outcome.saturation.instances).failed
    after = run(program, given)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_without_a_round_of_merges_nothing_is_folded() -> None:
    outcome = saturate(layers(4, 64), caps=Caps(k_multi=0))
    assert "matmul-merge-shared-left" not in outcome.saturation.applied


def test_what_does_not_fit_is_merged_among_itself() -> None:
    b = GraphBuilder()
    for k, size in enumerate((32, 48, 32, 48, 32, 48)):
        b.output(f"y{k}", b.relu(b.input(f"x{k}", (1, 8, size, size))))
    program = b.build()
    graph = saturate(program, MERGE).encoded.graph
    channels = [graph.types[n.klass][0] for n in graph.nodes if n.head.op == "graph.relu"]
    shapes = {t.get_shape() for t in channels}
    assert {(1, 24, 32, 32), (1, 24, 48, 48)} <= shapes


def test_a_rule_without_its_result_among_its_operands_is_not_folded() -> None:
    rules = parse_rules(
        "rule sums\n  add(?a, ?b), add(?a, ?c) =>\n"
        "    split(matmul(?a, concat(?b, ?c, axis=1)), axis=1, sizes=[4, 4]).0, (same).1\n"
    )
    b = GraphBuilder()
    x = b.input("x", (4, 4))
    for k in range(3):
        b.output(f"y{k}", b.add(x, b.input(f"z{k}", (4, 4))))
    assert saturate(b.build(), rules).saturation.applied == {"sums": 3}  # the pairs


@pytest.mark.parametrize("nodes", (60, 80, 120))
def test_the_node_limit_holds_inside_a_fold(nodes: int) -> None:
    outcome = saturate(products(12, 16), MERGE, caps=Caps(nodes=nodes))
    assert outcome.saturation.stop_reason == "nodes"
    assert max(outcome.saturation.nodes) <= nodes


def test_a_fold_is_the_same_five_times() -> None:
    texts = set[str]()
    for _ in range(5):
        program = products(5)
        saturate(program)
        texts.add(str(program.module))
    assert len(texts) == 1


@pytest.mark.parametrize("cycles", CYCLES)
def test_a_refused_step_does_not_go_on_from_another_fold(cycles) -> None:
    b = GraphBuilder()
    size, arrays = 4, dict[str, np.ndarray]()
    x, y = b.input("x", (size, size)), b.input("y", (size, size))

    def weight(name: str):
        arrays[name] = (np.arange(16.0).reshape(4, 4) * (len(arrays) + 2) % 7 - 3).astype("f4")
        return b.weight(name, arrays[name])

    for k in range(3):
        b.output(f"u{k}", b.matmul(x, weight(f"u{k}")))
    first = b.matmul(y, weight("v0"))
    b.output("v1", b.matmul(y, b.relu(first)))
    b.output("v2", b.matmul(y, weight("v2")))
    outcome = saturate(b.build(), MERGE, cycles=cycles)
    leaves = {
        outcome.encoded.classes[v]: np.arange(16.0).reshape(4, 4) % m - 2
        for v, m in zip(outcome.encoded.block.args, (5, 7), strict=True)
    }
    assert evaluate(outcome.encoded.graph, OpTable(), leaves, arrays) == []


def test_an_activation_of_a_product_costs_little_beside_the_product() -> None:
    outcome = saturate(program := products(2), MERGE)
    assert count(program, "graph.matmul") == 1
    assert outcome.after < H100.program(products(2, relu=False)).seconds


@pytest.mark.parametrize("number", (3, 4, 6))
def test_splits_of_splits_cost_what_the_one_split_costs_that_is_written(number: int) -> None:
    program = products(number, relu=False)
    outcome = saturate(program, MERGE)
    program.module.verify()
    assert count(program, "graph.split") == 1
    assert H100.program(program).seconds == pytest.approx(outcome.extracted.cost)


def test_a_part_that_is_read_as_well_stays_and_values_hold() -> None:
    b = GraphBuilder()
    x = b.input("x", (12, 4))
    first = b.split(x, axis=0, sizes=[8, 4])
    second = b.split(first[0], axis=0, sizes=[3, 5])
    b.output("whole", b.relu(first[0]))
    for k, part in enumerate((first[1], *second)):
        b.output(f"y{k}", b.relu(b.relu(part)))
    program = b.build()
    better = program.clone()
    assert saturate(better, parse_rules("rule r\n  relu(relu(?a)) => relu(?a)\n")).changed
    better.module.verify()
    given = {"x": np.arange(48.0).reshape(12, 4) - 20}
    before, after = run(program, given), run(better, given)
    assert all(np.array_equal(before[name], after[name]) for name in before)
