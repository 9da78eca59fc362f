"""A loop nest over fused scopes: its iterators, and every scope's reads in terms of them.

Iterators are numbered: first the loops that all scopes share, then each scope's own traversals and
summations. Extent-1 iterators do not exist here: they are the constant 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.algebra import OnesOp, ScopeOp
from ....dialects.index import Index as Affine
from ....dialects.index import normalise, range_of, row_major_strides
from ....dialects.kernel import layout_of, physical
from ....dialects.scalars import Read
from ....dialects.types import Tensor, element_count, tensor_type
from ..emit.access import Access, Point
from ..emit.emitter import Emitter
from ..emit.types import Value, constant

Guard = tuple[Affine, int]
"""A bounds check: an index that must be at least 0 and less than a size."""


@dataclass(frozen=True)
class NestOperand:
    """Where a read finds its elements: a kernel operand, a scope of the nest, or ones."""

    source: SSAValue
    index: tuple[Affine, ...]
    outside: float
    checked: tuple[int, ...] | None = None
    """Dims whose bounds must be checked, where that is known; None asks for the ranges."""


@dataclass(frozen=True)
class Inlined:
    """The body of another scope, computed in place of a read of that scope's result.

    Attributes:
        block: that body.
        parts: its arguments.
    """

    block: Block
    parts: tuple[Part, ...]


Part: TypeAlias = "int | Inlined"
"""An argument of a body: the number of a read, or what is computed of reads."""


@dataclass
class ScopePlan:
    """One scope in nest iterators: `own` traversal iterators beyond the shared ones, `sums`."""

    op: ScopeOp
    own: tuple[int, ...]
    sums: tuple[int, ...]
    reads: tuple[NestOperand, ...]
    here: tuple[Affine, ...]
    parts: tuple[Part, ...] = ()
    """The body's arguments; by default the reads in order."""

    def __post_init__(self) -> None:
        self.parts = self.parts or tuple(range(len(self.reads)))

    @property
    def reduction(self) -> str:
        return self.op.reduction.data


@dataclass
class NestPlan:
    """All scopes of a kernel over one numbering of iterators; the first `shared` are common."""

    shared: int
    extents: tuple[int, ...]
    scopes: list[ScopePlan] = field(default_factory=list[ScopePlan])

    @property
    def root(self) -> ScopePlan:
        return self.scopes[-1]


def plan_nest(scopes: Sequence[ScopeOp], shared: int) -> NestPlan:
    """Number the iterators of scopes that share their first `shared` loops."""
    extents = [n for n in scopes[-1].traversal if n != 1][:shared]
    numbered: list[tuple[ScopeOp, list[Affine], tuple[int, ...], tuple[int, ...]]] = []
    for scope in scopes:
        images: list[Affine] = []
        own: list[int] = []
        sums: list[int] = []
        loops = 0
        for k, n in enumerate(scope.extents):
            if n == 1:
                images.append(Affine(0))
                continue
            if k < len(scope.traversal) and loops < shared:
                images.append(Affine.iterator(loops))
                loops += 1
                continue
            (own if k < len(scope.traversal) else sums).append(len(extents))
            images.append(Affine.iterator(len(extents)))
            extents.append(n)
        numbered.append((scope, images, tuple(own), tuple(sums)))
    plan = NestPlan(shared, tuple(extents))
    for scope, image, inside, summed in numbered:
        reads = tuple(_operand(r, image, plan.extents) for r in scope.reads())
        here = tuple(image[: len(scope.traversal)])
        plan.scopes.append(ScopePlan(scope, inside, summed, reads, here))
    return plan


def _operand(read_: Read, images: Sequence[Affine], extents: tuple[int, ...]) -> NestOperand:
    index = tuple(normalise(e.substitute(images), extents) for e in read_.index)
    return NestOperand(read_.source, index, read_.outside)


def guards_of(
    index: Sequence[Affine],
    shape: Sequence[int],
    extents: tuple[int, ...],
    type_: Tensor | None,
    outside: float,
    zeros: Sequence[tuple[int, int]] = (),
) -> tuple[Guard, ...]:
    """The bounds a read must check: none where the range, or the zero halo, makes it safe."""
    halo = zeros or [(0, 0)] * len(shape)
    if type_ is not None:
        halo = layout_of(type_).halo
    if outside != 0.0:
        halo = [(0, 0)] * len(shape)
    needed: list[Guard] = []
    for e, size, (low, high) in zip(index, shape, halo, strict=True):
        first, last = range_of(e, extents)
        if first < -low or last >= size + high:
            needed.append((e, size))
    return tuple(needed)


@dataclass(frozen=True)
class Row:
    """Values that a scope makes at one point of the shared loops, or at a vector of points.

    Attributes:
        pointer: the address of the first value, of the first lane; the zeros of `halo` precede it.
        halo: zeros before and after the values, for each dim that has loops of the scope's own.
        vector: the shared iterator in the lanes, -1 for none, and how many lanes there are.
        step: elements from one of several points' rows to the next.
    """

    pointer: Value
    made: ScopePlan
    halo: tuple[tuple[int, int], ...]
    vector: tuple[int, int] = (-1, 1)
    step: int = 0

    @property
    def dims(self) -> list[int]:
        """The dims that have loops of the scope's own."""
        own = set(self.made.own)
        return [d for d, e in enumerate(self.made.here) if e.iterators & own]

    def flat(self, index: Sequence[Affine]) -> Affine:
        """The element of the buffer at an index."""
        shape = tensor_type(self.made.op.result).get_shape()
        sizes = [shape[d] + low + high for d, (low, high) in zip(self.dims, self.halo, strict=True)]
        iterator, lanes = self.vector
        flat = Affine.iterator(iterator) if iterator >= 0 else Affine(0)
        steps = zip(self.dims, self.halo, row_major_strides(sizes), strict=True)
        for d, (low, _), stride in steps:
            flat += (index[d] + low) * (stride * lanes)
        return flat


class Held(Protocol):
    """Values of a row in registers."""

    def read(self, b: Emitter, operand: NestOperand, point: Point) -> Value:
        """What is at a place, in the lanes of the point's vector."""
        ...


@dataclass(frozen=True)
class HeldRow:
    """A row of `extent` values along dim `dim`, in vectors. Lanes past the last hold anything."""

    dim: int
    extent: int
    vectors: tuple[Value, ...]

    def read(self, b: Emitter, operand: NestOperand, point: Point) -> Value:
        """What is at a place that is known but for the lanes of the point's vector."""
        vector = point.vector
        assert vector is not None
        known = {k: v for k, v in point.values.items() if isinstance(v, int)}
        places: list[np.ndarray | int] = [known.get(k, 0) for k in range(len(point.extents))]
        places[vector.iterator] = np.arange(vector.lanes) + known[vector.iterator]
        read_at = np.broadcast_to(operand.index[self.dim].evaluate(places), vector.lanes)
        dtype, past = self.vectors[0].type, len(self.vectors) * vector.lanes
        outside = constant(dtype, operand.outside)
        picks = [int(k) if 0 <= k < self.extent else past for k in read_at]
        if isinstance(vector.mask, int):  # lanes that are not real may hold anything
            picks[vector.mask :] = [picks[0]] * (vector.lanes - vector.mask)
        return b.pick([*self.vectors, outside], picks)


@dataclass
class Buffers:
    """Where a nest finds the values it reads: operands, local rows, and finished scalars.

    Attributes:
        pointers, types: address and physical type of each operand of the kernel.
        rows: values of a point that are kept on the stack; held: those that are kept in registers.
        values: scalars that are finished at this point.
    """

    pointers: Mapping[SSAValue, Value]
    types: Mapping[SSAValue, Tensor]
    rows: dict[SSAValue, Row] = field(default_factory=dict[SSAValue, Row])
    held: dict[SSAValue, Held] = field(default_factory=dict[SSAValue, Held])
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    ready: Mapping[NestOperand, Value] = field(default_factory=dict[NestOperand, Value])
    """What operands read at the point, where that is known before its scopes are emitted."""
    optimistic: bool = False
    """Maxima and minima first ignore NaN, by one instruction; what met one is computed again."""
    ahead: tuple[int, int] = (0, 0)
    """Prefetching: an iterator, and how far ahead along it; distance 0 is no prefetching."""
    local: Mapping[SSAValue, tuple[int, ...]] = field(
        default_factory=dict[SSAValue, tuple[int, ...]]
    )
    """Strides of values of which only a part is stored, so that no type says where they lie."""


def access(operand: NestOperand, buffers: Buffers, extents: tuple[int, ...]) -> Access:
    """The memory access of one read."""
    source = operand.source
    logical = tensor_type(source)
    if source in buffers.rows:
        return _row_access(operand, buffers.rows[source], extents)
    if isinstance(source.owner, OnesOp):
        guards = guards_of(operand.index, logical.get_shape(), extents, None, 1.0)
        return Access(None, logical.element_type, Affine(0), guards)
    type_ = buffers.types.get(source, logical)
    strides, offset, _ = physical(type_)
    if source in buffers.local:
        strides, offset = buffers.local[source], 0
    flat = Affine(offset)
    for e, stride in zip(operand.index, strides, strict=True):
        flat += e * stride
    if operand.checked is None:
        guards = guards_of(operand.index, type_.get_shape(), extents, type_, operand.outside)
    else:
        guards = tuple((operand.index[d], type_.get_shape()[d]) for d in operand.checked)
    place, element = buffers.pointers[source], type_.element_type
    size = 0 if source in buffers.local else element_count(type_)
    return Access(place, element, flat, guards, operand.outside, fixed=True, size=size)


def _row_access(operand: NestOperand, row: Row, extents: tuple[int, ...]) -> Access:
    """A read of a row of intermediate values: only its own loops address it."""
    type_ = tensor_type(operand.source)
    guards = guards_of(
        [operand.index[d] for d in row.dims],
        [type_.get_shape()[d] for d in row.dims],
        extents,
        None,
        operand.outside,
        row.halo,
    )
    return Access(row.pointer, type_.element_type, row.flat(operand.index), guards, operand.outside)
