"""widen-half-products: compute products of half floats (f16, bf16) in float32, and round once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import iterators
from ...dialects.program import main_of
from ...dialects.scalars import Call, Cast, Expr, Read, map_reads
from ...dialects.types import element_of, is_half, shape_of, tensor


@dataclass(frozen=True)
class WidenHalfProducts(ModulePass):
    """Convert the operands of products of f16 or bf16 to float32 once, before the product.

    Kernels of products and convolutions take float32. A sum of products of half floats is
    defined as a float32 sum, rounded once, so the numbers are the same. Weights are
    converted when the program is compiled; they then take twice the memory.

    Before:

        %y = algebra.scope (m: 4, n: 8) sum (k: 2) %a[m, k] * %b[k, n] : tensor<4x8xf16>

    After:

        %0 = algebra.scope (i0: 4, i1: 2) f32(%a[i0, i1]) : tensor<4x2xf32>
        %1 = algebra.scope (i0: 2, i1: 8) f32(%b[i0, i1]) : tensor<2x8xf32>
        %2 = algebra.scope (m: 4, n: 8) sum (k: 2) %0[m, k] * %1[k, n] : tensor<4x8xf32>
        %y = algebra.scope (i0: 4, i1: 8) f16(%2[i0, i1]) : tensor<4x8xf16>
    """

    name = "widen-half-products"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Widen every product of two half floats or more; a value that several read, once."""
        wide: dict[SSAValue, SSAValue] = {}
        for scope in list(main_of(op).body.block.ops):
            if isinstance(scope, ScopeOp) and scope.is_sum and _is_half_product(scope):
                _widen(scope, wide)


def _is_half_product(scope: ScopeOp) -> bool:
    """Whether the body multiplies at least two reads, all of half floats."""
    if not is_half(element_of(scope.result)):
        return False

    def multiplies(expr: Expr) -> bool:
        if isinstance(expr, Call) and expr.function == "mul":
            return all(map(multiplies, expr.args))
        return isinstance(expr, Read) and is_half(element_of(expr.source))

    body = scope.expr()
    return isinstance(body, Call) and multiplies(body)


def _widen(scope: ScopeOp, wide: dict[SSAValue, SSAValue]) -> None:
    """Replace the scope by the product in float32, followed by a conversion."""
    made: list[Operation] = []

    def widened(read: Read) -> Expr:
        if read.source not in wide:
            made.append(_converted(read.source))
            wide[read.source] = made[-1].results[0]
        return Read(wide[read.source], read.index, read.outside)

    product = ScopeOp(
        tensor(scope.traversal, f32),
        map_reads(scope.expr(), widened),
        scope.summation,
        names=scope.names,
    )
    rounded = ScopeOp(
        scope.result.type,
        Cast(
            element_of(scope.result), Read(product.result, tuple(iterators(len(scope.traversal))))
        ),
    )
    Rewriter.insert_op([*made, product], InsertPoint.before(scope))
    Rewriter.replace_op(scope, rounded)


def _converted(value: SSAValue) -> Operation:
    """The same numbers as float32; ones stay an `algebra.ones`, which needs no memory."""
    result = tensor(shape_of(value), f32)
    if isinstance(value.owner, OnesOp):
        return OnesOp(result)
    return ScopeOp(result, Cast(f32, Read(value, tuple(iterators(len(shape_of(value)))))))
