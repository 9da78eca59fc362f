"""Extraction falls apart at the classes that every choice needs, and the parts are solved alone."""

from __future__ import annotations

import itertools
import random

import pytest

from isoform.passes.rules.op_table import Head
from isoform.passes.saturation.egraph import ENode
from isoform.passes.saturation.greedy import greedy_tree
from isoform.passes.saturation.ilp import solve
from isoform.passes.saturation.parts import needed_classes, parts_of
from isoform.passes.saturation.problem import Problem


def problem(nodes: dict[int, list[tuple[float, tuple[int, ...]]]], *roots: int) -> Problem:
    """A problem of classes with nodes (cost, operands)."""
    return Problem(
        {c: [ENode(Head("op"), of, c) for _, of in those] for c, those in nodes.items()},
        {c: [of for _, of in those] for c, those in nodes.items()},
        {c: [cost for cost, _ in those] for c, those in nodes.items()},
        roots,
    )


def drawn(seed: int) -> Problem:
    """Classes that need earlier ones, in one to three ways."""
    draw = random.Random(seed)
    nodes: dict[int, list[tuple[float, tuple[int, ...]]]] = {0: [(0.0, ())], 1: [(1.0, ())]}
    for klass in range(2, 11):
        ways = range(draw.choice((1, 1, 2, 3)))
        near = range(max(klass - 4, 0), klass)
        nodes[klass] = [
            (float(draw.randrange(5)), tuple(draw.sample(near, draw.randint(1, len(near)))))
            for _ in ways
        ]
    return problem(nodes, 10, draw.randrange(5, 10))


def cheapest(given: Problem) -> float:
    """The least cost of all choices."""
    ways = [range(len(given.nodes[c])) for c in given.nodes]
    return min(
        given.cost(dict(zip(given.nodes, taken, strict=True))) for taken in itertools.product(*ways)
    )


def test_a_class_that_all_ways_need_is_needed() -> None:
    given = problem(
        {
            0: [(1.0, ())],
            1: [(1.0, (0,))],
            2: [(1.0, (0,))],
            3: [(1.0, (1,)), (1.0, (2,))],
            4: [(1.0, (3,))],
        },
        4,
    )
    assert needed_classes(given) == {0, 3, 4}


def test_blocks_in_a_row_are_parts_of_their_own() -> None:
    nodes: dict[int, list[tuple[float, tuple[int, ...]]]] = {0: [(0.0, ())]}
    for block in range(3):
        start = 4 * block
        nodes |= {start + 1: [(1.0, (start,))], start + 2: [(2.0, (start,))]}
        nodes |= {start + 3: [(3.0, (start,))]}
        nodes[start + 4] = [(1.0, (start + 1, start + 2)), (1.0, (start + 3,))]
    parts = parts_of(problem(nodes, 12))
    assert [sorted(part.nodes) for part in parts] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert [part.roots for part in parts] == [(4,), (8,), (12,)]


@pytest.mark.parametrize("seed", range(40))
def test_the_parts_together_have_the_cheapest_choice(seed: int) -> None:
    given = drawn(seed)
    found = solve(given, greedy_tree(given), 30.0)
    assert found.optimal and found.cost == pytest.approx(cheapest(given))
