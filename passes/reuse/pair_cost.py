"""What it costs to tune a nest from another's program, in programs to measure (ETO, section 6.1).

The other's best program is not known yet. So sizes of its blocks, threads and slices are drawn, and
the candidates that Algorithm 1 would try are counted: for each number of blocks all threads (round
1), all other slices (round 2), four other unroll limits (3) and two vector lengths of each operand
(4). A program that cannot be run counts as well.
"""

from __future__ import annotations

import hashlib
import math
import random
from functools import lru_cache

from .features import Features, block_counts, divisors, ranges, thread_counts
from .machine import GPU, Machine, memory_of
from .nest import CROSS_THREAD, TILED, TWO_LEVEL, UNROLLED, OperatorNest
from .operands import operands
from .shapes import block_shape, slice_shapes, slices_of, slices_within

SAMPLES = 10
OTHER_UNROLLS, VECTOR_LENGTHS = 4, 2
BACK_END_TRIALS = 1000


@lru_cache(maxsize=1 << 16)
def pair_cost(
    a: OperatorNest,
    b: OperatorNest,
    seed: int = 0,
    machine: Machine = GPU,
    samples: int = SAMPLES,
    sketch: str | None = None,
) -> float:
    """Programs to measure when a starts from b's program: the mean over drawn programs of b.

    Of several sketches the dearest counts, unless b's is known: a plan may be made again with it.
    The answer depends on the nests and the seed alone.
    """
    text = f"{seed} {a} {b}"
    draws = random.Random(hashlib.sha256(text.encode()).digest())
    found = [_drawn(b, machine, draws) for _ in range(samples)]
    sketches = b.sketches if sketch is None else (sketch,)
    return max(sum(trials(a, b, k, one, machine) for one in found) / samples for k in sketches)


def _drawn(b: OperatorNest, machine: Machine, draws: random.Random) -> Features:
    """Features of a random program: all its sizes divide the loops."""
    points = divisors(b.points)
    block = draws.choices(points, weights=[len(divisors(n)) for n in points])[0]
    threads = draws.choice([n for n in divisors(block) if n <= machine.most_threads])
    fetches = draws.choice(slice_shapes(b))
    count, shape = b.points // block, block_shape(b, b.points // block, machine)
    assert shape is not None
    memory = memory_of(b, shape, slices_of(b, fetches))
    return Features(count, count * threads, count * memory)


def trials(a: OperatorNest, b: OperatorNest, sketch: str, known: Features, machine: Machine) -> int:
    """Candidates of a, where these are the features of b's program with that sketch."""
    blocks, threads, memory = ranges(a, b, known)
    if sketch == CROSS_THREAD:
        return len(threads.pick(divisors(a.terms)))
    counts = block_counts(a, b, blocks)
    if sketch in (TWO_LEVEL, UNROLLED):
        return len(counts)
    assert sketch == TILED
    total = 0
    for count in counts:
        block = block_shape(a, count, machine)
        assert block is not None
        tried = thread_counts(block, count, threads, machine.most_threads)
        slices = slices_within(a, block, memory)
        total += len(tried) + max(1, len(slices)) - 1
        total += OTHER_UNROLLS + VECTOR_LENGTHS * len(operands(a))
    return total


def back_end_cost(nest: OperatorNest) -> float:
    """Programs that the back end measures to tune a nest in full: its limit, or all there are."""
    return float(min(BACK_END_TRIALS, programs(nest)))


def programs(nest: OperatorNest) -> int:
    """Programs of all sketches: 5 tiles of a loop over space, 3 of a summed one, unroll limits."""
    tiled = math.prod([_splits(n, 5) for n in nest.space] + [_splits(n, 3) for n in nest.reduction])
    counts = {
        TILED: (1 + OTHER_UNROLLS) * tiled,
        CROSS_THREAD: len(divisors(nest.terms)),
        TWO_LEVEL: len(divisors(nest.points)),
        UNROLLED: len(divisors(nest.points)),
    }
    return sum(counts[sketch] for sketch in nest.sketches)


@lru_cache(maxsize=4096)
def _splits(n: int, parts: int) -> int:
    """In how many ways n is a product of so many numbers, in order."""
    return 1 if parts == 1 else sum(_splits(n // d, parts - 1) for d in divisors(n))
