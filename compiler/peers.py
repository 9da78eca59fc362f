"""Other runtimes, as `bench` sees them: the model, a number of threads, a function that runs it.

Each is imported in its own function only, raising ImportError where it is not installed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from ..dialects.errors import UserError, one_line
from ..dialects.program import Program
from ..dialects.types import Array, to_numpy

Outputs: TypeAlias = "Sequence[Array]"
Open: TypeAlias = "Callable[[Program, int, Mapping[str, Array]], Peer]"


@dataclass(frozen=True)
class Peer:
    """A runtime with the model loaded and its inputs bound."""

    name: str
    version: str
    run: Callable[[], Outputs]


def onnx_bytes(program: Program) -> bytes:
    """The program as a serialised ONNX model, made in memory."""
    from ..lowering.graph_to_onnx import to_model

    return to_model(program).SerializeToString()


def onnxruntime_peer(program: Program, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """onnxruntime's CPU provider, all optimisations on, sequential execution."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    session = _refusing(
        "onnxruntime", ort.InferenceSession, onnx_bytes(program), options, providers
    )
    named = dict(feeds)
    return Peer("onnxruntime", ort.__version__, lambda: session.run(program.output_names, named))


def openvino_peer(program: Program, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """OpenVINO's CPU plugin for latency, in float32 (it would take bfloat16 where it can)."""
    import openvino  # pyright: ignore[reportMissingImports]

    core = openvino.Core()
    model = _refusing("openvino", core.read_model, onnx_bytes(program))
    config: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(model, "CPU", config)
    request = compiled.create_infer_request()
    named = dict(feeds)

    def run() -> Outputs:
        found = request.infer(named)
        return [found[name] for name in program.output_names]

    return Peer("openvino", openvino.__version__.partition("-")[0], run)


def torch_peer(program: Program, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """torch in eager mode, each graph op by the torch function of the same meaning."""
    import torch  # pyright: ignore[reportMissingImports]

    from .torch_eager import eager

    torch.set_num_threads(threads)
    return Peer("torch", torch.__version__, eager(program, feeds))


def torch_compile_peer(program: Program, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """torch.compile with freezing: inductor's C++ code, which needs a C++ compiler."""
    import torch  # pyright: ignore[reportMissingImports]

    from .torch_eager import compiled

    torch.set_num_threads(threads)
    run = _refusing("torch.compile", compiled, program, feeds)
    return Peer("torch-compile", torch.__version__, run)


def ncnn_peer(program: Program, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """ncnn in float32, Winograd on as it is by default, converted by pnnx; batch 1 only.

    ncnn knows no batch: inputs and outputs are without their first dim.
    """
    shapes = [type_.get_shape() for type_ in program.inputs.values()]
    if any(shape[:1] != (1,) for shape in shapes):
        raise UserError("ncnn is measured at batch 1 only", found=str([*map(list, shapes)]))
    import ncnn  # pyright: ignore[reportMissingImports]

    net = ncnn.Net()
    net.opt.num_threads = threads
    for half in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{half}", False)
    with TemporaryDirectory() as folder:
        model = _convert_for_ncnn(program, Path(folder))
        if net.load_param(f"{model}.param") or net.load_model(f"{model}.bin"):
            raise UserError("ncnn refuses the model")
    named = [feeds[name][0] for name in program.input_names]  # ncnn.Mat does not own its memory
    wanted = list(program.outputs.values())

    def run() -> Outputs:
        extractor = net.create_extractor()
        for k, array in enumerate(named):
            extractor.input(f"in{k}", ncnn.Mat(array))
        found = [extractor.extract(f"out{k}")[1] for k in range(len(wanted))]
        return [np.array(x).reshape(t.get_shape()) for x, t in zip(found, wanted, strict=True)]

    _refusing("ncnn", run)
    return Peer("ncnn", ncnn.__version__, run)


def _convert_for_ncnn(program: Program, folder: Path) -> Path:
    """Write the model as `PATH.param` and `PATH.bin`, weights in float32; give that path."""
    found = find_spec("pnnx")  # its own module would import torch
    if found is None or not found.submodule_search_locations:
        raise ImportError("pnnx")
    program_file = Path(found.submodule_search_locations[0]) / "pnnx"
    source = folder / "model.onnx"
    source.write_bytes(onnx_bytes(program))
    command = [str(program_file), source.name, _input_shapes(program), "fp16=0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / "model.ncnn.param").exists():
        raise UserError(f"pnnx refuses the model: {one_line(done.stderr)[-200:]}")
    return folder / "model.ncnn"


def _input_shapes(program: Program) -> str:
    shapes: list[str] = []
    for type_ in program.inputs.values():
        kind = {"float32": "f32", "int64": "i64", "int32": "i32"}.get(
            str(to_numpy(type_.element_type)), "f32"
        )
        shapes.append(f"[{','.join(map(str, type_.get_shape()))}]{kind}")
    return f"inputshape={','.join(shapes)}"


def _refusing(name: str, call: Callable[..., Any], *args: Any) -> Any:
    """Call into a runtime; its refusal of the model is the user's business, in one line."""
    try:
        return call(*args)
    except (ImportError, UserError):
        raise
    except Exception as error:
        raise UserError(f"{name} refuses the model: {one_line(str(error))[:300]}") from error


PEERS: dict[str, Open] = {
    "onnxruntime": onnxruntime_peer,
    "openvino": openvino_peer,
    "torch": torch_peer,
    "torch-compile": torch_compile_peer,
    "ncnn": ncnn_peer,
}
