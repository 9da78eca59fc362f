"""CPU seconds from an ONNX file of many nodes to the first result.

python benchmarks/large_graphs.py --nodes 20000

`chain` is one path of products, additions and functions; `wide` has branches of three nodes, each
with a weight of its own, that a tree of additions joins; `concat` joins branches of two by one
node. Kernels are not measured (`--effort quick`), and the cache folder is empty at first.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = ("chain", "wide", "concat")
RUN = "import sys; from isoform.compiler.cli import main; sys.exit(main())"


class Graph:
    """Nodes over [4, 16] tensors, made one after the other."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.matrices = [self.weight(16, 16) for _ in range(8)]

    def weight(self, *shape: int) -> str:
        """The name of a new weight."""
        name = f"w{len(self.weights)}"
        data = self.random.standard_normal(shape).astype(np.float32) / 4
        self.weights.append(numpy_helper.from_array(data, name))
        return name

    def node(self, op: str, *inputs: str) -> str:
        """The name of a new node's result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name]))
        return name

    def concat(self, parts: Sequence[str]) -> str:
        """The name of the parts side by side."""
        self.nodes.append(helper.make_node("Concat", parts, ["joined"], axis=1))
        return "joined"


def model(shape: str, count: int) -> onnx.ModelProto:
    """A graph of about so many nodes."""
    g = Graph()
    if shape == "chain":
        last, bias = "x", [g.weight(1, 16) for _ in range(8)]
        while len(g.nodes) < count:
            k = len(g.nodes) // 4 % 8
            last = g.node("Add", g.node("MatMul", last, g.matrices[k]), bias[k])
            last = g.node("Sigmoid", g.node("Tanh", last))
    else:
        level: list[str] = []
        while len(level) * (4 if shape == "wide" else 2) < count:
            value = g.node("Tanh", g.node("Mul", "x", g.weight(1, 16)))
            wide = shape == "wide"
            level.append(g.node("MatMul", value, g.matrices[len(level) % 8]) if wide else value)
        while shape == "wide" and len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [g.node("Add", *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        last = level[0] if shape == "wide" else g.concat(level)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    made = helper.make_graph(g.nodes, shape, [x], [y], g.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Print a row for each shape and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--shapes", default=",".join(SHAPES[:2]), help=f"of {', '.join(SHAPES)}")
    asked = parser.parse_args()
    print("| nodes | shape | run | CPU s |\n|---|---|---|---|")
    for shape in asked.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            onnx.save(model(shape, asked.nodes), file)
            command = [sys.executable, "-c", RUN, "run", str(file), "--effort", "quick"]
            out = ["--seed", "1", "--output", str(Path(folder) / "y.npz")]
            environment = {**os.environ, "ISOFORM_CACHE": str(Path(folder) / "cache")}
            for number in ("first", "second"):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([*command, *out], env=environment, check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
                print(f"| {asked.nodes} | {shape} | {number} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
