import dataclasses
import random

import numpy as np
import pytest
from support import blas

import isoform
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.lowering.kernel_to_cpu.emit.module import Module, kernel
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.products.gemm import (
    GemmSpec,
    candidates,
    default_schedule,
    emit_gemm,
    pack_b,
)
from isoform.lowering.kernel_to_cpu.products.microkernel import PrefetchShare
from isoform.lowering.kernel_to_cpu.runtime.runner import ROW, KernelTable, Pool, TableRunner
from isoform.lowering.kernel_to_cpu.session import CpuSession

UNTOUCHED = 7.0


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def stored(draw, shape: tuple[int, ...], order: tuple[int, ...], gap: int) -> np.ndarray:
    """An array of `shape` whose memory has its axes in `order`, with `gap` after each row."""
    sizes = [shape[axis] for axis in order]
    wide = draw.standard_normal((*sizes[:-1], sizes[-1] + gap)).astype(np.float32)
    return wide[..., : sizes[-1]].transpose(np.argsort(order))


class Case:
    """One matrix product's arrays, with the strides that a spec describes."""

    def __init__(self, a: np.ndarray, b: np.ndarray, *, gap: int = 0) -> None:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        m, k, n = *a.shape[-2:], b.shape[-1]
        self.a, self.b = a, b
        self.c = np.full((*batch, m, n + gap), UNTOUCHED, np.float32)
        strides = [self.broadcast(x, len(batch)) for x in (a, b)]
        self.spec = GemmSpec(batch, m, n, k, *strides, element_strides(self.c))

    @staticmethod
    def broadcast(x: np.ndarray, batch: int) -> tuple[int, ...]:
        """The strides with 0 for batch dimensions of size 1."""
        strides = element_strides(x)
        return tuple(
            0 if axis < batch and x.shape[axis] == 1 else stride
            for axis, stride in enumerate(strides)
        )

    def expected(self) -> np.ndarray:
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    def run(self, compiled, isa, schedule, epilogue=None, *extras) -> np.ndarray:
        code = emit_gemm(self.spec, schedule, isa, epilogue)
        right = self.b
        if schedule.right == "packed":
            right = pack_b(np.ascontiguousarray(self.b), self.spec, schedule, isa)
        return self.call(compiled(code, isa), self.a, right, *extras)

    def call(self, function, *operands) -> np.ndarray:
        self.c[...] = UNTOUCHED
        cut = function.items // 3
        function(*operands, self.c, high=cut)
        function(*operands, self.c, low=cut)
        assert (self.c[..., self.spec.n :] == UNTOUCHED).all()
        return self.c[..., : self.spec.n]


def random_case(seed: int) -> Case:
    pick, draw = random.Random(seed).choice, np.random.default_rng(seed)
    batch = pick([(), (1,), (3,), (2, 3)])
    m, n = pick([1, 2, 3, 5, 13, 14, 15, 28, 65]), pick([1, 3, 16, 17, 32, 33, 64, 100])
    k = pick([1, 2, 7, 16, 33, 64, 100, 1100])
    rank = len(batch)
    orders = [(*range(rank), rank, rank + 1), (*range(rank), rank + 1, rank)]
    if rank:
        orders.append((rank, *range(rank), rank + 1))  # heads between rows, as in attention
    shared = tuple(pick([1, extent]) for extent in batch)
    a = stored(draw, (*batch, m, k), pick(orders), pick([0, 3]))
    b = stored(draw, (*shared, k, n), pick(orders), pick([0, 3]))
    if seed % 10 == 0:
        b = np.repeat(b, 2, -1)[..., ::2]  # no stride of B is 1
    return Case(a, b, gap=pick([0, 5]))


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actual / scale, expected / scale, atol=3e-6)


@pytest.mark.parametrize("constant", [True, False], ids=["packed", "activations"])
@pytest.mark.parametrize("seed", range(60))
def test_random_products_match(compiled, isa, bias_relu, seed, constant):
    case = random_case(seed)
    bias = np.random.default_rng(seed).standard_normal(case.spec.n).astype(np.float32)
    schedules = candidates(case.spec, isa, constant_b=constant)
    schedule = schedules[0] if seed % 2 else random.Random(seed).choice(schedules)
    actual = case.run(compiled, isa, schedule, bias_relu, bias)
    close(actual, np.maximum(case.expected() + bias, 0))


@pytest.mark.parametrize("seed", range(40))
def test_random_blocking_matches(compiled, isa, bias_relu, seed):
    pick = random.Random(seed).choice
    case = random_case(seed)
    bias = np.random.default_rng(seed).standard_normal(case.spec.n).astype(np.float32)
    right = pick(["packed", "copied", "direct" if case.spec.b_strides[-1] == 1 else "copied"])
    base = pick(candidates(case.spec, isa, constant_b=True))
    schedule = dataclasses.replace(
        base,
        right=right,
        depth=max(1, case.spec.k // pick([1, 2, 3])),
        panels=pick([1, 2, 3]),
        row_blocks=pick([1, 2, 50]),
        copy_a=case.spec.a_strides[-1] == 1 and pick([True, False]),
    )
    actual = case.run(compiled, isa, schedule, bias_relu, bias)
    close(actual, np.maximum(case.expected() + bias, 0))


def test_a_residual_may_be_the_result_itself(compiled, isa, add_residual):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((30, 900)), draw.standard_normal((900, 40))
    case = Case(a.astype(np.float32), b.astype(np.float32))
    epilogue = add_residual(case.spec.c_strides[:-1])
    schedule = default_schedule(case.spec, isa, constant_b=True)
    schedule = dataclasses.replace(schedule, depth=300)
    function = compiled(emit_gemm(case.spec, schedule, isa, epilogue), isa)
    packed = pack_b(case.b, case.spec, schedule, isa)
    case.c[...] = start = draw.standard_normal(case.c.shape).astype(np.float32)
    function(case.a, packed, case.c, case.c)
    close(case.c, case.expected() + start)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("right", ["packed", "copied", "direct"])
def test_infinities_and_nan_reach_exactly_their_outputs(compiled, isa, poison, right):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((20, 40)), draw.standard_normal((40, 50))
    case = Case(a.astype(np.float32), b.astype(np.float32))
    case.a[3, 7], case.b[2, 49] = poison, -poison
    schedule = default_schedule(case.spec, isa, constant_b=True)
    actual = case.run(compiled, isa, dataclasses.replace(schedule, right=right))
    with np.errstate(invalid="ignore"):
        expected = case.expected()
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(actual), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))


@pytest.mark.parametrize("constant", [True, False], ids=["packed", "activations"])
def test_two_threads_equal_one_bit_for_bit(compiled, constant):
    isa, draw = Isa.host(), np.random.default_rng(0)
    a, b = draw.standard_normal((3, 50, 70)), draw.standard_normal((3, 70, 90))
    case = Case(a.astype(np.float32), b.astype(np.float32))
    schedule = default_schedule(case.spec, isa, constant_b=constant)
    expected = case.run(compiled, isa, schedule).copy()
    code = emit_gemm(case.spec, schedule, isa)
    function = compiled(code, isa)
    right = pack_b(case.b, case.spec, schedule, isa) if constant else case.b
    pointers = np.array([x.ctypes.data for x in (case.a, right, case.c)], np.uint64)
    rows = np.zeros(1, ROW)
    rows["fn"] = function._library.address(code.symbol)
    rows["args"], rows["items"] = pointers.ctypes.data, code.items
    for threads in (1, 2, 3):
        case.c[...] = UNTOUCHED
        with Pool(threads) as pool:
            TableRunner(pool).run(KernelTable(rows))
        np.testing.assert_array_equal(case.c, expected)


def test_a_sum_over_nothing_is_zero(compiled, isa):
    case = Case(np.zeros((5, 0), np.float32), np.zeros((0, 20), np.float32))
    for constant in (True, False):
        schedule = default_schedule(case.spec, isa, constant_b=constant)
        assert not case.run(compiled, isa, schedule).any()


def test_strides_that_a_schedule_cannot_read_are_refused(isa):
    spec = GemmSpec((), 20, 20, 20, (1, 20), (1, 20), (20, 1))
    schedule = default_schedule(spec, isa, constant_b=True)
    with pytest.raises(ValueError, match="columns are adjacent"):
        emit_gemm(spec, dataclasses.replace(schedule, right="direct"), isa)
    apart = dataclasses.replace(spec, a_strides=(2, 40))
    with pytest.raises(ValueError, match="rows or columns are adjacent"):
        emit_gemm(apart, dataclasses.replace(schedule, copy_a=True), isa)
    with pytest.raises(ValueError, match="columns of C"):
        dataclasses.replace(spec, c_strides=(1, 20))
    with pytest.raises(ValueError, match="empty"):
        dataclasses.replace(spec, m=0)
    with pytest.raises(ValueError, match="one stride per dimension"):
        dataclasses.replace(spec, batch=(2,))


needs_blas = pytest.mark.skipif(blas.sgemm_address() is None, reason="numpy has another BLAS")


@needs_blas
@pytest.mark.parametrize("seed", range(30))
def test_blas_matches_where_it_can_address(compiled, seed):
    case = random_case(seed)
    if not blas.supports(case.spec):
        with pytest.raises(ValueError, match="BLAS cannot"):
            blas.emit_blas_gemm(case.spec)
        return
    function = compiled(blas.emit_blas_gemm(case.spec), Isa.host())
    close(case.call(function, case.a, case.b, blas.sgemm_address()), case.expected())


@needs_blas
def test_blas_shares_wide_results_between_items(compiled):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((4, 30)), draw.standard_normal((30, 1500))
    case = Case(a.astype(np.float32), b.astype(np.float32))
    code = blas.emit_blas_gemm(case.spec)
    assert code.items == 5
    operands = case.a, case.b, blas.sgemm_address()
    close(case.call(compiled(code, Isa.host()), *operands), case.expected())


def test_only_a_product_of_activations_copies_its_right_operand():
    isa = Isa.host()
    large = GemmSpec((), 1024, 1024, 1024, (1024, 1), (1, 1024), (1024, 1))
    assert default_schedule(large, isa, constant_b=True).right == "packed"
    assert default_schedule(large, isa, constant_b=False).right == "copied"


@pytest.mark.parametrize("vectors", [1, 2, 3, 4])
@pytest.mark.parametrize("passes", [1, 2, 3, 4, 9])
def test_the_blocks_of_a_panel_fetch_the_next_one_whole(vectors, passes):
    lanes, steps = 16, 10
    fetch = PrefetchShare(vectors, lanes, passes)
    panel, found = steps * vectors * lanes, []

    def body(b, pointers, low, high):
        found.extend(
            fetch.distance(b, panel, number, steps) for number in range(min(passes, vectors))
        )

    kernel(Module(), 1, 1, body)
    line = fetch.lines * lanes
    if passes <= -(-vectors // fetch.lines):
        ends = [start + steps * line for start in found]
        assert found[0] == panel
        assert found[1:] == ends[:-1]
        assert ends[-1] >= 2 * panel
    else:  # chosen while the program runs: only the first blocks fetch
        assert all(start.text.startswith("%") for start in found)


SHARED = {
    "queries with heads beside each other, shared keys": (
        "(b: 2, h: 3, s: 9, t: 18) sum (d: 8) %a[b, s, h, d] * %b[b, t, d]",
        ((2, 9, 3, 8), (2, 18, 8), (2, 3, 9, 18)),
    ),
    "groups of heads that share keys": (
        "(g: 2, r: 4, s: 9, t: 18) sum (d: 8) %a[s, g, r, d] * %b[t, g, d]",
        ((9, 2, 4, 8), (18, 2, 8), (2, 4, 9, 18)),
    ),
    "images beside each other, one filter": (
        "(n: 3, f: 5, p: 21) sum (c: 7) %a[n, c, p] * %b[f, c]",
        ((3, 7, 21), (5, 7), (3, 5, 21)),
    ),
    "every other position of every other row": (
        "(f: 5, h: 6, w: 9) sum (c: 7) %a[c, 2 * h, 2 * w] * %b[f, c]",
        ((7, 12, 18), (5, 7), (5, 6, 9)),
    ),
}


@pytest.mark.parametrize("constant", [False, True], ids=["data", "weights"])
@pytest.mark.parametrize("case", SHARED)
def test_operands_that_stay_while_the_batch_moves(case: str, constant: bool, isa: Isa):
    """What fits in no range of rows or columns is batch, of stride 0 for the other operand."""
    scope, (a, b, y) = SHARED[case]
    a, b, y = ("x".join(map(str, shape)) for shape in (a, b, y))
    right = f"%b = graph.weight @b : tensor<{b}xf32>" if constant else ""
    operand = "" if constant else f", %b: tensor<{b}xf32>"
    program = isoform.parse(
        f"func.func @main(%a: tensor<{a}xf32>{operand}) -> tensor<{y}xf32> {{ {right}\n"
        f"%y = algebra.scope {scope} : tensor<{y}xf32>\n"
        f"func.return %y : tensor<{y}xf32> }}"
    )
    if constant:
        shape = SHARED[case][1][1]
        data = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        program = Program(program.module, {"b": data})
    placed = place(program)
    assert "kernel.gemm" in [op.name for op in placed.main.body.block.ops]
    session = CpuSession(placed, 1, isa=isa)
    inputs = draw_inputs(program)
    found, wanted = session.run(inputs), run(program, inputs)
    session.close()
    for name, expected in wanted.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)
