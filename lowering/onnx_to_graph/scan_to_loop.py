"""`Scan` as a `control.loop`: rows of what is scanned come in, rows of results are stacked."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.types import shape_of, tensor, tensor_type
from .node import OnnxNode
from .regions import LoopParts, SubgraphBody
from .values import OnnxValue


def scan_loop(
    node: OnnxNode,
    inside: SubgraphBody,
    scans: Sequence[tuple[SSAValue, int, int]],
    directions: Sequence[int],
    axes: Sequence[int],
) -> list[OnnxValue | None] | None:
    """The last states and the stacked results; None if the body has no native form.

    Args:
        scans: what is scanned, along which axis, and whether backward.
        directions, axes: of the stacked results: whether backward, and along which axis.

    Raises:
        UserError: the body cannot be imported without the step's number.
    """
    sources = [_first(node, x, axis) for x, axis, _ in scans]
    states = [node[k] for k in range(len(node.inputs) - len(scans))]
    inside.argument(tensor([], i64), "step")
    arguments = [inside.argument(tensor_type(v), "state") for v in states]
    for source in sources:
        type_ = tensor_type(source)
        row = tensor(type_.get_shape()[1:], type_.element_type)
        arguments.append(inside.argument(row, "row"))
    given = inside.run(node.graph("body"), arguments)
    inside.require_whole(given)
    results = inside.yields(node, given)
    after, rows = results[: len(states)], results[len(states) :]
    if [v.type for v in after] != [v.type for v in states] or not inside.is_native:
        return None
    parts = LoopParts(
        inside.body,
        states,
        after,
        scanned=sources,
        rows=rows,
        trips=shape_of(sources[0])[0],
        backward=[*(back for _, _, back in scans), *directions],
    )
    found = parts.add(node.build)
    for k, axis in enumerate(axes):
        value = found[len(states) + k]
        rank = len(shape_of(value))
        order = list(range(1, rank))
        order.insert(node.axis(axis, rank), 0)
        found[len(states) + k] = node.transpose(value, order)
    return [OnnxValue.of_ssa("", value) for value in found]


def _first(node: OnnxNode, x: SSAValue, axis: int) -> SSAValue:
    """The tensor with the scanned axis first."""
    return node.transpose(x, [axis, *(k for k in range(len(shape_of(x))) if k != axis)])
