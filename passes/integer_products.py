"""integer-products: products of dequantised numbers are products of bytes, times their scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.floats import ROUNDING, Floats
from ..dialects.graph import ConstantOp, GraphOp
from ..dialects.graph.contraction import ConvOp, MatmulOp
from ..dialects.graph.elementwise import AddOp, CastOp, DivOp, MulOp, SubOp
from ..dialects.graph.reduction import ReduceSumOp
from ..dialects.graph.shaping import BroadcastOp, ReshapeOp, TransposeOp
from ..dialects.program import add_provenance, main_of
from ..dialects.types import element_of, is_byte, is_unsigned, shape_of
from ..dialects.weights_only import weights_only

RULE = "integer-products"
# So many products of bytes, each at most 255 * 255 after zero points, fit 32 bits.
MAX_TERMS = (1 << 31) // (255 * 255) - 1

Product: TypeAlias = "ConvOp | MatmulOp"


def terms(op: Product) -> int:
    """How many products an element of the result is the sum of."""
    if isinstance(op, ConvOp):
        return math.prod(shape_of(op.w)[1:])
    return shape_of(op.a)[-2 if op.value("transpose_a") else -1]


@dataclass(frozen=True)
class IntegerProducts(ModulePass):
    """Multiply bytes instead of the floats that they stand for; weights are the right operand.

    A product of scaled integers is the scaled product of the integers, which 32 bits hold
    (`scaled`). Zero points are taken out of it, as the product is linear (`apart`): what is left of
    them is a number for each column, from weights alone. A division after that joins the scale
    (`divided`). As real numbers all are equal; sums are exact and rounding differs.

    Before (float32, zero point z):

        %x = graph.mul (cast to f32 of %q - %z), %s
        %w = graph.mul (cast to f32 of %v), %t
        %y = graph.matmul %x, %w

    After:

        %p = graph.matmul (cast to i32 of %q), (cast to i32 of %v)
        %y = graph.mul (cast to f32 of %p - %z * sums of %v), %s * %t
    """

    name = RULE
    floats: ClassVar[Floats] = ROUNDING

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = main_of(op).body.block
        known = weights_only(block.ops)
        for product in list(block.ops):
            if isinstance(product, ConvOp | MatmulOp) and product.result not in known:
                made = _Rewrite(known, product).run()
                if made is not None:
                    _divide(made, known)


@dataclass(frozen=True)
class _Whole:
    """Integers of 32 bits: bytes minus a zero point, which is one number or None for 0."""

    bytes: SSAValue
    zero: SSAValue | None


@dataclass(frozen=True)
class _Scaled:
    """Floats: integers of 32 bits times a scale, of one number, or of a dim's numbers."""

    whole: SSAValue
    scale: SSAValue
    dim: int | None


class _Ops:
    """New ops before an old one; those of weights alone count as known."""

    def __init__(self, known: set[SSAValue], before: Operation) -> None:
        self.known, self.before = known, before
        self.made: list[Operation] = []

    def add(self, op: GraphOp | ConstantOp) -> SSAValue:
        """Insert an op and return its result."""
        op.location = self.before.location
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        if isinstance(op, ConstantOp) or all(v in self.known for v in op.operands):
            self.known.add(op.results[0])
        self.made.append(op)
        return op.results[0]

    def spread(self, value: SSAValue, shape: Sequence[int], dims: Sequence[int]) -> SSAValue:
        """Broadcast a value, its dims becoming `dims`; no op where nothing changes."""
        if shape_of(value) == tuple(shape):
            return value
        return self.add(BroadcastOp(value, shape=list(shape), dims=list(dims)))

    def scalar(self, value: SSAValue) -> SSAValue:
        """A value of one element with no dims."""
        return self.add(ReshapeOp(value, shape=[])) if shape_of(value) else value

    def flat(self, value: SSAValue) -> SSAValue:
        """A value as one dim."""
        shape = shape_of(value)
        return value if len(shape) == 1 else self.add(ReshapeOp(value, shape=[math.prod(shape)]))

    def i32(self, value: SSAValue) -> SSAValue:
        return value if element_of(value) == i32 else self.add(CastOp(value, to=i32))

    def number(self, value: int) -> SSAValue:
        return self.add(ConstantOp(np.asarray(value, np.int32), i32))


# --- what values are ------------------------------------------------------------------------------


def _source(value: SSAValue) -> SSAValue:
    """What a value repeats."""
    while isinstance(value.owner, BroadcastOp | ReshapeOp) and math.prod(
        shape_of(value.owner.x)
    ) in (1, math.prod(shape_of(value))):
        value = value.owner.x
    return value


def _one_number(value: SSAValue) -> SSAValue | None:
    """The one number that a value repeats; None if there are several."""
    found = _source(value)
    return found if math.prod(shape_of(found)) == 1 else None


def _along_one_dim(value: SSAValue) -> tuple[SSAValue, int | None] | None:
    """What a scale repeats and the dim along which it differs; None where it is no repetition."""
    one = _one_number(value)
    if one is not None:
        return one, None
    if not isinstance(value.owner, BroadcastOp):
        return (value, 0) if len(shape_of(value)) == 1 else None
    x, dims = value.owner.x, value.owner.ints("dims")
    wide = [d for d, n in zip(dims, shape_of(x), strict=True) if n > 1]
    return (x, wide[0]) if len(wide) == 1 else None


def _whole(value: SSAValue) -> _Whole | None:
    """Bytes in 32 bits, perhaps minus one zero point; None for other integers."""
    zero: SSAValue | None = None
    if isinstance(value.owner, SubOp):
        zero = _one_number(value.owner.b)
        if zero is None:
            return None
        value = value.owner.a
    if not isinstance(value.owner, CastOp) or element_of(value) != i32:
        return None
    found = value.owner.x
    return _Whole(found, zero) if is_byte(element_of(found)) else None


def _scaled(value: SSAValue) -> _Scaled | None:
    """Floats that are scaled integers of bytes; None for others."""
    owner = value.owner
    if not isinstance(owner, MulOp) or element_of(value) != f32:
        return None
    for left, right in ((owner.a, owner.b), (owner.b, owner.a)):
        inner = left.owner
        if not isinstance(inner, CastOp) or element_of(inner.x) != i32:
            continue
        scale = _along_one_dim(right)
        if scale is not None and _whole(inner.x) is not None:
            return _Scaled(inner.x, *scale)
    return None


def _moved_dim(dim: int, moves: Sequence[GraphOp]) -> int | None:
    """Where a dim is after transposes and broadcasts; None after a reshape."""
    for move in moves:
        if isinstance(move, BroadcastOp):
            dim = move.ints("dims")[dim]
        elif isinstance(move, TransposeOp):
            dim = move.ints("perm").index(dim)
        else:
            return None
    return dim


# --- rewriting ------------------------------------------------------------------------------------


class _Rewrite:
    """One product: of floats, or of integers in 32 bits."""

    def __init__(self, known: set[SSAValue], op: Product) -> None:
        self.op, self.known = op, known
        self.ops = _Ops(known, op)
        left, right = op.operands[:2]
        self.moves: tuple[list[GraphOp], list[GraphOp]] = ([], [])
        self.left, self.right = self._under_moves(left, 0), self._under_moves(right, 1)

    def _under_moves(self, value: SSAValue, side: int) -> SSAValue:
        """The operand before reshapes and transposes, which are repeated on its integers."""
        while isinstance(value.owner, ReshapeOp | TransposeOp | BroadcastOp):
            self.moves[side].insert(0, value.owner)
            value = value.owner.x
        return value

    def run(self) -> SSAValue | None:
        """Replace the product, if it is one of bytes; gives its new value, if that is scaled."""
        if element_of(self.op.result) == i32:
            left, right = _whole(self.left), _whole(self.right)
            if left is not None and right is not None and self._fits(left, right):
                self._replace(self._product(left, right))
            return None
        return self._scaled()

    def _fits(self, left: _Whole, right: _Whole) -> bool:
        """Whether a kernel multiplies them, filters constant, and sums fit."""
        if isinstance(self.op, ConvOp) and right.bytes not in self.known:
            return False
        return left.bytes not in self.known and terms(self.op) <= MAX_TERMS

    def _scaled(self) -> SSAValue | None:
        """scaled(a, s) * scaled(b, t) = scaled(a * b, s * t), then the bias."""
        a, b = _scaled(self.left), _scaled(self.right)
        if a is None or b is None or a.dim is not None or self._column(b) is None:
            return None
        left, right = _whole(a.whole), _whole(b.whole)
        if left is None or right is None or not self._fits(left, right):
            return None
        if right.bytes not in self.known:
            return None  # attention: floats
        total = self.ops.add(CastOp(self._product(left, right), to=f32))
        shape = shape_of(total)
        one, column = self.ops.scalar(a.scale), 1 if isinstance(self.op, ConvOp) else len(shape) - 1
        if b.dim is None:
            scale = self.ops.add(MulOp(one, self.ops.scalar(b.scale)))
            factor = self.ops.spread(scale, shape, [])
        else:
            flat = self.ops.flat(b.scale)
            by = self.ops.add(MulOp(flat, self.ops.spread(one, shape_of(flat), [])))
            factor = self.ops.spread(by, shape, [column])
        value = self.ops.add(MulOp(total, factor))
        if isinstance(self.op, ConvOp) and self.op.bias is not None:
            value = self.ops.add(AddOp(value, self.ops.spread(self.op.bias, shape, [1])))
        self._replace(value)
        return value

    def _column(self, b: _Scaled) -> int | None:
        """Whether scales belong to columns or filters: 1; None if they belong to other dims."""
        if b.dim is None:
            return 1
        dim = _moved_dim(b.dim, self.moves[1])
        if isinstance(self.op, ConvOp):
            return 1 if dim == 0 else None
        rank = len(shape_of(self.op.b))
        wanted = rank - 2 if self.op.value("transpose_b") else rank - 1
        return 1 if dim == wanted else None

    def _replace(self, value: SSAValue) -> None:
        value.name_hint = self.op.result.name_hint
        for op in self.ops.made:
            if isinstance(op, ConvOp | MatmulOp):
                add_provenance(op, [RULE])
        self.op.result.replace_all_uses_with(value)
        Rewriter.erase_op(self.op)

    # --- zero points, out of the product ---

    def _product(self, left: _Whole, right: _Whole) -> SSAValue:
        """(a - y)(b - z) = a b' - y (1 b') + (h - z)(a 1 - y (1 1)), for b' = b - h signed.

        h is 128 for unsigned weights, and 0 for others.
        """
        ops, weights = self.ops, right.bytes
        gap: SSAValue | None = right.zero
        if is_unsigned(element_of(weights)):
            half = ops.number(128)
            shape = shape_of(weights)
            moved = ops.add(SubOp(ops.i32(weights), ops.spread(half, shape, [])))
            weights = ops.add(CastOp(moved, to=i8))
            zero = ops.number(0) if gap is None else ops.i32(ops.scalar(gap))
            gap = ops.add(SubOp(zero, half))
        data = self._moved(ops.i32(left.bytes), 0)
        filters = ops.i32(self._moved(weights, 1))
        total = self._of(data, filters)
        if left.zero is not None:
            sums = self._columns(filters)
            total = ops.add(SubOp(total, self._times(left.zero, sums, shape_of(total))))
        if gap is not None:
            rest = self._rows(data, filters, left.zero)
            total = ops.add(SubOp(total, self._times(gap, rest, shape_of(total))))
        return total

    def _times(self, number: SSAValue, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A number times a value of the result's rank, at every element."""
        ops = self.ops
        number = ops.i32(ops.scalar(number))
        scaled = ops.add(MulOp(ops.spread(number, shape_of(value), []), value))
        return ops.spread(scaled, shape, range(len(shape)))

    def _moved(self, value: SSAValue, side: int) -> SSAValue:
        """The same reshapes and transposes of an operand's integers."""
        for move in self.moves[side]:
            settings = {name: move.value(name) for name in move.properties}
            value = self.ops.add(type(move)(value, **settings))
        return value

    def _of(self, left: SSAValue, right: SSAValue, groups: int | None = None) -> SSAValue:
        """The op on other operands, without its bias."""
        settings = {name: self.op.value(name) for name in self.op.properties}
        if groups is not None:
            settings["groups"] = groups
        return self.ops.add(type(self.op)(left, right, **settings))

    def _columns(self, filters: SSAValue) -> SSAValue:
        """Ones times the right operand: a sum for each column, of weights alone.

        At the edges of an image fewer taps count, so a convolution's sums have its positions.
        """
        ops, op = self.ops, self.op
        if isinstance(op, MatmulOp):
            axis = -1 if op.value("transpose_b") else -2
            rank = len(shape_of(filters))
            total = ops.add(ReduceSumOp(filters, axes=[rank + axis], keep_dims=True))
            return self._row(total)
        groups, x = op.value("groups"), shape_of(op.x)
        per_tap = ops.add(ReduceSumOp(filters, axes=[1], keep_dims=True))
        size = list(x[2:])
        if not any(op.ints("pads")):  # all positions are alike: one is enough
            kernel = shape_of(op.w)[2:]
            reach = zip(kernel, op.ints("dilations"), strict=True)
            size = [(k - 1) * d + 1 for k, d in reach]
        ones = ops.spread(ops.number(1), [1, groups, *size], [])
        return self._of(ones, per_tap)

    def _row(self, total: SSAValue) -> SSAValue:
        """Sums of columns, one after another in the last dim."""
        shape = shape_of(total)
        wanted = [*shape[:-2], 1, math.prod(shape[-2:])]
        return total if list(shape) == wanted else self.ops.add(ReshapeOp(total, shape=wanted))

    def _rows(self, data: SSAValue, filters: SSAValue, zero: SSAValue | None) -> SSAValue:
        """The left operand minus its zero point, times ones: a sum for each row or position."""
        ops, op = self.ops, self.op
        if zero is not None:
            number = ops.i32(ops.scalar(zero))
            data = ops.add(SubOp(data, ops.spread(number, shape_of(data), [])))
        if isinstance(op, MatmulOp):
            rank = len(shape_of(data))
            axis = rank - 2 if op.value("transpose_a") else rank - 1
            total = ops.add(ReduceSumOp(data, axes=[axis], keep_dims=True))
            shape = shape_of(total)
            wanted = [*shape[:-2], math.prod(shape[-2:]), 1]
            return total if list(shape) == wanted else ops.add(ReshapeOp(total, shape=wanted))
        groups = op.value("groups")
        f, _, *kernel = shape_of(filters)
        n, c, *size = shape_of(data)
        apart = ops.add(ReshapeOp(data, shape=[n, groups, c // groups, *size]))
        sums = ops.add(ReduceSumOp(apart, axes=[2], keep_dims=False))
        ones = ops.spread(ops.number(1), [groups, 1, *kernel], [])
        total = self._of(sums, ones)  # a number for each group and position
        if groups == 1:
            return total
        out = shape_of(total)
        wide = [n, groups, f // groups, *out[2:]]
        dims = [0, 1, *range(3, len(wide))]
        return ops.add(ReshapeOp(ops.spread(total, wide, dims), shape=[n, f, *out[2:]]))


# --- a division of what is scaled -----------------------------------------------------------------


def _divide(value: SSAValue, known: set[SSAValue]) -> None:
    """(x s + b) / c = x (s / c) + b / c, for the divisions that read it, of known numbers."""
    for use in list(value.uses):
        division = use.operation
        if not isinstance(division, DivOp) or use.index != 0 or division.b not in known:
            continue
        product, bias = value, None
        if isinstance(value.owner, AddOp):
            product, bias = value.owner.a, value.owner.b
        if not isinstance(product.owner, MulOp):
            continue
        ops, by = _Ops(known, division), division.b
        scale = _quotient(ops, product.owner.b, by)
        made = ops.add(MulOp(product.owner.a, scale))
        if bias is not None:
            made = ops.add(AddOp(made, _quotient(ops, bias, by)))
        made.name_hint = division.result.name_hint
        division.result.replace_all_uses_with(made)
        Rewriter.erase_op(division)


def _quotient(ops: _Ops, value: SSAValue, by: SSAValue) -> SSAValue:
    """A known value divided by a known one: small before it is repeated, if one number divides."""
    one, owner = _one_number(by), value.owner
    if one is None or not isinstance(owner, BroadcastOp):
        return ops.add(DivOp(value, by))
    inner = owner.x
    number = ops.spread(ops.scalar(one), shape_of(inner), [])
    small = ops.add(DivOp(inner, number))
    return ops.spread(small, shape_of(value), owner.ints("dims"))
