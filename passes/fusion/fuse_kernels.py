"""fuse-kernels: merge kernels so that intermediate tensors are never stored."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnknownLoc, f32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.floats import BITS, Floats
from ...dialects.kernel import ConvOp, GemmOp, KernelOp, LoopsOp, YieldOp, logical
from ...dialects.program import add_provenance, main_of, provenance
from ...dialects.types import byte_size, element_of, shape_of, tensor_type
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel.match import gemm_of, row_major
from ...lowering.algebra_to_kernel.shared_loops import (
    loop_extents,
    reads_single_positions,
    shared_loops,
)
from ..cost.flops import scope_work

# A row of intermediate values is kept in a buffer on the stack of one thread: the widest (logits of
# 50,000 words are 200 KB, which second-level caches hold), and all rows of a kernel.
ROW_BYTES = 1 << 18
STACK_BYTES = 1 << 20
# Threads share rows; fusing down to fewer rows would leave threads idle.
LEAST_ROWS = 4
# So little is done before a second thread has begun.
SMALL_BYTES = 1 << 15
# Bodies grow with every fusion; with more scopes than this, compile time outweighs saved traffic.
MAX_SCOPES = 32
# Operations of a product per byte of the intermediate and of the result. Above this, storing the
# value is better: alone, a product is computed a block of rows at a time, within a row it is not.
MOST_WORK = 4.0
# A row narrower than this fills no vector: its product is no faster alone (attention to few keys).
VECTOR_BYTES = 64


@dataclass(frozen=True)
class FuseKernels(ModulePass):
    """Merge a kernel into the only kernel that reads it, where they share loops.

    Two kernels share loops if the leading traversal iterators of all their scopes have equal
    extents (ignoring extent 1) and the reader reads the intermediate at these iterators. Over
    all iterators this is an epilogue, which gemm and conv take too. Over some of them it is a row:
    softmax and layer norm become one kernel. A merged kernel computes each point once, as before.
    Large products are not merged into rows, and sums of weights not into what reads data: those are
    computed once.

    Before:

        %0 = kernel.gemm (%2 = %a, %3 = %b) { ... kernel.yield %4 }
        %1 = kernel.loops (%5 = %0) {
          %6 = algebra.scope (m: 4, n: 8) max(%5[m, n], 0.0) : tensor<4x8xf32>
          kernel.yield %6
        }

    After:

        %1 = kernel.gemm (%2 = %a, %3 = %b) {
          %4 = algebra.scope (m: 4, n: 8) sum (k: 16) %2[m, k] * %3[k, n] : tensor<4x8xf32>
          %5 = algebra.scope (m: 4, n: 8) max(%4[m, n], 0.0) : tensor<4x8xf32>
          kernel.yield %5
        }
    """

    name = "fuse-kernels"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = list(main_of(op).body.block.ops)
        known = weights_only(ops)
        for kernel in reversed(ops):
            once = frozenset[SSAValue]() if known.issuperset(kernel.results) else known
            while isinstance(kernel, LoopsOp) and kernel.parent is not None:
                merged = _absorb_one(kernel, once)
                if merged is None:
                    break
                kernel = merged


def _absorb_one(kernel: LoopsOp, once: Set[SSAValue]) -> KernelOp | None:
    """Merge the first producer that may be merged; None if there is none.

    Args:
        once: values of weights alone: sums of them are computed when the program is compiled.
    """
    inputs = [(v, v.owner) for v in kernel.inputs]
    found = [(v, p) for v, p in inputs if isinstance(p, KernelOp) and only_user(v, kernel)]
    # With a product the kernel becomes that product, which absorbs no more.
    for value, producer in sorted(found, key=lambda pair: not _is_pointwise(pair[1])):
        sums = isinstance(producer, LoopsOp) and any(s.summation for s in producer.scopes)
        if sums and value in once:
            continue
        if _legal(producer, kernel):
            return merge(producer, kernel, type(producer))
    return None


def _is_pointwise(kernel: KernelOp) -> bool:
    return isinstance(kernel, LoopsOp) and all(s.is_pointwise for s in kernel.scopes)


def only_user(value: SSAValue, kernel: Operation) -> bool:
    """Whether one op is the only reader of a value."""
    return all(use.operation is kernel for use in value.uses)


def _legal(producer: KernelOp, kernel: LoopsOp) -> bool:
    scopes, names = [*producer.scopes, *kernel.scopes], names_between(producer, kernel)
    if len(scopes) > MAX_SCOPES or not reads_single_positions(scopes, names):
        return False
    shared = shared_loops(scopes, names)
    whole = all(len(loop_extents(s)) == shared for s in scopes)
    if isinstance(producer, GemmOp | ConvOp):
        pointwise = all(s.is_pointwise for s in kernel.scopes)
        # Kernels of float32, which have more forms, store float32; those of bytes store any type.
        same = element_of(producer.scopes[0].result) != f32 or kernel.type.element_type == f32
        return whole and pointwise and same and _takes_epilogue(producer, kernel)
    if whole:
        return True
    if any(len(loop_extents(s)) > shared + 1 or 0 in shape_of(s.result) for s in scopes):
        return False  # a row of no elements has no vector that could be read
    scalar = all(len(loop_extents(s)) == shared for s in producer.scopes)
    if not scalar and not any(s.summation for s in scopes):
        return False  # nothing is reduced: rows would only lose the freedom to choose the vector
    rows = math.prod(loop_extents(scopes[0])[:shared])
    sizes = [byte_size(tensor_type(s.result)) for s in scopes[:-1]]
    widest = max(sizes)
    moved = 2 * byte_size(tensor_type(producer.result)) + byte_size(kernel.type)
    heavy = any(2 * scope_work(s).macs > MOST_WORK * moved for s in scopes)
    if heavy and widest // rows >= VECTOR_BYTES:
        return False
    if rows < LEAST_ROWS and moved > SMALL_BYTES:
        return False
    return widest // rows <= ROW_BYTES and sum(sizes) // rows <= STACK_BYTES


def _takes_epilogue(producer: GemmOp | ConvOp, kernel: LoopsOp) -> bool:
    """A gemm's epilogue runs over vectors of columns: they must be one iterator of the scope.

    A convolution's epilogue writes where the convolution would: one position may not index other
    dims.
    """
    if isinstance(producer, ConvOp):
        return shape_of(kernel.result) == shape_of(producer.result)
    assert producer.contraction is not None
    found = gemm_of(producer.scopes[0], producer.contraction, row_major)
    return found is not None and len(found.n.iterators) <= 1


def names_between(producer: KernelOp, kernel: KernelOp) -> dict[SSAValue, SSAValue]:
    """Names for the producer's result in the kernel's region."""
    made, arguments = _yielded(producer), kernel.body.block.args
    read = sorted(use.index for use in producer.result.uses if use.operation is kernel)
    return {arguments[k]: made for k in read}


def _yielded(op: KernelOp) -> SSAValue:
    last = op.body.block.last_op
    assert isinstance(last, YieldOp)
    return last.value


def merge(producer: KernelOp, kernel: KernelOp, into: type[KernelOp]) -> KernelOp:
    """One kernel with both regions, one after the other, replacing both."""
    outside = [v for v in kernel.inputs if v is not producer.result]
    inputs = list(dict.fromkeys([*producer.inputs, *outside]))
    block = Block(arg_types=[logical(v.type) for v in inputs])
    arguments: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    arguments[producer.result] = _move_body(producer, block, arguments)
    block.add_op(YieldOp(_move_body(kernel, block, arguments)))
    merged = into(inputs, Region(block), kernel.type)
    merged.location = _location(producer, kernel)
    merged.result.name_hint = kernel.result.name_hint
    rules = [*provenance(producer), *provenance(kernel)]
    if rules:
        add_provenance(merged, rules)
    Rewriter.replace_op(kernel, merged)
    Rewriter.erase_op(producer)
    return merged


def _location(producer: KernelOp, kernel: KernelOp) -> LocationAttr:
    """The merged kernel's kind: a contraction keeps its own; loops take the other's."""
    order = (producer, kernel) if isinstance(producer, GemmOp | ConvOp) else (kernel, producer)
    known = (op.location for op in order if op.location != UnknownLoc())
    return next(known, kernel.location)


def _move_body(op: KernelOp, into: Block, arguments: dict[SSAValue, SSAValue]) -> SSAValue:
    """Move a kernel's scopes to the end of a block, and return what they yielded."""
    block, result = op.body.block, _yielded(op)
    for arg, value in zip(block.args, op.inputs, strict=True):
        if result is arg:
            result = arguments[value]
        arg.replace_all_uses_with(arguments[value])
    for inner in list(block.ops):
        inner.detach()
        if isinstance(inner, YieldOp):
            inner.erase()
        else:
            into.add_op(inner)
    return result
