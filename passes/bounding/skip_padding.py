"""skip-padding: kernels of a bounded program leave out rows that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.context import WeightContext
from ...dialects.floats import BITS, Floats
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.index import Index
from ...dialects.kernel import AttentionOp, CallOp, JoinOp, KernelOp, ViewOp, YieldOp
from ...dialects.program import ROWS, SIZE, input_names_of, main_of
from ...dialects.scalars import Call, Const, Expr, Read, children
from ...dialects.types import shape_of, tensor_type
from ...dialects.weights import Weights
from ...lowering.algebra_to_kernel.attention import match_attention, match_softmax

# Of each dim, how many of its rows are read: a value of @main, or None where all may be.
Counts: TypeAlias = "tuple[SSAValue | None, ...]"


@dataclass(frozen=True)
class SkipPadding(ModulePass):
    """Say of each kernel's result how many rows are read, so that code need not compute the rest.

    Of a result of a program that `bound-dims` made, the rows that count are read. From there on it
    goes back: where a kernel's result is read up to a row, so are the operands whose row is the
    result's, and what a mask of the first rows chooses. Whatever else reads, reads all. Attention
    is told how many keys count where the others' scores are -inf.

    Before, where @main says that `n` rows of the result count:

        %y = kernel.loops (%a = %x) {
          %0 = algebra.scope (i0: 64, i1: 8) exp(%a[i0, i1]) : tensor<64x8xf32>
          kernel.yield %0 : tensor<64x8xf32>
        } : tensor<64x8xf32>
        func.return %y : tensor<64x8xf32>

    After, where %n is the input `size.n`:

        %y = kernel.loops (%a = %x, %b = %n) rows array<i64: 0, 1> {
          %0 = algebra.scope (i0: 64, i1: 8) exp(%a[i0, i1]) : tensor<64x8xf32>
          kernel.yield %0 : tensor<64x8xf32>
        } : tensor<64x8xf32>
        func.return %y : tensor<64x8xf32>
    """

    name = "skip-padding"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = main_of(op)
        weights = ctx.weights if isinstance(ctx, WeightContext) else None
        if ROWS in main.attributes:
            _RowsRead(main, weights).mark()


class _RowsRead:
    """How many rows of each value of @main are read.

    Attributes:
        read: by value, for all readers seen so far.
    """

    def __init__(self, main: FuncOp, weights: Weights | None) -> None:
        self.block, self.weights = main.body.block, weights
        self.read: dict[SSAValue, Counts] = {}
        self.order = {op: k for k, op in enumerate(self.block.ops)}
        names = input_names_of(main)
        arguments = zip(names, self.block.args, strict=True)
        sizes = {name.removeprefix(SIZE): arg for name, arg in arguments if name.startswith(SIZE)}
        rows = main.attributes[ROWS]
        assert isinstance(rows, ArrayAttr)
        self.results = [_counts(entry, sizes) for entry in rows]

    def mark(self) -> None:
        """Give the kernels of @main their `rows`, readers first."""
        for op in reversed(list(self.block.ops)):
            match op:
                case ReturnOp():
                    for value, counts in zip(op.arguments, self.results, strict=True):
                        note(self.read, value, counts)
                case KernelOp() if op.result in self.read:
                    counts = tuple(
                        n if self._is_known(n, op) else None for n in self.read[op.result]
                    )
                    for value, found in self._operands(op, counts):
                        note(self.read, value, found)
                    keys = self._keys(op) if isinstance(op, AttentionOp) else None
                    _set_rows(op, counts)
                    if keys is not None and self._is_known(keys, op):
                        op.properties["keys"] = IntegerAttr(_operand(op, keys), i64)
                case ViewOp() if op.result in self.read:
                    note(self.read, op.source, _through_view(op, self.read[op.result]))
                case JoinOp() if op.result in self.read:
                    counts = list(self.read[op.result])
                    counts[op.axis.value.data] = None  # where one part ends is no row of another
                    for part in op.parts:
                        note(self.read, part, tuple(counts))
                case _:
                    for value in op.operands:
                        note(self.read, value, _all(value))

    def _is_known(self, count: SSAValue | None, op: Operation) -> bool:
        """Whether a count is there before an op runs."""
        if count is None or isinstance(count, BlockArgument):
            return count is not None
        assert isinstance(count.owner, Operation)
        return self.order.get(count.owner, len(self.order)) < self.order[op]

    def _operands(self, op: KernelOp, counts: Counts) -> Iterable[tuple[SSAValue, Counts]]:
        """What a kernel reads of its operands where its result is read up to these rows."""
        read: dict[SSAValue, Counts] = {}
        for inner in reversed(list(op.body.block.ops)):
            if isinstance(inner, YieldOp):
                note(read, inner.value, counts)
            elif isinstance(inner, ScopeOp) and inner.result in read:
                own = {k: n for k, n in enumerate(read[inner.result]) if n is not None}
                self._body(op, inner.expr(), own, read)
        arguments = zip(op.body.block.args, op.inputs, strict=True)
        return [(value, read[arg]) for arg, value in arguments if arg in read]

    def _body(
        self,
        op: KernelOp,
        expr: Expr,
        limits: Mapping[int, SSAValue],
        read: dict[SSAValue, Counts],
    ) -> None:
        """Note what an expression reads where these iterators are below these counts."""
        match expr:
            case Read(source, index):
                note(read, source, tuple(limits.get(_iterator(e)) for e in index))
            case Call("select", (Read(mask, (place,)), chosen, other)):
                # All of a mask is read: what stands in padding must not be chosen by chance.
                note(read, mask, (None,))
                count, k = self._mask(mask, op), _iterator(place)
                more = {} if count is None or k < 0 else {k: count}
                self._body(op, chosen, {**limits, **more}, read)
                self._body(op, other, limits, read)
            case _:
                for part in children(expr):
                    self._body(op, part, limits, read)

    def _mask(self, value: SSAValue, op: KernelOp) -> SSAValue | None:
        """The count of a mask that holds in the first rows; None of any other value."""
        if isinstance(value, BlockArgument) and value.owner is op.body.block:
            return self._mask(op.outer(value), op)
        maker = value.owner
        if isinstance(maker, KernelOp) and len(maker.scopes) == 1:
            op, maker = maker, maker.scopes[0]
        if not isinstance(maker, ScopeOp) or len(maker.extents) != 1:
            return None
        match maker.expr():
            case Call("lt", (Read(places, (place,)), Read(count, ()))) if _iterator(place) == 0:
                return _outer(count, op) if self._counts_up(_outer(places, op)) else None
            case _:
                return None

    def _keys(self, op: AttentionOp) -> SSAValue | None:
        """How many keys count, where a mask lets the others' scores be -inf.

        `bound-dims` has made V zeros there, so they add nothing.
        """
        found = match_attention(op.scopes)
        softmax = None if found is None else match_softmax(found)
        if found is None or softmax is None:
            return None
        scores = next((p for p in found.between if p.scope.result is softmax.scores), None)
        match None if scores is None else scores.scope.expr():
            case Call("select", (Read(mask, (place,)), _, other)) if _iterator(place) >= 0:
                assert scores is not None
                along_keys = scores.images[_iterator(place)] is Index.iterator(found.loops)
                return self._mask(mask, op) if along_keys and _is_lowest(other, op) else None
            case _:
                return None

    def _counts_up(self, value: SSAValue | None) -> bool:
        """Whether a value is 0, 1, 2, .."""
        match None if value is None else value.owner:
            case ConstantOp() as op:
                data = op.array()
            case WeightOp() as op if self.weights is not None:
                data = self.weights[op.key]
            case CallOp() as op if op.callee.data == "graph.iota":
                numbers = [op.config.data[name] for name in ("start", "step")]
                return [list(n.get_values()) for n in numbers] == [[0], [1]]  # pyright: ignore
            case _:
                return False
        return data.ndim == 1 and np.array_equal(data, np.arange(len(data)))


def note(read: dict[SSAValue, Counts], value: SSAValue, counts: Counts) -> None:
    """Note a reader: of each dim, no fewer rows are read than by any reader."""
    known = read.get(value)
    if known is not None:
        counts = tuple(a if a is b else None for a, b in zip(known, counts, strict=True))
    read[value] = counts


def _all(value: SSAValue) -> Counts:
    return (None,) * len(shape_of(value))


def _counts(names: object, sizes: Mapping[str, SSAValue]) -> Counts:
    assert isinstance(names, ArrayAttr)
    texts = [name.data for name in names if isinstance(name, StringAttr)]
    return tuple(sizes.get(text) for text in texts)


def _iterator(index: Index) -> int:
    """The iterator that an index is; -1 if it is not just one."""
    if index.constant == 0 and len(index.terms) == 1:
        atom, factor = index.terms[0]
        if factor == 1 and isinstance(atom, int):
            return atom
    return -1


def _outer(value: SSAValue, op: KernelOp) -> SSAValue | None:
    """The operand that a region's argument is."""
    return op.outer(value) if value in list(op.body.block.args) else None


def _is_lowest(expr: Expr, op: KernelOp) -> bool:
    """Whether an expression is -inf."""
    match expr:
        case Const(value):
            return value == float("-inf")
        case Read(source, ()):
            outer = _outer(source, op)
            maker = None if outer is None else outer.owner
            return isinstance(maker, ConstantOp) and bool(np.isneginf(maker.array()).all())
        case _:
            return False


def _set_rows(op: KernelOp, counts: Counts) -> None:
    """Give a kernel its counts as operands."""
    wanted = [(k, n) for k, n in enumerate(counts) if n is not None]
    if not wanted:
        return
    pairs = [number for k, count in wanted for number in (k, _operand(op, count))]
    op.properties["rows"] = DenseArrayBase.from_list(i64, pairs)


def _operand(op: KernelOp, value: SSAValue) -> int:
    """The number of an operand, a new one if need be."""
    inputs = list(op.inputs)
    if value not in inputs:
        op.operands = [*inputs, value]
        block: Block = op.body.block
        block.insert_arg(tensor_type(value), len(block.args))
    return list(op.inputs).index(value)


def _through_view(op: ViewOp, counts: Counts) -> Counts:
    """The rows of a view's source: of the dims that the view has, too."""
    limits = {k: n for k, n in enumerate(counts) if n is not None}
    return tuple(limits.get(_iterator(e)) for e in op.index())


__all__ = ["SkipPadding"]
