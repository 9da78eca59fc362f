"""Guards compiled into rule bodies say what conditions.py says."""

import itertools

import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.passes.rules.conditions import holds, names_in
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.encode import encode
from isoform.passes.saturation.engine import engine_for
from isoform.passes.saturation.guards import Guards
from isoform.passes.saturation.match import EGraphMatcher
from isoform.passes.saturation.search import _shapes

COMPILED = (
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
    "k == 1",
    "s[0] == x.shape[0]",
    "s[-1] == 1",
)
LEFT_TO_PYTHON = ("x.rank == 2 or x.rank == 3", "not x.rank == 2", "k // 2 == 0", "k == s")
ABOUT_SHAPES = [c for c in (*COMPILED, *LEFT_TO_PYTHON) if not {"k", "s"} & set(names_in(c))]
SHAPES = ((2, 3), (3, 2), (3, 3, 1), (4,), (1, 5, 2))


@pytest.mark.parametrize("condition", (*COMPILED, *LEFT_TO_PYTHON))
def test_what_compiles_is_known(condition: str) -> None:
    guards = Guards({"x": "?x", "y": "?y"}, {"k": "?k", "s": "?s"})
    assert guards.add(condition) == (condition in COMPILED)
    assert bool(guards.facts) == (condition in COMPILED)


@pytest.mark.parametrize("condition", ABOUT_SHAPES)
def test_a_rule_matches_where_its_condition_holds(condition: str) -> None:
    b = GraphBuilder()
    inputs = [b.input(f"x{k}", shape) for k, shape in enumerate(SHAPES)]
    pairs = list(itertools.product(range(len(SHAPES)), repeat=2))
    for i, j in pairs:
        x = b.reshape(inputs[i], shape=[_size(SHAPES[i])])
        y = b.reshape(inputs[j], shape=[_size(SHAPES[j])])
        b.output(f"y{i}{j}", b.concat(x, y, axis=0))
    block, table = b.build().main.body.block, OpTable()
    rule = parse_rules(
        f"rule r\n  where {condition}\n"
        "  concat(reshape(?x, shape=?p), reshape(?y, shape=?q), axis=0) => concat(?x, ?y, axis=0)\n"
    )
    encoded = encode(block, table)
    engine = engine_for(rule, _shapes(encoded.graph, rule, table, "graph."), table, "graph.")
    engine.insert(encoded.graph)
    rows = engine.match(encoded.graph, engine.relations)
    matcher = EGraphMatcher(engine, encoded.graph, "guarded")
    names = {encoded.classes[v]: k for k, v in enumerate(block.args)}
    found = {
        (names[i.tensors["x"]], names[i.tensors["y"]])
        for i in matcher.instances(engine.lefts[:1], rows)
    }
    wanted = {(i, j) for i, j in pairs if holds((condition,), {"x": SHAPES[i], "y": SHAPES[j]})}
    assert found == wanted


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
