"""Saturation end to end on small graphs: what is merged, kept, refused, limited."""

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler import zoo
from isoform.compiler.registry import make_context
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.check import check_instances, evaluate
from isoform.passes.saturation.cycles import CYCLES
from isoform.passes.saturation.decode import Decoder
from isoform.passes.saturation.encode import encode
from isoform.passes.saturation.graph_saturate import GraphSaturate
from isoform.passes.saturation.greedy import greedy_tree
from isoform.passes.saturation.limits import Caps
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.problem import contracted, problem_of
from isoform.passes.saturation.search import (
    BlockOutcome,
    SaturationSettings,
    saturate_block,
    search,
)
from isoform.passes.search_result import Limits

RULES = read_rules(Path(__file__).parent / "merges.rules")
H100 = Costs(target_named("h100"))


def saturate(program: Program, rules: tuple[Rule, ...] = RULES, **settings) -> BlockOutcome:
    table = OpTable()
    given = SaturationSettings(rules=rules, **{"extract_seconds": 600.0, **settings})
    return saturate_block(program.main.body.block, table, NodePrices(table, H100), given)


def shared_products(count: int = 3, size: int = 256) -> Program:
    b = GraphBuilder()
    x = b.input("x", (64, size))
    total = None
    for k in range(count):
        w = b.weight(f"w{k}", np.full((size, size), k, np.float32))
        y = b.relu(b.matmul(x, w))
        total = y if total is None else b.add(total, y)
    b.output("y", total)
    return b.build()


def test_products_that_share_an_operand_are_merged_and_the_result_is_the_same() -> None:
    program = shared_products(size=16)
    better = program.clone()
    outcome = saturate(better, extract_seconds=600.0)
    assert outcome.changed
    assert outcome.after < outcome.before
    better.module.verify()
    x = np.arange(64 * 16).reshape(64, 16) % 5 - 2.0
    assert np.array_equal(run(program, {"x": x})["y"], run(better, {"x": x})["y"])


def test_a_second_round_of_merges_goes_on_from_the_first() -> None:
    once, twice = shared_products(), shared_products()
    first, second = saturate(once), saturate(twice, caps=Caps(k_multi=2))
    assert second.after <= first.after
    assert second.extracted.optimal


def test_products_with_transposed_weights_are_merged_in_the_first_round() -> None:
    found = {m: saturate(zoo.build("tensat-bert", layers=2), method=m) for m in ("tree", "ilp")}
    assert found["ilp"].extracted.optimal
    assert found["ilp"].extracted.cost < found["tree"].extracted.cost * 0.99
    assert "matmul-merge-shared-left" in found["ilp"].saturation.applied


@pytest.mark.parametrize("cycles", CYCLES)
def test_every_way_to_handle_cycles_finds_the_same_optimum(cycles) -> None:
    program = shared_products()
    outcome = saturate(program, cycles=cycles)
    assert outcome.after == pytest.approx(saturate(shared_products()).after)


def test_a_merge_of_products_that_feed_each_other_makes_no_cycle_in_the_result() -> None:
    for cycles in CYCLES:
        b = GraphBuilder()
        x = b.input("x", (32, 32))
        w = b.input("w", (32, 32))
        y = b.matmul(x, w)
        b.output("y", b.matmul(y, w))
        program = b.build()
        outcome = saturate(program, cycles=cycles, caps=Caps(k_multi=2))
        program.module.verify()
        assert outcome.extracted.problem.order(outcome.extracted.choice) is not None


def test_a_constant_of_a_rule_is_computed_from_small_literals() -> None:
    """Merging groups masks a kernel: 147,456 zeros and ones are not a literal, `eye(2)` is."""
    b = GraphBuilder()
    x, w = b.input("x", (1, 512, 4, 4)), b.weight("w", np.ones((512, 16, 3, 3), np.float32))
    y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], groups=32)
    b.output("y", y)
    table, program = OpTable(), b.build()
    rules = tuple(rule for rule in RULES if rule.name == "conv-groups-merged")
    prices = NodePrices(table, Costs(target_named("cpu")))
    outcome = saturate_block(
        program.main.body.block, table, prices, SaturationSettings(rules=rules)
    )
    assert outcome.saturation.applied["conv-groups-merged"] >= 1
    graph = outcome.encoded.graph
    literals = [n for n in graph.nodes if n.head.op == "graph.constant"]
    assert literals
    sizes = [graph.types[n.klass][0].get_shape() for n in literals]
    assert all(np.prod(shape) <= 4 for shape in sizes)
    assert check_instances(outcome.saturation.instances).failed == ()


def test_a_block_encoded_and_decoded_is_the_block() -> None:
    for name in ("squeezenet", "mobilenet-v2", "tensat-bert"):
        program = zoo.build(name)
        text = str(program.module)
        block, table = program.main.body.block, OpTable()
        encoded = encode(block, table)
        problem = contracted(
            problem_of(encoded.graph, encoded.graph.roots, NodePrices(table, H100))
        )
        assert Decoder(encoded, table, problem, greedy_tree(problem)).run()
        program.module.verify()
        assert lines(str(program.module)) == lines(text)


def lines(text: str) -> list[str]:
    """The ops of a module, whatever their order and the numbers of unnamed values."""
    return sorted(re.sub(r"%\d+", "%", line) for line in text.splitlines())


def test_the_same_input_gives_the_same_text_five_times() -> None:
    texts = set[str]()
    for _ in range(5):
        program = zoo.build("squeezenet")
        saturate(program)
        texts.add(str(program.module))
    assert len(texts) == 1


def test_provenance_and_location_of_what_rules_make() -> None:
    program = shared_products()
    outcome = saturate(program)
    assert outcome.made
    for op, node in outcome.made:
        assert node.made_by in str(op)


def test_every_instance_on_small_models_holds() -> None:
    for name, sizes in (("tensat-bert", {"layers": 1}), ("nasrnn", {"steps": 1})):
        program = zoo.build(name, **sizes)
        outcome = saturate(program, caps=Caps(k_multi=2))
        checked = check_instances(outcome.saturation.instances)
        assert checked.instances > 0
        assert not checked.failed


def test_without_an_inputs_value_what_reads_it_is_left_out() -> None:
    graph, _, weights = small_graph(RULES)
    assert evaluate(graph, OpTable(), {}, weights) == []


def test_every_e_node_computes_its_class() -> None:
    graph, leaves, weights = small_graph(RULES)
    assert len(graph.nodes) > 40
    assert evaluate(graph, OpTable(), leaves, weights) == []


WRONG = """
rule matmul-commutes
  matmul(?a, ?b) => matmul(?b, ?a)
"""

UNSOUND_GROUPS = """
rule grouped-conv-concat
  concat(conv(?x, ?w, strides=[1, 1], pads=?p, dilations=[1, 1], groups=1),
         conv(?y, ?v, strides=[1, 1], pads=?p, dilations=[1, 1], groups=1), axis=1) =>
    conv(concat(?x, ?y, axis=1), concat(?w, ?v, axis=0), strides=[1, 1], pads=?p,
         dilations=[1, 1], groups=2)
"""


def small_graph(rules):
    b = GraphBuilder()
    x = b.input("x", (4, 4))
    weights = {f"w{k}": np.arange(16.0).reshape(4, 4) % (k + 3) - 1 for k in range(3)}
    values = [b.weight(name, array.astype(np.float32)) for name, array in weights.items()]
    y = b.add(b.relu(b.matmul(x, values[0])), b.relu(b.matmul(x, values[1])))
    b.output("y", b.matmul(b.matmul(y, values[2]), values[1]))
    program = b.build()
    outcome = saturate(program, rules, caps=Caps(k_multi=2))
    graph = outcome.encoded.graph
    leaf = next(c for value, c in outcome.encoded.classes.items() if value.name_hint == "x")
    return graph, {leaf: np.arange(16.0).reshape(4, 4) % 7 - 3}, weights


def test_a_wrong_rule_is_caught_by_the_instance_check_and_by_evaluation() -> None:
    rules = (*RULES, *parse_rules(WRONG))
    graph, leaves, weights = small_graph(rules)
    assert any("matmul-commutes" in line for line in evaluate(graph, OpTable(), leaves, weights))
    with pytest.raises(UserError, match="matmul-commutes"):
        saturate(shared_products(size=64), rules, check=True)


def test_the_grouped_concat_of_tasos_rules_is_caught_where_channels_differ() -> None:
    b = GraphBuilder()
    convs = list[object]()
    for k, (inputs, outputs) in enumerate(((64, 96), (64, 32))):
        x = b.input(f"x{k}", (1, inputs, 4, 4))
        w = b.weight(f"w{k}", np.ones((outputs, inputs, 1, 1), np.float32))
        convs.append(b.conv(x, w, strides=[1, 1], pads=[0] * 4, dilations=[1, 1]))
    b.output("y", b.concat(*convs, axis=1))
    with pytest.raises(UserError, match="grouped-conv-concat"):
        saturate(b.build(), parse_rules(UNSOUND_GROUPS), check=True)


def test_search_says_what_was_applied_and_what_was_not() -> None:
    bare = parse_rules("rule bare\n  ?x => add(?x, ?x)")
    result = search(shared_products(), H100, Limits(20), rules=(*RULES, *bare))
    assert result.stop_reason == "finished"
    assert {a.rule for a in result.applied} >= {"matmul-merge-shared-left"}
    assert all(a.delta < 0 for a in result.applied)
    assert any(r.rule == "bare" for r in result.rejected)


def test_bad_options_are_one_line() -> None:
    program = shared_products()
    for options in ({"extract": "lp"}, {"cycles": "none"}, {"op_costs": ("mul",)}):
        with pytest.raises(UserError):
            GraphSaturate(**options).apply(context(), program.module)


def context() -> Context:
    return make_context()
