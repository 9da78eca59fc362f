"""Loops that are not the same expressions: by their bodies, and written out where that is possible.

Two programs with as many loops and branches are equal if, in their order, each loop begins with
equal values and its bodies are equal functions, given that the loops before it have equal results;
and if the outputs are, given the results of all. Each of these is a comparison of two programs
without that loop, whose inputs are the programs' inputs, the results of loops, and a body's
arguments. What one program computes before a loop and the other inside it makes no difference.

A loop and a program without one are compared by the loop's iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.control import ControlOp, IfOp, LoopOp, YieldOp
from ...dialects.program import Program, named, return_of
from ..unroll_loops import MOST, unroll
from .verdict import EQUAL, UNKNOWN, Verdict

Compare = Callable[[Program, Program], Verdict]


def by_loops(a: Program, b: Program, compare: Compare) -> Verdict | None:
    """A verdict on programs with loops; None where there are none, or where nothing is decided.

    Args:
        compare: decides about programs with fewer loops.
    """
    ours, theirs = _controls(a), _controls(b)
    if not ours and not theirs:
        return None
    if len(ours) == len(theirs) and (found := _in_stages(a, b, compare)) is not None:
        return found
    pair = [unrolled(p) for p in (a, b)]
    if sum(len(_controls(p)) for p in pair) == len(ours) + len(theirs):
        return None
    found = compare(*pair)
    return None if found.kind == UNKNOWN else found


def unrolled(program: Program, most: int = MOST) -> Program:
    """A copy whose loops of a known number of iterations are written out."""
    found = program.clone()
    unroll(found.main.body.block, most)
    return found


def _controls(program: Program) -> list[ControlOp]:
    return [op for op in program.main.body.block.ops if isinstance(op, ControlOp)]


# --- one loop after the other ---


def _in_stages(a: Program, b: Program, compare: Compare) -> Verdict | None:
    """That they are equal, or None."""
    for number, (mine, other) in enumerate(zip(_controls(a), _controls(b), strict=True)):
        if not _alike(mine, other):
            return None
        for body in range(len(mine.bodies)):
            verdict = compare(*(_stage(p, number, body) for p in (a, b)))
            if verdict.kind != EQUAL or verdict.assumptions or verdict.largest_ulps > 0:
                return None
    found = compare(*(_last_stage(p) for p in (a, b)))
    return found if found.kind == EQUAL else None


def _alike(mine: ControlOp, other: ControlOp) -> bool:
    """Whether two loops or branches differ in their bodies and in what these read, at most."""
    if isinstance(mine, LoopOp) and isinstance(other, LoopOp):
        mode = [
            (
                *(op.trips, op.count is None, op.start is None, op.is_conditional),
                *(len(op.carried), len(op.scanned)),
                *(op.is_backward(k) for k in range(len(op.scanned) + len(op.stacked))),
            )
            for op in (mine, other)
        ]
        return mode[0] == mode[1] and _types(mine.outputs) == _types(other.outputs)
    both = isinstance(mine, IfOp) and isinstance(other, IfOp)
    return both and _types(mine.outputs) == _types(other.outputs)


def _types(values: Sequence[SSAValue]) -> list[object]:
    return [v.type for v in values]


class _Stage:
    """A program under construction: a part of another one, with results of loops as inputs."""

    def __init__(self, program: Program):
        self.program = program
        self.block = Block(arg_types=[a.type for a in program.main.body.block.args])
        self.names = list(program.input_names)
        self.values: dict[SSAValue, SSAValue] = dict(
            zip(program.main.body.block.args, self.block.args, strict=True)
        )

    def input(self, value: SSAValue, name: str) -> None:
        """Let a value be an input."""
        self.values[value] = self.block.insert_arg(value.type, len(self.block.args))
        self.names.append(name)

    def until(self, last: Operation) -> None:
        """Copy what is before an op; results of loops are inputs."""
        number = 0
        for op in self.program.main.body.block.ops:
            if op is last:
                return
            if isinstance(op, ControlOp):
                for k, value in enumerate(op.results):
                    self.input(value, f"control {number} result {k}")
                number += 1
            else:
                self.copy(op)

    def copy(self, op: Operation) -> None:
        made = op.clone(self.values)
        self.block.add_op(made)
        self.values.update(zip(op.results, made.results, strict=True))

    def close(self, results: Sequence[SSAValue], names: Sequence[str]) -> Program:
        values = [self.values[v] for v in results]
        self.block.add_op(ReturnOp(*values))
        type_ = FunctionType.from_lists([a.type for a in self.block.args], [v.type for v in values])
        main = FuncOp("main", type_, Region(self.block))
        main.arg_attrs, main.res_attrs = named(self.names), named(names)
        return Program(ModuleOp([main]), self.program.weights)


def _stage(program: Program, number: int, body: int) -> Program:
    """What a loop begins with, and what its body gives."""
    stage, op = _Stage(program), _controls(program)[number]
    stage.until(op)
    block = op.bodies[body].block
    first = len(block.args) - len(op.captured)
    for k, argument in enumerate(block.args[:first]):
        stage.input(argument, f"argument {k}")
    for argument, value in zip(block.args[first:], op.captured, strict=True):
        stage.values[argument] = stage.values[value]
    begun = list(op.operands)[: len(op.operands) - len(op.captured)]
    yielded: list[SSAValue] = []
    for inner in block.ops:
        if isinstance(inner, YieldOp):
            yielded = list(inner.values)
        else:
            stage.copy(inner)
    results = [*begun, *yielded]
    return stage.close(results, [f"value {k}" for k in range(len(results))])


def _last_stage(program: Program) -> Program:
    """The outputs, given the results of all loops."""
    stage, last = _Stage(program), return_of(program.module)
    stage.until(last)
    return stage.close(list(last.operands), program.output_names)


__all__ = ["by_loops", "unrolled"]
