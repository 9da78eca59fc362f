"""Values whose size data decide: as large as they can be, and how many rows of them count.

A padded dim holds `count` rows and then anything. An op that goes along the dim row by row passes
the padding on (`follow`). An op that looks across it reads a number that changes nothing in place
of the padding (padded_ops.py), or works with the count (computed_sizes.py). Outputs are cut at the
end (`Program.cuts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp
from ...dialects.opaque import RANDOM_NODES
from ...dialects.types import element_of, shape_of, to_numpy
from .node import OnnxNode
from .value_ranges import ValueRange, range_of
from .values import OnnxValue


@dataclass(frozen=True)
class PaddedDim:
    """Which dim of a value has padding at its end, and the number of rows before it."""

    dim: int
    count: SSAValue


Counts: TypeAlias = "dict[SSAValue, PaddedDim]"


@dataclass
class Sizes:
    """What is known of sizes that data decide: the padding of values, the ranges of arguments.

    Attributes:
        symbolic: whether the program has symbolic dims, beside which nothing is padded.
    """

    counts: Counts
    ranges: dict[SSAValue, ValueRange]
    symbolic: bool = False

    def pad(self, value: SSAValue, rows: PaddedDim) -> None:
        """Note the padding of a value, unless all its rows always count."""
        numbers = range_of(rows.count, self.ranges)
        if numbers is None or float(numbers.low.min()) < shape_of(value)[rows.dim]:
            self.counts[value] = rows


@dataclass(frozen=True)
class Ready:
    """A node that no longer reads padding, or what it gives.

    Attributes:
        node: what is to be converted; its operands have numbers in place of padding.
        results: or the results.
        dims: the padding of each result; of no entry where the conversion itself notes it.
        finish: what is done with the first result of the node.
    """

    node: OnnxNode | None = None
    results: Sequence[SSAValue] = ()
    dims: Sequence[PaddedDim | None] = ()
    finish: Callable[[SSAValue], SSAValue] | None = None


class Reading:
    """A node and the padding of its operands.

    Attributes:
        given: the operands that have padding, by position.
    """

    def __init__(self, node: OnnxNode, sizes: Sizes):
        self.node, self.sizes = node, sizes
        self.build = node.build
        values = [None if v is None else v.computed for v in node.inputs]
        self.given = {
            k: sizes.counts[v] for k, v in enumerate(values) if v is not None and v in sizes.counts
        }

    def rank(self, k: int) -> int:
        return len(self.node.shape(k))

    def range(self, k: int) -> ValueRange | None:
        """Between which numbers an operand's elements lie."""
        value = self.node.value(k)
        if value.is_known:
            array = value.array().astype(np.float64)
            return ValueRange(array, array)
        return None if value.computed is None else range_of(value.computed, self.sizes.ranges)

    def places(self, shape: Sequence[int], dim: int) -> SSAValue:
        """The position of each element along a dim, as i64."""
        numbers = np.arange(shape[dim], dtype=np.int64)
        column = numbers.reshape([-1] + [1] * (len(shape) - dim - 1))
        return self.build.expand(self.node.data(column, f"places{dim}"), shape)

    def inside(self, k: int) -> SSAValue:
        """Where an operand is no padding: booleans of its shape."""
        rows, shape = self.given[k], self.node.shape(k)
        count = self.build.expand(rows.count, shape)
        return self.build.less(self.places(shape, rows.dim), count)

    def filled(self, k: int, number: Any) -> OnnxValue:
        """An operand with a number in place of its padding."""
        x = self.node[k]
        fill = self.build.expand(self.node.scalar(number, element_of(x)), shape_of(x))
        return OnnxValue.of_ssa(self.node.value(k).name, self.build.where(self.inside(k), x, fill))

    def with_operands(self, operands: Mapping[int, OnnxValue]) -> OnnxNode:
        """The node on other operands."""
        node = self.node
        inputs = [operands.get(k, v) for k, v in enumerate(node.inputs)]
        return OnnxNode(node.proto, node.version, inputs, node.build, node.fresh)

    def number(self, value: int) -> SSAValue:
        """An i64 without dims."""
        return self.build.constant(np.asarray(value, np.int64), i64)

    def vector(self, parts: Sequence[int | SSAValue]) -> SSAValue:
        """Numbers, each known or without dims, as one i64 vector."""
        made = [self.number(p) if isinstance(p, int) else p for p in parts]
        return self.build.concat(*(self.build.reshape(p, shape=[1]) for p in made), axis=0)

    def dims(self, k: int) -> list[int | SSAValue]:
        """The true dims of an operand."""
        found: list[int | SSAValue] = list(self.node.shape(k))
        if k in self.given:
            found[self.given[k].dim] = self.given[k].count
        return found

    def whole(self, k: int, position: int) -> SSAValue:
        """An element of a vector operand, as an i64 without dims."""
        x = self.build.slice(self.node[k], starts=[position], sizes=[1], steps=[1])
        return self.node.cast(self.node.reshape(x, []), i64)

    def unfit(self) -> UserError:
        """The error of an op that does with padding what no rule says."""
        k = next(iter(self.given))
        node, size = self.node, self.node.shape(k)[self.given[k].dim]
        name = node.value(k).name
        return UserError(
            f"it reads '{name}', which has as many rows as the data say (at most {size})",
            where=node.where,
            hint="elementwise ops, reductions, Gather and the like may follow; "
            f"{node.op_type} may not",
        )


def least(x: SSAValue) -> Any:
    """The least number of an element type."""
    kind = to_numpy(element_of(x))
    return -math.inf if kind.kind not in "iub" else 0 if kind.kind == "b" else np.iinfo(kind).min


def greatest(x: SSAValue) -> Any:
    """The greatest number of an element type."""
    kind = to_numpy(element_of(x))
    return math.inf if kind.kind not in "iub" else 1 if kind.kind == "b" else np.iinfo(kind).max


def same_count(a: SSAValue, b: SSAValue) -> bool:
    """Whether two numbers of rows are one: computed alike from the same."""
    waiting, seen = [(a, b)], set[tuple[SSAValue, SSAValue]]()
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        (x, first), (y, second) = map(_origin, pair)
        if first != second:
            return False
        if x is y:
            continue
        mine, other = x.owner, y.owner
        if not (isinstance(mine, Operation) and isinstance(other, Operation)):
            return False
        if not _alike(mine, other) or mine.results.index(x) != other.results.index(y):
            return False
        waiting += zip(mine.operands, other.operands, strict=True)
    return True


def _alike(a: Operation, b: Operation) -> bool:
    """Whether two ops give the same of the same operands."""
    if a.name != b.name or len(a.operands) != len(b.operands):
        return False
    if [v.type for v in a.results] != [v.type for v in b.results]:
        return False
    if isinstance(a, OpaqueOp) and isinstance(b, OpaqueOp):
        return same_node(a, b)
    return isinstance(a, GraphOp | ConstantOp) and a.properties == b.properties


def same_node(a: OpaqueOp, b: OpaqueOp) -> bool:
    """Whether two kept nodes give the same of the same operands: exporters write some twice."""
    if a.op_type.data in RANDOM_NODES or a.opset != b.opset:
        return False
    first, second = (onnx.NodeProto.FromString(bytes.fromhex(op.node.data)) for op in (a, b))
    for proto in (first, second):
        proto.input[:] = ["_" if name else "" for name in proto.input]
        proto.output[:] = ["_" if name else "" for name in proto.output]
        for told in ("name", "doc_string", "metadata_props"):
            proto.ClearField(told)
    return first == second


def _origin(value: SSAValue) -> tuple[SSAValue, int]:
    """The element that a number was moved from."""
    position = 0
    while isinstance(op := value.owner, Operation):
        if op.name in ("graph.reshape", "graph.cast"):
            value = op.operands[0]
        elif op.name == "graph.concat" and len(shape_of(value)) == 1:
            for part in op.operands:
                if position < shape_of(part)[0]:
                    value = part
                    break
                position -= shape_of(part)[0]
        elif op.name == "graph.slice" and isinstance(op, GraphOp) and len(shape_of(value)) == 1:
            position = op.ints("starts")[0] + op.ints("steps")[0] * position
            value = op.operands[0]
        elif op.name == "graph.gather" and isinstance(places := op.operands[1].owner, ConstantOp):
            x = op.operands[0]
            if len(shape_of(x)) != 1:
                break
            position = int(places.array().ravel()[position]) % shape_of(x)[0]
            value = x
        else:
            break
    return value, position


# --- ops that go along the dim ---

Rule: TypeAlias = "Callable[[Reading, Sequence[int]], int | None]"
"""The padded dim of a result of this shape; -1 if it has none, None where the op does not fit."""


def follow(reading: Reading, results: Sequence[OnnxValue | None]) -> None:
    """Note the padded dims of a node's results.

    Raises:
        UserError: the op does more with a padded dim than go along it.
    """
    given = reading.given
    if not given:
        return
    rule = RULES.get(reading.node.op_type)
    first = next(iter(given.values()))
    for value in results:
        if value is None or value.computed is None:
            continue
        dim = None if rule is None else rule(reading, shape_of(value.computed))
        if dim is None or not all(same_count(r.count, first.count) for r in given.values()):
            raise reading.unfit()
        if dim >= 0:
            reading.sizes.pad(value.computed, PaddedDim(dim, first.count))


def _points(reading: Reading, shape: Sequence[int]) -> int | None:
    node, given = reading.node, reading.given
    dims = {len(shape) - reading.rank(k) + rows.dim for k, rows in given.items()}
    if len(dims) != 1:
        return None
    (dim,) = dims
    for k in range(len(node)):
        if not node.has(k) or k in given:
            continue
        own = dim - (len(shape) - reading.rank(k))
        if own >= 0 and node.shape(k)[own] != 1:
            return None
    return dim


def moved(reading: Reading, shape: Sequence[int]) -> int | None:
    """The dim with as many elements before it and after it as in the operand."""
    if set(reading.given) != {0}:
        return None
    own, dim = reading.node.shape(0), reading.given[0].dim
    for k, n in enumerate(shape):
        same = n == own[dim] and math.prod(shape[:k]) == math.prod(own[:dim])
        if same and math.prod(shape[k + 1 :]) == math.prod(own[dim + 1 :]):
            return k
    return None


def _transposed(reading: Reading, shape: Sequence[int]) -> int | None:
    order = reading.node.ints("perm", ()) or list(reversed(range(len(shape))))
    return order.index(reading.given[0].dim)


def _along(reading: Reading, shape: Sequence[int]) -> int | None:
    """Parts put together along another dim; all of them have padding."""
    node, dims = reading.node, {rows.dim for rows in reading.given.values()}
    if len(dims) != 1 or not all(k in reading.given for k in range(len(node)) if node.has(k)):
        return None
    (dim,) = dims
    return dim if node.axis(node.int("axis", 0), len(shape)) != dim else None


def _split(reading: Reading, shape: Sequence[int]) -> int | None:
    """The dim stays whole."""
    node, dim = reading.node, reading.given[0].dim if 0 in reading.given else -1
    return dim if node.axis(node.int("axis", 0), len(shape)) != dim >= 0 else None


def _batch(reading: Reading, shape: Sequence[int]) -> int | None:
    """Each image of a batch by itself."""
    return (
        0 if all(rows.dim == 0 for rows in reading.given.values()) and 0 in reading.given else None
    )


def _one_hot(reading: Reading, shape: Sequence[int]) -> int | None:
    """Before the new dim, or behind it."""
    node, dim = reading.node, reading.given[0].dim if 0 in reading.given else -1
    axis = node.axis(node.int("axis", -1), len(shape))
    return None if set(reading.given) != {0} else dim if dim < axis else dim + 1


def _normalised(reading: Reading, shape: Sequence[int]) -> int | None:
    """Along the last dims, from an axis on."""
    node = reading.node
    if set(reading.given) != {0}:
        return None
    dim = reading.given[0].dim
    return dim if dim < node.axis(node.int("axis", -1), len(shape)) else None


_POINTS = (
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos",
    "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual",
    "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
)  # fmt: skip
_BATCHES = (
    "AveragePool", "BatchNormalization", "Conv", "DepthToSpace", "GlobalAveragePool",
    "GlobalMaxPool", "InstanceNormalization", "LRN", "MaxPool", "SpaceToDepth", "ConvTranspose",
)  # fmt: skip

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_POINTS, _points),
    **dict.fromkeys(_BATCHES, _batch),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), moved),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalised),
    "Concat": _along,
    "OneHot": _one_hot,
    "Split": _split,
    "Transpose": _transposed,
}

__all__ = ["RULES", "Counts", "PaddedDim", "Reading", "Ready", "Sizes", "follow", "same_count"]
