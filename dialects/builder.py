"""Build programs in Python: for frontends and for the zoo.

    b = GraphBuilder()
    x = b.input("x", (1, 3, 8, 8))
    w = b.weight("w", np.ones((4, 3, 3, 3), np.float32))
    y = b.relu(b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1]))
    b.output("y", y)
    program = b.build()

Every op of the graph dialect is a method of the same name, with its properties as keywords. The
result type is inferred; bad operands raise UserError at that call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike
from xdsl.dialects.builtin import FunctionType, ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .builder_ops import CLASSES, GraphOps
from .dims import broadcast_shapes, surely_same
from .errors import UserError, did_you_mean
from .graph import ConstantOp, WeightOp
from .program import Program, location, name_value, named
from .types import Array, from_numpy, shape_of, tensor
from .weights import Weights

if TYPE_CHECKING:
    from .extents import Extent


class GraphBuilder(GraphOps):
    """Collects one program; see the module's text."""

    def __init__(self) -> None:
        self.block = Block()
        self.weights = Weights()
        self._location = ""
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, SSAValue]] = []
        self._cuts: dict[str, tuple[str, int]] = {}
        self._weight_values: dict[str, SSAValue] = {}
        self._defaults: set[str] = set()

    def inside(self) -> GraphBuilder:
        """A builder of a body, whose weights are this program's."""
        found = GraphBuilder()
        found.weights, found._location = self.weights, self._location
        return found

    def input(
        self,
        name: str,
        shape: Sequence[int | Extent],
        element: Attribute | DTypeLike = f32,
        default: Array | Callable[[], Array] | None = None,
    ) -> SSAValue:
        """Add an input; one with a `default` may be left out when the program runs.

        Raises UserError if the name is taken, an extent negative or the element type unknown.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError("an input's name is text", found=name)
        if name in self._inputs:
            raise UserError(f"two inputs are named '{name}'")
        if any(n < 0 for n in shape):
            raise UserError(f"input '{name}': extents are at least 0", found=list(shape))
        value = self.block.insert_arg(tensor(shape, _element(element)), len(self._inputs))
        self._inputs.append(name)
        if default is not None:
            self.weights.add(name, default)
            self._defaults.add(name)
        name_value(value, name)
        return value

    def weight(
        self,
        name: str,
        source: Array | Callable[[], Array],
        shape: Sequence[int] | None = None,
        element: Attribute | DTypeLike | None = None,
    ) -> SSAValue:
        """Add a weight, or return the one already added under this name.

        A thunk as `source` needs `shape` and `element`; it is called when the data is first needed.
        """
        if name in self._weight_values:
            return self._weight_values[name]
        if isinstance(source, np.ndarray):
            shape, element = source.shape, from_numpy(source.dtype)
        if shape is None or element is None:
            raise UserError(f"weight '{name}': a thunk needs shape and element type")
        self.weights.add(name, source)
        value = self.append(WeightOp(name, tensor(shape, _element(element))), name)
        self._weight_values[name] = value
        return value

    def constant(self, array: Any, element: Attribute | DTypeLike | None = None) -> SSAValue:
        """Add a small literal; its dtype gives the element type unless one is given."""
        data = np.asarray(array)
        return self.append(ConstantOp(data, _element(data.dtype if element is None else element)))

    def append(self, op: Operation, name: str = "") -> SSAValue:
        """Append an op and return its first result."""
        op.location = location(self._location)
        self.block.add_op(op)
        if name:
            name_value(op.results[0], name)
        return op.results[0]

    def op(
        self, op_name: str, *operands: SSAValue, results: int = 1, **properties: Any
    ) -> SSAValue:
        """Append the op `graph.<op_name>`; raises UserError as its inference does."""
        cls = CLASSES.get(op_name)
        if cls is None:
            raise UserError(
                f"the graph dialect has no op '{op_name}'", hint=did_you_mean(op_name, CLASSES)
            )
        return self.append(cls(*operands, results=results, **properties))

    def split(self, x: SSAValue, axis: int, sizes: Sequence[int]) -> list[SSAValue]:
        """`graph.split`, the one op with several results."""
        first = self.op("split", x, results=len(sizes), axis=axis, sizes=list(sizes))
        return list(first.owner.results)  # pyright: ignore

    def expand(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcast as numpy does: align shapes at the right. No op where nothing changes."""
        if surely_same(shape_of(x), shape):
            return x
        lead = len(shape) - len(shape_of(x))
        dims = list(range(lead, len(shape)))
        return self.op("broadcast", x, shape=list(shape), dims=dims)

    def broadcast_together(self, *values: SSAValue) -> list[SSAValue]:
        """Bring values to their common numpy broadcast shape. Raises UserError if there is none."""
        shapes = [shape_of(v) for v in values]
        try:
            shape = broadcast_shapes(*shapes)
        except ValueError as error:
            raise UserError(f"shapes do not broadcast: {', '.join(map(str, shapes))}") from error
        return [self.expand(v, shape) for v in values]

    @contextmanager
    def at(self, name: str) -> Generator[None]:
        """Ops added inside carry `name` as their source location."""
        before, self._location = self._location, name
        try:
            yield
        finally:
            self._location = before

    def output(self, name: str, value: SSAValue, cuts: tuple[str, int] | None = None) -> None:
        """Name a value as the next output.

        Args:
            cuts: an output and a dim: the value is how many rows that has, the rest is padding.
        """
        self._outputs.append((name, value))
        if cuts is not None:
            self._cuts[name] = cuts

    def build(self, source: str = "") -> Program:
        """Close the program. Raises UserError if it has no output, or is closed already."""
        if self.block.parent is not None:
            raise UserError("this builder's program is built already")
        if not self._outputs:
            raise UserError("the program has no output")
        values = [value for _, value in self._outputs]
        self.block.add_op(ReturnOp(*values))
        kind = FunctionType.from_lists([a.type for a in self.block.args], [v.type for v in values])
        main = FuncOp(
            "main",
            kind,
            Region(self.block),
            arg_attrs=named(self._inputs, self._defaults),
            res_attrs=named([name for name, _ in self._outputs], cuts=self._cuts),
        )
        return Program(ModuleOp([main]), self.weights, source)


def _element(given: Attribute | DTypeLike) -> Attribute:
    """An element type, or that of a numpy dtype or its name."""
    return given if isinstance(given, Attribute) else from_numpy(given)
