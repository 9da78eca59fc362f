"""Write nests in Python: stages over items, loops, branches, cells; buffers index as arrays do.

    with code.stage(rows) as row:
        total = code.cell(0.0, f32)
        with code.loop(columns) as k:
            total.value = total.value + x[row * columns + k]
            y[row * columns + k] = total.value

A stage is one nest. Its items run in any order, or at the same time; stages run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.index import Index
from ...dialects.nest import STACK, AllocOp, ForOp, NestOp, WhenOp
from ...dialects.nest_access import flat_buffer, scalar_type
from ...dialects.nest_computed import (
    AgainOp,
    CopyOp,
    IndexOp,
    RangeOp,
    ReadOp,
    RepeatOp,
    WriteOp,
)
from ...dialects.types import Tensor, element_count
from .scalar import Number, Scalar, constant


class NestBuffer:
    """The elements of a tensor, in row-major order, or of a local array."""

    def __init__(
        self, code: Code, buffer: Callable[[], SSAValue], element: Attribute, shape: Sequence[int]
    ):
        self.code, self._buffer = code, buffer
        self.element, self.shape = element, tuple(shape)

    @property
    def buffer(self) -> SSAValue:
        return self._buffer()

    @property
    def size(self) -> int:
        """The number of elements."""
        found = 1
        for n in self.shape:
            found *= n
        return found

    def __getitem__(self, place: Number) -> Scalar:
        read = ReadOp(self.buffer, self.code.place(place))
        self.code.add(read)
        return Scalar(self.code, read.result, self.element)

    def __setitem__(self, place: Number, value: Number) -> None:
        if not isinstance(value, Scalar):
            value = self.code.number(value, self.element)
        assert value.element == self.element, (value.element, self.element)
        self.code.add(WriteOp(value.value, self.buffer, self.code.place(place)))


class Cell:
    """A local variable."""

    def __init__(self, array: NestBuffer):
        self.array = array

    @property
    def value(self) -> Scalar:
        return self.array[0]

    @value.setter
    def value(self, value: Number) -> None:
        self.array[0] = value


class Code:
    """The nests of one node, and where ops are put.

    Attributes:
        nests: the stages so far.
        alarm: set (to 1) where the data are invalid; an error is raised after the run.
    """

    def __init__(self, types: Sequence[Tensor]):
        self._buffers = [flat_buffer(t.element_type, max(1, element_count(t))) for t in types] + [
            flat_buffer(i64, 1)
        ]
        self.nests: list[NestOp] = []
        self.block: Block | None = None
        self._literals: dict[tuple[str, Attribute], Scalar] = {}  # of this block and around it
        self.buffers = [
            NestBuffer(self, self._argument(k), t.element_type, t.get_shape())
            for k, t in enumerate(types)
        ]
        self.alarm = NestBuffer(self, self._argument(len(types)), i64, (1,))

    def _argument(self, k: int) -> Callable[[], SSAValue]:
        return lambda: self.nests[-1].body.block.args[k]

    def add(self, op: Operation) -> None:
        """Put an op at the end."""
        assert self.block is not None, "ops are put into stages"
        self.block.add_op(op)

    @contextmanager
    def at(self, block: Block) -> Generator[None]:
        """Put what follows into a block."""
        before = self.block, self._literals
        self.block, self._literals = block, dict(self._literals)
        yield
        self.block, self._literals = before

    def nest(self) -> NestOp:
        """A new, empty stage."""
        self.nests.append(NestOp(self._buffers))
        return self.nests[-1]

    @contextmanager
    def stage(self, items: int = 1) -> Generator[Scalar]:
        """A nest over items, each of which is given its number."""
        nest = self.nest()
        loop = ForOp(max(1, items), "parallel", hint="item")
        nest.body.block.add_op(loop)
        with self.at(loop.block):
            index = IndexOp([loop.iterator], Index.iterator(0))
            self.add(index)
            yield Scalar(self, index.result, i64)
        if items == 0:
            self.nests.pop()

    # Values

    def number(self, number: int | float | bool, element: Attribute = i64) -> Scalar:
        """A literal."""
        key = repr(number), element  # -0.0 is not 0.0
        if key not in self._literals:
            op = constant(number, element)
            self.add(op)
            self._literals[key] = Scalar(self, op.result, element)
        return self._literals[key]

    def place(self, place: Number) -> SSAValue:
        """An i64 as an address."""
        found = place if isinstance(place, Scalar) else self.number(int(place))
        assert found.element == i64, found.element
        return found.value

    def cell(self, start: Number, element: Attribute | None = None) -> Cell:
        """A local variable."""
        if isinstance(start, Scalar):
            element = start.element
        assert element is not None
        found = Cell(self.array(element, 1))
        found.value = start
        return found

    def array(self, element: Attribute, count: int) -> NestBuffer:
        """A local array, its elements undefined."""
        alloc = AllocOp(scalar_type(element), count, STACK)
        self.add(alloc)
        return NestBuffer(self, lambda: alloc.result, element, (count,))

    def select(self, condition: Scalar, yes: Scalar, no: Number) -> Scalar:
        """One of two values, both of which are computed."""
        op = arith.SelectOp(condition.value, yes.value, yes.like(no).value)
        self.add(op)
        return Scalar(self, op.result, yes.element)

    def copy(
        self, source: NestBuffer, start: Number, target: NestBuffer, at: Number, count: Number
    ) -> None:
        """Copy elements in a row."""
        places = (self.place(n) for n in (start, at, count))
        first, second, size = places
        self.add(CopyOp(source.buffer, first, target.buffer, second, size))

    # Control

    @contextmanager
    def loop(self, low: Number, high: Number | None = None) -> Generator[Scalar]:
        """From one number up to another, or from 0."""
        start, end = (0, low) if high is None else (low, high)
        op = RangeOp(self.place(start), self.place(end))
        self.add(op)
        with self.at(op.block):
            yield Scalar(self, op.iterator, i64)

    @contextmanager
    def when(self, condition: Scalar) -> Generator[None]:
        """Only where the condition holds; `otherwise` may follow."""
        op = WhenOp(condition.value)
        self.add(op)
        with self.at(op.then.block):
            yield

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Where the condition of the `when` just before does not hold."""
        assert self.block is not None
        op = self.block.last_op
        assert isinstance(op, WhenOp)
        with self.at(op.otherwise.block):
            yield

    @contextmanager
    def repeat(self) -> Generator[Callable[[Scalar], None]]:
        """Once, and again as long as the condition holds that the body's end gives."""
        op = RepeatOp()
        self.add(op)
        with self.at(op.block):
            yield lambda condition: self.add(AgainOp(condition.value))

    def copy_all(self, source: NestBuffer, target: NestBuffer, chunk: int = 1 << 14) -> None:
        """A stage that copies a tensor."""
        size = source.size
        with self.stage(-(-size // chunk)) as item:
            first = item * chunk
            self.copy(source, first, target, first, (size - first).call("min", chunk))

    def fill(self, target: NestBuffer, value: Number, chunk: int = 1 << 14) -> None:
        """A stage that sets all elements of a tensor."""
        size = target.size
        with self.stage(-(-size // chunk)) as item:
            first = item * chunk
            with self.loop(first, (first + chunk).call("min", size)) as k:
                target[k] = value


__all__ = ["Cell", "Code", "NestBuffer", "Number", "Scalar"]
