"""Large results are stored past the caches: which, and that they are right."""

import dataclasses

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, f64, i8

import isoform
import isoform.lowering.kernel_to_cpu.nests.nontemporal as nontemporal_file
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.kernel import LayoutAttr, with_layout
from isoform.dialects.reference import run
from isoform.dialects.types import tensor
from isoform.lowering.kernel_to_cpu.nests.nontemporal import (
    LEAST_BYTES,
    LINE,
    nontemporal,
    streamed,
)
from isoform.lowering.kernel_to_cpu.products.gemm import (
    GemmSpec,
    default_schedule,
    emit_gemm,
    pack_b,
)
from isoform.lowering.kernel_to_cpu.runtime.execute import aligned
from isoform.lowering.kernel_to_cpu.session import CpuSession

LAST = LayoutAttr.of([0, 2, 3, 1])
HALO = LayoutAttr.of([0, 2, 3, 1], [0, 0, 1, 1], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("shape", "layout", "element", "expected"),
    [
        ([1, 64, 128, 128], LAST, f32, True),
        ([1, 64, 128, 128], HALO, f32, True),
        ([1, 64, 64, 64], LAST, f32, False),  # stays in a cache
        ([1, 60, 128, 128], LAST, f32, False),  # rows start within lines
        ([1, 64, 128, 128], None, f32, True),
        ([1, 1, 1024, 1023], None, f32, False),
        ([1, 64, 128, 128], LAST, f64, True),
    ],
)
def test_large_results_with_aligned_rows_go_past_the_caches(shape, layout, element, expected, isa):
    type_ = tensor(shape, element)
    found = nontemporal(type_ if layout is None else with_layout(type_, layout), isa)
    assert found == (expected and isa.vector_bytes == LINE)


@pytest.mark.parametrize(("m", "n", "k"), [(5, 16, 8), (29, 64, 40), (30, 96, 1100)])
def test_products_stored_past_the_caches_match(compiled, isa, bias_relu, m, n, k):
    draw = np.random.default_rng(m)
    a, w = (draw.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    bias, c = draw.standard_normal(n).astype(np.float32), aligned(np.zeros((m, n), np.float32))
    spec = GemmSpec((), m, n, k, (k, 1), (n, 1), (n, 1))
    schedule = default_schedule(spec, isa, constant_b=True)
    schedule = dataclasses.replace(schedule, nontemporal=True)
    code = emit_gemm(spec, schedule, isa, bias_relu)
    assert "!nontemporal" in code.ir
    assert "fence seq_cst" in code.ir
    compiled(code, isa)(a, pack_b(w, spec, schedule, isa), bias, c)
    np.testing.assert_allclose(c, np.maximum(a @ w + bias, 0), 1e-5, 1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_a_program_with_a_large_result_is_right(threads, kernel, monkeypatch, tmp_path):
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    b = GraphBuilder()
    draw = np.random.default_rng(kernel)
    x = draw.standard_normal((1, 16, 129, 97)).astype(np.float32)
    w = (draw.standard_normal((80, 16, kernel, kernel)) / 12).astype(np.float32)
    sizes = {"strides": [1, 1], "pads": [kernel // 2] * 4, "dilations": [1, 1]}
    y = b.relu(b.conv(b.input("x", x.shape), b.weight("w", w), groups=1, **sizes))
    b.output("y", y)
    program = b.build()
    assert LEAST_BYTES < 80 * 129 * 97 * 4
    session = isoform.compile(program, threads=threads, effort="default")
    found = session(x=x)["y"]
    padded = np.pad(x[0], [(0, 0), *[(kernel // 2,) * 2] * 2]).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (1, 2))
    expected = np.maximum(np.einsum("chwrs,fcrs->fhw", windows, w, optimize=True), 0)
    np.testing.assert_allclose(found[0], expected, atol=3e-5)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([40, 48], 64), ([40, 56], 32), ([40, 52], 16), ([40, 51], 0), ([1, 51], 64), ([40, 1], 0)],
)
def test_loops_store_in_pieces_of_lines_to_which_rows_are_aligned(shape, expected, monkeypatch):
    monkeypatch.setattr(nontemporal_file, "LEAST_BYTES_OF_LOOPS", 1)
    type_ = tensor(shape, f32)
    rows, columns = shape
    flat = Index.iterator(0) * (columns if rows > 1 else 0) + Index.iterator(1)
    assert streamed(type_, flat if columns > 1 else Index.iterator(0) * 2, 1) == expected
    monkeypatch.undo()
    assert streamed(type_, flat, 1) == 0  # small results stay in a cache


def _double(b: GraphBuilder, x):
    n, c, h, w = 1, 3, 7, 20
    wide = b.broadcast(x, shape=[n, c, h, 2, w, 2], dims=[0, 1, 2, 4])
    return b.reshape(wide, shape=[n, c, 2 * h, 2 * w])


def linear(b: GraphBuilder, x):
    """Rows of twice as many elements, which stay in registers until they are whole."""
    near = np.float32([0.25, 0.75])
    for axis, size in ((2, 7), (3, 24)):
        weights = b.constant(np.stack([np.tile(near, size), np.tile(near[::-1], size)]))
        x = b.resample(x, weights, axis=axis, shift=-1, per=2)
    return x


STREAMED = {
    "chain": ((1003,), lambda b, x: b.relu(b.add(x, x))),
    "rows of lines": ((9, 48), lambda b, x: b.softmax(x, axis=1)),
    "rows of half lines": ((9, 40), lambda b, x: b.softmax(x, axis=1)),
    "rows of 7 quarters": ((9, 28), lambda b, x: b.softmax(x, axis=1)),
    "transpose": ((37, 48), lambda b, x: b.relu(b.transpose(x, perm=[1, 0]))),
    "transpose to lines": ((64, 37), lambda b, x: b.relu(b.transpose(x, perm=[1, 0]))),
    "transpose to many lines": ((336, 75), lambda b, x: b.relu(b.transpose(x, perm=[1, 0]))),
    "nearest": ((1, 3, 7, 20), _double),
    "linear": ((1, 3, 7, 24), linear),
    "sum": ((23, 5, 48), lambda b, x: b.reduce_sum(x, axes=[0], keep_dims=False)),
    "half": ((7, 72), lambda b, x: b.cast(x, to=f16)),
}


@pytest.mark.parametrize("kernel", STREAMED)
def test_loops_that_store_past_the_caches_are_right(kernel, isa, monkeypatch):
    monkeypatch.setattr(nontemporal_file, "LEAST_BYTES_OF_LOOPS", 1)
    shape, make = STREAMED[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    session = CpuSession(place(program), 1, isa=isa)
    codes = [call.code.ir for segment in session.segments for call in segment.calls]
    if isa.vector_bytes == LINE and kernel != "transpose":
        past = kernel != "rows of 7 quarters"  # quarters of a vector are stored plainly
        assert all(("!nontemporal" in ir) == ("fence seq_cst" in ir) == past for ir in codes)
    inputs = draw_inputs(program)
    found = session.run(inputs)["y"].astype(np.float64)
    session.close()
    np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-3, atol=1e-6)


def test_rows_of_what_lies_channels_last_go_past_the_caches(isa, monkeypatch):
    """Channels of whole vectors, and more: NaN where the reference has it."""
    monkeypatch.setattr(nontemporal_file, "LEAST_BYTES_OF_LOOPS", 1)
    for channels in (32, 48):
        b = GraphBuilder()
        kernel = np.eye(channels, dtype=np.float32)[:, :, None, None]
        x = b.input("x", (1, channels, 7, 24))
        y = b.conv(x, b.weight("w", kernel), strides=[1, 1], pads=[0] * 4, dilations=[1, 1])
        b.output("y", linear(b, y))
        program = b.build()
        session = CpuSession(place(program), 1, isa=isa)
        codes = [call.code.ir for segment in session.segments for call in segment.calls]
        inputs = draw_inputs(program)
        inputs["x"][0, 3, 2, 5] = np.nan
        found = session.run(inputs)["y"]
        session.close()
        # The rows; of whole lines also what puts channels first again.
        assert sum("!nontemporal" in ir and "fence" in ir for ir in codes) > (
            isa.vector_bytes == LINE
        )
        np.testing.assert_allclose(found, run(program, inputs)["y"], rtol=1e-5, atol=1e-5)


def _padded(b: GraphBuilder, x, *pads: int, fill: float = 0.0):
    return b.pad(b.relu(x), pads=list(pads), fill=fill)


def _doubled(b: GraphBuilder, x):
    wide = b.broadcast(x, shape=[3, 7, 2, 44, 2], dims=[0, 1, 3])
    return b.reshape(wide, shape=[3, 14, 88])


# Rows that start anywhere in a line, and are more than four vectors long.
PEELED = {
    "padded": ((2, 3, 5, 70), lambda b, x: _padded(b, x, 0, 0, 1, 1, 0, 0, 1, 1)),
    "padded in front": ((7, 79), lambda b, x: _padded(b, x, 1, 22, 0, 0, fill=-np.inf)),
    "padded behind": ((7, 79), lambda b, x: _padded(b, x, 0, 0, 0, 40, fill=1.5)),
    "few long rows": ((2, 4001), lambda b, x: _padded(b, x, 0, 1, 0, 2)),
    "part": ((9, 200), lambda b, x: b.neg(b.slice(x, starts=[0, 3], sizes=[9, 99], steps=[1, 1]))),
    "joined": ((9, 75), lambda b, x: b.concat(x, b.neg(x), axis=0)),
    "bias": (
        (9, 197),
        lambda b, x: b.add(x, b.expand(b.constant(np.float32(range(197))), [9, 197])),
    ),
    "doubled": ((3, 7, 44), _doubled),
    "half": ((7, 75), lambda b, x: b.cast(_padded(b, x, 1, 1, 0, 0), to=f16)),
    "bytes": ((7, 150), lambda b, x: b.cast(_padded(b, x, 1, 1, 0, 0), to=i8)),
}


@pytest.mark.parametrize("kernel", PEELED)
def test_rows_that_start_anywhere_go_past_the_caches_from_their_first_line_on(
    kernel, isa, monkeypatch
):
    """The reference, with NaN and infinity at the ends of the operand, in parts as threads do."""
    monkeypatch.setattr(nontemporal_file, "LEAST_BYTES_OF_LOOPS", 1)
    shape, make = PEELED[kernel]
    b = GraphBuilder()
    b.output("y", make(b, b.input("x", shape)))
    program = b.build()
    inputs = draw_inputs(program)
    if kernel != "bytes":
        inputs["x"].reshape(-1)[:: inputs["x"].size - 1] = np.nan, np.inf
    expected = run(program, inputs)["y"]
    for threads in (1, 2):
        session = CpuSession(place(program), threads, isa=isa)
        codes = [call.code.ir for segment in session.segments for call in segment.calls]
        if isa.vector_bytes >= {"half": 32, "bytes": 64}.get(kernel, 0):  # pieces of 16 bytes
            assert all("!nontemporal" in ir and "fence seq_cst" in ir for ir in codes)
        found = session.run(inputs)["y"]
        session.close()
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-3, atol=1e-6)
