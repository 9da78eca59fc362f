"""The nine classic networks in the onnx wheel, with drawn weights, against onnxruntime."""

from pathlib import Path

import onnx
import pytest
from support.agreement import compare, run_onnxruntime, watching
from support.seeded import fill_constants

from isoform.compiler.commands.inputs import draw_inputs
from isoform.lowering.onnx_to_graph import import_onnx

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def test_the_wheel_still_holds_nine() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("name", MODELS)
def test_a_light_model_agrees(name: str) -> None:
    """The output and what the last softmax reads (it hides differences); intermediate tensors too.

    Once with five intermediate tensors as outputs, on one thread; once without, so that kernels
    are fused across them.
    """
    model = fill_constants(onnx.load(FOLDER / f"{name}.onnx"))
    with watching(model, 5):
        program = import_onnx(model, {})
        feeds = draw_inputs(program)
        theirs = run_onnxruntime(model, feeds)
    found = compare(program, theirs, feeds, threads=1)
    assert len(found.differences) >= 6
    found.check()
    with watching(model, 0):
        plain = import_onnx(model, {})
    compare(plain, {name: theirs[name] for name in plain.output_names}, feeds).check()
