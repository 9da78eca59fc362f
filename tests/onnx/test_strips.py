"""ArgMax, ArgMin and running sums in the lanes of vectors: along rows, and across an axis."""

import numpy as np
import pytest
from support.random_nodes.draw import Sample
from support.random_nodes.judge import imported

import isoform
from isoform.lowering.kernel_to_cpu.isa import runnable

# Rows shorter and longer than a strip, whole ones and such with a rest; neighbours likewise.
SHAPES = [(3, 63), (3, 64), (2, 100), (2, 256), (2, 1000), (3, 129, 1), (2, 5, 4), (2, 3, 70)]
SHAPES += [(1, 7, 64), (2, 9, 67, 2), (1, 1, 33)]
DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"]


@pytest.fixture(params=[isa.name for isa in runnable()])
def isa(request, monkeypatch) -> str:
    monkeypatch.setenv("ISOFORM_ISA", request.param)
    return request.param


def run(sample: Sample) -> np.ndarray:
    session = isoform.compile(imported(sample), threads=1, effort="quick")
    (found,) = session.run(None, sample.feeds)
    return found


def expected_position(row: np.ndarray, op: str, last: bool) -> int:
    """The first or last NaN; else the first or last of the greatest or least."""
    wide = row.astype(np.float64)
    best = wide.max() if op == "ArgMax" else wide.min()
    found = np.flatnonzero(np.isnan(wide) if np.isnan(wide).any() else wide == best)
    return int(found[-1 if last else 0])


def numbers(draw: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Few values, so that many are equal; of floats some infinite, and in some rows NaN."""
    x = draw.integers(0, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[draw.random(shape) < 0.02] = np.inf
        x[draw.random(shape) < 0.02] = -np.inf
        rows = draw.random(shape[0]) < 0.5
        x[(draw.random(shape) < 0.02) & rows.reshape(-1, *[1] * (len(shape) - 1))] = np.nan
    return x


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("shape", SHAPES)
def test_positions_of_extremes(isa, op: str, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(len(shape) + shape[-1])
    for dtype in DTYPES:
        x, last = numbers(draw, dtype, shape), int(draw.integers(0, 2))
        given = {"axis": 1, "select_last_index": last, "keepdims": 0}
        found = run(Sample(op, [x], given, 13))
        rows = np.moveaxis(x, 1, -1)
        wanted = [expected_position(r, op, bool(last)) for r in rows.reshape(-1, x.shape[1])]
        np.testing.assert_array_equal(found, np.reshape(wanted, rows.shape[:-1]), err_msg=dtype)


@pytest.mark.parametrize("shape", [(5, 4), (9, 64), (33, 67), (2, 7, 130)])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_of_neighbours(isa, shape: tuple[int, ...], reverse: int) -> None:
    draw = np.random.default_rng(shape[-1])
    for dtype in ("float32", "float64", "int32", "int64"):
        x, axis = draw.integers(-9, 9, shape).astype(dtype), len(shape) - 2
        exclusive = int(draw.integers(0, 2))
        turned = np.flip(x, axis) if reverse else x
        sums = np.cumsum(turned, axis, dtype=x.dtype) - (turned if exclusive else 0)
        wanted = np.flip(sums, axis) if reverse else sums
        given = {"reverse": reverse, "exclusive": exclusive}
        sample = Sample("CumSum", [x, np.array(axis)], given, 14, (True,), (1,))
        np.testing.assert_array_equal(run(sample), wanted, err_msg=dtype)
