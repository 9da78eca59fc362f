"""Random ONNX models, drawn without isoform's help, give here what they give in onnxruntime.

scripts/fuzz.py runs as many as one likes; docs/fuzzing.md has the counts.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.random_onnx import Case, random_model

import isoform

CHUNK = 8


def compiled(case: Case, folder: Path) -> dict[str, np.ndarray]:
    path = folder / "model.onnx"
    onnx.save(case.model, path)
    session = isoform.compile(isoform.load(path), threads=1, effort="quick")
    wanted = [i.name for i in case.model.graph.input]
    return session(**{name: case.inputs[name] for name in wanted})


def disagreements(seeds: range, folder: Path) -> list[str]:
    """Refusals are one clear line and no disagreement: fuzzing counts them."""
    found: list[str] = []
    for seed in seeds:
        case = random_model(seed)
        try:
            difference = case.difference(compiled(case, folder))
        except isoform.UserError:
            continue
        if difference is not None:
            found.append(f"seed {seed}: {difference}")
    return found


@pytest.mark.parametrize("chunk", range(5))
def test_models_agree_with_onnxruntime(chunk: int, tmp_path: Path) -> None:
    assert disagreements(range(chunk * CHUNK, (chunk + 1) * CHUNK), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(5, 125))
def test_more_models_agree_with_onnxruntime(chunk: int, tmp_path: Path) -> None:
    assert disagreements(range(chunk * CHUNK, (chunk + 1) * CHUNK), tmp_path) == []


def test_the_same_seed_gives_the_same_model_and_inputs() -> None:
    for seed in range(4):
        one, other = random_model(seed), random_model(seed)
        assert one.model.SerializeToString() == other.model.SerializeToString()
        assert all(
            np.array_equal(a, other.inputs[k], equal_nan=a.dtype.kind == "f")
            for k, a in one.inputs.items()
        )


def test_models_are_varied_and_valid() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        case = random_model(seed)
        onnx.checker.check_model(case.model, full_check=False)
        seen.update(case.operators)
    assert len(seen) > 110
    assert {"LSTM", "GRU", "RNN", "Loop", "Scan", "If", "ScatterND", "TopK", "Cast"} <= set(seen)


def test_a_wrong_value_is_seen() -> None:
    """Each output that is off at one position is a difference."""
    for seed in range(12):
        case = random_model(seed, special=0.0)
        right = {o.name: case.values[o.name].array for o in case.model.graph.output}
        assert case.difference(right) is None
        for name, array in right.items():
            position = tuple(n // 2 for n in array.shape)
            if not array.size or not np.isfinite(case.values[name].bound()[position]):
                continue
            wrong = array.copy()
            wrong[position] = (
                abs(wrong[position]) * 2 + 1 if array.dtype.kind == "f" else wrong[position] ^ True
            )
            found = case.difference({**right, name: wrong})
            assert found is not None and found.output == name and found.position == position
