"""Extraction on random problems, against all choices tried one by one."""

import itertools
import random
import time

import pytest

import isoform.passes.saturation.extract as extract_module
from isoform.passes.rules.op_table import Head
from isoform.passes.saturation import ilp
from isoform.passes.saturation.cycles import acyclic
from isoform.passes.saturation.egraph import ENode
from isoform.passes.saturation.extract import METHODS, extract
from isoform.passes.saturation.greedy import LocalSearch, greedy_dag, greedy_tree
from isoform.passes.saturation.highs import SolverResult
from isoform.passes.saturation.problem import Problem, contracted, reduced, without_cycles


def random_problem(seed: int) -> Problem:
    """A few classes with cycles and free e-nodes; class k has one e-node on later classes."""
    rng = random.Random(seed)
    count = rng.randint(3, 7)
    operands, costs = dict[int, list[tuple[int, ...]]](), dict[int, list[float]]()
    for k in range(count):
        later = range(k + 1, count)
        choices = [tuple(sorted(rng.sample(later, min(len(later), rng.randint(0, 2)))))]
        for _ in range(rng.randint(0, 2)):
            others = [c for c in range(count) if c != k]
            choices.append(tuple(sorted(rng.sample(others, rng.randint(0, 2)))))
        operands[k] = choices
        costs[k] = [float(rng.choice([0, 0, 1, 2, 3, 5])) for _ in choices]
    return problem_on(operands, costs)


def problem_on(operands, costs) -> Problem:
    nodes = {k: [ENode(Head("op"), o, k) for o in operands[k]] for k in operands}
    return Problem(nodes, operands, costs, (0,))


def best_cost(problem: Problem) -> float:
    found = []
    for places in itertools.product(*(range(len(n)) for n in problem.nodes.values())):
        choice = dict(zip(problem.nodes, places, strict=True))
        if problem.order(choice) is not None:
            found.append(problem.cost(choice))
    return min(found)


@pytest.mark.parametrize("most_cycles", [0, 500])
@pytest.mark.parametrize("cycles", ["guarded", "in-ilp"])
def test_the_ilp_finds_the_least_cost_and_its_bound_holds(cycles, most_cycles, monkeypatch) -> None:
    monkeypatch.setattr(ilp, "_MAX_CYCLES", most_cycles)
    for seed in range(60):
        problem = random_problem(seed)
        found = extract(problem, "ilp", cycles, time.perf_counter() + 600)
        assert found.problem.order(found.choice) is not None
        assert found.cost == pytest.approx(best_cost(problem))
        assert found.optimal


def test_what_the_filter_cuts_is_found_afterwards() -> None:
    # 0 needs 1 and 2; each costs 3 alone, and less by the other, which is a cycle.
    operands = {0: [(1, 2)], 1: [(), (2,)], 2: [(), (1,)]}
    problem = problem_on(operands, {0: [0.0], 1: [3.0, 2.0], 2: [3.0, 0.5]})
    assert best_cost(without_cycles(problem, greedy_tree(problem))) == 5.0
    assert extract(problem, "ilp", "guarded", time.perf_counter() + 600).cost == 3.5


def test_a_known_choice_is_where_extraction_begins() -> None:
    for seed in range(60):
        problem = contracted(random_problem(seed))
        best = extract(problem, "ilp", "guarded", time.perf_counter() + 600)
        known = best.problem.chosen(best.choice).values()
        again = extract(problem, "ilp", "guarded", time.perf_counter() + 0.04, known=known)
        assert again.cost <= best.cost + 1e-9


def test_no_method_gives_a_cycle_and_the_ilp_is_never_worse_than_greedy() -> None:
    for seed in range(60, 120):
        problem = random_problem(seed)
        found = {m: extract(problem, m, "guarded", time.perf_counter() + 600) for m in METHODS}
        assert all(f.problem.order(f.choice) is not None for f in found.values())
        assert found["ilp"].cost <= min(f.cost for f in found.values()) + 1e-9


def test_reductions_keep_the_least_cost() -> None:
    for seed in range(60):
        problem = random_problem(seed)
        assert best_cost(contracted(problem)) == pytest.approx(best_cost(problem))
        without = without_cycles(contracted(problem), greedy_dag(contracted(problem)))
        assert best_cost(reduced(without)) == pytest.approx(best_cost(without))


def test_local_search_counts_as_the_problem_does_and_never_loses() -> None:
    for seed in range(100):
        problem = random_problem(seed)
        start = greedy_tree(problem)
        before = problem.cost(start)
        search = LocalSearch(problem, dict(start))
        choice = search.run(float("inf"))
        assert problem.order(choice) is not None
        assert search.cost == pytest.approx(problem.cost(choice))
        assert problem.cost(choice) <= before


def test_a_move_that_gains_nothing_is_taken_back() -> None:
    # 0 needs 1, which costs 2, or 2 on 2 (costs 0 or 5), or 1 on 3, which is a cycle with 1.
    operands = {0: [(1,)], 1: [(), (2,), (3,)], 2: [()], 3: [(1,)]}
    costs = {0: [0.0], 1: [2.0, 2.0, 1.0], 2: [0.0], 3: [0.0]}
    for certain, place in ((True, 1), (False, 1), (False, 2)):
        search = LocalSearch(problem_on(operands, costs), {0: 0, 1: 0, 2: 0, 3: 0}, certain)
        search._count()
        uses = dict(search.uses)
        assert not search._try([(1, place)])
        assert not search._try([(1, 0)])
        assert (search.choice[1], search.cost) == (0, 2.0)
        assert {c: n for c, n in search.uses.items() if n} == uses


def test_greedy_by_tree_misses_a_merge_that_the_ilp_sees() -> None:
    # 0 needs 1 and 2; each costs 3 alone, or nothing as a part of 3, which costs 4.
    operands = {0: [(1, 2)], 1: [(), (3,)], 2: [(), (3,)], 3: [()]}
    costs = {0: [0.0], 1: [3.0, 0.0], 2: [3.0, 0.0], 3: [4.0]}
    problem = problem_on(operands, costs)
    costs_of = {m: extract(problem, m, "guarded", time.perf_counter() + 600).cost for m in METHODS}
    assert costs_of["tree"] == 6.0
    assert costs_of["ilp"] == 4.0


def test_a_beginning_takes_the_known_e_nodes_and_the_cheapest_of_other_classes() -> None:
    operands = {0: [(1, 2)], 1: [(), ()], 2: [(), ()]}
    problem = problem_on(operands, {0: [0.0], 1: [1.0, 5.0], 2: [4.0, 3.0]})
    assert extract_module._known(problem, [problem.nodes[1][1]]) == {0: 0, 1: 1, 2: 1}
    assert extract_module._known(problem, []) == {0: 0, 1: 0, 2: 1}


class Counted(dict[int, list[tuple[int, ...]]]):
    """Operands by class that may be read so many times."""

    left = 1000

    def __getitem__(self, key: int) -> list[tuple[int, ...]]:
        self.left -= 1
        assert self.left, "read without end"
        return super().__getitem__(key)


def test_an_order_looks_at_a_class_a_few_times_for_each_of_its_operands() -> None:
    operands = Counted({k: [tuple(range(k + 1, 12))] for k in range(12)})
    problem = problem_on(operands, {k: [1.0] for k in range(12)})
    operands.left = 1000
    assert problem.order(dict.fromkeys(range(12), 0)) == [*range(11, -1, -1)]


def test_the_last_e_node_of_a_cycle_that_is_not_kept_is_dropped_and_no_other() -> None:
    # 1 reaches 2 by an e-node that is not kept, and 2 reaches 1: by itself, and by 3.
    nodes = {0: [(1, 2)], 1: [(), (2,)], 2: [(1,), (3,)], 3: [(), (1,)]}
    kept = dict.fromkeys(nodes, 0)
    assert acyclic(nodes, [0], kept) == {1: {1}}
    assert acyclic(nodes, [2], kept) == {1: {1}}
    # The kept e-nodes alone, and a class that reads itself twice.
    assert acyclic({0: [(1,)], 1: [()]}, [0], {0: 0, 1: 0}) == {}
    assert acyclic({0: [(), (0, 1), (0,)], 1: [()]}, [0], {0: 0, 1: 0}) == {0: {1, 2}}


def test_what_two_e_nodes_share_is_counted_once() -> None:
    problem = problem_on({0: [(1, 2)], 1: [(3,)], 2: [(3,)], 3: [()]}, {k: [1.0] for k in range(4)})
    search = LocalSearch(problem, dict.fromkeys(range(4), 0))
    search._count()
    assert (search.cost, search.uses) == (4.0, {0: 1, 1: 1, 2: 1, 3: 2})


def test_a_solver_that_found_nothing_leaves_the_start_and_its_bound(monkeypatch) -> None:
    problem = problem_on({0: [(), ()]}, {0: [4.0, 3.0]})
    nothing = SolverResult(None, 0.5, False)
    monkeypatch.setattr(ilp, "solve_within", lambda *_: nothing)
    found = ilp.solve(problem, {0: 0}, 60.0)
    assert (found.choice, found.cost, found.gap, found.optimal) == ({0: 0}, 4.0, 0.5, False)


def test_time_that_is_over_after_the_greedy_choice_leaves_it_with_a_gap(monkeypatch) -> None:
    ticks = iter((0.0, 0.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks, 50.0))
    found = extract(random_problem(3), "ilp", "guarded", 40.0)
    assert (found.gap, found.optimal) == (1.0, False)
