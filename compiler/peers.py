"""Other runtimes, as `bench` sees them: the model, a number of threads, a function that runs it.

Each is imported in its own function only, raising ImportError where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..dialects.errors import UserError, one_line
from ..dialects.program import Program
from ..dialects.types import Array

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


def _refusing(name: str, call: Callable[..., Any], *args: Any) -> Any:
    """Call into a runtime; its refusal of the model is the user's business, in one line."""
    try:
        return call(*args)
    except Exception as error:
        raise UserError(f"{name} refuses the model: {one_line(str(error))[:300]}") from error


PEERS: dict[str, Open] = {
    "onnxruntime": onnxruntime_peer,
    "openvino": openvino_peer,
    "torch": torch_peer,
}
