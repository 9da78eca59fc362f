"""Slices, gathers and scatters at positions that are data.

A gather reads from the operand with its indexed dims in front, as one: the place of an element
there is computed from the starts, and `graph.gather` reads whole rows. A scatter writes to the same
form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_bool, shape_of, tensor
from .combiners import combiner
from .node import Converter, HloNode


def dynamic_slice(n: HloNode) -> SSAValue:
    """A part whose start is data, moved inside the operand where it would leave it."""
    x, sizes = n[0], n.ints("sizes", "slice_sizes")
    for axis, size in enumerate(sizes):
        length = shape_of(x)[axis]
        if size == length:
            continue
        start = n[1 + axis]
        known = n.number_of(start)
        if known is not None:
            x = n.slice(x, axis, min(max(int(known), 0), length - size), size)
            continue
        if size == 0:
            x = n.slice(x, axis, 0, 0)
            continue
        place = _clamped(n, start, length - size)
        places = n.expand(place, [size])
        if size > 1:
            places = n.op("add", places, n.iota(size, i64))
        x = n.op("gather", x, places, axis=axis)
    return x


def _clamped(n: HloNode, start: SSAValue, most: int) -> SSAValue:
    """Starts as i64, inside [0, most]."""
    wide = n.cast(start, i64)
    return n.op("min", n.op("max", wide, n.literal(0, wide)), n.literal(most, wide))


def dynamic_update_slice(n: HloNode) -> SSAValue:
    """The operand with a part replaced: from the update where its position is inside that."""
    x, update = n[0], n[1]
    shape, sizes = shape_of(x), shape_of(update)
    if shape == sizes:
        return update
    if 0 in sizes:
        return x
    inside: SSAValue | None = None
    for axis, (length, size) in enumerate(zip(shape, sizes, strict=True)):
        if size == length:
            continue
        start = n.expand(_clamped(n, n[2 + axis], length - size), [length])
        place = n.op("sub", n.iota(length, i64), start)
        last = n.literal(size - 1, place)
        here = n.op(
            "and",
            n.op("greater_equal", place, n.literal(0, place)),
            n.op("less_equal", place, last),
        )
        if size == 1:
            update = n.broadcast(update, _with(shape_of(update), axis, length), _all(shape))
        else:
            near = n.op("min", n.op("max", place, n.literal(0, place)), last)
            update = n.op("gather", update, near, axis=axis)
        here = n.along(here, shape, axis)
        inside = here if inside is None else n.op("and", inside, here)
    assert inside is not None
    return n.op("where", inside, update, x)


def _with(shape: Sequence[int], axis: int, size: int) -> list[int]:
    return [size if k == axis else m for k, m in enumerate(shape)]


def _all(shape: Sequence[int]) -> list[int]:
    return list(range(len(shape)))


# --- gather and scatter ---


@dataclass(frozen=True)
class _Windows:
    """The roles of dims in a gather or a scatter.

    Attributes:
        indexed: the operand's dim of each entry of a row of starts.
        offset: the dims of the result, or of the updates, that are inside a window.
        dropped: the operand's dims of size 1 that a window leaves out.
        batches: the operand's dims that go with dims of the starts, and those.
        vector: the dim of the starts that is a row.
        sizes: a window's, in the operand's dims.
    """

    indexed: Sequence[int]
    offset: Sequence[int]
    dropped: Sequence[int]
    batches: tuple[Sequence[int], Sequence[int]]
    vector: int
    sizes: Sequence[int]

    def window_dims(self) -> list[int]:
        """The operand's dims that are in a window, in its order."""
        gone = (*self.dropped, *self.batches[0])
        return [k for k in range(len(self.sizes)) if k not in gone]


def _dims(found: Mapping[str, Any], name: str) -> list[int]:
    return [int(v) for v in found.get(name, [])]


def gather(n: HloNode) -> SSAValue:
    """Windows of the operand at starts that are data, moved inside where they would leave it."""
    found = n.attr("dimension_numbers", default={})
    roles = _Windows(
        _dims(found, "start_index_map"),
        _dims(found, "offset_dims"),
        _dims(found, "collapsed_slice_dims"),
        (_dims(found, "operand_batching_dims"), _dims(found, "start_indices_batching_dims")),
        int(found.get("index_vector_dim", 0)),
        n.ints("slice_sizes"),
    )
    if 0 in n.shape:
        return n.expand(n.scalar(0, n.element), n.shape)
    form = _Form(n, roles, n[0], n[1])
    places, _ = form.places(clamped=True)
    rows = n.op("gather", form.rows(n[0]), places, axis=0)
    return form.back(rows, n.shape)


def scatter(n: HloNode) -> SSAValue:
    """The operand with windows replaced by updates, or combined with them.

    A window that would leave the operand changes nothing.
    """
    if len(n.operands) != 3:
        raise n.refusal("a scatter of several operands")
    how = {"second": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}
    name = combiner(n, n.block())
    if name in ("and", "or") and is_bool(element_of(n[0])):
        name = "min" if name == "and" else "max"
    if name not in how:
        raise n.refusal("its region is none of replace, sum, product, maximum, minimum")
    found = n.attr("scatter_dimension_numbers", default={})
    x, starts, updates = n[0], n[1], n[2]
    offset = _dims(found, "update_window_dims")
    dropped = _dims(found, "inserted_window_dims")
    batches = (_dims(found, "input_batching_dims"), _dims(found, "scatter_indices_batching_dims"))
    inside = iter(shape_of(updates)[d] for d in offset)
    gone = (*dropped, *batches[0])
    sizes = [1 if k in gone else next(inside) for k in range(len(shape_of(x)))]
    indexed = _dims(found, "scatter_dims_to_operand_dims")
    vector = int(found.get("index_vector_dim", 0))
    roles = _Windows(indexed, offset, dropped, batches, vector, sizes)
    if 0 in shape_of(updates) or 0 in shape_of(x):
        return x
    form = _Form(n, roles, x, starts)
    if any(sizes[d] > shape_of(x)[d] for d in range(len(sizes))):
        raise n.refusal("a window is larger than the operand")
    places, good = form.places(clamped=False)
    element = element_of(x)
    number = element if not is_bool(element) else i64
    rows = n.cast(form.rows(x), number)
    count = shape_of(rows)[0]
    if good is not None:  # what is outside goes to one more row, which is left out at the end
        places = n.op("where", good, places, n.literal(count, places))
        rows = n.op("concat", rows, n.expand(n.scalar(0, number), [1, *shape_of(rows)[1:]]), axis=0)
    given = n.cast(form.forward(updates), number)
    index = n.reshape(places, [*shape_of(places), 1])
    type_ = tensor(shape_of(rows), number)
    result = n.onnx("ScatterND", [rows, index, given], [type_], reduction=how[name])[0]
    return n.cast(form.whole(n.slice(result, 0, 0, count)), element)


class _Form:
    """An operand with its indexed dims in front as one dim, and the others as rows."""

    def __init__(self, n: HloNode, roles: _Windows, x: SSAValue, starts: SSAValue) -> None:
        self.n, self.roles, self.starts = n, roles, starts
        self.shape = shape_of(x)
        partial = [k for k, m in enumerate(self.shape) if roles.sizes[k] != m]
        self.front = sorted({*roles.indexed, *roles.batches[0], *partial})
        self.rest = [k for k in range(len(self.shape)) if k not in self.front]
        batch = [m for k, m in enumerate(shape_of(starts)) if k != roles.vector]
        self.batch = batch
        self.windows = [k for k in roles.window_dims() if k in self.front]

    def rows(self, x: SSAValue) -> SSAValue:
        """The operand in this form."""
        order = [*self.front, *self.rest]
        lead = math.prod(self.shape[k] for k in self.front)
        moved = self.n.transpose(x, order)
        return self.n.reshape(moved, [lead, *(self.shape[k] for k in self.rest)])

    def whole(self, rows: SSAValue) -> SSAValue:
        """The operand from this form."""
        order = [*self.front, *self.rest]
        split = self.n.reshape(rows, [self.shape[k] for k in order])
        return self.n.transpose(split, [order.index(k) for k in range(len(order))])

    def places(self, clamped: bool) -> tuple[SSAValue, SSAValue | None]:
        """The row of each element of each window, of shape [batch, windows], and whether it is
        inside; None where it always is."""
        n = self.n
        shape = [*self.batch, *(self.roles.sizes[k] for k in self.windows)]
        total: SSAValue = n.expand(n.scalar(0, i64), shape)
        good: SSAValue | None = None
        for position, dim in enumerate(self.front):
            step = math.prod(self.shape[k] for k in self.front[position + 1 :])
            start = self._start(dim)
            if start is not None:
                most = self.shape[dim] - self.roles.sizes[dim]
                start = n.cast(start, i64)
                if clamped:
                    start = _clamped(n, start, most)
                elif dim in self.roles.indexed:
                    here = self._inside(start, most)
                    good = here if good is None else n.op("and", good, here)
                lined = n.broadcast(start, shape, list(range(len(self.batch))))
                total = n.op("add", total, self._times(lined, step))
            if dim in self.windows and self.roles.sizes[dim] > 1:
                axis = len(self.batch) + self.windows.index(dim)
                inner = n.iota(self.roles.sizes[dim], i64, step=step)
                total = n.op("add", total, n.along(inner, shape, axis))
        if good is not None:
            good = n.broadcast(good, shape, list(range(len(self.batch))))
        return total, good

    def _inside(self, start: SSAValue, most: int) -> SSAValue:
        n = self.n
        above = n.op("greater_equal", start, n.literal(0, start))
        return n.op("and", above, n.op("less_equal", start, n.literal(most, start)))

    def _times(self, x: SSAValue, step: int) -> SSAValue:
        return x if step == 1 else self.n.op("mul", x, self.n.literal(step, x))

    def _start(self, dim: int) -> SSAValue | None:
        """The starts along a dim, of the batch's shape; None where all are 0."""
        n, roles = self.n, self.roles
        if dim in roles.batches[0]:
            paired = list(roles.batches[1])[list(roles.batches[0]).index(dim)]
            axis = paired - (paired > roles.vector)
            return n.along(n.iota(self.batch[axis], i64), self.batch, axis)
        if dim not in roles.indexed:
            return None
        k = list(roles.indexed).index(dim)
        if roles.vector == len(shape_of(self.starts)):
            return self.starts
        return n.reshape(n.slice(self.starts, roles.vector, k, 1), self.batch)

    def _order(self) -> list[int]:
        """For each dim of the result or updates, its dim in [batch, windows, rest]."""
        rank = len(self.batch) + len(self.roles.offset)
        batch = [k for k in range(rank) if k not in self.roles.offset]
        inner = [*self.windows, *self.rest]
        found = [0] * rank
        for k, dim in enumerate(batch):
            found[dim] = k
        for dim, own in zip(sorted(self.roles.offset), self.roles.window_dims(), strict=True):
            found[dim] = len(self.batch) + inner.index(own)
        return found

    def back(self, rows: SSAValue, shape: Sequence[int]) -> SSAValue:
        """[batch, windows, rest] in the result's order; dims that are dropped are in none."""
        return self.n.reshape(self.n.transpose(rows, self._order()), shape)

    def forward(self, updates: SSAValue) -> SSAValue:
        """The updates as [batch, windows, rest]."""
        order = self._order()
        return self.n.transpose(updates, [order.index(k) for k in range(len(order))])


TABLE: dict[str, Converter] = {
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
}
