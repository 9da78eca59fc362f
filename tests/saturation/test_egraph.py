"""The e-graph is closed under congruence, whatever the order of its e-nodes."""

import pytest
from xdsl.dialects.builtin import f32

from isoform.passes.rules.op_table import Head
from isoform.passes.saturation.egraph import EGraph


@pytest.mark.parametrize("backwards", [False, True])
def test_what_equal_operands_make_equal_is_joined_all_the_way_up(backwards: bool) -> None:
    graph = EGraph()
    tops: list[int] = []
    leaves: list[int] = []
    for name in ("a", "b"):
        klass = graph.add(Head(name), (), (f32,))
        leaves.append(klass)
        for level in range(4):
            klass = graph.add(Head(f"f{level}"), (klass,), (f32,))
        tops.append(klass)
    if backwards:
        graph.nodes.reverse()
    graph.congruent([leaves])
    assert graph.find(tops[0]) == graph.find(tops[1])
    assert len(graph.nodes) == 6
    assert all(graph.find(node.klass) in graph.classes() for node in graph.nodes)
    assert all(
        graph.find(operand) in graph.classes() for n in graph.nodes for operand in n.operands
    )
