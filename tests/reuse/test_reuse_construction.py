"""Construction: example 3 of the paper, the rounds of Algorithm 1, the other sketches, a chain."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from isoform.lowering.targets import TARGETS
from isoform.passes.reuse import OperatorNest
from isoform.passes.reuse.features import Features, Range, divisors, ranges
from isoform.passes.reuse.gpu_schedule_model import ModelledGpu
from isoform.passes.reuse.hierarchical import Task, hierarchical_search
from isoform.passes.reuse.machine import Cpu, Gpu, lines
from isoform.passes.reuse.nest import CROSS_THREAD, TWO_LEVEL, UNROLLED
from isoform.passes.reuse.operands import needed, operands
from isoform.passes.reuse.shapes import block_shape, thread_shape
from isoform.passes.reuse.simple_sketches import (
    OperatorPart,
    Parts,
    fused,
    fused_candidates,
    search,
    search_parts,
)
from isoform.passes.reuse.tile_schedule import TileSchedule, built
from isoform.testing.operator_sets import conv2d

# Example 3: figure 2's program of b, and a with half its channels.
B = conv2d((1, 128, 28, 28), 512, 1)
A = conv2d((1, 128, 28, 28), 256, 1)
ONES = (1, 1, 1, 1, 1)
KNOWN = TileSchedule(
    (ONES, (4, 1, 8, 2, 2), (14, 1, 1, 1, 2), (1, 1, 28, 1, 1)),
    ((4, 64, 2), (1, 1, 1), (1, 1, 1)),
    1024,
    (1, 1),
)
TASK = Task(A, B, KNOWN, Gpu())


def round_1() -> list[TileSchedule]:
    return list(TASK.by_threads(TASK.block(56), 56))


def test_figure_2s_features() -> None:
    assert KNOWN.features(B) == Features(56, 56 * 224, 56 * 11264)
    assert KNOWN.is_valid(B, Gpu())


def test_example_3s_numbers_of_blocks() -> None:
    assert TASK.block_counts() == (28, 32, 49, 56, 64, 98, 112)


def test_example_3s_block_and_first_slices() -> None:
    assert TASK.block(56) == (1, 32, 2, 28)
    assert {s.fetches for s in round_1()} == {(2, 1, 1)}


def test_example_3s_threads() -> None:
    boxes = {s.threads: s.box for s in round_1()}
    assert boxes == {112: (1, 4, 2, 2), 128: (1, 2, 1, 7), 224: (1, 4, 2, 1)}
    assert {s.split for s in round_1()} == {(1, 1, 1, 1)}


def test_example_3s_later_rounds() -> None:
    chosen = round_1()[2]
    assert (chosen.threads, chosen.unroll) == (224, 1024)
    assert [s.fetches for s in TASK.by_slices(chosen)] == [(4, 1, 1)]
    assert [s.unroll for s in TASK.by_unroll(chosen)] == [0, 16]
    assert [s.vectors[0] for s in TASK.by_vectors(chosen, 0)] == [2, 4]
    assert list(TASK.by_vectors(chosen, 1)) == []


def test_each_program_is_measured_once_and_invalid_ones_count() -> None:
    calls: list[TileSchedule] = []

    def measure(schedule: TileSchedule) -> float:
        calls.append(schedule)
        return 1.0

    trials = hierarchical_search(TASK, measure)
    assert len(calls) == len(set(calls)) <= len(trials.seconds)
    small = hierarchical_search(replace(TASK, machine=Gpu(memory=1 << 10)), measure)
    assert set(small.seconds.values()) == {math.inf}
    assert len(small.seconds) >= len(TASK.block_counts())


def test_the_last_tile_is_the_least_divisor_but_one() -> None:
    made = built(
        conv2d((1, 16, 8, 8), 16, 1), (1, 8, 8, 8), ((1, 2, 1, 1), (1, 2, 1, 8)), (2, 1, 1)
    )
    assert made.space[1] == (2, 2, 2, 1, 2)
    assert made.space[3] == (1, 1, 1, 4, 2)
    assert made.reduction[0] == (2, 4, 2)
    assert (made.block, made.split, made.box) == ((1, 8, 8, 8), (1, 2, 1, 1), (1, 2, 1, 8))


def test_tiles_of_a_schedule_multiply_to_the_loops() -> None:
    for schedule in hierarchical_search(TASK, lambda _: 1.0).seconds:
        assert tuple(math.prod(t) for t in schedule.space) == A.space
        assert tuple(math.prod(t) for t in schedule.reduction) == A.reduction


# --- features and models ------------------------------------------------------------------------


def test_ranges_are_turned_where_a_is_the_smaller() -> None:
    blocks, threads, memory = ranges(A, B, Features(56, 112, 224))
    assert [(r.low, r.high) for r in (blocks, threads, memory)] == [
        (28, 112),
        (56, 112),
        (112, 224),
    ]


def test_a_range_takes_the_next_value_only_where_it_is_closer_to_the_far_end() -> None:
    assert Range(4, 15).pick((1, 2, 4, 8, 16)) == (4, 8, 16)
    assert Range(4, 9).pick((1, 2, 4, 8, 16)) == (4, 8)
    assert Range(16, 3).pick((1, 2, 4, 8, 16)) == (4, 8, 16)
    assert Range(16, 3).pick((1, 2, 4, 8, 16), one_more=True) == (2, 4, 8, 16)
    assert Range(5, 6).pick((1, 4, 16)) == (4,)


@pytest.mark.parametrize("n", [1, 2, 36, 97, 784])
def test_divisors(n: int) -> None:
    assert list(divisors(n)) == [d for d in range(1, n + 1) if n % d == 0]


@pytest.mark.parametrize("shape", [(7,), (3, 7), (4, 7, 7), (2, 3, 5, 9)])
def test_lines_are_those_of_an_enumeration(shape: tuple[int, ...]) -> None:
    for box in itertools.product(*(range(1, n + 1) for n in shape)):
        touched = set[int]()
        for index in itertools.product(*map(range, box)):
            address = 0
            for i, n in zip(index, shape, strict=True):
                address = address * n + i
            touched.add(address // 8)
        assert lines(shape, box, 8) == len(touched), box


def test_operands_of_a_strided_convolution() -> None:
    nest = conv2d((1, 8, 5, 5), 3, 3, stride=2)
    data, filters = operands(nest)
    assert needed(data, nest.loops) == (1, 3, 11, 11)
    assert needed(filters, nest.loops) == (8, 3, 3, 3)
    assert needed(data, (1, 4, 2, 1, 3, 3, 3)) == (1, 3, 5, 3)


def test_neighbouring_threads_without_conflicts_are_cheapest() -> None:
    """Threads along the contiguous loop read different banks; four apart they share eight."""
    nest = OperatorNest("matmul", ("multi-level-tile",), (1, 1, 128), (32,))
    costs = [Gpu().thread_cost(nest, (1, 1, 128), (32,), (1, 1, 1), (1, 1, n)) for n in (1, 2)]
    assert costs[0] == 4 * (1 + 32) * 32  # rows of 32 elements: every thread in one bank
    assert costs[1] == 2 * (32 + 64 * 32)


def test_a_cpus_micro_tiles_prefer_vector_loads() -> None:
    nest = conv2d((1, 64, 32, 32), 64, 3)
    block = block_shape(nest, 64, Cpu())
    assert block is not None
    shape = thread_shape(nest, 64, block, (1, 1, 1), Cpu())
    assert shape is not None
    assert shape[0] == (1, 1, 1, 1)  # no virtual threads on a cpu
    assert shape[1][3] == 1  # lanes are neighbours along the contiguous loop


# --- other sketches -----------------------------------------------------------------------------


def reduction(rows: int, terms: int) -> OperatorNest:
    return OperatorNest("sum", (CROSS_THREAD,), (rows,), (terms,))


def test_cross_thread_reductions_try_threads_alone() -> None:
    a, b = reduction(64, 4096), reduction(64, 1024)
    found = list(fused_candidates(a, b, fused(b, CROSS_THREAD, 128, unroll=16), Gpu()))
    assert [s.inner for s in found] == [128, 256, 512]
    assert {(s.outer * s.inner, s.unroll) for s in found} == {(4096, 16)}


@pytest.mark.parametrize("sketch", [TWO_LEVEL, UNROLLED])
def test_two_level_tiles_try_blocks_alone(sketch: str) -> None:
    a, b = (OperatorNest("map", (sketch,), (n,), ()) for n in (4096, 1024))
    found = list(fused_candidates(a, b, fused(b, sketch, 64), Gpu()))
    assert [(s.outer, s.inner) for s in found] == [(16, 256), (32, 128), (64, 64), (128, 32)]


def test_operators_of_several_nests_are_searched_part_by_part() -> None:
    parts_a = [OperatorPart("product", A), OperatorPart("sum", reduction(64, 4096))]
    parts_b = [OperatorPart("product", B), OperatorPart("sum", reduction(64, 1024))]
    known: Parts = {"product": KNOWN, "sum": fused(reduction(64, 1024), CROSS_THREAD, 128)}
    defaults: Parts = {"product": round_1()[0], "sum": fused(reduction(64, 4096), CROSS_THREAD, 1)}
    model = ModelledGpu(TARGETS["p100"])
    seen: list[Parts] = []

    def measure(parts: Parts) -> float:
        seen.append(parts)
        return sum(model.seconds(part.nest, parts[part.name]) for part in parts_a)

    best, count = search_parts(parts_a, parts_b, known, defaults, Gpu(), measure)
    assert measure(best) <= measure(defaults)
    assert seen[0]["sum"] == defaults["sum"], "the largest part is first"
    assert count >= len(seen) - 2


# --- modelled -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p100", "v100", "h100"])
def test_modelled_seconds_are_no_less_than_the_peak_allows(name: str) -> None:
    target = TARGETS[name]
    model = ModelledGpu(target)
    trials = hierarchical_search(TASK, lambda s: model.seconds(A, s))
    best = min(trials.seconds.values())
    assert 2 * A.size / target.peak["f32"] + target.launch < best < 1e-3


def test_a_family_of_shapes_is_built_along_a_chain() -> None:
    """One known program gives those for other numbers of rows, each from its neighbour's."""
    rows = [
        OperatorNest("matmul", ("multi-level-tile",), (1, n, 512), (512,)) for n in (64, 128, 256)
    ]
    model, machine = ModelledGpu(TARGETS["v100"]), Gpu()
    block, thread = (1, 32, 32), ((1, 1, 1), (1, 4, 2))
    known = built(rows[0], block, thread, (16,))
    first = model.seconds(rows[0], known)
    for b, a in itertools.pairwise(rows):
        trials = search(a, b, known, machine, lambda s, a=a: model.seconds(a, s))
        best = trials.best(trials.seconds)
        assert isinstance(best, TileSchedule)
        assert len(trials.seconds) < 300
        assert trials.seconds[best] < first * a.size / rows[0].size
        known = best
