"""Merge loops of a nest that every access covers as one strided range.

Elementwise work on [1, 64, 56, 56] is one loop of 200704, whose vectors are full and whose address
is one addition. Two iterators merge if in each address a step of the outer one equals a whole run
of the inner one (stride 0 for both, for example), and no bound that must be checked depends on
either. The merged iterator m replaces the inner one; the outer is m // n, the inner m mod n, and
the floors cancel in every address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from xdsl.ir import SSAValue

from ....dialects.algebra import OnesOp
from ....dialects.index import FloorDiv
from ....dialects.index import Index as Affine
from ....dialects.kernel import physical
from ....dialects.types import Tensor, tensor_type
from .nest import NestOperand, NestPlan, ScopePlan, guards_of


def merge_loops(plan: NestPlan, result: Tensor, types: Mapping[SSAValue, Tensor]) -> NestPlan:
    """The same nest with fewer loops; removed iterators keep their numbers, with extent 1.

    Args:
        result: physical type of what the last scope stores.
        types: physical types of the kernel's operands.
    """
    merger = _Merger(plan, _addresses(plan, result, types), list(plan.extents))
    merger.block_checked(types)
    if all(not scope.own for scope in plan.scopes):
        merger.merge(range(plan.shared))
    for scope in plan.scopes:
        merger.merge(scope.sums)
    return merger.rebuilt(types)


def merge_range(
    plan: NestPlan, result: Tensor, types: Mapping[SSAValue, Tensor], iterators: Sequence[int]
) -> NestPlan:
    """The same nest, of these shared iterators as few as possible left."""
    merger = _Merger(plan, _addresses(plan, result, types), list(plan.extents))
    merger.block_checked(types)
    merger.merge(iterators)
    return merger.rebuilt(types)


def _addresses(plan: NestPlan, result: Tensor, types: Mapping[SSAValue, Tensor]) -> list[Affine]:
    """Address of the result and of every read of an operand."""
    flats = [_flat(plan.root.here, result)]
    for operand in _reads(plan):
        if operand.source in types:
            flats.append(_flat(operand.index, types[operand.source]))
    return flats


def _flat(index: Sequence[Affine], type_: Tensor) -> Affine:
    strides = physical(type_)[0]
    return sum((e * s for e, s in zip(index, strides, strict=True)), Affine(0))


def _reads(plan: NestPlan) -> Iterator[NestOperand]:
    for scope in plan.scopes:
        yield from scope.reads


def _checked_dims(
    operand: NestOperand, extents: tuple[int, ...], types: Mapping[SSAValue, Tensor]
) -> tuple[int, ...] | None:
    """Dims of a read whose bounds must be checked; None if it reads no operand."""
    type_ = types.get(operand.source)
    if type_ is None:
        return None
    guards = guards_of(operand.index, type_.get_shape(), extents, type_, operand.outside)
    return tuple(d for d, e in enumerate(operand.index) if (e, type_.get_shape()[d]) in guards)


@dataclass
class _Merger:
    plan: NestPlan
    flats: list[Affine]
    extents: list[int]

    def __post_init__(self) -> None:
        self.images = [Affine.iterator(k) for k in range(len(self.extents))]
        self.blocked: set[int] = set()

    def block_checked(self, types: Mapping[SSAValue, Tensor]) -> None:
        """Block iterators in bounds to check, in floors, and in reads of intermediates."""
        whole = all(not scope.own for scope in self.plan.scopes)
        for operand in _reads(self.plan):
            checked = _checked_dims(operand, self.plan.extents, types)
            if checked is not None:
                for d in checked:
                    self.blocked |= operand.index[d].iterators
            elif isinstance(operand.source.owner, OnesOp):
                shape = tensor_type(operand.source).get_shape()
                for e, _ in guards_of(operand.index, shape, self.plan.extents, None, 1.0):
                    self.blocked |= e.iterators
            elif not whole:  # a row of intermediate values has strides of its own
                for e in operand.index:
                    self.blocked |= e.iterators
        for flat in self.flats:
            for atom, _ in flat.terms:
                if isinstance(atom, FloorDiv):
                    self.blocked |= atom.numerator.iterators

    def merge(self, iterators: Sequence[int]) -> None:
        """Merge pairs among these iterators until none fits."""
        free = [k for k in iterators if k not in self.blocked]
        while (
            pair := next((p for p in permutations(free, 2) if self._fits(*p)), None)
        ) is not None:
            self._merge(*pair)
            free.remove(pair[0])

    def _fits(self, outer: int, inner: int) -> bool:
        n = self.extents[inner]
        return all(f.coefficient(outer) == f.coefficient(inner) * n for f in self.flats)

    def _merge(self, outer: int, inner: int) -> None:
        merged, n = Affine.iterator(inner), self.extents[inner]
        step = [Affine.iterator(k) for k in range(len(self.extents))]
        step[outer], step[inner] = merged // n, merged % n
        self.images = [image.substitute(step) for image in self.images]
        self.flats = [flat.substitute(step) for flat in self.flats]
        self.extents[inner], self.extents[outer] = n * self.extents[outer], 1

    def rebuilt(self, types: Mapping[SSAValue, Tensor]) -> NestPlan:
        """The plan over merged iterators."""
        if tuple(self.extents) == self.plan.extents:
            return self.plan
        scopes = [self._scope(scope, types) for scope in self.plan.scopes]
        return NestPlan(self.plan.shared, tuple(self.extents), scopes)

    def _scope(self, scope: ScopePlan, types: Mapping[SSAValue, Tensor]) -> ScopePlan:
        reads = tuple(
            replace(
                operand,
                index=self._substituted(operand.index),
                checked=_checked_dims(operand, self.plan.extents, types),
            )
            for operand in scope.reads
        )
        sums = tuple(k for k in scope.sums if self.extents[k] != 1)
        return ScopePlan(scope.op, scope.own, sums, reads, self._substituted(scope.here))

    def _substituted(self, index: Sequence[Affine]) -> tuple[Affine, ...]:
        return tuple(e.substitute(self.images) for e in index)
