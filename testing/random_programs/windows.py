"""Random contractions, convolutions and pools: ops with windows, channels and inner dims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_signed_int, shape_of
from .grower import Grower, fits, of_float


def matmul(g: Grower) -> SSAValue:
    """A product with an earlier value, a weight or an input; batched, transposed, integer too."""
    a = g.any(lambda v: _multiplies(v) and 2 <= len(shape_of(v)) <= 4)
    if not _multiplies(a) or not 2 <= len(shape_of(a)) <= 4:
        a = g.fresh(g.shape(g.rng.randint(2, 4)), g.float_type())
    *batch, m, k = shape_of(a)
    flip_a, flip_b = g.chance(0.3), g.chance(0.3)
    if flip_a:
        m, k = k, m
    n = g.extent()
    if not fits([*batch, m, n]):
        n = 1
    right = [*batch, n, k] if flip_b else [*batch, k, n]
    known = g.pick(lambda v: list(shape_of(v)) == right and element_of(v) == element_of(a))
    b = known if known is not None and g.chance(0.5) else g.fresh(right, element_of(a))
    return g.b.matmul(a, b, transpose_a=flip_a, transpose_b=flip_b)


def band(g: Grower) -> SSAValue:
    """A band of products of rows, or a band times rows; bands wider than the matrix too."""
    y = g.pick(lambda v: _multiplies(v) and len(shape_of(v)) == 3)
    if y is None:
        y = g.fresh(g.shape(3), g.float_type())
    batch, rows, _ = shape_of(y)
    width, dilation = g.rng.choice((0, 1, 1, 2)), g.rng.choice((1, 1, 2, 3))
    shape = [batch, rows, 2 * width + 1]
    if not fits(shape):
        return y
    if g.chance(0.5):
        x = g.fresh(shape_of(y), element_of(y))
        return g.b.g2bmm(x, y, width=width, dilation=dilation)
    return g.b.gbmm(g.fresh(shape, element_of(y)), y, dilation=dilation)


def banded(g: Grower) -> SSAValue:
    """A product with a band: of two matrices, or of one with weights."""
    return resample(g) if g.chance(0.35) else band(g)


def resample(g: Grower) -> SSAValue:
    """Weighted sums of neighbours along a dim; windows that leave it, windows of one element."""
    x = g.any(lambda v: of_float(v) and len(shape_of(v)) >= 1)
    if not of_float(x) or not shape_of(x):
        x = g.fresh(g.shape(2), g.float_type())
    axis = g.rng.randrange(len(shape_of(x)))
    taps, out = g.rng.choice((1, 2, 2, 3)), g.extent()
    if not fits([*shape_of(x)[:axis], out, *shape_of(x)[axis + 1 :]]):
        return x
    step, per = g.rng.choice((1, 1, 2, 5)), g.rng.choice((1, 2, 3))
    shift = g.rng.choice((0, -1, -3, 2))
    weights = g.fresh([taps, out], element_of(x))
    return g.b.resample(x, weights, axis=axis, step=step, shift=shift, per=per)


def _multiplies(value: SSAValue) -> bool:
    return of_float(value) or is_signed_int(element_of(value))


def image(g: Grower) -> SSAValue:
    """A value [n, c, *spatial] without empty dims, floats mostly."""
    rank = g.rng.choice((3, 4, 4, 4, 5))
    known = g.pick(lambda v: _multiplies(v) and len(shape_of(v)) == rank and 0 not in shape_of(v))
    if known is not None and g.chance(0.7):
        return known
    channels = g.rng.choice((1, 2, 3, 4, 4, 6, 8))
    shape = [g.rng.choice((1, 1, 2, 3)), channels, *(g.rng.randint(1, 7) for _ in range(rank - 2))]
    while not fits(shape):
        shape[-1 if shape[-1] > 1 else -2] = 1
    element = g.rng.choice(g.others) if g.others and g.chance(0.05) else g.float_type()
    return g.fresh(shape, element if element in g.floats or is_signed_int(element) else g.floats[0])


@dataclass(frozen=True)
class PaddedWindow:
    """A window that fits the padded image in every dim."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def window(g: Grower, spatial: tuple[int, ...], pad_below_kernel: bool) -> PaddedWindow:
    """Draw a window; `pad_below_kernel` keeps each window at least partly inside the image."""
    kernel, strides, dilations = list[int](), list[int](), list[int]()
    low, high = list[int](), list[int]()
    for size in spatial:
        dilation = g.rng.choice((1, 1, 1, 2))
        taps = g.rng.choice((1, 2, 3, 3, 4))
        most = taps * dilation - dilation if pad_below_kernel else taps
        before, after = (g.rng.choice((0, 0, 1, 1, 2)) for _ in range(2))
        before, after = min(before, most), min(after, most)
        while (taps - 1) * dilation + 1 > size + before + after:
            taps -= 1
        if pad_below_kernel:
            before, after = (min(p, (taps - 1) * dilation) for p in (before, after))
        if (taps - 1) * dilation + 1 > size + before + after:
            taps = 1
        kernel.append(taps)
        strides.append(g.rng.choice((1, 1, 1, 2, 2, 3)))
        dilations.append(dilation)
        low.append(before)
        high.append(after)
    return PaddedWindow(kernel, strides, dilations, low + high)


def conv(g: Grower) -> SSAValue:
    """A convolution of spatial rank 1 to 3: groups, dilation, asymmetric pads, perhaps a bias."""
    x = image(g)
    c, *spatial = shape_of(x)[1:]
    groups = g.rng.choice([d for d in (1, 1, 1, 2, 3, c) if c % d == 0])
    per_group = g.rng.choice((1, 1, 2, 3, 5))
    features = groups * per_group
    position = window(g, tuple(spatial), pad_below_kernel=False)
    shape = [features, c // groups, *position.kernel]
    w = _weights(g, shape, x)
    extra = [_bias(g, features, x)] if g.chance(0.4) else []
    return g.b.conv(
        x,
        w,
        *extra,
        strides=position.strides,
        pads=position.pads,
        dilations=position.dilations,
        groups=groups,
    )


def _weights(g: Grower, shape: list[int], x: SSAValue) -> SSAValue:
    """Constant weights mostly; sometimes an input or a transposed weight."""
    element = element_of(x)
    kind = g.rng.random()
    if kind < 0.7:
        return g.weight(shape, element)
    if kind < 0.85:
        flipped = [shape[1], shape[0], *shape[2:]]
        perm = [1, 0, *range(2, len(shape))]
        return g.b.transpose(g.weight(flipped, element), perm=perm)
    return g.input(shape, element)


def _bias(g: Grower, features: int, x: SSAValue) -> SSAValue:
    return g.fresh([features], element_of(x))


def conv_transpose(g: Grower) -> SSAValue:
    """A transposed convolution, its pads small enough to leave an output."""
    x = image(g)
    c, *spatial = shape_of(x)[1:]
    groups = g.rng.choice([d for d in (1, 1, 2, c) if c % d == 0])
    features = g.rng.choice((1, 2, 3)) * groups
    kernel = [g.rng.choice((1, 2, 3, 4)) for _ in spatial]
    strides = [g.rng.choice((1, 2, 2, 3)) for _ in spatial]
    dilations = [g.rng.choice((1, 1, 1, 2)) for _ in spatial]
    extra = [g.rng.randrange(s) for s in strides]
    low, high = list[int](), list[int]()
    for k, size in enumerate(spatial):
        whole = (size - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + extra[k]
        before = min(g.rng.choice((0, 0, 1, 2)), whole - 1)
        low.append(before)
        high.append(min(g.rng.choice((0, 1, 1)), whole - before - 1))
    w = _weights(g, [c, features // groups, *kernel], x)
    bias = [_bias(g, features, x)] if g.chance(0.4) else []
    return g.b.conv_transpose(
        x,
        w,
        *bias,
        strides=strides,
        pads=low + high,
        dilations=dilations,
        groups=groups,
        output_padding=extra,
    )


def pool(g: Grower) -> SSAValue:
    """A max or average pool, with each window at least partly inside the image."""
    x = image(g)
    position = window(g, tuple(shape_of(x)[2:]), pad_below_kernel=True)
    options: dict[str, Any] = {
        "kernel": position.kernel,
        "strides": position.strides,
        "pads": position.pads,
        "dilations": position.dilations,
        "ceil_mode": g.chance(0.3),
    }
    if not of_float(x) or g.chance(0.5):
        return g.b.max_pool(x, **options)
    return g.b.avg_pool(x, **options, count_include_pad=g.chance(0.5))
