"""Time Resize of [1, 64, 56, 56] here and in onnxruntime, each on the same one-node file.

    python benchmarks/resize.py                     the table of docs/results/cpu-memory-bound.md
    python benchmarks/resize.py --keep FOLDER       write the files there and measure nothing

Each row is the command `isoform bench FILE.onnx --against onnxruntime` in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {
    "linear-2x": ("linear", "half_pixel", 2.0),
    "linear-2x-corners": ("linear", "align_corners", 2.0),
    "linear-1.5x": ("linear", "half_pixel", 1.5),
    "linear-0.75x": ("linear", "half_pixel", 0.75),
    "linear-0.5x": ("linear", "half_pixel", 0.5),
    "cubic-2x": ("cubic", "half_pixel", 2.0),
}
SHAPE = (1, 64, 56, 56)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files, and measure them unless told to keep them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--seconds", default="3", metavar="S", help="for the runs of a row (3)")
    parsed = parser.parse_args(arguments)
    if parsed.keep is not None:
        write_files(Path(parsed.keep))
        return
    print("| | isoform, ms | onnxruntime, ms | | load |\n|---|---|---|---|---|")
    with TemporaryDirectory(prefix="isoform-") as folder:
        for path in write_files(Path(folder)):
            print(row(path, parsed.seconds), flush=True)


def write_files(folder: Path) -> list[Path]:
    """One file a case, named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (mode, coordinates, scale) in CASES.items():
        onnx.save(model(mode, coordinates, scale), folder / f"{name}.onnx")
    return [folder / f"{name}.onnx" for name in CASES]


def model(mode: str, coordinates: str, scale: float) -> onnx.ModelProto:
    """Resize of the two spatial dims, and nothing else."""
    out = [*SHAPE[:2], *(int(n * scale) for n in SHAPE[2:])]
    how = {"mode": mode, "coordinate_transformation_mode": coordinates}
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "scales"], ["y"], "resize", **how)],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(np.array([1, 1, scale, scale], np.float32), "scales")],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def row(path: Path, seconds: str) -> str:
    """One case, by the command in a process of its own."""
    words = ["bench", str(path), "--against", "onnxruntime", "--seconds", seconds, "--json"]
    program = [sys.executable, "-m", "isoform.compiler.cli", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    ours, theirs = found["results"]
    load = found["machine"]["load_average"]
    times = f"{ours['median_s'] * 1e3:.3f} | {theirs['median_s'] * 1e3:.3f}"
    return f"| {path.stem} | {times} | {theirs['ratio']:.1f}x | {load:.1f} |"


__all__ = ["CASES", "main", "model", "write_files"]

if __name__ == "__main__":
    main()
