"""The reference meaning of one op: every op of the three dialects in numpy float64.

Independent of code generation. Floats are computed in float64, integers in int64, booleans as
booleans; arithmetic.py defines where values are rounded. By default the arithmetic is exact:
results are what the program means, without float32 rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .algebra import ExternOp, OnesOp, ScopeOp
from .arithmetic import Arithmetic, ScalarEvaluator
from .errors import UserError
from .gather import GatherPositions
from .graph import OPS, ConstantOp, GraphOp, OpaqueOp, WeightOp
from .graph.base import defined_classes, discard
from .index import grid
from .layout import logical
from .program import where
from .scalars import Call, Const, Expr, Read, element_types
from .scope_body import read_type
from .types import Array, is_float, reference_dtype, tensor_type

# Points of an iteration space evaluated at once. The first bounds memory; the second stays in a
# cache, for scopes whose chunks share most of their reads.
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
            return [np.ones(type_.get_shape(), arithmetic.dtype(type_.element_type))]
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
    """A graph op's meaning, by its scopes or its numpy function."""
    if not type(op).has_scopes():
        pairs = zip(op.reference(*operands), op.results, strict=True)
        return [arithmetic.tensor(np.asarray(a), tensor_type(r).element_type) for a, r in pairs]
    steps = Steps.of(op)
    arrays = steps.evaluate(operands, arithmetic)
    steps.drop()
    return arrays


@dataclass(frozen=True)
class Steps:
    """The scopes of a graph op, in no block; call `drop` when done."""

    op: GraphOp
    ops: Sequence[Operation]  # its scopes
    results: Sequence[SSAValue]  # values of these that are its results
    ready: dict[tuple[Operation, Arithmetic], ScopeEvaluator] = field(
        default_factory=dict[tuple[Operation, Arithmetic], "ScopeEvaluator"]
    )

    @staticmethod
    def of(op: GraphOp) -> Steps:
        return Steps(op, *op.scopes())

    def evaluate(self, operands: Sequence[Array], arithmetic: Arithmetic) -> list[Array]:
        values: Values = dict(zip(self.op.operands, operands, strict=True))
        for step in self.ops:
            given = [values[v] for v in step.operands]
            if isinstance(step, ScopeOp):
                key = step, arithmetic
                if key not in self.ready:
                    self.ready[key] = ScopeEvaluator(step, arithmetic)
                arrays: Sequence[Array] = [self.ready[key](given)]
            else:
                arrays = evaluate_op(step, given, {}, arithmetic)
            values.update(zip(step.results, arrays, strict=True))
        return [values[result] for result in self.results]

    def drop(self) -> None:
        discard(self.ops)


def rebuild_extern(op: Operation) -> Operation:
    """The op named by an `algebra.extern` or `kernel.call`, on the same operands.

    It is in no block; call `drop_all_references` on it when done.
    """
    callee, config = _named(op)
    cls = _class_named(callee)
    if cls is None:
        hint = "a plug-in that defines it must be loaded"
        raise UserError(f"no op named '{callee}' is known", where=where(op), hint=hint)
    types = [r.type for r in op.results]
    found = cls.create(operands=op.operands, result_types=types, properties=config)
    found.location = op.location
    return found


def verify_extern(op: Operation) -> None:
    """Verify the op that an `algebra.extern` or `kernel.call` names, if it is known here.

    Raises: VerifyException.
    """
    callee, config = _named(op)
    cls = _class_named(callee)
    if cls is None:
        return
    operands = Block(arg_types=[logical(v.type) for v in op.operands]).args
    types = [logical(r.type) for r in op.results]
    found = cls.create(operands=operands, result_types=types, properties=config)
    try:
        found.verify()
    finally:
        found.drop_all_references()


def _named(op: Operation) -> tuple[str, dict[str, Attribute]]:
    callee, config = op.properties["callee"], op.properties["config"]
    assert isinstance(callee, StringAttr) and isinstance(config, DictionaryAttr)
    return callee.data, dict(config.data)


def _class_named(name: str) -> type[Operation] | None:
    found = (c for classes in (lambda: OPS, defined_classes) for c in classes() if c.name == name)
    return next(found, None)


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
    """Evaluate a scope at all its points."""
    return ScopeEvaluator(op, arithmetic)(operands)


class ScopeEvaluator:
    """A scope prepared to be evaluated many times, on operands of the same shapes.

    The first traversals are split into chunks to bound memory.
    """

    def __init__(self, op: ScopeOp, arithmetic: Arithmetic = EXACT):
        self.arithmetic, self.reads = arithmetic, op.reads()
        self.traversal, self.extents = op.traversal, op.extents
        self.reduction = op.reduction.data
        self.element = tensor_type(op.result).element_type
        expr = op.expr()
        types = element_types(expr, read_type)
        self.body = ScalarEvaluator(expr, types, self.element, arithmetic)
        sums = op.summation and self.reduction == "sum" and arithmetic.contracts
        self.factors = _factors(expr) if sums else None
        self.outside = {r: arithmetic.literal(r.outside, read_type(r)) for r in self.reads}
        self._positions: dict[tuple[Read, int], GatherPositions] = {}

    def __call__(self, operands: Sequence[Array]) -> Array:
        """The value at all points, from the op's operands."""
        arrays = dict(zip(self.reads, operands, strict=True))
        own = (array.shape[: array.ndim - len(read.index)] for read, array in arrays.items())
        lead = np.broadcast_shapes(*own)
        out = np.empty((*lead, *self.traversal), self.arithmetic.dtype(self.element))
        if out.size == 0:
            return out
        if not self.traversal:
            value = np.broadcast_to(self._rows(arrays, lead, 0, 0), lead)
            return self.arithmetic.tensor(value, self.element)
        rows, before = self.traversal[0], (slice(None),) * len(lead)
        step = self._rows_at_once(math.prod(lead))
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            with np.errstate(all="ignore"):
                value = self._rows(arrays, lead, start, stop)
                value = self.arithmetic.tensor(value, self.element)
            out[(*before, slice(start, stop))] = value
        return out

    def _rows_at_once(self, lead: int) -> int:
        """How many rows to evaluate at once; reads that no row moves recur in every chunk."""
        used = [{k for e in read.index for k in e.iterators} for read in self.reads]
        again = sum(math.prod(self.extents[k] for k in ks) for ks in used if 0 not in ks) * lead
        limit = CACHE_POINTS if again * 16 < CACHE_POINTS else CHUNK_POINTS
        per_row = math.prod(self.extents) * lead // self.traversal[0]
        return max(1, min(self.traversal[0], limit // max(per_row, 1)))

    def _rows(
        self, arrays: Mapping[Read, Array], lead: tuple[int, ...], start: int, stop: int
    ) -> Array:
        """The rows [start, stop) of the result, not yet rounded for a tensor."""
        rank, extents = len(self.traversal), list(self.extents)
        if rank:
            extents[0] = stop - start
        if self.factors is not None:
            return self._contracted(self.factors, arrays, lead, extents, start)
        every = range(len(extents))
        value = self.body(lambda read: self._gathered(read, arrays[read], extents, start, every))
        value = np.broadcast_to(value, (*lead, *extents))
        axes = tuple(range(rank - len(extents), 0))
        if not axes:
            return value
        with np.errstate(all="ignore"):
            return self.arithmetic.reduce(self.reduction, value, axes)

    def _contracted(
        self,
        factors: Sequence[Read | Const],
        arrays: Mapping[Read, Array],
        lead: tuple[int, ...],
        extents: Sequence[int],
        start: int,
    ) -> Array:
        """A sum of products, with each factor gathered over its own iterators only."""
        rank = len(self.traversal)
        terms: list[Term] = []
        guards: list[Term] = []
        for factor in factors:
            if isinstance(factor, Read):
                used = sorted(set().union(*(e.iterators for e in factor.index)))
                used = [k for k in used if extents[k] != 1]
                value = self._gathered(factor, arrays[factor], extents, start, used)
                (guards if isinstance(factor.source.owner, OnesOp) else terms).append((value, used))
        terms = _guarded(terms, guards) if guards and terms else [*terms, *guards]
        seen = {k for _, used in terms for k in used}
        times = math.prod(n for k, n in enumerate(extents) if k >= rank and k not in seen)
        kept = [k for k in range(rank) if k in seen]
        found = self.arithmetic.contract(terms, kept)
        spread = (n if k in kept else 1 for k, n in enumerate(extents[:rank]))
        found = found.reshape((*found.shape[: found.ndim - len(kept)], *spread))
        literals = [factor.value for factor in factors if isinstance(factor, Const)]
        found = self.arithmetic.scaled(found, literals, times, self.element)
        return np.broadcast_to(found, (*lead, *extents[:rank]))

    def _gathered(
        self, read: Read, array: Array, extents: Sequence[int], start: int, used: Sequence[int]
    ) -> Array:
        """The reads on the grid of the iterators in `used`, one axis each."""
        key = (read, len(used))
        positions = self._positions.get(key)
        if positions is None:
            points = grid(extents, used)
            if extents:
                points[0] = points[0] + start
            shape = array.shape[array.ndim - len(read.index) :]
            positions = GatherPositions(read.index, shape, points)
            if tuple(extents) == self.extents:
                self._positions[key] = positions
        return positions.of(array, self.outside[read])


# A factor on a grid: its values, and the iterators of its last dims.
Term: TypeAlias = "tuple[Array, list[int]]"


def _factors(expr: Expr) -> list[Read | Const] | None:
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


def _guarded(terms: Sequence[Term], guards: Sequence[Term]) -> list[Term]:
    """The terms, and the guards where they are needed: an unread element must not turn 0 into NaN.

    A finite term is multiplied by a guard like by any factor. For a term that is not finite, the
    positions that the guards exclude are set to 0.
    """
    found: list[Term] = []
    for value, used in terms:
        if np.isfinite(value).all():
            found.append((value, used))
            continue
        for guard, also in guards:
            union = sorted({*used, *also})
            inside, value = _spread(guard, also, union) != 0, _spread(value, used, union)
            value, used = np.where(inside, value, value.dtype.type(0)), union
        found.append((value, used))
    return [*found, *guards]


def _spread(value: Array, used: Sequence[int], union: Sequence[int]) -> Array:
    """A value over some iterators, broadcast to more of them (extent 1 along the others)."""
    lead = value.shape[: value.ndim - len(used)]
    sizes = dict(zip(used, value.shape[value.ndim - len(used) :], strict=True))
    return value.reshape((*lead, *(sizes.get(k, 1) for k in union)))


__all__ = [
    "ScopeEvaluator",
    "Steps",
    "evaluate_op",
    "evaluate_scope",
    "rebuild_extern",
    "run_opaque",
    "verify_extern",
]
