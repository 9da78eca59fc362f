"""Products, convolutions, pools, recurrent layers."""

from __future__ import annotations

import string

import numpy as np

from support.random_onnx.case import Value
from support.random_onnx.grower import FLOATS, Grower


def is_finite(v: Value) -> bool:
    """Whether kernels that skip, pad or reorder are of one opinion about the result."""
    return not v.is_float or bool(np.isfinite(v.array.astype(np.float64)).all())


def matmul(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 1 and (v.is_float or v.dtype in (np.int32, np.int64)))
    if x is None:
        return
    k = x.shape[-1]
    other = g.pick(lambda v: v.dtype == x.dtype and v.rank >= 2 and v.shape[-2] == k)
    if other is None or g.chance(0.6):
        batch = g.broadcastable(x.shape[:-2]) if x.rank > 2 and g.chance(0.5) else ()
        shape = (k,) if g.chance(0.1) else (*batch, k, g.extent())
        other = g.source(shape, x.dtype)
    g.add("MatMul", [x, other])


def gemm(g: Grower) -> None:
    x = g.pick(lambda v: v.rank == 2 and v.is_float)
    if x is None:
        return
    ta, tb = int(g.chance(0.4)), int(g.chance(0.4))
    m, k = x.shape[::-1] if ta else x.shape
    n = g.extent()
    b = g.source((n, k) if tb else (k, n), x.dtype)
    c = g.source(g.rng.choice(((n,), (m, n), (1, n), (m, 1), (), (1,))), x.dtype)
    g.add(
        "Gemm",
        [x, b, c if g.chance(0.7) else None],
        transA=ta,
        transB=tb,
        alpha=g.rng.choice((None, 0.5)),
        beta=g.rng.choice((None, 2.0)),
    )


def einsum(g: Grower) -> None:
    x = g.pick(lambda v: 1 <= v.rank <= 4 and v.is_float)
    if x is None:
        return
    left = list(string.ascii_lowercase[: x.rank])
    sizes = dict(zip(left, x.shape, strict=True))
    right = g.rng.sample(left, g.rng.randint(1, x.rank))
    if g.chance(0.7):
        sizes["z"] = g.extent()
        right.append("z")
    g.rng.shuffle(right)
    out = [c for c in sizes if g.chance(0.65)]
    g.rng.shuffle(out)
    y = g.source([sizes[c] for c in right], x.dtype)
    g.add("Einsum", [x, y], equation=f"{''.join(left)},{''.join(right)}->{''.join(out)}")


def _windows(g: Grower, spatial: int, sizes: tuple[int, ...]) -> dict[str, object]:
    """Kernel, strides, dilations and pads that fit."""
    kernel = [g.rng.choice((1, 2, 3, 3, 5)) for _ in range(spatial)]
    dilations = [g.rng.choice((1, 1, 1, 2)) for _ in range(spatial)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    strides = [g.rng.choice((1, 1, 2, 3)) for _ in range(spatial)]
    found: dict[str, object] = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
    }
    if g.chance(0.2):
        # onnxruntime's pools take no account of dilations in SAME_*; the specification does.
        found["auto_pad"] = g.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        found["dilations"] = [1] * spatial
        # Pads below 0 are none in its convolutions, and cut values off in its pools.
        found["strides"] = [min(s, k) for s, k in zip(strides, kernel, strict=True)]
        return found
    limit = [max(r - 1, 0) for r in reach]
    pads = [g.rng.randint(0, min(n, 2)) for n in limit * 2]
    need = [max(r - n, 0) for r, n in zip(reach, sizes, strict=True)]
    found["pads"] = [
        p + (n if k < spatial else 0) for k, (p, n) in enumerate(zip(pads, need * 2, strict=True))
    ]
    return found


def _image(v: Value) -> bool:
    return 3 <= v.rank <= 5 and v.is_float and 0 not in v.shape and is_finite(v)


def image(g: Grower) -> Value | None:
    """A tensor with spatial dims: an existing one, or a new input."""
    found = g.pick(_image)
    if found is not None and g.chance(0.8):
        return found
    shape = (
        g.rng.choice((1, 1, 2)),
        g.rng.choice((1, 2, 3, 4, 6, 8)),
        *g.shape(g.rng.choice((1, 2, 2, 2)))[:3],
    )
    return g.input(g.data(shape, FLOATS[0])) if np.prod(shape) < 3000 else None


def conv(g: Grower) -> None:
    x = image(g)
    if x is None:
        return
    spatial, channels = x.rank - 2, x.shape[1]
    group = g.rng.choice([k for k in (1, 1, 1, 2, 3, 4, channels) if channels % k == 0])
    features = group * g.rng.choice((1, 1, 2, 3))
    attributes = _windows(g, spatial, x.shape[2:])
    w = g.weight(g.data((features, channels // group, *attributes["kernel_shape"]), x.dtype))  # type: ignore[misc]
    b = g.weight(g.data((features,), x.dtype)) if g.chance(0.6) else None
    g.add("Conv", [x, w, b], group=group, **attributes)


def conv_transpose(g: Grower) -> None:
    x = image(g)
    if x is None:
        return
    spatial, channels = x.rank - 2, x.shape[1]
    group = g.rng.choice([k for k in (1, 1, 2, channels) if channels % k == 0])
    kernel = [g.rng.choice((1, 2, 3, 4)) for _ in range(spatial)]
    strides = [g.rng.choice((1, 2, 3)) for _ in range(spatial)]
    w = g.weight(g.data((channels, g.rng.choice((1, 2, 3)), *kernel), x.dtype))
    b = g.weight(g.data((w.shape[1] * group,), x.dtype)) if g.chance(0.5) else None
    g.add(
        "ConvTranspose",
        [x, w, b],
        group=group,
        kernel_shape=kernel,
        strides=strides,
        pads=[g.rng.randint(0, max(k - 1, 0)) // 2 for k in kernel * 2] if g.chance(0.5) else None,
        output_padding=[g.rng.randint(0, s - 1) for s in strides] if g.chance(0.3) else None,
        dilations=[g.rng.choice((1, 2)) for _ in kernel] if g.chance(0.3) else None,
    )


def pool(g: Grower) -> None:
    x = image(g)
    if x is None:
        return
    kind = g.rng.choice(("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"))
    attributes = _windows(g, x.rank - 2, x.shape[2:])
    if kind != "MaxPool" and (g.opset < 19 or g.chance(0.5)):
        del attributes["dilations"]
    if g.chance(0.3) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if kind == "AveragePool":
        attributes["count_include_pad"] = g.rng.choice((0, 1))
    if kind == "LpPool":
        attributes["p"] = g.rng.choice((1, 2, 3))
    outputs = 1
    if kind == "MaxPool" and g.chance(0.3):
        outputs = 2
        attributes["storage_order"] = g.rng.choice((0, 1))
    g.add(kind, [x], outputs, **attributes)


def global_pool(g: Grower) -> None:
    x = image(g)
    if x is not None:
        g.add(g.rng.choice(("GlobalAveragePool", "GlobalMaxPool")), [x])


def recurrent(g: Grower) -> None:
    """LSTM, GRU or RNN with what they take: lengths, directions, clip, peepholes, activations.

    onnxruntime aborts the process on a batch of 0.
    """
    x = g.pick(
        lambda v: (
            v.rank == 3
            and v.dtype == np.float32
            and v.shape[0] <= 9
            and v.array.size
            and is_finite(v)
        )
    )
    if x is None or g.special:
        return  # unbounded activations: what is infinite first depends on rounding
    kind = g.rng.choice(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    steps, batch, width = x.shape
    hidden = g.rng.choice((1, 2, 3, 5))
    direction = g.rng.choice(("forward", "forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    half = 0.5
    w, r = (
        g.weight((g.data((ways, gates * hidden, n), x.dtype) * half).astype(x.dtype))
        for n in (width, hidden)
    )
    b = g.weight(g.data((ways, 2 * gates * hidden), x.dtype)) if g.chance(0.6) else None
    lengths = None
    if g.chance(0.35):
        lengths = g.weight(g.numpy.integers(1, steps + 1, batch).astype(np.int32))
    states = [
        g.source((ways, batch, hidden), x.dtype) if g.chance(0.4) else None
        for _ in range(2 if kind == "LSTM" else 1)
    ]
    inputs = [x, w, r, b, lengths, *states]
    if kind == "LSTM" and g.chance(0.3):
        inputs.append(g.weight(g.data((ways, 3 * hidden), x.dtype)))
    g.add(
        kind,
        inputs,
        3 if kind == "LSTM" else 2,
        hidden_size=hidden,
        direction=direction,
        clip=g.rng.choice((None, None, 0.7)),
        linear_before_reset=g.rng.choice((0, 1)) if kind == "GRU" else None,
        **_activations(g, kind, ways),
    )


def _activations(g: Grower, kind: str, ways: int) -> dict[str, object]:
    if not g.chance(0.3):
        return {}
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}[kind]
    return {
        "activations": [
            g.rng.choice(("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "HardSigmoid"))
            for _ in range(count * ways)
        ]
    }


def quantise(g: Grower) -> None:
    """QuantizeLinear, and often back."""
    x = g.pick(lambda v: v.dtype == np.float32 and is_finite(v))
    if x is None:
        return
    dtype = np.dtype(g.rng.choice(("int8", "uint8")))
    axis, shape = None, ()
    if x.rank >= 2 and g.chance(0.4):
        axis = g.rng.randint(0, x.rank - 1)
        shape = (x.shape[axis],)
    scale = g.weight(np.asarray(g.numpy.uniform(0.011, 0.3, shape), np.float32))
    zero = g.weight(g.numpy.integers(0, 5, shape).astype(dtype))
    y = g.add("QuantizeLinear", [x, scale, zero], axis=axis)
    if y and g.chance(0.8):
        g.add("DequantizeLinear", [y[0], scale, zero], axis=axis)


def integer_product(g: Grower) -> None:
    x = g.pick(lambda v: v.rank >= 2 and v.dtype in (np.int8, np.uint8))
    if x is None:
        return
    y = g.weight(g.data((x.shape[-1], g.extent()), np.dtype(g.rng.choice(("int8", "uint8")))))
    zeros = [
        g.weight(np.asarray(g.rng.randint(0, 3), v.dtype)) if g.chance(0.5) else None
        for v in (x, y)
    ]
    g.add("MatMulInteger", [x, y, *zeros])


FAMILIES = {
    matmul: 8, gemm: 4, einsum: 2, conv: 9, conv_transpose: 3, pool: 6, global_pool: 1,
    recurrent: 6, quantise: 2, integer_product: 1,
}  # fmt: skip
