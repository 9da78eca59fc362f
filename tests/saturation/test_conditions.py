"""A rule is applied where its conditions hold, and nowhere else."""

import itertools
from math import prod

import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.conditions import holds
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import SaturationSettings, saturate_block

CONDITIONS = (
    "x.rank == 2",
    "x.shape[0] == y.shape[1]",
    "x.shape[-1] < 4 and y.rank != 1",
    "x.shape[0] * 2 + 1 >= y.shape[0] - 1",
    "1 < x.shape[0] <= 3",
    "x.shape[0] % 2 == 0",
    "x.shape[0] // y.shape[0] == 1",
    "max(x.shape[0], y.shape[0]) == 3",
    "x.shape[2] == 1",
    "x.shape[0] % y.shape[0] == 1",
    "x.rank == 2 or x.rank == 3",
    "not x.rank == 2",
    "p[0] == 6",
    "p[-1] == q[0]",
    "p == q",
)
SHAPES = ((2, 3), (3, 2), (3, 3, 1), (4,), (1, 5, 2))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_rule_is_applied_where_its_condition_holds(condition: str) -> None:
    b = GraphBuilder()
    inputs = [b.input(f"x{k}", shape) for k, shape in enumerate(SHAPES)]
    pairs = list(itertools.product(SHAPES, repeat=2))
    for k, (one, other) in enumerate(pairs):
        x = b.reshape(inputs[SHAPES.index(one)], shape=[prod(one)])
        y = b.reshape(inputs[SHAPES.index(other)], shape=[prod(other)])
        b.output(f"y{k}", b.concat(x, y, axis=0))
    law = "concat(reshape(?x, shape=?p), reshape(?y, shape=?q), axis=0)"
    rules = parse_rules(f"rule r\n  where {condition}\n  {law} =>\n    {law}\n")
    table = OpTable()
    prices = NodePrices(table, Costs(target_named("h100")))
    outcome = saturate_block(
        b.build().main.body.block, table, prices, SaturationSettings(rules=rules)
    )
    types = [dict(instance.types) for instance in outcome.saturation.instances]
    found = [(t["x"].get_shape(), t["y"].get_shape()) for t in types]
    wanted = [
        (one, other)
        for one, other in pairs
        if holds((condition,), {"x": one, "y": other, "p": (prod(one),), "q": (prod(other),)})
    ]
    assert sorted(found) == sorted(wanted)
