"""Rewrites of graph ops by `canonicalize`: identities that hold exactly, bit for bit.

Each pattern makes the program smaller or moves work into an op that does it for free. None changes
a value (x + 0.0 stays: it turns -0.0 into 0.0). `PATTERNS`, at the end, lists them by op name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import copysign

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ..errors import UndecidedExtent
from ..types import shape_of
from .base import GraphOp
from .contraction import ConvOp, MatmulOp
from .data import ConstantOp
from .elementwise import ClipOp, ReluOp
from .shaping import BroadcastOp, ConcatOp, PadOp, ReshapeOp, SliceOp, SplitOp, TransposeOp

Simplify = Callable[[GraphOp], "SSAValue | GraphOp | None"]


@dataclass(frozen=True)
class Simplification(RewritePattern):
    """Replace an op by the result of `simplify`: a value, a new op, or None for no change."""

    simplify: Simplify

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Apply `simplify`, keeping location, provenance and name."""
        assert isinstance(op, GraphOp)
        try:
            found = self.simplify(op)
        except UndecidedExtent:  # it may not hold for every size
            return
        if found is None:
            return
        if isinstance(found, SSAValue):
            rewriter.replace(op, (), [found])
            return
        found.location = op.location
        found.attributes |= op.attributes
        rewriter.replace(op, found)


def producer(op: GraphOp, cls: type[GraphOp], operand: int = 0) -> GraphOp | None:
    """The op that defines an operand, if it has this class."""
    owner = op.operands[operand].owner
    return owner if isinstance(owner, cls) else None


# --- ops that change nothing --------------------------------------------------------------------


def same_type(op: GraphOp) -> SSAValue | None:
    """reshape, cast and the like, if the result has the operand's type."""
    return op.operands[0] if op.operands[0].type == op.results[0].type else None


def same_order(op: GraphOp) -> SSAValue | None:
    """transpose by the identity permutation."""
    return op.operands[0] if list(op.ints("perm")) == sorted(op.ints("perm")) else None


def zero_pads(op: GraphOp) -> SSAValue | None:
    """pad by nothing."""
    return None if any(op.ints("pads")) else op.operands[0]


def whole_slice(op: GraphOp) -> SSAValue | None:
    """slice of everything, forwards."""
    whole = not any(op.ints("starts")) and all(
        step == 1 or size == 1
        for step, size in zip(op.ints("steps"), op.ints("sizes"), strict=True)
    )
    return same_type(op) if whole else None


def only_one(op: GraphOp) -> SSAValue | None:
    """concat of one operand, split into one part."""
    return op.operands[0] if len(op.operands) == len(op.results) == 1 else None


def single_elements(op: GraphOp) -> SSAValue | None:
    """reduce along dims of extent 1, which stay."""
    return same_type(op) if op.value("keep_dims") or not op.ints("axes") else None


def unit_window(op: GraphOp) -> SSAValue | None:
    """max_pool by windows of one element."""
    unit = all(n == 1 for n in (*op.ints("kernel"), *op.ints("strides")))
    return same_type(op) if unit and not any(op.ints("pads")) else None


def infinite_bounds(op: GraphOp) -> SSAValue | None:
    """clip to [-inf, inf]."""
    unbounded = op.value("min") == float("-inf") and op.value("max") == float("inf")
    return op.operands[0] if unbounded else None


def neutral(value: float) -> Simplify:
    """op(x, constant) where the constant is `value` everywhere: x / 1, x * 1, x - 0."""

    def simplify(op: GraphOp) -> SSAValue | None:
        return op.operands[0] if _is_splat(op.operands[1], value) else None

    return simplify


def _is_splat(value: SSAValue, number: float) -> bool:
    owner = value.owner
    while isinstance(owner, BroadcastOp):
        owner = owner.x.owner
    if not isinstance(owner, ConstantOp):
        return False
    # x - -0.0 is not an identity: it turns -0.0 into 0.0.
    values = [float(v) for v in owner.data.get_values() if not isinstance(v, tuple)]
    return all(v == number and copysign(1, v) == copysign(1, number) for v in values)


def commuted_one(op: GraphOp) -> SSAValue | None:
    """1 * x."""
    return op.operands[1] if _is_splat(op.operands[0], 1.0) else None


# --- an op after one of its kind ----------------------------------------------------------------


def idempotent(op: GraphOp) -> SSAValue | None:
    """relu(relu(x)), abs, floor, ceil, round, sign."""
    return op.operands[0] if producer(op, type(op)) is not None else None


def involution(op: GraphOp) -> SSAValue | None:
    """neg(neg(x)), not(not(x))."""
    inner = producer(op, type(op))
    return None if inner is None else inner.operands[0]


def merged_reshapes(op: GraphOp) -> GraphOp | None:
    """reshape(reshape(x))."""
    inner = producer(op, ReshapeOp)
    return None if inner is None else ReshapeOp(inner.operands[0], shape=op.ints("shape"))


def merged_transposes(op: GraphOp) -> GraphOp | None:
    """transpose(transpose(x))."""
    inner = producer(op, TransposeOp)
    if inner is None:
        return None
    first = inner.ints("perm")
    return TransposeOp(inner.operands[0], perm=[first[k] for k in op.ints("perm")])


def merged_broadcasts(op: GraphOp) -> GraphOp | None:
    """broadcast(broadcast(x))."""
    inner = producer(op, BroadcastOp)
    if inner is None:
        return None
    dims = [op.ints("dims")[d] for d in inner.ints("dims")]
    return BroadcastOp(inner.operands[0], shape=op.ints("shape"), dims=dims)


def merged_slices(op: GraphOp) -> GraphOp | None:
    """slice(slice(x))."""
    inner = producer(op, SliceOp)
    if inner is None:
        return None
    pairs = list(zip(inner.ints("steps"), op.ints("starts"), strict=True))
    starts = [a + step * b for a, (step, b) in zip(inner.ints("starts"), pairs, strict=True)]
    steps = [a * b for a, b in zip(inner.ints("steps"), op.ints("steps"), strict=True)]
    return SliceOp(inner.operands[0], starts=starts, sizes=op.ints("sizes"), steps=steps)


def merged_pads(op: GraphOp) -> GraphOp | None:
    """pad(pad(x)) with one fill and no cropping."""
    inner = producer(op, PadOp)
    if inner is None or inner.value("fill") != op.value("fill"):
        return None
    pads = [a + b for a, b in zip(inner.ints("pads"), op.ints("pads"), strict=True)]
    cropped = min((*inner.ints("pads"), *op.ints("pads"))) < 0
    return None if cropped else PadOp(inner.operands[0], pads=pads, fill=op.value("fill"))


def merged_clips(op: GraphOp) -> GraphOp | None:
    """clip(clip(x)), clip(relu(x)): monotone, so the bounds are clipped."""
    low, high = op.value("min"), op.value("max")
    match op.operands[0].owner:
        case ClipOp() as inner:
            first = (inner.value("min"), inner.value("max"))
        case ReluOp() as inner:
            first = (0.0, float("inf"))
        case _:
            return None
    if low > high or first[0] > first[1]:
        return None
    bounds = [min(max(bound, low), high) for bound in first]
    return ClipOp(inner.operands[0], min=bounds[0], max=bounds[1])


def flat_concat(op: GraphOp) -> GraphOp | None:
    """concat(concat(x, y), z) along one axis, if the inner one has no other use."""
    axis = op.value("axis")

    def parts(value: SSAValue) -> Sequence[SSAValue]:
        owner = value.owner
        if isinstance(owner, ConcatOp) and owner.value("axis") == axis and value.has_one_use():
            return owner.operands
        return (value,)

    flat = [part for value in op.operands for part in parts(value)]
    kept = [v for v in flat if shape_of(v)[axis] != 0] or flat[:1]
    return ConcatOp(*kept, axis=axis) if len(kept) != len(op.operands) else None


def concat_of_split(op: GraphOp) -> SSAValue | None:
    """concat of all the parts of a split, in order, along its axis."""
    owner = op.operands[0].owner
    if not isinstance(owner, SplitOp) or owner.value("axis") != op.value("axis"):
        return None
    return owner.x if list(op.operands) == list(owner.results) else None


# --- an op that does another's work for free ----------------------------------------------------


def matmul_of_transpose(op: GraphOp) -> GraphOp | None:
    """matmul of a transpose that swaps the last two dims: read it swapped instead."""
    operands, flags = list(op.operands), [op.value("transpose_a"), op.value("transpose_b")]
    for k in range(2):
        inner = producer(op, TransposeOp, k)
        if inner is not None and _swaps_last_two(inner.ints("perm")):
            operands[k], flags[k] = inner.operands[0], not flags[k]
    if operands == list(op.operands):
        return None
    return MatmulOp(*operands, transpose_a=flags[0], transpose_b=flags[1])


def _swaps_last_two(perm: Sequence[int]) -> bool:
    rank = len(perm)
    return list(perm) == [*range(rank - 2), rank - 1, rank - 2]


def conv_of_pad(op: GraphOp) -> GraphOp | None:
    """conv of zeros padded around the spatial dims: the conv's own padding."""
    inner = producer(op, PadOp)
    if inner is None or inner.value("fill") != 0 or min(inner.ints("pads")) < 0:
        return None
    pads, rank = inner.ints("pads"), len(inner.ints("pads")) // 2
    if any(pads[k] or pads[k + rank] for k in range(2)):
        return None
    spatial = [*pads[2:rank], *pads[rank + 2 :]]
    values = {name: op.value(name) for name in op.properties}
    values["pads"] = [a + b for a, b in zip(op.ints("pads"), spatial, strict=True)]
    return ConvOp(inner.operands[0], *op.operands[1:], **values)


def _patterns(*simplifications: Simplify) -> tuple[RewritePattern, ...]:
    return tuple(Simplification(simplify) for simplify in simplifications)


PATTERNS: dict[str, tuple[RewritePattern, ...]] = {
    "graph.abs": _patterns(idempotent),
    "graph.broadcast": _patterns(same_type, merged_broadcasts),
    "graph.cast": _patterns(same_type),
    "graph.ceil": _patterns(idempotent),
    "graph.clip": _patterns(infinite_bounds, merged_clips),
    "graph.concat": _patterns(only_one, concat_of_split, flat_concat),
    "graph.conv": _patterns(conv_of_pad),
    "graph.div": _patterns(neutral(1.0)),
    "graph.floor": _patterns(idempotent),
    "graph.matmul": _patterns(matmul_of_transpose),
    "graph.max_pool": _patterns(unit_window),
    "graph.mul": _patterns(neutral(1.0), commuted_one),
    "graph.neg": _patterns(involution),
    "graph.not": _patterns(involution),
    "graph.pad": _patterns(zero_pads, merged_pads),
    "graph.reduce_max": _patterns(single_elements),
    "graph.reduce_mean": _patterns(single_elements),
    "graph.reduce_min": _patterns(single_elements),
    "graph.reduce_prod": _patterns(single_elements),
    "graph.reduce_sum": _patterns(single_elements),
    "graph.relu": _patterns(idempotent),
    "graph.reshape": _patterns(same_type, merged_reshapes),
    "graph.round": _patterns(idempotent),
    "graph.sign": _patterns(idempotent),
    "graph.slice": _patterns(whole_slice, merged_slices),
    "graph.split": _patterns(only_one),
    "graph.sub": _patterns(neutral(0.0)),
    "graph.transpose": _patterns(same_order, merged_transposes),
}
