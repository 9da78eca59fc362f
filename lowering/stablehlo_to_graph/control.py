"""Loops and branches: ops of the control dialect, whose bodies are regions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.control import IfOp, LoopOp
from ...dialects.graph import OpaqueOp
from ...dialects.graph.contraction import ConvolutionOp, MatmulOp
from ...dialects.graph.data import GatherOp
from ...dialects.types import element_of, shape_of, tensor, tensor_type
from ..onnx_to_graph.regions import UNROLLED, BodyBuilder, LoopParts
from .node import Converter, HloNode
from .scans import Counter, HloLoop, Row, plan_of
from .text import HloBlock

# Ops whose work a branch is worth, and those that may fail on the other branch's data.
_BRANCHED = (MatmulOp, ConvolutionOp, GatherOp, OpaqueOp, LoopOp, IfOp)


def while_(n: HloNode) -> list[SSAValue]:
    """A loop; one of a known number of iterations is unrolled where that is small."""
    plan = plan_of(n)
    if plan.counter is None:
        return _conditional(n)
    if plan.counter.trips < UNROLLED:
        values = list(n.operands)
        for _ in range(plan.counter.trips):
            values = n.scope.inner().run(n.block(1), values)
        return values
    return _counted(n, plan, plan.counter)


def _conditional(n: HloNode) -> list[SSAValue]:
    """Run while the condition holds, which is computed before the loop and after each iteration."""
    (start,) = n.scope.inner().run(n.block(0), n.operands)
    body = BodyBuilder(n.build.inside())
    body.argument(tensor([], i64), "step")
    arguments = [body.argument(tensor_type(v), "state") for v in n.operands]
    inside = n.scope.inside(body)
    results = inside.run(n.block(1), arguments)
    (going,) = inside.inner().run(n.block(0), results)
    parts = LoopParts(body, n.operands, results, going=going, start=start)
    return parts.add(n.build)


def _counted(n: HloNode, plan: HloLoop, counter: Counter) -> list[SSAValue]:
    """A loop of so many iterations: its counter is the iteration's number, and what it reads or
    writes row by row is scanned or stacked."""
    body = BodyBuilder(n.build.inside())
    inside, block = n.scope.inside(body), n.block(1)
    step = body.argument(tensor([], i64), "step")
    names = [argument.name for argument in block.arguments]
    apart = {counter.place, *(row.place for row in (*plan.scanned, *plan.stacked))}
    kept = [k for k in range(len(names)) if k not in apart]
    for k in kept:
        inside.values[names[k]] = body.argument(tensor_type(n[k]), "state")
    found = {row.op.results[0]: _row_argument(n, body, row) for row in plan.scanned}
    here = inside.node(n.hlo, ())
    for name, value in found.items():
        inside.values[name] = here.reshape(value, [1, *shape_of(value)])
    inside.values[names[counter.place]] = _count(here, step, counter, n[counter.place])
    skipped = [row.op for row in (*plan.scanned, *plan.stacked)]
    for op in block.ops[:-1]:
        if not any(op is other for other in skipped):
            inside.convert(op)
    nexts = [inside.find(block.results[k]) for k in kept]
    updates = [inside.find(row.op.operands[1]) for row in plan.stacked]
    parts = LoopParts(
        body,
        [n[k] for k in kept],
        nexts,
        scanned=[n[row.place] for row in plan.scanned],
        rows=[here.reshape(value, shape_of(value)[1:]) for value in updates],
        trips=counter.trips,
        backward=[row.backward for row in (*plan.scanned, *plan.stacked)],
    )
    ends = dict(zip([*kept, *(r.place for r in plan.stacked)], parts.add(n.build), strict=True))
    ends |= {row.place: n[row.place] for row in plan.scanned}
    last = counter.first + counter.trips * counter.step
    ends[counter.place] = n.scalar(last, element_of(n[counter.place]))
    return [ends[k] for k in range(len(names))]


def _row_argument(n: HloNode, body: BodyBuilder, row: Row) -> SSAValue:
    type_ = tensor_type(n[row.place])
    return body.argument(tensor(type_.get_shape()[1:], type_.element_type), "row")


def _count(n: HloNode, step: SSAValue, counter: Counter, like: SSAValue) -> SSAValue:
    """The counter in an iteration, of its own type."""
    found = step
    if counter.step != 1:
        found = n.op("mul", found, n.scalar(counter.step, i64))
    if counter.first:
        found = n.op("add", found, n.scalar(counter.first, i64))
    return n.cast(found, element_of(like))


def if_(n: HloNode) -> list[SSAValue]:
    """The first region if the condition holds, else the second."""
    return _branch(n, n[0], [n.block(0), n.block(1)])


def case(n: HloNode) -> list[SSAValue]:
    """The region of a number; the last one of a number that has none."""
    blocks = n.hlo.regions
    number = n.number_of(n[0])
    if number is not None:
        chosen = int(number) if 0 <= int(number) < len(blocks) else len(blocks) - 1
        return n.scope.inner().run(blocks[chosen], [])
    return _chosen(n, n[0], blocks, 0)


def _chosen(n: HloNode, index: SSAValue, blocks: Sequence[HloBlock], first: int) -> list[SSAValue]:
    """A branch between a region and all that follow it."""
    if first == len(blocks) - 1:
        return n.scope.inner().run(blocks[first], [])
    condition = n.op("equal", index, n.scalar(first, element_of(index)))
    bodies = [BodyBuilder(n.build.inside()) for _ in range(2)]
    scopes = [n.scope.inside(body) for body in bodies]
    then = scopes[0].run(blocks[first], [])
    inner = scopes[1].node(n.hlo, ())
    rest = _chosen(inner, bodies[1].capture(index), blocks, first + 1)
    return _joined(n, condition, bodies, [then, rest])


def _branch(n: HloNode, condition: SSAValue, blocks: Sequence[HloBlock]) -> list[SSAValue]:
    known = n.number_of(condition)
    if known is not None:
        return n.scope.inner().run(blocks[0 if known else 1], [])
    bodies = [BodyBuilder(n.build.inside()) for _ in blocks]
    pairs = zip(bodies, blocks, strict=True)
    results = [n.scope.inside(body).run(block, []) for body, block in pairs]
    return _joined(n, condition, bodies, results)


def _joined(
    n: HloNode,
    condition: SSAValue,
    bodies: Sequence[BodyBuilder],
    results: Sequence[Sequence[SSAValue]],
) -> list[SSAValue]:
    """Both branches and a select if they are cheap, else `control.if`."""
    if [v.type for v in results[0]] != [v.type for v in results[1]]:
        raise n.refusal("its branches return other types")
    if any(isinstance(op, _BRANCHED) for body in bodies for op in body.build.block.ops):
        captured = list(dict.fromkeys(v for body in bodies for v in body.captured))
        first, second = (b.close(r, captured) for b, r in zip(bodies, results, strict=True))
        op = IfOp(condition, captured, (first, second), [v.type for v in results[0]])
        n.build.append(op)
        return list(op.outputs)
    outer: list[list[SSAValue]] = []
    for body, values in zip(bodies, results, strict=True):
        arguments = body.build.block.args
        names: dict[SSAValue, SSAValue] = dict(zip(arguments, body.captured, strict=True))
        outer.append([names.get(v, v) for v in values])
        body.inline(n.build)
    return [
        n.op("where", n.expand(condition, shape_of(a)), a, b) for a, b in zip(*outer, strict=True)
    ]


TABLE: dict[str, Converter] = {
    "stablehlo.while": while_,
    "stablehlo.if": if_,
    "stablehlo.case": case,
}
