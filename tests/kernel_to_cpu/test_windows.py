"""Windows along the lanes are reduced across them first: any geometry, nothing lost, few loads."""

import random
import re
from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f64, i32

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.emit.types import F32
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.nests import nontemporal
from isoform.lowering.kernel_to_cpu.session import CpuSession


def in_turns(names: str, cases: Iterable[tuple[object, ...]]) -> pytest.MarkDecorator:
    """Each case on one instruction set, which take turns; the other ones are slow tests."""
    isas = [isa.name for isa in runnable()]
    rows = [
        pytest.param(isa, *case, marks=() if isas[k % len(isas)] == isa else pytest.mark.slow)
        for k, case in enumerate(cases)
        for isa in isas
    ]
    return pytest.mark.parametrize(f"isa, {names}", rows, indirect=["isa"])


def pool(draw: random.Random) -> tuple[str, tuple[int, ...], dict[str, object]]:
    """A pool of 1 to 3 dims with rows of up to five vectors, shorter than one or not."""
    rank = draw.choice((1, 2, 2, 2, 3))
    kernel = [draw.randint(1, 3) for _ in range(rank - 1)] + [draw.choice((2, 3, 3, 5, 7))]
    dilations = [draw.choice((1, 1, 2)) for _ in kernel]
    sizes = [draw.randint(5, 9) for _ in kernel[1:]] + [draw.choice((15, 29, 40, 66, 83))]
    pads = [draw.choice((0, 0, k // 2)) for k in (*kernel, *kernel)]
    attributes: dict[str, object] = {
        "kernel": kernel,
        "strides": [draw.choice((1, 1, 2, 3)) for _ in kernel],
        "dilations": dilations,
        "pads": pads,
        "ceil_mode": draw.random() < 0.3,
    }
    kind = draw.choice(("max", "max", "avg"))
    if kind == "avg":
        attributes["count_include_pad"] = draw.random() < 0.5
    return kind, (1, draw.choice((2, 67)), *sizes), attributes


@in_turns("seed", product(range(12)))
def test_pools_of_any_geometry_are_right(isa: Isa, seed: int):
    """With NaN and infinity among the values, too."""
    draw = random.Random(seed)
    kind, shape, attributes = pool(draw)
    b = GraphBuilder()
    b.output("y", b.op(f"{kind}_pool", b.input("x", shape), **attributes))
    program = b.build()
    session = CpuSession(place(program), draw.choice((1, 2)), isa=isa)
    inputs = draw_inputs(program)
    for odd in ((), (np.nan,), (np.inf, -np.inf), (np.nan, np.inf, -np.inf)):
        for value in odd:
            x = inputs["x"].reshape(-1)
            x[draw.randrange(x.size)] = value
        with np.errstate(invalid="ignore"):
            expected = run(program, inputs)["y"]
        found = session.run(inputs)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=str(attributes))
    session.close()


@in_turns("dtype, stride", product([f16, bf16, f64, i32], [1, 2]))
def test_windows_hold_any_type(isa: Isa, dtype, stride: int):
    b = GraphBuilder()
    geometry = {"pads": [0] * 4, "dilations": [1, 1], "strides": [stride] * 2}
    x = b.input("x", (1, 3, 9, 75), dtype)
    b.output("y", b.max_pool(x, kernel=[3, 3], **geometry))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    inputs = draw_inputs(program)
    found = session.run(inputs)["y"].astype(np.float64)
    session.close()
    np.testing.assert_array_equal(found, run(program, inputs)["y"].astype(np.float64))


BEHIND = {
    "reversed": lambda b, x: b.slice(
        x, starts=[0, 0, 8, 74], sizes=[1, 3, 9, 75], steps=[1, 1, -1, -1]
    ),
    "negated": lambda b, x: b.neg(x),
    "every second": lambda b, x: b.slice(
        x, starts=[0, 0, 0, 1], sizes=[1, 3, 9, 37], steps=[1, 1, 1, 2]
    ),
}


@in_turns("before, kind", product(BEHIND, ["max", "avg"]))
def test_windows_of_what_is_computed_on_the_way(isa: Isa, kind: str, before: str):
    b = GraphBuilder()
    geometry = {"pads": [0] * 4, "dilations": [1, 1], "strides": [1, 2]}
    x = BEHIND[before](b, b.input("x", (1, 3, 9, 75)))
    b.output("y", b.relu(b.op(f"{kind}_pool", x, kernel=[3, 3], **geometry)))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    inputs = draw_inputs(program)
    found = session.run(inputs)["y"]
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("stride", "most"), [(1, 3), (2, 6)])
def test_each_position_of_a_row_is_loaded_once(isa: Isa, stride: int, most: int):
    """Loads for a vector of a maximum over 3x3: tap by tap there are 4.5 and 13.5 of them."""
    b = GraphBuilder()
    geometry = {"pads": [0] * 4, "dilations": [1, 1], "strides": [stride] * 2}
    x = b.input("x", (1, 64, 4 * stride + 3 - stride, 32 * isa.lanes(F32) * stride + 2))
    b.output("y", b.max_pool(x, kernel=[3, 3], **geometry))
    session = CpuSession(place(b.build()), 1, isa=isa)
    ((call,),) = (segment.calls for segment in session.segments)
    session.close()
    loads, stores = (
        len(re.findall(rf"\b{word} <\d+ x float>", call.code.ir)) for word in ("load", "store")
    )
    assert 0 < loads <= most * stores


ROWS = [
    ("max", 3, 1, (2, 33, 7, 79)),
    ("max", 3, 1, (1, 65, 9, 151)),
    ("max", 2, 1, (1, 70, 4, 150)),
    ("avg", 5, 1, (1, 65, 14, 75)),
]


@in_turns("kind, kernel, stride, shape, threads", [(*row, n) for n in (1, 2) for row in ROWS])
def test_rows_of_a_pool_go_past_the_caches_when_they_are_whole(
    isa: Isa, kind, kernel, stride, shape, threads, monkeypatch
):
    """Rows that start anywhere in a line, shared by threads, with NaN at both ends."""
    monkeypatch.setattr(nontemporal, "LEAST_BYTES_OF_LOOPS", 1)
    b = GraphBuilder()
    geometry = {"pads": [0] * 4, "dilations": [1, 1], "strides": [stride] * 2}
    x = b.input("x", shape)
    b.output("y", b.op(f"{kind}_pool", x, kernel=[kernel] * 2, **geometry))
    program = b.build()
    session = CpuSession(place(program), threads, isa=isa)
    assert all("!nontemporal" in c.code.ir for s in session.segments for c in s.calls)
    inputs = draw_inputs(program)
    for value in (1.0, np.nan):
        inputs["x"].reshape(-1)[:: inputs["x"].size - 1] *= value
        found = session.run(inputs)["y"]
        np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)
    session.close()
