"""Which bound a size gets: a few bounds serve all sizes, and none costs much more than the size."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import OpResult

from ...dialects.dims_attr import DimsAttr, dims_as_written
from ...dialects.extent_math import Expression, symbol, value_at
from ...dialects.extent_text import read_extent
from ...dialects.graph import GraphOp
from ...dialects.program import Program, return_of
from ...dialects.shape_guards import shape_env
from ...dialects.specialize import sizes_of_dims
from ...dialects.types import byte_width, shape_of, tensor_type
from ..margins import PAD

Sizes = Mapping[str, int]

# Bytes that a core moves from memory in the time of a multiply-add: 25e9 of these, 10e9 bytes/s.
BYTES_OF_MAC = 0.4
# And in the time of a call of the smallest program, 20 microseconds.
BYTES_OF_CALL = 200_000
# No bound is doubled beyond this: memory is planned for it.
LARGEST = 1 << 14
# So many sizes before the end of a step are tried where a guard does not hold there.
TRIED = 1024
# These read all rows of what they look across.
_ACROSS = ("arg_max", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum")
# Their readers do what these do, while they read.
_VIEWS = ("broadcast", "reshape", "slice", "split", "transpose")


class SizeBounds:
    """Finds bounds for the sizes of one program with symbols."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._env = shape_env(program.main)
        self._work = WorkModel.of(program)
        args = zip(program.input_names, program.main.body.block.args, strict=True)
        self._dims = {name: shape_of(arg) for name, arg in args}
        # What was answered before: sizes come again, and many have the same steps.
        self._behind: dict[Hashable, int] = {}
        self._near: dict[Hashable, bool] = {}

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The number of each symbol. Raises UserError where shapes contradict the types."""
        return sizes_of_dims(self._dims, shapes)

    def guards_hold(self, sizes: Sizes) -> bool:
        """Whether the program is for these sizes."""
        return self._env.broken(sizes) is None

    def steps(self, sizes: Sizes, changing: Collection[str]) -> dict[str, int]:
        """The end of each changing symbol's step: one for all sizes of a step.

        A step ends at a power of two. Symbols that a guard fixes are left out.

        Args:
            sizes: of all symbols.
        """
        changing = [n for n in changing if not self._is_fixed(n)]
        behind = {name: self._rows_behind(name, sizes, changing) for name in changing}
        steps = {name: _step(sizes[name] + more) - more for name, more in behind.items()}
        if self.guards_hold({**sizes, **steps}):
            return steps
        steps = {name: self._as_far_as_guards(name, sizes, step) for name, step in steps.items()}
        return steps if self.guards_hold({**sizes, **steps}) else {}

    def up_to(self, given: Sizes, sizes: Sizes) -> dict[str, int]:
        """Given bounds of these sizes' symbols, as far as guards let them go.

        Symbols that can only be 1, or that a guard fixes, are left out; nothing is left where the
        guards do not hold.
        """
        free = [n for n in sizes if given.get(n, 1) > 1 and not self._is_fixed(n)]
        found = {n: given[n] for n in free}
        if not self.guards_hold({**sizes, **found}):
            found = {n: self._as_far_as_guards(n, sizes, most) for n, most in found.items()}
        return found if self.guards_hold({**sizes, **found}) else {}

    def _is_fixed(self, name: str) -> bool:
        return len(set(self._env.bounds(symbol(name)))) == 1

    def _as_far_as_guards(self, name: str, sizes: Sizes, step: int) -> int:
        """The end of a symbol's step, or as far before it as a guard lets it go."""
        ends = range(step, max(sizes[name], step - TRIED), -1)
        return next((n for n in ends if self.guards_hold({**sizes, name: n})), sizes[name])

    def bounds(self, steps: Sizes, fixed: Sizes) -> dict[str, int]:
        """The bound of each symbol: its step's end, doubled while that is little more work.

        Args:
            steps: from `steps`.
            fixed: the sizes of the other symbols.
        """
        found = dict(steps)
        behind = {name: self._rows_behind(name, fixed, steps) for name in sorted(steps)}
        growing = list(behind)
        while growing:
            for name in list(growing):
                size = min(1 << (found[name] + behind[name]).bit_length(), LARGEST)
                end = self._as_far_as_guards(name, {**fixed, **found}, size - behind[name])
                more = {**found, name: end}
                if end > found[name] and self.near(more, steps, fixed):
                    found = more
                else:
                    growing.remove(name)
        return found

    def wasted(self, bounds: Sizes, sizes: Sizes) -> float:
        """The work that a call of these sizes does for padding, in bytes."""
        return self._work.at(sizes, bounds) - self._work.at(sizes)

    def _rows_behind(self, name: str, sizes: Sizes, changing: Collection[str]) -> int:
        fixed = sorted((other, n) for other, n in sizes.items() if other not in changing)
        key = name, tuple(sorted(changing)), tuple(fixed)
        if key not in self._behind:
            self._behind[key] = _behind(self.program.main, name, sizes, changing)
        return self._behind[key]

    def near(self, bounds: Sizes, steps: Sizes, fixed: Sizes) -> bool:
        """Whether the program at these bounds is little more work than at the steps' ends."""
        key = tuple(tuple(sorted(given.items())) for given in (bounds, steps, fixed))
        if key not in self._near:
            self._near[key] = self._is_near(bounds, steps, fixed)
        return self._near[key]

    def _is_near(self, bounds: Sizes, steps: Sizes, fixed: Sizes) -> bool:
        sizes = {**fixed, **steps}
        most = PAD.more_work * self._work.at(sizes)
        grown = all(bounds[name] <= PAD.growth * n for name, n in steps.items())
        return (
            self._work.at(sizes, bounds) if grown else self._work.at({**sizes, **bounds})
        ) <= most


def _step(size: int) -> int:
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


def _behind(main: FuncOp, name: str, sizes: Sizes, changing: Collection[str]) -> int:
    """How many rows stand beside those of a symbol in an input's dim: bounds are round with them.

    A mask over a cache and new positions has `past + 1` columns: a bound of 127 for `past` is
    better than one of 128.
    """
    found = 0
    for arg in main.body.block.args:
        encoding = arg.type.encoding if isinstance(arg.type, TensorType) else None
        for text in encoding.dims if isinstance(encoding, DimsAttr) else ():
            expr = read_extent(str(text.data))
            if any(s.name in changing and s.name != name for s in expr.free_symbols):
                continue
            others = {s: sizes[s.name] for s in expr.free_symbols if s.name != name}
            rest = expr.subs(others) - symbol(name)
            if rest.is_Integer and 0 <= rest < LARGEST:
                found = max(found, int(rest))
    return found


# A factor, dims, and how many of these, the last ones, are done whole.
WorkTerm: TypeAlias = "tuple[float, tuple[int | Expression, ...], int]"


@dataclass(frozen=True)
class WorkModel:
    """The work of a program at any sizes, in bytes that a core moves in the time of all of it.

    Attributes:
        terms: a factor, the dims that it is multiplied by, and how many of these, the last ones,
            are done whole where a kernel leaves out rows of the others: those that it sums over.
    """

    terms: tuple[WorkTerm, ...]

    @staticmethod
    def of(program: Program) -> WorkModel:
        """Of a program with symbols; what only moves data is left to its readers.

        A result that nothing else makes is copied.
        """
        found: list[WorkTerm] = []
        for value in return_of(program.module).arguments:
            if not isinstance(value, OpResult) or value.op.name.removeprefix("graph.") in _VIEWS:
                width = byte_width(tensor_type(value).element_type)
                found.append((width, dims_as_written(value.type), 0))
        for op in program.main.body.block.ops:
            name = op.name.removeprefix("graph.")
            if not isinstance(op, GraphOp) or name in _VIEWS:
                continue
            read = op.results if name == "gather" else op.operands
            for value in (*read, *op.results):
                width = byte_width(tensor_type(value).element_type)
                own = dims_as_written(value.type)
                whole = len(own) if value in read and name in _ACROSS else 0
                found.append((width, own, whole))
            dims = [dims_as_written(v.type) for v in (*op.operands, *op.results)]
            if name == "matmul":
                summed = dims[0][-2 if op.value("transpose_a") else -1]
                found.append((BYTES_OF_MAC, (*dims[-1], summed), 1))
            elif name in ("conv", "conv_transpose"):
                at = dims[-1] if name == "conv" else dims[0]
                found.append((BYTES_OF_MAC, (*at, *dims[1][1:]), len(at) + len(dims[1]) - 2))
        return WorkModel(_summed(found))

    def at(self, sizes: Sizes, bounds: Sizes | None = None) -> float:
        """The work at these sizes of all symbols, by a program at these bounds of some."""
        most = {**sizes, **(bounds or {})}
        total = float(BYTES_OF_CALL)
        for factor, dims, whole in self.terms:
            skipped = len(dims) - whole
            total += factor * _count(dims[:skipped], sizes) * _count(dims[skipped:], most)
        return total


def _summed(terms: Sequence[WorkTerm]) -> tuple[WorkTerm, ...]:
    """Terms with the factors of equal dims added up, and numbers multiplied in: layers repeat."""
    found: dict[tuple[tuple[Expression, ...], int], float] = {}
    for factor, dims, whole in terms:
        numbers = [d for d in dims if isinstance(d, int)]
        last = [d for d in dims[len(dims) - whole :] if not isinstance(d, int)]
        own = tuple(d for d in dims if not isinstance(d, int))
        key = own, len(last)
        found[key] = found.get(key, 0.0) + factor * math.prod(numbers)
    return tuple((factor, dims, whole) for (dims, whole), factor in found.items())


def _count(dims: Sequence[int | Expression], sizes: Sizes) -> int:
    return math.prod(d if isinstance(d, int) else value_at(d, sizes) for d in dims)


__all__ = ["SizeBounds", "WorkModel"]
