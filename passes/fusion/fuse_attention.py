"""fuse-attention: two products and the rows of scores between them as one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.floats import ROUNDING, Floats
from ...dialects.kernel import AttentionOp, GemmOp, KernelOp, LoopsOp, physical
from ...dialects.program import main_of
from ...dialects.types import tensor_type
from ...lowering.algebra_to_kernel.attention import match_attention, match_softmax
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.algebra_to_kernel.match import row_major
from .fuse_kernels import merge, names_between, only_user

# Rows of scores without a softmax are on the stack, a vector of rows at once.
MAX_KEYS = 4096
LEAST_QUERIES = 8


@dataclass(frozen=True)
class FuseAttention(ModulePass):
    """Merge a product with the product whose rows it multiplies, and with the ops between.

    The ops between must work on single rows of scores: scale, mask, softmax. Later ops that work
    point by point, or move the result, are merged too. The kernel computes a block of rows of
    scores at a time and stores none. Products with weights are not merged: weights are packed when
    the program is compiled.

    Before:

        %s = kernel.gemm (%0 = %q, %1 = %k) { ... } : tensor<2x16x24xf32>
        %p = kernel.loops (%0 = %s) { ... } : tensor<2x16x24xf32>
        %y = kernel.gemm (%0 = %p, %1 = %v) { ... } : tensor<2x16x8xf32>

    After:

        %y = kernel.attention (%0 = %q, %1 = %k, %2 = %v) {
          %3 = algebra.scope (b0: 2, m: 16, n: 24) sum (k: 8) %0[b0, m, k] * %1[b0, n, k] : ...
          ...
          %8 = algebra.scope (b0: 2, m: 16, n: 8) sum (k: 24) %7[b0, m, k] * %2[b0, k, n] : ...
          kernel.yield %8 : tensor<2x16x8xf32>
        } : tensor<2x16x8xf32>
    """

    name = "fuse-attention"
    floats: ClassVar[Floats] = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = constant_values(op)
        for kernel in list(main_of(op).body.block.ops):
            if isinstance(kernel, GemmOp | LoopsOp) and kernel.parent is not None:
                _fuse(kernel, constants)


def _fuse(context: KernelOp, constants: set[SSAValue]) -> None:
    """Merge a product with the kernels of its scores, the ops between, and a move of its result."""
    after = _only_reader(context)
    for chain in _chains(context):
        choices = [chain] if after is None else [[*chain, after], chain]
        for kernels in choices:
            if _is_attention(kernels, constants):
                _as_attention(kernels)
                return


def _chains(last: KernelOp) -> Iterator[list[KernelOp]]:
    """Kernels that may form attention together, from its first product to `last`: at most three."""
    for value in last.inputs:
        middle = value.owner
        if not isinstance(middle, GemmOp | LoopsOp) or not only_user(value, last):
            continue
        for operand in middle.inputs:
            first = operand.owner
            if isinstance(first, GemmOp) and only_user(operand, middle):
                yield [first, middle, last]
        yield [middle, last]
    if isinstance(last, LoopsOp):
        yield [last]


def _only_reader(kernel: KernelOp) -> KernelOp | None:
    """The loops that are the only reader of a kernel's result."""
    readers = {use.operation for use in kernel.result.uses}
    reader = readers.pop() if len(readers) == 1 else None
    return reader if isinstance(reader, LoopsOp) else None


def _is_attention(kernels: Sequence[KernelOp], constants: set[SSAValue]) -> bool:
    """Whether a kernel template computes these together, profitably."""
    if not kernels[0].scopes[0].summation:
        return False  # it begins with no product
    names: dict[SSAValue, SSAValue] = {}
    for producer, kernel in pairwise(kernels):
        names |= names_between(producer, kernel)
    scopes = [scope for kernel in kernels for scope in kernel.scopes]
    pairs = [zip(k.body.block.args, k.inputs, strict=True) for k in kernels]
    outer: dict[SSAValue, SSAValue] = {arg: value for pair in pairs for arg, value in pair}
    sums = [value for scope in scopes[1:] if scope.summation for value in scope.inputs]
    if constants.issuperset(outer[v] for v in sums if v in outer and v not in names):
        return False  # no second product, or it is with weights
    outer[scopes[-1].result] = kernels[-1].result

    def strides(value: SSAValue) -> tuple[Sequence[int], int]:
        known = value in outer
        return physical(tensor_type(outer[value]))[:2] if known else row_major(value)

    found = match_attention(scopes, strides, names)
    if found is None:
        return False
    if constants.intersection(outer[m.source] for m in (found.right, found.values)):
        return False
    rows, keys = found.extents[found.query], found.extents[found.loops]
    return rows >= LEAST_QUERIES and (keys <= MAX_KEYS or match_softmax(found) is not None)


def _as_attention(kernels: Sequence[KernelOp]) -> None:
    """Merge kernels, in order, into one of attention."""
    merged, *rest = kernels
    for kernel in rest:
        merged = merge(merged, kernel, AttentionOp)
    if not isinstance(merged, AttentionOp):
        body = merged.detach_region(merged.body)
        whole = AttentionOp(list(merged.inputs), body, merged.type)
        whole.location, whole.result.name_hint = merged.location, merged.result.name_hint
        whole.attributes |= merged.attributes
        Rewriter.replace_op(merged, whole)
