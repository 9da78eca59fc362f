"""A run printed as an egglog program, its answers as rows, is that run in egglog alone."""

from pathlib import Path

import numpy as np
from egglog.bindings import EGraph as Egglog

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.saturation.limits import Caps
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import BlockOutcome, SaturationSettings, saturate_block

RULES = read_rules(Path(__file__).parent / "merges.rules")


def products(count: int, size: int = 16) -> Program:
    b = GraphBuilder()
    x = b.input("x", (64, size))
    for k in range(count):
        b.output(f"y{k}", b.relu(b.matmul(x, b.weight(f"w{k}", np.ones((size, size), np.float32)))))
    return b.build()


def saturate(program: Program, **caps) -> BlockOutcome:
    table = OpTable()
    settings = SaturationSettings(RULES, caps=Caps(seconds=600.0, **caps), replayed=True)
    prices = NodePrices(table, Costs(target_named("h100")))
    return saturate_block(program.main.body.block, table, prices, settings)


def replayed(text: str) -> dict[str, int]:
    """Rows of each table after a program of egglog; nothing of isoform has a part in it."""
    egglog = Egglog()
    for line in text.splitlines():
        egglog.run_program(*egglog.parse_program(line))
    (sizes,) = egglog.run_program(*egglog.parse_program("(print-size)"))
    return dict(sizes.sizes)


def test_a_printed_run_makes_the_same_e_graph_in_egglog_alone() -> None:
    outcome = saturate(products(5), k_multi=2)
    sizes, ops = replayed(outcome.replay), dict[str, int]()
    for node in outcome.encoded.graph.nodes:
        ops[node.head.op] = ops.get(node.head.op, 0) + 1
    for op in ("graph.matmul", "graph.concat", "graph.split", "graph.relu"):
        assert sum(n for name, n in sizes.items() if name.startswith(f"{op}-")) == ops[op] > 1
    assert sizes["part"] == ops["project"]
    assert "answer-" in outcome.replay


def test_a_run_that_a_limit_cut_is_replayed_as_it_was() -> None:
    outcome = saturate(products(12), nodes=80)
    assert outcome.saturation.stop_reason == "nodes"
    sizes = replayed(outcome.replay)
    ops = [n for n in outcome.encoded.graph.nodes if n.head.op not in ("leaf", "project")]
    made = [n for name, n in sizes.items() if name.startswith("graph.")]
    assert sum(made) == len(ops)


def test_the_program_of_a_run_is_the_same_each_time() -> None:
    texts = {saturate(products(3)).replay for _ in range(3)}
    assert len(texts) == 1
