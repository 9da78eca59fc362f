"""Strips: neighbours that go along an axis together, in the lanes of a few vectors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.index import Index
from ...dialects.nest import AllocOp, ForOp, LoadOp, StoreOp
from ...dialects.nest_access import scalar_type
from ...dialects.nest_computed import IndexOp
from ...dialects.types import is_storage
from .code import Code, NestBuffer, Scalar

LANES = 16
# A strip reads so many vectors of each row: lines that lie side by side.
VECTORS = 4
# Fewer neighbours go along the axis one by one.
LEAST_INNER = 4


def is_vector(element: Attribute) -> bool:
    """Whether vectors hold elements of a type as they lie in memory."""
    return element != i1 and not is_storage(element)


@dataclass(frozen=True)
class Local:
    """A value for each lane of a strip, in registers."""

    buffer: SSAValue
    element: Attribute


@dataclass(frozen=True)
class Lane:
    """One lane of a strip, at a place along the axis.

    Attributes:
        places: iterators, which `start` and `along` are over by their number here.
        start: the lane's first element.
        across: the same in a tensor without the axis.
        own: the iterators of the vectors and of the lanes.
    """

    code: Code
    places: Sequence[SSAValue]
    start: Index
    across: Index
    own: Sequence[SSAValue]

    def read(self, source: NestBuffer, along: Index | None = None) -> Scalar:
        """The element of an operand, so far along the axis."""
        places, address = self._address(self.start if along is None else self.start + along)
        load = LoadOp(source.buffer, places, address)
        self.code.add(load)
        return Scalar(self.code, load.result, source.element)

    def write(self, target: NestBuffer, value: Scalar, along: Index) -> None:
        """Store an element of a result."""
        self._write(target, value, self.start + along)

    def write_across(self, target: NestBuffer, value: Scalar) -> None:
        """Store the element of a result that lacks the axis."""
        self._write(target, value, self.across)

    def _write(self, target: NestBuffer, value: Scalar, address: Index) -> None:
        assert value.element == target.element
        places, address = self._address(address)
        self.code.add(StoreOp(value.value, target.buffer, places, address))

    def get(self, local: Local) -> Scalar:
        """The value of a local buffer."""
        load = LoadOp(local.buffer, list(self.own), _OWN)
        self.code.add(load)
        return Scalar(self.code, load.result, local.element)

    def put(self, local: Local, value: Scalar) -> None:
        """Change the value of a local buffer."""
        assert value.element == local.element
        self.code.add(StoreOp(value.value, local.buffer, list(self.own), _OWN))

    def spill(self, array: NestBuffer, value: Scalar) -> None:
        """Store the value into an array with an element for each lane."""
        self.code.add(StoreOp(value.value, array.buffer, list(self.own), _OWN))

    def _address(self, address: Index) -> tuple[list[SSAValue], Index]:
        """An address over the iterators that it moves with."""
        used = sorted(address.iterators)
        images = [Index(0)] * len(self.places)
        for number, k in enumerate(used):
            images[k] = Index.iterator(number)
        return [self.places[k] for k in used], address.substitute(images)


_OWN = Index.iterator(0) * LANES + Index.iterator(1)
# Numbers of iterators: two of items, vectors, lanes, and the loop along the axis.
ALONG = Index.iterator(4)


@dataclass
class Strip:
    """Vectors of neighbours in an item of a stage.

    Attributes:
        items: iterators, two.
        start, across: the first element, over these, with the axis and without.
        lanes: those of each vector that exist.
    """

    code: Code
    items: Sequence[SSAValue]
    start: Index
    across: Index
    vectors: int
    lanes: int

    @property
    def row(self) -> Scalar:
        """The number of the item along the first of its loops."""
        index = IndexOp([self.items[0]], Index.iterator(0))
        self.code.add(index)
        return Scalar(self.code, index.result, i64)

    def local(self, element: Attribute) -> Local:
        """A value for each lane, undefined."""
        alloc = AllocOp(scalar_type(element), self.vectors * LANES)
        self.code.add(alloc)
        return Local(alloc.result, element)

    def each(self, body: Callable[[Lane], None], loop: ForOp | None = None) -> None:
        """What is done for each lane; `ALONG` is the iterator of a loop around it."""
        vector, lane = ForOp(self.vectors, "unrolled"), ForOp(self.lanes, "vector", LANES)
        vector.block.add_op(lane)
        self.code.add(vector)
        own = [vector.iterator, lane.iterator]
        places = [*self.items, *own, *([] if loop is None else [loop.iterator])]
        within = Index.iterator(2) * LANES + Index.iterator(3)
        with self.code.at(lane.block):
            body(Lane(self.code, places, self.start + within, self.across + within, own))

    def along(self, count: int, body: Callable[[Lane, ForOp], None]) -> None:
        """A loop along the axis, and in it what is done for each lane."""
        loop = ForOp(count, hint="k")
        self.code.add(loop)
        with self.code.at(loop.block):
            self.each(lambda lane: body(lane, loop), loop)


def strips(code: Code, outer: int, n: int, inner: int) -> Generator[Strip]:
    """A stage each for whole strips, whole vectors and the rest of `inner` neighbours.

    They are `n` apart along the axis, before which there are `outer` places.
    """
    done = 0
    for vectors, lanes in ((VECTORS, LANES), (1, LANES), (1, inner % LANES)):
        width = (vectors - 1) * LANES + lanes
        blocks = (inner - done) // width if width else 0
        if blocks * outer:
            along, block = Index.iterator(0) * inner, Index.iterator(1) * width + done
            with _items(code, outer, blocks) as items:
                yield Strip(code, items, along * n + block, along + block, vectors, lanes)
            done += blocks * width


def row_strip(code: Code, rows: int, n: int) -> Generator[Strip]:
    """A stage of rows of `n` elements, the first few of which are a strip."""
    vectors = VECTORS if n >= 4 * VECTORS * LANES else 1
    with _items(code, rows, 1) as items:
        yield Strip(code, items, Index.iterator(0) * n, Index.iterator(0), vectors, LANES)


@contextmanager
def _items(code: Code, outer: int, inner: int) -> Generator[Sequence[SSAValue]]:
    """A nest over two loops, whose places run in any order."""
    first, second = ForOp(outer, "parallel"), ForOp(inner, "parallel")
    code.nest().body.block.add_op(first)
    first.block.add_op(second)
    with code.at(second.block):
        yield first.iterator, second.iterator
