"""Results whose size depends on data: as large as they can be, and a number of rows beside them.

NonZero, Compress, Unique and NonMaxSuppression are kept as nodes of the domain `isoform`, whose
results are padded with zeros; their last result is the number of rows. The importer remembers which
dim of which value has how many rows (padded.py). Scatters from such rows are nodes of that domain,
too: their last operand is the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from ...dialects.graph import OpaqueOp
from ...dialects.opaque_kernels.bounded import DOMAIN, bound_of
from ...dialects.types import Tensor, is_float, tensor, tensor_type
from .node import OnnxNode
from .padded import Counts, PaddedDim
from .values import OnnxValue


def convert(
    node: OnnxNode, opsets: Mapping[str, int], counts: Counts, inside: bool
) -> Sequence[SSAValue] | None:
    """The padded results of an op whose sizes depend on data; None for any other node.

    Args:
        inside: whether the node is in a body, where no argument is an input of the program.
    """
    if node.op_type not in ("Compress", "NonMaxSuppression", "NonZero", "Unique"):
        return None
    deciding = node.value(1 if node.op_type == "Compress" else 0)
    reads = node.op_type in ("Compress", "NonZero")
    floats = deciding.element is not None and is_float(deciding.element)
    given = not (inside or floats or _is_computed(deciding))
    if deciding.is_readable or (reads and given):
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


def scatter(node: OnnxNode, rows: PaddedDim) -> Sequence[SSAValue]:
    """The result of a scatter of which the rows that count are applied."""
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.domain = DOMAIN
    proto.input.append("count")
    proto.attribute.append(onnx.helper.make_attribute("dim", rows.dim))
    operands = [*node.operands(), rows.count]
    entries = [f"={node.version}", f"{DOMAIN}=1"]
    op = OpaqueOp(
        node.op_type, operands, proto.SerializeToString(), entries, [tensor_type(node[0])]
    )
    node.build.append(op)
    return list(op.results)


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
