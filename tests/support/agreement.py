"""Run one ONNX model here and in onnxruntime, and compare."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.graph import OpaqueOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.onnx_to_graph import import_onnx

TOLERANCE = 1e-4
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Agreement:
    """What one model did: differences by output, relative to the output's greatest magnitude."""

    differences: dict[str, float]
    spread: float
    opaque: list[str]
    native_calls: int

    def check(self) -> None:
        """All that issue 2 asks of a model."""
        assert self.opaque == []
        assert self.native_calls == 1
        assert self.spread > 1e-3, "outputs that hardly vary prove nothing"
        bad = {k: v for k, v in self.differences.items() if not v <= TOLERANCE}
        assert bad == {}


def run_onnxruntime(
    model: bytes | str | onnx.ModelProto, feeds: Mapping[str, np.ndarray]
) -> Arrays:
    """All outputs by name. A parsed model goes through a file: its bytes are not held as well."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    with TemporaryDirectory() as folder:
        if isinstance(model, onnx.ModelProto):
            path = f"{folder}/model.onnx"
            onnx.save(model, path)
            model = path
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))


# Masks are infinite or as good as: they must be equal, and are no measure for the rest.
HUGE = 1e30


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Greatest difference relative to the greatest magnitude; infinite if there is none."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype or np.isnan(theirs).any():
        return float("inf")
    wide, other = ours.astype(np.float64), theirs.astype(np.float64)
    plain = np.abs(other) < HUGE
    if not np.allclose(wide[~plain], other[~plain], rtol=1e-6, atol=0.0):
        return float("inf")
    scale = float(np.abs(other[plain]).max(initial=0.0)) or 1.0
    return float(np.abs(wide[plain] - other[plain]).max(initial=0.0)) / scale


def spread(array: np.ndarray) -> float:
    """How much an array varies, relative to its greatest magnitude."""
    plain = array.astype(np.float64)[np.abs(array) < HUGE]
    return (
        float(np.std(plain)) / (float(np.abs(plain).max(initial=0.0)) or 1.0) if plain.size else 0.0
    )


def opaque_ops(program: Program) -> list[str]:
    return [op.op_type.data for op in program.main.body.block.ops if isinstance(op, OpaqueOp)]


def agree(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    feeds: Mapping[str, np.ndarray] | None = None,
    threads: int = 2,
) -> Agreement:
    """Import, lower and run a model once, and run it in onnxruntime on the same inputs."""
    program = import_onnx(model, shapes or {})
    drawn = {**draw_inputs(program), **(feeds or {})}
    return compare(program, run_onnxruntime(model, drawn), drawn, threads)


def compare(
    program: Program,
    theirs: Mapping[str, np.ndarray],
    feeds: Mapping[str, np.ndarray],
    threads: int = 2,
) -> Agreement:
    """Run a program once and compare with the outputs of another runtime."""
    session = CpuSession(place(program), threads)
    ours = session.run(feeds)
    calls = session.native_calls
    session.close()
    assert list(ours) == list(theirs)
    return Agreement(
        {name: difference(ours[name], theirs[name]) for name in ours},
        max(spread(a) for a in theirs.values()),
        opaque_ops(program),
        calls,
    )


@contextmanager
def watching(model: onnx.ModelProto, count: int = 5) -> Generator[None]:
    """In the block, a model also returns what its last softmax reads, and `count` more tensors."""
    graph = model.graph
    own = len(graph.output)
    present = {o.name for o in graph.output}
    names = [n.input[0] for n in graph.node if n.op_type == "Softmax"][-1:]
    middle = [n.output[0] for n in graph.node if n.op_type not in ("Unsqueeze", "Constant")]
    names += [middle[(k + 1) * len(middle) // (count + 1)] for k in range(count)]
    for name in dict.fromkeys(names):
        if name not in present:
            graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    yield
    del graph.output[own:]
