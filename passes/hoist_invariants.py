"""hoist-invariants: compute what no iteration of a loop changes once, before the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.builder import GraphBuilder
from ..dialects.control import LoopOp, YieldOp, control_ops
from ..dialects.floats import BITS, Floats
from ..dialects.graph import ConstantOp, GraphOp, WeightOp
from ..dialects.loop_invariants import hoisted
from ..dialects.program import main_of


@dataclass(frozen=True)
class HoistInvariants(ModulePass):
    """Move what every iteration computes from captured values in front of the loop.

    Ops that may fail stay, as the loop may have no iteration; so does what moves data alone, which
    its readers do while they read.

    Before:

        %y = control.loop times %n carry(%x : tensor<4xf32>) with(%b : tensor<4xf32>)
            -> tensor<4xf32> {
        ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
          %e = graph.exp %k : tensor<4xf32>
          %t = graph.mul %h, %e : tensor<4xf32>
          control.yield %t : tensor<4xf32>
        }

    After:

        %e = graph.exp %b : tensor<4xf32>
        %y = control.loop times %n carry(%x : tensor<4xf32>) with(%e : tensor<4xf32>)
            -> tensor<4xf32> {
        ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
          %t = graph.mul %h, %k : tensor<4xf32>
          control.yield %t : tensor<4xf32>
        }
    """

    name = "hoist-invariants"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Bodies are passed as programs before the program around them."""
        for loop in control_ops(main_of(op).body.block):
            if isinstance(loop, LoopOp):
                _hoist(loop)


def _hoist(op: LoopOp) -> None:
    block = op.body.block
    first = len(block.args) - len(op.captured)
    arguments = list(block.args)[first:]
    build = GraphBuilder()
    moved = hoisted(block, dict(zip(arguments, op.captured, strict=True)), build)
    if not moved:
        return
    captured = dict(zip(arguments, op.captured, strict=True))
    for old, new in moved.items():
        argument = block.insert_arg(old.type, len(block.args))
        argument.name_hint = old.name_hint
        old.replace_all_uses_with(argument)
        captured[argument] = new
    _drop_unread(op)
    for argument in list(captured):
        if argument.first_use is None:
            del captured[argument]
            block.erase_arg(argument)
    made = list(build.block.ops)
    for new in made:
        new.detach()
    Rewriter.insert_op(made, InsertPoint.before(op))
    body = op.detach_region(op.body)
    Rewriter.replace_op(op, _with_body(op, body, list(captured.values())))


def _with_body(op: LoopOp, body: Region, captured: list[SSAValue]) -> LoopOp:
    """The loop with another body, which reads these values."""
    rows = len(op.scanned) + len(op.outputs) - len(op.carried)
    found = LoopOp(
        body,
        [v.type for v in op.outputs],
        count=op.count,
        start=op.start,
        carried=op.carried,
        scanned=op.scanned,
        captured=captured,
        trips=None if op.trips is None else op.trips.value.data,
        conditional=op.is_conditional,
        backward=[int(op.is_backward(k)) for k in range(rows)],
    )
    found.attributes |= op.attributes
    found.location = op.location
    for old, new in zip(op.outputs, found.outputs, strict=True):
        new.name_hint = old.name_hint
    return found


def _drop_unread(op: LoopOp) -> None:
    """Remove what was only read by ops that are outside now."""
    for inner in reversed(list(op.body.block.ops)):
        unread = all(v.first_use is None for v in inner.results)
        if (
            unread
            and not isinstance(inner, YieldOp)
            and isinstance(inner, GraphOp | ConstantOp | WeightOp)
        ):
            inner.detach()
            inner.erase()
