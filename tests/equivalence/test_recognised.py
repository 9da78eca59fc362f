"""Weights that the other program computes from its own: what is recognised, what is not."""

from collections.abc import Callable

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare

ROWS, WIDTH = 5, 8
RNG = np.random.default_rng(11)
QUERIES = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
WEIGHT = (RNG.normal(size=(WIDTH, WIDTH)) / 3).astype(np.float32)
GAIN = (1 + RNG.normal(size=WIDTH) / 8).astype(np.float32)
SHIFT = (RNG.normal(size=WIDTH) / 8).astype(np.float32)
Change = Callable[[np.ndarray], np.ndarray]


def attended(queries: np.ndarray) -> np.ndarray:
    """Queries that attend to themselves, normed: each step in float32."""
    keys = queries @ WEIGHT
    scores = queries @ keys.T
    parts = np.exp(scores - scores.max(axis=1, keepdims=True))
    mixed = (parts / parts.sum(axis=1, keepdims=True)) @ keys
    centred = mixed - mixed.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return centred / spread * GAIN + SHIFT


def reader(folded: np.ndarray | None = None, turned: bool = False) -> Program:
    """x times what the queries attend to, which is computed, or a weight."""
    b = GraphBuilder()
    x = b.input("x", (3, WIDTH))
    if folded is None:
        q = b.weight("q", QUERIES)
        keys = b.matmul(q, b.weight("w", WEIGHT))
        mixed = b.matmul(b.softmax(b.matmul(q, keys, transpose_b=True), axis=1), keys)
        gain, shift = b.weight("gain", GAIN), b.weight("shift", SHIFT)
        made = b.layer_norm(mixed, gain, shift, axis=1, epsilon=1e-5)
        y = b.matmul(x, made, transpose_b=True)
    else:
        kept = np.ascontiguousarray(folded.T if turned else folded)
        y = b.matmul(x, b.weight("folded", kept), transpose_b=not turned)
    b.output("y", b.relu(y))
    return b.build()


def units(array: np.ndarray, position: int, count: int) -> np.ndarray:
    array.flat[position] += count * np.spacing(array.flat[position])
    return array


@pytest.mark.parametrize("turned", [False, True])
def test_half_a_network_of_constants_is_recognised(turned: bool) -> None:
    folded = attended(QUERIES)
    assert folded.dtype == np.float32
    for pair in ((reader(), reader(folded, turned)), (reader(folded, turned), reader())):
        verdict = compare(*pair)
        assert verdict.kind == "equal-up-to-folding", verdict.text()
        assert [a.name for a in verdict.assumptions] == ["inferred-folding"]
        assert [c.name for c in verdict.folded] == ["folded"]
        assert 0 < verdict.largest_ulps <= 8


WRONG: dict[str, Change] = {
    "one number off by 1e-4": lambda a: a + np.eye(ROWS, WIDTH) * 1e-4 * (np.arange(WIDTH) == 3),
    "a small number off by a part of the largest": lambda a: np.where(
        np.abs(a) == np.abs(a).min(), a + np.abs(a).max() * 2.0**-15, a
    ),
    "all scaled": lambda a: a * (1 + 2.0**-14),
    "rows moved by one": lambda a: np.roll(a, 1, axis=0),
    "a sign": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 7, -a, a),
    "NaN": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 7, np.nan, a),
    "infinite": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 7, np.inf, a),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_that_is_another_is_not(fault: str, first: bool) -> None:
    wrong = reader(WRONG[fault](attended(QUERIES)).astype(np.float32))
    verdict = compare(wrong, reader()) if first else compare(reader(), wrong)
    assert not verdict.is_equal, verdict.text()
    if fault not in ("NaN", "infinite"):
        assert verdict.kind == "different"


def test_positions_looked_up_by_constants_are_recognised() -> None:
    """T5's biases of distances: a table read at positions that are computed, in another layout."""
    table = RNG.normal(size=(6, 2)).astype(np.float32)
    at = np.abs(np.arange(4)[:, None] - np.arange(4)[None, :])

    def program(folded: np.ndarray | None) -> Program:
        b = GraphBuilder()
        x = b.input("x", (2, 4, 4))
        if folded is None:
            read = b.gather(b.weight("t", table), b.constant(at.astype(np.int64)), axis=0)
            bias = b.transpose(read, perm=[2, 0, 1])
        else:
            bias = b.weight("bias", folded)
        b.output("y", b.softmax(b.add(x, bias), axis=2))
        return b.build()

    folded = np.ascontiguousarray(table[at].transpose(2, 0, 1))
    verdict = compare(program(None), program(folded))
    assert verdict.kind == "equal-up-to-folding", verdict.text()
    assert verdict.largest_ulps == 0
    assert compare(program(None), program(np.roll(folded, 1, -1))).kind == "different"
    changed = folded.copy()
    changed[1, 2, 3] += 1e-4
    assert compare(program(None), program(changed)).kind == "different"


def test_numbers_that_cancel_on_the_way_excuse_little() -> None:
    """p - q is 1 where both are near 10^6: rounding excuses much there, yet not a thousandth."""
    p = np.array([1e6, 2e6, 3e6, 4e6], np.float32)
    q = p - np.float32(1)

    def program(folded: np.ndarray | None) -> Program:
        b = GraphBuilder()
        x = b.input("x", (4,))
        c = b.weight("c", folded) if folded is not None else None
        c = b.sub(b.weight("p", p), b.weight("q", q)) if c is None else c
        b.output("y", b.mul(x, c))
        return b.build()

    drawn = np.array([1, 1, 1, 1 + 1e-3], np.float32)
    assert not compare(program(None), program(drawn)).is_equal


def added(bias: np.ndarray) -> Program:
    """A product with a bias that came of constants which only a tool knew."""
    b = GraphBuilder()
    x = b.input("x", (3, WIDTH))
    y = b.matmul(x, b.weight("w", WEIGHT))
    b.output("y", b.add(y, b.broadcast(b.weight("b", bias), shape=[3, WIDTH], dims=[1])))
    return b.build()


@pytest.mark.parametrize(
    ("position", "count", "equal"),
    [(0, 32, True), (0, 60, True), (0, 70, False), (4, 8, True), (4, 10, False)],
)
def test_a_bias_is_measured_by_its_tensor_up_to_8_times_itself(
    position: int, count: int, equal: bool
) -> None:
    bias = np.array([1e-4, -0.5, 0.3, 0.5, 0.75, 0.2, -0.4, 0.6], np.float32)
    assert compare(added(bias), added(units(bias.copy(), position, count))).is_equal == equal


def test_large_neighbours_excuse_nothing() -> None:
    bias = np.full(WIDTH, 1e9, np.float32)
    bias[0] = 1.0
    other = bias.copy()
    other[0] = 1 + 1e-4
    assert not compare(added(bias), added(other)).is_equal
