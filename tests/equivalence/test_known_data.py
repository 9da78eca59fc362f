"""Constants as numbers: exact, of their type, wrapped; and runs on them that differ."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f32, f64, i8, i16, i32, i64

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import Apply, Leaf, Read, Scope, Symbol
from isoform.dialects.discrete import discrete_constants
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.types import to_numpy
from isoform.passes.equivalence import (
    correspondence,
    draws,
    recognised_weights,
    run_check,
    sampler,
    witness,
)
from isoform.passes.equivalence.translate import known_numbers

U8 = IntegerType(8, Signedness.UNSIGNED)


@pytest.mark.parametrize("value", [0, 1, -7, 2**60 + 1, -(2**62) - 1])
def test_one_number_everywhere_is_an_exact_constant(value: int) -> None:
    made = known_numbers(np.full((2, 3), value, np.int64), i64)
    assert isinstance(made, Scope) and made.expr.constant == value


def test_a_float_everywhere_is_its_rational_and_few_numbers_are_a_literal() -> None:
    made = known_numbers(np.full((2,), 0.1, np.float32), f32)
    assert isinstance(made, Scope) and made.expr.constant == Fraction(float(np.float32(0.1)))
    made = known_numbers(np.array([2**60 + 1, 3]), i64)
    assert isinstance(made, Leaf) and made.data == (2**60 + 1, 3)
    made = known_numbers(np.array([0.5, 3.0]), f64)
    assert isinstance(made, Leaf) and made.data == (Fraction(1, 2), 3)
    assert known_numbers(np.arange(1 << 20), i64) is None


@pytest.mark.parametrize("others", [0.0, 2.5])
def test_one_infinite_number_at_some_places_is_a_choice(others: float) -> None:
    made = known_numbers(np.array([others, -math.inf, others + others, -math.inf]), f64)
    assert isinstance(made, Scope)
    (term,) = made.expr.terms
    (choice,) = term.factors
    assert isinstance(choice, Apply) and choice.function == "raw.select"
    condition, infinite, rest = choice.args
    (read,) = condition.terms[0].factors
    assert isinstance(read, Read) and isinstance(read.source, Leaf)
    assert read.source.data == (0, 1, 0, 1)
    (symbol,) = infinite.terms[0].factors
    assert isinstance(symbol, Symbol) and symbol.value == "-inf"
    if others:
        (read,) = rest.terms[0].factors
        assert isinstance(read, Read) and isinstance(read.source, Leaf)
        assert read.source.data == (Fraction(others), 0, Fraction(2 * others), 0)
    else:
        assert rest.constant == 0


@pytest.mark.parametrize("odd", [[math.inf, -math.inf, 1.0], [math.nan, math.inf, 1.0]])
def test_other_data_with_infinities_stay_data(odd: list[float]) -> None:
    assert known_numbers(np.array(odd), f64) is None


@pytest.mark.parametrize("element", [i8, U8, i16, i32])
def test_integers_of_samples_wrap_as_their_type_does(element: IntegerType) -> None:
    values = np.array([0, 1, 127, 128, 255, 256, -1, -128, -129, 2**40 + 5, -(2**40)], np.int64)
    with np.errstate(all="ignore"):
        expected = values.astype(to_numpy(element)).astype(np.float64)
    found = sampler._wrapped(values.astype(np.float64), element)
    np.testing.assert_array_equal(found, expected)


def test_integers_of_64_bits_do_not_wrap_where_they_are_exact() -> None:
    values = np.array([2.0**52, -(2.0**52)])
    np.testing.assert_array_equal(sampler._wrapped(values, i64), values)


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [(np.int8, [-128, -127, -1, 0, 1, 126, 127]), (np.uint8, [0, 1, 254, 255])],
)
def test_the_ends_of_a_type_are_where_it_wraps_and_near_zero(dtype: type, ends: list[int]) -> None:
    assert draws._ends(np.iinfo(dtype)).tolist() == ends


def scaled(by: float) -> Program:
    b = GraphBuilder()
    x = b.input("x", (3,))
    b.output("y", b.mul(x, b.constant(np.full((3,), by, np.float32))))
    return b.build()


def test_runs_tell_what_differs_and_count_themselves() -> None:
    until = time.monotonic() + 600
    same = witness.ProgramPair(scaled(2.0), scaled(2.0), [0])
    found = run_check.agree(same, 3, until, None)
    assert (found.different, found.reason) == (None, "")
    assert run_check.LEAST <= found.runs <= len(run_check.SCALES)
    other = witness.ProgramPair(scaled(2.0), scaled(2.5), [0])
    found = run_check.agree(other, 3, until, None)
    assert found.different is not None and found.different.output == "y"
    assert found.different.witness
    late = run_check.agree(same, 3, time.monotonic() - 1, None)
    assert late.reason == "the time budget is spent before both were run" and not late.runs


def test_only_what_jumps_is_a_discrete_constant() -> None:
    """A sum that loses its digits is off by more than rounding, but it does not jump."""
    b = GraphBuilder()
    w = b.weight("w", np.array([0.3, 0.6], np.float32))
    large = b.constant(np.full((2,), 1e8, np.float32))
    lost = b.sub(b.add(w, large), large)
    jumped = b.floor(b.mul(lost, b.constant(np.full((2,), 4.0, np.float32))))
    b.output("y", b.add(b.input("x", (2,)), jumped))
    p = b.build()
    found = discrete_constants(list(p.main.body.block.ops), p.weights)
    assert [*found] == [jumped]
    assert found[jumped].tolist() == [0.0, 0.0]


def test_moved_weights_are_off_by_up_to_a_unit_and_integers_are_not() -> None:
    given = {"w": np.array([1.0, -3.0, 1e-3], np.float32), "i": np.array([1, 2])}
    moved = recognised_weights._Moved(given, 1)
    assert "w" in moved and "z" not in moved
    assert moved["i"] is given["i"]
    far = np.abs(moved["w"] - given["w"])
    assert (far > 0).all() and (far <= np.spacing(np.abs(given["w"]))).all()
    assert (moved["w"] != recognised_weights._Moved(given, 2)["w"]).all()


def outputs(*names: str, given: bool = True) -> Program:
    b = GraphBuilder()
    x = b.input("x", (3,))
    for k, name in enumerate(names):
        b.output(name, b.mul(x, b.constant(np.full((3,), k + 1.0, np.float32))))
    p = b.build()
    if not given:
        del p.main.properties["res_attrs"]
    return p


def test_outputs_correspond_by_name_and_by_position_where_one_has_no_names() -> None:
    assert correspondence(outputs("p", "q"), outputs("q", "p")) == [1, 0]
    assert correspondence(outputs("p", "q"), outputs("r", "s", given=False)) == [0, 1]
    assert correspondence(outputs("r", "s", given=False), outputs("p", "q")) == [0, 1]
    for other in (outputs("r", "s"), outputs("p"), outputs("r", given=False)):
        with pytest.raises(UserError, match="the programs have different outputs"):
            correspondence(outputs("p", "q"), other)
