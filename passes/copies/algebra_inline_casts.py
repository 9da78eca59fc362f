"""algebra-inline-casts: products of bytes read the bytes, and widen them as they multiply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import iterators
from ...dialects.program import main_of
from ...dialects.scalars import Cast, Expr, Read, factors, map_reads
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_of, is_byte, shape_of


@dataclass(frozen=True)
class AlgebraInlineCasts(ModulePass):
    """Let sums of products in 32 bits read the bytes that their operands were widened from.

    A read outside a tensor gives 0 before and after. What nothing reads any more is dropped.

    Before:

        %a = algebra.scope (m: 4, k: 8) i32(%x[m, k]) : tensor<4x8xi32>
        %b = algebra.scope (k: 8, n: 6) i32(%w[k, n]) : tensor<8x6xi32>
        %y = algebra.scope (m: 4, n: 6) sum (k: 8) %a[m, k] * %b[k, n] : tensor<4x6xi32>

    After:

        %y = algebra.scope (m: 4, n: 6) sum (k: 8) i32(%x[m, k]) * i32(%w[k, n]) : tensor<4x6xi32>
    """

    name = "algebra-inline-casts"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = main_of(op).body.block
        scopes = [scope for scope in block.ops if isinstance(scope, ScopeOp)]
        casts: dict[SSAValue, Cast] = {
            scope.result: expr for scope in scopes if (expr := _cast(scope)) is not None
        }
        for scope in scopes:
            if _is_product(scope):
                _inline(scope, casts)
        for scope in scopes:
            if scope.parent is not None and scope.result in casts and not scope.result.uses:
                Rewriter.erase_op(scope)


def _cast(scope: ScopeOp) -> Cast | None:
    """The conversion that a scope makes of bytes read at its own place; None for others."""
    if not scope.is_pointwise or element_of(scope.result) != i32:
        return None
    match scope.expr():
        case Cast(_, Read(source)) as found if is_byte(element_of(source)):
            return found
        case _:
            return None


def _is_transpose(inner: Read, read: Read) -> bool:
    """Whether a conversion takes all of a tensor, its dims in any order: both end together."""
    sizes = zip(inner.index, shape_of(inner.source), strict=True)
    own = zip(iterators(len(read.index)), shape_of(read.source), strict=True)
    return sorted(sizes, key=str) == sorted(own, key=str)


def _is_product(scope: ScopeOp) -> bool:
    if not scope.is_sum or not scope.summation or element_of(scope.result) != i32:
        return False
    return len(factors(scope.expr()) or ()) > 1


def _inline(scope: ScopeOp, casts: dict[SSAValue, Cast]) -> None:
    """Replace the reads of conversions by conversions of reads."""

    def inlined(read: Read) -> Expr:
        found = casts.get(read.source)
        inner = None if found is None else found.arg
        if found is None or not isinstance(inner, Read) or read.outside != 0.0:
            return read
        if not _is_transpose(inner, read) and not in_bounds(read, scope.extents):
            return read
        index = tuple(e.substitute(read.index) for e in inner.index)
        return Cast(found.element, Read(inner.source, index, inner.outside))

    expr = map_reads(scope.expr(), inlined)
    if expr == scope.expr():
        return
    new = ScopeOp(scope.result.type, expr, scope.summation, names=scope.names)
    new.location, new.result.name_hint = scope.location, scope.result.name_hint
    Rewriter.replace_op(scope, new)
