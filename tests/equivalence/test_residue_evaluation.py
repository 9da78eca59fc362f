"""Values over residues: of contractions, against integers; in pieces, against the whole."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support.expressions import output
from xdsl.dialects.builtin import f32

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.scalars import call
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.passes.equivalence import evaluator
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.inline import Inliner
from isoform.passes.equivalence.residue_einsum import contract
from isoform.passes.equivalence.residues import BadPrimeError, Residues, prime_pool

FIELD = Residues((101, 103), seed=3)
SIZES = (2, 3, 4, 5)  # of iterators 0 to 3


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


def drawn(name: str, used: tuple[int, ...]):
    return FIELD.draw(name, [SIZES[k] for k in used]), used


@pytest.mark.parametrize(
    "used",
    [
        *itertools.combinations([(), (0,), (0, 2), (1, 2), (0, 1, 2), (2, 3), (0, 1, 2, 3)], 2),
        ((0, 2), (2, 3), (1, 3)),
        ((0, 1, 2), (1, 2, 3), (0, 3), (2,)),
        ((3,),),
    ],
    ids=str,
)
@pytest.mark.parametrize("kept", [(), (0,), (0, 1), (0, 1, 2, 3)], ids=str)
def test_a_contraction_is_that_of_the_integers(used, kept) -> None:
    """By numpy's einsum of whole numbers, lane by lane, reduced once at the end."""
    parts = [drawn(f"p{n}", its) for n, its in enumerate(used)]
    value, its = contract(FIELD, parts, kept)
    assert its == tuple(k for k in kept if any(k in u for u in used))
    for lane, prime in enumerate(FIELD.primes):
        operands = itertools.chain(*((v[lane].astype(np.int64), [*u]) for v, u in parts))
        expected = np.einsum(*operands, [*its])
        np.testing.assert_array_equal(np.mod(value[lane], prime), np.mod(expected, prime))


def test_a_long_product_of_matrices_is_exact() -> None:
    """More terms than add up exactly in a float64: the sum is cut."""
    field = Residues(prime_pool()[-2:], seed=5)
    length = 2 * field.most_terms + 7
    assert (max(field.primes) // 2) ** 2 * field.most_terms <= 1 << 53
    a, b = field.draw("a", (1, length)), field.draw("b", (length, 1))
    made = field.matmul(a[:, None], b[:, None])
    for lane, prime in enumerate(field.primes):
        exact = sum(int(x) * int(y) for x, y in zip(a[lane, 0], b[lane, :, 0], strict=True))
        assert int(made[lane, 0, 0, 0]) % prime == exact % prime
    assert np.abs(made).max() <= max(field.primes) // 2


def test_residues_are_symmetric_and_rationals_are_quotients() -> None:
    p, q = FIELD.primes
    half = FIELD.literal(Fraction(-7, 2))
    np.testing.assert_array_equal(np.mod(half * 2, [p, q]), np.mod([-7, -7], [p, q]))
    assert np.abs(FIELD.literal(Fraction(p // 2 + 1))).tolist() == [p // 2, q // 2]
    assert FIELD.literal(Fraction(p // 2)).tolist() == [p // 2, p // 2]
    with pytest.raises(BadPrimeError):
        FIELD.literal(Fraction(1, q))


CUT = {
    "a product": program(
        [(4, 9), (9, 5)], (4, 5), lambda x, i: x[0][i[0], i[2]] * x[1][i[2], i[1]] * 3.0, [9]
    ),
    "a reduction inside a call": program(
        [(4, 6), (6,)], (4, 1, 6), lambda x, i: call("exp", x[0][i[0], i[2]] + x[1][i[2]])
    ),
    "a maximum": program(
        [(6, 7)], (6, 2), lambda x, i: x[0][i[0], i[2]] * x[0][i[1], i[2]], [7], "max"
    ),
    "a shifted row": program(
        [(8,)], (7, 2), lambda x, i: x[0][i[0] + i[1] - 1] * x[0][i[0]] + x[0][6 - i[0]]
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_a_scope_in_pieces_has_the_values_of_the_whole(name, monkeypatch) -> None:
    """At bounds down to a piece for each place of an iterator."""
    scope = output(CUT[name])
    whole = Evaluator(FIELD).value(scope)
    for most in (64, 24, 16):
        monkeypatch.setattr(evaluator, "MOST_ELEMENTS", most)
        try:
            np.testing.assert_array_equal(Evaluator(FIELD).value(scope), whole)
        except evaluator.TooLargeError:  # the result itself, or what a maximum reads
            assert len(FIELD.primes) * max(math.prod(scope.shape), 84) > 4 * most


def test_the_larger_iterator_is_cut_and_never_one_that_is_summed(monkeypatch) -> None:
    term = output(CUT["a product"]).expr.terms[0]
    wide = (4, 5, 9)
    assert evaluator._to_cut(term, wide, 2, 2) is None
    monkeypatch.setattr(evaluator, "MOST_ELEMENTS", 40)
    assert evaluator._to_cut(term, wide, 2, 2) == 1
    assert evaluator._to_cut(term, (4, 1, 9), 2, 2) == 0
    monkeypatch.setattr(evaluator, "MOST_ELEMENTS", 90)
    assert evaluator._to_cut(term, wide, 2, 2) is None  # as much as the bound is not too much


def test_what_is_below_the_cut_is_not_inlined() -> None:
    b = GraphBuilder()
    x = b.input("x", (3,))
    y = b.relu(b.exp(x))
    b.output("y", b.exp(y))
    top = output(b.build())
    (middle,) = evaluator.sources_of(top.expr)
    inliner = Inliner(frozenset({middle.token}))
    made = inliner.inline_scope(top)
    assert [*inliner.memo] == [top.token]
    (read,) = evaluator.sources_of(made)
    assert read.token != middle.token and read.shape == middle.shape


@pytest.mark.parametrize("by", [Fraction(1), Fraction(2), Fraction(-3, 7)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_scaled_value_is_its_product_with_a_rational_in_every_lane(by, shape) -> None:
    x = FIELD.draw("x", shape)
    made = FIELD.scale(x, by) * by.denominator - x * by.numerator
    for lane, prime in enumerate(FIELD.primes):
        assert not np.mod(made[lane], prime).any()
