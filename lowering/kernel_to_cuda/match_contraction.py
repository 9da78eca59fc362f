"""Read a contraction off a scope: rows, columns, batch and depth of one tiled matrix product.

A sum of a product of two reads is a matrix product in a wide sense. Iterators of the output that
only the first operand has are its rows, those that only the second has its columns, those of both
its batch, and the summations its depth. A convolution is one whose first operand is read at
h + r - 1: the tiles of both operands are fetched through the scope's own indices, so that stride,
dilation, padding and groups need no code of their own. A group number f // size becomes an iterator
by splitting f. A transposed convolution's positions are split by the taps that reach them, so no
product with a zero between strides is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import SSAValue

from ...dialects.contraction import Contraction, Operand
from ...dialects.contraction_attr import contraction_in
from ...dialects.index import Atom, FloorDiv, Index, normalise
from ...dialects.kernel import KernelOp
from ...dialects.types import Tensor, element_of
from ..kernel_to_cpu.nests.nest import guards_of
from .print_reads import address, operand_types, without_halo

Guards = tuple[tuple[Index, int], ...]


@dataclass(frozen=True)
class ProductOperand:
    """One operand: its region argument, its address, and the guards of its reads."""

    source: SSAValue
    index: tuple[Index, ...]
    offset: Index
    guards: Guards


@dataclass(frozen=True)
class MatrixProduct:
    """out[batch, rows, columns] = sum over depth of a[batch, rows, depth] b[batch, depth, columns].

    Iterators are numbered: those of the scope without extents of 1 (split ones twice); each group
    lists its own, the innermost last. `traversal` gives the scope's traversal iterators in them.
    """

    names: tuple[str, ...]
    extents: tuple[int, ...]
    traversal: tuple[Index, ...]
    a: ProductOperand
    b: ProductOperand
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]
    out: Index

    def size(self, group: Sequence[int]) -> int:
        """Number of points of a group of iterators."""
        return math.prod(self.extents[k] for k in group)


def match_contraction(op: KernelOp) -> MatrixProduct | None:
    """The op's first scope as a tiled product; None if rows, columns or depth are one position."""
    scope = op.scopes[0]
    found, types = contraction_in(scope), operand_types(op)
    if found is None or any(scope.inputs[o.read] not in types for o in found.operands):
        return None
    kinds = {element_of(v) for v in (*(scope.inputs[o.read] for o in found.operands), scope.result)}
    if len(kinds) != 1 or not isinstance(
        kinds.pop(), Float32Type | Float16Type | BFloat16Type | Float64Type
    ):
        return None
    return _Matcher(op, types, found).run()


@dataclass(frozen=True)
class Phase:
    """A traversal and a tap that are read together, at (position + pad - tap) / stride."""

    position: int
    tap: int
    stride: int
    pad: int

    @property
    def remainder(self) -> Index:
        """The remainder of the division; the read counts where that is 0."""
        moved = Index.iterator(self.position) - Index.iterator(self.tap) + self.pad
        return moved % self.stride


def _phase(atom: Atom, rank: int) -> Phase | None:
    if isinstance(atom, int) or len(atom.numerator.terms) != 2:
        return None
    (position, up), (tap, down) = atom.numerator.terms
    if not isinstance(position, int) or not isinstance(tap, int) or not position < rank <= tap:
        return None
    if (up, down) != (1, -1):
        return None
    return Phase(position, tap, atom.divisor, atom.numerator.constant)


@dataclass
class _Matcher:
    op: KernelOp
    types: dict[SSAValue, Tensor]
    found: Contraction[int]

    def __post_init__(self) -> None:
        scope = self.op.scopes[0]
        self.rank = self.found.rank
        self.extents: list[int] = []
        self.names: list[str] = []
        self.images: list[Index] = []
        self.outer = 0
        sizes, phases = self._group_sizes(), self._phases()
        shifts = {phase.tap: phase for phase in phases.values()}
        parts: dict[int, Index] = {}
        for k, n in enumerate(scope.extents):
            name = scope.names[k]
            if k in phases:
                stride = phases[k].stride
                whole = self._number(f"{name}_outer", n // stride, None)
                parts[k] = self._number(f"{name}_phase", stride, None)
                image = whole * stride + parts[k]
            elif k in shifts:
                stride, position = shifts[k].stride, parts[shifts[k].position]
                taps = self._number(f"{name}_outer", -(-n // stride), None)
                image = taps * stride + (position + shifts[k].pad) % stride
            else:
                image = self._number(name, n, sizes.get(k))
            self.images.append(image)
            if k + 1 == self.rank:
                self.outer = len(self.extents)

    def _phases(self) -> dict[int, Phase]:
        """Positions p that are read with tap r at (p + pad - r) / stride, where the division is
        exact.

        Every stride-th position has the same taps: with p = stride q + j, tap r must be
        stride t + (j + pad) mod stride, and the read is at q - t + (j + pad) / stride.
        """
        extents = self.op.scopes[0].extents
        whole = {guard.index for operand in self.found.operands for guard in operand.guards}
        found: dict[int, Phase] = {}
        for operand in self.found.operands:
            for atom in (a for index in operand.index for a, _ in index.terms):
                phase = _phase(atom, self.rank)
                if phase is None or phase.remainder not in whole:
                    continue
                used = {p.tap for p in found.values()}
                if extents[phase.position] % phase.stride == 0 and phase.tap not in used:
                    found[phase.position] = phase
        return found

    def _group_sizes(self) -> dict[int, int]:
        """Traversals that are read only as `f // size`, with their size."""
        found: dict[int, int] = {}
        for operand in self.found.operands:
            for index in operand.index:
                for atom, _ in index.terms:
                    if isinstance(atom, FloorDiv) and len(atom.numerator.terms) == 1:
                        k, times = atom.numerator.terms[0]
                        whole = times == 1 and atom.numerator.constant == 0
                        if isinstance(k, int) and k < self.rank and whole:
                            found[k] = atom.divisor
        extents = self.op.scopes[0].extents
        return {k: size for k, size in found.items() if extents[k] % size == 0}

    def _number(self, name: str, extent: int, size: int | None) -> Index:
        """New iterators for one of the scope's: none, one, or group number and position in it."""
        if size is not None and 1 < size < extent:
            outer = self._number(f"{name}_group", extent // size, None)
            return outer * size + self._number(f"{name}_in_group", size, None)
        if extent == 1:
            return Index(0)
        self.names.append(name)
        self.extents.append(extent)
        return Index.iterator(len(self.extents) - 1)

    def _moved(self, index: Sequence[Index]) -> tuple[Index, ...]:
        return tuple(normalise(e.substitute(self.images), self.extents) for e in index)

    def _product_operand(self, operand: Operand[int]) -> ProductOperand:
        source = self.op.scopes[0].inputs[operand.read]
        index, type_ = self._moved(operand.index), self.types[source]
        guards = guards_of(index, type_.get_shape(), tuple(self.extents), None, 0.0)
        return ProductOperand(source, index, address(index, type_), guards)

    def run(self) -> MatrixProduct | None:
        sides = [self._product_operand(operand) for operand in self.found.operands]
        traversal = self._moved([Index.iterator(k) for k in range(self.rank)])
        out = address(traversal, without_halo(self.op.type))
        for first, second in (sides, sides[::-1]):
            found = self._arranged(first, second, traversal, out)
            if found is not None:
                return found
        return None

    def _arranged(
        self, a: ProductOperand, b: ProductOperand, traversal: tuple[Index, ...], out: Index
    ) -> MatrixProduct | None:
        """The contraction with these sides; None unless neighbouring results are columns."""
        for guard in (guard for operand in self.found.operands for guard in operand.guards):
            index = self._moved([guard.index])
            more = guards_of(index, (guard.extent,), tuple(self.extents), None, 1.0)
            if not _iterators(index) <= _iterators(a.index):
                return None
            a = replace(a, guards=(*a.guards, *more))
        in_a, in_b = _iterators(a.index), _iterators(b.index)
        outer = range(self.outer)
        batch = [k for k in outer if k in in_a and k in in_b]
        rows = [k for k in outer if k not in in_b]
        columns = [k for k in outer if k in in_b and k not in in_a]
        if not rows or not columns or self.outer == len(self.extents):
            return None
        nearest = min(outer, key=out.coefficient)
        if nearest not in columns and nearest not in batch:
            return None
        depth = _depth_order(range(self.outer, len(self.extents)), a, b)
        return MatrixProduct(
            tuple(self.names),
            tuple(self.extents),
            traversal,
            a,
            b,
            tuple(batch),
            tuple(sorted(rows, key=lambda k: -out.coefficient(k))),
            tuple(sorted(columns, key=lambda k: -out.coefficient(k))),
            tuple(depth),
            out,
        )


def _iterators(index: Sequence[Index]) -> frozenset[int]:
    return frozenset[int]().union(*(e.iterators for e in index))


def _depth_order(depth: Sequence[int], a: ProductOperand, b: ProductOperand) -> list[int]:
    """Summations, outermost first: last the one along which the first operand is contiguous."""

    def key(k: int) -> tuple[int, int]:
        return -abs(a.offset.coefficient(k) or (1 << 40)), -abs(b.offset.coefficient(k))

    return sorted(depth, key=key)
