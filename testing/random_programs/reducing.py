"""Reduce a failing program to a small one that still fails, and write it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...compiler.frontends.program_file import save_mlir
from ...dialects.errors import UserError
from ...dialects.program import Program, named, return_of
from .shrinking import smaller_extents

Fails = Callable[[Program], bool]

# Limit for candidates, and so for time; `fails` takes most of it.
TRIES = 1500


def reduce(program: Program, fails: Fails, tries: int = TRIES) -> Program:
    """The smallest program found that still fails: fewer outputs, fewer ops, smaller extents.

    Ops are dropped by replacing their results with a fresh input, or with an operand of the same
    type. `program` is not changed, and is returned (cloned) if nothing smaller fails.

    Args:
        fails: whether a program still shows the failure; must not change it.
        tries: candidates to test at most.
    """
    best, left = program.clone(), tries
    progress = True
    while progress and left > 0:
        progress = False
        for moves in (_fewer_outputs, _fewer_ops, _fewer_inputs, smaller_extents):
            smaller, used = _descend(best, fails, moves, left)
            left -= used
            if smaller is not None:
                best, progress = smaller, True
    return best


def _descend(
    program: Program, fails: Fails, moves: Callable[[Program], Iterable[Program]], tries: int
) -> tuple[Program | None, int]:
    """Apply moves of one kind as long as one of them still fails."""
    best: Program | None = None
    used = 0
    found = True
    while found:
        found = False
        for candidate in moves(best or program):
            if used >= tries:
                return best, used
            used += 1
            if fails(candidate):
                best, found = candidate, True
                break
    return best, used


def _fewer_outputs(program: Program) -> Iterable[Program]:
    """One output alone, then all but one."""
    count = len(return_of(program.module).arguments)
    if count < 2:
        return
    for k in range(count):
        yield keep_outputs(program.clone(), [k])
    if count > 2:
        for k in range(count):
            yield keep_outputs(program.clone(), [n for n in range(count) if n != k])


def keep_outputs(program: Program, kept: list[int]) -> Program:
    """Drop the other outputs, in place, with everything only they needed."""
    values, names = list(return_of(program.module).arguments), program.output_names
    return _returning(program, [values[k] for k in kept], [names[k] for k in kept])


def _returning(program: Program, values: Sequence[SSAValue], names: Sequence[str]) -> Program:
    Rewriter.replace_op(return_of(program.module), ReturnOp(*values))
    program.main.res_attrs = named(names)
    return tidy(program)


def tidy(program: Program) -> Program:
    """Erase unread ops and update the function's type, in place."""
    block = program.main.body.block
    for op in reversed(list(block.ops)):
        if op.results and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
    outputs = [value.type for value in return_of(program.module).arguments]
    program.main.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    return program


def _fewer_ops(program: Program) -> Iterable[Program]:
    """Return each op's result early, or replace it by an operand or a fresh input."""
    count = len(list(program.main.body.block.ops)) - 1
    for k in range(count):
        yield from _cut_after(program, k)
    for k in reversed(range(count)):
        yield from _without(program, k)


def _cut_after(program: Program, number: int) -> Iterable[Program]:
    """Return the result of op `number` as the only output."""
    op = _op(program, number)
    if list(return_of(program.module).arguments) == list(op.results):
        return
    candidate = program.clone()
    results = list(_op(candidate, number).results)
    yield _returning(candidate, results, [f"y{k}" for k in range(len(results))])


def _without(program: Program, number: int) -> Iterable[Program]:
    op = _op(program, number)
    bypasses = [
        k
        for k, value in enumerate(op.operands)
        if len(op.results) == 1 and value.type == op.results[0].type
    ]
    for k in bypasses:
        candidate = program.clone()
        victim = _op(candidate, number)
        Rewriter.replace_op(victim, (), [victim.operands[k]])
        yield tidy(candidate)
    if op.operands:
        candidate = program.clone()
        victim = _op(candidate, number)
        Rewriter.replace_op(victim, (), [_fresh_input(candidate, r) for r in victim.results])
        yield tidy(candidate)


def _op(program: Program, number: int) -> Operation:
    return list(program.main.body.block.ops)[number]


def _fresh_input(program: Program, value: SSAValue) -> SSAValue:
    """A new input of the value's type, last."""
    names = program.input_names
    block = program.main.body.block
    number = next(n for n in range(len(names) + 1) if f"cut{n}" not in names)
    arg = block.insert_arg(value.type, len(block.args))
    arg.name_hint = f"cut{number}"
    program.main.arg_attrs = named([*names, f"cut{number}"])
    return arg


def _fewer_inputs(program: Program) -> Iterable[Program]:
    """Drop all unread inputs first, then each by itself."""
    unread = [k for k, arg in enumerate(program.main.body.block.args) if not arg.uses]
    if unread:
        yield _drop_inputs(program, unread)
    if len(unread) > 1:
        for k in unread:
            yield _drop_inputs(program, [k])


def _drop_inputs(program: Program, dropped: list[int]) -> Program:
    candidate = program.clone()
    names = candidate.input_names
    block = candidate.main.body.block
    args: list[BlockArgument] = [block.args[k] for k in dropped]
    for arg in args:
        block.erase_arg(arg)
    candidate.main.arg_attrs = named([n for k, n in enumerate(names) if k not in dropped])
    return tidy(candidate)


def write_reproducer(program: Program, folder: Path, name: str = "reproducer") -> Path:
    """Write `NAME.mlir`, its weights beside it, and return the path.

    Raises:
        UserError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.mlir"
    try:
        save_mlir(program, path)
    except UserError as error:
        error.where = error.where or str(path)
        raise
    return path
