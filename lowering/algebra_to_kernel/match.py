"""Match scopes against library kernels: strided operands of matrix products, convolutions.

The contraction comes from dialects/contraction_attr.py: a kernel op carries it; for a scope it is
memoised. Matching is modulo layout: strides follow from the reads, and operands are not moved.
Source: EinNet section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.contraction_attr import ContractionAttr, ConvParameters, conv_of
from ...dialects.index import Index, flatten, is_chain, iterators, row_major_strides
from ...dialects.scalars import Read
from ...dialects.scope_body import in_bounds
from ...dialects.types import element_of, is_byte, is_unsigned, shape_of

# Vector-matrix products with sums this short become loops: there is nothing to reuse.
SHORT_SUM = 8
# The least number of columns in one range, if there are others: fewer fill no vector.
LEAST_COLUMNS = 8

# The deepest panel of bytes that is copied to the stack: 256 KiB of words.
MAX_COPIED = 2048


@dataclass(frozen=True)
class Axis:
    """A loop of a kernel: its extent and element strides in the two operands and the output.

    `iterators` are the scope's iterators that it merges, outermost first.
    """

    extent: int
    a: int
    b: int
    out: int
    iterators: tuple[int, ...] = ()


@dataclass(frozen=True)
class GemmMatch:
    """out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], all row-major buffers.

    `m`, `n`, `k` are merged into one axis each; `batch` may have several. Parts of m and n that
    cannot be merged with the rest are batch too, and move one operand only: the other's stride is 0
    (as for heads that share their keys). `a_offset`/`b_offset` are element offsets of the first
    read. `a`, `b` are the scope's reads.
    """

    a: Read
    b: Read
    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis
    a_offset: int
    b_offset: int

    @property
    def shares(self) -> bool:
        """Whether an operand stays in place while the batch advances."""
        return any(axis.a == 0 or axis.b == 0 for axis in self.batch)


Strides: TypeAlias = Callable[[SSAValue], tuple[Sequence[int], int]]
"""Element strides per dim of a value's buffer, and the offset of its first element."""


def row_major(value: SSAValue) -> tuple[Sequence[int], int]:
    """The strides of a buffer without a layout."""
    return row_major_strides(shape_of(value)), 0


def match_gemm(scope: ScopeOp, strides: Strides = row_major) -> GemmMatch | None:
    """Match a product of two reads whose groups are strided ranges; None otherwise."""
    found = ContractionAttr.of(scope)
    return None if found is None else gemm_of(scope, found, strides)


def gemm_of(scope: ScopeOp, found: ContractionAttr, strides: Strides) -> GemmMatch | None:
    """The strided ranges of a scope with this contraction; None if a group is not one."""
    if found.guards.data or not found.group("k"):
        return None
    reads = [
        Read(scope.inputs[k], scope.index_of(k), scope.outside.data[k].value.data)
        for k in found.reads
    ]
    if not are_multiplied([r.source for r in reads], scope.result):
        return None
    if not all(in_bounds(r, scope.extents) for r in reads):
        return None
    rank = len(scope.traversal)
    out = flatten(iterators(rank), strides(scope.result)[0])
    flats = [flatten(r.index, strides(r.source)[0]) + strides(r.source)[1] for r in reads]
    if any(flat.has_floor for flat in flats):
        return None
    rows, columns = found.group("m"), found.group("n")
    if _nearest(scope, out) in rows:  # neighbours in the output are columns: those of b
        reads, flats, rows, columns = reads[::-1], flats[::-1], columns, rows
    first, second = flats

    def axes(group: tuple[int, ...]) -> list[Axis]:
        return [
            Axis(n, first.coefficient(k), second.coefficient(k), out.coefficient(k), (k,))
            for k, n in enumerate(scope.extents)
            if k in group
        ]

    m, more_rows = _peel(axes(rows), ("a", "out"))
    n, more_columns = _peel(axes(columns), ("b", "out"), last=True)
    k = _merge(axes(found.group("k")), ("a", "b"))
    if m is None or n is None or k is None or (n.extent > 1 and n.out != 1):
        return None
    batch = (*axes(found.group("batch")), *more_rows, *more_columns)
    return GemmMatch(reads[0], reads[1], batch, m, n, k, first.constant, second.constant)


def are_multiplied(sources: Sequence[SSAValue], result: SSAValue) -> bool:
    """Whether kernels multiply these: all of f32, all of f64, or bytes whose sum has 32 bits."""
    elements = {element_of(source) for source in sources}
    if element_of(result) == i32:
        return all(map(is_byte, elements))
    return elements == {element_of(result)} and elements <= {f32, f64}


def _nearest(scope: ScopeOp, out: Index) -> int | None:
    """The traversal whose neighbours are adjacent in the output."""
    used = [k for k, n in enumerate(scope.traversal) if n != 1]
    return min(used, key=out.coefficient) if used else None


def match_conv(scope: ScopeOp) -> ConvParameters | None:
    """The parameters of a convolution of elements that kernels multiply; None otherwise."""
    return conv_of(scope) if are_multiplied(scope.inputs, scope.result) else None


def takes_conv(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """Whether kernel.conv computes a scope without changes.

    Constant filters are packed beforehand. Others are read where they lie, features last: floats,
    of a convolution that is neither transposed nor a matrix product.
    """
    found = match_conv(scope)
    if found is None:
        return False
    if found.weights in constants:
        return _packable(found.weights)
    plain = not found.transposed and not is_byte(element_of(found.weights))
    return plain and match_gemm(scope) is None


def _packable(weights: SSAValue) -> bool:
    """Whether constant weights have words: floats, and signed bytes."""
    return not is_unsigned(element_of(weights))


def takes_gemm(scope: ScopeOp, constants: set[SSAValue]) -> bool:
    """Whether kernel.gemm computes a scope without changes, and faster than loops."""
    found = None if takes_conv(scope, constants) else match_gemm(scope)
    if found is None or max(found.m.extent, found.n.extent) == 1:
        return False
    if is_byte(element_of(found.b.source)) and not _multiplies_bytes(found, constants):
        return False
    if found.shares and found.n.extent < LEAST_COLUMNS:
        return False
    return min(found.m.extent, found.n.extent) > 1 or found.k.extent > SHORT_SUM


def _multiplies_bytes(found: GemmMatch, constants: set[SSAValue]) -> bool:
    """Whether the right operand can be packed: beforehand, or a panel at a time on the stack."""
    known = found.b.source in constants
    return _packable(found.b.source) and (known or found.k.extent <= MAX_COPIED)


def _peel(
    axes: list[Axis], tensors: tuple[str, str], *, last: bool = False
) -> tuple[Axis | None, list[Axis]]:
    """Split off the largest run of axes that is one strided range in both tensors.

    `last` keeps the axis whose neighbours are adjacent in the result.
    """
    axes = sorted(axes, key=lambda axis: -getattr(axis, tensors[1]))
    runs = [(i, j) for i in range(len(axes)) for j in range(i + 1, len(axes) + 1)]
    best: tuple[Axis, tuple[int, int]] | None = None
    for i, j in runs:
        merged = _merge(axes[i:j], tensors) if j == len(axes) or not last else None
        if merged is not None and (best is None or merged.extent > best[0].extent):
            best = merged, (i, j)
    if best is None:
        return _merge(axes, tensors), []
    merged, (i, j) = best
    left = [*axes[:i], *axes[j:]]
    if any(min(getattr(axis, t) for t in tensors) <= 0 for axis in left):
        return None, []
    return merged, left


def _merge(axes: list[Axis], tensors: tuple[str, str]) -> Axis | None:
    """Merge a group into one axis where it is a strided range in both tensors."""
    if not axes:
        return Axis(1, 0, 0, 0)
    axes = sorted(axes, key=lambda axis: -getattr(axis, tensors[1]))
    extents = [axis.extent for axis in axes]
    for tensor in tensors:
        strides = [getattr(axis, tensor) for axis in axes]
        if min(strides) <= 0 or not is_chain(strides, extents):
            return None
    total = 1
    for n in extents:
        total *= n
    iterators = tuple(k for axis in axes for k in axis.iterators)
    return Axis(total, axes[-1].a, axes[-1].b, axes[-1].out, iterators)
