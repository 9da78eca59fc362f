"""Functions of jax whose StableHLO covers each op, with their arguments. Needs jax."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from support.stablehlo_arguments import FLOATS, INTS, Case, Draw
from support.stablehlo_models import models


def cases(seed: int = 0) -> Iterator[Case]:
    """Every case, with arguments drawn by the seed."""
    for group in (_elementwise, _typed, _shaping, _contractions, _convolutions, _reductions):
        yield from group(Draw(seed))
    for group in (_windows, _sorts, _indexing, _control, _numpy, models):
        yield from group(Draw(seed + 1))
    yield from _regions(Draw(seed + 2))


def _regions(d: Draw) -> Iterator[Case]:
    """Reductions whose region is no single op, and the gradients of pools."""
    x, y, k = d.array(3, 7), d.array(3, 7), d.array(5, 6, dtype=np.int32, low=-99, high=99)
    yield "reduce-pair", _fold(lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), 0.0, -jnp.inf), [
        x, y,
    ]  # fmt: skip
    yield (
        "reduce-complex-product",
        _fold(lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]), 1.0, 0.0),
        [x, y],
    )
    yield "reduce-logaddexp", lambda x: lax.reduce(x, -jnp.inf, jnp.logaddexp, (0, 1)), [x]
    yield "reduce-ints-and", lambda k: lax.reduce(k, -1, lax.bitwise_and, (1,)), [k]
    yield "reduce-ints-xor", lambda k: lax.reduce(k, 0, lax.bitwise_xor, (0,)), [k]
    yield "reduce-none", lambda x: lax.reduce(x[:, :0], -jnp.inf, jnp.logaddexp, (1,)), [x]
    image = d.array(2, 9, 8, 3)
    for padding in ("VALID", "SAME"):
        for size, step in ((2, 2), (3, 2), (3, 1)):
            yield f"pool-grad-{padding}-{size}-{step}", jax.grad(
                lambda x, p=padding, w=(1, size, size, 1), s=(1, step, step, 1): (
                    lax.reduce_window(x, -jnp.inf, lax.max, w, s, p) ** 3
                ).sum()
            ), [image]  # fmt: skip
    yield "pool-grad-equal", jax.grad(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), "SAME").sum()
    ), [np.zeros(9, np.float32)]  # fmt: skip
    yield "pool-grad-min", jax.grad(
        lambda x: (lax.reduce_window(x, jnp.inf, lax.min, (3,), (2,), "SAME") ** 2).sum()
    ), [d.array(9)]  # fmt: skip


def _fold(function: Callable[..., Any], *starts: float) -> Callable[..., Any]:
    begin = tuple(jnp.float32(v) for v in starts)
    return lambda *xs: lax.reduce(xs, begin, function, (1,))


UNARY = {
    "abs": jnp.abs, "neg": jnp.negative, "exp": jnp.exp, "expm1": jnp.expm1, "log": jnp.log,
    "log1p": jnp.log1p, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "cbrt": jnp.cbrt, "tanh": jnp.tanh,
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "asin": jnp.arcsin, "acos": jnp.arccos,
    "atan": jnp.arctan, "sinh": jnp.sinh, "cosh": jnp.cosh, "asinh": jnp.arcsinh,
    "acosh": jnp.arccosh, "atanh": jnp.arctanh, "erf": lax.erf, "erfc": lax.erfc,
    "floor": jnp.floor, "ceil": jnp.ceil, "round": jnp.round, "round_away": lambda x: lax.round(x),
    "trunc": jnp.trunc, "sign": jnp.sign, "isfinite": jnp.isfinite, "isnan": jnp.isnan,
    "isinf": jnp.isinf, "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus,
    "gelu": jax.nn.gelu, "silu": jax.nn.silu, "elu": jax.nn.elu, "selu": jax.nn.selu,
    "relu6": jax.nn.relu6, "reciprocal": jnp.reciprocal, "square": jnp.square, "log2": jnp.log2,
    "exp2": jnp.exp2, "nan_to_num": jnp.nan_to_num, "cube": lambda x: x**3, "signbit": jnp.signbit,
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 7), "logical_not": jnp.logical_not,
}  # fmt: skip
BINARY = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
    "max": jnp.maximum, "min": jnp.minimum, "pow": jnp.power, "mod": jnp.mod, "fmod": jnp.fmod,
    "atan2": jnp.arctan2, "floor_divide": jnp.floor_divide, "logaddexp": jnp.logaddexp,
    "eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less, "le": jnp.less_equal, "gt": jnp.greater,
    "ge": jnp.greater_equal, "hypot": jnp.hypot, "copysign": jnp.copysign,
}  # fmt: skip


def _elementwise(d: Draw) -> Iterator[Case]:
    for name, function in UNARY.items():
        yield f"{name}", function, [d.array(3, 4)]
        yield f"{name}-special", function, [d.special(12)]
    for name, function in BINARY.items():
        yield f"{name}", function, [d.array(3, 4), d.array(4)]
        yield f"{name}-special", function, [d.special(40), d.special(40)]


def _typed(d: Draw) -> Iterator[Case]:
    for dtype in (*FLOATS[1:], *INTS, np.bool_):
        kind = np.dtype(dtype).name
        a, b = d.array(2, 5, dtype=dtype), d.array(2, 5, dtype=dtype, low=1)
        yield f"typed-{kind}", _arithmetic, [a, b]
        yield f"compare-{kind}", lambda x, y: (x < y, x >= y, x == y, x != y), [a, b]
        yield f"select-{kind}", lambda x, y: jnp.where(x == y, x, y), [a, b]
        yield f"convert-{kind}", _converted, [a]
        yield f"clip-{kind}", lambda x, y: lax.clamp(x, y, x + y), [a, b]
        yield f"sum-{kind}", lambda x: (x.sum(), x.max(0), x.min(1), x.prod()), [a]
    for dtype in INTS:
        kind = np.dtype(dtype).name
        a, b = d.array(7, dtype=dtype, low=-100, high=100), d.array(7, dtype=dtype, low=1, high=9)
        yield f"bits-{kind}", lambda x, y: (x & y, x | y, x ^ y, ~x), [a, b]
        yield f"shifts-{kind}", _shifts, [a, d.array(7, dtype=dtype, low=0, high=40)]
        yield f"rest-{kind}", lambda x, y: (x // y, x % y, lax.rem(x, y), lax.div(x, y)), [a, b]
        yield f"power-{kind}", lambda x: (x**2, x**5), [a]
    wide = np.array([1e10, -1e10, 3.7, -3.7, np.nan, np.inf], np.float32)
    for kind in ("int32", "int8", "uint8", "bool_", "float16", "bfloat16"):
        yield f"narrow-{kind}", lambda x, k=kind: x.astype(getattr(jnp, k)), [wide]
    yield (
        "wrap",
        lambda x: (x.astype(jnp.int8), x.astype(jnp.uint8), x.astype(jnp.uint32)),
        [np.array([300, -1, 128, -200], np.int32)],
    )
    yield "bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), [d.array(5)]


def _arithmetic(x: Any, y: Any) -> Any:
    if x.dtype == jnp.bool_:
        return x & y, x | y, x ^ y, x + y, x * y, jnp.maximum(x, y), jnp.minimum(x, y)
    return x + y, x * y, x - y, jnp.maximum(x, y), jnp.minimum(x, y), -x, jnp.abs(x), jnp.sign(x)


def _converted(x: Any) -> Any:
    kinds = (jnp.float32, jnp.int32, jnp.bool_, jnp.bfloat16, jnp.int8, jnp.uint8)
    return [x.astype(k) for k in kinds]


def _shifts(x: Any, by: Any) -> Any:
    return (
        lax.shift_left(x, by), lax.shift_right_logical(x, by), lax.shift_right_arithmetic(x, by),
    )  # fmt: skip


def _shaping(d: Draw) -> Iterator[Case]:
    x = d.array(2, 3, 4)
    yield "transpose", lambda x: jnp.transpose(x, (2, 0, 1)), [x]
    yield "reshape", lambda x: x.reshape(6, 4), [x]
    yield "broadcast", lambda x: lax.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)), [x]
    yield "broadcast-one", lambda x: jnp.broadcast_to(x, (3, 4, 5)), [d.array(4, 1)]
    yield "slice", lambda x: x[:, 1:3, ::2], [x]
    yield "slice-back", lambda x: x[::-1, ::-2, 3:0:-1], [x]
    yield "flip", lambda x: jnp.flip(x, (0, 2)), [x]
    yield "concat", lambda x: jnp.concatenate([x, x * 2, x[:, :1]], 1), [x]
    yield "stack", lambda x: jnp.stack([x, x + 1], 1), [x]
    yield "pad", lambda x: jnp.pad(x, ((1, 0), (0, 2), (3, 1)), constant_values=2.5), [x]
    yield "pad-negative", lambda x: lax.pad(x, 1.0, ((0, -1, 0), (-1, 2, 0), (1, -2, 0))), [x]
    yield "pad-interior", lambda x: lax.pad(x, 7.0, ((0, 1, 1), (-1, 0, 2), (2, -1, 1))), [x]
    yield (
        "pad-value",
        lambda x, v: lax.pad(x, v, ((1, 0, 1), (0, 0, 0), (1, -1, 0))),
        [
            x,
            np.float32(4),
        ],
    )
    yield "pad-bool", lambda x: lax.pad(x > 0, True, ((1, 0, 0), (0, 1, 1), (0, 0, 0))), [x]
    yield "pad-int", lambda x: lax.pad(x, jnp.int32(-7), ((1, 1, 1),)), [d.array(4, dtype=np.int32)]
    yield "pad-reflect", lambda x: jnp.pad(x, 1, mode="reflect"), [x]
    yield "iota", lambda x: (x + jnp.arange(4), lax.broadcasted_iota(jnp.float32, (2, 3), 0)), [x]
    yield "constants", lambda x: x + np.arange(24, dtype=np.float32).reshape(2, 3, 4), [x]
    yield "constant-bool", lambda x: jnp.where(np.eye(3, 4, dtype=bool), x, 0), [x]
    yield "constant-bf16", lambda x: x.astype(jnp.bfloat16) * np.ones((4,), ml_dtypes.bfloat16), [x]
    yield (
        "empty",
        lambda x: (jnp.concatenate([x, x]), x.sum(1), x * 2, x.max(2)),
        [d.array(2, 0, 4)],
    )
    yield "empty-result", lambda x: x[:, 2:2], [x]
    yield "scalar", lambda x, y: (x + y, x[0, 0, 0] * y), [x, np.float32(2)]
    yield "tile", lambda x: jnp.tile(x, (2, 1, 3)), [x]
    yield "roll", lambda x: jnp.roll(x, 2, 1), [x]
    yield "tril", lambda x: jnp.tril(x), [d.array(2, 4, 4)]
    yield "split", lambda x: jnp.split(x, 2, 2), [x]
    yield "barrier", lambda x: lax.optimization_barrier((x, x + 1)), [x]


def _contractions(d: Draw) -> Iterator[Case]:
    forms = (
        ("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("ij,kj->ik", (3, 4), (5, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
        ("bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)), ("i,j->ij", (3,), (4,)),
        ("ij,ij->", (3, 4), (3, 4)), ("abc,cbd->ad", (2, 3, 4), (4, 3, 5)),
        ("i,i->", (4,), (4,)), ("bi,bi->b", (3, 4), (3, 4)), ("ijk,kl->lij", (2, 3, 4), (4, 5)),
        ("ji,jk->ki", (3, 4), (3, 5)), ("ab,cd->acbd", (2, 3), (2, 2)),
        ("ij,jk->ik", (3, 0), (0, 5)),
        ("ij,jk->ik", (0, 3), (3, 5)), ("bci,bcj->cbij", (2, 3, 4), (2, 3, 5)),
    )  # fmt: skip
    for k, (form, a, b) in enumerate(forms):
        function = lambda x, y, f=form: jnp.einsum(f, x, y)  # noqa: E731
        yield f"einsum-{k}", function, [d.array(*a), d.array(*b)]
    wide = {"preferred_element_type": jnp.int32}
    a, b = d.array(3, 4, dtype=np.int8), d.array(4, 2, dtype=np.int8)
    yield "dot-int8", lambda x, y: jnp.matmul(x, y, **wide), [a, b]
    half = [d.array(3, 4, dtype=ml_dtypes.bfloat16), d.array(4, 2, dtype=ml_dtypes.bfloat16)]
    yield "dot-bf16", jnp.matmul, half
    yield "dot-bf16-f32", lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32), half
    yield "dot-int32", jnp.matmul, [d.array(3, 4, dtype=np.int32), d.array(4, 2, dtype=np.int32)]
    yield "vmap-dot", jax.vmap(jnp.dot, (0, None)), [d.array(3, 4), d.array(4)]


def _convolutions(d: Draw) -> Iterator[Case]:
    def conv(x: Any, w: Any, **options: Any) -> Any:
        given = {"window_strides": (1, 1), "padding": "SAME", **options}
        return lax.conv_general_dilated(x, w, **given)

    image, kernel = d.array(2, 7, 6, 4), d.array(3, 2, 4, 6)
    nhwc = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    settings: list[tuple[str, dict[str, Any]]] = [
        ("plain", {}), ("strides", {"window_strides": (2, 3)}), ("valid", {"padding": "VALID"}),
        ("pads", {"padding": ((1, 0), (2, 3))}), ("crop", {"padding": ((-1, 2), (1, -2))}),
        ("dilated", {"rhs_dilation": (2, 1)}),
        ("spread", {"lhs_dilation": (2, 3), "padding": ((1, 2), (0, 1))}),
        ("all", {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((2, -1), (0, 1)),
                 "window_strides": (1, 2)}),
    ]  # fmt: skip
    for name, options in settings:
        yield f"conv-{name}", lambda x, w, o=options: conv(x, w, **nhwc, **o), [image, kernel]
    orders = (("NCHW", "OIHW", "NCHW"), ("NHWC", "OHWI", "NCHW"), ("HWNC", "HWIO", "CHWN"))
    shapes = {"N": 2, "H": 5, "W": 6, "C": 4, "O": 6, "I": 4}
    for first, second, third in orders:
        x = d.array(*(shapes[c] for c in first))
        w = d.array(*({**shapes, "H": 3, "W": 2}[c] for c in second))
        dims = {"dimension_numbers": (first, second, third)}
        yield f"conv-{first}-{second}-{third}", lambda x, w, o=dims: conv(x, w, **o), [x, w]
    grouped = {**nhwc, "feature_group_count": 2}
    yield "conv-groups", lambda x, w: conv(x, w, **grouped), [image, d.array(3, 3, 2, 6)]
    depth = {**nhwc, "feature_group_count": 4}
    yield "conv-depthwise", lambda x, w: conv(x, w, **depth), [image, d.array(3, 3, 1, 8)]
    batched = {**nhwc, "batch_group_count": 2}
    yield "conv-batch-groups", lambda x, w: conv(x, w, **batched), [
        d.array(4, 5, 5, 3), d.array(3, 3, 3, 6)]  # fmt: skip
    yield (
        "conv-1d",
        lambda x, w: lax.conv_general_dilated(
            x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        ),
        [d.array(2, 9, 3), d.array(3, 3, 4)],
    )
    yield "conv-3d", lambda x, w: lax.conv(x, w, (1, 2, 1), "SAME"), [
        d.array(1, 2, 4, 5, 4), d.array(3, 2, 2, 3, 2)]  # fmt: skip
    yield "conv-transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), [
        d.array(1, 4, 5, 3), d.array(3, 3, 3, 2)]  # fmt: skip
    yield (
        "conv-kernel-grad",
        jax.grad(lambda w, x: (lax.conv(x, w, (1, 1), "SAME") ** 2).sum()),
        [d.array(2, 3, 3, 3), d.array(2, 3, 5, 5)],
    )


def _reductions(d: Draw) -> Iterator[Case]:
    x = d.array(2, 3, 4)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all"):
        function = getattr(jnp, name)
        yield f"{name}-1", lambda x, f=function: f(x, axis=1), [x]
        yield f"{name}-all", lambda x, f=function: f(x, keepdims=True), [x]
        yield f"{name}-two", lambda x, f=function: f(x, axis=(0, 2)), [x]
    for name in ("argmax", "argmin"):
        function = getattr(jnp, name)
        yield f"{name}", lambda x, f=function: (f(x, 1), f(x)), [x]
        yield f"{name}-special", lambda x, f=function: f(x, 1), [d.special(6, 7)]
        yield f"{name}-int", lambda x, f=function: f(x, 0), [d.array(5, 4, dtype=np.int32)]
        yield f"{name}-uint", lambda x, f=function: f(x, 0), [d.array(5, 4, dtype=np.uint8)]
        yield f"{name}-bool", lambda x, f=function: f(x, 0), [d.array(5, 4, dtype=np.bool_)]
        yield (
            f"{name}-bf16",
            lambda x, f=function: f(x, 0),
            [d.array(5, 4, dtype=ml_dtypes.bfloat16)],
        )
    yield "max-special", lambda x: (x.max(1), x.min(1), x.sum(1)), [d.special(6, 3)]
    yield "logsumexp", lambda x: jax.nn.logsumexp(x, axis=-1), [x]
    yield "reduce-start", lambda x: lax.reduce(x, jnp.float32(2), lax.add, (1,)), [x]
    yield "reduce-max-start", lambda x: lax.reduce(x, jnp.float32(0), lax.max, (0,)), [x]
    yield "reduce-xor", lambda x: lax.reduce(x > 0, False, lax.bitwise_xor, (1,)), [x]
    yield "any-empty", lambda x: (jnp.any(x, 0), jnp.all(x, 0)), [d.array(0, 3, dtype=np.bool_)]
    yield "count", lambda x: jnp.count_nonzero(x > 0, axis=1), [x]


def _windows(d: Draw) -> Iterator[Case]:
    x = d.array(2, 7, 6, 3)
    window: dict[str, Any] = {"window_dimensions": (1, 3, 2, 1), "window_strides": (1, 2, 2, 1)}
    starts = {"add": 0.0, "max": -jnp.inf, "min": jnp.inf, "mul": 1.0}
    for name, start in starts.items():
        for padding in ("SAME", "VALID"):
            yield (
                f"window-{name}-{padding}",
                lambda x, n=name, s=start, p=padding: lax.reduce_window(
                    x, s, getattr(lax, n), padding=p, **window
                ),
                [x],
            )
        yield f"window-{name}-dilated", lambda x, n=name, s=start: lax.reduce_window(
            x, s, getattr(lax, n), (1, 3, 2, 1), (1, 1, 2, 1), ((0, 0), (2, 1), (1, 2), (0, 0)),
            (1, 2, 1, 1), (1, 2, 3, 1)), [x]  # fmt: skip
        yield f"window-{name}-int", lambda x, n=name: lax.reduce_window(
            x, np.int32({"add": 0, "mul": 1, "max": -(2**31), "min": 2**31 - 1}[n]),
            getattr(lax, n), (3, 5), (2, 1), "SAME"), [d.array(7, 9, dtype=np.int32)]  # fmt: skip
    yield "window-half", lambda x: lax.reduce_window(
        x, jnp.bfloat16(0), lax.add, (3,), (1,), "SAME"), [
        d.array(9, dtype=ml_dtypes.bfloat16)]  # fmt: skip
    yield "window-or", lambda x: lax.reduce_window(x, False, lax.bitwise_or, (3,), (2,), "SAME"), [
        d.array(9, dtype=np.bool_)]  # fmt: skip
    yield (
        "window-max-zero",
        lambda x: lax.reduce_window(x, jnp.float32(0), lax.max, (3,), (2,), "SAME"),
        [d.array(9)],
    )
    for name in ("cumsum", "cumprod"):
        function = getattr(jnp, name)
        yield name, lambda x, f=function: (f(x, 1), f(x, 0)), [d.array(4, 6)]
        yield f"{name}-int", lambda x, f=function: f(x, 0), [d.array(5, 3, dtype=np.int32)]
    for name in ("cumsum", "cummax", "cummin", "cumprod"):
        function = getattr(lax, name)
        yield f"{name}-reverse", lambda x, f=function: f(x, 1, reverse=True), [d.array(3, 5)]
    yield (
        "avg-pool",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4,
        [x],
    )


def _sorts(d: Draw) -> Iterator[Case]:
    x = d.array(4, 7)
    yield "sort", lambda x: (jnp.sort(x, 1), jnp.sort(x, 0)), [x]
    yield "sort-special", lambda x: jnp.sort(x, 1), [d.special(4, 9)]
    yield "sort-down", lambda x: jnp.sort(x, descending=True), [x]
    yield "argsort", lambda x: (jnp.argsort(x, 1), jnp.argsort(x, 0)), [x]
    yield "argsort-ties", lambda x: jnp.argsort(x, 1), [d.array(3, 9, dtype=np.int32)]
    yield "argsort-down", lambda x: jnp.argsort(x, descending=True), [d.array(3, 9, dtype=np.int32)]
    for dtype in (np.int8, np.uint8, np.bool_, ml_dtypes.bfloat16):
        yield f"sort-{np.dtype(dtype).name}", lambda x: (jnp.sort(x), jnp.argsort(x)), [
            d.array(11, dtype=dtype)]  # fmt: skip
    yield "sort-pairs", lambda x, y: lax.sort((x, y), dimension=0, num_keys=1), [
        d.array(9, dtype=np.int32), d.array(9)]  # fmt: skip
    yield "sort-two-keys", lambda x, y, z: lax.sort((x, y, z), dimension=1, num_keys=2), [
        d.array(2, 9, dtype=np.int32, low=0), d.array(2, 9, dtype=np.int32),
        d.array(2, 9)]  # fmt: skip
    yield "lexsort", lambda x, y: jnp.lexsort((x, y)), [
        d.array(9, dtype=np.int32), d.array(9, dtype=np.int32, low=0, high=2)]  # fmt: skip
    yield "top-k", lambda x: lax.top_k(x, 3), [x]
    yield "top-k-int", lambda x: lax.top_k(x, 2), [d.array(3, 6, dtype=np.int32)]
    yield "median", lambda x: jnp.median(x, axis=1), [x]
    yield "unique-sized", lambda x: jnp.unique(x, size=4, fill_value=0), [
        d.array(9, dtype=np.int32, low=0, high=2)]  # fmt: skip
    yield "searchsorted", lambda x, y: jnp.searchsorted(x, y), [np.arange(8.0, dtype=np.float32), x]
    yield "sort-empty", lambda x: jnp.sort(x, 1), [d.array(3, 0)]


def _indexing(d: Draw) -> Iterator[Case]:
    x, wide = d.array(5, 6, 4), np.array([-1, 0, 7, 2, -9], np.int32)
    one, two = d.array(3, dtype=np.int32, low=-5, high=4), d.array(2, 3, dtype=np.int32, high=4)
    yield "index", lambda x, i: x[i], [x, one]
    yield "index-outside", lambda x, i: x[i], [x, wide]
    yield "index-axis", lambda x, i: x[:, i], [x, two]
    yield "index-scalar", lambda x, i: x[i, :, i + 1], [x, np.int32(1)]
    yield "index-two", lambda x, i: x[i, i + 1], [x, one]
    yield "index-apart", lambda x, i: x[i, :, i], [x, one]
    yield "index-mixed", lambda x, i: x[i[:, None], 2, i[None]], [x, one]
    for mode in ("fill", "clip", "wrap"):
        yield f"take-{mode}", lambda x, i, m=mode: jnp.take(x, i, axis=1, mode=m), [x, wide]
        yield f"take-int-{mode}", lambda x, i, m=mode: jnp.take(x, i, axis=0, mode=m), [
            d.array(4, 3, dtype=np.int32), wide]  # fmt: skip
    yield "take-bool", lambda x, i: jnp.take(x > 0, i, axis=0), [x, wide]
    yield "take-along", lambda x, i: jnp.take_along_axis(x, i, 1), [
        x, d.array(5, 2, 4, dtype=np.int32, low=0)]  # fmt: skip
    yield "embedding", lambda w, i: w[i] * 2, [d.array(9, 4), d.array(2, 5, dtype=np.int32, low=0)]
    yield "one-hot", lambda i: jax.nn.one_hot(i, 5), [d.array(2, 3, dtype=np.int32)]
    yield "vmap-index", jax.vmap(lambda x, i: x[i]), [x, d.array(5, 2, dtype=np.int32, low=0)]
    yield "vmap-slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3))), [
        x, d.array(5, dtype=np.int32, low=-2, high=9)]  # fmt: skip
    yield "mask-index", lambda x: x.at[jnp.array([0, 2])].set(0), [x]
    place = np.int32(3)
    yield "dynamic-slice", lambda x, i: lax.dynamic_slice(x, (i, 1, i - 5), (3, 2, 4)), [x, place]
    yield "dynamic-update", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1, i - 9)), [
        x, d.array(3, 2, 1), place]  # fmt: skip
    yield "dynamic-update-row", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0, 0)), [
        x, d.array(1, 6, 4), np.int32(-2)]  # fmt: skip
    yield from _scatters(d, x)


def _scatters(d: Draw, x: Any) -> Iterator[Case]:
    for name in ("set", "add", "multiply", "min", "max"):
        change: Callable[..., Any] = lambda x, i, u, n=name: getattr(x.at[i], n)(u)  # noqa: E731
        indices = (
            np.array([1, -2, 4], np.int32) if name == "set" else np.array([1, 1, -2], np.int32)
        )
        yield f"scatter-{name}", change, [x, indices, d.array(3, 6, 4)]
        outside = np.array([0, 9, -7], np.int32)
        yield f"scatter-{name}-outside", change, [x, outside, d.array(3, 6, 4)]
        yield f"scatter-{name}-int", change, [
            d.array(6, dtype=np.int32), indices, d.array(3, dtype=np.int32)]  # fmt: skip
        yield f"scatter-{name}-axis", lambda x, i, u, n=name: getattr(x.at[:, i], n)(u), [
            x, np.array([1, 3], np.int32), d.array(5, 2, 4)]  # fmt: skip
    yield "scatter-two", lambda x, i, u: x.at[i, :, i - 1].add(u), [
        x, np.array([1, 2, 3], np.int32), d.array(3, 6)]  # fmt: skip
    yield "scatter-slice", lambda x, u: x.at[1:3, ::2].set(u), [x, d.array(2, 3, 4)]
    yield "scatter-bool", lambda x, i: x.at[i].set(True), [
        d.array(6, dtype=np.bool_), np.array([1, 4], np.int32)]  # fmt: skip
    yield "scatter-bf16", lambda x, i, u: x.at[i].add(u), [
        d.array(6, dtype=ml_dtypes.bfloat16), np.array([1, 4, 1], np.int32),
        d.array(3, dtype=ml_dtypes.bfloat16)]  # fmt: skip
    yield (
        "scatter-window",
        lambda x, i, u: jax.vmap(lambda x, i, u: lax.dynamic_update_slice(x, u, (i,)))(x, i, u),
        [d.array(3, 7), np.array([2, 9, -3], np.int32), d.array(3, 2)],
    )
    yield "segment-sum", lambda x, i: jax.ops.segment_sum(x, i, 4), [
        d.array(6, 2), np.array([0, 3, 1, 0, 3, 3], np.int32)]  # fmt: skip
    yield "bincount", lambda i: jnp.bincount(i, length=5), [d.array(9, dtype=np.int32, low=0)]
    yield "embedding-grad", jax.grad(lambda w, i: (w[i] ** 2).sum()), [
        d.array(5, 3), np.array([1, 1, 4], np.int32)]  # fmt: skip
    yield "empty-index", lambda x, i: x[i], [x, np.zeros((0,), np.int32)]
    yield "empty-scatter", lambda x, i, u: x.at[i].add(u), [
        x, np.zeros((0,), np.int32), np.zeros((0, 6, 4), np.float32)]  # fmt: skip


def _control(d: Draw) -> Iterator[Case]:
    x, w = d.array(10, 4), d.array(4, 4, low=-0.5, high=0.5)

    def cell(h: Any, row: Any) -> Any:
        new = jnp.tanh(h @ w + row)
        return new, new * 2

    yield "scan", lambda x: lax.scan(cell, jnp.zeros(4), x), [x]
    yield "scan-reverse", lambda x: lax.scan(cell, jnp.zeros(4), x, reverse=True), [x]
    yield "scan-short", lambda x: lax.scan(cell, jnp.zeros(4), x[:3]), [x]
    yield (
        "scan-two",
        lambda x: lax.scan(
            lambda c, a: ((c[0] + a[0], c[1] * a[1].sum()), a[0] * c[1]),
            (jnp.zeros(4), 1.0),
            (x, x),
        ),
        [x],
    )
    yield (
        "scan-count",
        lambda x: lax.scan(lambda c, _: (c * 1.5, c.sum()), x[0], None, length=9),
        [x],
    )
    yield (
        "scan-nested",
        lambda x: lax.scan(
            lambda c, a: lax.scan(lambda e, b: (e + b, e), c, jnp.stack([a] * 9)), x[0], x
        ),
        [x],
    )
    yield "scan-unroll", lambda x: lax.scan(cell, jnp.zeros(4), x, unroll=3), [x]
    yield (
        "scan-index",
        lambda x: lax.scan(lambda c, i: (c + x[i], i * 2), jnp.zeros(4), jnp.arange(10)),
        [x],
    )
    yield from _loops(x, w)
    yield from _branches(x, w)


def _loops(x: Any, w: Any) -> Iterator[Case]:
    yield "associative-scan", lambda x: lax.associative_scan(jnp.add, x), [x]
    yield "map", lambda x: lax.map(lambda r: r.sum() + r, x), [x]
    yield "fori", lambda x: lax.fori_loop(0, 12, lambda i, c: c + i * x[0], x[1]), [x]
    yield "fori-start", lambda x: lax.fori_loop(3, 20, lambda i, c: c * 0.9 + i, x), [x]
    yield "fori-short", lambda x: lax.fori_loop(0, 3, lambda i, c: c @ w + i, x), [x]
    yield "fori-data", lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x), [
        x, np.int32(5)]  # fmt: skip
    yield (
        "fori-update",
        lambda x: lax.fori_loop(0, 10, lambda i, c: c.at[i].set(c[i - 1] + x[i]), x),
        [x],
    )
    yield (
        "while",
        lambda x: lax.while_loop(
            lambda c: c[1].sum() < 50,
            lambda c: (c[0] + 1, c[1] + jnp.abs(x)),
            (0, jnp.zeros((10, 4))),
        ),
        [x],
    )
    yield "while-never", lambda x: lax.while_loop(lambda c: c.sum() > 1e9, lambda c: c * 2, x), [x]


def _branches(x: Any, w: Any) -> Iterator[Case]:
    for value in (-1.0, 1.0):
        yield f"cond-{value}", lambda x, p: lax.cond(p > 0, lambda a: a + 1, lambda a: a @ w, x), [
            x, np.float32(value)]  # fmt: skip
    for value in (-1, 0, 1, 2, 9):
        yield (
            f"switch-{value}",
            lambda x, i: lax.switch(i, [lambda a: a @ w, lambda a: a * 2, lambda a: a - 1], x),
            [x, np.int32(value)],
        )
    yield "cond-cheap", lambda x, p: lax.cond(p, lambda a: a + 1, lambda a: a * 3, x), [
        x, np.bool_(False)]  # fmt: skip
    yield "cond-in-scan", lambda x: lax.scan(
        lambda c, a: (lax.cond(a.sum() > 0, lambda v: v @ w, lambda v: v + a, c), c.sum()),
        jnp.ones(4), x), [x]  # fmt: skip
    yield (
        "while-in-cond",
        lambda x, p: lax.cond(
            p,
            lambda a: lax.while_loop(lambda v: v.sum() < 30, lambda v: v + 1, a),
            lambda a: -a,
            x[0],
        ),
        [x, np.bool_(True)],
    )
    yield "vmap-cond", jax.vmap(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a)), [x]
    yield (
        "vmap-while",
        jax.vmap(lambda a: lax.while_loop(lambda v: v.sum() < 20, lambda v: v + 1.5, a)),
        [x],
    )
    yield "checkpoint", jax.checkpoint(lambda x: jnp.sin(x) @ w), [x]
    yield "custom-jvp", lambda x: jax.nn.relu(x) + jax.nn.logsumexp(x), [x]


def _numpy(d: Draw) -> Iterator[Case]:
    x = d.array(4, 5)
    yield "softmax", lambda x: jax.nn.softmax(x, axis=0), [x]
    yield "log-softmax", jax.nn.log_softmax, [x]
    yield "softmax-mask", lambda x: jax.nn.softmax(x, where=x > 0, axis=1), [x]
    yield (
        "layer-norm",
        lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
        [x],
    )
    yield "standardize", jax.nn.standardize, [x]
    yield "interp", lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), [x]
    yield "outer", jnp.outer, [x[0], x[1]]
    yield "kron", jnp.kron, [x[:2, :2], x[:2]]
    yield "diag", lambda x: jnp.diag(x[0]), [x]
    yield "diagonal", jnp.diagonal, [x]
    yield "trace", jnp.trace, [x]
    yield "norm", jnp.linalg.norm, [x]
    yield "cross", jnp.cross, [x[:, :3], x[:, 1:4]]
    yield "convolve", jnp.convolve, [x[0], x[1, :3]]
    yield "meshgrid", lambda x: jnp.meshgrid(x[0], x[:, 0]), [x]
    yield "where-three", lambda x: jnp.select([x > 1, x < -1], [x, -x], 0), [x]
    yield "resize", lambda x: jax.image.resize(x, (8, 3), "bilinear"), [x]
    yield "digitize", lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), [x]
    yield "polyval", lambda x: jnp.polyval(x[0], x), [x]
    yield "isclose", lambda x: jnp.isclose(x, x + 1e-9), [x]
    yield "uniform", lambda x: x + jax.random.uniform(jax.random.key(1), (4, 5)), [x]
    yield "grad", jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), [x]
    yield "jacobian", jax.jacobian(lambda x: jnp.sin(x) * x.sum()), [x[0]]
    yield "ring", lambda x: jnp.nanmean(jnp.where(x > 0, x, jnp.nan), axis=1), [x]
