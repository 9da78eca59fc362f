"""The nests of one ONNX node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from ...dialects.nest import NestOp
from ...dialects.opaque import outer_names
from ...dialects.opaque_kernels.bounded import DOMAIN
from ...dialects.types import Array, Tensor
from .code import Code
from .node import IndexAlarm, KeptNode, NoNest
from .table import BOUNDED, TABLE


@dataclass(frozen=True)
class Nests:
    """What runs a node, one after another. Arguments: operands, results, the alarm."""

    nests: Sequence[NestOp]
    alarm: IndexAlarm | None


def find_nests(
    config: Mapping[str, Attribute],
    operands: Sequence[Tensor],
    results: Sequence[Tensor],
    known: Callable[[int], Array | None],
) -> Nests | None:
    """The nests of a node that `graph.opaque` keeps; None if it has none.

    Args:
        config: the properties of the op.
        operands, results: types of its operands and results, in order.
        known: the data of its operand number k, where compilation knows them.
    """
    proto, opset = config["node"], config["opset"]
    assert isinstance(proto, StringAttr) and isinstance(opset, ArrayAttr)
    node = onnx.NodeProto.FromString(bytes.fromhex(proto.data))
    tables = {"": TABLE, "ai.onnx": TABLE, DOMAIN: BOUNDED}
    writer = tables.get(node.domain, {}).get(node.op_type)
    if writer is None or outer_names(node):
        return None
    versions = dict(str(e.data).split("=") for e in opset.data)  # pyright: ignore
    code = Code([*operands, *results])
    inputs = _placed(node.input, list(range(len(operands))))
    outputs = _placed(node.output, list(range(len(operands), len(operands) + len(results))))
    wrapped = KeptNode(
        node.op_type,
        {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
        int(versions.get("", 1)),
        code,
        [None if k is None else code.buffers[k] for k in inputs],
        [None if k is None else code.buffers[k] for k in outputs],
        lambda k: None if inputs[k] is None else known(inputs[k]),  # pyright: ignore
    )
    try:
        writer(wrapped)
    except NoNest:
        return None
    return Nests(code.nests, wrapped.alarm)


def arg_max_nests(axis: int, operand: Tensor, result: Tensor) -> Nests:
    """The nests of `graph.arg_max`."""
    code = Code([operand, result])
    x, y = code.buffers
    TABLE["ArgMax"](KeptNode("ArgMax", {"axis": axis}, 1, code, [x], [y], lambda k: None))
    return Nests(code.nests, None)


def _placed(names: Sequence[str], numbers: Sequence[int]) -> list[int | None]:
    """The number of each name; None for those that are empty."""
    following = iter(numbers)
    return [next(following) if name else None for name in names]
