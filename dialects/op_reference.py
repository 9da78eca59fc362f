"""The reference meaning of one op: every op of the three dialects in numpy float64.

Independent of code generation. Floats are computed in float64, integers in int64, booleans as
booleans; arithmetic.py says what is rounded on the way. By default the arithmetic is exact: results
are what the program means, not what float32 rounding makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from .algebra import ExternOp, OnesOp, ScopeOp
from .arithmetic import Arithmetic, evaluate
from .errors import UserError
from .graph import OPS, ConstantOp, GraphOp, OpaqueOp, WeightOp
from .graph.base import defined_classes
from .index import grid
from .program import where
from .scalars import Call, Const, Expr, Read, Types, element_types, reads_of
from .scope_body import read_type
from .scope_builder import ScopeBuilder, Source
from .types import Array, is_float, reference_dtype, tensor_type

# Points of an iteration space evaluated at once: a bound on memory; and what stays in a cache, for
# scopes that read little anew in each chunk.
CHUNK_POINTS = 1 << 25
CACHE_POINTS = 1 << 20

Values = dict[SSAValue, Array]
EXACT = Arithmetic.EXACT


def evaluate_op(
    op: Operation,
    operands: Sequence[Array],
    weights: Mapping[str, Array],
    arithmetic: Arithmetic = EXACT,
) -> Sequence[Array]:
    """The results of one op from its operands' values."""
    match op:
        case WeightOp():
            return [arithmetic.tensor(weights[op.key], op.type.element_type)]
        case ConstantOp():
            return [arithmetic.tensor(op.array(), op.type.element_type)]
        case OpaqueOp():
            return run_opaque(op, operands)
        case GraphOp():
            return evaluate_graph_op(op, operands, arithmetic)
        case OnesOp():
            type_ = tensor_type(op.result)
            return [np.ones(type_.get_shape(), reference_dtype(type_.element_type))]
        case ScopeOp():
            return [evaluate_scope(op, operands, arithmetic)]
        case ExternOp():
            return evaluate_op(rebuild_extern(op), operands, weights, arithmetic)
        case _:
            meaning = getattr(op, "evaluate_reference", None)
            if meaning is None:
                raise UserError("the reference cannot evaluate this op", where=where(op))
            return meaning(operands, weights, arithmetic)


def evaluate_graph_op(
    op: GraphOp, operands: Sequence[Array], arithmetic: Arithmetic = EXACT
) -> Sequence[Array]:
    """A graph op's meaning: its scopes, or its numpy function."""
    if not type(op).has_scopes():
        pairs = zip(op.reference(*operands), op.results, strict=True)
        return [arithmetic.tensor(np.asarray(a), tensor_type(r).element_type) for a, r in pairs]
    build = ScopeBuilder()
    found = op.as_scopes(build, *(Source(v) for v in op.operands))
    results = [found] if isinstance(found, Source) else list(found)
    values: Values = dict(zip(op.operands, operands, strict=True))
    for step in build.ops:
        arrays = evaluate_op(step, [values[v] for v in step.operands], {}, arithmetic)
        values.update(zip(step.results, arrays, strict=True))
    arrays = [values[r.value] for r in results]
    for step in reversed(build.ops):
        step.drop_all_references()
    return arrays


def rebuild_extern(op: Operation) -> Operation:
    """The op that an `algebra.extern` or `kernel.call` stands for, on the same operands.

    It is inserted nowhere; call `drop_all_references` on it when done.
    """
    callee, config = op.properties["callee"], op.properties["config"]
    assert isinstance(callee, StringAttr) and isinstance(config, DictionaryAttr)
    cls = next((c for c in (*OPS, *defined_classes()) if c.name == callee.data), None)
    if cls is None:
        hint = "a plug-in that defines it must be loaded"
        raise UserError(f"no op named '{callee.data}' is known", where=where(op), hint=hint)
    types = [r.type for r in op.results]
    found = cls.create(operands=op.operands, result_types=types, properties=config.data)
    found.location = op.location
    return found


def run_opaque(op: OpaqueOp, operands: Sequence[Array]) -> list[Array]:
    """Run one ONNX node by onnx.reference, in its own dtypes."""
    from .opaque import run_node

    types = [tensor_type(v) for v in op.inputs]
    return [
        a.astype(reference_dtype(tensor_type(r).element_type))
        for a, r in zip(run_node(op, operands, types), op.outputs, strict=True)
    ]


# --- scopes -------------------------------------------------------------------------------------


def evaluate_scope(op: ScopeOp, operands: Sequence[Array], arithmetic: Arithmetic = EXACT) -> Array:
    """Evaluate a scope at all its points; the first traversals are cut to bound memory."""
    element = tensor_type(op.result).element_type
    out = np.empty(op.traversal, reference_dtype(element))
    if out.size == 0:
        return out
    body = _Body(op, dict(zip(op.reads(), operands, strict=True)), arithmetic)
    if not op.traversal:
        return arithmetic.tensor(np.asarray(body.rows(0, 0)), element)
    rows = op.traversal[0]
    per_row = math.prod(op.extents) // rows
    limit = CACHE_POINTS if body.repeated() * 16 < CACHE_POINTS else CHUNK_POINTS
    step = max(1, min(rows, limit // max(per_row, 1)))
    for start in range(0, rows, step):
        stop = min(rows, start + step)
        with np.errstate(all="ignore"):
            out[start:stop] = arithmetic.tensor(body.rows(start, stop), element)
    return out


class _Body:
    """A scope's expression on the values that it reads."""

    def __init__(self, op: ScopeOp, arrays: Mapping[Read, Array], arithmetic: Arithmetic):
        self.op, self.arrays, self.arithmetic = op, arrays, arithmetic
        self.expr = op.expr()
        self.types: Types = element_types(self.expr, read_type)
        self.element = tensor_type(op.result).element_type
        self.rank = len(op.traversal)

    def repeated(self) -> int:
        """Points of the reads that every chunk of rows makes again: those that no row moves."""
        used = [{k for e in read.index for k in e.iterators} for read in reads_of(self.expr)]
        extents = self.op.extents
        return sum(math.prod(extents[k] for k in ks) for ks in used if 0 not in ks)

    def rows(self, start: int, stop: int) -> Array:
        """The rows [start, stop) of the result, not yet rounded to a tensor."""
        rank, reduction = self.rank, self.op.reduction.data
        extents = list(self.op.extents)
        if rank:
            extents[0] = stop - start
        factors = _factors(self.expr) if self.op.summation and reduction == "sum" else None
        if factors is not None:
            return self._einsum(factors, extents, start)
        value = self._on_grid(self.expr, extents, start, list(range(len(extents))))
        value = np.broadcast_to(value, extents)
        axes = tuple(range(rank, len(extents)))
        if not axes:
            return value
        with np.errstate(all="ignore"):
            return getattr(value, reduction)(axis=axes)  # sum, max, min or prod

    def _einsum(self, factors: Sequence[Expr], extents: Sequence[int], start: int) -> Array:
        """Sum of products by numpy's einsum, each factor gathered over its own iterators only."""
        terms: list[Any] = []
        seen: set[int] = set()
        scale, rank = 1.0, self.rank
        for factor in factors:
            if isinstance(factor, Const):
                scale *= float(self.arithmetic.literal(factor.value, self.element))
                continue
            assert isinstance(factor, Read)
            used = sorted(set().union(*(e.iterators for e in factor.index)))
            used = [k for k in used if extents[k] != 1]
            seen.update(used)
            terms += [self._on_grid(factor, extents, start, used), used]
        missing = [k for k in range(rank, len(extents)) if k not in seen]
        scale *= math.prod(extents[k] for k in missing)
        kept = [k for k in range(rank) if k in seen]
        result = np.einsum(*terms, kept, optimize=True) if terms else np.asarray(1.0)
        shape = [extents[k] if k in kept else 1 for k in range(rank)]
        return np.broadcast_to(result.reshape(shape) * scale, list(extents[:rank]))

    def _on_grid(
        self, expr: Expr, extents: Sequence[int], start: int, used: Sequence[int]
    ) -> Array:
        """Value of an expression on the grid of the iterators in `used`, one axis each."""
        points = grid(extents, used)
        if extents and not isinstance(points[0], int):
            points[0] = points[0] + start
        elif extents:
            points[0] = start
        return evaluate(
            expr,
            lambda read: gather(read, self.arrays[read], points),
            self.types,
            self.element,
            self.arithmetic,
        )


def _factors(expr: Expr) -> list[Expr] | None:
    """Factors of a product of float reads and literals; None for any other body."""
    match expr:
        case Call("mul", (left, right)):
            a, b = _factors(left), _factors(right)
            return None if a is None or b is None else a + b
        case Read() if is_float(read_type(expr)):
            return [expr]
        case Const():
            return [expr]
        case _:
            return None


def gather(read: Read, array: Array, points: Sequence[Any]) -> Array:
    """Read at index arrays, `outside` beyond the shape."""
    window = _window(read, array, points)
    if window is not None:
        return window
    index = [np.asarray(e.evaluate(points)) for e in read.index]
    inside: Any = True
    clipped: list[Array] = []
    for position, size in zip(index, array.shape, strict=True):
        if position.size and position.min() >= 0 and position.max() < size:
            clipped.append(position)
            continue
        inside = inside & ((position >= 0) & (position < size))
        clipped.append(np.clip(position, 0, max(size - 1, 0)))
    if array.size == 0:
        return np.full(np.broadcast_shapes(*(i.shape for i in index)), read.outside).astype(
            array.dtype
        )
    value = array[tuple(clipped)] if clipped else array
    if inside is True:
        return value
    outside = array.dtype.type(read.outside if array.dtype.kind != "i" else int(read.outside))
    return np.where(inside, value, outside)


def _window(read: Read, array: Array, points: Sequence[Any]) -> Array | None:
    """A view of what is read, where each dim is read along an iterator of its own and in bounds.

    The points of an iterator are consecutive numbers along one axis of the grid.
    """
    slices: list[slice] = []
    axes: list[int] = []
    for e, size in zip(read.index, array.shape, strict=True):
        if e.constant or len(e.terms) != 1 or e.has_floor or e.terms[0][1] != 1:
            return None
        (iterator,) = e.iterators
        place = np.asarray(points[iterator])
        if not place.ndim or not place.size or place.flat[0] < 0 or place.flat[-1] >= size:
            return None
        slices.append(slice(int(place.flat[0]), int(place.flat[-1]) + 1))
        axes.append(int(np.argmax(place.shape)))
    if not axes or len(set(axes)) < len(axes):
        return None
    shape = [1] * np.ndim(points[next(iter(read.index[0].iterators))])
    for axis, part in zip(axes, slices, strict=True):
        shape[axis] = part.stop - part.start
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    return array[tuple(slices)].transpose(order).reshape(shape)


__all__ = [
    "evaluate_op",
    "evaluate_scope",
    "gather",
    "rebuild_extern",
    "run_opaque",
]
