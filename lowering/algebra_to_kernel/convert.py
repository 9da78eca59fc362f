"""algebra-to-kernel: name, for every scope, the kernel that will run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.algebra import ExternOp, OnesOp, ScopeOp
from ...dialects.floats import ROUNDING, Floats
from ...dialects.index import flatten, iterators, normalise, row_major_strides
from ...dialects.kernel import CallOp, ConvOp, GemmOp, KernelOp, LoopsOp, ViewOp, YieldOp, logical
from ...dialects.program import main_of
from ...dialects.scalars import Read
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_count, shape_of, tensor_type
from .constant import constant_values
from .match import match_conv, match_gemm

# Vectors times matrices with sums this short are loops, in any order: there is nothing to reuse.
SHORT_SUM = 8
# Columns that are left in one range where others are: fewer fill no vector.
LEAST_COLUMNS = 8


def _is_view(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """A pure copy that keeps the row-major order: a reshape, which is the same buffer."""
    expr = scope.expr() if len(scope.inputs) == 1 and scope.is_pointwise else None
    if not isinstance(expr, Read) or isinstance(expr.source.owner, OnesOp):
        return False
    shape = shape_of(expr.source)
    source, result = tensor_type(expr.source), tensor_type(scope.result)
    if source.element_type != result.element_type or element_count(source) != element_count(result):
        return False
    if not in_bounds(expr, scope.extents):
        return False
    flat = normalise(flatten(expr.index, row_major_strides(shape)), scope.traversal)
    here = iterators(len(scope.traversal))
    own = normalise(flatten(here, row_major_strides(scope.traversal)), scope.traversal)
    return flat == own


def _is_conv(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    found = match_conv(scope)
    return found is not None and found.weights in constants


def _is_gemm(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    found = match_gemm(scope)
    if found is None or max(found.m.extent, found.n.extent) == 1:
        return False
    if found.shares and found.n.extent < LEAST_COLUMNS:
        return False
    return min(found.m.extent, found.n.extent) > 1 or found.k.extent > SHORT_SUM


# The iterator table: the first template that matches names the kernel. A scope that none matches is
# a generated loop nest. To add a library kernel, add its template and its op here.
TEMPLATES: tuple[tuple[type[KernelOp], Callable[[ScopeOp, set[SSAValue]], bool]], ...] = (
    (ConvOp, _is_conv),
    (GemmOp, _is_gemm),
    (LoopsOp, lambda scope, constants: True),
)


@dataclass(frozen=True)
class AlgebraToKernel(ModulePass):
    """Replace every scope by a kernel op: a library template it matches, else a loop nest.

    Copies that keep the row-major order become `kernel.view`, externs become `kernel.call`.
    `algebra.ones` moves into the kernels that read it, where it is a bounds check.

    Before:

        %y = algebra.scope (m: 4, n: 8) sum (k: 16) %a[m, k] * %b[k, n] : tensor<4x8xf32>

    After:

        %y = kernel.gemm (%0 = %a, %1 = %b) {
          %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
          kernel.yield %2 : tensor<4x8xf32>
        } : tensor<4x8xf32>
    """

    name = "algebra-to-kernel"
    floats: ClassVar[Floats] = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = constant_values(op)
        block = main_of(op).body.block
        for old in list(block.ops):
            if isinstance(old, ScopeOp):
                _replace(old, _kernel(old, constants), constants)
            elif isinstance(old, ExternOp):
                types = [result.type for result in old.outputs]
                _replace(
                    old, CallOp(old.callee.data, list(old.inputs), old.config, types), constants
                )
        for old in list(block.ops):
            if isinstance(old, OnesOp) and not old.result.uses:
                Rewriter.erase_op(old)


def _replace(old: Operation, new: Operation, constants: set[SSAValue]) -> None:
    new.location = old.location
    new.attributes |= old.attributes
    for before, after in zip(old.results, new.results, strict=True):
        after.name_hint = before.name_hint
        if before in constants:
            constants.add(after)
    Rewriter.replace_op(old, new)


def _kernel(scope: ScopeOp, constants: set[SSAValue]) -> Operation:
    if _is_view(scope, constants):
        return ViewOp(scope.inputs[0], tensor_type(scope.result))
    cls = next(cls for cls, matches in TEMPLATES if matches(scope, constants))
    inputs, region = enclose(scope)
    return cls(inputs, region, tensor_type(scope.result))


def enclose(scope: ScopeOp) -> tuple[list[SSAValue], Region]:
    """Operands and region of a kernel that holds one scope; ones are made inside."""
    inputs = [v for v in dict.fromkeys(scope.inputs) if not isinstance(v.owner, OnesOp)]
    block = Block(arg_types=[logical(v.type) for v in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value in dict.fromkeys(scope.inputs):
        if isinstance(value.owner, OnesOp):
            ones = OnesOp(tensor_type(value))
            block.add_op(ones)
            values[value] = ones.result
    inner = scope.clone(values)
    inner.attributes.clear()
    inner.result.name_hint = None  # the kernel's result has the name
    block.add_op(inner)
    block.add_op(YieldOp(inner.result))
    return inputs, Region(block)
