"""Other runtimes, as `bench` sees them. Each loads the model's file for a number of threads and
gives a function that runs it. Each is configured as its own documentation advises, and states how.

Each is imported in its own function only, which raises ImportError where it is not installed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from ...dialects.errors import UserError, one_line
from ...dialects.program import Program
from ...dialects.types import Array, to_numpy
from .model_file import PeerModel

Outputs: TypeAlias = "Sequence[Array]"
Open: TypeAlias = "Callable[[PeerModel, int, Mapping[str, Array]], Peer]"


class Refused(UserError):
    """A runtime does not accept the model. Fix: leave the runtime out, or see its message."""


@dataclass(frozen=True)
class Peer:
    """A runtime with the model loaded and its inputs bound.

    Attributes:
        model: the file it runs.
        settings: how it is configured.
    """

    name: str
    version: str
    run: Callable[[], Outputs]
    model: str = ""
    settings: str = ""


def onnxruntime_peer(model: PeerModel, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """onnxruntime's CPU provider, all optimisations on, sequential execution, dims bound.

    Raises:
        Refused: it does not load the model, or has no arrays of an input's or output's type.
    """
    import onnxruntime as ort

    for name, type_ in (*model.program.inputs.items(), *model.program.outputs.items()):
        dtype = to_numpy(type_.element_type)
        if dtype.isbuiltin != 1:  # of ml_dtypes
            raise Refused(f"onnxruntime has no numpy arrays of {dtype} ('{name}')")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    for name, size in model.named_dim_sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    providers = ["CPUExecutionProvider"]
    session = _refusing("onnxruntime", ort.InferenceSession, str(model.path), options, providers)
    named, wanted = dict(feeds), _own_outputs(model.program)
    bound = ", ".join(f"{name} = {size}" for name, size in sorted(model.named_dim_sizes.items()))
    settings = "ORT_ENABLE_ALL" + (f", {bound}" if bound else "")
    run = partial(session.run, wanted, named)
    return Peer("onnxruntime", ort.__version__, run, model.label, settings)


def _own_outputs(program: Program) -> list[str]:
    """The outputs that the file has, without isoform's numbers of rows beside them."""
    return [name for name in program.output_names if name not in program.cuts]


def openvino_peer(model: PeerModel, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """OpenVINO's CPU plugin with the latency hint, in float32 (its default may be bfloat16)."""
    import openvino  # pyright: ignore[reportMissingImports]

    core, program = openvino.Core(), model.program
    read = _refusing("openvino", core.read_model, str(model.path))
    if model.has_dims_without_size:
        shapes = {name: list(type_.get_shape()) for name, type_ in program.inputs.items()}
        _refusing("openvino", read.reshape, shapes)
    config: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(read, "CPU", config)
    request = compiled.create_infer_request()
    named = dict(feeds)

    def run() -> Outputs:
        found = request.infer(named)
        return [found[name] for name in _own_outputs(program)]

    version = openvino.__version__.partition("-")[0]
    return Peer("openvino", version, run, model.label, "latency hint, f32")


def torch_peer(model: PeerModel, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """torch in eager mode: the library's own module, or else torch's function for each graph op."""
    import torch  # pyright: ignore[reportMissingImports]

    from .torch_eager import eager, eager_module

    torch.set_num_threads(threads)
    if (module := _module(model)) is not None:
        run, label = eager_module(module, model.program, feeds), _module_label(model)
    else:
        run, label = eager(model.program, feeds), _TRANSLATED
    return Peer("torch", torch.__version__, run, label, "eager, inference mode")


def torch_compile_peer(model: PeerModel, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """torch.compile with freezing: inductor's C++ code, which needs a C++ compiler."""
    import torch  # pyright: ignore[reportMissingImports]

    from .torch_eager import compiled, compiled_module

    torch.set_num_threads(threads)
    if (module := _module(model)) is not None:
        make = partial(compiled_module, module, model.program, feeds)
        run, label = _refusing("torch.compile", make), _module_label(model)
    else:
        run, label = _refusing("torch.compile", compiled, model.program, feeds), _TRANSLATED
    return Peer("torch-compile", torch.__version__, run, label, "inductor, weights frozen")


_TRANSLATED = "isoform's graph ops, each by torch's function"


def _module(model: PeerModel) -> Any:
    """The original's own module, where its library is installed."""
    if model.original is None:
        return None
    from ..zoo.originals import torch_module

    try:
        return torch_module(model.program, model.original)
    except ImportError:
        return None


def _module_label(model: PeerModel) -> str:
    assert model.original is not None
    return f"{model.original.function} of {model.original.library}, the module itself"


def ncnn_peer(model: PeerModel, threads: int, feeds: Mapping[str, Array]) -> Peer:
    """ncnn in float32, with its default Winograd, converted by pnnx; batch 1 only.

    ncnn has no batch dim: inputs and outputs lack their first dim.
    """
    program = model.program
    shapes = [type_.get_shape() for type_ in program.inputs.values()]
    if any(shape[:1] != (1,) for shape in shapes):
        raise Refused("ncnn is measured at batch 1 only", found=str([*map(list, shapes)]))
    import ncnn  # pyright: ignore[reportMissingImports]

    net = ncnn.Net()
    net.opt.num_threads = threads
    for half in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{half}", False)
    with TemporaryDirectory() as folder:
        converted = _convert_for_ncnn(model, Path(folder))
        if net.load_param(f"{converted}.param") or net.load_model(f"{converted}.bin"):
            raise Refused("ncnn refuses the model")
    named = [feeds[name][0] for name in program.input_names]  # ncnn.Mat does not own its memory
    wanted = list(program.outputs.values())

    def run() -> Outputs:
        extractor = net.create_extractor()
        for k, array in enumerate(named):
            extractor.input(f"in{k}", ncnn.Mat(array))
        found = [extractor.extract(f"out{k}")[1] for k in range(len(wanted))]
        return [np.array(x).reshape(t.get_shape()) for x, t in zip(found, wanted, strict=True)]

    _refusing("ncnn", run)
    return Peer("ncnn", ncnn.__version__, run, model.label, "float32, converted by pnnx")


def _convert_for_ncnn(model: PeerModel, folder: Path) -> Path:
    """Write the model as `PATH.param` and `PATH.bin` with float32 weights; return PATH."""
    found = find_spec("pnnx")  # its own module would import torch
    if found is None or not found.submodule_search_locations:
        raise ImportError("pnnx")
    program_file = Path(found.submodule_search_locations[0]) / "pnnx"
    source = folder / "model.onnx"
    shutil.copyfile(model.path, source)  # pnnx writes beside its input
    command = [str(program_file), source.name, _input_shapes(model.program), "fp16=0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / "model.ncnn.param").exists():
        raise Refused(f"pnnx refuses the model: {one_line(done.stderr)[-200:]}")
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
    """Call into a runtime; report its refusal of the model in one line."""
    try:
        return call(*args)
    except ImportError:
        raise
    except UserError as error:
        raise Refused(f"{name} does not take the model: {error}") from error
    except Exception as error:
        raise Refused(f"{name} refuses the model: {one_line(str(error))[:300]}") from error


PEERS: dict[str, Open] = {
    "onnxruntime": onnxruntime_peer,
    "openvino": openvino_peer,
    "torch": torch_peer,
    "torch-compile": torch_compile_peer,
    "ncnn": ncnn_peer,
}
