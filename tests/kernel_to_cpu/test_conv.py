import dataclasses
import random

import numpy as np
import pytest

from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.products.conv import (
    ConvSchedule,
    ConvSpec,
    candidates,
    default_schedule,
    emit_conv,
    pack_weights,
)
from isoform.lowering.kernel_to_cpu.runtime.runner import ROW, KernelTable, Pool, TableRunner

UNTOUCHED = 7.0


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)[:-1]


def reference(x: np.ndarray, w: np.ndarray, spec: ConvSpec) -> np.ndarray:
    """The convolution in float64, tap by tap and group by group."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    y = np.zeros((spec.batch, *spec.out_spatial, spec.out_channels))
    steps = list(zip(spec.dilations, spec.out_spatial, spec.strides, strict=True))
    for tap in np.ndindex(*spec.kernel):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, (d, o, s) in zip(tap, steps, strict=True)
        )
        for g in range(spec.groups):
            ins = slice(g * spec.group_in, (g + 1) * spec.group_in)
            outs = slice(g * spec.group_out, (g + 1) * spec.group_out)
            y[..., outs] += x[(slice(None), *window, ins)] @ w[(outs, slice(None), *tap)].T
    return y


class Case:
    """One convolution's arrays: the buffers may be wider than the convolution's own channels."""

    def __init__(self, seed: int, spec: ConvSpec, *, input_gap: int = 0, output_gap: int = 0):
        draw = np.random.default_rng(seed)
        sizes = zip(spec.out_spatial, spec.strides, spec.kernel, spec.dilations, strict=True)
        spatial = tuple((o - 1) * s + (k - 1) * d + 1 for o, s, k, d in sizes)
        shape = (spec.batch, *spatial, spec.in_channels + input_gap)
        weights = (spec.out_channels, spec.group_in, *spec.kernel)
        self.x = draw.standard_normal(shape).astype(np.float32)
        self.w = draw.standard_normal(weights).astype(np.float32)
        self.bias = draw.standard_normal(spec.out_channels).astype(np.float32)
        out = (spec.batch, *spec.out_spatial, spec.out_channels + output_gap)
        self.y = np.full(out, UNTOUCHED, np.float32)
        strides = element_strides(self.x), element_strides(self.y)
        self.spec = dataclasses.replace(spec, in_strides=strides[0], out_strides=strides[1])

    def run(self, compiled, isa, schedule, epilogue=None, *extras) -> np.ndarray:
        code = emit_conv(self.spec, schedule, isa, epilogue)
        packed = pack_weights(self.w, self.spec, schedule, isa)
        self.y[...] = UNTOUCHED
        function = compiled(code, isa)
        cut = code.items // 3
        function(self.x, packed, *extras, self.y, high=cut)
        function(self.x, packed, *extras, self.y, low=cut)
        assert (self.y[..., self.spec.out_channels :] == UNTOUCHED).all()
        return self.y[..., : self.spec.out_channels]

    def expected(self) -> np.ndarray:
        return reference(self.x[..., : self.spec.in_channels], self.w, self.spec)


def plain_spec(out, kernel, channels, *, batch=1, strides=None, dilations=None, groups=1):
    ones = (1,) * len(out)
    zeros = (0,) * (len(out) + 1)
    steps, spread = strides or ones, dilations or ones
    return ConvSpec(batch, out, kernel, steps, spread, groups, *channels, zeros, zeros)


def random_spec(seed: int) -> ConvSpec:
    pick = random.Random(seed).choice
    rank = pick([1, 2, 2, 2, 3])
    groups = pick([1, 1, 1, 2, 3, 4, 8, 20])
    if groups == 1:
        ins, outs = pick([1, 3, 4, 8, 16, 33]), pick([1, 5, 16, 31, 32, 48, 64, 70])
    else:
        ins, outs = pick([1, 2, 3, 4, 5, 8, 16]), pick([1, 2, 3, 4, 5, 8, 16, 17])
    kernel = tuple(pick([1, 2, 3, 5] if rank < 3 else [1, 2, 3]) for _ in range(rank))
    out = tuple(pick([1, 2, 5, 7, 8, 14, 15, 20] if rank < 3 else [1, 2, 4]) for _ in kernel)
    return plain_spec(
        (pick([1, 5, 13, 40, 300, 700]),) if rank == 1 else out,
        kernel,
        (ins * groups, outs * groups),
        batch=pick([1, 1, 2]),
        strides=tuple(pick([1, 1, 2, 3]) for _ in kernel),
        dilations=tuple(pick([1, 1, 2]) for _ in kernel),
        groups=groups,
    )


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actual / scale, expected / scale, atol=2e-6)


@pytest.mark.parametrize("seed", range(110))
def test_random_convolutions_match(compiled, isa, bias_relu, seed):
    pick = random.Random(1000 + seed)
    case = Case(seed, random_spec(seed), input_gap=pick.choice([0, 3]), output_gap=seed % 6)
    schedules = candidates(case.spec, isa)
    schedule = schedules[0] if seed % 2 else pick.choice(schedules)
    actual = case.run(compiled, isa, schedule, bias_relu, case.bias)
    close(actual, np.maximum(case.expected() + case.bias, 0))


LAYERS = {
    "first layer": plain_spec((20, 20), (7, 7), (3, 64), strides=(2, 2)),
    "narrow image": plain_spec((7, 7), (3, 3), (32, 48)),
    "one by one": plain_spec((14, 14), (1, 1), (64, 40)),
    "depthwise": plain_spec((9, 9), (3, 3), (40, 40), groups=40),
    "depthwise with multiplier": plain_spec((9, 9), (3, 3), (24, 48), groups=24),
    "thin groups": plain_spec((8, 8), (3, 3), (48, 48), groups=12),
    "uneven groups": plain_spec((6, 6), (3, 3), (15, 10), groups=5),
    "long row": plain_spec((1, 500), (1, 5), (8, 16)),
    "video": plain_spec((3, 7, 7), (3, 3, 3), (8, 20), batch=2),
    "few outputs": plain_spec((16, 16), (3, 3), (16, 3)),
    "one pixel": plain_spec((1, 1), (3, 3), (16, 40)),
    "dilated": plain_spec((10, 10), (3, 3), (16, 32), dilations=(2, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_candidate_of_a_typical_layer_matches(compiled, isa, name):
    case = Case(0, LAYERS[name])
    expected = case.expected()
    for schedule in candidates(case.spec, isa):
        close(case.run(compiled, isa, schedule), expected)


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("unroll", [1, 2, 3])
def test_order_and_unrolling_change_nothing(compiled, isa, outside, unroll):
    case = Case(1, plain_spec((9, 11), (3, 3), (7, 70), batch=2))
    schedule = ConvSchedule(4, 2, unroll, outside)
    close(case.run(compiled, isa, schedule), case.expected())


def test_a_residual_with_its_own_strides_is_added(compiled, isa, add_residual):
    case = Case(2, plain_spec((5, 6), (3, 3), (8, 37), batch=2), output_gap=3)
    wide = np.random.default_rng(3).standard_normal((2, 5, 6, 50)).astype(np.float32)
    epilogue = add_residual(element_strides(wide))
    schedule = default_schedule(case.spec, isa)
    actual = case.run(compiled, isa, schedule, epilogue, wide)
    close(actual, case.expected() + wide[..., :37])


@pytest.mark.parametrize("rank", [1, 3])
def test_the_epilogue_sees_coordinates_of_the_convolutions_own_rank(
    compiled, isa, add_residual, rank
):
    case = Case(2, plain_spec((4, 3, 5)[:rank], (1, 2, 2)[:rank], (4, 9), batch=2))
    other = np.random.default_rng(3).standard_normal(case.y.shape).astype(np.float32)
    epilogue = add_residual(element_strides(other))
    actual = case.run(compiled, isa, default_schedule(case.spec, isa), epilogue, other)
    close(actual, case.expected() + other)


@pytest.mark.parametrize("groups", [1, 4, 16])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_infinities_and_nan_reach_exactly_their_outputs(compiled, isa, groups, poison):
    case = Case(4, plain_spec((6, 6), (3, 3), (16, 32), groups=groups))
    case.x[0, 3, 3, 5] = poison
    case.x[0, 0, 0, 0] = -poison
    actual = case.run(compiled, isa, default_schedule(case.spec, isa))
    with np.errstate(invalid="ignore"):
        expected = case.expected()
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(actual), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))


def test_two_threads_equal_one_bit_for_bit(compiled, bias_relu):
    isa = Isa.host()
    case = Case(5, plain_spec((13, 9), (3, 3), (24, 100)))
    schedule = default_schedule(case.spec, isa)
    expected = case.run(compiled, isa, schedule, bias_relu, case.bias).copy()
    code = emit_conv(case.spec, schedule, isa, bias_relu)
    kernel = compiled(code, isa)
    packed = pack_weights(case.w, case.spec, schedule, isa)
    arrays = (case.x, packed, case.bias, case.y)
    pointers = np.array([a.ctypes.data for a in arrays], np.uint64)
    rows = np.zeros(1, ROW)
    rows["fn"] = kernel._library.address(code.symbol)
    rows["args"], rows["items"] = pointers.ctypes.data, code.items
    for threads in (1, 2, 3):
        case.y[...] = UNTOUCHED
        with Pool(threads) as pool:
            TableRunner(pool).run(KernelTable(rows))
        np.testing.assert_array_equal(case.y, expected)


def test_the_text_depends_on_nothing_but_the_arguments(isa, bias_relu):
    spec = Case(0, LAYERS["narrow image"]).spec
    texts = {emit_conv(spec, default_schedule(spec, isa), isa, bias_relu).ir for _ in range(3)}
    assert len(texts) == 1


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="rank 1, 2 or 3"):
        ConvSpec(1, (4, 4), (3,), (1, 1), (1, 1), 1, 1, 1, (0, 0, 0), (0, 0, 0))
    with pytest.raises(ValueError, match="empty"):
        plain_spec((0,), (1,), (4, 4))
    with pytest.raises(ValueError, match="must divide"):
        plain_spec((4,), (1,), (6, 4), groups=4)
