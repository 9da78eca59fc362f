"""The functions of a module. A pass that works on one program gets each as a module of its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from .errors import UserError

MAIN = "main"


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that have a body, in order."""
    ops = module.body.block.ops
    return [op for op in ops if isinstance(op, FuncOp) and op.body.blocks]


def is_one_program(module: ModuleOp) -> bool:
    """Whether `@main` is the only function with a body, or there is none at all."""
    return all(function.sym_name.data == MAIN for function in functions_of(module))


@contextmanager
def alone(function: FuncOp) -> Generator[ModuleOp]:
    """Give one function as the `@main` of a module of its own; then put it back in its place.

    The module has the attributes of the one that the function stands in, and gives them back. What
    stands beside the function afterwards is put there too.

    Raises:
        UserError: the function is gone when the block ends.
    """
    module = function.parent_op()
    block = function.parent
    assert isinstance(module, ModuleOp) and block is not None
    name, following = function.sym_name, function.next_op
    function.detach()
    function.sym_name = StringAttr(MAIN)
    inner = ModuleOp([function], dict(module.attributes))
    try:
        yield inner
    finally:
        mains = [f for f in functions_of(inner) if f.sym_name.data == MAIN]
        for op in list(inner.body.block.ops):
            op.detach()
            _insert(op, following, module)
        for found in mains:
            found.sym_name = name
    if not mains:
        raise UserError(f"the function @{name.data} is gone")
    module.attributes = inner.attributes


def _insert(op: Operation, following: Operation | None, module: ModuleOp) -> None:
    block = module.body.block
    if following is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, following)
