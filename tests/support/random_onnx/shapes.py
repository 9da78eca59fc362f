"""Reductions, norms, and everything that moves data."""

from __future__ import annotations

import numpy as np

from support.random_onnx.case import Value
from support.random_onnx.contractions import is_finite
from support.random_onnx.elementwise import floating, numeric
from support.random_onnx.grower import BOOL, Grower

REDUCE = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum",
)  # fmt: skip


def ranked(least: int):
    return lambda v: v.rank >= least


def _axis(g: Grower, v: Value) -> int:
    return g.rng.randint(-v.rank, v.rank - 1)


def reduce(g: Grower) -> None:
    """Reductions of finite numbers: onnxruntime's maxima drop NaN, numpy's keep it."""
    x = g.pick(lambda v: numeric(v) and is_finite(v))
    if x is None:
        return
    axes = sorted(g.rng.sample(range(x.rank), g.rng.randint(0, x.rank)))
    axes = [a - x.rank if g.chance(0.3) else a for a in axes]
    kind, keep = g.rng.choice(REDUCE), g.rng.choice((0, 1))
    if kind.startswith("ReduceLog") and not x.is_float:
        return  # a logarithm cut to an integer hangs on rounding
    if kind == "ReduceMean" and 0 in x.shape:
        return  # of nothing it is not specified
    by_input = g.opset >= 18 or (g.opset >= 13 and kind == "ReduceSum")
    if by_input:
        noop = g.rng.choice((None, 1)) if not axes else None
        g.add(
            kind,
            [x, g.ints(axes) if axes else None],
            keepdims=keep,
            noop_with_empty_axes=noop,
        )
    else:
        g.add(kind, [x], axes=axes or None, keepdims=keep)


def arg(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and numeric(v) and is_finite(v))
    if x is not None:
        g.add(
            g.rng.choice(("ArgMax", "ArgMin")),
            [x],
            axis=_axis(g, x),
            keepdims=g.rng.choice((0, 1)),
            select_last_index=g.rng.choice((0, 0, 1)),
        )


def softmax(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and v.is_float and is_finite(v))
    if x is not None:
        g.add(g.rng.choice(("Softmax", "Softmax", "LogSoftmax", "Hardmax")), [x], axis=_axis(g, x))


def _varied(v: Value) -> bool:
    """Whether no row is nearly constant: there a norm divides rounding errors by little."""
    if v.rank < 2 or not v.is_float or 0 in v.shape or not is_finite(v):
        return False
    rows = v.array.astype(np.float64).reshape(v.shape[0], v.shape[1], -1)
    least = min(rows[0].std(axis=-1).min(), v.array.astype(np.float64).std(axis=-1).min())
    return bool(least > 0.05 * np.abs(rows).max())


def norm(g: Grower) -> None:
    x = g.pick(_varied)
    if x is None:
        return
    eps = g.rng.choice((1e-5, 1e-3, 0.1))
    channels = x.shape[1]
    per_channel = [g.weight(g.data((channels,), x.dtype)) for _ in range(2)]
    match g.rng.choice(("layer", "layer", "batch", "instance", "group", "lrn", "lp", "mvn", "rms")):
        case "layer":
            axis = g.rng.randint(1, x.rank - 1)
            scale, bias = (g.weight(g.data(x.shape[axis:], x.dtype)) for _ in range(2))
            g.add(
                "LayerNormalization",
                [x, scale, bias if g.chance(0.7) else None],
                axis=axis - (x.rank if g.chance(0.5) else 0),
                epsilon=eps,
            )
        case "rms":
            axis = g.rng.randint(1, x.rank - 1)
            g.add(
                "RMSNormalization",
                [x, g.weight(g.data(x.shape[axis:], x.dtype))],
                axis=axis,
                epsilon=eps,
            )
        case "batch":
            mean = g.weight(g.data((channels,), x.dtype))
            variance = g.weight(np.abs(g.data((channels,), x.dtype)) + np.asarray(0.5, x.dtype))
            g.add("BatchNormalization", [x, *per_channel, mean, variance], epsilon=eps)
        case "instance":
            if x.rank >= 3:
                g.add("InstanceNormalization", [x, *per_channel], epsilon=eps)
        case "group":
            if x.dtype == np.float64 and g.opset >= 21:
                return  # its first stage is in float32: `stash_type`
            groups = g.rng.choice([k for k in (1, 2, 3, 4, channels) if channels % k == 0])
            count = groups if g.opset < 21 else channels
            pair = [g.weight(g.data((count,), x.dtype)) for _ in range(2)]
            g.add("GroupNormalization", [x, *pair], num_groups=groups, epsilon=eps)
        case "lrn":
            g.add("LRN", [x], size=g.rng.choice((1, 3, 5)), alpha=0.1, beta=0.7)
        case "lp":
            g.add("LpNormalization", [x], axis=_axis(g, x), p=g.rng.choice((1, 2)))
        case _:
            axes = tuple(sorted(g.rng.sample(range(x.rank), 2)))
            wide = x.array.astype(np.float64)
            # The variance is the mean of squares less the square of the mean: it cancels.
            spread = wide.std(axis=axes)
            if np.all(spread > 0.3 * np.abs(wide.mean(axis=axes))) and np.all(spread > 1e-3):
                g.add("MeanVarianceNormalization", [x], axes=list(axes))


def reshape(g: Grower) -> None:
    x = g.pick()
    if x is None:
        return
    sizes = list(x.shape)
    g.rng.shuffle(sizes)
    if len(sizes) > 1 and g.chance(0.6):
        k = g.rng.randrange(len(sizes) - 1)
        sizes[k : k + 2] = [sizes[k] * sizes[k + 1]]
    if g.chance(0.3):
        sizes.insert(g.rng.randint(0, len(sizes)), 1)
    if sizes and 0 not in sizes and g.chance(0.4):
        sizes[g.rng.randrange(len(sizes))] = -1
    if g.chance(0.15):
        g.add("Flatten", [x], axis=g.rng.randint(0, x.rank))
    else:
        g.add("Reshape", [x, g.ints(sizes)])


def shape_arithmetic(g: Grower) -> None:
    """Reshape to a shape that the model computes."""
    x = g.pick(ranked(2))
    if x is None:
        return
    shape = g.add("Shape", [x], keep=g.chance(0.3))
    first = shape and g.add("Gather", [shape[0], g.ints([0])], axis=0, keep=False)
    target = first and g.add("Concat", [first[0], g.ints([-1])], axis=0, keep=False)
    if target:
        g.add("Reshape", [x, target[0]])


def transpose(g: Grower) -> None:
    x = g.pick()
    if x is not None:
        g.add("Transpose", [x], perm=g.rng.sample(range(x.rank), x.rank))


def squeeze(g: Grower) -> None:
    x = g.pick()
    if x is None:
        return
    ones = [k for k, n in enumerate(x.shape) if n == 1]
    if ones and g.chance(0.5):
        g.add("Squeeze", [x, g.ints(g.rng.sample(ones, g.rng.randint(1, len(ones))))])
    elif x.rank < 5:
        g.add("Unsqueeze", [x, g.ints([g.rng.randint(-x.rank - 1, x.rank)])])


def expand(g: Grower) -> None:
    x = g.pick()
    if x is None:
        return
    if g.chance(0.4):
        g.add("Tile", [x, g.ints([g.rng.choice((1, 1, 2, 3)) for _ in x.shape])])
        return
    sizes = [g.extent() if n == 1 and g.chance(0.7) else g.rng.choice((n, 1)) for n in x.shape]
    if g.chance(0.3):
        sizes.insert(0, g.extent())
    g.add("Expand", [x, g.ints(sizes)])


def concat(g: Grower) -> None:
    x = g.pick(ranked(1))
    if x is None:
        return
    axis = _axis(g, x)
    at = axis % x.rank
    parts = [x]
    for _ in range(g.rng.randint(1, 3)):
        other = g.pick(
            lambda v: (
                v.dtype == x.dtype
                and v.rank == x.rank
                and all(
                    k == at or n == m for k, (n, m) in enumerate(zip(v.shape, x.shape, strict=True))
                )
            )
        )
        if other is None or g.chance(0.3):
            sizes = list(x.shape)
            sizes[at] = g.rng.choice((1, 2, 3))
            other = g.source(sizes, x.dtype)
        parts.append(other)
    g.rng.shuffle(parts)
    g.add("Concat", parts, axis=axis)


def split(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and max(v.shape) > 1)
    if x is None:
        return
    axis = _axis(g, x)
    n = x.shape[axis]
    if n < 2:
        return
    if g.opset >= 18 and g.chance(0.4):
        count = g.rng.randint(2, min(n, 4))
        g.add("Split", [x], count, axis=axis, num_outputs=count)
        return
    cuts = sorted(g.rng.sample(range(1, n), g.rng.randint(1, min(2, n - 1))))
    sizes = np.diff([0, *cuts, n]).tolist()
    g.add("Split", [x, g.ints(sizes)], len(sizes), axis=axis)


def slices(g: Grower) -> None:
    x = g.pick(ranked(1))
    if x is None:
        return
    axes = g.rng.sample(range(x.rank), g.rng.randint(1, x.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        n = x.shape[axis]
        step = g.rng.choice((1, 1, 2, -1, -2, 3))
        a, b = (
            g.rng.randint(-n - 1, n),
            g.rng.choice((g.rng.randint(-n, n + 2), 2**31 - 1 if step > 0 else -(2**31))),
        )
        starts.append(a), ends.append(b), steps.append(step)
    g.add("Slice", [x, g.ints(starts), g.ints(ends), g.ints(axes), g.ints(steps)])


def pad(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1)
    if x is None:
        return
    mode = g.rng.choice(("constant", "constant", "reflect", "edge", "wrap"))
    low = -1 if mode == "constant" else 0
    pads = [g.rng.choice((0, 0, 1, 2, low)) for _ in range(2 * x.rank)]
    value = None
    if mode == "constant" and g.chance(0.5):
        value = g.weight(g.data((), x.dtype))
    g.add("Pad", [x, g.ints(pads), value], mode=mode)


def _indices(g: Grower, n: int, shape) -> Value:
    """In range, negative ones too."""
    array = g.numpy.integers(-n, n, shape).astype(g.rng.choice((np.int64, np.int32)))
    return g.input(array) if g.chance(0.3) else g.weight(array)


def gather(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and 0 not in v.shape)
    if x is None:
        return
    axis = _axis(g, x)
    n = x.shape[axis]
    match g.rng.choice(("Gather", "Gather", "GatherElements", "GatherND")):
        case "Gather":
            g.add("Gather", [x, _indices(g, n, g.shape(g.rng.choice((0, 1, 1, 2))))], axis=axis)
        case "GatherElements":
            sizes = [g.rng.randint(1, m) for m in x.shape]
            sizes[axis] = g.extent()
            g.add("GatherElements", [x, _indices(g, n, sizes)], axis=axis)
        case _:
            depth = g.rng.randint(1, x.rank)
            least = min(x.shape[:depth])
            index = g.numpy.integers(0, least, (*g.shape(1), depth))
            g.add("GatherND", [x, g.weight(index)])


def scatter(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and 0 not in v.shape and numeric(v))
    if x is None:
        return
    kinds = (
        ("none",)
        if g.opset < 16
        else ("none", "add", "mul")
        if g.opset < 18
        else ("none", "add", "mul", "max", "min")
    )
    reduction = g.rng.choice(kinds)
    if reduction in ("max", "min") and not is_finite(x):
        return  # onnxruntime's drop NaN
    if g.chance(0.5):
        axis = _axis(g, x)
        n = x.shape[axis]
        sizes = [g.rng.randint(1, m) for m in x.shape]
        order = np.argsort(g.numpy.random(x.shape), axis=axis)  # no index twice where order counts
        index = order[tuple(slice(0, m) for m in sizes)]
        if reduction != "none":
            index = g.numpy.integers(-n, n, sizes)
        g.add(
            "ScatterElements",
            [x, g.weight(index.astype(np.int64)), g.source(sizes, x.dtype)],
            axis=axis,
            reduction=None if reduction == "none" else reduction,
        )
        return
    depth = g.rng.randint(1, x.rank)
    rows = int(np.prod(x.shape[:depth]))
    count = g.rng.randint(1, min(rows, 5))
    flat = (
        g.numpy.permutation(rows)[:count]
        if reduction == "none"
        else g.numpy.integers(0, rows, count)
    )
    index = np.stack(np.unravel_index(flat, x.shape[:depth]), axis=-1).astype(np.int64)
    g.add(
        "ScatterND",
        [x, g.weight(index), g.source((count, *x.shape[depth:]), x.dtype)],
        reduction=None if reduction == "none" else reduction,
    )


def top(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and numeric(v) and is_finite(v))
    if x is None:
        return
    axis = _axis(g, x)
    if x.shape[axis] == 0:
        return
    k = g.rng.randint(1, x.shape[axis])
    g.add("TopK", [x, g.ints([k])], 2, axis=axis, largest=g.rng.choice((0, 1)), sorted=1)


def scan_along(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and numeric(v))
    if x is not None:
        axis = g.weight(np.asarray(_axis(g, x), np.int64))
        g.add("CumSum", [x, axis], exclusive=g.rng.choice((0, 1)), reverse=g.rng.choice((0, 1)))


def one_hot(g: Grower) -> None:
    x = g.pick(lambda v: v.dtype in (np.int64, np.int32) and v.rank <= 3)
    if x is None:
        return
    depth = g.rng.randint(1, 7)
    ends = g.weight(g.data((2,), np.dtype(g.rng.choice(("float32", "int64")))))
    g.add("OneHot", [x, g.weight(np.asarray(depth, np.int64)), ends], axis=g.rng.choice((-1, 0)))


def triangle(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 2 and v.dtype != BOOL)
    if x is not None:
        k = g.weight(np.asarray(g.rng.randint(-2, 2), np.int64)) if g.chance(0.6) else None
        g.add("Trilu", [x, k], upper=g.rng.choice((0, 1)))


def blocks(g: Grower) -> None:
    x = g.pick(lambda v: v.rank == 4 and v.is_float)
    if x is None:
        return
    if x.shape[1] % 4 == 0:
        g.add("DepthToSpace", [x], blocksize=2, mode=g.rng.choice(("DCR", "CRD")))
    elif x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0:
        g.add("SpaceToDepth", [x], blocksize=2)


def resize(g: Grower) -> None:
    """Of finite numbers: which neighbours of weight 0 are read is not specified."""
    x = g.pick(lambda v: v.rank in (3, 4) and v.dtype == np.float32 and is_finite(v))
    if x is None:
        return
    mode = g.rng.choice(("nearest", "linear", "cubic"))
    if mode == "cubic" and x.rank != 4:
        return
    sizes = [*x.shape[:2], *(g.rng.choice((n, 2 * n, n + 1, max(1, n // 2))) for n in x.shape[2:])]
    transform = g.rng.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    g.add(
        "Resize",
        [x, None, None, g.ints(sizes)],
        mode=mode,
        coordinate_transformation_mode=transform,
        nearest_mode=g.rng.choice(("round_prefer_floor", "floor", "ceil", "round_prefer_ceil"))
        if mode == "nearest"
        else None,
    )


def reverse_sequence(g: Grower) -> None:
    x = g.pick(ranked(2))
    if x is not None and 0 not in x.shape:
        lengths = g.weight(g.numpy.integers(1, x.shape[0] + 1, x.shape[1]).astype(np.int64))
        g.add("ReverseSequence", [x, lengths], batch_axis=1, time_axis=0)


def grid_sample(g: Grower) -> None:
    x = g.pick(lambda v: v.rank == 4 and v.dtype == np.float32 and 0 not in v.shape)
    if x is None or not is_finite(x):
        return
    grid = g.source((x.shape[0], g.extent(), g.extent(), 2), x.dtype)
    modes = ("bilinear", "nearest", "bicubic") if g.opset < 20 else ("linear", "nearest", "cubic")
    g.add(
        "GridSample",
        [x, grid],
        mode=g.rng.choice(modes),
        padding_mode=g.rng.choice(("zeros", "border", "reflection")),
        align_corners=g.rng.choice((0, 1)),
    )


def compress(g: Grower) -> None:
    x = g.pick(ranked(1))
    if x is not None:
        axis = _axis(g, x)
        g.add("Compress", [x, g.weight(g.data((x.shape[axis],), BOOL))], axis=axis)


def misc(g: Grower) -> None:
    match g.rng.choice(("range", "eye", "fill", "nonzero")):
        case "range":
            start, step = g.rng.randint(-3, 3), g.rng.choice((1, 2, -1))
            bounds = [g.weight(np.asarray(n, np.int64)) for n in (start, start + step * 5, step)]
            g.add("Range", bounds)
        case "eye":
            x = g.pick(lambda v: v.rank == 2 and v.dtype == np.float32)
            if x is not None:
                g.add("EyeLike", [x], k=g.rng.randint(-1, 1))
        case "fill":
            from onnx import numpy_helper

            number = numpy_helper.from_array(np.asarray([g.rng.choice((0.0, 1.5))], np.float32))
            g.add("ConstantOfShape", [g.ints(g.shape())], value=number)
        case _:
            w = g.weight(g.data(g.shape(2), np.dtype(np.float32)).round().astype(np.float32))
            g.add("NonZero", [w])


FAMILIES = {
    reduce: 7, arg: 2, softmax: 4, norm: 6, reshape: 5, shape_arithmetic: 2, transpose: 5,
    squeeze: 3, expand: 3, concat: 4, split: 3, slices: 4, pad: 3, gather: 4, scatter: 3, top: 2,
    scan_along: 1, one_hot: 1, triangle: 1, blocks: 1, resize: 2, reverse_sequence: 1,
    grid_sample: 1, compress: 1, misc: 1,
}  # fmt: skip
__all__ = ["FAMILIES", "floating"]
