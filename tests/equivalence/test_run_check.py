"""Constants made at compile time: how far from their expressions they may be, what that does."""

import numpy as np
import pytest

from isoform.compiler.frontends.program_file import parse
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.weights import Weights
from isoform.passes.equivalence import Verdict, compare, folded_constants
from isoform.passes.equivalence.verdict import MAX_ULPS

W = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
SOURCE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight @w : tensor<4xf32>
  %0 = graph.sub %w, %w : tensor<4xf32>
  %r = graph.add %x, %0 : tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
FOLDED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %w = graph.weight @w : tensor<4xf32>
  %v = graph.weight @v {{isoform.expression = "%w = graph.weight @w : tensor<4xf32>; func.return %w : tensor<4xf32>"}} : tensor<4xf32>
  %0 = graph.sub %v, %w : tensor<4xf32>
  %c = graph.constant dense<{:e}> : tensor<4xf32>
  %1 = graph.mul %0, %c : tensor<4xf32>
  %r = graph.add %x, %1 : tensor<4xf32>
  func.return %r : tensor<4xf32>
}}
"""  # noqa: E501


def folded(ulps: int, by: float) -> Verdict:
    """x + (w - w) against x + by (v - w), v so many ulps from the w that it claims to be."""
    moved = (W.view(np.int32) + ulps).view(np.float32)
    source = Program(parse(SOURCE).module, Weights({"w": W}))
    result = Program(parse(FOLDED.format(by)).module, Weights({"w": W, "v": moved}))
    return compare(source, result)


@pytest.mark.parametrize("ulps", [1, int(MAX_ULPS), int(MAX_ULPS) + 1, 31])
def test_the_bound_in_ulps_is_the_documented_one(ulps: int) -> None:
    verdict = folded(ulps, 1.0)
    assert (verdict.kind == "equal-up-to-folding") == (ulps <= MAX_ULPS), verdict.text()
    if verdict.kind == "unknown":
        assert f"{ulps} ulp from the expression it carries" in verdict.reason
    elif ulps <= MAX_ULPS:
        assert verdict.largest_ulps == ulps


@pytest.mark.parametrize("ulps", [1, 7])
@pytest.mark.parametrize("by", [2.0**15, 2.0**40])
def test_what_an_ulp_does_to_the_outputs_is_run(ulps: int, by: float) -> None:
    assert folded(0, by).is_equal
    assert not folded(ulps, by).is_equal


def scaled(p: list[float], q: list[float], name: str = "x") -> Program:
    """x * p * q + z."""
    b = GraphBuilder()
    x, z = b.input(name, (4,)), b.input("z", (4,))
    made = b.mul(
        b.mul(x, b.weight("p", np.array(p, np.float32))), b.weight("q", np.array(q, np.float32))
    )
    b.output("y", b.add(made, z))
    return b.build()


@pytest.mark.parametrize("name", ["x", "input", "a", "zz", "data_0"])
@pytest.mark.parametrize("position", range(4))
def test_an_overflow_is_no_agreement(name: str, position: int) -> None:
    """p q overflows float32 in one place and differs in the others, whatever the input's name."""
    huge = [3e20 if k == position else 1.0 for k in range(4)]
    one, two = [v * f for v, f in zip(huge, (1, 2, 3, 4), strict=True)], [v * -7 for v in huge]
    verdict = compare(scaled(huge, one, name), scaled(two, huge, name))
    assert verdict.kind == "different"


@pytest.mark.parametrize(("one", "other"), [(9e40, 9.5e40), (np.inf, np.inf), (np.nan, np.nan)])
def test_a_distance_that_is_no_number_is_beyond_every_bound(one: float, other: float) -> None:
    parts = ([np.array([one, 1.0])], [np.array([other, 1.0])])
    group = folded_constants.ConstantGroup([], (2,), (), parts)
    with np.errstate(all="ignore"):
        assert folded_constants.largest_distance(group, np.dtype(np.float32)) == np.inf


def test_inputs_of_several_sizes_are_run() -> None:
    """At scale 1 what 2^12 rounds away is within the tolerance, at a twentieth of it not."""

    def rounding(c: float) -> Program:
        b = GraphBuilder()
        x, c_ = b.input("x", (4,)), b.expand(b.constant(np.float32(c)), (4,))
        b.output("y", b.sub(b.add(x, c_), c_))
        return b.build()

    b = GraphBuilder()
    b.output("y", b.input("x", (4,)))
    plain = b.build()
    assert compare(rounding(2.0**4), plain).is_equal
    assert not compare(rounding(2.0**12), plain).is_equal


def test_terms_that_are_taken_for_one_another_but_cancel_are_run() -> None:
    """Coefficients within ulps of their parts, 1e20 - 1e20: what is left of them is anything."""

    def summed(p: float, q: float) -> Program:
        b = GraphBuilder()
        x = b.input("x", (4,))
        first = b.mul(x, b.weight("p", np.full(4, p, np.float32)))
        second = b.mul(x, b.weight("q", np.full(4, q, np.float32)))
        b.output("y", b.sub(first, second))
        return b.build()

    near = float(np.nextafter(np.float32(1e10), np.float32(2e10)))
    assert not compare(summed(1e10, 1e10), summed(near, 1e10)).is_equal
