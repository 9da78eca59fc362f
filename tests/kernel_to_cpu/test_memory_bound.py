"""Memory-bound kernels read by whole vectors, nothing past what is theirs, in chains."""

import random
import re

import numpy as np
import pytest

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.emit.access import lane_offsets
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.runtime.jit import assembly
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_nest import points, rows

GEOMETRY = {"pads": [0, 0, 0, 0], "dilations": [1, 1]}


def nearest(b: GraphBuilder, x):
    n, c, h, w = 1, 4, 9, 20
    wide = b.broadcast(x, shape=[n, c, h, 2, w, 2], dims=[0, 1, 2, 4])
    return b.reshape(wide, shape=[n, c, 2 * h, 2 * w])


def linear(b: GraphBuilder, x):
    """Both dims twice as large by linear interpolation: the rows between stay in registers."""
    near = np.float32([0.25, 0.75])
    for axis, size in ((2, 9), (3, 20)):
        weights = b.constant(np.stack([np.tile(near, size), np.tile(near[::-1], size)]))
        x = b.resample(x, weights, axis=axis, shift=-1, per=2)
    return x


KERNELS = {
    "linear": ((1, 4, 9, 20), linear),
    "pool": ((1, 4, 9, 37), lambda b, x: b.max_pool(x, kernel=[3, 3], strides=[2, 2], **GEOMETRY)),
    "pool of many rows": (
        (1, 65, 15, 18),
        lambda b, x: b.avg_pool(x, kernel=[3, 3], strides=[2, 1], **GEOMETRY),
    ),
    "picture to channels last": ((1, 3, 9, 37), lambda b, x: b.transpose(x, perm=[0, 2, 3, 1])),
    "picture to channels first": ((1, 9, 37, 3), lambda b, x: b.transpose(x, perm=[0, 3, 1, 2])),
    "transpose": ((37, 41), lambda b, x: b.relu(b.transpose(x, perm=[1, 0]))),
    "nearest": ((1, 4, 9, 20), nearest),
    "every third": ((100,), lambda b, x: b.slice(x, starts=[1], sizes=[33], steps=[3])),
    "backwards": ((100,), lambda b, x: b.slice(x, starts=[98], sizes=[33], steps=[-3])),
    "padded": ((1, 3, 5, 70), lambda b, x: b.pad(x, pads=[0, 0, 1, 3, 0, 0, 1, 20])),
    "padded pool": (
        (1, 65, 9, 70),
        lambda b, x: b.max_pool(x, kernel=[3, 3], strides=[1, 1], pads=[1] * 4, dilations=[1, 1]),
    ),
    "padded average": (
        (1, 65, 9, 70),
        lambda b, x: b.avg_pool(x, kernel=[3, 5], strides=[2, 1], pads=[1] * 4, dilations=[1, 1]),
    ),
    "short rows": ((41, 5), lambda b, x: b.reduce_max(x, axes=[1], keep_dims=False)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_element_is_read_by_itself_and_none_past_the_end(isa: Isa, kernel: str, at_the_end):
    """The operand ends where memory that may be read does."""
    shape, make = KERNELS[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    for segment in session.segments:
        assert not any("masked.gather" in call.code.ir for call in segment.calls)
    inputs = draw_inputs(program)
    guarded = at_the_end(inputs["x"])
    found = session.run({"x": guarded})["y"]
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)


FAR = {
    "windows": KERNELS["pool of many rows"],
    "rows in registers": KERNELS["linear"],
}


@pytest.mark.parametrize("kernel", FAR)
def test_what_lies_far_away_is_asked_for_before_it_is_read(isa: Isa, kernel: str, monkeypatch):
    shape, make = FAR[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    asked: list[bool] = []
    for least in (1 << 40, 1):
        monkeypatch.setattr(points, "LEAST_BYTES_AHEAD", least)
        monkeypatch.setattr(rows, "LEAST_BYTES_OF_LOOPS", least)
        session = CpuSession(place(program), 1, isa=isa)
        asked.append(any("@llvm.prefetch" in c.code.ir for s in session.segments for c in s.calls))
        inputs = draw_inputs(program)
        found = session.run(inputs)["y"]
        session.close()
        np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-5)
    assert asked == [False, True]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kernel", ["linear", "padded pool", "padded average"])
def test_nothing_is_taken_from_where_no_element_is(isa: Isa, kernel: str, value: float):
    """In place of rows outside the first vector of all is read; it must not be seen."""
    shape, make = KERNELS[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    inputs = draw_inputs(program)
    inputs["x"].reshape(-1)[:16] = value
    session = CpuSession(place(program), 1, isa=isa)
    found = session.run(inputs)["y"]
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-6)


def test_lane_offsets_are_what_the_index_says():
    """Against the index itself, at random multiples of the lanes; None may be said, not wrongly."""
    r, known = random.Random(0), 0
    for _ in range(2000):
        lanes, step = r.choice((4, 8, 16)), r.choice((-2, 1, 1, 2, 3))
        lane, other = Index.iterator(0), Index.iterator(1)
        inner = lane * r.choice((0, 1, 2)) + other * r.choice((0, 1, 2, 4)) + r.randrange(9)
        flat = lane * step + other * 7 + (inner // r.choice((2, 3, 4, 8))) * r.choice((-3, 1, 5))
        offsets = lane_offsets(flat, 0, lanes)
        if offsets is None:
            continue
        known += 1
        for _ in range(5):
            start, row = lanes * r.randrange(20), r.randrange(20)
            values = [flat.evaluate([start + k, row]) for k in range(lanes)]
            assert tuple(v - values[0] for v in values) == offsets, (flat, start, row)
    assert 500 < known < 1900


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 1024), 1), ((300, 64), 0)], ids=["along the lanes", "across them"]
)
def test_a_long_sum_has_several_chains(shape, axis):
    b = GraphBuilder()
    b.output("y", b.reduce_sum(b.input("x", shape), axes=[axis], keep_dims=False))
    session = CpuSession(place(b.build()), 1)
    (call,) = session.segments[0].calls
    session.close()
    blocks = re.split(r"^\S+:", assembly(call.code.ir, Isa.host()), flags=re.MULTILINE)
    totals = [set(re.findall(r"addps.*%[xyz]mm(\d+)$", block, re.MULTILINE)) for block in blocks]
    assert max(map(len, totals)) >= 4


@pytest.mark.parametrize("rows", [3, 5, 6, 7, 10])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pools_of_channels_share_rows(isa: Isa, kind: str, rows: int):
    """Any number of rows: stacks of them are whole, short, or both."""
    b = GraphBuilder()
    weights = np.random.default_rng(rows).standard_normal((20, 4, 1, 1)).astype(np.float32)
    x = b.conv(b.input("x", (1, 4, rows, 9)), b.weight("w", weights), strides=[1, 1], **GEOMETRY)
    b.output("y", b.op(f"{kind}_pool", x, kernel=[3, 3], strides=[1, 1], **GEOMETRY))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    inputs = draw_inputs(program)
    found = session.run(inputs)["y"]
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-5)


EXTREMES = {
    "along the lanes": ((9, 83), lambda b, x, f: b.op(f, x, axes=[1], keep_dims=False)),
    "across them": ((83, 37), lambda b, x, f: b.op(f, x, axes=[0], keep_dims=False)),
    "a window": ((2, 3, 9, 37), lambda b, x, f: b.max_pool(x, kernel=[3, 3], **WINDOW)),
}
WINDOW = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
ODD = {
    "no NaN": (),
    "NaN": (np.nan, -np.nan),
    "infinities": (np.inf, -np.inf),
    "all of them": (np.nan, np.inf, -np.inf),
}


@pytest.mark.parametrize("values", ODD)
@pytest.mark.parametrize("function", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("kernel", EXTREMES)
def test_extremes_are_nan_where_any_value_is(isa: Isa, kernel: str, function: str, values: str):
    shape, make = EXTREMES[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape), function))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    draw = np.random.default_rng(len(values))
    for _ in range(8):
        x = draw.standard_normal(shape).astype(np.float32)
        for value in ODD[values]:
            x.reshape(-1)[draw.integers(x.size, size=3)] = value
        found = session.run({"x": x})["y"]
        np.testing.assert_array_equal(found, run(program, {"x": x})["y"].astype(np.float32))
    session.close()


def test_rows_of_what_lies_channels_last_have_channels_in_the_lanes(isa: Isa):
    """Whole vectors and a masked one; NaN and infinity go where the reference says."""
    for channels in (16, 21):
        b = GraphBuilder()
        kernel = np.eye(channels, dtype=np.float32)[:, :, None, None]
        x = b.input("x", (1, channels, 9, 20))
        y = b.conv(x, b.weight("w", kernel), strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
        b.output("y", linear(b, y))
        program = b.build()
        session = CpuSession(place(program), 1, isa=isa)
        assert not any(
            "masked.gather" in call.code.ir for s in session.segments for call in s.calls[1:]
        )
        inputs = draw_inputs(program)
        for value in (1.0, np.nan, np.inf):
            inputs["x"][0, :, 4, 7] *= value
            found = session.run(inputs)["y"]
            np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-5)
        session.close()


def test_chains_are_still_several_in_machine_code():
    """The number of additions is known: LLVM, left alone, writes them out and makes one chain."""
    isa = Isa.host()
    if isa.vector_bytes < 64:
        pytest.skip("counts instructions of AVX-512")
    b = GraphBuilder()
    scale, shift = (b.weight(name, np.ones(768, np.float32)) for name in ("w", "b"))
    b.output("y", b.layer_norm(b.input("x", (4, 768)), scale, shift, axis=1, epsilon=1e-5))
    session = CpuSession(place(b.build()), 1, isa=isa)
    (call,) = session.segments[0].calls
    session.close()
    added = r"v(?:addps|fmadd231ps)\s.*, %(zmm\d+)$"
    found = re.findall(added, assembly(call.code.ir, isa), re.MULTILINE)
    # Eight at a step of either sum, and what joins them; not one for each of 48 vectors.
    assert len(found) <= 48 and len(set(found)) >= 8
