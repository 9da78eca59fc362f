"""Random graphs survive the way to ONNX and back, and mean there what they mean here."""

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects import reference
from isoform.dialects.program import Program
from isoform.testing.random_programs import Agreement, random_graph, random_inputs

onnxruntime = pytest.importorskip("onnxruntime")
exporter = pytest.importorskip("isoform.lowering.graph_to_onnx.exporter")

LIMITS = onnxruntime.capi.onnxruntime_pybind11_state

CHUNK = 10


def seeds(chunk: int) -> range:
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


def programs(chunk: int):
    for seed in seeds(chunk):
        yield seed, random_graph(seed, floats=(f32,), integers=False, empty=0.0)


def run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]):
    """Outputs by name; None where onnxruntime says that it cannot run a (valid) model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [output.name for output in session.get_outputs()]
        used = {i.name for i in session.get_inputs()}
        found = session.run(names, {k: v for k, v in inputs.items() if k in used})
    except (LIMITS.NotImplemented, LIMITS.Fail):
        return None
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("chunk", range(6))
def test_a_round_trip_keeps_the_meaning(holds, tmp_path, chunk: int) -> None:
    from isoform.lowering.onnx_to_graph import import_onnx

    def check(program: Program, seed: int) -> str | None:
        path = tmp_path / "model.onnx"
        exporter.export_onnx(program, path)
        inputs = random_inputs(program, seed)
        before = reference.run(program, inputs)
        back = import_onnx(path, {})
        after = reference.run(back, {k: inputs[k] for k in back.inputs})
        for name, old in before.items():
            new = after[name]
            if old.shape != new.shape:
                return f"shape: '{name}' was {old.shape} and is {new.shape}"
            if not np.allclose(new, old, rtol=1e-6, atol=1e-6, equal_nan=True):
                return f"value: '{name}' differs by {np.nanmax(np.abs(new - old))}"
        return None

    holds(programs(chunk), check)


@pytest.mark.parametrize("chunk", range(6))
def test_onnxruntime_agrees(holds, chunk: int) -> None:
    ran = 0

    def check(program: Program, seed: int) -> str | None:
        nonlocal ran
        model = exporter.to_model(program)
        onnx.checker.check_model(model)
        inputs = random_inputs(program, seed)
        found = run_onnxruntime(model, inputs)
        if found is None:
            return None
        ran += 1
        difference = Agreement.of(program, inputs).difference(found)
        return None if difference is None else f"value: {difference}"

    holds(programs(chunk), check)
    assert ran >= 3
