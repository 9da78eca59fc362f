"""Reads and stores of tensor elements at quasi-affine addresses, scalar or vectorised.

An iterator has a number; `Point.values` gives its SSA value (or a known int). One iterator may run
over the lanes of a vector: it is then at `start`, `start + 1`, ... in the lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from ....dialects.errors import UserError
from ....dialects.index import FloorDiv, range_of
from ....dialects.index import Index as Affine
from ....dialects.types import is_narrow_float, is_small_float, is_storage, is_unsigned
from . import types
from .emitter import Emitter, Mask
from .small_floats import from_code, to_code
from .types import F32, F64, I1, I8, I32, I64, Index, Type, Value, constant

# A vector of scattered elements is read by so many loads and shuffles, or else by a gather.
MOST_LOADS = 8


@lru_cache(maxsize=64)
def memory_type(element: Attribute) -> Type:
    """How an element lies in memory: a bool or 4 bits are a byte, a bfloat or less its bits.

    LLVM has no code for much of what vectors of bfloats might do, and calls functions instead.
    """
    match element:
        case Float32Type():
            return F32
        case Float64Type():
            return F64
        case Float16Type():
            return types.F16
        case BFloat16Type():
            return types.I16
        case IntegerType() if element.width.data < 8:
            return I8
        case _ if is_small_float(element):
            return I8
        case IntegerType():
            return Type(f"i{element.width.data}")
        case _:
            raise UserError(f"no CPU type for element type {element}")


@lru_cache(maxsize=64)
def compute_type(element: Attribute) -> Type:
    """How an element is computed with: narrow floats as f32, a bool as i1, 2 and 4 bits as i32."""
    if is_narrow_float(element):
        return F32
    if isinstance(element, IntegerType) and element.width.data == 1:
        return I1
    return I32 if is_storage(element) else memory_type(element)


@dataclass(frozen=True)
class Vector:
    """The iterator that runs over lanes; `mask` says which are real (a count, or None for all).

    Iterator -1 stands for an extent of 1: a vector in which only the first lane is real. An aligned
    vector starts where its iterator is a multiple of `lanes`, or where `lane_offsets` are the same.
    """

    iterator: int
    lanes: int
    mask: Mask = None
    aligned: bool = False

    @property
    def real(self) -> int:
        """How many lanes are real, where that is a number."""
        assert not isinstance(self.mask, Value)
        return self.lanes if self.mask is None else self.mask


@dataclass
class Point:
    """A point in generated loops: values of iterators, their extents, and the vector, if any."""

    extents: tuple[int, ...]
    values: dict[int, Index] = field(default_factory=dict[int, Index])
    vector: Vector | None = None

    @property
    def lanes(self) -> int:
        return self.vector.lanes if self.vector is not None else 0

    def at(self, values: Mapping[int, Index], vector: Vector | None = None) -> Point:
        """The same point with further iterators known."""
        return Point(self.extents, {**self.values, **values}, vector or self.vector)


@dataclass(frozen=True)
class Access:
    """Elements `flat` of a buffer, valid where every guard `0 <= index < size` holds.

    `pointer` None is a tensor of ones: the value is whether the guards hold.
    """

    pointer: Value | None
    element: Attribute
    flat: Affine
    guards: tuple[tuple[Affine, int], ...] = ()
    outside: float = 0.0
    fixed: bool = False
    """Whether nothing writes the buffer while the kernel runs."""
    size: int = 0
    """Elements that may be read from the pointer on, where that is known."""

    @property
    def memory(self) -> Type:
        """The type of an element in memory."""
        return memory_type(self.element)

    def uses(self, iterator: int) -> bool:
        return iterator in self.flat.iterators or any(
            iterator in index.iterators for index, _ in self.guards
        )

    def can_be_cleared(self, vector: Vector) -> bool:
        """Whether the buffer's first vector may be read, and zeroed, in place of one outside."""
        whole = self.size >= vector.lanes and self.is_contiguous(vector.iterator)
        return whole and self.outside == 0.0

    def is_contiguous(self, iterator: int) -> bool:
        return self.flat.coefficient(iterator) == 1 and _linear(self.flat, iterator)


def _linear(index: Affine, iterator: int) -> bool:
    """Whether the iterator occurs outside floors only."""
    return all(
        iterator not in atom.numerator.iterators
        for atom, _ in index.terms
        if isinstance(atom, FloorDiv)
    )


def lane_offsets(flat: Affine, iterator: int, lanes: int, every: int = 0) -> tuple[int, ...] | None:
    """How far each lane's element lies from the first lane's; None where that varies.

    For a vector that starts at a multiple of `every`, or of `lanes`: where these are even,
    floor((iterator + 4 * k) / 2) steps once every two lanes.
    """
    every = every or lanes
    offsets = [0] * lanes
    for atom, coefficient in flat.terms:
        if isinstance(atom, int):
            step, divisor, start = int(atom == iterator), 1, 0
        elif iterator not in atom.numerator.iterators:
            continue
        else:
            step, divisor = atom.numerator.coefficient(iterator), atom.divisor
            start = atom.numerator.constant
            others = [(a, c) for a, c in atom.numerator.terms if a != iterator]
            nested = any(
                not isinstance(a, int) and iterator in a.numerator.iterators for a, _ in others
            )
            if nested or step * every % divisor or any(c % divisor for _, c in others):
                return None
        for lane in range(lanes):
            offsets[lane] += coefficient * ((start + step * lane) // divisor - start // divisor)
    return tuple(offsets)


def _known_offsets(flat: Affine, vector: Vector, point: Point) -> tuple[int, ...] | None:
    """`lane_offsets` where the iterators that a floor has beside the vector's are known numbers."""
    first = point.values.get(vector.iterator, 0)
    moving = [(a, c) for a, c in flat.terms if vector.iterator in Affine(0, ((a, 1),)).iterators]
    needed = {k for a, _ in moving if not isinstance(a, int) for k in a.numerator.iterators}
    known = {k: v for k, v in point.values.items() if k in needed and isinstance(v, int)}
    if not isinstance(first, int) or needed - known.keys() - {vector.iterator}:
        return None
    values: list[np.ndarray | int] = [known.get(k, 0) for k in range(max(needed, default=0) + 1)]
    lanes = np.arange(vector.lanes) + first
    if vector.iterator < len(values):
        values[vector.iterator] = lanes
    offsets = np.zeros(vector.lanes, np.int64)
    for atom, c in moving:
        offsets += c * (
            lanes if isinstance(atom, int) else Affine(0, ((atom, 1),)).evaluate(values)
        )
    return tuple(int(k) for k in offsets - offsets[0])


def emit_index(b: Emitter, index: Affine, point: Point) -> Index:
    """Value of an index expression, the vector iterator (if any) at its first lane."""
    total: Index = index.constant
    for atom, coefficient in index.terms:
        value = point.values[atom] if isinstance(atom, int) else _floor(b, atom, point)
        if isinstance(value, int) and isinstance(total, int):
            total += value * coefficient
        else:
            total = b.add(total, b.mul(value, coefficient))
    return total


def _floor(b: Emitter, atom: FloorDiv, point: Point) -> Index:
    """floor(numerator / divisor); a known lower bound lets it be an unsigned division."""
    low = range_of(atom.numerator, point.extents)[0]
    lift = max(0, -(low // atom.divisor))
    value = b.add(emit_index(b, atom.numerator, point), lift * atom.divisor)
    if isinstance(value, int):
        return value // atom.divisor - lift
    return b.sub(b.div(value, atom.divisor, signed=False), lift)


def _lane_index(b: Emitter, index: Affine, point: Point) -> Value:
    """Value of an index expression in every lane, as a vector of i64."""
    vector = point.vector
    assert vector is not None
    if _linear(index, vector.iterator):
        base = b.broadcast(b.value(emit_index(b, index, point), I64), vector.lanes)
        steps = b.mul(b.iota(I64, vector.lanes), index.coefficient(vector.iterator))
        return b.add(base, steps)
    total = constant(I64.vector(vector.lanes), index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, int):
            part = _lane_index(b, Affine.iterator(atom), point)
        else:
            low = range_of(atom.numerator, point.extents)[0]
            lift = max(0, -(low // atom.divisor))
            lifted = b.add(_lane_index(b, atom.numerator, point), lift * atom.divisor)
            part = b.sub(b.div(lifted, atom.divisor, signed=False), lift)
        total = b.add(total, b.mul(part, coefficient))
    return total


def read(b: Emitter, access: Access, point: Point) -> Value:
    """Load (in the compute type); in a vector if there is one, `outside` where a guard fails."""
    vector = point.vector
    if vector is None or not access.uses(vector.iterator):
        scalar = _read_scalar(b, access, Point(point.extents, point.values))
        return b.broadcast(scalar, point.lanes)
    return _read_vector(b, access, point, vector)


def _read_scalar(b: Emitter, access: Access, point: Point) -> Value:
    condition: Value | None = None
    for index, size in access.guards:
        inside = _inside(b, b.value(emit_index(b, index, point), I64), size)
        condition = inside if condition is None else b.logic("and", condition, inside)
    target = compute_type(access.element)
    if access.pointer is None:
        one = constant(target, 1)
        return one if condition is None else b.select(condition, one, constant(target, 0))
    offset = emit_index(b, access.flat, point)
    if condition is not None:  # an address that is not valid is replaced before the load
        offset = b.select(condition, b.value(offset, I64), constant(I64, 0))
    value = to_compute(
        b,
        b.load(memory_type(access.element), access.pointer, offset, pure=access.fixed),
        access.element,
    )
    return (
        value if condition is None else b.select(condition, value, constant(target, access.outside))
    )


def _inside(b: Emitter, index: Value, size: int) -> Value:
    return b.compare("lt", index, size, signed=False)


def _read_vector(b: Emitter, access: Access, point: Point, vector: Vector) -> Value:
    lanes = vector.lanes
    shared, own = _conditions(b, access, point, vector)
    guard = own if shared is None else b.broadcast(shared, lanes)
    if shared is not None and own is not None:
        guard = b.logic("and", guard, own)  # pyright: ignore[reportArgumentType]
    real = b.mask(vector.mask, lanes)
    target = compute_type(access.element).vector(lanes)
    if access.pointer is None:
        assert guard is not None
        return b.select(guard, constant(target, 1), constant(target, 0))
    mask = guard if real is None else real if guard is None else b.logic("and", guard, real)
    dtype = memory_type(access.element).vector(lanes)
    if shared is not None and own is None and real is None and access.can_be_cleared(vector):
        offset = b.select(shared, b.value(emit_index(b, access.flat, point), I64), constant(I64, 0))
        value = cleared(b, b.load(dtype, access.pointer, offset, pure=access.fixed), shared)
    elif access.is_contiguous(vector.iterator):
        offset = emit_index(b, access.flat, point)
        if shared is not None:  # no lane is read, but far outside even that is slow
            offset = b.select(shared, b.value(offset, I64), constant(I64, 0))
        value = b.load(dtype, access.pointer, offset, mask=mask, pure=access.fixed)
    elif guard is None and (picks := _picks(access, vector, point)) is not None:
        first = b.add(emit_index(b, access.flat, point), min(picks))
        moved = [k - min(picks) for k in picks]
        value = load_picked(b, dtype, access.pointer, first, moved, pure=access.fixed)
    else:
        value = b.gather(dtype, access.pointer, _lane_index(b, access.flat, point), mask=mask)
    value = to_compute(b, value, access.element)
    if guard is None or access.outside == 0.0:
        return value
    return b.select(guard, value, constant(target, access.outside))


def cleared(b: Emitter, value: Value, kept: Value) -> Value:
    """The value, or zeros: by its bits, as a condition would be made the mask of a slow load."""
    bits = Type(f"i{value.type.bits}").vector(value.type.lanes)
    mask = b.broadcast(b.sub(0, b.cast(kept, bits.element)), value.type.lanes)
    return b.bitcast(b.logic("and", b.bitcast(value, bits), mask), value.type)


def _picks(access: Access, vector: Vector, point: Point) -> list[int] | None:
    """Offsets of the real lanes where a few loads and shuffles read them; None for a gather."""
    if isinstance(vector.mask, Value):
        return None
    offsets = _known_offsets(access.flat, vector, point)
    if offsets is None and (vector.aligned or not access.flat.has_floor):
        offsets = lane_offsets(access.flat, vector.iterator, vector.lanes)
    if offsets is None:
        return None
    picks = offsets[: vector.mask]
    return list(picks) if max(picks) - min(picks) < MOST_LOADS * vector.lanes else None


def load_picked(
    b: Emitter,
    dtype: Type,
    pointer: Value,
    first: Index,
    picks: Sequence[int],
    *,
    pure: bool = False,
) -> Value:
    """Elements `first + picks[lane]`, the least of which is 0: loads of the range, then shuffles.

    Nothing past the last element is read: where less than a vector is, it takes one or two loads of
    fewer lanes, as a masked load that crosses a cache line is slow. Lanes without a pick hold
    anything.
    """
    lanes, span = dtype.lanes, max(picks) + 1
    size = min(lanes, 1 << (span.bit_length() - 1))
    starts = sorted({*range(0, span - size, size), span - size})
    part = dtype.vector(size)
    loads = [b.load(part, pointer, b.add(first, s), pure=pure) for s in starts]
    sources = [min(pick // size, len(starts) - 1) for pick in picks]
    chosen = [k * size + pick - starts[k] for k, pick in zip(sources, picks, strict=True)]
    chosen += [chosen[0]] * (lanes - len(picks))
    return b.pick(loads, chosen) if size == lanes else b.shuffle(loads[0], chosen, *loads[1:])


def _conditions(
    b: Emitter, access: Access, point: Point, vector: Vector
) -> tuple[Value | None, Value | None]:
    """Whether the guards that no lane decides hold, and a mask of those that lanes decide."""
    shared: Value | None = None
    own: Value | None = None
    for index, size in access.guards:
        if vector.iterator in index.iterators:
            inside = _inside(b, _lane_index(b, index, point), size)
            own = inside if own is None else b.logic("and", own, inside)
        else:
            inside = _inside(b, b.value(emit_index(b, index, point), I64), size)
            shared = inside if shared is None else b.logic("and", shared, inside)
    return shared, own


def store(b: Emitter, value: Value, access: Access, point: Point, *, nontemporal: int = 0) -> None:
    """Store a value of the compute type; lanes that are not real are left alone."""
    assert access.pointer is not None
    value = to_memory(b, value, access.element)
    vector = point.vector
    if vector is None:
        b.store(value, access.pointer, emit_index(b, access.flat, point))
    elif access.is_contiguous(vector.iterator):
        offset = emit_index(b, access.flat, point)
        b.store(value, access.pointer, offset, mask=vector.mask, nontemporal=nontemporal)
    else:
        offsets = _lane_index(b, access.flat, point)
        b.scatter(value, access.pointer, offsets, mask=b.mask(vector.mask, vector.lanes))


def to_compute(b: Emitter, value: Value, element: Attribute) -> Value:
    """Convert what was loaded to the type it is computed with."""
    if isinstance(element, BFloat16Type):
        return b.from_bfloat_bits(value)
    if is_small_float(element):
        return from_code(b, value, element)
    return narrowed(b, b.cast(value, compute_type(element)), element)


def narrowed(b: Emitter, value: Value, element: Attribute, *, signed: bool | None = None) -> Value:
    """An integer in the bits of a type of less than a byte: the others say nothing.

    Nests know no signs: there `signed` is said by the op that converts.
    """
    if not is_storage(element):
        return value
    assert isinstance(element, IntegerType)
    gap = value.type.bits - element.width.data
    signed = not is_unsigned(element) if signed is None else signed
    wide = b.logic("shl", value, gap)
    return b.logic("ashr" if signed else "lshr", wide, gap)


def rounded(b: Emitter, value: Value, element: Attribute) -> Value:
    """What a tensor holds of a computed value, in the compute type: narrow floats are rounded."""
    if not is_narrow_float(element):
        return value
    return to_compute(b, to_memory(b, value, element), element)


def to_memory(b: Emitter, value: Value, element: Attribute) -> Value:
    """Convert what was computed to the type that is stored."""
    if isinstance(element, BFloat16Type):
        return b.bfloat_bits(value)
    if is_small_float(element):
        return to_code(b, value, element)
    return b.cast(value, memory_type(element))
