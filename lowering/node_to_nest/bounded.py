"""Results with as many rows as the data say: the rows, zeros up to the most, their number last.

Scatters from such rows take their number as one more operand.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, i1, i64

from .code import Cell, Code, NestBuffer, Scalar
from .node import KeptNode, NoNest, Writer
from .scatters import scatter_elements, scatter_nd
from .sorting import Heap, Strided
from .windows import unflattened

_MOST_LOCAL = 1 << 15


def non_zero(node: KeptNode) -> None:
    """The places of all elements that are not 0, in order."""
    x, y, code = node[0], node.result, node.code
    code.fill(y, 0)
    with code.stage():
        found = code.cell(0, i64)
        with code.loop(x.size) as k:
            here = x[k] if x.element == i1 else x[k].differs(0)
            with code.when(here):
                for d, place in enumerate(unflattened(k, x.shape or (1,))):
                    y[found.value + d * y.shape[1]] = place
                found.value = found.value + 1
        _number(node)[0] = found.value


def _number(node: KeptNode) -> NestBuffer:
    last = node.results[-1]
    assert last is not None
    return last


def compress(node: KeptNode) -> None:
    """The slices along an axis, or the elements, whose condition holds."""
    x, condition, y, code = node[0], node[1], node.result, node.code
    axis = node.get("axis", None)
    shape = x.shape if axis is not None else (x.size,)
    dim = node.axis(len(shape), 0) if axis is not None else 0
    outer, inner = math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
    code.fill(y, 0)
    with code.stage():
        found = code.cell(0, i64)
        with code.loop(y.shape[dim]) as k, code.when(condition[k]):
            with code.loop(outer) as o:
                source = (o * shape[dim] + k) * inner
                code.copy(x, source, y, (o * y.shape[dim] + found.value) * inner, inner)
            found.value = found.value + 1
        _number(node)[0] = found.value


# --- boxes ---


def non_max_suppression(node: KeptNode) -> None:
    """Of each class the boxes in the order of their scores: those that overlap no kept one."""
    boxes, scores, y, code = node[0], node[1], node.result, node.code
    batches, classes, n = scores.shape
    if n > _MOST_LOCAL or boxes.element != f32 or not node.has(2):
        raise NoNest
    code.fill(y, 0)
    center = bool(node.get("center_point_box", 0))
    with code.stage():
        found, size = code.cell(0, i64), max(n, 1)
        values, places = code.array(f32, size), code.array(i64, size)
        heap = Heap(code, Strided(values), Strided(places), largest=True)
        overlap = node[3][0] if node.has(3) else code.number(0.0, f32)
        near = [code.array(f32, size) for _ in range(5)]  # ends and areas of those that are kept
        with code.loop(batches) as batch, code.loop(classes) as class_:
            number = code.cell(0, i64)
            with code.loop(n) as k:
                score = scores[(batch * classes + class_) * n + k]
                with code.when(score > node[4][0] if node.has(4) else code.number(True, i1)):
                    values[number.value] = score
                    places[number.value] = k
                    number.value = number.value + 1
            heap.sort_all(number.value)
            most = node[2][0].place().call("min", y.shape[0] // max(batches * classes, 1))
            kept, next_ = code.cell(0, i64), code.cell(0, i64)
            with code.when((most > 0) & (number.value > 0)), code.repeat() as again:
                place = places[next_.value]
                own = _ends(boxes, (batch * n + place) * 4, center)
                own.append((own[2] - own[0]) * (own[3] - own[1]))
                with code.when(_is_apart(code, near, kept, own, overlap)):
                    for k, part in enumerate((batch, class_, place)):
                        y[found.value * 3 + k] = part
                    found.value = found.value + 1
                    for part, end in zip(near, own, strict=True):
                        part[kept.value] = end
                    kept.value = kept.value + 1
                next_.value = next_.value + 1
                again((next_.value < number.value) & (kept.value < most))
        _number(node)[0] = found.value


def _is_apart(
    code: Code, near: list[NestBuffer], kept: Cell, own: list[Scalar], overlap: Scalar
) -> Scalar:
    """Whether a box overlaps none of those that are kept."""
    k, good = code.cell(0, i64), code.cell(True, i1)
    with code.when(kept.value > 0), code.repeat() as again:
        # Most boxes lie apart along the first dim, which costs little to see.
        with code.when(_shared(near, k.value, own, 0) > 0.0):
            good.value = ~_overlaps(near, k.value, own, overlap)
        k.value = k.value + 1
        again(good.value & (k.value < kept.value))
    return good.value


def _ends(boxes: NestBuffer, at: Scalar, center: bool) -> list[Scalar]:
    """Lower ends along both dims, then upper ends."""
    a, b, c, d = (boxes[at + k] for k in range(4))
    if center:
        return [a - c / 2, b - d / 2, a + c / 2, b + d / 2]
    return [a.call("min", c), b.call("min", d), a.call("max", c), b.call("max", d)]


def _shared(near: list[NestBuffer], k: Scalar, own: list[Scalar], dim: int) -> Scalar:
    """How far a kept box and another overlap along a dim; not above 0 where they do not."""
    low = near[dim][k].call("max", own[dim])
    return near[dim + 2][k].call("min", own[dim + 2]) - low


def _overlaps(near: list[NestBuffer], k: Scalar, own: list[Scalar], share: Scalar) -> Scalar:
    """Whether a kept box and another have more than a share of their union in common."""
    common = _shared(near, k, own, 0) * _shared(near, k, own, 1).call("max", 0.0)
    union = near[4][k] + own[4] - common
    return (union > 0.0) & (common > share * union)


# --- unique ---


def unique(node: KeptNode) -> None:
    """Elements sorted with their places; each run of equal ones is a row."""
    x, code = node[0], node.code
    n = x.size
    if "axis" in node.attributes or not node.get("sorted", 1) or n > _MOST_LOCAL or x.element == i1:
        raise NoNest
    values, first, inverse, counts = (node.results[k] for k in range(4))
    for result in (values, first, counts):
        if result is not None:
            code.fill(result, 0)
    with code.stage():
        kept, places = code.array(x.element, max(n, 1)), code.array(i64, max(n, 1))
        heap = Heap(code, Strided(kept), Strided(places), largest=False)
        with code.loop(n) as k:
            kept[k] = x[k]
            places[k] = k
        with code.loop(n // 2) as done:
            place = code.number(n // 2 - 1) - done
            heap.put(place, code.number(n), kept[place], places[place])
        heap.sort(n)
        row = code.cell(-1, i64)
        with code.loop(n) as k:
            before = (k - 1).call("max", 0)
            new = k.equals(0) | heap.precedes(kept[before], kept[k])
            with code.when(new):
                row.value = row.value + 1
                for result, value in ((values, kept[k]), (first, places[k])):
                    if result is not None:
                        result[row.value] = value
            if counts is not None:
                counts[row.value] = counts[row.value] + 1
            if inverse is not None:
                inverse[places[k]] = row.value
        _number(node)[0] = row.value + 1


WRITERS: dict[str, Writer] = {
    "Compress": compress,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Unique": unique,
}
