"""Small faults beside constants that were only rounded: with these set equal the fault shows."""

from collections.abc import Mapping

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare

LAYERS, WIDTH, SIZE = 4, 8, 2
CONV = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
Data = dict[str, np.ndarray]


def drawn(seed: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    made: Data = {}
    for k in range(LAYERS):
        made[f"w{k}"] = rng.normal(size=(WIDTH, WIDTH, 1, 1)) / np.sqrt(WIDTH / 2)
        made[f"scale{k}"] = 1 + 0.1 * rng.normal(size=WIDTH)
        made[f"shift{k}"] = 0.1 * rng.normal(size=WIDTH)
        made[f"mean{k}"] = 0.1 * rng.normal(size=WIDTH)
        made[f"var{k}"] = 1 + 0.3 * np.abs(rng.normal(size=WIDTH))
    return {name: array.astype(np.float32) for name, array in made.items()}


def apart(data: Data, epsilons: Mapping[int, float] = {}) -> Program:
    """Convolutions, each with its batch norm."""
    b = GraphBuilder()
    y = b.input("x", (1, WIDTH, SIZE, SIZE))
    for k in range(LAYERS):
        y = b.conv(y, b.weight(f"w{k}", data[f"w{k}"]), **CONV)
        rest = [b.weight(f"{n}{k}", data[f"{n}{k}"]) for n in ("scale", "shift", "mean", "var")]
        y = b.relu(b.batch_norm(y, *rest, epsilon=epsilons.get(k, 1e-5)))
    b.output("y", y)
    return b.build()


def folded(data: Data, way: int, changes: Mapping[str, np.ndarray] = {}) -> Program:
    """As a tool folds them, in float32, in one of several orders."""
    b = GraphBuilder()
    y = b.input("x", (1, WIDTH, SIZE, SIZE))
    for k in range(LAYERS):
        w, scale, shift, mean, var = (
            data[f"{n}{k}"] for n in ("w", "scale", "shift", "mean", "var")
        )
        root = np.sqrt(var + np.float32(1e-5))
        by = scale / root if way else scale * (np.float32(1) / root)
        weight = w * by.reshape(-1, 1, 1, 1)
        if way == 2:
            weight = w * scale.reshape(-1, 1, 1, 1) / root.reshape(-1, 1, 1, 1)
        bias = shift - mean * by if way != 1 else (np.float32(0) - mean) * by + shift
        weight = changes.get(f"w{k}", np.float32(1)) * weight
        y = b.conv(y, b.weight(f"folded{k}", weight.astype(np.float32)), **CONV)
        y = b.add(
            y, b.broadcast(b.weight(f"bias{k}", bias), shape=[1, WIDTH, SIZE, SIZE], dims=[1])
        )
        y = b.relu(y)
    b.output("y", y)
    return b.build()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_rounding_alone_is_never_a_difference(seed: int) -> None:
    data = drawn(seed)
    for pair in ((apart(data), folded(data, 0)), (folded(data, 1), folded(data, 2))):
        assert compare(*pair, budget=600.0).kind == "equal-up-to-folding"
    rng = np.random.default_rng(seed)
    moved = {
        f"w{k}": 1 + rng.integers(-30, 31, (WIDTH, WIDTH, 1, 1)) * 2.0**-24 for k in range(LAYERS)
    }
    for first in (apart(data), folded(data, 2)):
        verdict = compare(first, folded(data, 0, moved), budget=600.0)
        assert verdict.kind == "unknown", verdict.text()


@pytest.mark.parametrize("layer", range(LAYERS))
def test_an_epsilon_of_one_batch_norm_is_a_difference(layer: int) -> None:
    data = drawn()
    wrong = apart(data, {layer: 1e-4})
    for pair in ((folded(data, 0), wrong), (wrong, folded(data, 1))):
        verdict = compare(*pair, budget=600.0)
        assert verdict.kind == "different", verdict.text()
        assert verdict.difference is not None and verdict.difference.witness


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_a_weight_of_little_effect_is_a_difference(layer: int) -> None:
    data = drawn(2)
    data[f"w{layer}"][5, 7] = 2e-4
    data[f"shift{layer}"][5] = 2.0  # on neither side of it all is cut off
    if layer:
        data[f"shift{layer - 1}"][7] = 2.0
    sign = np.ones((WIDTH, WIDTH, 1, 1), np.float32)
    sign[5, 7] = -1
    for first in (folded(data, 1), apart(data)):
        verdict = compare(first, folded(data, 0, {f"w{layer}": sign}), budget=600.0)
        assert verdict.kind == "different", verdict.text()
