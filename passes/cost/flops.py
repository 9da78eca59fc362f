"""The arithmetic and memory traffic of an op, from its scopes; no target, no time.

A graph op's scopes are its meaning, so their extents give its work. A reduction of a product of
reads is one multiply-add at each point of its iteration space (MACs). Any other scope computes its
body at each traversal point. Taps in the padding count, as in published figures. The one exception
is a transposed convolution, whose scope is in gather form: its taps that meet no input are guarded
away, so its work is counted in scatter form, one tap per input element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute, Block, Operation

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.control import ControlOp, IfOp, LoopOp
from ...dialects.graph import GraphOp
from ...dialects.graph.contraction import ConvTransposeOp
from ...dialects.program import Program
from ...dialects.scalars import Call, Cast, Const, Expr, Read, children
from ...dialects.types import byte_size, shape_of, tensor_type
from ...lowering.algebra_to_kernel.match import match_conv


@dataclass(frozen=True)
class Work:
    """`macs` multiply-adds of contractions; `flops` of everything, a multiply-add counting two."""

    macs: int = 0
    flops: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.macs + other.macs, self.flops + other.flops)


def macs_of(op: Operation) -> int:
    """Multiply-adds of the contractions in an op of the graph or algebra dialect."""
    return work_of(op).macs


def flops_of(op: Operation) -> int:
    """Scalar operations of an op of the graph or algebra dialect; 0 if it only moves data."""
    return work_of(op).flops


def bytes_of(op: Operation) -> int:
    """Bytes of distinct operands read and of results written; of a loop, in all iterations."""
    if isinstance(op, LoopOp | IfOp):
        inside = [sum(bytes_of(inner) for inner in r.block.ops) for r in op.bodies]
        return times_of(op) * max(inside)
    distinct = list(dict.fromkeys(op.operands))
    return sum(byte_size(tensor_type(v)) for v in (*distinct, *op.results))


def program_macs(program: Program) -> int:
    """Multiply-adds of the contractions in a program."""
    return sum(macs_of(op) for op in program.main.body.block.ops)


def work_of(op: Operation) -> Work:
    """MACs and flops of one op."""
    if isinstance(op, ScopeOp):
        return scope_work(op)
    if isinstance(op, LoopOp | IfOp):
        inside = [sum((work_of(o) for o in r.block.ops), Work()) for r in op.bodies]
        most = max(inside, key=lambda work: work.flops)
        return Work(times_of(op) * most.macs, times_of(op) * most.flops)
    if not isinstance(op, GraphOp) or not type(op).has_scopes():
        return Work()
    types = tuple(v.type for v in op.operands)
    properties = tuple(sorted(op.properties.items()))
    return _graph_work(type(op), types, properties, tuple(r.type for r in op.results))


def times_of(op: ControlOp) -> int:
    """How often a loop runs its body; 1 where data decide, as for a branch."""
    return 1 if isinstance(op, IfOp) or op.trips is None else max(0, op.trips.value.data)


@lru_cache(maxsize=1 << 14)
def _graph_work(
    cls: type[GraphOp],
    types: Sequence[Attribute],
    properties: Sequence[tuple[str, Attribute]],
    results: Sequence[Attribute],
) -> Work:
    """Work of the op with these types and properties, on stand-in operands."""
    operands = Block(arg_types=types).args
    op = cls.create_checked(operands, dict(properties), results)
    steps, _ = op.scopes()
    scopes = [step for step in steps if isinstance(step, ScopeOp)]
    if isinstance(op, ConvTransposeOp):
        taps = math.prod(shape_of(op.x)) * math.prod(shape_of(op.w)[1:])
        others = [step for step in scopes if not step.summation]  # a bias, a copy of the filters
        return sum(map(scope_work, others), Work(taps, 2 * taps))
    return sum(map(scope_work, scopes), Work())


def scope_work(op: ScopeOp) -> Work:
    """Work of one scope: guards (reads of ones) are free, since they are index ranges."""
    traversal, points = math.prod(op.traversal), math.prod(op.extents)
    expr = op.expr()
    if op.summation and op.reduction.data == "sum" and len(_data_factors(expr)) >= 2:
        macs = _scattered(op) or points
        return Work(macs, 2 * macs)
    reducing = points - traversal if op.summation else 0
    return Work(0, points * _operations(expr) + reducing)


def _scattered(op: ScopeOp) -> int | None:
    """Multiply-adds of a transposed convolution, each input element times its taps; else None."""
    found = match_conv(op)
    if found is None or not found.transposed:
        return None
    features = found.features // found.groups
    return math.prod(shape_of(found.data)) * features * math.prod(found.kernel)


def _data_factors(expr: Expr) -> set[Read]:
    """Distinct data reads in a product of reads and literals, none for any other body."""
    match expr:
        case Call("mul", (left, right)):
            return _data_factors(left) | _data_factors(right)
        case Read(source):
            return set() if isinstance(source.owner, OnesOp) else {expr}
        case _:
            return set()


def _operations(expr: Expr) -> int:
    """Distinct calls in a body."""
    found: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node in found or isinstance(node, Read | Const):
            continue
        found.add(node)
        stack.extend(children(node))
    return sum(not isinstance(node, Cast) for node in found)
