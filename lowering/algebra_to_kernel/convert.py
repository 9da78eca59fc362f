"""algebra-to-kernel: choose the kernel that will run each scope."""

from __future__ import annotations

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
from ...dialects.kernel import CallOp, LoopsOp, ViewOp, YieldOp, logical
from ...dialects.program import main_of
from ...dialects.scalars import Read
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_count, shape_of, tensor_type
from .constant import constant_values
from .table import library_kernels


def _is_view(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """A pure copy that keeps the row-major order: a reshape, which needs no new buffer."""
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


@dataclass(frozen=True)
class AlgebraToKernel(ModulePass):
    """Replace every scope by a kernel op: the first library kernel that matches, else loops.

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
    taken = (k.op for k in library_kernels() if k.op is not None and k.takes(scope, constants))
    inputs, region = enclose(scope)
    return next(taken, LoopsOp)(inputs, region, tensor_type(scope.result))


def enclose(scope: ScopeOp) -> tuple[list[SSAValue], Region]:
    """Operands and region of a kernel with one scope; ones are recreated inside."""
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
