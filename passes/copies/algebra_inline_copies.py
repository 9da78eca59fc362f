"""algebra-inline-copies: read through scopes that only move data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.algebra import ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.graph import ConstantOp
from ...dialects.index import iterators, normalise
from ...dialects.program import main_of
from ...dialects.scalars import Call, Const, Read, map_reads, postorder
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_count, element_of, is_float, shape_of, tensor_type
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm


@dataclass(frozen=True)
class AlgebraInlineCopies(ModulePass):
    """Let readers of a pure copy (transpose, broadcast, slice, pad, some reshapes) read its source.

    Sound because the reader stays inside the copy's shape, so it reads the copy's own values. A
    read that may leave the shape is kept, unless the copy is its whole source in the same order. An
    index that would gain a floor is kept too: such copies are reshapes, which are free as views of
    the same buffer. A reader with floors goes on through copies that repeat elements, as those of
    nearest neighbours do. A copy is kept without which its reader would no longer be a library
    kernel: blocks cut out of a band, read by a matrix product. An exponent that is a constant of
    one element becomes a number: kernels raise to 2, 3 and 4 by products.

    Before:

        %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
        %y = algebra.scope (i: 8, j: 4) exp(%t[i, j]) : tensor<8x4xf32>

    After:

        %y = algebra.scope (i: 8, j: 4) exp(%x[j, i]) : tensor<8x4xf32>
    """

    name = "algebra-inline-copies"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        copies: dict[SSAValue, Read] = {}
        for scope in list(main_of(op).body.block.ops):
            if isinstance(scope, ScopeOp):
                scope = _with_exponents(_read_through(scope, copies))
                source = copied(scope)
                if source is not None:
                    copies[scope.result] = source
        _erase_unused(op, copies)


def copied(scope: ScopeOp) -> Read | None:
    """The one read of a scope that only moves data."""
    expr = scope.expr() if len(scope.inputs) == 1 and scope.is_pointwise else None
    return expr if isinstance(expr, Read) else None


def _read_through(scope: ScopeOp, copies: dict[SSAValue, Read]) -> ScopeOp:
    if not any(value in copies for value in scope.inputs):
        return scope
    changed = {
        read: new for read in scope.reads() if (new := _through(scope, read, copies)) != read
    }
    changed = _keeping_kernel(scope, changed)
    if not changed:
        return scope
    return _replaced(scope, _reading(scope, changed))


def _replaced(scope: ScopeOp, new: ScopeOp) -> ScopeOp:
    new.attributes |= scope.attributes
    new.location = scope.location
    new.result.name_hint = scope.result.name_hint
    Rewriter.replace_op(scope, new)
    return new


def _with_exponents(scope: ScopeOp) -> ScopeOp:
    """The scope with numbers for the exponents that are constants of one element."""
    expr = scope.expr()
    powers = [e for e in postorder(expr) if isinstance(e, Call) and e.function == "pow"]
    numbers = {
        read: Const(float(value))
        for power in powers
        if isinstance(read := power.args[1], Read) and (value := _number(read)) is not None
    }
    if not numbers:
        return scope
    changed = map_reads(expr, lambda read: numbers.get(read, read))
    type_ = tensor_type(scope.result)
    new = ScopeOp(type_, changed, scope.summation, scope.reduction.data, scope.names)
    return _replaced(scope, new)


def _number(read: Read) -> float | None:
    """What a read of a constant of one float gives, wherever it is."""
    owner = read.source.owner
    if not isinstance(owner, ConstantOp) or not is_float(element_of(read.source)):
        return None
    inside = all(not e.iterators and e.constant == 0 for e in read.index)
    return owner.array().item() if inside and element_count(tensor_type(read.source)) == 1 else None


def _reading(scope: ScopeOp, changed: dict[Read, Read]) -> ScopeOp:
    """The scope with some of its reads replaced; it is in no block."""
    expr = map_reads(scope.expr(), lambda read: changed.get(read, read))
    return ScopeOp(
        tensor_type(scope.result), expr, scope.summation, scope.reduction.data, scope.names
    )


def _keeping_kernel(scope: ScopeOp, changed: dict[Read, Read]) -> dict[Read, Read]:
    """The changed reads that keep their reader a library kernel, if it was one."""
    if not changed or not _has_kernel(scope):
        return changed
    kept: dict[Read, Read] = {}
    for read, new in changed.items():
        trial = _reading(scope, kept | {read: new})
        if _has_kernel(trial):
            kept[read] = new
        trial.erase()
    return kept


def _has_kernel(scope: ScopeOp) -> bool:
    return match_gemm(scope) is not None or match_conv(scope) is not None


def _through(scope: ScopeOp, read: Read, copies: dict[SSAValue, Read]) -> Read:
    """The read composed with its source's copy, if there is one and it is legal."""
    source = copies.get(read.source)
    if source is None:
        return read
    if _is_identity(source, shape_of(read.source)):
        return Read(source.source, read.index, read.outside)
    if not in_bounds(read, scope.extents):
        return read
    if source.outside != 0.0 and scope.summation:
        return read
    index = tuple(normalise(e.substitute(read.index), scope.extents) for e in source.index)
    if any(e.has_floor for e in index) and not any(e.has_floor for e in read.index):
        return read
    new = Read(source.source, index, source.outside)
    return _through(scope, new, copies) if _repeats(new.source, copies) else new


def _repeats(value: SSAValue, copies: dict[SSAValue, Read]) -> bool:
    """Whether a copy is larger than its source, and so no view of it."""
    source = copies.get(value)
    return source is not None and element_count(tensor_type(value)) > element_count(
        tensor_type(source.source)
    )


def _is_identity(source: Read, shape: tuple[int, ...]) -> bool:
    """Whether a copy equals its source, outside the shape too."""
    return source.index == tuple(iterators(len(shape))) and shape_of(source.source) == shape


def _erase_unused(module: ModuleOp, copies: dict[SSAValue, Read]) -> None:
    for op in reversed(list(main_of(module).body.block.ops)):
        if isinstance(op, ScopeOp) and op.result in copies and not op.result.uses:
            op.detach()
            op.erase()
