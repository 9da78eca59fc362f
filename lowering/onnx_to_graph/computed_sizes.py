"""Ops whose sizes the program computes: Shape of padded values, and what is made of such numbers.

The largest size comes from the ranges of what decides it (value_ranges.py); the result is as large
as that, with the number itself as its count. Sizes that inputs alone decide are left to sessions,
which import the model for each (`NotConstant`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, is_signed_int, to_numpy
from .padded import PaddedDim, Reading, Ready, greatest, least, moved
from .padded_ops import Handler
from .shaping import MAX_CONSTANT
from .value_ranges import by_inputs_alone
from .values import OnnxValue


def element_ranges(reading: Reading, k: int) -> list[tuple[int, int]] | None:
    """The range of each element of an integer operand; None if it is known, or inputs decide it."""
    value = reading.node.value(k)
    if (
        value.is_known
        or value.computed is None
        or by_inputs_alone(value.computed, reading.sizes.ranges)
    ):
        return None
    found, count = reading.range(k), math.prod(value.shape)
    if found is None:
        return [(-(1 << 62), 1 << 62)] * count
    ends = [found.at(j) for j in range(count)]
    return [(int(max(low, -(1 << 62))), int(min(high, 1 << 62))) for low, high in ends]


def open_places(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The elements that only data decide."""
    return [k for k, (low, high) in enumerate(pairs) if low != high]


def bounded_size(reading: Reading, size: int) -> int:
    """A largest size. Raises UserError where nothing bounds it."""
    if size > MAX_CONSTANT:
        raise UserError(
            "nothing bounds a size that data decide",
            where=reading.node.where,
            hint="bound it in the model: Min of the size and a constant",
        )
    return max(size, 0)


def known_ints(numbers: Sequence[int]) -> OnnxValue:
    """Numbers as an operand."""
    return OnnxValue.of_array("", np.asarray(numbers, np.int64))


# --- sizes of padded values ---


def _shape(reading: Reading) -> Ready:
    node = reading.node
    dims = reading.dims(0)
    start, end = node.int("start", 0), node.int("end", len(dims))
    found = dims[slice(start, end)]
    if not found:
        return Ready(node)
    return Ready(results=[reading.vector(found)], dims=[None])


def _size(reading: Reading) -> Ready:
    others = math.prod(d for d in reading.dims(0) if isinstance(d, int))
    count = reading.given[0].count
    return Ready(results=[reading.build.mul(count, reading.number(others))], dims=[None])


# --- results as large as computed numbers say ---


def _top_k(reading: Reading) -> Ready | None:
    node, build, rows = reading.node, reading.build, reading.given.get(0)
    if set(reading.given) - {0}:
        raise reading.unfit()
    axis = node.axis(node.int("axis", -1), reading.rank(0))
    along = rows is not None and rows.dim == axis
    chosen = element_ranges(reading, 1) if node.version >= 10 else None
    if chosen is None and not along:
        return None if rows is None else Ready(node, dims=[rows, rows])
    if rows is not None and not along:
        raise reading.unfit()
    limit = node.shape(0)[axis]
    if chosen is None and node.version < 10:
        raise reading.unfit()
    high = int(node.constant_ints(1, "k")[0]) if chosen is None else max(chosen[0][1], 0)
    size = min(high, limit)
    count = reading.number(size) if chosen is None else reading.whole(1, 0)
    inputs = {1: known_ints([size])}
    if rows is not None:
        fill = least if node.int("largest", 1) else greatest
        inputs[0] = reading.filled(0, fill(node[0]))
        count = build.min(count, rows.count)
    found = PaddedDim(axis, count)
    return Ready(reading.with_operands(inputs), dims=[found, found])


def _range(reading: Reading) -> Ready | None:
    node, build = reading.node, reading.build
    ends = [element_ranges(reading, k) for k in range(3)]
    if all(e is None for e in ends) or any(
        e is None and not node.value(k).is_known for k, e in enumerate(ends)
    ):
        return None
    step = node.known(2)
    if step is None or not step.size:
        return None
    if is_float(element_of(node[0])):
        return _range_of_floats(reading, float(step.ravel()[0]))
    if not is_signed_int(element_of(node[0])):
        return None
    by = int(step.ravel()[0])
    if by == 0:
        raise UserError("the step is zero")
    start, limit = (node.cast(node.reshape(node[k], []), i64) for k in (0, 1))
    known = [
        e[0] if e else (int(node.value(k).array().ravel()[0]),) * 2 for k, e in enumerate(ends[:2])
    ]
    (low, high), (first, last) = known
    most = (last - low) if by > 0 else (high - first)
    size = bounded_size(reading, -(-most // abs(by)))
    apart = build.sub(limit, start) if by > 0 else build.sub(start, limit)
    if by > 0 and low == high == 0:
        apart = limit
    least_apart = (first - high) if by > 0 else (low - last)
    count = rounded_up(reading, apart, abs(by), least_apart)
    places = node.data(np.arange(size, dtype=np.int64) * by, "range")
    found = node.cast(build.add(build.expand(start, [size]), places), element_of(node[0]))
    return Ready(results=[found], dims=[PaddedDim(0, count)])


def _range_of_floats(reading: Reading, by: float) -> Ready | None:
    """None where nothing bounds its size: it may be an input that a session reads as it comes."""
    node, build, element = reading.node, reading.build, element_of(reading.node[0])
    start, limit = (node.reshape(node[k], []) for k in (0, 1))
    found = [reading.range(k) for k in (0, 1)]
    if by == 0:
        raise UserError("the step is zero")
    (low, high), (first, last) = ((-math.inf, math.inf) if r is None else r.at(0) for r in found)
    most = (last - low) / by if by > 0 else (first - high) / by
    if not most < MAX_CONSTANT:
        return None
    size = math.ceil(max(most, 0)) + 1  # differences are rounded
    steps = build.div(node.cast(build.sub(limit, start), f64), node.scalar(by, f64))
    steps = build.max(build.ceil(steps), node.scalar(0, f64))
    count = node.cast(build.min(steps, node.scalar(size, f64)), i64)
    places = node.data((np.arange(size) * by).astype(to_numpy(element)), "range")
    values = build.add(build.expand(start, [size]), places)
    return Ready(results=[values], dims=[PaddedDim(0, count)])


def rounded_up(reading: Reading, number: SSAValue, by: int, low: int = -1) -> SSAValue:
    """A number, `low` at least, by another, rounded up; at least 0."""
    build = reading.build
    if low < 0:
        number = build.max(number, reading.number(0))
    if by == 1:
        return number
    return build.div(build.add(number, reading.number(by - 1)), reading.number(by))


def _expand(reading: Reading) -> Ready | None:
    """Also ConstantOfShape: one dim of the shape is computed."""
    node, made = reading.node, reading.node.op_type == "ConstantOfShape"
    k = 0 if made else 1
    ends = element_ranges(reading, k)
    rows = None if made else reading.given.get(0)
    if k in reading.given:
        raise reading.unfit()
    if ends is None:
        lead = 0 if rows is None else len(node.constant_ints(1, "the shape")) - reading.rank(0)
        if rows is None:
            return None
        return Ready(node, dims=[PaddedDim(rows.dim + max(lead, 0), rows.count)])
    own = () if made else node.shape(0)
    full: list[int] = []
    dynamic: list[PaddedDim] = []
    rank = max(len(ends), len(own))
    if rows is not None:
        dynamic.append(PaddedDim(rank - len(own) + rows.dim, rows.count))
    for j, (low, high) in enumerate(ends):
        at, mine = rank - len(ends) + j, rank - len(own)
        size = own[at - mine] if at >= mine else 1
        full.append(high if size == 1 else size if low != high else max(low, 1))
        if low == high or (size != 1 and not dynamic):
            continue
        if dynamic and dynamic[0].dim == at:
            full[-1] = own[at - mine]
        else:
            full[-1] = bounded_size(reading, high)
            dynamic.append(PaddedDim(at, reading.whole(k, j)))
    if len(dynamic) > 1:
        raise two_dims(reading)
    return Ready(reading.with_operands({k: known_ints(full)}), dims=dynamic or [None])


def two_dims(reading: Reading) -> UserError:
    """The error of a result of which data decide more than one dim."""
    return UserError(
        "data decide two of its dims", where=reading.node.where, hint="one dim may depend on data"
    )


def _reshape(reading: Reading) -> Ready | None:
    """To a computed shape; rows of several dims may become one dim, or the other way round."""
    node, rows = reading.node, reading.given.get(0)
    ends = element_ranges(reading, 1) if node.version >= 5 else None
    if ends is None and rows is None:
        return None
    if 1 in reading.given:
        raise reading.unfit()
    shape = [low for low, _ in ends] if ends else _given_shape(reading)
    unknown = open_places(ends) if ends else []
    if len(unknown) > 1:
        raise two_dims(reading)
    if not node.flag("allowzero"):
        shape = [
            node.shape(0)[k] if n == 0 and k not in unknown else n for k, n in enumerate(shape)
        ]
    for k in unknown:
        if -1 in (n for j, n in enumerate(shape) if j != k):
            if rows is None:
                raise two_dims(reading)
            shape[k] = node.shape(0)[rows.dim]
        else:
            shape[k] = -1
    total, rest = math.prod(node.shape(0)), math.prod(n for n in shape if n != -1)
    if -1 in shape and (rest == 0 or total % rest):
        raise reading.unfit() if rows is not None else two_dims(reading)
    shape = [total // rest if n == -1 else n for n in shape]
    if math.prod(shape) != total:
        raise (
            reading.unfit()
            if rows is not None
            else UserError(
                "the shape holds another number of elements", found=shape, where=node.where
            )
        )
    ready = reading.with_operands({1: known_ints(shape)})
    return Ready(ready, dims=[None if rows is None else _regrouped(reading, shape)])


def _given_shape(reading: Reading) -> list[int]:
    node = reading.node
    return node.ints("shape") if node.version < 5 else node.constant_ints(1, "the shape")


def _regrouped(reading: Reading, shape: Sequence[int]) -> PaddedDim:
    """The padded dim of a reshaped value. Raises UserError where the rows are torn apart."""
    rows, own = reading.given[0], reading.node.shape(0)
    dim = moved(reading, shape)
    if dim is not None:
        return PaddedDim(dim, rows.count)
    before, inner = math.prod(own[: rows.dim]), math.prod(own[rows.dim + 1 :])
    for k, n in enumerate(shape):
        after = math.prod(shape[k + 1 :])
        if math.prod(shape[:k]) != before or n == 0 or after == 0:
            continue
        count = reading.build.mul(rows.count, reading.number(inner))
        return PaddedDim(k, rounded_up(reading, count, after))
    raise reading.unfit()


HANDLERS: Mapping[str, Handler] = {
    "Shape": _shape,
    "Size": _size,
    "TopK": _top_k,
    "Range": _range,
    "Expand": _expand,
    "ConstantOfShape": _expand,
    "Reshape": _reshape,
}

# Ops that padding does not bring here, but computed sizes do, and which operands decide those.
SIZED: Mapping[str, Sequence[int]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Pad": (1,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Slice": (1, 2),
    "Tile": (1,),
    "TopK": (1,),
}


def decided_by_data(reading: Reading) -> bool:
    """Whether data, beyond integer inputs, decide the sizes of a node's results."""
    node = reading.node
    places = [k for k in SIZED.get(node.op_type, ()) if node.has(k)]
    return any(element_ranges(reading, k) is not None for k in places)


__all__ = [
    "HANDLERS",
    "SIZED",
    "bounded_size",
    "decided_by_data",
    "element_ranges",
    "known_ints",
    "open_places",
    "rounded_up",
    "two_dims",
]
