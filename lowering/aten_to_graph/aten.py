"""An ATen graph as plain data: nodes in order, with names, targets, arguments and result types.

Arguments are Python numbers, strings, None, lists, `Ref` (another node's result) and `DType`.
`to_json` and `from_json` write and read a graph as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from ...dialects.errors import UserError
from ...dialects.types import Tensor, from_numpy, tensor

ELEMENTS: Mapping[str, Attribute] = {
    "float32": f32, "float64": f64, "float16": f16, "bfloat16": bf16,
    "int8": i8, "int16": i16, "int32": i32, "int64": i64,
    "uint8": from_numpy("uint8"), "bool": i1,
}  # fmt: skip


class UnsupportedAten(UserError):
    """Say that an ATen op, or this use of it, has no form in the graph dialect.

    Cause: the op is not in the table, or an argument asks for what graph ops do not compute.

    Example: `aten.cummax.default`; `aten.add.Tensor` of unsigned integers.

    Fix: none is needed with `torch.compile`: torch runs the op.
    """


@dataclass(frozen=True)
class Ref:
    """The result of another node, by name."""

    name: str


@dataclass(frozen=True)
class DType:
    """An element type by torch's name: `float32`."""

    name: str

    @property
    def element(self) -> Attribute:
        """The element type. Raises UnsupportedAten where there is none."""
        if self.name not in ELEMENTS:
            raise UnsupportedAten(f"element type {self.name} is not supported")
        return ELEMENTS[self.name]


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> Tensor:
        """The tensor type. Raises UnsupportedAten for an element type without counterpart."""
        return tensor(self.shape, DType(self.dtype).element)


@dataclass(frozen=True)
class AtenCall:
    """One call: `target` is the op without its namespace, `add.Tensor`; or `getitem`.

    `results` are the specs of the tensors it returns; None stands for what is no tensor.
    """

    name: str
    target: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    results: Sequence[Spec | None]
    where: str = ""


@dataclass
class AtenGraph:
    """Inputs and weights by name, nodes in order, and the outputs with their names."""

    inputs: dict[str, Spec] = field(default_factory=dict)
    weights: dict[str, Spec] = field(default_factory=dict)
    nodes: list[AtenCall] = field(default_factory=list)
    outputs: list[tuple[str, Ref]] = field(default_factory=list)


def to_json(graph: AtenGraph) -> Any:
    """A graph as lists and dicts that `json` writes."""
    return {
        "inputs": {name: _spec(s) for name, s in graph.inputs.items()},
        "weights": {name: _spec(s) for name, s in graph.weights.items()},
        "nodes": [
            {
                "name": n.name,
                "target": n.target,
                "args": [_written(a) for a in n.args],
                "kwargs": {k: _written(v) for k, v in n.kwargs.items()},
                "results": [None if s is None else _spec(s) for s in n.results],
            }
            for n in graph.nodes
        ],
        "outputs": [[name, ref.name] for name, ref in graph.outputs],
    }


def from_json(data: Any) -> AtenGraph:
    """The graph that `to_json` wrote."""
    nodes = [
        AtenCall(
            n["name"],
            n["target"],
            [_read(a) for a in n["args"]],
            {k: _read(v) for k, v in n["kwargs"].items()},
            [None if s is None else _read_spec(s) for s in n["results"]],
        )
        for n in data["nodes"]
    ]
    return AtenGraph(
        {name: _read_spec(s) for name, s in data["inputs"].items()},
        {name: _read_spec(s) for name, s in data["weights"].items()},
        nodes,
        [(name, Ref(value)) for name, value in data["outputs"]],
    )


def renamed(graph: AtenGraph, names: Mapping[str, str]) -> AtenGraph:
    """A graph that reads inputs and weights under other names."""

    def new(value: Any) -> Any:
        match value:
            case Ref():
                return Ref(names.get(value.name, value.name))
            case list() | tuple():
                return [new(v) for v in value]
            case _:
                return value

    nodes = [
        replace(n, args=[new(a) for a in n.args], kwargs={k: new(a) for k, a in n.kwargs.items()})
        for n in graph.nodes
    ]
    outputs = [(name, new(ref)) for name, ref in graph.outputs]
    return AtenGraph(graph.inputs, graph.weights, nodes, outputs)


def _spec(spec: Spec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"


def _read_spec(text: str) -> Spec:
    dtype, _, dims = text.rstrip("]").partition("[")
    return Spec(tuple(int(d) for d in dims.split(",") if d.strip()), dtype)


def _written(value: Any) -> Any:
    match value:
        case Ref():
            return {"ref": value.name}
        case DType():
            return {"dtype": value.name}
        case list() | tuple():
            return [_written(v) for v in value]
        case _:
            return value


def _read(value: Any) -> Any:
    match value:
        case {"ref": str(name)}:
            return Ref(name)
        case {"dtype": str(name)}:
            return DType(name)
        case list():
            return [_read(v) for v in value]
        case _:
            return value
