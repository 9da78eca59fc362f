"""From the search's graph back to IR. Ops that stayed keep all their attributes and locations.

New ops get the rules' names as provenance, and the location and the name hint of the op in whose
place they stand. Splits of splits along one axis become one split: merging three products pairwise
leaves such chains.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.program import add_provenance
from ..rules.flatten_splits import flatten_splits
from ..rules.graph_form import ARGUMENT, Graph, Value, node_of, value_of
from ..rules.op_table import Head


def write(graph: Graph, block: Block) -> None:
    """Make a block, the encoded one or a clone, compute what the graph describes."""
    old = list(block.ops)
    values, arguments = dict[Value, SSAValue](), iter(block.args)
    order = _order(graph)
    for number in order:
        if graph.tables.heads[graph.nodes[number].head].op == ARGUMENT:
            values[value_of(number)] = next(arguments)
    for op in old:
        op.detach()
    kept = set[Operation]()
    for number in order:
        entry = graph.nodes[number]
        head = graph.tables.heads[entry.head]
        if head.op == ARGUMENT:
            continue
        operands = [values[v] for v in entry.operands]
        op = old[entry.origin] if not entry.made_by else _made(graph, number, operands, old)
        if not entry.made_by:
            kept.add(op)
            _rewire(op, operands, head)
        block.add_op(op)
        for k, result in enumerate(op.results):
            values[value_of(number, k)] = result
    for op in reversed(old):
        if op not in kept:
            op.drop_all_references()
    flatten_splits(block)


def _order(graph: Graph) -> list[int]:
    """The nodes in topological order, otherwise as in the program."""
    live = set(graph.order)
    needs = {n: len({node_of(v) for v in graph.nodes[n].operands}) for n in graph.order}
    ready = [(graph.nodes[n].origin, n) for n in graph.order if not needs[n]]
    heapify(ready)
    found = list[int]()
    while ready:
        _, number = heappop(ready)
        found.append(number)
        for user in dict.fromkeys(graph.uses(number)):
            if user in live:
                needs[user] -= 1
                if not needs[user]:
                    heappush(ready, (graph.nodes[user].origin, user))
    return found


def _made(graph: Graph, number: int, operands: list[SSAValue], old: list[Operation]) -> Operation:
    """The op for a node that rules made."""
    entry, tables = graph.nodes[number], graph.tables
    stood = old[entry.origin]
    op = tables.ops.make(tables.heads[entry.head], operands, [tables.types[t] for t in entry.types])
    assert op is not None, "a change was worked out for it"
    add_provenance(op, (*tables.made_before[entry.origin], *entry.made_by))
    op.location = stood.location
    hints = [r.name_hint for r in stood.results if r.name_hint is not None]
    if hints:
        for result in op.results:
            result.name_hint = hints[0]
    return op


def _rewire(op: Operation, operands: list[SSAValue], head: Head) -> None:
    """Replace the operands of an op of the program, and of the ops nested in it."""
    if not op.regions:
        op.operands = operands
        return
    given, outside = iter(operands), _values_within(op)
    for inner in op.walk():
        for k, value in enumerate(inner.operands):
            if value not in outside:
                inner.operands[k] = next(given)


def _values_within(op: Operation) -> set[SSAValue]:
    inside = set[SSAValue]()
    for inner in op.walk():
        inside.update(inner.results if inner is not op else ())
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.args)
    return inside
