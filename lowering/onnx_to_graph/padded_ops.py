"""Ops that look across a padded dim: the padding becomes a number that changes nothing.

A sum reads zeros there, a maximum the least number, an index is 0 where no result is kept, and
nothing is scattered from padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_float, shape_of, to_numpy
from . import bounded
from .node import OnnxNode
from .padded import PaddedDim, Reading, Ready, greatest, least, same_count
from .reductions import axes_of
from .values import OnnxValue

Handler = Callable[[Reading], "Ready | None"]
"""What becomes of a node; None where no padding is in its way."""


# --- along axes ---


def _reduction(neutral: Callable[[SSAValue], Any]) -> Handler:
    def handle(reading: Reading) -> Ready:
        node, rows = reading.node, reading.given[0]
        axes = axes_of(node)
        if axes is None or rows.dim not in axes:
            return Ready(node, dims=[_left(reading, axes or [])])
        return Ready(reading.with_operands({0: reading.filled(0, neutral(node[0]))}), dims=[None])

    return handle


def _left(reading: Reading, axes: list[int]) -> PaddedDim:
    """The padded dim where others are reduced."""
    rows = reading.given[0]
    if not axes or reading.node.flag("keepdims", True):
        return rows
    return PaddedDim(rows.dim - sum(1 for axis in axes if axis < rows.dim), rows.count)


def _mean(reading: Reading) -> Ready:
    """The sum by the number of rows."""
    node, build, rows = reading.node, reading.build, reading.given[0]
    axes = axes_of(node)
    if axes is None or rows.dim not in axes:
        return Ready(node, dims=[_left(reading, axes or [])])
    x = reading.filled(0, 0).ssa(build, node.fresh, node.where)
    element = element_of(x)
    narrow = is_float(element) and to_numpy(element).itemsize < 4
    total = build.reduce_sum(
        node.cast(x, f32) if narrow else x, axes=axes, keep_dims=node.flag("keepdims", True)
    )
    others = math.prod(node.shape(0)[axis] for axis in axes if axis != rows.dim)
    count = build.mul(rows.count, reading.number(others))
    count = build.expand(node.cast(count, element_of(total)), shape_of(total))
    return Ready(results=[node.cast(build.div(total, count), element)], dims=[None])


def _extremum(neutral: Callable[[SSAValue], Any]) -> Handler:
    def handle(reading: Reading) -> Ready:
        node, rows = reading.node, reading.given[0]
        axis = node.axis(node.int("axis", 0), reading.rank(0))
        if axis != rows.dim:
            return Ready(node, dims=[_left(reading, [axis])])
        if node.flag("select_last_index"):
            raise reading.unfit()
        return Ready(reading.with_operands({0: reading.filled(0, neutral(node[0]))}), dims=[None])

    return handle


def _softmax(reading: Reading) -> Ready:
    node, rows = reading.node, reading.given[0]
    old = node.version < 13  # then all dims from the axis on are one
    axis = node.axis(node.int("axis", 1 if old else -1), reading.rank(0))
    if (rows.dim < axis) if old else (rows.dim != axis):
        return Ready(node, dims=[rows])
    return Ready(reading.with_operands({0: reading.filled(0, least(node[0]))}), dims=[rows])


def _running(neutral: int) -> Handler:
    def handle(reading: Reading) -> Ready:
        rows = reading.given[0]
        return Ready(reading.with_operands({0: reading.filled(0, neutral)}), dims=[rows])

    return handle


# --- rows put together ---


def _concat(reading: Reading) -> Ready | None:
    """Along the padded dim: the rows of each part behind those of the parts before."""
    node, build = reading.node, reading.build
    rank = reading.rank(0)
    axis = node.axis(node.int("axis", 0), rank)
    if any(rows.dim != axis for rows in reading.given.values()):
        return None
    joined = build.concat(*node.operands(), axis=axis)
    size = shape_of(joined)[axis]
    places = node.data(np.arange(size, dtype=np.int64), "places")
    total, base, shift, before = reading.number(0), 0, places, reading.number(0)
    for k in range(len(node)):
        # Where part k begins in the result, its rows are `base - total` further on.
        distance = build.sub(reading.number(base), total)
        step = build.expand(build.sub(distance, before), [size])
        here = build.greater_equal(places, build.expand(total, [size]))
        shift = build.add(shift, build.where(here, step, node.literal(0, step)))
        count = reading.dims(k)[axis]
        total = build.add(total, reading.number(count) if isinstance(count, int) else count)
        base, before = base + node.shape(k)[axis], distance
    last = node.literal(size - 1, shift)
    return Ready(
        results=[build.gather(joined, build.min(shift, last), axis=axis)],
        dims=[PaddedDim(axis, total)],
    )


# --- positions ---


def _counted(reading: Reading, k: int, limits: SSAValue, sizes: SSAValue) -> SSAValue:
    """Indices into a padded dim: negative ones from the last row that counts, others checked.

    Args:
        limits, sizes: the rows that count and the rows there are, broadcast to the indices.
    """
    node, build = reading.node, reading.build
    index = node.cast(node[k], i64)
    zero = node.literal(0, index)
    index = build.where(build.less(index, zero), build.add(index, limits), index)
    outside = build.or_(build.less(index, zero), build.greater_equal(index, limits))
    return build.where(outside, sizes, index)


def _indices(reading: Reading, dim: int | None) -> OnnxValue:
    """Operand 1, its padding 0, as positions along a dim of operand 0."""
    node, build = reading.node, reading.build
    found = node[1]
    if 0 in reading.given and reading.given[0].dim == dim:
        shape, rows = node.shape(1), reading.given[0]
        sizes = node.literal(node.shape(0)[rows.dim], node.cast(found, i64))
        found = _counted(reading, 1, build.expand(rows.count, shape), sizes)
    if 1 in reading.given:
        found = build.where(reading.inside(1), found, node.literal(0, found))
    return OnnxValue.of_ssa("", found)


def _gather(reading: Reading) -> Ready:
    node, given = reading.node, reading.given
    axis = node.axis(node.int("axis", 0), reading.rank(0))
    found: PaddedDim | None = None
    if 1 in given:
        found = PaddedDim(axis + given[1].dim, given[1].count)
    if 0 in given and given[0].dim != axis:
        if found is not None:
            raise reading.unfit()
        dim = given[0].dim
        found = PaddedDim(dim if dim < axis else dim + reading.rank(1) - 1, given[0].count)
    return Ready(reading.with_operands({1: _indices(reading, axis)}), dims=[found])


def _gather_elements(reading: Reading) -> Ready:
    node, given = reading.node, reading.given
    axis = node.axis(node.int("axis", 0), reading.rank(0))
    if 0 in given and given[0].dim != axis:
        both = 1 in given and given[1].dim == given[0].dim
        if not both or not same_count(given[0].count, given[1].count):
            raise reading.unfit()
    return Ready(reading.with_operands({1: _indices(reading, axis)}), dims=[given.get(1)])


def _columns(reading: Reading) -> SSAValue:
    """Index tuples of GatherND and ScatterND into operand 0, counted in its true dims."""
    node, build, shape = reading.node, reading.build, reading.node.shape(1)
    first, depth = node.int("batch_dims", 0), shape[-1]
    dim = reading.given[0].dim if 0 in reading.given else -1
    if dim < 0 or dim >= first + depth:
        return node[1]
    limits = reading.vector(reading.dims(0)[first : first + depth])
    sizes = reading.vector(list(node.shape(0)[first : first + depth]))
    return _counted(reading, 1, build.expand(limits, shape), build.expand(sizes, shape))


def _gather_nd(reading: Reading) -> Ready:
    node, given, build = reading.node, reading.given, reading.build
    batch, depth = node.int("batch_dims", 0), node.shape(1)[-1]
    if batch and 0 in given:
        raise reading.unfit()
    index, found = _columns(reading), None
    if 1 in given:
        if given[1].dim >= reading.rank(1) - 1:
            raise reading.unfit()
        index = build.where(reading.inside(1), index, node.literal(0, index))
        found = given[1]
    if 0 in given and given[0].dim >= depth:
        if found is not None:
            raise reading.unfit()
        found = PaddedDim(given[0].dim - depth + reading.rank(1) - 1, given[0].count)
    return Ready(reading.with_operands({1: OnnxValue.of_ssa("", index)}), dims=[found])


def _scatter(reading: Reading) -> Ready:
    """The rows that count are applied; indices are counted in the true dims."""
    node, given, mine = reading.node, reading.given, reading.given.get(0)
    nd, shape = node.op_type == "ScatterND", node.shape(0)
    sources = [rows for k, rows in given.items() if k]
    if nd and mine is not None and mine.dim >= node.shape(1)[-1]:
        if sources:
            raise reading.unfit()
        return Ready(node, dims=[mine])
    if mine is not None:
        axis = 0 if nd else node.axis(node.int("axis", 0), reading.rank(0))
        chosen = range(node.shape(1)[-1]) if nd else [axis]  # the dims that indices are of
        limits, past = (
            reading.build.expand(reading.vector(v), node.shape(1))
            for v in ([reading.dims(0)[d] for d in chosen], [shape[d] for d in chosen])
        )
        index = OnnxValue.of_ssa("", _counted(reading, 1, limits, past))
        node = reading.with_operands({1: index})
    if not sources:
        return Ready(node, dims=[mine])
    rows = sources[0]
    if any(other.dim != rows.dim for other in sources) or not _fits(node, rows.dim):
        raise reading.unfit()
    return Ready(results=bounded.scatter(node, rows), dims=[mine])


def _fits(node: OnnxNode, dim: int) -> bool:
    """Whether updates are as many as indices; of dim 0, of which the first rows are read, more."""
    indices, updates = node.shape(1), node.shape(2)
    if node.op_type == "ScatterND":
        indices, updates = indices[:-1], updates[: len(indices) - 1]
    return dim < len(indices) and all(
        n == m or k == dim == 0 for k, (n, m) in enumerate(zip(indices, updates, strict=True))
    )


# --- others ---


def _product(reading: Reading) -> Ready:
    """A padded dim of rows or columns goes on; one that is summed over reads zeros."""
    node, given = reading.node, reading.given
    turned = [node.op_type == "Gemm" and node.flag(name) for name in ("transA", "transB")]
    ranks = [reading.rank(k) for k in (0, 1)]
    out = max(ranks)
    if not set(given) <= {0, 1} or min(ranks) < 2 or (node.has(2) and node.op_type == "MatMul"):
        raise reading.unfit()
    summed = [ranks[0] - (2 if turned[0] else 1), ranks[1] - (1 if turned[1] else 2)]
    filled: dict[int, OnnxValue] = {}
    found: PaddedDim | None = None
    for k, rows in given.items():
        if rows.dim == summed[k]:
            filled[k] = reading.filled(k, 0)
            continue
        free = rows.dim >= ranks[k] - 2
        dim = (out - 2 + k) if free else rows.dim + out - ranks[k]
        if not free and node.shape(1 - k)[:-2] not in ((), (1,) * (ranks[1 - k] - 2)):
            raise reading.unfit()
        if found is not None:
            raise reading.unfit()
        found = PaddedDim(dim, rows.count)
    return Ready(reading.with_operands(filled), dims=[found])


def _chosen(number: Any) -> Handler:
    """NonZero and Compress choose nothing of the padding."""

    def handle(reading: Reading) -> Ready:
        node, given = reading.node, reading.given
        k = 0 if node.op_type == "NonZero" else 1
        if node.op_type == "Compress" and 0 in given:
            along = node.axis(node.int("axis", 0), reading.rank(0))
            flat = "axis" not in node.attributes and reading.rank(0) > 1
            if flat or given[0].dim != along:
                raise reading.unfit()
        if k not in given:
            raise reading.unfit()
        return Ready(reading.with_operands({k: reading.filled(k, number)}))

    return handle


def _suppression(reading: Reading) -> Ready:
    """The scores of padding are below any threshold; without one, below the least number."""
    node = reading.node
    if 1 not in reading.given or set(reading.given) - {0, 1}:
        raise reading.unfit()
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    inputs = [*node.inputs, *[None] * (5 - len(node.inputs))]
    if inputs[4] is None:
        names = [*proto.input, *[""] * (5 - len(proto.input))]
        names[4] = "least"
        del proto.input[:]
        proto.input.extend(names)
        inputs[4] = OnnxValue.of_array("least", np.asarray([np.finfo(np.float32).min], np.float32))
    inputs[1] = reading.filled(1, -math.inf)
    return Ready(OnnxNode(proto, node.version, inputs, node.build, node.fresh))


def _regions(reading: Reading) -> Ready:
    """RoiAlign and MaxRoiPool: one result for each region; padding reads the first image."""
    given = reading.given
    if 0 in given or not all(rows.dim == 0 for rows in given.values()):
        raise reading.unfit()
    return Ready(
        reading.with_operands({k: reading.filled(k, 0) for k in given}),
        dims=[next(iter(given.values()))],
    )


def _zero(_: SSAValue) -> int:
    return 0


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(
        ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"), _reduction(_zero)
    ),
    "ReduceProd": _reduction(lambda _: 1),
    "ReduceMax": _reduction(least),
    "ReduceMin": _reduction(greatest),
    "ReduceLogSumExp": _reduction(least),
    "ReduceMean": _mean,
    "ArgMax": _extremum(least),
    "ArgMin": _extremum(greatest),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "CumSum": _running(0),
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "MatMul": _product,
    "Gemm": _product,
    "NonZero": _chosen(0),
    "Compress": _chosen(0),
    "NonMaxSuppression": _suppression,
    "RoiAlign": _regions,
    "MaxRoiPool": _regions,
}
