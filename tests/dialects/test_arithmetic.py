"""Where each arithmetic rounds: scalars, tensors, casts and calls."""

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block
from xdsl.utils.exceptions import VerifyException

from isoform.compiler.targets.levels import lower_to
from isoform.dialects import op_reference
from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import iterators
from isoform.dialects.layout import LayoutAttr, verify_layout
from isoform.dialects.reference import run
from isoform.dialects.scalars import Read, call
from isoform.dialects.types import from_numpy, integer_range, tensor, to_numpy

EXACT, REAL, COMPUTED = Arithmetic.EXACT, Arithmetic.REAL, Arithmetic.COMPUTED
THIRD = np.array([1 / 3])
SINGLE, HALF = float(np.float32(1 / 3)), float(np.float16(1 / 3))
BRAIN = 171 / 512  # 1/3 in 8 binary digits


@pytest.mark.parametrize(
    ("arithmetic", "element", "scalar", "stored"),
    [
        (EXACT, f64, 1 / 3, 1 / 3),
        (EXACT, f32, 1 / 3, 1 / 3),
        (EXACT, f16, 1 / 3, HALF),
        (EXACT, bf16, 1 / 3, BRAIN),
        (REAL, f16, 1 / 3, 1 / 3),
        (COMPUTED, f64, 1 / 3, 1 / 3),
        (COMPUTED, f32, SINGLE, SINGLE),
        (COMPUTED, f16, SINGLE, HALF),
        (COMPUTED, bf16, SINGLE, BRAIN),
        (Arithmetic.unrounded(f16), f16, 1 / 3, 1 / 3),
    ],
)
def test_results_and_tensors_round(
    arithmetic: Arithmetic, element: Attribute, scalar: float, stored: float
) -> None:
    assert float(arithmetic.scalar(THIRD, element)[0]) == scalar
    assert float(arithmetic.tensor(THIRD, element)[0]) == stored


@pytest.mark.parametrize(
    ("arithmetic", "source", "target", "expected"),
    [
        (EXACT, f64, f32, SINGLE),
        (EXACT, f16, f32, 1 / 3),
        (EXACT, f32, f32, 1 / 3),
        (EXACT, f32, f16, HALF),
        (COMPUTED, f64, f32, SINGLE),
        (Arithmetic.unrounded(f16), f32, f16, 1 / 3),
        (Arithmetic.unrounded(f16), None, f16, HALF),
        (Arithmetic.unrounded(bf16), f32, f16, HALF),
        (EXACT, f64, i8, 0.0),
    ],
)
def test_casts_round(
    arithmetic: Arithmetic, source: Attribute | None, target: Attribute, expected: float
) -> None:
    assert float(arithmetic.cast(THIRD, source, target)[0]) == expected


@pytest.mark.parametrize(
    ("function", "operand", "expected"),
    [
        ("add", f32, float(np.float32(2 / 3))),
        ("add", f64, 2 / 3),
        ("add", i8, -56),
        ("lt", i8, False),
        ("add", None, 2 / 3),
    ],
)
def test_a_call_is_rounded_or_wrapped_to_its_operands_type(
    function: str, operand: Attribute | None, expected: float
) -> None:
    value = np.array([100]) if operand == i8 else THIRD
    node = call(function, *[Read("x", (iterators(1)[0],))] * 2)
    found = COMPUTED.call(node, [value, value], operand)
    assert found[0] == expected


def test_halves_are_made_by_way_of_float32_and_integers_wrap_or_saturate() -> None:
    near = np.array([1 + 2.0**-11 + 2.0**-30])  # a tie of float16 once rounded to float32
    assert float(COMPUTED.tensor(near, f16)[0]) == 1.0
    assert COMPUTED.tensor(np.array([300, -129]), i8).tolist() == [44, 127]
    whole = COMPUTED.cast(np.array([300.7, -300.0, np.nan, -2.9, np.inf]), f64, i8)
    assert whole.tolist() == [127, -128, 0, -2, 127]
    assert COMPUTED.cast(np.array([1e30]), f64, i64).tolist() == [2**63 - 1]
    assert COMPUTED.cast(np.array([-1e30]), f64, i32).tolist() == [-(2**31)]


def test_a_layout_of_another_rank_is_a_fault() -> None:
    def value(rank: int):
        type_ = TensorType(f32, (2, 3), LayoutAttr.of(range(rank)))
        return Block(arg_types=[type_]).args[0]

    verify_layout("here", value(2))
    verify_layout("here", Block(arg_types=[tensor((2, 3))]).args[0])
    for rank in (1, 3):
        with pytest.raises(VerifyException, match=r"here: the layout of .* has another rank"):
            verify_layout("here", value(rank))


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        (([0, 0],), "order of dims"),
        (([1, 2],), "order of dims"),
        (([0, 1], [0], [0, 0]), "one halo width per dim is needed"),
        (([0, 1], [0, 0], [0]), "one halo width per dim is needed"),
        (([0, 1], [0, 0], [0, 0], [0, 0, 0], [0, 0]), "one width of room per dim is needed"),
        (([0, 1], [0, 0], [0, 0], [0, 0], []), "one width of room per dim is needed"),
        (([0, 1], [0, -1], [0, 0]), "widths are at least 0"),
        (([0, 1], [0, 0], [0, 0], [0, 0], [-1, 0]), "widths are at least 0"),
    ],
)
def test_a_layout_that_is_none_is_a_fault(parts: tuple, fault: str) -> None:
    with pytest.raises(VerifyException, match=fault):
        LayoutAttr.of(*parts)


def test_a_layout_is_its_parts() -> None:
    made = LayoutAttr.of([1, 0], [1, 2], [3, 4], [5, 6], [7, 8])
    assert (made.dims, made.halo, made.room) == ((1, 0), ((1, 3), (2, 4)), ((5, 7), (6, 8)))
    assert LayoutAttr.of([1, 0]).halo == LayoutAttr.of([1, 0]).room == ((0, 0), (0, 0))


@pytest.mark.parametrize(
    "name", [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
def test_an_integer_type_has_the_width_and_sign_of_its_dtype(name: str) -> None:
    element, info = from_numpy(name), np.iinfo(name)
    assert isinstance(element, IntegerType)
    assert element.width.data == info.bits
    assert (element.signedness.data == Signedness.UNSIGNED) == (info.min == 0)
    assert to_numpy(element) == np.dtype(name)
    assert integer_range(element) == (info.min, info.max)


@pytest.mark.parametrize("most", [1, 10, 24, 1000])
def test_rows_evaluated_in_chunks_are_those_at_once(most: int, monkeypatch) -> None:
    b = GraphBuilder()
    y = b.matmul(b.input("x", (7, 5)), b.input("w", (5, 4)))
    b.output("y", b.relu(y))
    program = lower_to(b.build(), "algebra")
    rng = np.random.default_rng(2)
    inputs = {"x": rng.integers(-5, 6, (7, 5)) * 1.0, "w": rng.integers(-5, 6, (5, 4)) * 1.0}
    whole = run(program, inputs)["y"]
    for name in ("CHUNK_POINTS", "CACHE_POINTS"):
        monkeypatch.setattr(op_reference, name, most)
    np.testing.assert_array_equal(run(program, inputs)["y"], whole)
