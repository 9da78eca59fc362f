"""Sequences and optionals: lists that exist at import time only; the program has none.

A sequence's length and positions in it must be known; its entries are tensors of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from ...dialects.types import shape_of
from .node import OnnxNode
from .shape_binding import held_type
from .shaping import sliced
from .subgraphs import CallContext, Env, Importing, bound, run_graph
from .values import OnnxValue


class SequenceValue(OnnxValue):
    """A list of tensors; `present` is false for an empty optional."""

    def __init__(self, name: str, items: Sequence[OnnxValue], present: bool = True):
        super().__init__(name, (), None)
        self.items = list(items)
        self.present = present

    def ssa(self, build: GraphBuilder, fresh: Callable[[str], str], where: str) -> SSAValue:
        """Raises UserError: it is not a tensor."""
        raise UserError(f"'{self.name}' is a sequence, a tensor is needed", where=where)


def gather(env: Env, names: Sequence[str]) -> None:
    """Make a sequence of each of these inputs, of the inputs NAME.0, NAME.1, and so on."""
    for name in names:
        items: list[OnnxValue] = []
        while (value := env.pop(f"{name}.{len(items)}", None)) is not None:
            items.append(value)
        env[name] = SequenceValue(name, items)


def entries(info: onnx.ValueInfoProto, value: OnnxValue) -> list[tuple[str, OnnxValue]]:
    """The outputs that a value is: itself, or NAME.0, NAME.1, and so on for a sequence.

    Raises:
        UserError: a sequence is declared as a tensor, or a tensor as a sequence.
    """
    kind = info.type.WhichOneof("value")
    listed = kind is not None and held_type(info.type, f"output '{info.name}'")[0]
    if isinstance(value, SequenceValue):
        if not listed and kind != "optional_type":
            raise UserError(f"'{value.name}' is a sequence, a tensor is needed")
        return [(f"{info.name}.{k}", item) for k, item in enumerate(value.items)]
    if listed:
        raise UserError("it is declared as a sequence, and is a tensor")
    return [(info.name, value)]


def tensors(value: OnnxValue) -> list[OnnxValue]:
    """The tensors in a sequence; a tensor itself."""
    return value.items if isinstance(value, SequenceValue) else [value]


def lengths(value: OnnxValue) -> tuple[bool, int] | None:
    """Whether a sequence is there, and its length; None for a tensor."""
    return (value.present, len(value.items)) if isinstance(value, SequenceValue) else None


def items_of(node: OnnxNode, k: int) -> list[OnnxValue]:
    """The tensors of operand `k`. Raises UserError if it is not a sequence."""
    value = node.value(k)
    if not isinstance(value, SequenceValue):
        raise UserError(f"operand {k} is not a sequence", where=node.where)
    return value.items


def _position(node: OnnxNode, k: int, length: int, beyond: int = 0) -> int:
    """A position in [-length, length + beyond), counted from the front."""
    position = node.constant_int(k, "the position")
    if not -length <= position < length + beyond:
        raise UserError(
            "the position is outside the sequence", expected=f"{length} entries", found=position
        )
    return position + length if position < 0 else position


def _construct(node: OnnxNode) -> list[OnnxValue]:
    return [SequenceValue("", [node.value(k) for k in range(len(node))])]


def _empty(node: OnnxNode) -> list[OnnxValue]:
    return [SequenceValue("", [])]


def _at(node: OnnxNode) -> list[OnnxValue]:
    items = items_of(node, 0)
    return [items[_position(node, 1, len(items))]]


def _insert(node: OnnxNode) -> list[OnnxValue]:
    items = list(items_of(node, 0))
    position = _position(node, 2, len(items), 1) if node.has(2) else len(items)
    items.insert(position, node.value(1))
    return [SequenceValue("", items)]


def _erase(node: OnnxNode) -> list[OnnxValue]:
    items = list(items_of(node, 0))
    del items[_position(node, 1, len(items)) if node.has(1) else len(items) - 1]
    return [SequenceValue("", items)]


def _length(node: OnnxNode) -> list[OnnxValue]:
    return [OnnxValue.of_array("", np.asarray(len(items_of(node, 0)), np.int64))]


def _concat(node: OnnxNode) -> list[OnnxValue]:
    """Joined along an axis, or stacked along a new one."""
    parts = [v.ssa(node.build, node.fresh, node.where) for v in items_of(node, 0)]
    if not parts:
        raise UserError("the sequence is empty")
    rank = len(shape_of(parts[0]))
    if "axis" not in node.attributes:
        raise UserError("attribute 'axis' is missing")
    new = node.flag("new_axis")
    axis = node.axis(node.int("axis", 0), rank + 1 if new else rank)
    if new:
        parts = [node.reshape(p, [*shape_of(p)[:axis], 1, *shape_of(p)[axis:]]) for p in parts]
    joined = parts[0] if len(parts) == 1 else node.build.concat(*parts, axis=axis)
    return [OnnxValue.of_ssa("", joined)]


def _split(node: OnnxNode) -> list[OnnxValue]:
    """Parts of one size (the last may be smaller), of given sizes, or of 1 without the dim."""
    x, shape = node[0], node.shape(0)
    axis = node.axis(node.int("axis", 0), len(shape))
    n = shape[axis]
    if not node.has(1):
        sizes = [1] * n
    else:
        given = node.constant(1, "the split")
        each = int(given.ravel()[0]) if given.size else 0
        if given.ndim == 0 and each < 1:
            raise UserError("a part is not positive", found=each)
        sizes = given.tolist() if given.ndim else [min(each, n - k) for k in range(0, n, each)]
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise UserError("the parts do not add up to the dim", expected=n, found=sizes)
    items: list[OnnxValue] = []
    start = 0
    for size in sizes:
        starts = [start if k == axis else 0 for k in range(len(shape))]
        full = [size if k == axis else m for k, m in enumerate(shape)]
        part = sliced(node, x, starts, full, [1] * len(shape))
        if not node.has(1) and not node.flag("keepdims", True):
            part = node.reshape(part, [m for k, m in enumerate(full) if k != axis])
        items.append(OnnxValue.of_ssa("", part))
        start += size
    return [SequenceValue("", items)]


def _optional(node: OnnxNode) -> list[OnnxValue]:
    """A full optional is its value; an empty one is an absent sequence."""
    return [node.value(0) if node.has(0) else SequenceValue("", [], present=False)]


def _present(node: OnnxNode) -> bool:
    value = node.value(0) if node.has(0) else None
    return value is not None and not (isinstance(value, SequenceValue) and not value.present)


def _has_element(node: OnnxNode) -> list[OnnxValue]:
    return [OnnxValue.of_array("", np.asarray(_present(node)))]


def _get_element(node: OnnxNode) -> list[OnnxValue]:
    if not _present(node):
        raise UserError("the optional holds nothing")
    return [node.value(0)]


_OPS: dict[str, Callable[[OnnxNode], list[OnnxValue]]] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}


# Those that hand tensors on as they are.
HANDED_ON = frozenset(_OPS) - {"ConcatFromSequence", "SplitToSequence"}


def as_concat(node: OnnxNode) -> OnnxNode | None:
    """ConcatFromSequence along a dim that is there, as Concat of the tensors; None for others."""
    listed = node.inputs[0] if node.op_type == "ConcatFromSequence" and node.has(0) else None
    if not isinstance(listed, SequenceValue) or node.flag("new_axis"):
        return None
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.op_type = "Concat"
    return OnnxNode(proto, node.version, listed.items, node.build, node.fresh)


def resolve(node: OnnxNode) -> list[OnnxValue] | None:
    """The results of an op on sequences; None for another op."""
    if node.op_type == "Identity" and isinstance(node.value(0), SequenceValue):
        return [node.value(0)]
    handler = _OPS.get(node.op_type)
    return None if handler is None else handler(node)


def sequence_map(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """Apply the body to every entry of the first sequence and the others'; tensors are shared."""
    body, first = node.graph("body"), items_of(node, 0)
    rows: list[list[OnnxValue]] = []
    for k in range(len(first)):
        actual: list[OnnxValue] = []
        for value in (node.value(j) for j in range(len(node.inputs))):
            if isinstance(value, SequenceValue) and len(value.items) != len(first):
                raise UserError(
                    "the sequences differ in length",
                    expected=len(first),
                    found=len(value.items),
                )
            actual.append(value.items[k] if isinstance(value, SequenceValue) else value)
        rows.append(run_graph(importer, body, bound(body, actual), env, scope))
    importer.record(node, "composed")
    outs = range(len(node.proto.output))
    return [SequenceValue("", [row[j] for row in rows]) for j in outs]
