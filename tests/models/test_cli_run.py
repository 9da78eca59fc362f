"""`isoform run` on real models, as a user runs it, against onnxruntime."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.agreement import TOLERANCE, difference, run_onnxruntime
from support.seeded import fill_constants, read_fixture

from isoform.compiler.cli import main

FIXTURES = Path(__file__).parent.parent / "fixtures"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TOKENS = ("input_ids", "attention_mask", "token_type_ids")


def tokens(shape: tuple[int, ...], vocabulary: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    ids, types = rng.integers(0, vocabulary, shape), rng.integers(0, 2, shape)
    return dict(zip(TOKENS, (ids, np.ones(shape, np.int64), types), strict=True))


def image(name: str, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: np.random.default_rng(0).standard_normal(shape, np.float32)}


CASES = {
    "resnet18-torchscript": image("image", (1, 3, 128, 96)),
    "bert-tiny-dynamo": tokens((2, 21), 200),
    "bert-tiny-torchscript": tokens((1, 5), 200),
    "light_squeezenet": image("data_0", (1, 3, 224, 224)),
}


def _model(name: str) -> onnx.ModelProto:
    if name.startswith("light_"):
        return fill_constants(onnx.load(LIGHT / f"{name}.onnx"))
    return read_fixture(FIXTURES / f"{name}.onnx.gz")


@pytest.mark.parametrize("extra", [[], ["--no-optimize"]], ids=["improved", "as it is"])
@pytest.mark.parametrize("name", CASES)
def test_isoform_run_agrees_in_one_native_call(
    name: str, extra: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feeds, model = CASES[name], _model(name)
    path, given, out = tmp_path / "m.onnx", tmp_path / "i.npz", tmp_path / "o.npz"
    path.write_bytes(model.SerializeToString())
    np.savez(given, **feeds)
    shapes = [f"--shape={k}={','.join(map(str, a.shape))}" for k, a in feeds.items()]
    command = ["run", path, *shapes, *extra, "--inputs", given, "--output", out, "--json"]
    status = main([str(word) for word in command])
    printed, err = capsys.readouterr()
    assert status == 0, err
    assert json.loads(printed)["native_calls"] == 1
    theirs = run_onnxruntime(str(path), feeds)
    with np.load(out) as ours:
        assert sorted(ours.files) == sorted(theirs)
        assert all(difference(ours[k], theirs[k]) <= TOLERANCE for k in theirs)
