"""Groups of graph ops that are one ONNX node, as a good exporter writes them.

- A bias that is added after a product or a convolution is its third operand.
- The importer's compositions of Gelu, HardSwish, Mish, PRelu, Selu and Softsign are written as
  that op again. The patterns are the importer's own compositions, so reading the file back
  gives the same program. Other compositions stay as they are.
- A mean over all spatial dims is GlobalAveragePool.
- Slices that split a value along one axis are a Split.

A group becomes one node only if nothing outside reads its inner values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from onnx import NodeProto, helper
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.graph import ConstantOp, GraphOp
from ...dialects.graph.contraction import ConvolutionOp, MatmulOp
from ...dialects.graph.elementwise import AddOp
from ...dialects.graph.reduction import ReduceMeanOp
from ...dialects.graph.shaping import BroadcastOp, SliceOp
from ...dialects.types import element_of, is_float, is_small_float, shape_of
from ..onnx_to_graph.node import OnnxNode
from ..onnx_to_graph.table import TABLE
from ..onnx_to_graph.values import OnnxValue
from .nodes import NodeWriter
from .operands import reshaped, unbroadcast, write_unbroadcast
from .ops import WRITERS

Write: TypeAlias = "Callable[[NodeWriter, list[str]], None]"


@dataclass(frozen=True)
class CompositeNode:
    """One node for several ops: its position, the other ops, its writer, the opset it needs."""

    root: Operation  # the op it stands at
    inside: tuple[Operation, ...]  # the other ops
    write: Write  # writes the node
    opset: int = 1  # the least that has it


def find_composites(ops: Sequence[Operation], opset: int) -> dict[Operation, CompositeNode]:
    """The groups of a program by the op they replace, with nodes that exist in this opset.

    Found from the end of the program, so that no op is in two groups.
    """
    found: dict[Operation, CompositeNode] = {}
    taken: set[Operation] = set()
    position = {op: k for k, op in enumerate(ops)}
    for op in reversed(ops):
        if op in taken or not isinstance(op, GraphOp):
            continue
        for whole in _candidates(op, position):
            if whole.opset <= opset and taken.isdisjoint((whole.root, *whole.inside)):
                found[whole.root] = whole
                taken.update((whole.root, *whole.inside))
                break
    return found


def _candidates(op: GraphOp, position: Mapping[Operation, int]) -> Iterator[CompositeNode]:
    if isinstance(op, AddOp):
        yield from _with_bias(op)
    if isinstance(op, ReduceMeanOp):
        yield from _global_average(op)
    if isinstance(op, SliceOp):
        yield from _split(op, position)
    element = element_of(op.results[0])
    if is_float(element) and not is_small_float(element):
        yield from _compositions(op)


# --- a bias --------------------------------------------------------------------------------------


def _with_bias(op: GraphOp) -> Iterator[CompositeNode]:
    """A product or convolution plus a value broadcast along all dims but the channels'."""
    for value, bias in (op.operands, op.operands[::-1]):
        before = value.owner
        if not value.has_one_use() or not isinstance(bias.owner, BroadcastOp):
            continue
        matrix = len(shape_of(value)) == 2 and is_float(element_of(value))
        if isinstance(before, MatmulOp) and matrix:
            yield CompositeNode(op, (before,), _gemm(before, bias))
        if isinstance(before, ConvolutionOp) and before.bias is None and _is_channels(bias):
            yield CompositeNode(op, (before,), _convolution(before, bias))


def _gemm(product: MatmulOp, bias: SSAValue) -> Write:
    flags = {"transA": product.value("transpose_a"), "transB": product.value("transpose_b")}

    def write(e: NodeWriter, outputs: list[str]) -> None:
        names = [e.name(product.a), e.name(product.b), write_unbroadcast(e, unbroadcast(bias))]
        with e.at(product):
            e.emit("Gemm", names, outputs, **{name: int(flag) for name, flag in flags.items()})

    return write


def _is_channels(bias: SSAValue) -> bool:
    """One number per channel, dim 1."""
    found = unbroadcast(bias)
    rank, own = len(shape_of(bias)), shape_of(found.value)
    others = [n for n, d in zip(own, found.dims, strict=True) if d != 1]
    channels = [n for n, d in zip(own, found.dims, strict=True) if d == 1]
    return rank > 2 and set(others) <= {1} and channels == [shape_of(bias)[1]]


def _convolution(op: ConvolutionOp, bias: SSAValue) -> Write:
    writer = WRITERS[op.name.removeprefix("graph.")]

    def write(e: NodeWriter, outputs: list[str]) -> None:
        name = e.name(unbroadcast(bias).value)
        if len(shape_of(unbroadcast(bias).value)) != 1:
            name = reshaped(e, name, [shape_of(bias)[1]])
        with e.at(op):
            writer(e, op, [e.name(op.x), e.name(op.w), name], outputs)

    return write


# --- a mean --------------------------------------------------------------------------------------


def _global_average(op: ReduceMeanOp) -> Iterator[CompositeNode]:
    """A mean over all dims but the first two; one dim alone may be the mean of a layer norm."""
    shape, axes = shape_of(op.operands[0]), op.ints("axes")
    if list(axes) != list(range(2, len(shape))) or len(axes) < 2 or 0 in shape:
        return
    if not is_float(element_of(op.results[0])):
        return

    def write(e: NodeWriter, outputs: list[str]) -> None:
        if op.value("keep_dims"):
            e.emit("GlobalAveragePool", [e.name(op.operands[0])], outputs)
            return
        mean = e.emit("GlobalAveragePool", [e.name(op.operands[0])])
        e.emit("Flatten", [mean], outputs)

    yield CompositeNode(op, (), write)


# --- parts ---------------------------------------------------------------------------------------


def _split(op: SliceOp, position: Mapping[Operation, int]) -> Iterator[CompositeNode]:
    """All parts of a value along one axis, without gaps, written at the first one's position."""
    whole, axis = shape_of(op.x), _axis_of(op)
    if axis is None:
        return
    parts = [
        use.operation
        for use in op.x.uses
        if isinstance(use.operation, SliceOp) and _axis_of(use.operation) == axis
    ]
    parts.sort(key=lambda part: part.ints("starts")[axis])
    sizes = [part.ints("sizes")[axis] for part in parts]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    if [p.ints("starts")[axis] for p in parts] != starts or sum(sizes) != whole[axis]:
        return
    first = min(parts, key=position.__getitem__)

    def write(e: NodeWriter, outputs: list[str]) -> None:
        names = [e.name(part.result) for part in parts]
        e.emit("Split", [e.name(op.x), e.integers(sizes, "sizes")], names, axis=axis)

    yield CompositeNode(first, tuple(p for p in parts if p is not first), write)


def _axis_of(op: SliceOp) -> int | None:
    """The one axis along which a slice takes less, with step 1."""
    whole, sizes = shape_of(op.x), op.ints("sizes")
    axes = [k for k, n in enumerate(whole) if sizes[k] != n]
    return axes[0] if len(axes) == 1 and 0 not in sizes and set(op.ints("steps")) == {1} else None


# --- what the importer composes ------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """An ONNX op that the importer composes: its attributes, and its opset."""

    op_type: str
    opset: int
    operands: int = 1
    attributes: tuple[tuple[str, Any], ...] = ()

    def node(self) -> NodeProto:
        names = [f"x{k}" for k in range(self.operands)]
        return helper.make_node(self.op_type, names, ["y"], **dict(self.attributes))


_KNOWN = (
    _Known("Gelu", 20),
    _Known("Gelu", 20, attributes=(("approximate", "tanh"),)),
    _Known("HardSwish", 14),
    _Known("Mish", 18),
    _Known("PRelu", 16, operands=2),
    _Known("Selu", 6),
    _Known("Softsign", 1),
)


@dataclass(frozen=True)
class _Pattern:
    """The composition of a known op over `inputs`, as graph ops of one element type."""

    known: _Known
    inputs: tuple[SSAValue, ...]
    result: SSAValue


@cache
def _patterns(element: Attribute) -> dict[str, list[_Pattern]]:
    """The compositions by the name of their last op; kept alive, as they are compared with."""
    found: dict[str, list[_Pattern]] = {}
    for known in _KNOWN:
        build = GraphBuilder()
        inputs = tuple(build.input(f"x{k}", (2,), element) for k in range(known.operands))
        values = [OnnxValue.of_ssa(f"x{k}", x) for k, x in enumerate(inputs)]
        node = OnnxNode(known.node(), known.opset, values, build, lambda name: name)
        (result,) = TABLE[known.op_type](node)
        assert isinstance(result.owner, GraphOp)
        build.output("y", result)
        _BUILT.append(build)
        found.setdefault(result.owner.name, []).append(_Pattern(known, inputs, result))
    return found


_BUILT: list[GraphBuilder] = []


def _compositions(op: GraphOp) -> Iterator[CompositeNode]:
    element = element_of(op.results[0])
    for pattern in _patterns(element).get(op.name, []):
        inputs: dict[SSAValue, SSAValue] = {}
        inside: list[Operation] = []
        if not _matches(pattern.result, op.results[0], inputs, inside):
            continue
        if all(u.operation in inside for i in inside[1:] for r in i.results for u in r.uses):
            operands = [inputs[x] for x in pattern.inputs]
            write = _known(pattern.known, operands)
            yield CompositeNode(op, tuple(inside[1:]), write, pattern.known.opset)


def _matches(
    pattern: SSAValue,
    value: SSAValue,
    inputs: dict[SSAValue, SSAValue],
    inside: list[Operation],
) -> bool:
    """Whether a value is computed as the pattern says; collects its inputs and ops."""
    wanted, found = pattern.owner, value.owner
    if not isinstance(wanted, Operation):
        return inputs.setdefault(pattern, value) is value
    literal = _literal(pattern)
    if literal is not None:
        return _literal(value) == literal
    if not isinstance(found, GraphOp) or type(found) is not type(wanted):
        return False
    if found.properties != wanted.properties:
        return False
    if found not in inside:
        inside.append(found)
    return all(
        _matches(a, b, inputs, inside) for a, b in zip(wanted.operands, found.operands, strict=True)
    )


def _literal(value: SSAValue) -> float | None:
    """The number that a broadcast literal has everywhere."""
    owner = unbroadcast(value).value.owner
    if not isinstance(owner, ConstantOp):
        return None
    numbers = {float(v) for v in owner.array().ravel()}
    return numbers.pop() if len(numbers) == 1 else None


def _known(known: _Known, operands: Sequence[SSAValue]) -> Write:
    """One node, which broadcasts operands after the first (the slope of a PRelu)."""

    def write(e: NodeWriter, outputs: list[str]) -> None:
        first, *others = operands
        names = [e.name(first), *(write_unbroadcast(e, unbroadcast(v)) for v in others)]
        e.emit(known.op_type, names, outputs, **dict(known.attributes))

    return write


__all__ = ["CompositeNode", "find_composites"]
