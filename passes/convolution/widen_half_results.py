"""widen-half-results: what follows products of half floats is stored as float32."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import iterators
from ...dialects.program import main_of
from ...dialects.scalars import Call, Cast, Const, Expr, Read, factors, reads_of
from ...dialects.types import element_of, is_half, shape_of, tensor, to_numpy


@dataclass(frozen=True)
class WidenHalfResults(ModulePass):
    """Store half floats between products as float32: kernels of products read and store that.

    A number is rounded to its half type where it was, and then widened, which is exact. So the
    epilogue of a product takes what follows it, and the next product reads it as it is. This
    costs memory, and saves a pass over each tensor. Sums, results of the program, and what
    something else than a scope reads stay half floats.

    Before:

        %y = algebra.scope (m: 4, n: 8) f16(%p[m, n]) : tensor<4x8xf16>
        %z = algebra.scope (m: 4, n: 8) max(%y[m, n], 0.0) : tensor<4x8xf16>
        %x = algebra.scope (m: 4, n: 8) f32(%z[m, n]) : tensor<4x8xf32>

    After:

        %0 = algebra.scope (m: 4, n: 8) f32(f16(%p[m, n])) : tensor<4x8xf32>
        %x = algebra.scope (m: 4, n: 8) max(%0[m, n], 0.0) : tensor<4x8xf32>
    """

    name = "widen-half-results"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Widen what is computed from products of half floats, from the first on."""
        wide: dict[SSAValue, SSAValue] = {}
        for scope in list(main_of(op).body.block.ops):
            if isinstance(scope, ScopeOp):
                _rewrite(scope, wide)
        for old in reversed(list(wide)):
            if old.first_use is None and isinstance(old.owner, ScopeOp):
                Rewriter.erase_op(old.owner)


def _rewrite(scope: ScopeOp, wide: dict[SSAValue, SSAValue]) -> None:
    """Let a scope read widened values; widen its own, which is then in `wide`."""
    follows = any(
        read.source in wide or _is_product(read.source) for read in reads_of(scope.expr())
    )
    if not follows:
        return
    expr = _reading(scope.expr(), wide)
    element = element_of(scope.result)
    widens = is_half(element) and not _adds(scope) and _only_scopes_read(scope.result)
    if not widens and expr == scope.expr():
        return
    if isinstance(expr, Read) and element == f32 and _is_copy(scope, expr):
        scope.result.replace_all_uses_with(expr.source)
        Rewriter.erase_op(scope)
        return
    type_ = tensor(shape_of(scope.result), f32) if widens else scope.result.type
    body = _widened(expr, set(wide.values()), element) if widens else expr
    kind = scope.reduction.data
    made = ScopeOp(type_, body, scope.summation, kind, names=scope.names)
    made.location, made.result.name_hint = scope.location, scope.result.name_hint
    if not widens:
        Rewriter.replace_op(scope, made)
        return
    block = scope.parent
    assert block is not None
    block.insert_op_before(made, scope)
    wide[scope.result] = made.result


def _is_product(value: SSAValue) -> bool:
    """Whether a value is a sum of products in float32."""
    scope = value.owner
    if not isinstance(scope, ScopeOp) or not _adds(scope) or element_of(value) != f32:
        return False
    return len(factors(scope.expr()) or ()) > 1


def _adds(scope: ScopeOp) -> bool:
    return bool(scope.summation) and scope.reduction.data == "sum"


def _only_scopes_read(value: SSAValue) -> bool:
    return all(isinstance(use.operation, ScopeOp) for use in value.uses)


def _reading(expr: Expr, wide: dict[SSAValue, SSAValue]) -> Expr:
    """The expression with reads of widened values as half floats; widening those is no step."""
    match expr:
        case Cast(element, Read(source) as read) if element == f32 and source in wide:
            return Read(wide[source], read.index, read.outside)
        case Read(source) if source in wide:
            return Cast(element_of(source), Read(wide[source], expr.index, expr.outside))
        case Call(function, args):
            return Call(function, tuple(_reading(a, wide) for a in args))
        case Cast(element, arg):
            return Cast(element, _reading(arg, wide))
        case _:
            return expr


def _widened(expr: Expr, wide: Collection[SSAValue], half: Attribute) -> Expr:
    """An expression of half floats as float32.

    A scope computes half floats in float32, and rounds once.
    """
    chosen = _chosen(expr, wide, half)
    if chosen is not None:
        return chosen
    rounded = expr if isinstance(expr, Cast) else Cast(half, _in_float32(expr, wide))
    return Cast(f32, rounded)


def _in_float32(expr: Expr, wide: Collection[SSAValue]) -> Expr:
    """The same computed with numbers of float32."""
    match expr:
        case Cast(_, Read(source) as read) if source in wide:
            return read
        case Call("select", (condition, *args)):
            return Call("select", (condition, *(_in_float32(a, wide) for a in args)))
        case Call(function, args):
            return Call(function, tuple(_in_float32(a, wide) for a in args))
        case Read() | Cast():
            return Cast(f32, expr)
        case _:
            return expr


def _chosen(expr: Expr, wide: Collection[SSAValue], half: Attribute) -> Expr | None:
    """An expression that gives one of its numbers, in float32; None for one that must round."""
    match expr:
        case Cast(_, Read(source) as read) if source in wide:
            return read
        case Const(float(value)) if float(to_numpy(half).type(value)) == value:
            return expr
        case Call("select" | "max" | "min" as function, args):
            numbers = args[1:] if function == "select" else args
            found = [_chosen(a, wide, half) for a in numbers]
            if any(a is None for a in found):
                return None
            return Call(function, (*args[: len(args) - len(numbers)], *filter(None, found)))
        case _:
            return None


def _is_copy(scope: ScopeOp, expr: Expr) -> bool:
    """Whether it gives a tensor as it is."""
    if scope.summation or not isinstance(expr, Read):
        return False
    here = tuple(iterators(len(scope.traversal)))
    return shape_of(expr.source) == scope.traversal and expr.index == here


__all__ = ["WidenHalfResults"]
