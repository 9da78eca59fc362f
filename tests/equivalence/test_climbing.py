"""A fault that no drawn input shows: an input is climbed to, and can be made again."""

import numpy as np
import pytest

from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.passes.equivalence import compare, witness
from isoform.passes.equivalence.climbing import Fault

WIDE, HIDDEN = 48, 24


def cut_off(sign: float = 1.0, part: float = 1.0, whole: bool = False) -> Program:
    """relu(relu(x W) v + z) in two columns: in the second all weights but one are negative.

    Args:
        sign, part: what the one weight is multiplied by.
        whole: whether the second column is left as it is, with no relu behind it.
    """
    rng, b = np.random.default_rng(3), GraphBuilder()
    x = b.input("x", (1, WIDE))
    h = b.relu(b.matmul(x, b.weight("W", rng.normal(size=(WIDE, HIDDEN)).astype(np.float32))))
    v = np.stack([rng.normal(size=HIDDEN), np.full(HIDDEN, -0.6)], 1).astype(np.float32)
    v[7, 1] = sign * part
    y = b.matmul(h, b.weight(f"v {sign} {part}", v))
    b.output("y", y if whole else b.relu(y))
    return b.build()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sign_that_every_drawn_input_hides_is_a_difference(seed: int) -> None:
    first, second = cut_off(), cut_off(-1.0)
    for k in range(60):
        for scale in witness.SCALES:
            x = witness.inputs_of(first, 977 * seed + k, scale)
            assert np.array_equal(run(first, x)["y"], run(second, x)["y"])
    verdict = compare(first, second, seed=seed, budget=900)
    assert verdict.kind == "different", verdict.text()
    found = verdict.difference
    assert found is not None and found.witness and found.steps
    x = witness.inputs_of(first, found.seed, found.scale, found.steps)
    values = tuple(float(run(p, x, Arithmetic.REAL)["y"][found.position]) for p in (first, second))
    assert values == pytest.approx(found.values)
    assert abs(values[0] - values[1]) > 1e-3 * max(map(abs, values))
    again = compare(first, second, seed=seed, budget=900)
    assert again.difference == found
    assert verdict.as_json()["difference"]["steps"] == [list(step) for step in found.steps]


def test_rounding_beside_a_fault_is_left_alone() -> None:
    """Made larger, it would be what shows first."""
    other = np.random.default_rng(0).normal(size=(8, 16))
    own = other * (1 + 1e-6)
    own[3, 5] = -other[3, 5]
    rounded = {"v": (other, other * (1 + 1e-6))}
    fault = Fault("b", {"w": (other, own), **rounded}).coarse
    assert {n: p.tolist() for n, p in fault.positions.items()} == {"w": [3 * 16 + 5]}
    assert Fault("b", rounded).coarse.positions["v"].size == other.size
