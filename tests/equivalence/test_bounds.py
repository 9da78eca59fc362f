"""Counterexamples of the theory are rejected, and misses are as rare as their bound says."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.expressions import field_equal, inlined, output
from xdsl.dialects.builtin import f32

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import Read, Scope, factor, leaf, reduce
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.scalars import Expr, call
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.passes.equivalence import compare, symbolic
from isoform.passes.equivalence.error_bound import Measure, Measurer, lane_error, lanes_for, miss
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes, prime_pool
from isoform.passes.equivalence.shrink import shrink


def program(shapes, out, body, sums=(), reduction="sum") -> Program:
    """One scope over inputs x0, x1, ...; `body` gets the inputs and the iterators."""
    b = GraphBuilder()
    inputs = [Source(b.input(f"x{k}", shape)) for k, shape in enumerate(shapes)]
    build = ScopeBuilder()
    its = iterators(len(out) + len(sums))
    made = build.scope(tensor(out, f32), body(inputs, its), sums, reduction)
    b.append(build.ops[0])
    b.output("y", made.value)
    return b.build()


def two_sums(n: int) -> tuple[Program, Program]:
    """sum_i a_i b_i, and (sum_i a_i) (sum_j b_j): equal at n = 1 only."""
    one = program([(n,), (n,)], (), lambda x, i: x[0][i[0]] * x[1][i[0]], [n])
    two = program([(n,), (n,)], (), lambda x, i: x[0][i[0]] * x[1][i[1]], [n, n])
    return one, two


def crossed(n: int) -> tuple[Program, Program]:
    """x_ij x_kl, and x_il x_kj: equal for every x of rank 1."""
    shape = (n, n, n, n)
    one = program([(n, n)], shape, lambda x, i: x[0][i[0], i[1]] * x[0][i[2], i[3]])
    two = program([(n, n)], shape, lambda x, i: x[0][i[0], i[3]] * x[0][i[2], i[1]])
    return one, two


@pytest.mark.parametrize("pair", (two_sums, crossed))
def test_what_is_equal_at_size_one_is_not_at_five(pair) -> None:
    assert compare(*pair(1), budget=600.0).kind == "equal"
    verdict = compare(*pair(5), budget=600.0)
    assert verdict.kind == "different"
    assert verdict.difference is not None and verdict.difference.witness


def test_size_one_is_never_shrunk_to() -> None:
    a, b = (inlined(output(p)) for p in two_sums(7))
    small_a, small_b, _ = shrink(a, b, ())
    sizes = {n for e in (small_a, small_b) for t in e.terms for n in t.sums}
    assert min(sizes) >= 2


def test_a_diagonal_is_not_made_smaller() -> None:
    """Two dims of a tensor that one iterator walks: the rest of the tensor is never read."""
    diagonal, rows = (
        inlined(output(program([(9, 9)], (), lambda x, i, n=n: x[0][i[0], i[n]], [9] * (n + 1))))
        for n in (0, 1)
    )
    for pair, left in (((diagonal, diagonal), 9), ((rows, rows), 2)):
        small, other, _ = shrink(*pair, ())
        assert {n for e in (small, other) for t in e.terms for n in t.sums} == {left}


@pytest.mark.parametrize(
    ("power", "size", "left"), [(1, 9, 2), (2, 9, 2), (3, 9, 3), (4, 9, 4), (4, 3, 3), (4, 4, 4)]
)
def test_as_many_positions_are_left_as_a_power_needs(power: int, size: int, left: int) -> None:
    """At least two, and never more than there were."""
    raised = program([(size,)], (), lambda x, i: math.prod([x[0][i[0]]] * power, start=1.0), [size])
    small, _, _ = shrink(inlined(output(raised)), inlined(output(raised)), ())
    assert [t.sums for t in small.terms] == [(left,)]


def test_inputs_of_rank_one_would_not_tell_crossed_products_apart() -> None:
    """The trap is real: this is why inputs are drawn elementwise."""
    x = np.outer(*np.random.default_rng(0).normal(size=(2, 5)))
    np.testing.assert_allclose(np.einsum("ij,kl->ijkl", x, x), np.einsum("il,kj->ijkl", x, x))


def rate(a: Scope, b: Scope, prime: int, draws: int) -> float:
    """The share of single-lane checks that take a and b for equal."""
    return sum(field_equal(a, b, (prime,), seed) for seed in range(draws)) / draws


def lane_misses(a: Scope, b: Scope, primes: tuple[int, ...]) -> np.ndarray:
    """The lanes in which polynomials agree: each lane draws inputs of its own.

    Not for functions: a random function reads all lanes.
    """
    evaluator = Evaluator(Residues(primes, 0))
    apart = evaluator.field.reduce(evaluator.value(a) - evaluator.value(b))
    return np.all(apart == 0, axis=tuple(range(1, apart.ndim)))


def _squared(p: Program) -> Program:
    """The square of a program's only output, as a scope of its own."""
    copy = p.clone()
    block = copy.main.body.block
    last = block.last_op
    assert last is not None
    build = ScopeBuilder()
    value = Source(last.operands[0])[()]
    last.operands[0] = build.scope(tensor((), f32), value * value).value
    block.insert_op_before(build.ops[0], last)
    return copy


def _cube(x: Expr) -> Expr:
    return x * x * x


DIFFERENT: dict[str, tuple[Program, Program]] = {
    "x": (
        program([()], (), lambda x, i: x[0][()] * 1.0),
        program([()], (), lambda x, i: x[0][()] * 2.0),
    ),
    "x y": (
        program([(), ()], (), lambda x, i: x[0][()] * x[1][()]),
        program([(), ()], (), lambda x, i: x[0][()] * x[1][()] * 2.0),
    ),
    "x x": (
        program([()], (), lambda x, i: x[0][()] * x[0][()]),
        program([()], (), lambda x, i: x[0][()] * 3.0 - 2.0),
    ),
    "dot": two_sums(3),
    "exp": (
        program([(), ()], (), lambda x, i: call("exp", x[0][()]) + 1.0),
        program([(), ()], (), lambda x, i: call("exp", x[1][()]) + 1.0),
    ),
    "exp of products": (
        program([(3,), (3,)], (), lambda x, i: call("exp", x[0][i[0]] * x[1][i[0]]), [3]),
        program([(3,), (3,)], (), lambda x, i: call("exp", x[0][i[0]] * x[1][2 - i[0]]), [3]),
    ),
    "a product counts its factors": (
        program([(2,)], (), lambda x, i: x[0][i[0] // 2], [3], "prod"),
        program([(2,)], (), lambda x, i: x[0][(i[0] + 1) // 2], [3], "prod"),
    ),
    "max": (
        program([(), (), ()], (), lambda x, i: call("max", x[0][()], x[1][()])),
        program([(), (), ()], (), lambda x, i: call("max", x[0][()], x[2][()])),
    ),
    "three roots": (
        program([()], (), lambda x, i: _cube(x[0][()])),
        program([()], (), lambda x, i: x[0][()]),
    ),
}  # fmt: skip
POLYNOMIALS = {"x", "x y", "x x", "dot", "three roots"}


@pytest.mark.parametrize("name", DIFFERENT)
def test_at_a_small_prime_misses_stay_within_the_bound(name: str) -> None:
    prime, draws = 101, 4000 if name in POLYNOMIALS else 2000
    a, b = (output(p) for p in DIFFERENT[name])
    measurer = Measurer()
    measures = [measurer.source(a), measurer.source(b)]
    bound = miss(measures, 1, lane_error(measures, prime, pool=1))
    assert bound < 1.0
    sigma = math.sqrt(bound * (1 - bound) / draws)
    if name in POLYNOMIALS:
        found = float(lane_misses(a, b, (prime,) * draws).mean())
    else:
        found = rate(a, b, prime, draws)
    assert found <= bound + 3 * sigma
    assert found > 0 or bound < 3 / draws, "the test would not see a bound that is too small"


def test_max_does_not_count_its_operands() -> None:
    one = program([(2,)], (), lambda x, i: x[0][i[0] // 2], [3], "max")
    two = program([(2,)], (), lambda x, i: x[0][(i[0] + 1) // 2], [3], "max")
    assert field_equal(output(one), output(two), draw_primes(3, 0), 0)
    assert compare(one, two).kind == "equal"


def test_factors_commute_in_monomials() -> None:
    """sum_i x_i x_(2 - i) is 2 x_0 x_2 + x_1 x_1."""
    one = program([(3,)], (), lambda x, i: x[0][i[0]] * x[0][2 - i[0]], [3])
    two = program([(3,)], (), lambda x, i: x[0][0] * x[0][2] * 2.0 + x[0][1] * x[0][1])
    a, b = (inlined(output(p)) for p in (one, two))
    assert a.token != b.token
    assert symbolic.compare(a, b, ()) is True


def test_maxima_with_pads_of_two_tensors_are_not_one() -> None:
    """Their elements have numbers of their own, however far the places read lie apart."""
    x, y = (leaf(n, (size,), f32) for n, size in (("x", 4), ("y", 9)))
    i, k = iterators(2)
    one, two, same = (
        reduce("max", (2,), factor(Read(source, (at,), -math.inf), (4, 2)), (4,))
        for source, at in ((x, i + k), (y, i + k + 5), (x, i - k + 1))
    )
    assert symbolic.compare(one, two, (4,)) is not True
    assert symbolic.compare(one, same, (4,)) is True


def test_the_bound_knows_denominators_and_counts() -> None:
    """A literal of 2^-60 has 60 bits beside a whole one, their product 120; sums add up."""
    small = program([()], (), lambda x, i: x[0][()] * 2.0**-60 + x[0][()] * x[0][()])
    square = _squared(small)
    summed = program([(4,)], (), lambda x, i: x[0][i[0]] * 3.0, [4])
    one, two, sums = (Measurer().source(output(p)) for p in (small, square, summed))
    assert (one.denominator, two.denominator) == (60, 120)
    assert one.bits >= 2 * 60
    assert sums.norm >= math.log2(12)
    assert lane_error([two, two]) > lane_error([one, one]) > 1e-4 > lane_error([sums, sums])


def test_the_measures_of_calls_and_reductions_are_those_worked_by_hand() -> None:
    """A norm starts at 1, so one term of coefficient 1 has log2(2); bits are 2 d + norm + 2.

    A call is one variable, whatever is inside it; a maximum of 4 halves has 4 elements and itself.
    """
    exp = program([()], (), lambda x, i: call("exp", x[0][()]))
    largest = program([()], (), lambda x, i: call("max", x[0][()] * x[0][()] * x[0][()], 1.0))
    most = program([(4,)], (), lambda x, i: x[0][i[0]] * 0.5, [4], "max")
    halved = program([()], (), lambda x, i: x[0][()] * x[0][()] * 0.5 - 3.0)
    one, of_two, of_four, sums = (
        Measurer().source(output(p)) for p in (exp, largest, most, halved)
    )
    assert one == Measure(1, 1, 1, denominator=0.0, norm=1.0, bits=3.0)
    assert of_two == Measure(1, 3, 2, denominator=0.0, norm=1.0, bits=3.0)
    assert of_four == Measure(1, 1, 5, denominator=0.0, norm=1.0, bits=2 + math.log2(1.5) + 2)
    assert lane_error([one, sums], 101, pool=1) == 2 / 101
    assert lane_error([replace(one, degree=102)], 101, pool=1) == 1.0
    assert miss([replace(one, arguments=1e9)], 1, 0.5) == 1.0
    assert sums == Measure(2, 2, 0, denominator=1.0, norm=math.log2(4.5), bits=math.log2(4.5) + 4)


def test_the_witness_reaches_its_bound() -> None:
    """x y = 2 x y with probability 1 - (1 - 1/p)^2, which is the bound d / p up to 1 / p^2."""
    prime, draws = 101, 20000
    a, b = (output(p) for p in DIFFERENT["x y"])
    bound = 2 / prime
    sigma = math.sqrt(bound * (1 - bound) / draws)
    assert abs(lane_misses(a, b, (prime,) * draws).mean() - bound) <= 3 * sigma


def test_two_lanes_square_the_misses() -> None:
    a, b = (output(p) for p in DIFFERENT["x y"])
    primes, draws = (101, 103), 20000
    found = lane_misses(a, b, primes * draws).reshape(draws, 2).all(axis=1).mean()
    bound = 4 / (101 * 103)
    assert found <= bound + 3 * math.sqrt(bound / draws)


def test_lanes_are_as_many_as_the_bound_needs() -> None:
    measurer = Measurer()
    plain = [measurer.source(output(p)) for p in two_sums(3)]
    assert lanes_for(plain, 1e-12) == 3
    assert miss(plain, 3, lane_error(plain)) <= 1e-12 < miss(plain, 2, lane_error(plain))
    functions = [measurer.source(output(p)) for p in DIFFERENT["exp of products"]]
    assert miss(functions, 3, lane_error(functions)) > miss(plain, 3, lane_error(plain))


def test_a_coefficient_that_a_prime_divides_is_part_of_the_bound() -> None:
    """A literal that is a prime of the pool: that lane misses, the others do not."""
    p, q = prime_pool()[0], prime_pool()[-1]
    a = output(program([()], (), lambda x, i: x[0][()] * float(p)))
    b = output(program([()], (), lambda x, i: x[0][()] * 0.0))
    assert field_equal(a, b, (p,), 0)
    assert not field_equal(a, b, (q,), 0)
    measurer = Measurer()
    measures = [measurer.source(a), measurer.source(b)]
    assert lane_error(measures) >= 1 / len(prime_pool())


def test_primes_are_primes_near_two_to_the_twenty() -> None:
    pool = prime_pool()
    assert all((3 << 18) <= p < (1 << 20) for p in pool)
    assert len(pool) > 18000
    assert all(p % d for p in pool[::997] for d in range(2, 1024))


@pytest.mark.parametrize(("layers", "arguments"), [(1, 2), (2, 8), (3, 26), (4, 48), (6, 72)])
def test_arguments_are_counted_with_multiplicity_but_no_more_than_there_are(
    layers: int, arguments: int
) -> None:
    """max(x, 0) has two; over three taps 2 (1 + 3 + 9 + ...), at six positions 2 * 6 a layer."""
    b = GraphBuilder()
    x = b.input("x", (1, 1, 6))
    for k in range(layers):
        w = b.input(f"w{k}", (1, 1, 3))
        x = b.relu(b.conv(x, w, strides=[1], pads=[1, 1], dilations=[1]))
    b.output("y", x)
    assert Measurer().source(output(b.build())).arguments == arguments
