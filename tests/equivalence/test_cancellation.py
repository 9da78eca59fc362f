"""A verdict that needs terms to cancel says so, and needs runs in the programs' own precision."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Attribute, SSAValue

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.types import to_numpy
from isoform.passes.equivalence import Verdict, compare

N = 4
Body = Callable[..., SSAValue]


def program(body: Body, element: Attribute = f32) -> Program:
    b = GraphBuilder()
    values = [b.input(name, (N,), element) for name in "xy"]
    b.output("r", body(b, *values))
    return b.build()


def number(b: GraphBuilder, value: float, as_weight: bool, element: Attribute = f32) -> SSAValue:
    array = np.asarray(value, to_numpy(element))
    made = b.weight(f"c{value}", array) if as_weight else b.constant(array)
    return b.expand(made, (N,))


def assumed(verdict: Verdict) -> set[str]:
    return {a.name for a in verdict.assumptions}


LARGE: dict[Attribute, float] = {f16: 2.0**11, f32: 3 * 2.0**22, f64: 3 * 2.0**51}
CENTRED: dict[str, Body] = {
    "added, subtracted": lambda b, x, c: b.sub(b.add(x, c), c),
    "subtracted, added": lambda b, x, c: b.add(b.sub(x, c), c),
    "from the other side": lambda b, x, c: b.sub(c, b.sub(c, x)),
    "with signs turned": lambda b, x, c: b.neg(b.sub(b.neg(b.add(c, x)), b.neg(c))),
    "through a reshape": lambda b, x, c: b.sub(
        b.reshape(b.reshape(b.add(x, c), shape=[2, 2]), shape=[N]), c
    ),
    "in two parts": lambda b, x, c: b.sub(b.add(b.add(x, c), c), b.add(c, c)),
}


@pytest.mark.parametrize("how", CENTRED)
@pytest.mark.parametrize("as_weight", [False, True])
@pytest.mark.parametrize("element", LARGE, ids=str)
def test_rounding_by_adding_is_not_equal_to_doing_nothing(
    how: str, as_weight: bool, element: Attribute
) -> None:
    def rounding(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
        return CENTRED[how](b, x, number(b, LARGE[element], as_weight, element))

    verdict = compare(program(rounding, element), program(lambda b, x, y: x, element))
    if element == f64:  # the reference itself computes in it
        assert not verdict.is_equal
    else:
        assert verdict.kind == "unknown"
        assert "as computed, each op in its own type, output 'r' at [" in verdict.reason
    same = compare(program(rounding, element), lower_to(program(rounding, element), "kernel"))
    assert same.kind == "equal"  # nothing has to cancel


@pytest.mark.parametrize("how", CENTRED)
def test_where_the_runs_agree_the_law_is_named(how: str) -> None:
    centred = program(lambda b, x, y: CENTRED[how](b, x, number(b, 0.5, False)))
    verdict = compare(centred, program(lambda b, x, y: x))
    assert verdict.kind == "equal-up-to-functions"
    assert assumed(verdict) == {"cancelling"}


INSIDE: dict[str, tuple[Body, Body]] = {
    "before a function": (
        lambda b, x, y: b.tanh(b.sub(b.add(x, number(b, 3 * 2.0**22, False)), y)),
        lambda b, x, y: b.tanh(b.add(b.sub(x, y), number(b, 3 * 2.0**22, False))),
    ),
    "a number that is combined": (
        lambda b, x, y: b.sub(b.add(x, number(b, 5, False)), number(b, 2, False)),
        lambda b, x, y: b.add(x, number(b, 3, False)),
    ),
    "like terms": (
        lambda b, x, y: b.sub(b.mul(x, number(b, 2, False)), x),
        lambda b, x, y: x,
    ),
    "an input": (lambda b, x, y: b.sub(b.add(x, y), y), lambda b, x, y: x),
}
NAMED = {name: set[str]() if name == "before a function" else {"cancelling"} for name in INSIDE}


def test_what_cancels_beside_an_identity_is_run_too() -> None:
    def tanh(b: GraphBuilder, x: SSAValue, c: float) -> SSAValue:
        return b.tanh(b.sub(b.add(x, number(b, c, False)), number(b, c, False)))

    def by_exp(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
        one, two = number(b, 1, False), number(b, 2, False)
        return b.sub(one, b.div(two, b.add(one, b.exp(b.mul(two, x)))))

    plain = compare(program(lambda b, x, y: b.tanh(x)), program(by_exp))
    assert plain.kind == "equal-up-to-functions"
    small = compare(program(lambda b, x, y: tanh(b, x, 0.5)), program(by_exp))
    assert small.kind == "equal-up-to-functions"
    assert "cancelling" in assumed(small)
    assert not compare(program(lambda b, x, y: tanh(b, x, 3 * 2.0**22)), program(by_exp)).is_equal


@pytest.mark.parametrize("what", INSIDE)
def test_what_cancels_is_named_and_what_is_reordered_is_not(what: str) -> None:
    verdict = compare(*(program(body) for body in INSIDE[what]))
    assert verdict.is_equal
    assert assumed(verdict) == NAMED[what]


TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %r = algebra.scope (a: 4) {} : tensor<4xf32>
  func.return %r : tensor<4xf32>
}}
"""
BODIES = {
    "(%x[a] + 12582912.0) - 12582912.0": "unknown",
    "12582912.0 - (12582912.0 - %x[a])": "unknown",
    "neg(neg(%x[a] - 12582912.0) - 12582912.0)": "unknown",
    "(%x[a] + 0.5) - 0.5": "equal-up-to-functions",
    "%x[a] * 2.0 - %x[a]": "equal-up-to-functions",
    "select(lt(%x[a], 0.0), %x[a], %x[a])": "equal",
    "neg(neg(%x[a]))": "equal",
}


@pytest.mark.parametrize("body", BODIES)
def test_what_cancels_inside_one_scope_is_not_forgotten(body: str) -> None:
    plain, other = (parse(TEXT.format(text)) for text in ("%x[a]", body))
    assert compare(other, plain).kind == BODIES[body]
    assert compare(plain, other).kind == BODIES[body]


# --- literals that are not numbers, or no ordinary ones
# --------------------------------------------

INF, HUGE = float("inf"), 1e30


def scaled(
    b: GraphBuilder, x: SSAValue, c: Callable[[float], SSAValue], by: list[float]
) -> SSAValue:
    for factor in by:
        x = b.mul(x, c(factor))
    return x


SPECIAL: dict[str, tuple[Body, Body]] = {
    "inf - inf": (
        lambda b, x, c: b.sub(b.add(x, c(INF)), c(INF)),
        lambda b, x, c: x,
    ),
    "a value that is infinite, less itself": (
        lambda b, x, c: (lambda t: b.add(x, b.sub(t, t)))(b.add(x, c(INF))),
        lambda b, x, c: x,
    ),
    "zero times infinity": (
        lambda b, x, c: b.add(x, b.mul(b.sub(x, x), c(INF))),
        lambda b, x, c: x,
    ),
    "NaN added": (lambda b, x, c: b.add(x, c(float("nan"))), lambda b, x, c: x),
    "1 / -0": (
        lambda b, x, c: b.add(b.max(x, x), b.div(c(1.0), c(-0.0))),
        lambda b, x, c: b.add(x, b.div(c(1.0), c(0.0))),
    ),
    "overflow on the way": (
        lambda b, x, c: b.mul(b.mul(b.mul(x, c(HUGE)), c(HUGE)), c(1e-30)),
        lambda b, x, c: b.mul(x, c(HUGE)),
    ),
    "underflow on the way": (
        lambda b, x, c: b.mul(b.mul(b.mul(x, c(1e-30)), c(1e-30)), c(HUGE)),
        lambda b, x, c: b.mul(x, c(1e-30)),
    ),
    "overflow by ordinary factors": (
        lambda b, x, c: scaled(b, x, c, [1e15] * 3 + [1e-15] * 3),
        lambda b, x, c: b.mul(x, c(1.0)),
    ),
    "a huge number that rounds to infinity": (
        lambda b, x, c: b.sub(b.add(x, b.mul(c(3e38), c(2.0))), b.mul(c(3e38), c(2.0))),
        lambda b, x, c: x,
    ),
}


@pytest.mark.parametrize("what", SPECIAL)
@pytest.mark.parametrize("as_weight", [False, True])
def test_no_law_of_real_numbers_makes_special_literals_equal(what: str, as_weight: bool) -> None:
    def whole(body: Body) -> Program:
        return program(lambda b, x, y: body(b, x, lambda value: number(b, value, as_weight)))

    verdict = compare(*(whole(body) for body in SPECIAL[what]))
    assert not verdict.is_equal, verdict.text()
    for body in SPECIAL[what]:
        assert compare(whole(body), whole(body)).is_equal


def test_masks_of_infinities_may_still_be_equal() -> None:
    def masked(b: GraphBuilder, x: SSAValue, y: SSAValue, turned: bool) -> SSAValue:
        mask = b.less(y, x) if turned else b.greater(x, y)
        return b.softmax(b.where(mask, x, number(b, -INF, False)), axis=0)

    one, two = (program(lambda b, x, y, t=t: masked(b, x, y, t)) for t in (False, True))
    assert compare(one, two).is_equal
