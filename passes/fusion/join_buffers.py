"""join-buffers: write the parts of a concatenation directly to their final positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.index import Index, iterators
from ...dialects.kernel import (
    ConvOp,
    GemmOp,
    JoinOp,
    KernelOp,
    LoopsOp,
    layout_of,
    logical,
    slot,
)
from ...dialects.program import main_of
from ...dialects.scalars import Call, Expr, Read
from ...dialects.types import Tensor, shape_of, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.algebra_to_kernel.convert import enclose

# A kernel with a branch for each part grows with the square of their number.
MANY = 16


@dataclass(frozen=True)
class JoinBuffers(ModulePass):
    """Turn a concatenation along the innermost dim into a `kernel.join` of values side by side.

    Kernels must define its parts, whose other readers may only be loops (which follow any
    strides), and the parts must have no halo. Halos must be final: this runs after `tune`.

    With `copies`, more than `MANY` parts, along any dim, are copied to their positions by a kernel
    each where they cannot be written there: these copies are one code, while one kernel for all of
    them has a branch for each part (the outputs of a recurrence of hundreds of steps). On the CPU
    a kernel costs a call; on a GPU each would be a launch.

    Before:

        %c = kernel.loops (%0 = %a, %1 = %b) { ... select(%ones[c], %0[..], %1[.., c - 16, ..]) }
             : tensor<1x64x8x8xf32, #kernel.layout<[0, 2, 3, 1]>>

    After (%a and %b have room for each other in their layouts):

        %c = kernel.join %a, %b axis 1 : (...) -> tensor<1x64x8x8xf32, #kernel.layout<[0, 2, 3, 1]>>
    """

    name = "join-buffers"
    floats: ClassVar[Floats] = BITS
    copies: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = constant_values(op)
        for kernel in reversed(list(main_of(op).body.block.ops)):
            if isinstance(kernel, LoopsOp) and kernel.result not in constants:
                _join(kernel, constants, self.copies)


def _join(op: LoopsOp, constants: set[SSAValue], copies: bool) -> None:
    found = concatenated(op)
    if found is None:
        return
    axis, values = found
    inside = axis == layout_of(op.type).dims[-1] and len(set(values)) == len(values)
    moved = inside and all(v not in constants and _movable(v, op) for v in values)
    if not moved and not (copies and len(values) > MANY):
        return
    start, placed = 0, list[SSAValue]()
    for value in values:
        size = shape_of(value)[axis]
        type_ = slot(op.type, axis, start, size)
        placed.append(
            Rewriter.replace_value_with_new_type(value, type_) if moved else _copy(value, type_, op)
        )
        start += size
    join = JoinOp(placed, axis, op.type)
    join.location = op.location
    join.attributes |= op.attributes
    join.result.name_hint = op.result.name_hint
    Rewriter.replace_op(op, join)


def _copy(value: SSAValue, type_: Tensor, before: LoopsOp) -> SSAValue:
    """The value copied into another layout, by a kernel of its own."""
    shape = shape_of(value)
    scope = ScopeOp(logical(type_), Read(value, tuple(iterators(len(shape)))))
    copy = LoopsOp(*enclose(scope), type_)
    copy.location = before.location
    scope.erase()
    Rewriter.insert_op(copy, InsertPoint.before(before))
    return copy.result


def _movable(value: SSAValue, op: LoopsOp) -> bool:
    """Whether the value's kernel may write it into a wider buffer."""
    layout, wanted = layout_of(tensor_type(value)), layout_of(op.type)
    plain = not any(a or b for a, b in (*layout.halo, *layout.room))
    readers = {use.operation for use in value.uses} - {op}
    return (
        isinstance(value.owner, KernelOp | JoinOp)
        and not isinstance(value.owner, GemmOp)
        and layout.dims == wanted.dims
        and plain
        and all(isinstance(reader, LoopsOp) or _reads_inside(reader, value) for reader in readers)
    )


def _reads_inside(reader: object, value: SSAValue) -> bool:
    """A convolution without pads uses only the strides of its data."""
    return isinstance(reader, ConvOp) and not any(
        a or b for a, b in layout_of(tensor_type(value)).halo
    )


def concatenated(op: LoopsOp) -> tuple[int, list[SSAValue]] | None:
    """(dim, parts) if the kernel is a concatenation and nothing else; None otherwise."""
    scopes = op.scopes
    if len(scopes) != 1 or not scopes[0].is_pointwise or len(op.inputs) < 2:
        return None
    return _pieces(scopes[0], op, scopes[0].expr())


def _pieces(scope: ScopeOp, op: LoopsOp, expr: Expr) -> tuple[int, list[SSAValue]] | None:
    """Unfold select(ones[e - start], part, rest): each piece shifted by the parts before it."""
    start, dim, parts = 0, None, list[SSAValue]()
    while True:
        test: Expr | None = None
        piece: Expr = expr
        if isinstance(expr, Call) and expr.function == "select":
            test, piece, expr = expr.args
        if not isinstance(piece, Read) or piece.source not in op.body.block.args:
            return None
        dim = _shifted_dim(test) if dim is None else dim
        size = None if dim is None else _piece_size(piece, dim)
        if dim is None or size is None or not _is_shifted(piece, dim, start, scope.traversal):
            return None
        if test is not None and not _is_guard(test, dim, start, size):
            return None
        start += size
        parts.append(op.inputs[list(op.body.block.args).index(piece.source)])
        if test is None:
            return (dim, parts) if start == scope.traversal[dim] else None


def _shifted_dim(test: Expr | None) -> int | None:
    """The dim tested by the first guard: a plain iterator."""
    if not isinstance(test, Read) or len(test.index) != 1 or len(test.index[0].terms) != 1:
        return None
    atom = test.index[0].terms[0][0]
    return atom if isinstance(atom, int) else None


def _piece_size(piece: Read, dim: int) -> int | None:
    shape = shape_of(piece.source)
    return shape[dim] if dim < len(shape) else None


def _is_shifted(piece: Read, dim: int, start: int, traversal: Sequence[int]) -> bool:
    """Whether a piece is read at the traversal point, shifted by `start` along `dim`, and all of it
    along the others: a part of a tensor cannot be written in its place."""
    shape = shape_of(piece.source)
    return len(piece.index) == len(traversal) and all(
        e == Index.iterator(k) - (start if k == dim else 0) and (k == dim or shape[k] == n)
        for k, (e, n) in enumerate(zip(piece.index, traversal, strict=True))
    )


def _is_guard(test: Expr, dim: int, start: int, size: int) -> bool:
    """Whether a test means exactly "the point is in [start, start + size) along `dim`"."""
    return (
        isinstance(test, Read)
        and isinstance(test.source.owner, OnesOp)
        and shape_of(test.source) == (size,)
        and test.index == (Index.iterator(dim) - start,)
    )
