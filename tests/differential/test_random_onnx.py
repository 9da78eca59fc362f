"""The random ONNX models of scripts/fuzz.py: drawn without isoform's help, varied, and fair."""

from collections import Counter

import numpy as np
import onnx
from support.random_onnx import random_model


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
    """Each output that is off at one place is a difference."""
    for seed in range(12):
        case = random_model(seed, special=0.0)
        right = {o.name: case.values[o.name].array for o in case.model.graph.output}
        assert case.difference(right) is None
        for name, array in right.items():
            place = tuple(n // 2 for n in array.shape)
            if not array.size or not np.isfinite(case.values[name].bound()[place]):
                continue
            wrong = array.copy()
            wrong[place] = (
                abs(wrong[place]) * 2 + 1 if array.dtype.kind == "f" else wrong[place] ^ True
            )
            found = case.difference({**right, name: wrong})
            assert found is not None and found.output == name and found.position == place
