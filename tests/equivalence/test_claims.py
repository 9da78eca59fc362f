"""Claims of docs/trust.md that no other test holds up."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import SSAValue

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare, residues, witness
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.equivalence.verdict import ORDER, Verdict

Body = Callable[..., SSAValue]


def program(body: Body, *shapes: tuple[int, ...]) -> Program:
    b = GraphBuilder()
    values = [b.input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    b.output("y", body(b, *values))
    return b.build()


# --- neutral elements -----------------------------------------------------------------------------

PADDED = [(kind, fill) for kind in ("max", "min") for fill in (float("inf"), float("-inf"))]


@pytest.mark.parametrize(("kind", "fill"), PADDED)
@pytest.mark.parametrize("windows", [False, True])
def test_padding_is_neutral_for_one_of_max_and_min(kind: str, fill: float, windows: bool) -> None:
    """-inf disappears in a maximum and decides a minimum; the other way round with +inf."""

    def whole(b: GraphBuilder, x: SSAValue) -> SSAValue:
        return getattr(b, f"reduce_{kind}")(x, axes=[1], keep_dims=False)

    def padded(b: GraphBuilder, x: SSAValue) -> SSAValue:
        wide = b.pad(x, pads=[0, 1, 0, 2], fill=fill)
        if not windows:
            return whole(b, wide)
        parts = b.reshape(wide, shape=[4, 3, 3])
        inner = getattr(b, f"reduce_{kind}")(parts, axes=[2], keep_dims=False)
        return whole(b, inner)

    verdict = compare(program(whole, (4, 6)), program(padded, (4, 6)))
    if (kind == "max") == (fill < 0):
        assert windows or verdict.is_equal, verdict.text()  # of maxima of parts too little is known
    else:
        assert verdict.kind == "different"


@pytest.mark.parametrize("kind", ["max", "min"])
def test_of_two_operands_the_neutral_one_is_left_out_by_the_field_check(kind: str) -> None:
    field = Residues(draw_primes(2, 7), 7)
    evaluator = Evaluator(field)
    x = field.draw("x", (5,))
    for name, neutral in (("-inf", kind == "max"), ("inf", kind == "min")):
        other = np.broadcast_to(evaluator.symbol(name).reshape(-1, 1), x.shape)
        assert bool(field.equal(evaluator.apply(kind, [x, other], (5,)), x).all()) == neutral


# --- what is modelled -----------------------------------------------------------------------------


def test_a_cast_to_a_narrower_float_is_no_identity() -> None:
    def there_and_back(b: GraphBuilder, x: SSAValue) -> SSAValue:
        return b.cast(b.cast(x, to=f16), to=f32)

    verdict = compare(program(there_and_back, (3,)), program(lambda b, x: b.relu(x), (3,)))
    assert not verdict.is_equal
    plain = compare(program(there_and_back, (3,)), program(lambda b, x: x, (3,)))
    assert not plain.is_equal


def test_zero_times_an_input_is_zero() -> None:
    zero = program(lambda b, x: b.mul(x, b.expand(b.constant(np.float32(0)), (3,))), (3,))
    assert compare(zero, program(lambda b, x: b.sub(x, x), (3,))).is_equal


@pytest.mark.parametrize("size", [64, 65])
def test_only_literals_of_4096_elements_are_their_numbers(size: int) -> None:
    """At 64 * 64 the literal is the identity matrix; one row more, and it might be any matrix."""

    def times(b: GraphBuilder, x: SSAValue) -> SSAValue:
        return b.matmul(x, b.constant(np.eye(size, dtype=np.float32)))

    verdict = compare(program(times, (2, size)), program(lambda b, x: x, (2, size)))
    assert verdict.is_equal == (size == 64)


# --- arithmetic of the field check ----------------------------------------------------------------


def test_sums_of_products_are_exact_beyond_what_one_sum_holds() -> None:
    field = Residues(draw_primes(2, 3), 3)
    inner = 2 * field.most_terms + 17
    rng = np.random.default_rng(0)
    half = np.array([(p - 1) // 2 for p in field.primes], np.float64)
    a = half.reshape(2, 1, 1, 1) - rng.integers(0, 2, (2, 1, 1, inner))
    b = a.reshape(2, 1, inner, 1)
    found = field.matmul(a, b)
    for lane, p in enumerate(field.primes):
        left, right = a[lane, 0, 0], b[lane, 0, :, 0]
        exact = sum(int(x) * int(y) for x, y in zip(left, right, strict=True))
        assert (int(found[lane, 0, 0, 0]) - exact) % p == 0


def test_a_law_holds_where_all_lanes_are_at_its_point() -> None:
    """exp(0) = 1; an argument that is 0 modulo one prime alone is another argument."""
    field = Residues(draw_primes(2, 11), 11)
    evaluator = Evaluator(field)
    at = np.array([[0.0, 0.0, 5.0], [0.0, 7.0, 0.0]])
    assert field.equal(evaluator.apply("exp", [at], (3,)), np.ones((2, 3))).tolist() == [
        True,
        False,
        False,
    ]


def test_the_value_of_a_call_depends_on_every_lane_of_every_argument() -> None:
    field = Residues(draw_primes(3, 5), 5)
    evaluator = Evaluator(field)
    first, second = field.draw("a", (4,)), field.draw("b", (4,))
    value = evaluator.apply("atan2", [first, second], (4,))
    for which in range(2):
        for lane in range(3):
            moved = [first.copy(), second.copy()]
            moved[which][lane] += 1
            assert not field.equal(evaluator.apply("atan2", moved, (4,)), value).any()


def test_the_primes_of_a_draw_are_distinct() -> None:
    assert all(len(set(draw_primes(8, seed))) == 8 for seed in range(2000))


def test_there_are_as_many_primes_as_stated() -> None:
    pool = residues.prime_pool()
    assert len(pool) == 19_079
    assert pool[0] > 3 << 18
    assert pool[-1] < 1 << 20


# --- different ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "found"), [(3e-8, False), (3e-7, True)])
def test_a_difference_counts_from_a_part_of_the_largest_value_on(
    change: float, found: bool
) -> None:
    x = np.linspace(1.0, 2.0, 8)
    assert bool(witness.differing(x, x + 2.0 * change, witness.TOLERANCE).any()) == found


def test_polynomials_that_differ_less_than_rounding_are_told_by_residues() -> None:
    def near(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
        return b.add(x, b.mul(y, b.expand(b.constant(np.float32(2.0**-30)), (3,))))

    verdict = compare(program(near, (3,), (3,)), program(lambda b, x, y: x, (3,), (3,)))
    assert verdict.kind == "different"
    assert verdict.difference is not None
    assert not verdict.difference.witness


@pytest.mark.parametrize(
    ("one", "other"),
    [(np.nan, 0.0), (np.inf, 1.0), (np.inf, -np.inf), (np.nan, np.inf)],
)
def test_infinities_and_nan_are_values_of_their_own(one: float, other: float) -> None:
    for x, y in ((one, other), (other, one)):
        arrays = np.array([x, 1.0]), np.array([y, 1.0])
        assert witness.differing(*arrays, 1e-7).tolist() == [True, False]
    assert not witness.differing(np.array([one]), np.array([one]), 1e-7).any()


def test_a_position_of_small_values_is_not_lost_beside_a_large_one() -> None:
    """Two weights that differ where the largest of the output is 1e30 times larger."""

    def scaled(second: float) -> Program:
        b = GraphBuilder()
        w = b.weight("w", np.array([1e30, second, 1.0], np.float32))
        b.output("y", b.mul(b.input("x", (3,)), w))
        return b.build()

    verdict = compare(scaled(1.0), scaled(-7.0))
    assert verdict.kind == "different"
    assert verdict.difference is not None
    assert verdict.difference.position == (1,)


def test_verdicts_that_claim_equality_are_three() -> None:
    def of(kind: str) -> Verdict:
        return Verdict(kind, (), 0.0, 0.0)  # type: ignore[arg-type]

    assert {kind for kind in ORDER if of(kind).is_equal} == {
        "equal",
        "equal-up-to-folding",
        "equal-up-to-functions",
    }
