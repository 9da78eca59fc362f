"""A loop nest over fused scopes: its iterators, and every scope's reads in terms of them.

Iterators are numbered: first the loops that all scopes share, then each scope's own traversals and
summations. Extent-1 iterators do not exist here: they are the constant 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, SSAValue

from ....dialects.algebra import OnesOp, ScopeOp
from ....dialects.index import Index as Affine
from ....dialects.index import normalise, range_of
from ....dialects.kernel import layout_of, physical
from ....dialects.scalars import Read
from ....dialects.types import Tensor, element_count, tensor_type
from ..emit.access import Access
from ..emit.types import Value

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
) -> tuple[Guard, ...]:
    """The bounds a read must check: none where the range, or the zero halo, makes it safe."""
    halo: Sequence[tuple[int, int]] = [(0, 0)] * len(shape)
    if type_ is not None and outside == 0.0:
        halo = layout_of(type_).halo
    needed: list[Guard] = []
    for e, size, (low, high) in zip(index, shape, halo, strict=True):
        first, last = range_of(e, extents)
        if first < -low or last >= size + high:
            needed.append((e, size))
    return tuple(needed)


@dataclass
class Buffers:
    """Where a nest finds the values it reads: operands, and finished scalars.

    Attributes:
        pointers, types: address and physical type of each operand of the kernel.
        values: scalars that are finished at this point.
        local: strides of values of which only a part is stored, so that no type says where they
            lie.
    """

    pointers: Mapping[SSAValue, Value]
    types: Mapping[SSAValue, Tensor]
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    local: Mapping[SSAValue, tuple[int, ...]] = field(
        default_factory=dict[SSAValue, tuple[int, ...]]
    )


def access(operand: NestOperand, buffers: Buffers, extents: tuple[int, ...]) -> Access:
    """The memory access of one read."""
    source = operand.source
    logical = tensor_type(source)
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
