"""The e-graph is closed under congruence, whatever the order of its e-nodes."""

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from isoform.passes.rules.op_table import Head, OpTable
from isoform.passes.saturation.egraph import EGraph
from isoform.passes.saturation.encode import Encoded
from isoform.passes.saturation.engine import Engine
from isoform.passes.saturation.read_back import Snapshot


@pytest.mark.parametrize("backwards", [False, True])
def test_what_equal_operands_make_equal_is_joined_all_the_way_up(backwards: bool) -> None:
    encoded = Encoded(Block(), EGraph())
    tops: list[int] = []
    leaves: list[int] = []
    for name in ("a", "b"):
        klass = encoded.add(Head(name), [], (f32,), 0)
        leaves.append(klass)
        for level in range(4):
            klass = encoded.add(Head(f"f{level}"), [klass], (f32,), 0)
        tops.append(klass)
    encoded.graph.roots += tops
    if backwards:
        encoded.graph.nodes.reverse()
    encoded.graph.same.append((leaves[0], leaves[1]))
    shapes = {(node.head.op, len(node.operands), ()) for node in encoded.graph.nodes}
    engine = Engine.make((), shapes, OpTable(), "")
    engine.insert(encoded.graph)
    graph = Snapshot(engine, len(encoded.graph.types)).graph(encoded)
    assert graph.roots[0] == graph.roots[1]
    assert len(graph.nodes) == engine.size() == 6
    classes = graph.classes()
    assert all(operand in classes for node in graph.nodes for operand in node.operands)
