"""Weights from a seed: models are kept without their data, which are drawn when they are loaded.

A float tensor that a node reads as a weight gets a distribution by its role (a kernel of a
convolution, a variance, ...), so that activations keep a sane size through deep models. Integers,
booleans and small tensors (shapes, epsilons, square roots) mean something: they are kept.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

# Smaller tensors are constants of the computation, not weights.
LEAST_ELEMENTS = 8
MARK = "seeded"
# What one operand of an op is: its name in ONNX, by (op type, operand number).
ROLES = {
    ("BatchNormalization", 1): "scale",
    ("BatchNormalization", 2): "bias",
    ("BatchNormalization", 3): "bias",
    ("BatchNormalization", 4): "scale",
    ("LayerNormalization", 1): "scale",
    ("LayerNormalization", 2): "bias",
    ("Conv", 2): "bias",
    ("Gemm", 2): "bias",
    ("Add", 0): "bias",
    ("Add", 1): "bias",
    ("Sum", 1): "bias",
    ("Mul", 0): "scale",
    ("Mul", 1): "scale",
    ("Gather", 0): "table",
}
# Ops through which a weight reaches its real user.
CARRIERS = ("Unsqueeze", "Reshape", "Transpose", "Identity", "Cast")


@dataclass(frozen=True)
class Draw:
    """A distribution and a seed: normal(0, a) or uniform [a, b)."""

    kind: str
    a: float
    b: float
    seed: int

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The same array every time."""
        rng = np.random.default_rng(self.seed)
        if self.kind == "normal":
            return (rng.standard_normal(shape, np.float32) * np.float32(self.a)).astype(dtype)
        return rng.uniform(self.a, self.b, shape).astype(dtype)

    def text(self) -> str:
        return f"{MARK} {self.kind} {self.a!r} {self.b!r} {self.seed}"

    @staticmethod
    def parse(text: str) -> Draw | None:
        """What `text` wrote; None for any other text."""
        parts = text.split(" ")
        if parts[0] != MARK or len(parts) != 5:
            return None
        return Draw(parts[1], float(parts[2]), float(parts[3]), int(parts[4]))


def draw_for(name: str, shape: tuple[int, ...], users: list[tuple[NodeProto, int]]) -> Draw:
    """How to draw a weight, by the first user that says what it is."""
    seed = zlib.crc32(name.encode())
    for node, operand in users:
        if node.op_type in ("Conv", "ConvTranspose") and operand == 1:
            return Draw("normal", math.sqrt(2 / max(1, math.prod(shape[1:]))), 0.0, seed)
        if node.op_type in ("Gemm", "MatMul") and operand < 2 and len(shape) == 2:
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            fan = shape[1] if transposed else shape[0]
            return Draw("normal", math.sqrt((2 if node.op_type == "Gemm" else 1) / fan), 0.0, seed)
        match ROLES.get((node.op_type, operand)):
            case "scale":
                return Draw("uniform", 0.5, 1.5, seed)
            case "bias":
                return Draw("normal", 0.1, 0.0, seed)
            case "table":
                return Draw("normal", 0.5, 0.0, seed)
            case _:
                pass
    return Draw("normal", 0.1, 0.0, seed)


def users_of(graph: onnx.GraphProto) -> dict[str, list[tuple[NodeProto, int]]]:
    """Who reads each value, through the ops that only carry it; nearest first."""
    users: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in reversed(graph.node):  # sorted: users of a node's result are known already
        for k, name in enumerate(node.input):
            carried = node.op_type in CARRIERS and k == 0
            found = users.get(node.output[0], []) if carried else [(node, k)]
            users[name] = [*found, *users.get(name, [])]
    return users


def _weights(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    for proto in graph.initializer:
        is_float = proto.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
        if is_float and math.prod(proto.dims) >= LEAST_ELEMENTS:
            yield proto


def strip(model: onnx.ModelProto) -> None:
    """Take the data of the weights out of a model, leaving how to draw others."""
    users = users_of(model.graph)
    for proto in _weights(model.graph):
        dims = tuple(proto.dims)
        draw = draw_for(proto.name, dims, users.get(proto.name, []))
        bare = TensorProto(name=proto.name, data_type=proto.data_type, doc_string=draw.text())
        bare.dims.extend(dims)
        proto.CopyFrom(bare)


def restore(model: onnx.ModelProto) -> onnx.ModelProto:
    """Draw what `strip` took out. Returns the model, changed in place."""
    for proto in model.graph.initializer:
        draw = Draw.parse(proto.doc_string)
        if draw is not None:
            dtype = helper.tensor_dtype_to_np_dtype(proto.data_type)
            array = draw.array(tuple(proto.dims), dtype)
            proto.CopyFrom(numpy_helper.from_array(array, proto.name))
    return model


def read_fixture(path: Path) -> onnx.ModelProto:
    """A committed graph (`.onnx.gz`, written by scripts/export_fixtures.py) with weights drawn."""
    return restore(onnx.ModelProto.FromString(gzip.decompress(path.read_bytes())))


def write_fixture(model: onnx.ModelProto, path: Path) -> None:
    """Write a graph without its weights, the same bytes each time."""
    strip(model)
    path.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0))


def fill_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """Turn each `ConstantOfShape` of a known shape into a weight and draw it, and the initialisers.

    The models of the onnx wheel hold 0.02 everywhere: their output is one number and proves little.
    """
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    kept = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            proto = TensorProto(name=node.output[0], data_type=TensorProto.FLOAT)
            proto.dims.extend(int(n) for n in shapes[node.input[0]])
            graph.initializer.append(proto)
    del graph.node[:]
    graph.node.extend(kept)
    strip(model)
    return restore(model)
