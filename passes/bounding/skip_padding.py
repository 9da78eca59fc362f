"""skip-padding: kernels leave out rows of padding, which nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.context import WeightContext
from ...dialects.floats import BITS, Floats
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.index import Index
from ...dialects.index_range import ints_of
from ...dialects.kernel import (
    AttentionOp,
    CallOp,
    JoinOp,
    KernelOp,
    LoopsOp,
    ViewOp,
    YieldOp,
    layout_of,
    logical,
)
from ...dialects.opaque_kernels.bounded import DOMAIN
from ...dialects.program import ENDS, KEPT, ROWS, SIZE, Program, input_names_of, return_of
from ...dialects.scalars import Call, Const, Expr, Read, children
from ...dialects.types import shape_of, tensor_type
from ...dialects.weights import Weights
from ...lowering.algebra_to_kernel.attention import (
    Attention,
    Softmax,
    match_attention,
    match_softmax,
)

# Of each dim, how many of its rows are read: a value of @main, or None where all may be.
Counts: TypeAlias = "tuple[SSAValue | None, ...]"


@dataclass(frozen=True)
class SkipPadding(ModulePass):
    """Say of each kernel's result how many rows are read, so that code need not compute the rest.

    Of a result of a program that `bound-dims` made, the rows that count are read; so they are of a
    result that is cut to a computed size, and of what a scatter puts in. From there on it goes
    back: where a kernel's result is read up to a row, so are the operands whose row is the
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
        weights = ctx.weights if isinstance(ctx, WeightContext) else None
        _RowsRead(Program(op), weights).mark()


class _RowsRead:
    """How many rows of each value of @main are read.

    Attributes:
        read: by value, for all readers seen so far.
    """

    def __init__(self, program: Program, weights: Weights | None) -> None:
        self.block, self.weights = program.main.body.block, weights
        self.read: dict[SSAValue, Counts] = {}
        self.order = {op: k for k, op in enumerate(self.block.ops)}
        self.results, self.kept = _results(program), _kept(program)

    def mark(self) -> None:
        """Give the kernels of @main their `rows`, readers first."""
        for op in reversed(list(self.block.ops)):
            match op:
                case ReturnOp():
                    for value, counts in zip(op.arguments, self.results, strict=True):
                        note(self.read, value, counts)
                case CallOp() if (rows := _applied(op)) is not None:
                    for k, value in enumerate(op.inputs):
                        own = dict([rows]) if k in (1, 2) else {}
                        dims = range(len(shape_of(value)))
                        note(self.read, value, tuple(own.get(j) for j in dims))
                case KernelOp() if op.result in self.read:
                    counts = tuple(
                        n if self._is_known(n, op) else None for n in self.read[op.result]
                    )
                    keys, product = self._keys(op) if isinstance(op, AttentionOp) else (None, None)
                    keys = keys if self._is_known(keys, op) else None
                    for value, found in self._operands(op, counts, keys, product):
                        note(self.read, value, found)
                    _set_rows(op, counts)
                    if op.result in self.kept and isinstance(op, LoopsOp):
                        dim, kept, ends = self.kept[op.result]
                        _set_counts(op, "kept", [(dim, kept)])
                        _set_counts(op, "rows", [(dim, ends)])
                    if keys is not None:
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

    def _operands(
        self, op: KernelOp, counts: Counts, keys: SSAValue | None, product: ScopeOp | None
    ) -> Iterable[tuple[SSAValue, Counts]]:
        """What a kernel reads of its operands where its result is read up to these rows.

        Args:
            keys: how many terms of `product`, attention's second one, count.
        """
        read: dict[SSAValue, Counts] = {}
        for inner in reversed(list(op.body.block.ops)):
            if isinstance(inner, YieldOp):
                note(read, inner.value, counts)
            elif isinstance(inner, ScopeOp) and inner.result in read:
                own = {k: n for k, n in enumerate(read[inner.result]) if n is not None}
                if inner is product and keys is not None:
                    own[len(inner.traversal)] = keys
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
            case Call("select", (mask, chosen, other)):
                self._body(op, mask, limits, read)
                self._body(op, chosen, {**limits, **self._mask(mask, op)}, read)
                self._body(op, other, limits, read)
            case _:
                for part in children(expr):
                    self._body(op, part, limits, read)

    def _mask(self, mask: Expr, op: KernelOp) -> Mapping[int, SSAValue]:
        """The count of an iterator below which a mask holds; of any other expression nothing."""
        match mask:
            case Call("lt", (Read(places, index), Read(count, ()))):
                dim, found = self._counts_up(_outer(places, op)), _outer(count, op)
                k = -1 if dim is None else _iterator(index[dim])
                return {k: found} if k >= 0 and found is not None else {}
            case Read(value, index):
                outer = _outer(value, op)
                maker = value.owner if outer is None else outer.owner
                if isinstance(maker, KernelOp) and len(maker.scopes) == 1:
                    op, maker = maker, maker.scopes[0]
                inner = self._mask(maker.expr(), op) if isinstance(maker, ScopeOp) else {}
                own = {_iterator(index[k]): count for k, count in inner.items() if k < len(index)}
                return {k: count for k, count in own.items() if k >= 0}
            case _:
                return {}

    def _keys(self, op: AttentionOp) -> tuple[SSAValue | None, ScopeOp | None]:
        """How many keys count, where a mask lets the others' scores be -inf; the second product.

        `bound-dims` has made V zeros there, so they add nothing.
        """
        found = match_attention(op.scopes)
        softmax = None if found is None else _softmax(found)
        if found is None or softmax is None:
            return None, None
        scores = next((p for p in found.between if p.scope.result is softmax.scores), None)
        match None if scores is None else scores.scope.expr():
            case Call("select", (mask, _, other)) if _is_lowest(other, op):
                assert scores is not None
                along_keys = Index.iterator(found.loops)
                limits = self._mask(mask, op).items()
                along = (n for k, n in limits if scores.images[k] is along_keys)
                return next(along, None), found.context
            case _:
                return None, None

    def _counts_up(self, value: SSAValue | None) -> int | None:
        """The dim along which a value is 0, 1, 2, .., where the others have one element."""
        match None if value is None else value.owner:
            case ConstantOp() as op:
                data = op.array()
            case WeightOp() as op if self.weights is not None:
                data = self.weights[op.key]
            case CallOp() as op if op.callee.data == "graph.iota":
                numbers = [op.config.data[name] for name in ("start", "step")]
                counts = [list(n.get_values()) for n in numbers] == [[0], [1]]  # pyright: ignore
                return 0 if counts else None
            case _:
                return None
        dim = int(np.argmax(data.shape)) if data.ndim else 0
        counts = data.size == max(data.shape, default=0)
        return dim if counts and np.array_equal(data.reshape(-1), np.arange(data.size)) else None


def note(read: dict[SSAValue, Counts], value: SSAValue, counts: Counts) -> None:
    """Note a reader: of each dim, no fewer rows are read than by any reader."""
    known = read.get(value)
    if known is not None:
        counts = tuple(a if a is b else None for a, b in zip(known, counts, strict=True))
    read[value] = counts


def _all(value: SSAValue) -> Counts:
    return (None,) * len(shape_of(value))


def _results(program: Program) -> list[Counts]:
    """How many rows of each result are read."""
    main, outputs = program.main, program.output_names
    arguments = zip(input_names_of(main), main.body.block.args, strict=True)
    sizes = {name.removeprefix(SIZE): arg for name, arg in arguments if name.startswith(SIZE)}
    values = list(return_of(program.module).arguments)
    found = [list(_all(value)) for value in values]
    if (rows := main.attributes.get(ROWS)) is not None:
        assert isinstance(rows, ArrayAttr)
        for counts, entry in zip(found, rows, strict=True):
            assert isinstance(entry, ArrayAttr)
            counts[:] = [sizes.get(name.data) for name in entry if isinstance(name, StringAttr)]
    for count, (output, dim) in program.cuts.items():
        found[outputs.index(output)][dim] = values[outputs.index(count)]
    return list(map(tuple, found))


def _kept(program: Program) -> dict[SSAValue, tuple[int, SSAValue, SSAValue]]:
    """The results that may lie in an input's array: the dim, and between which rows to write.

    Only those that a kernel writes where the caller gets them, in the order of their dims.
    """
    values = dict(zip(program.output_names, return_of(program.module).arguments, strict=True))
    inputs = dict(zip(program.input_names, program.main.body.block.args, strict=True))
    found: dict[SSAValue, tuple[int, SSAValue, SSAValue]] = {}
    for name, (given, dim) in program.grows.items():
        value = values[name]
        joined = any(isinstance(use.operation, JoinOp) for use in value.uses)
        plain = layout_of(tensor_type(value)) == layout_of(logical(tensor_type(value)))
        if plain and not joined and list(values.values()).count(value) == 1:
            found[value] = dim, inputs[KEPT + given], inputs[ENDS + given]
    return found


def _applied(op: CallOp) -> tuple[int, SSAValue] | None:
    """The dim of a scatter's indices of which some rows are applied, and how many."""
    import onnx

    data = op.config.data.get("node")
    node = bytes.fromhex(data.data) if isinstance(data, StringAttr) else b""
    proto = onnx.NodeProto.FromString(node)
    dim = ints_of(proto).get("dim") if proto.domain == DOMAIN else None
    return None if dim is None else (dim, op.inputs[3])


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


def _softmax(found: Attention) -> Softmax | None:
    """A kernel's softmax, be there more done to single probabilities after it."""
    for end in range(len(found.between), 0, -1):
        softmax = match_softmax(replace(found, between=found.between[:end]))
        if softmax is not None or not found.between[end - 1].moves(found.loops):
            return softmax
    return None


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
    _set_counts(op, "rows", [(k, n) for k, n in enumerate(counts) if n is not None])


def _set_counts(op: KernelOp, name: str, counts: Sequence[tuple[int, SSAValue]]) -> None:
    """Give a kernel counts of rows as operands, beside those that it has under this name."""
    held = op.rows_read if name == "rows" else op.rows_kept
    pairs = [*held, *((dim, _operand(op, count)) for dim, count in counts)]
    if pairs:
        numbers = [number for pair in pairs for number in pair]
        op.properties[name] = DenseArrayBase.from_list(i64, numbers)


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
