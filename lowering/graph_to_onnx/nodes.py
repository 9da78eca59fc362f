"""Collect the nodes of an ONNX graph: fresh names, initialisers, deferred values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, helper
from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.graph import GraphOp
from ...dialects.types import Array, to_numpy
from ..onnx_to_graph.tensor_data import to_proto


class NodeWriter(ABC):
    """The names of values and nodes, and the nodes written so far.

    Attributes:
        waiting: deferred ops, written when their value is named, if ever.
    """

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []
        self.names: dict[SSAValue, str] = {}
        self.reshapes: dict[tuple[str, tuple[int, ...]], str] = {}
        self.waiting: dict[SSAValue, Operation] = {}
        self.taken: set[str] = set()
        self._node_names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._node = ""

    @abstractmethod
    def write(self, op: Operation) -> None:
        """Write one op."""

    @abstractmethod
    def one(self, op: Operation) -> None:
        """Write an op, unless another op's node includes it or may omit it."""

    def name(self, value: SSAValue) -> str:
        """The ONNX name of a value, made from its SSA name; writes its deferred op."""
        if value not in self.names:
            self.names[value] = self.fresh(value.name_hint or "v")
        if (op := self.waiting.pop(value, None)) is not None:
            with self.at(op):
                self.write(op)
        return self.names[value]

    def is_waiting(self, value: SSAValue) -> bool:
        """Whether the value is deferred: no reader has named it so far."""
        return value in self.waiting

    @contextmanager
    def at(self, op: Operation) -> Generator[None]:
        """Nodes emitted in the block are named after the op."""
        before = self._node
        self._node = op.location.desc.data if isinstance(op.location, NameLoc) else ""
        try:
            yield
        finally:
            self._node = before

    def fresh(self, name: str) -> str:
        """An unused value name."""
        return unique(name, self.taken, self._counts)

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node; its result gets a fresh name unless one is given. Return that name."""
        results = [self.fresh(f"{op_type}_out")] if outputs is None else list(outputs)
        self.nodes.append(
            helper.make_node(op_type, list(inputs), results, self.node_name(op_type), **attributes)
        )
        return results[0]

    def node_name(self, op_type: str) -> str:
        if self._node and self._node not in self._node_names:
            self._node_names.add(self._node)
            return self._node
        base = f"{self._node}/{op_type}" if self._node else op_type
        return unique(base, self._node_names, self._counts)

    def integers(self, values: Sequence[int], role: str) -> str:
        """An int64 initialiser."""
        return self.data(np.asarray(values, np.int64), role)

    def data(self, array: Array, role: str) -> str:
        name = self.fresh(f"{self._node or 'node'}/{role}")
        self.initialisers.append(to_proto(array, name))
        return name

    def scalar(self, value: float, element: Attribute, role: str) -> str:
        return self.data(np.asarray(value).astype(to_numpy(element)), role)


def unique(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """`name`, or with the first number that makes it new; `counts` stores the next number."""
    found = name
    while found in taken:
        counts[name] = counts.get(name, 0) + 1
        found = f"{name}_{counts[name]}"
    taken.add(found)
    return found


Writer: TypeAlias = "Callable[[NodeWriter, GraphOp, list[str], list[str]], None]"
