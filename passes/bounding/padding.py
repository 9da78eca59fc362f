"""What `bound-dims` knows while it builds: the sizes of dims, their counts, what padding holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.dims_attr import DimsAttr, dims_as_written
from ...dialects.errors import UserError
from ...dialects.extent_math import Expression, FloorDivision, symbol, value_at
from ...dialects.extent_text import extent_text
from ...dialects.graph import ConstantOp, GraphOp
from ...dialects.graph.shaping import BroadcastOp
from ...dialects.types import element_of, is_float, shape_of, tensor_type, to_numpy


class NotBounded(UserError):
    """Raised where an op does more with padding than the rules here can undo."""


@dataclass(frozen=True)
class Dim:
    """A dim of a bounded value.

    Attributes:
        size: its extent in the bounded program.
        count: how many of its rows count, an expression over symbols; None if all do.
    """

    size: int
    count: Expression | None = None


class Padding:
    """The program being built, and what is known of padding.

    Args:
        sizes: a number for each symbol: its bound, or for one without padding its size.
        bounded: the symbols whose size is an input.
    """

    def __init__(self, build: GraphBuilder, sizes: Mapping[str, int], bounded: Sequence[str]):
        self.build = build
        self.sizes = sizes
        self._fixed: Any = {symbol(name): n for name, n in sizes.items() if name not in bounded}
        # Inputs that have room for rows behind theirs, by what others read of them.
        self.wide: dict[SSAValue, SSAValue] = {}
        # Dims whose padding is zeros.
        self.zeros: set[tuple[SSAValue, int]] = set()
        self._counts: dict[str, SSAValue] = {}
        self._inside: dict[tuple[str, int], SSAValue] = {}

    def take(self, expr: Expression, number: SSAValue) -> None:
        """Note the input that says how large a symbol is, or what an expression comes to."""
        self._counts[extent_text(expr)] = number

    # --- dims ---

    def dims(self, type_: Attribute) -> list[Dim]:
        """The dims of a value of the symbolic program.

        Raises:
            NotBounded: one may be larger than at the bound.
        """
        dims = dims_as_written(type_)
        return [Dim(d) if isinstance(d, int) else self.dim(d) for d in dims]

    def dim(self, expr: Expression) -> Dim:
        """A dim of this many rows. Raises NotBounded as `dims`."""
        expr = sympy.expand(expr.subs(self._fixed))
        if not expr.free_symbols:
            return Dim(int(expr))
        if not _rises(expr):
            raise NotBounded(f"{extent_text(expr)} may be larger than at the bound")
        return Dim(value_at(expr, self.sizes), expr)

    def extents(self, values: Sequence[Any]) -> list[int]:
        """Whole numbers and extents as numbers at the bound."""
        return [v if isinstance(v, int) else self.dim(v.expr).size for v in values]

    # --- numbers ---

    def count(self, dim: Dim) -> SSAValue:
        """How many rows of a dim count: an i64 without dims."""
        return self.number(dim.size if dim.count is None else dim.count)

    def number(self, expr: Expression | int) -> SSAValue:
        """An expression over the symbols as an i64 without dims."""
        expr = sympy.expand(sympy.sympify(expr).subs(self._fixed))
        text = extent_text(expr)
        if text not in self._counts:
            self._counts[text] = self._number(expr)
        return self._counts[text]

    def _number(self, expr: Expression) -> SSAValue:
        build = self.build
        match expr:
            case sympy.Integer():
                return build.constant(np.asarray(int(expr), np.int64), i64)
            case FloorDivision():
                a, b = (self.number(e) for e in expr.args)
                short = build.sub(build.sub(a, b), self.number(-1))  # rounds down below 0
                return build.div(build.where(build.less(a, self.number(0)), short, a), b)
            case _:
                by = build.add if expr.is_Add else build.mul
                base, power = expr.as_base_exp()
                terms = [base] * int(power) if expr.is_Pow else expr.args
                found = self.number(terms[0])
                for term in terms[1:]:
                    found = by(found, self.number(term))
                return found

    # --- masks ---

    def is_zeros(self, x: SSAValue, k: int) -> bool:
        """Whether the padding of a dim is zeros."""
        if (x, k) in self.zeros:
            return True
        while isinstance(x.owner, BroadcastOp):
            x = x.owner.operands[0]
        return isinstance(x.owner, ConstantOp) and not x.owner.array().any()

    def positions(self, size: int) -> SSAValue:
        """0, 1, .. size - 1 as i64."""
        return self.build.iota(start=[0], size=[size], step=[1])

    def inside(self, dim: Dim) -> SSAValue:
        """Which rows of a dim count: booleans of its size."""
        key = (extent_text(dim.count), dim.size)
        if key not in self._inside:
            count = self.build.expand(self.count(dim), [dim.size])
            self._inside[key] = self.build.less(self.positions(dim.size), count)
        return self._inside[key]

    def filled(self, x: SSAValue, dims: Mapping[int, Dim], fill: Any) -> SSAValue:
        """A value with a number in the padding of these dims."""
        shape = shape_of(x)
        for k, dim in dims.items():
            if fill == 0 and self.is_zeros(x, k):
                continue
            inside = self.along(self.inside(dim), shape, k)
            zeros = [j for j in range(len(shape)) if (x, j) in self.zeros]
            other = self.build.expand(self.scalar(fill, element_of(x)), shape)
            x = self.build.where(inside, x, other)
            if fill == 0:
                self.zeros |= {(x, j) for j in (*zeros, k)}
        return x

    def along(self, vector: SSAValue, shape: Sequence[int], k: int) -> SSAValue:
        """A vector repeated along all dims of a shape but one."""
        return self.build.broadcast(vector, shape=list(shape), dims=[k])

    def scalar(self, number: Any, element: Attribute) -> SSAValue:
        """A literal without dims."""
        return self.build.constant(np.asarray(number, to_numpy(element)), element)


class PaddedOp:
    """An op of the symbolic program, and its operands in the bounded one."""

    def __init__(self, op: GraphOp, operands: Sequence[SSAValue], padding: Padding):
        self.op, self.operands, self.padding = op, list(operands), padding
        self.build = padding.build
        self.dims = [padding.dims(v.type) for v in op.operands]
        self.results = [padding.dims(v.type) for v in op.results]

    @property
    def dim(self) -> list[Dim]:
        """The dims of the first result."""
        return self.results[0]

    def padded(self, k: int) -> dict[int, Dim]:
        """The padded dims of an operand."""
        return {j: dim for j, dim in enumerate(self.dims[k]) if dim.count is not None}

    @property
    def any_padded(self) -> bool:
        """Whether an operand or a result has padding."""
        return any(dim.count is not None for dims in (*self.dims, *self.results) for dim in dims)

    def fill(self, k: int, dims: Mapping[int, Dim], number: Any) -> None:
        """Put a number in the padding of an operand."""
        self.operands[k] = self.padding.filled(self.operands[k], dims, number)

    def rebuilt(self, **properties: Any) -> list[SSAValue]:
        """The op on its operands as they are now, with numbers in place of extents."""
        given: dict[str, Any] = dict(self.op.properties)
        for name, attribute in given.items():
            if isinstance(attribute, DimsAttr):
                given[name] = self.padding.extents(attribute.extents())
        given |= properties
        made = type(self.op)(*self.operands, results=len(self.op.results), **given)
        self.build.append(made)
        return list(made.results)

    def unfit(self, why: str) -> NotBounded:
        """The error of an op that padding does not pass."""
        return NotBounded(why, where=self.op.name)


def least(x: SSAValue) -> Any:
    """The least number of an element type."""
    return _ends(x)[0]


def greatest(x: SSAValue) -> Any:
    """The greatest number of an element type."""
    return _ends(x)[1]


def _ends(x: SSAValue) -> tuple[Any, Any]:
    element = tensor_type(x).element_type
    if is_float(element):
        return -np.inf, np.inf
    if element == i1:
        return False, True
    info = np.iinfo(to_numpy(element))
    return info.min, info.max


def _rises(expr: Expression) -> bool:
    """Whether an expression nowhere falls as its symbols grow."""
    if expr.is_Integer or isinstance(expr, sympy.Symbol):
        return True
    if isinstance(expr, FloorDivision):
        return _rises(expr.args[0]) and expr.args[1].is_Integer
    if expr.is_Add:
        return all(_rises(term) for term in expr.args)
    if expr.is_Pow:
        return expr.exp.is_Integer and expr.exp > 0 and isinstance(expr.base, sympy.Symbol)
    factor, rest = expr.as_coeff_Mul()
    parts: list[Any] = list(sympy.Mul.make_args(rest))
    if factor < 0 or not all(_rises(part) for part in parts):
        return False
    return len(parts) == 1 or all(
        part.subs(dict.fromkeys(part.free_symbols, 1)) >= 0 for part in parts
    )


__all__ = ["Dim", "NotBounded", "PaddedOp", "Padding", "greatest", "least"]
