"""Run a subgraph during an import: what control flow and functions need of the importer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import onnx
from onnx import FunctionProto
from xdsl.ir import Operation, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from .loading import in_order, needed
from .node import OnnxNode
from .padded import Sizes
from .values import OnnxValue

Env: TypeAlias = "dict[str, OnnxValue | None]"


@dataclass(frozen=True)
class CallContext:
    """The context of a node: opsets by domain, the calls that led here, a prefix for names."""

    opsets: Mapping[str, int]
    calls: tuple[str, ...] = ()
    prefix: str = ""


@dataclass(frozen=True)
class NodeOutcome:
    """The outcome of one node; `kind` is native, composed, folded, opaque or unsupported."""

    op_type: str
    domain: str
    name: str
    kind: str
    ops: tuple[str, ...] = ()  # the graph ops of a composed one
    reason: str = ""


class Importing(Protocol):
    """A running import, as importer.py implements it.

    Attributes:
        outcomes: what became of each node.
        visited: the number of nodes so far, loops unrolled; shared with separate imports.
        undecided: loops that end by data, and the known data of their operands.
        unfit: loops that have to be unrolled, by the same and their counts.
        sizes: what is known of sizes that data decide.
    """

    build: GraphBuilder
    outcomes: list[NodeOutcome]
    visited: list[int]
    undecided: set[tuple[bytes, tuple[bool, ...]]]
    unfit: set[tuple[object, ...]]
    sizes: Sizes

    def inside(self) -> Importing:
        """An import of a body, whose weights are this program's."""
        ...

    def is_padded(self, value: SSAValue | None) -> bool:
        """Whether data decide how much of a value is more than padding."""
        ...

    def run(self, nodes: Iterable[onnx.NodeProto], env: Env, scope: CallContext) -> None:
        """Convert nodes in order, reading and extending `env`."""
        ...

    def initialisers(self, graph: onnx.GraphProto, env: Env) -> None:
        """Put a graph's initialisers into `env`."""
        ...

    def fresh(self, name: str) -> str:
        """An unused weight name."""
        ...

    def named(self, node: OnnxNode, results: Sequence[SSAValue]) -> list[OnnxValue]:
        """The results of a node under its names."""
        ...

    def call_body(
        self, node: OnnxNode, make: Callable[[OnnxNode], FunctionProto | None], scope: CallContext
    ) -> Sequence[OnnxValue | None]:
        """The body that defines an op, on the operands."""
        ...

    def record(
        self, node: OnnxNode, kind: str, ops: tuple[str, ...] = (), reason: str = ""
    ) -> None:
        """Note the outcome of a node."""
        ...

    def mark(self) -> tuple[Operation | None, int]:
        """The current end of the program and the notes, for `undo`."""
        ...

    def undo(self, mark: Operation | None, recorded: int) -> None:
        """Remove what was added and noted since `mark`."""
        ...

    def holds_since(self, mark: Operation | None, *kinds: type[Operation]) -> bool:
        """Whether an op of these kinds was added after `mark`."""
        ...


def run_graph(
    importer: Importing, graph: onnx.GraphProto, inputs: Env, outer: Env, scope: CallContext
) -> list[OnnxValue]:
    """Run a subgraph on values for its inputs; other names refer to the outer scope."""
    env: Env = {name: value for name, value in outer.items() if name not in inputs} | inputs
    for info in [*graph.initializer, *(o for n in graph.node for o in n.output)]:
        env.pop(info if isinstance(info, str) else info.name, None)
    importer.initialisers(graph, env)
    nodes = in_order(graph.node, env)
    importer.run(needed(nodes, [o.name for o in graph.output]), env, scope)
    found: list[OnnxValue] = []
    for info in graph.output:
        value = env.get(info.name)
        if value is None:
            raise UserError(f"the subgraph does not define its output '{info.name}'")
        found.append(value)
    return found


def bound(body: onnx.GraphProto, values: Sequence[OnnxValue]) -> Env:
    """A subgraph's inputs with their values. Raises UserError if their numbers differ."""
    if len(body.input) != len(values):
        raise UserError(
            "the subgraph has another number of inputs", expected=len(body.input), found=len(values)
        )
    return {info.name: value for info, value in zip(body.input, values, strict=True)}
