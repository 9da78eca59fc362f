"""Convolutions, pools and matrix products against onnx.reference, or loops where that is wrong."""

import itertools
import random

import numpy as np
import pytest


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


CONVS = [
    # x, w, strides, pads, dilations, groups
    ((2, 3, 7, 6), (4, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((1, 4, 9, 8), (6, 4, 3, 2), (2, 1), (0, 1, 2, 0), (1, 1), 1),
    ((2, 4, 8, 9), (4, 2, 3, 3), (2, 2), (1, 0, 1, 2), (2, 1), 2),
    ((1, 6, 5, 5), (6, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 4, 5, 5), (8, 1, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 4),
    ((2, 2, 9), (3, 2, 4), (3,), (2, 1), (2,), 1),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), (1, 2, 1), (1, 0, 1, 0, 1, 0), (1, 1, 2), 1),
    ((1, 3, 5, 5), (2, 3, 5, 5), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 2, 6, 6), (2, 2, 3, 3), (1, 1), (-1, 0, -1, 0), (1, 1), 1),
    ((0, 2, 6, 6), (2, 2, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize(("x", "w", "strides", "pads", "dilations", "groups"), CONVS)
def test_conv(x, w, strides, pads, dilations, groups, bias, graph_op) -> None:
    operands = [draw(0, *x), draw(1, *w)] + [draw(2, w[0])] * bias
    windows = {"strides": strides, "pads": pads, "dilations": dilations}
    (found,) = graph_op("conv", *operands, groups=groups, **windows)
    expected = loop_conv(*operands[:2], strides, pads, dilations, groups)
    if bias:
        expected += operands[2].reshape(1, -1, *[1] * (len(x) - 2))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def loop_conv(x, w, strides, pads, dilations, groups) -> np.ndarray:
    """Tap by tap over the padded image."""
    rank, kernel = x.ndim - 2, w.shape[2:]
    spatial = tuple(zip(pads[:rank], pads[rank:], strict=True))
    padded = np.pad(x, ((0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in spatial)))
    crop = [slice(max(-a, 0), padded.shape[k + 2] - max(-b, 0)) for k, (a, b) in enumerate(spatial)]
    padded = padded[(slice(None), slice(None), *crop)]
    out = [
        (padded.shape[k + 2] - (kernel[k] - 1) * dilations[k] - 1) // strides[k] + 1
        for k in range(rank)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for f in range(w.shape[0]):
        group = f // (w.shape[0] // groups)
        for c, tap in itertools.product(range(w.shape[1]), itertools.product(*map(range, kernel))):
            at = [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, out, strides, strict=True)
            ]
            y[:, f] += padded[(slice(None), group * w.shape[1] + c, *at)] * w[(f, c, *tap)]
    return y


TRANSPOSED = [
    # x, w, strides, pads, dilations, output_padding, groups
    ((1, 3, 4, 5), (3, 2, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), (0, 0), 1),
    ((2, 3, 4, 5), (3, 2, 4, 4), (2, 2), (1, 1, 1, 1), (1, 1), (0, 0), 1),
    ((1, 4, 3, 4), (4, 3, 3, 2), (3, 2), (0, 1, 2, 0), (1, 2), (1, 0), 2),
    ((1, 4, 5), (4, 1, 3), (2,), (1, 0), (3,), (1,), 4),
    ((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), (2, 1, 2), (0, 0, 1, 0, 1, 0), (1, 1, 1), (0, 0, 1), 1),
    ((1, 3, 1, 1), (3, 2, 4, 4), (1, 1), (0, 0, 0, 0), (1, 1), (0, 0), 1),
]


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv_transpose(case, bias, graph_op) -> None:
    x, w, strides, pads, dilations, extra, groups = case
    operands = [draw(0, *x), draw(1, *w)] + [draw(2, w[1] * groups)] * bias
    windows = {"strides": strides, "pads": pads, "dilations": dilations, "output_padding": extra}
    (found,) = graph_op("conv_transpose", *operands, groups=groups, **windows)
    expected = scatter(*operands[:2], *case[2:])
    if bias:
        expected += operands[2].reshape(1, -1, *[1] * (len(x) - 2))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def scatter(x, w, strides, pads, dilations, extra, groups) -> np.ndarray:
    """Each input element adds its taps to the full output, which is then cropped."""
    rank, per_group = x.ndim - 2, w.shape[1]
    size, kernel = x.shape[2:], w.shape[2:]
    full = [
        (size[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + extra[k]
        for k in range(rank)
    ]
    y = np.zeros((x.shape[0], per_group * groups, *full))
    for c, f in itertools.product(range(x.shape[1]), range(per_group)):
        group = c // (x.shape[1] // groups)
        for tap in itertools.product(*map(range, kernel)):
            at = [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, size, strides, strict=True)
            ]
            y[(slice(None), group * per_group + f, *at)] += x[:, c] * w[(c, f, *tap)]
    crop = [slice(pads[k], full[k] - pads[k + rank]) for k in range(rank)]
    return y[(slice(None), slice(None), *crop)]


BANDS = [
    # rows, inner, width, dilation
    (6, 3, 1, 1), (6, 3, 2, 2), (5, 2, 3, 4), (4, 3, 0, 1), (3, 2, 2, 5),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "inner", "width", "dilation"), BANDS)
def test_band_products(rows: int, inner: int, width: int, dilation: int, graph_op) -> None:
    x, y = draw(0, 2, rows, inner), draw(1, 2, rows, inner)
    band = np.zeros((2, rows, 2 * width + 1))
    for i, j in itertools.product(range(rows), range(2 * width + 1)):
        other = i + (j - width) * dilation
        if 0 <= other < rows:
            band[:, i, j] = (x[:, i] * y[:, other]).sum(axis=-1)
    (found,) = graph_op("g2bmm", x, y, width=width, dilation=dilation)
    np.testing.assert_allclose(found, band, atol=1e-12)
    expected = np.zeros((2, rows, inner))
    for i, j in itertools.product(range(rows), range(2 * width + 1)):
        other = i + (j - width) * dilation
        if 0 <= other < rows:
            expected[:, i] += band[:, i, j, None] * y[:, other]
    (found,) = graph_op("gbmm", band, y, dilation=dilation)
    np.testing.assert_allclose(found, expected, atol=1e-12)


RESAMPLED = [
    # shape, axis, taps, out, step, shift, per
    ((2, 5, 3), 1, 2, 10, 1, -1, 2), ((7,), 0, 3, 4, 2, -1, 1), ((4, 6), 1, 4, 9, 2, -5, 3),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "taps", "out", "step", "shift", "per"), RESAMPLED)
def test_resampling(shape, axis, taps, out, step, shift, per, graph_op) -> None:
    x, weights = draw(0, *shape), draw(1, taps, out)
    lines = np.moveaxis(x, axis, -1)
    expected = np.zeros((*lines.shape[:-1], out))
    for k, t in itertools.product(range(out), range(taps)):
        position = (step * k + shift) // per + t
        if 0 <= position < shape[axis]:
            expected[..., k] += lines[..., position] * weights[t, k]
    how = {"axis": axis, "step": step, "shift": shift, "per": per}
    (found,) = graph_op("resample", x, weights, **how)
    np.testing.assert_allclose(found, np.moveaxis(expected, -1, axis), atol=1e-12)


POOLS = [
    # x, kernel, strides, pads, dilations, ceil_mode
    ((1, 2, 6, 7), (2, 3), (1, 1), (0, 0, 0, 0), (1, 1), False),
    ((2, 2, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    ((1, 2, 7, 8), (3, 2), (2, 3), (1, 0, 0, 1), (1, 1), True),
    ((1, 1, 5, 5), (2, 2), (2, 2), (1, 1, 1, 1), (1, 1), True),
    ((1, 1, 9, 9), (3, 3), (2, 2), (1, 1, 1, 1), (2, 2), False),
    ((1, 2, 9), (4,), (3,), (1, 2), (1,), True),
    ((1, 1, 4, 4, 5), (2, 2, 2), (2, 1, 2), (0, 1, 0, 1, 0, 1), (1, 1, 1), False),
]
REDUCERS = {"max": np.max, "avg": np.sum}


def loop_pool(x, kernel, strides, pads, dilations, out, kind: str, include: bool) -> np.ndarray:
    """Window by window, in the image's coordinates; what is in no pad either does not count."""
    rank, y = x.ndim - 2, np.zeros((*x.shape[:2], *out))
    for position in itertools.product(*map(range, out)):
        taps, counted = [], 0
        for tap in itertools.product(*map(range, kernel)):
            at = [
                p * s + t * d - pad
                for p, s, t, d, pad in zip(
                    position, strides, tap, dilations, pads[:rank], strict=True
                )
            ]
            inside = all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True))
            padded = all(-pads[k] <= at[k] < x.shape[k + 2] + pads[k + rank] for k in range(rank))
            counted += padded if include else inside
            taps += [x[(slice(None), slice(None), *at)]] if inside else []
        window = REDUCERS[kind](np.stack(taps), axis=0)
        y[(slice(None), slice(None), *position)] = window / (1 if kind == "max" else counted)
    return y


@pytest.mark.parametrize("kind", ["max", "avg", "avg_include_pad"])
@pytest.mark.parametrize("case", POOLS)
def test_pools(case, kind: str, graph_op, onnx_op) -> None:
    shape, kernel, strides, pads, dilations, ceil_mode = case
    x, include = draw(0, *shape), kind.endswith("pad")
    flags = {"count_include_pad": True} if include else {}
    windows = {"strides": strides, "pads": pads, "dilations": dilations}
    name = kind[:3]
    (found,) = graph_op(f"{name}_pool", x, kernel=kernel, ceil_mode=ceil_mode, **flags, **windows)
    expected = loop_pool(x, kernel, strides, pads, dilations, found.shape[2:], name, include)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("case", POOLS)
def test_max_pool_sizes_are_those_of_onnx(case, graph_op, onnx_op) -> None:
    shape, kernel, strides, pads, dilations, ceil_mode = case
    x = draw(0, *shape)
    windows = {"strides": strides, "pads": pads, "dilations": dilations}
    (found,) = graph_op("max_pool", x, kernel=kernel, ceil_mode=ceil_mode, **windows)
    (expected,) = onnx_op(
        "MaxPool", x, kernel_shape=kernel, ceil_mode=int(ceil_mode), opset=22, **windows
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_max_pool_of_integers_and_nan(graph_op) -> None:
    window = {"kernel": [2], "strides": [1], "pads": [1, 0], "dilations": [1]}
    x = np.array([[[-3, -5, -4]]])
    assert graph_op("max_pool", x, **window)[0].tolist() == [[[-3, -3, -4]]]
    y = graph_op("max_pool", np.array([[[1.0, np.nan, 2.0, 3.0]]]), **window)[0]
    np.testing.assert_array_equal(y, [[[1.0, np.nan, np.nan, 3.0]]])


MATRICES = [
    ((4, 5), (5, 3)),
    ((2, 4, 5), (2, 5, 3)),
    ((2, 3, 1, 5), (2, 3, 5, 1)),
    ((3, 0), (0, 2)),
]


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("a", "b"), MATRICES)
def test_matmul(a, b, transpose_a, transpose_b, graph_op) -> None:
    left, right = draw(0, *a), draw(1, *b)
    (found,) = graph_op(
        "matmul",
        np.ascontiguousarray(left.swapaxes(-1, -2)) if transpose_a else left,
        np.ascontiguousarray(right.swapaxes(-1, -2)) if transpose_b else right,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    np.testing.assert_allclose(found, left @ right, atol=1e-12)


def test_matmul_of_integers(graph_op) -> None:
    a = np.arange(6).reshape(2, 3)
    assert graph_op("matmul", a, a.T.copy())[0].tolist() == (a @ a.T).tolist()


def random_window(rng: random.Random, spatial: int) -> dict:
    return {
        "strides": [rng.randint(1, 3) for _ in range(spatial)],
        "dilations": [rng.randint(1, 3) for _ in range(spatial)],
        "pads": [rng.randint(0, 2) for _ in range(2 * spatial)],
    }


def random_sizes(rng: random.Random, window: dict) -> tuple[list[int], list[int]]:
    """A kernel and an image that it fits into."""
    kernel = [rng.randint(1, 3) for _ in window["strides"]]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, window["dilations"], strict=True)]
    return kernel, [max(2, r) + rng.randint(0, 3) for r in reach]


@pytest.mark.parametrize("seed", range(60))
def test_random_convolutions(seed: int, graph_op) -> None:
    rng = random.Random(seed)
    window, groups = random_window(rng, rng.randint(1, 2)), rng.randint(1, 3)
    kernel, image = random_sizes(rng, window)
    inputs, outputs = groups * rng.randint(1, 2), groups * rng.randint(1, 2)
    x = draw(seed, rng.randint(1, 2), inputs, *image)
    w = draw(seed, outputs, inputs // groups, *kernel)
    (found,) = graph_op("conv", x, w, groups=groups, **window)
    parameters = (window["strides"], window["pads"], window["dilations"])
    np.testing.assert_allclose(found, loop_conv(x, w, *parameters, groups), atol=1e-10)

    window["pads"] = [0] * len(window["pads"])
    extra = [rng.randint(0, s - 1) for s in window["strides"]]
    w = draw(seed, inputs, outputs // groups, *kernel)
    (found,) = graph_op("conv_transpose", x, w, groups=groups, output_padding=extra, **window)
    parameters = (window["strides"], window["pads"], window["dilations"], extra)
    np.testing.assert_allclose(found, scatter(x, w, *parameters, groups), atol=1e-10)


@pytest.mark.parametrize("seed", range(60))
def test_random_pools(seed: int, graph_op) -> None:
    rng = random.Random(1000 + seed)
    window = random_window(rng, rng.randint(1, 2))
    kernel, image = random_sizes(rng, window)
    spatial = len(kernel)
    window["dilations"] = [1] * spatial
    window["pads"] = [min(p, kernel[k % spatial] - 1) for k, p in enumerate(window["pads"])]
    x, kind, include = draw(seed, 1, 2, *image), rng.choice(("max", "avg")), rng.random() < 0.5
    flags = {"ceil_mode": rng.random() < 0.5}
    flags |= {"count_include_pad": include} if kind == "avg" else {}
    (found,) = graph_op(f"{kind}_pool", x, kernel=kernel, **flags, **window)
    parameters = (kernel, window["strides"], window["pads"], window["dilations"])
    expected = loop_pool(x, *parameters, found.shape[2:], kind, include)
    np.testing.assert_allclose(found, expected, atol=1e-12)
