"""inline-calls: replace each call of a function by the function's body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.errors import UserError
from ..dialects.floats import BITS, Floats
from ..dialects.functions import MAIN, functions_of

# The most operations that inlining may make of a module: calls of calls grow exponentially.
LIMIT = 1_000_000


@dataclass(frozen=True)
class InlineCalls(ModulePass):
    """Replace each call by the body of the function that it names; drop functions nobody names.

    A function stays if it is `@main`, if something else than a call names it, or if it is public in
    a module without `@main`. A call of a function that is only declared stays, too. Recursion is an
    error.

    Before:

        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = graph.add %x, %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }

    After:

        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = graph.add %x, %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
    """

    name = "inline-calls"
    floats: ClassVar[Floats] = BITS
    anchor: ClassVar[str] = "builtin.module"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline the innermost calls first.

        Raises:
            UserError: a function calls itself, has branches, or the result is too large.
        """
        functions = {f.sym_name.data: f for f in functions_of(op)}
        called = {call.callee.string_value() for call in op.walk() if isinstance(call, CallOp)}
        if not called & functions.keys():
            return
        sizes: dict[str, int] = {}
        for function in _callees_first(functions):
            calls = [c for c in function.walk() if isinstance(c, CallOp)]
            inner = [n for c in calls if (n := c.callee.string_value()) in functions]
            size = sum(1 for _ in function.walk()) + sum(sizes[name] for name in inner)
            if size > LIMIT:
                raise UserError(f"inlining makes more than {LIMIT:,} operations")
            sizes[function.sym_name.data] = size
            for call in calls:
                body = functions.get(call.callee.string_value())
                if body is not None:
                    _inline(call, body)
        _drop(op, called, functions)


def _callees_first(functions: Mapping[str, FuncOp]) -> list[FuncOp]:
    """The functions in an order in which each stands behind those it calls.

    Raises:
        UserError: there is none, because one calls itself.
    """
    calls = {
        name: [c.callee.string_value() for c in f.walk() if isinstance(c, CallOp)]
        for name, f in functions.items()
    }
    order: list[FuncOp] = []
    state: dict[str, bool] = {}  # False while its callees are visited
    stack = [(name, iter(calls[name])) for name in reversed(list(functions))]
    while stack:
        name, callees = stack[-1]
        if state.get(name):
            stack.pop()
            continue
        state[name] = False
        following = next((c for c in callees if c in functions and not state.get(c)), None)
        if following is None:
            state[name] = True
            order.append(functions[name])
            stack.pop()
        elif following in state:
            raise UserError(f"@{following} calls itself: a program has no recursion")
        else:
            stack.append((following, iter(calls[following])))
    return order


def _inline(call: CallOp, function: FuncOp) -> None:
    """Put a copy of the function's body in the place of a call."""
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name.data} has branches: it cannot be inlined")
    body = function.body.clone()
    block = body.block
    last = block.last_op
    if not isinstance(last, ReturnOp):
        raise UserError(f"@{function.sym_name.data} does not end with func.return")
    values = list(last.arguments)
    last.detach()
    last.erase()
    for result, value in zip(call.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = result.name_hint
    results = [call.arguments[block.args.index(v)] if v in block.args else v for v in values]
    Rewriter.inline_block(block, InsertPoint.before(call), call.arguments)
    Rewriter.replace_op(call, [], results)


def _drop(module: ModuleOp, called: set[str], functions: Mapping[str, FuncOp]) -> None:
    """Erase the functions that only calls named, which are gone."""
    keeps_public = MAIN not in functions
    attributes = (a for op in module.walk() for a in (op.properties | op.attributes).values())
    named = {a.string_value() for a in attributes if isinstance(a, SymbolRefAttr)}
    for name in sorted((called & functions.keys()) - named - {MAIN}):
        function = functions[name]
        visibility = function.sym_visibility
        if not keeps_public or (visibility is not None and visibility.data == "private"):
            function.detach()
            function.erase()
