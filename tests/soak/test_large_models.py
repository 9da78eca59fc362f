"""Models with data beside them: each command's peak of memory, as a part of the weights.

`pytest -m soak -s tests/soak/test_large_models.py`; `ISOFORM_SOAK_MB=2200` chooses another size.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.soak

MEGABYTES = int(os.environ.get("ISOFORM_SOAK_MB", "600"))
SIDE = 2048  # of each layer's matrix: 16 MiB
LIMIT = 1.3
BUDGET = str(max(60, MEGABYTES // 5))  # so that the result is measured
COMMANDS = {
    "import": ("import", "{model}", "-o", "{folder}/out.mlir"),
    "run": ("run", "{model}", "--seed", "1"),
    "optimize to text": ("optimize", "{model}", "-o", "{folder}/out.mlir", "--budget", BUDGET),
    "optimize to ONNX": ("optimize", "{model}", "-o", "{folder}/out.onnx", "--budget", BUDGET),
    "verify": ("verify", "{model}", "{folder}/out.onnx"),
}


def write(folder: Path, layers: int, side: int) -> Path:
    """A chain of products and activations, its weights in one file beside the model."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[TensorProto] = []
    with (folder / "weights.bin").open("wb") as file:
        for k in range(layers):
            place = {"location": "weights.bin", "offset": file.tell(), "length": 4 * side * side}
            (rng.standard_normal((side, side), np.float32) / side**0.5).tofile(file)
            weight = TensorProto(name=f"w{k}", data_type=TensorProto.FLOAT, dims=[side, side])
            weight.data_location = TensorProto.EXTERNAL
            for key, value in place.items():
                weight.external_data.add(key=key, value=str(value))
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"m{k}"]))
            nodes.append(helper.make_node("Tanh", [f"m{k}"], [f"x{k + 1}"]))
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, side])]
        for name in ("x0", f"x{layers}")
    )
    graph = helper.make_graph(nodes, "chain", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def peak(command: tuple[str, ...], model: Path, cache: Path) -> int:
    """The most bytes that a command held, mapped files included."""
    words = [word.format(model=model, folder=model.parent) for word in command]
    code = "import resource, subprocess, sys; c = subprocess.run(sys.argv[1:]).returncode; "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(c)"
    run = [sys.executable, "-c", code, sys.executable, "-m", "isoform.compiler.cli", *words]
    environment = {**os.environ, "ISOFORM_CACHE": str(cache)}
    done = subprocess.run(run, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1]) << 10


def test_no_command_holds_much_more_than_the_weights(tmp_path: Path) -> None:
    """Beside what the same command takes for a model of nearly nothing."""
    large = write(tmp_path / "large", round(MEGABYTES * 1e6 / (4 * SIDE * SIDE)), SIDE)
    small = write(tmp_path / "small", 2, 8)
    weights = (large.parent / "weights.bin").stat().st_size
    ratios: dict[str, float] = {}
    for name, command in COMMANDS.items():
        alone = peak(command, small, tmp_path / "cache")
        whole = peak(command, large, tmp_path / "cache")
        ratios[name] = (whole - alone) / weights
        print(f"{name}: {whole / 2**20:.0f} MiB, {ratios[name]:.2f} of the weights more than small")
    assert max(ratios.values()) <= LIMIT
