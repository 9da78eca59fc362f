"""The nine classic networks in the onnx wheel, with drawn weights, against onnxruntime."""

from pathlib import Path

import onnx
import pytest
from support.agreement import agree, watch
from support.seeded import fill_constants

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def test_the_wheel_still_holds_nine() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("name", MODELS)
def test_a_light_model_agrees(name: str) -> None:
    """The output, and what the last softmax reads: a softmax hides differences."""
    model = fill_constants(onnx.load(FOLDER / f"{name}.onnx"))
    agree(watch(model, 0)).check()


@pytest.mark.parametrize("name", MODELS)
def test_intermediate_tensors_of_a_light_model_agree(name: str) -> None:
    model = watch(fill_constants(onnx.load(FOLDER / f"{name}.onnx")), 5)
    found = agree(model, threads=1)
    assert len(found.differences) >= 6
    found.check()
