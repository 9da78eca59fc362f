"""Random single-node models: what a generator draws, and the model it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from isoform.lowering.onnx_to_graph.tensor_data import to_proto

Array = Any  # arrays of any dtype

FLOATS = ("float32", "float64", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
NEWEST = 23


@dataclass(frozen=True)
class Sample:
    """One node: its attributes, its operands (None where left out), how many results it has."""

    op_type: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = NEWEST
    outputs: Sequence[bool] = (True,)  # which results are named
    constants: Sequence[int] = ()  # operands that must be initialisers
    domain: str = ""
    tolerance: float = 1e-4  # relative to the greatest magnitude; for 2-byte floats 100 times that
    steps: int = 0  # by which integers may differ: nothing fixes how the op rounds
    computed: Sequence[int] = ()  # operands that a node before this one makes: no inputs

    def model(self, given: Sequence[int] = ()) -> onnx.ModelProto:
        """A model of this node; its operands in `given` and `constants` are initialisers."""
        names = [f"x{k}" if a is not None else "" for k, a in enumerate(self.inputs)]
        results = [f"y{k}" if named else "" for k, named in enumerate(self.outputs)]
        node = helper.make_node(
            self.op_type, names, results, "n", domain=self.domain, **self.attributes
        )
        moved = [k for k in self.computed if k not in given]
        nodes = [helper.make_node("Gather", [f"x{k}", f"r{k}"], [f"c{k}"], axis=0) for k in moved]
        for k in moved:
            node.input[k] = f"c{k}"
        fixed = {*given, *self.constants}
        inputs = [
            helper.make_tensor_value_info(f"x{k}", to_proto(a).data_type, a.shape)
            for k, a in enumerate(self.inputs)
            if a is not None and k not in fixed
        ]
        inputs += [
            helper.make_tensor_value_info(f"r{k}", onnx.TensorProto.INT64, r.shape)
            for k, r in self.rows.items()
            if k in moved
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in results if name]
        weights = [
            to_proto(a, f"x{k}") for k, a in enumerate(self.inputs) if a is not None and k in fixed
        ]
        graph = helper.make_graph([*nodes, node], "g", inputs, outputs, weights)
        opsets = [helper.make_opsetid("", self.opset if not self.domain else 18)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, self.opset))
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    @property
    def rows(self) -> dict[int, Array]:
        """All rows of each computed operand, in order."""
        arrays = {k: self.inputs[k] for k in self.computed}
        return {k: np.arange(len(a)) for k, a in arrays.items() if a is not None}

    @property
    def feeds(self) -> dict[str, Array]:
        return {
            **{f"r{k}": rows for k, rows in self.rows.items()},
            **{
                f"x{k}": a
                for k, a in enumerate(self.inputs)
                if a is not None and k not in self.constants
            },
        }

    def __str__(self) -> str:
        shapes = [None if a is None else f"{a.dtype}{list(a.shape)}" for a in self.inputs]
        given = {k: v if not hasattr(v, "node") else "graph" for k, v in self.attributes.items()}
        text = f"{self.op_type}-{self.opset} {shapes} {given}"
        return re.sub(r"\s+", " ", text)[:600]


@cache
def versions_of(op_type: str, domain: str) -> list[int]:
    """The opsets in which an op has another meaning than before."""
    return sorted(
        s.since_version
        for s in onnx.defs.get_all_schemas_with_history()
        if s.name == op_type and s.domain == domain and not s.deprecated
    )


class Draw:
    """Random choices for one sample."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.wide = False  # whether a dim may be longer than a vector of the machine

    def int(self, low: int, high: int) -> int:
        """A number in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def ints(self, low: int, high: int, count: int) -> list[int]:
        return [self.int(low, high) for _ in range(count)]

    def flag(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.int(0, len(choices) - 1)]

    def float(self, low: float, high: float) -> float:
        return float(np.float32(self.rng.uniform(low, high)))

    def size(self, low: int, high: int) -> int:
        """A dim; where `wide`, now and then one that fills vectors and leaves a rest."""
        return self.int(9, 70) if self.wide and self.flag(0.4) else self.int(low, high)

    def shape(self, low: int = 0, high: int = 4, most: int = 4, least: int = 1) -> list[int]:
        found = self.ints(least, most, self.int(low, high))
        if self.wide and found:
            found[self.int(0, len(found) - 1)] = self.size(least, most)
        return found

    def opset(self, op_type: str, first: int = 7, domain: str = "") -> int:
        """An opset in which the op has one of its meanings, each meaning as likely."""
        versions = list(versions_of(op_type, domain))
        newest = NEWEST if domain == "" else max(versions)
        versions = [v for v in versions if v <= newest]
        start = self.pick(versions)
        after = [v for v in versions if v > start]
        low = max(start, first)
        high = max(low, min(after, default=newest + 1) - 1)
        return self.int(low, high)

    def array(self, dtype: str, shape: Sequence[int], low: float = -3, high: float = 3) -> Array:
        """Numbers of a dtype; integers and booleans in the same range (from 0 where unsigned)."""
        if dtype == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        kind = np.dtype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
        if kind.kind in "iu":
            low = max(low, 0) if kind.kind == "u" else low
            return np.asarray(self.rng.integers(int(low), int(high) + 1, shape)).astype(kind)
        return np.asarray(self.rng.uniform(low, high, shape)).astype(kind)

    def extreme(self, dtype: str, shape: Sequence[int]) -> Array:
        """Numbers over the whole range of a dtype, its ends among them."""
        kind = np.dtype(dtype)
        if kind.kind in "iu":
            info = np.iinfo(kind)
            found = self.rng.integers(info.min, info.max, shape, kind, endpoint=True)
            ends = np.array([info.min, info.max, 0, 1], kind)
        else:
            found = self.rng.normal(size=shape) * 10.0 ** self.rng.uniform(-3, 4, shape)
            ends = np.array([0.0, -0.0, 0.5, -1.5], kind)
        mixed = np.where(self.rng.random(shape) < 0.2, self.rng.choice(ends, shape), found)
        return np.asarray(mixed).astype(kind)


Generator = Callable[[Draw], Sample]
