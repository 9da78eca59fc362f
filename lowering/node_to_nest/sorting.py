"""TopK: the best elements of a row, in a heap whose root is the worst of them."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i1, i64

from ...dialects.types import is_float
from .code import Code, NestBuffer, Scalar
from .node import KeptNode

_MOST_LOCAL = 4096
"""Elements of a heap on the stack; larger ones are kept in the result."""


class Heap:
    """Elements with their positions, in two buffers; the worst is at the root.

    `largest` elements are best, or the smallest. Of equal ones the earlier is better; NaN counts
    as the largest.
    """

    def __init__(self, code: Code, values: Strided, positions: Strided, largest: bool):
        self.code, self.values, self.positions, self.largest = code, values, positions, largest

    def precedes(self, a: Scalar, b: Scalar) -> Scalar:
        """Whether a is better than b by value alone."""
        found = a > b if self.largest else a < b
        if is_float(a.element):
            first, second = (a, b) if self.largest else (b, a)
            found = found | (first.is_nan() & ~second.is_nan())
        return found

    def _worse(self, a: Scalar, i: Scalar, b: Scalar, j: Scalar) -> Scalar:
        return self.precedes(b, a) | (~self.precedes(a, b) & (i > j))

    def put(self, start: Scalar, end: Scalar, value: Scalar, position: Scalar) -> None:
        """Put an element at `start`, or below: elements above `end` are no part of the heap."""
        code = self.code
        hole, going = code.cell(start), code.cell(False, i1)
        with code.repeat() as again:
            going.value = False
            left = hole.value * 2 + 1
            with code.when(left < end):
                child = code.cell(left)
                right = left + 1
                with code.when(right < end):
                    worse = self._worse(*self._at(right), *self._at(left))
                    with code.when(worse):
                        child.value = right
                place = child.value
                found = self._at(place)
                with code.when(self._worse(*found, value, position)):
                    self._set(hole.value, *found)
                    hole.value = place
                    going.value = True
            again(going.value)
        self._set(hole.value, value, position)

    def _at(self, place: Scalar) -> tuple[Scalar, Scalar]:
        return self.values[place], self.positions[place]

    def _set(self, place: Scalar, value: Scalar, position: Scalar) -> None:
        self.values[place] = value
        self.positions[place] = position

    def sort_all(self, count: Scalar) -> None:
        """Order so many elements that are no heap yet, the best first."""
        code = self.code
        half = count // 2
        with code.loop(half) as k:
            start = half - 1 - k
            self.put(start, count, *self._at(start))
        with code.when(count > 1):
            self.sort(count)

    def sort(self, count: int | Scalar) -> None:
        """Order all elements, the best first."""
        code = self.code
        with code.loop(count - 1) as done:
            last = code.number(0) + (count - 1) - done
            value, position = self._at(last)
            self._set(last, *self._at(code.number(0)))
            self.put(code.number(0), last, value, position)


class Strided:
    """Elements of a buffer in steps, from a first one on."""

    def __init__(self, buffer: NestBuffer, first: Scalar | int = 0, step: int = 1):
        self.buffer, self.first, self.step = buffer, first, step

    def __getitem__(self, k: Scalar) -> Scalar:
        return self.buffer[k * self.step + self.first]

    def __setitem__(self, k: Scalar, value: Scalar) -> None:
        self.buffer[k * self.step + self.first] = value


def top_k(node: KeptNode) -> None:
    """Keep the best k of each row in a heap, then sort them."""
    x, code = node[0], node.code
    values, positions = node.results[0], node.second()
    axis = node.axis(len(x.shape), -1)
    out = next(b for b in (values, positions) if b is not None)
    n, k = x.shape[axis], out.shape[axis]
    inner = math.prod(x.shape[axis + 1 :])
    if k == 0:
        return
    with code.stage(math.prod(x.shape[:axis]) * inner) as item:
        outer, column = item // inner, item % inner
        row = Strided(x, outer * (n * inner) + column, inner)
        at = outer * (k * inner) + column
        wanted = [None if b is None else Strided(b, at, inner) for b in (values, positions)]
        kept = [
            Strided(code.array(e, k)) if k <= _MOST_LOCAL or w is None else w
            for w, e in zip(wanted, (x.element, i64), strict=True)
        ]
        heap = Heap(code, kept[0], kept[1], bool(node.get("largest", 1)))
        _select(code, heap, row, n, k)
        heap.sort(k)
        with code.loop(k) as place:
            for target, source in zip(wanted, kept, strict=True):
                if target is not None and target is not source:
                    target[place] = source[place]


def _select(code: Code, heap: Heap, row: Strided, n: int, k: int) -> None:
    """Leave the best k of n in the heap."""
    with code.loop(k) as place:
        heap.values[place] = row[place]
        heap.positions[place] = place
    with code.loop(k // 2) as done:
        place = code.number(k // 2 - 1) - done
        heap.put(place, code.number(k), heap.values[place], heap.positions[place])
    root, end = code.number(0), code.number(k)
    worst = code.cell(heap.values[root])
    with code.loop(k, n) as place:
        value = row[place]
        with code.when(heap.precedes(value, worst.value)):
            heap.put(root, end, value, place)
            worst.value = heap.values[root]


WRITERS = {"TopK": top_k}
