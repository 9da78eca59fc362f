"""Results whose size depends on data: as large as they can be, and a number of rows beside them.

NonZero, Compress, Unique and NonMaxSuppression are kept as nodes of the domain `isoform`, whose
results are padded with zeros; their last result is the number of rows. The importer remembers which
dim of which value has how many rows. Ops that go along such a dim row by row pass it on; any other
is an error of one line. Outputs are cut at the end (`Program.cuts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from ...dialects.errors import UserError
from ...dialects.graph import OpaqueOp
from ...dialects.opaque_kernels.bounded import DOMAIN, bound_of
from ...dialects.types import Tensor, shape_of, tensor
from .node import OnnxNode
from .values import OnnxValue


@dataclass(frozen=True)
class PaddedDim:
    """Which dim of a value has padding at its end, and the number of rows before it."""

    dim: int
    count: SSAValue


Counts = dict[SSAValue, PaddedDim]


def convert(node: OnnxNode, opsets: Mapping[str, int], counts: Counts) -> Sequence[SSAValue] | None:
    """The padded results of an op whose sizes depend on data; None for any other node."""
    if node.op_type not in ("Compress", "NonMaxSuppression", "NonZero", "Unique"):
        return None
    deciding = node.value(1 if node.op_type == "Compress" else 0)
    reads = node.op_type in ("Compress", "NonZero")
    if deciding.is_readable or (reads and not _is_computed(deciding)):
        return None  # known, or an input that a session reads as it comes
    types, dims = _types(node)
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.domain = DOMAIN
    if node.op_type == "NonMaxSuppression":
        proto.attribute.append(onnx.helper.make_attribute("most", int(_most(node))))
    names = [*proto.output, *[""] * (len(types) - len(proto.output))]
    del proto.output[:]
    proto.output.extend([*names, f"{names[0]}.count"])
    wanted = [t for t, name in zip(types, names, strict=True) if name]
    operands = [node[k] for k, value in enumerate(node.inputs) if value is not None]
    entries = [*(f"{name}={version}" for name, version in sorted(opsets.items())), f"{DOMAIN}=1"]
    data = proto.SerializeToString()
    op = OpaqueOp(node.op_type, operands, data, entries, [*wanted, tensor([], i64)])
    node.build.append(op)
    named = iter(op.results)
    found = [next(named) if name else op.results[0] for name in names]
    for value, dim, name in zip(found, dims, names, strict=True):
        if name and dim is not None:
            counts[value] = PaddedDim(dim, op.results[-1])
    return found


def _is_computed(value: OnnxValue) -> bool:
    """Whether the program computes a value; else it is known, or an input."""
    return value.computed is not None and not isinstance(value.computed.owner, Block)


def _most(node: OnnxNode) -> int:
    """The most boxes of a class."""
    boxes = node.shape(0)[1]
    if not node.has(2):
        return 0
    known = node.known(2)
    return boxes if known is None else min(boxes, max(0, int(known.reshape(-1)[0])))


def _types(node: OnnxNode) -> tuple[list[Tensor], list[int | None]]:
    """Types of all results, and which dim of each is padded."""
    shapes = [node.shape(k) for k in range(2 if node.op_type[0] in "CN" and len(node) > 1 else 1)]
    x = shapes[0]
    axis = node.axis(node.int("axis", 0), len(x)) if "axis" in node.attributes else None
    most = _most(node) if node.op_type == "NonMaxSuppression" else 0
    bound = bound_of(node.op_type, shapes, axis, most)
    element = node.value(0).element
    assert element is not None
    if node.op_type == "NonZero":
        return [tensor([max(len(x), 1), bound], i64)], [1]
    if node.op_type == "NonMaxSuppression":
        return [tensor([bound, 3], i64)], [0]
    shape = [bound] if axis is None else [*x[:axis], bound, *x[axis + 1 :]]
    values = tensor(shape, element)
    if node.op_type == "Compress":
        return [values], [axis or 0]
    size = math.prod(x) if axis is None else x[axis]
    rows = [tensor([n], i64) for n in (bound, size, bound)]
    return [values, *rows], [axis or 0, 0, None, 0]


# --- what goes on along padded dims ---

_POINTS = frozenset(
    {
        "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Equal", "Erf", "Exp", "Floor",
        "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
        "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "PRelu",
        "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sqrt", "Sub", "Sum",
        "Tanh", "Where", "Xor",
    }
)  # fmt: skip
_ALONG_OTHERS = frozenset(
    {
        "ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "ReduceL1", "ReduceL2", "ReduceMax",
        "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Softmax",
    }
)  # fmt: skip


def follow(node: OnnxNode, results: Sequence[OnnxValue | None], counts: Counts) -> None:
    """Note the padded dims of a node's results.

    Raises:
        UserError: the op does more with a padded dim than go along it.
    """
    given = _padded(node, counts)
    if not given:
        return
    rule = _RULES.get(node.op_type)
    for value in results:
        if value is None or value.computed is None:
            continue
        dim = None if rule is None else rule(node, given, shape_of(value.computed))
        first = next(iter(given.values()))
        if dim is None or any(rows.count is not first.count for rows in given.values()):
            raise unfit(node, given)
        if dim >= 0:
            counts[value.computed] = PaddedDim(dim, first.count)


def unfit(node: OnnxNode, given: Mapping[int, PaddedDim]) -> UserError:
    """The error of an op that reads a value whose size depends on data."""
    k = next(iter(given))
    size = node.shape(k)[given[k].dim]
    return UserError(
        f"it reads '{node.value(k).name}', which has as many rows as the data say (at most {size})",
        where=node.where,
        hint=f"elementwise ops, Gather, Transpose and the like may follow; {node.op_type} may not",
    )


def require_followed(node: OnnxNode, counts: Counts) -> None:
    """Raise UserError if an op reads a padded value that it has no rule for."""
    given = _padded(node, counts)
    if given and node.op_type not in _RULES:
        raise unfit(node, given)


def _padded(node: OnnxNode, counts: Counts) -> dict[int, PaddedDim]:
    """The operands that have padding, by position."""
    values = [None if v is None else v.computed for v in node.inputs]
    return {k: counts[v] for k, v in enumerate(values) if v is not None and v in counts}


Rule = Callable[[OnnxNode, Mapping[int, PaddedDim], Sequence[int]], "int | None"]
"""The padded dim of a result; -1 if it has none, None where the op does not fit."""


def _points(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    dims = {len(shape) - len(node.shape(k)) + rows.dim for k, rows in given.items()}
    if len(dims) != 1:
        return None
    (dim,) = dims
    for k in range(len(node)):
        own = dim - (len(shape) - len(node.shape(k)))
        if node.has(k) and k not in given and own >= 0 and node.shape(k)[own] != 1:
            return None
    return dim


def _moved(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    """The dim with as many elements before it and after it as in the operand."""
    if set(given) != {0}:
        return None
    own, dim = node.shape(0), given[0].dim
    for k, n in enumerate(shape):
        same = n == own[dim] and math.prod(shape[:k]) == math.prod(own[:dim])
        if same and math.prod(shape[k + 1 :]) == math.prod(own[dim + 1 :]):
            return k
    return None


def _transposed(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    order = node.ints("perm", ()) or list(reversed(range(len(shape))))
    return order.index(given[0].dim)


def _gathered(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    axis, indices = node.axis(node.int("axis", 0), len(node.shape(0))), len(node.shape(1))
    if set(given) == {1}:
        return axis + given[1].dim
    if set(given) != {0}:
        return None
    dim = given[0].dim
    return -1 if dim == axis else dim if dim < axis else dim + indices - 1


def _gathered_nd(
    node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]
) -> int | None:
    fits = set(given) == {1} and given[1].dim < len(node.shape(1)) - 1
    return given[1].dim if fits else None


def _others(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    """A dim that the op leaves as it is; the result shows which."""
    own, dim = node.shape(0), given[0].dim if 0 in given else -1
    if dim < 0 or set(given) != {0}:
        return None
    if len(shape) == len(own):
        return dim if shape[dim] == own[dim] and own[dim] != 1 else None
    lost = len(own) - len(shape)
    left = [k for k in range(len(own)) if k < dim]
    at = dim - sum(1 for k in left if k >= len(shape) or shape[k] != own[k])
    return at if lost and at < len(shape) and shape[at] == own[dim] else None


def _along(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    """Along one axis that is not the padded dim: softmaxes, slices, parts put together."""
    dims = {rows.dim for rows in given.values()}
    whole = all(k in given for k in range(len(node)) if node.has(k))
    if len(dims) != 1 or (node.op_type == "Concat" and not whole):
        return None
    (dim,) = dims
    size = node.shape(next(iter(given)))[dim]
    default = -1 if node.version >= 13 else 1
    axis = node.axis(node.int("axis", default), len(shape))
    return dim if axis != dim and shape[dim] == size else None


def _sliced(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    """The dim stays whole."""
    dim, axes = given[0].dim, node.known(3)
    named = range(len(shape)) if axes is None else [int(a) % len(shape) for a in axes.reshape(-1)]
    return None if set(given) != {0} or dim in named else dim


def _product(node: OnnxNode, given: Mapping[int, PaddedDim], shape: Sequence[int]) -> int | None:
    """PaddedDim of the left factor."""
    left = set(given) == {0} and given[0].dim == len(node.shape(0)) - 2
    turned = node.op_type == "Gemm" and node.int("transA", 0)
    return len(shape) - 2 if left and not turned else None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_POINTS, _points),
    **dict.fromkeys(_ALONG_OTHERS - {"Softmax", "LogSoftmax", "Hardmax"}, _others),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "Concat"), _along),
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _moved),
    "Gather": _gathered,
    "GatherND": _gathered_nd,
    "Gemm": _product,
    "MatMul": _product,
    "Slice": _sliced,
    "Transpose": _transposed,
}
