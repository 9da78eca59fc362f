"""The makers of random calls for each ATen op of the table. Needs torch."""

# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from support.aten_cases import (
    FLOATS,
    INTS,
    SHAPES,
    Draw,
    Make,
    along,
    binary,
    image,
    keyword,
    positive,
    reduction,
    scalar,
    shaped,
    unary,
    whole,
    with_axis,
)

ALL = (*FLOATS, *INTS, "bool")
NUMBERS = (*FLOATS, *INTS)


def _lerp(weight: Any) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape, kind = d.shape(), d.float()
        w = d.t(shape, kind, 0, 1) if weight is None else weight
        return d.t(shape, kind), d.t(shape, kind), w

    return make


def _three(low: float = -2.0) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape, kind = d.shape(), d.pick(("float32", "float64"))
        return d.t(shape, kind), d.t(shape, kind), d.t(shape, kind, low)

    return make


def _divisible(d: Draw) -> tuple[Any, ...]:
    """Floats whose quotients are near whole numbers; zeros, infinities and NaN."""
    kind = d.float()
    y = d.pick((0.1, -0.3, 7.0, 1e-3)) * torch.ones((), dtype=getattr(torch, kind))
    x = torch.arange(-20, 21).to(y.dtype) * y
    odd = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan], dtype=y.dtype)
    x, y = torch.cat([x, odd, odd]), torch.cat([y.expand(46), odd[[0, 2, 3, 4, 1]]])
    return (x, y) if d.int(0, 2) else (y, x)


def _just_below(_: Draw) -> tuple[Any, ...]:
    """Floats whose quotient, without the remainder, is rounded to less than the whole number."""
    return torch.tensor([17.15, 27.24, 12.5, 4.97]), torch.tensor([5.7, 7.38, 3.52, 1.55])


def _late_infinities(d: Draw) -> tuple[Any, ...]:
    """Rows that end in infinities and NaN, which change no sum before them."""
    x = d.t((3, 8), d.float()).contiguous()
    x[:, 5:] = torch.tensor([math.inf, -math.inf, math.nan])
    return (x, 1) if d.int(0, 2) else (x.t().contiguous(), 0)


def _where(d: Draw) -> tuple[Any, ...]:
    shape = d.shape()
    return d.t(shape, "bool"), d.t(shape, d.pick(NUMBERS)), d.t((), d.pick(NUMBERS))


def _masked(value: Any) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        shape, kind = d.shape(), d.pick(NUMBERS)
        return d.t(shape, kind), d.t(shape, "bool"), d.t((), kind) if value is None else value

    return make


def _cat(d: Draw) -> tuple[Any, ...]:
    kind = d.pick(ALL)
    return [d.t((2, n, 3), kind) for n in (1, 0, 4)], 1


def _stack(d: Draw) -> tuple[Any, ...]:
    shape, kind = d.pick(((), (3,), (2, 3))), d.pick(ALL)
    return [d.t(shape, kind) for _ in range(3)], d.int(-len(shape) - 1, len(shape) + 1)


def _product(*shapes: tuple[int, ...], more: int = 0) -> Make:
    """Tensors of these shapes and one dtype."""

    def make(d: Draw) -> tuple[Any, ...]:
        kind = d.pick(("float32", "float64", "bfloat16", "int64"))
        return tuple(d.t(shape, kind) for shape in shapes)

    return make


def _conv(rank: int, transposed: bool, groups: int, stride: int, pad: int) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        kind = d.pick(("float32", "float64"))
        x = d.t((2, 4, *[8] * rank), kind)
        outer, inner = (4, 6 // groups) if transposed else (6, 4 // groups)
        w, b = d.t((outer, inner, *[3] * rank), kind), d.t((6,), kind)
        one = [1] * rank
        extra = [stride - 1 if transposed else 0] * rank
        bias = b if d.int(0, 2) else None
        return x, w, bias, [stride] * rank, [pad] * rank, one, transposed, extra, groups

    return make


def _attention(d: Draw, masked: bool, causal: bool) -> Any:
    kind = d.pick(("float32", "float64"))
    q, k, v = (
        d.t((2, 3, n, 8), kind).contiguous() for n in (5, 5 if causal else 7, 5 if causal else 7)
    )
    mask = {"attn_mask": d.t((5, 7), kind).contiguous()} if masked else {}
    return (q, k, v, 0.0, causal), mask


def _norm(d: Draw, channels: int, statistics: bool, *rest: Any) -> tuple[Any, ...]:
    kind = d.pick(("float32", "float64"))
    x = d.t((2, channels, 4, 3), kind).contiguous()
    w, b = (d.t((channels,), kind, 0.5, 2) for _ in range(2))
    more = (d.t((channels,), kind), d.t((channels,), kind, 0.1, 2)) if statistics else ()
    return x, w, b, *more, *rest


def _layer_norm(d: Draw) -> tuple[Any, ...]:
    kind = d.pick(("float32", "float64", "bfloat16"))
    x, w, b = d.t((2, 3, 8), kind), d.t((8,), kind), d.t((8,), kind)
    return x, [8], d.pick((None, w)), d.pick((None, b)), 1e-5


def _rows(d: Draw, count: int = 6) -> Any:
    return d.t(d.pick(((4,), (2, 3), (0,))), d.pick(INTS), 0, count - 1)


def _index(*positions: int | None) -> Make:
    def make(d: Draw) -> tuple[Any, ...]:
        x = d.t((4, 5, 6), d.pick(ALL))
        return x, [None if n is None else d.t((3,), "int64", -n, n - 1) for n in positions]

    return make


def _gather(d: Draw) -> tuple[Any, ...]:
    x = d.t((4, 5, 3), d.pick(ALL))
    k = d.int(0, 3)
    return x, k, d.t((2, 4, 3), "int64", 0, x.shape[k] - 1)


def _scatter(d: Draw) -> tuple[Any, ...]:
    kind = d.pick(NUMBERS)
    return d.t((4, 5), kind), d.t((4, 2), kind), 1, 2, 4


def _select_scatter(d: Draw) -> tuple[Any, ...]:
    kind = d.pick(NUMBERS)
    return d.t((4, 5), kind), d.t((4,), kind), 1, d.int(-5, 5)


def _expand(d: Draw) -> tuple[Any, ...]:
    return d.t((1, 3, 1), d.pick(ALL)), [2, -1, 3, 4]


def _some_rows_of_infinities(d: Draw) -> tuple[Any, ...]:
    return torch.where(d.t((4, 1), "bool"), -math.inf, d.t((4, 3))), -1


def _resized(rank: int) -> list[Make]:
    return [image(rank, [out] * rank, size=3) for out in (6, 5)]


def _flip(d: Draw) -> tuple[Any, ...]:
    x = d.t((2, 3, 4), d.pick(ALL))
    return x, d.pick(([0], [1, 2], [-1]))


FUNCTIONS: dict[str, list[Any]] = {
    **{
        f"{name}.default": [unary()]
        for name in (
            "exp", "tanh", "erf", "sin", "cos", "atan", "sinh", "cosh", "asinh", "sigmoid",
            "expm1", "exp2", "relu", "gelu", "silu", "mish", "softplus", "elu", "leaky_relu",
            "hardsigmoid", "hardswish", "hardtanh", "log_sigmoid_forward", "frac",
        )
    },
    **{f"{name}.default": [unary(0.1, 3.0)] for name in ("log", "sqrt", "rsqrt", "log2", "log10")},
    **{f"{name}.default": [unary(-0.9, 0.9)] for name in ("asin", "acos", "atanh", "tan")},
    "acosh.default": [unary(1.1, 3.0)],
    "reciprocal.default": [unary(0.2, 3.0)],
    **{
        f"{name}.default": [unary(kinds=NUMBERS)]
        for name in ("neg", "abs", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf",
                     "nan_to_num", "clone", "alias", "detach", "lift_fresh_copy")
    },
    "log_sigmoid_forward.default": [unary(kinds=("float32", "float64"))],
    "gelu.default": [unary(), keyword(unary(), approximate="tanh")],
    "threshold.default": [lambda d: (d.t(d.shape(), d.float()), 0.5, 2.0)],
    "_prelu_kernel.default": [lambda d: (d.t((2, 3, 4)), d.t((1, 3, 1)))],
    "glu.default": [lambda d: (d.t((2, 6, 4), d.float()), 1)],
}  # fmt: skip

ARITHMETIC: dict[str, list[Any]] = {
    **{f"{name}.Tensor": [binary(), keyword(binary(), alpha=2)] for name in ("add", "sub", "rsub")},
    **{f"{name}.Scalar": [scalar(3), scalar(1.5, FLOATS)]
       for name in ("add", "sub", "rsub", "mul")},
    "mul.Tensor": [binary(ALL)],
    "div.Tensor": [binary(low=0.5)],
    "div.Scalar": [scalar(3)],
    "div.Tensor_mode": [keyword(positive(NUMBERS), rounding_mode=m) for m in ("floor", "trunc")],
    "div.Scalar_mode": [keyword(scalar(3, NUMBERS), rounding_mode="floor"),
                        keyword(scalar(-0.3, FLOATS), rounding_mode="floor"),
                        keyword(scalar(-0.3, FLOATS), rounding_mode="trunc")],
    "floor_divide.default": [positive(NUMBERS)],
    "remainder.Tensor": [positive(NUMBERS)],
    "remainder.Scalar": [scalar(3), scalar(-3), scalar(-0.3, FLOATS)],
    "fmod.Tensor": [positive(NUMBERS)],
    "fmod.Scalar": [scalar(3), scalar(-0.3, FLOATS)],
    "pow.Tensor_Tensor": [binary(("float32", "float64"), low=0.2, same=True)],
    "pow.Tensor_Scalar": [scalar(v, FLOATS) for v in (1, 2, 3, -1)] + [scalar(2, INTS)],
    "pow.Scalar": [lambda d: (1.5, d.t(d.shape(), d.float()))],
    "maximum.default": [binary(ALL)],
    "minimum.default": [binary(ALL)],
    **{f"{name}.Tensor": [binary(ALL)] for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}.Scalar": [scalar(1, ALL), scalar(0.5, FLOATS)]
       for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"logical_{name}.default": [binary(ALL)] for name in ("and", "or", "xor")},
    "logical_not.default": [unary(kinds=ALL)],
    **{f"bitwise_{name}.Tensor": [binary(("bool",))] for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Scalar": [scalar(True, ("bool",))] for name in ("and", "or", "xor")},
    "bitwise_not.default": [unary(kinds=("bool", *INTS))],
    "where.self": [_where],
    "masked_fill.Scalar": [_masked(2)],
    "masked_fill.Tensor": [_masked(None)],
    "clamp.default": [lambda d: (d.t(d.shape(), d.pick(NUMBERS)), -1, 1)],
    "clamp.Tensor": [lambda d: (d.t((3, 4)), d.t((4,)), d.t((3, 1)))],
    "clamp_min.default": [scalar(0)],
    "clamp_max.default": [scalar(0)],
    "clamp_min.Tensor": [binary(same=True)],
    "clamp_max.Tensor": [binary(same=True)],
    "lerp.Scalar": [_lerp(0.3), _lerp(0.8)],
    "lerp.Tensor": [_lerp(None)],
    "addcmul.default": [_three(), keyword(_three(), value=2)],
    "addcdiv.default": [_three(0.5)],
    "_to_copy.default": [keyword(unary(kinds=ALL), dtype=getattr(torch, k)) for k in ALL],
    "convert_element_type.default": [
        lambda d: (d.t(d.shape(), d.pick(ALL)), getattr(torch, d.pick(ALL)))
    ],
}  # fmt: skip

SHAPING: dict[str, list[Any]] = {
    "view.default": [lambda d: (d.t((2, 3, 4), d.pick(ALL)).contiguous(), [4, -1])],
    "_unsafe_view.default": [lambda d: (d.t((2, 3, 4), d.pick(ALL)).contiguous(), [4, 6])],
    "unsqueeze.default": [lambda d: (d.t(d.shape(), d.pick(ALL)), -1)],
    "squeeze.default": [shaped((1, 3, 1))],
    "squeeze.dim": [shaped((1, 3, 1), 0), shaped((1, 3, 1), 1)],
    "squeeze.dims": [shaped((1, 3, 1), [0, 1])],
    "permute.default": [shaped((2, 3, 4), [2, 0, 1]), shaped((2, 3, 4), [-1, 1, 0])],
    "transpose.int": [shaped((2, 3, 4), -1, 0)],
    "t.default": [shaped((2, 3)), shaped((3,)), shaped(())],
    "expand.default": [_expand],
    "slice.Tensor": [shaped((5, 6), 1, 1, 5, 2), shaped((5, 6), 0, -2, 2**62),
                     shaped((5, 6), 1, 4, 2)],
    "select.int": [shaped((5, 6), 1, -2)],
    "cat.default": [_cat],
    "stack.default": [_stack],
    "split.Tensor": [shaped((5, 6), 2), shaped((5, 6), 6, 1)],
    "split_with_sizes.default": [shaped((5, 6), [2, 0, 3])],
    "unbind.int": [shaped((3, 4), 1)],
    "constant_pad_nd.default": [shaped((3, 4), [1, 2], 1.5, kinds=FLOATS),
                                shaped((3, 4), [-1, 1, 2, 0], kinds=NUMBERS)],
    **{f"reflection_pad{k}d.default": [image(k, [2, 1] * k, size=3)] for k in (1, 2, 3)},
    **{f"replication_pad{k}d.default": [image(k, [2, 1] * k, size=3)] for k in (1, 2, 3)},
    "flip.default": [_flip],
    "roll.default": [shaped((3, 4), [2]), shaped((3, 4), [1, -1], [0, 1])],
    "repeat.default": [shaped((2, 3), [2, 1, 3]), shaped((2, 3), [0, 2])],
    "pixel_shuffle.default": [shaped((2, 8, 3, 2), 2)],
    "pixel_unshuffle.default": [shaped((2, 3, 4, 6), 2)],
    "unfold.default": [shaped((3, 8), 1, 3, 2)],
    "slice_scatter.default": [_scatter],
    "select_scatter.default": [_select_scatter],
    "copy.default": [binary(same=False)],
    "tril.default": [shaped((2, 4, 5), 1), shaped((4, 3), -1)],
    "triu.default": [shaped((2, 4, 5), 1), shaped((4, 3), -1)],
    "empty.memory_format": [lambda d: ([2, 0, 3],), lambda d: (([2, 3],), {"dtype": torch.int64})],
    "empty_permuted.default": [lambda d: ([2, 3, 4], [2, 0, 1])],
    "full.default": [lambda d: ([2, 3], 1.5)],
    "full_like.default": [lambda d: (d.t((2, 3), d.pick(NUMBERS)), 2)],
    "new_full.default": [lambda d: (d.t((2, 3), d.pick(NUMBERS)), [4], 2)],
    **{f"{name}.default": [lambda d: ([2, 0, 3],)] for name in ("zeros", "ones")},
    **{f"{name}_like.default": [unary(kinds=ALL)] for name in ("zeros", "ones")},
    **{f"new_{name}.default": [lambda d: (d.t((2, 3), d.pick(ALL)), [4])]
       for name in ("zeros", "ones")},
    "fill.Scalar": [scalar(2)],
    "fill.Tensor": [lambda d: (d.t((2, 3), d.pick(NUMBERS)), d.t((), "float32"))],
    "scalar_tensor.default": [lambda d: (2.5,)],
    "arange.start_step": [lambda d: (1, 9, 3), lambda d: (0.5, 3.0, 0.5)],
    "arange.start": [lambda d: (2, 9)],
    "arange.default": [lambda d: (7,)],
    "iota.default": [lambda d: ((5,), {"start": 2, "step": 3, "dtype": torch.int64,
                                       "device": torch.device("cpu"), "requires_grad": False})],
    "eye.default": [lambda d: (3,)],
    "eye.m": [lambda d: (3, 4)],
}  # fmt: skip

REDUCTIONS: dict[str, list[Any]] = {
    "sum.default": [whole((*FLOATS, *INTS))],
    "sum.dim_IntList": [reduction((*FLOATS, *INTS))],
    "mean.default": [whole(empty=False)],
    "mean.dim": [reduction(empty=False)],
    "prod.default": [whole(("float32", "float64", *INTS))],
    "prod.dim_int": [with_axis(("float32", "float64", *INTS))],
    "amax.default": [reduction(ALL, empty=False)],
    "amin.default": [reduction(ALL, empty=False)],
    "max.default": [whole(ALL, empty=False)],
    "min.default": [whole(ALL, empty=False)],
    "max.dim": [along(NUMBERS)],
    "min.dim": [along(NUMBERS)],
    "argmax.default": [along(NUMBERS), lambda d: (d.t((3, 4)),)],
    "argmin.default": [along(NUMBERS), lambda d: (d.t((3, 4)),)],
    **{f"{name}.default": [whole(ALL)] for name in ("any", "all")},
    **{f"{name}.dim": [with_axis(ALL)] for name in ("any", "all")},
    **{f"{name}.dims": [reduction(ALL)] for name in ("any", "all")},
    "var_mean.correction": [keyword(lambda d: (d.t((3, 4, 5)), [0, 2]), correction=0, keepdim=True),
                            lambda d: ((d.t((3, 4)),), {})],
    "var.correction": [lambda d: ((d.t((3, 4, 5)), [1]), {"correction": 1})],
    "_softmax.default": [lambda d: (d.t((2, 3, 4), d.float()), d.int(-3, 3), False),
                         lambda d: (d.t(()), 0, False)],
    "_log_softmax.default": [lambda d: (d.t((2, 3, 4), d.float()), d.int(-3, 3), False)],
    "_safe_softmax.default": [_some_rows_of_infinities],
    "logsumexp.default": [reduction(("float32", "float64"), empty=False)],
    "linalg_vector_norm.default": [lambda d: (d.t((3, 4), d.float()), 2, [1]),
                                   lambda d: (d.t((3, 4)), 1, [0], True),
                                   lambda d: (d.t((3, 4)), math.inf, [0])],
    "cumsum.default": [with_axis(("float32", "float64", *INTS, "bool")), lambda d: (d.t(()), 0)],
    "native_layer_norm.default": [_layer_norm],
    "_native_batch_norm_legit_no_training.default": [lambda d: _norm(d, 6, True, 0.1, 1e-5)],
    "_batch_norm_no_update.default": [lambda d: _norm(d, 6, True, 0.1, 1e-5)],
    "native_batch_norm.default": [lambda d: _norm(d, 6, True, False, 0.1, 1e-5)],
    "native_group_norm.default": [lambda d: _norm(d, 6, False, 2, 6, 12, 3, 1e-5)],
}  # fmt: skip

LINEAR: dict[str, list[Any]] = {
    "mm.default": [_product((3, 4), (4, 5)), _product((0, 4), (4, 5)), _product((3, 0), (0, 5))],
    "bmm.default": [_product((2, 3, 4), (2, 4, 5))],
    "addmm.default": [_product((5,), (3, 4), (4, 5)),
                      keyword(_product((3, 5), (3, 4), (4, 5)), beta=2, alpha=3)],
    "baddbmm.default": [_product((1, 5), (2, 3, 4), (2, 4, 5))],
    "dot.default": [_product((4,), (4,))],
    "mv.default": [_product((3, 4), (4,))],
    "convolution.default": [
        _conv(1, False, 1, 1, 1), _conv(2, False, 2, 2, 1), _conv(3, False, 1, 2, 0),
        _conv(1, True, 1, 2, 1), _conv(2, True, 2, 2, 1), _conv(2, False, 1, 1, 1),
    ],
    "_scaled_dot_product_flash_attention_for_cpu.default": [
        lambda d: _attention(d, False, False), lambda d: _attention(d, True, False),
        lambda d: _attention(d, False, True),
    ],
    "max_pool2d_with_indices.default": [image(2, [3, 2], [2, 2], [1, 1]), image(2, [2, 2])],
    "max_pool3d_with_indices.default": [
        image(3, [2, 2, 2], [2, 2, 2], [1, 1, 1], [1, 1, 1], True, size=4)
    ],
    **{f"avg_pool{k}d.default": [image(k, [3] * k, [2] * k, [1] * k, size=4),
                                 image(k, [3] * k, [2] * k, [1] * k, True, False, size=4)]
       for k in (1, 2, 3)},
    "_adaptive_avg_pool2d.default": [image(2, [1, 1]), image(2, [3, 4]), image(2, [2, 3], size=6)],
    "_adaptive_avg_pool3d.default": [image(3, [2, 2, 2], size=3)],
    **{f"upsample_nearest{k}d.default": _resized(k) for k in (1, 2, 3)},
    **{f"_upsample_nearest_exact{k}d.default": _resized(k) for k in (1, 2, 3)},
    "upsample_linear1d.default": [image(1, [13], False), image(1, [13], True)],
    "upsample_bilinear2d.default": [image(2, [13, 9], False), image(2, [4, 9], True),
                                    image(2, [14, 14], False, 2.0, 2.0)],
    "embedding.default": [lambda d: (d.t((6, 3), d.float()), _rows(d))],
    "index_select.default": [lambda d: (d.t((6, 3), d.pick(ALL)), 0, d.t((4,), "int64", 0, 5))],
    "index.Tensor": [_index(4), _index(None, 5), _index(4, 5), _index(None, 5, 6)],
    "gather.default": [_gather],
}  # fmt: skip


def _put_elements(kinds: Sequence[str], *rest: Any, number: Any = None, **kwargs: Any) -> Make:
    """Each index of a line once, so that the order of writes does not matter."""

    def make(d: Draw) -> Any:
        shape, kind = d.pick(((), (5,), (4, 5), (2, 3, 4), (2, 0, 3))), d.pick(kinds)
        x, k = d.t(shape, kind), d.int(-len(shape), len(shape)) if shape else 0
        size = shape[k] if shape else 1
        order = torch.rand(shape, generator=d.rng).argsort(k) if shape else torch.tensor(0)
        if kwargs or rest or (number is None and d.int(0, 2) and size > 1):
            order = order.narrow(k, 0, size - 1) if shape and size > 1 else order
        given = d.t(shape, kind) if number is None else number
        return (x, k, order, given, *rest), kwargs

    return make


def _add_elements(kinds: Sequence[str], *rest: Any, **kwargs: Any) -> Make:
    """Several elements at one place."""

    def make(d: Draw) -> Any:
        kind, k = d.pick(kinds), d.int(0, 2)
        x, given = d.t((4, 7), kind, -3, 3), d.t((5, 8), kind, -3, 3)
        return (x, k, d.t((3, 6), "int64", 0, x.shape[k] - 1), given, *rest), kwargs

    return make


def _slices(kinds: Sequence[str], unique: bool, **kwargs: Any) -> Make:
    def make(d: Draw) -> Any:
        shape, kind = d.pick(((6,), (4, 5), (2, 3, 4), (2, 0, 3))), d.pick(kinds)
        k = d.int(-len(shape), len(shape))
        count = d.int(0, shape[k] + 1)
        at = torch.randperm(shape[k], generator=d.rng)[:count]
        if not unique and shape[k]:
            at = d.t((count,), d.pick(INTS), 0, shape[k] - 1)
        sizes = [count if j == k % len(shape) else m for j, m in enumerate(shape)]
        return (d.t(shape, kind), k, at, d.t(sizes, kind)), kwargs

    return make


def _put(accumulate: bool, *positions: int | None) -> Make:
    """Positions of some dims of [4, 5, 6]; without accumulation each one once."""

    def make(d: Draw) -> tuple[Any, ...]:
        kind = d.pick(NUMBERS if accumulate else ALL)
        x, count = d.t((4, 5, 6), kind), d.int(1, 4)
        at: list[Any] = [None] * len(positions)
        for k, size in enumerate(positions):
            if size is not None:
                at[k] = torch.randperm(size, generator=d.rng)[:count] - size * d.int(0, 2)
                if accumulate:
                    at[k] = d.t((count,), "int64", -size, size - 1)
        if d.int(0, 2):  # one value for all
            return x, at, d.t((), kind), accumulate
        return (
            x,
            at,
            d.t(x[tuple(slice(None) if v is None else v for v in at)].shape, kind),
            accumulate,
        )

    return make


def _put_masked(d: Draw) -> tuple[Any, ...]:
    kind = d.pick(ALL)
    return d.t((4, 5), kind), [d.t(d.pick(((4,), (4, 5))), "bool")], d.t((), kind)


def _masked_scatter(d: Draw) -> tuple[Any, ...]:
    kind, mask = d.pick(ALL), d.t((4, 5), "bool")
    return d.t((4, 5), kind), mask, d.t((d.pick((20, 31)),), kind)


def _sorted(d: Draw) -> tuple[Any, ...]:
    shape = d.pick(SHAPES)
    return d.t(shape, d.pick(ALL), -9, 9), d.int(-len(shape), len(shape)) if shape else -1


def _topk(d: Draw) -> tuple[Any, ...]:
    x, k, largest = along(NUMBERS)(d)
    return x, d.int(0, x.shape[k] + 1), k, largest


SCATTERS: dict[str, list[Any]] = {
    "scatter.src": [_put_elements(ALL)],
    "scatter.value": [_put_elements(NUMBERS, number=2)],
    "scatter_add.default": [_add_elements(("float32", "float64", *INTS)), _put_elements(NUMBERS)],
    "scatter_reduce.two": [
        _add_elements(("float32", "float64", *INTS), how, include_self=own)
        for how in ("sum", "prod", "amax", "amin") for own in (True, False)
    ],
    "index_add.default": [_slices(("float32", "float64", *INTS), False),
                          _slices(NUMBERS, True, alpha=2)],
    "index_copy.default": [_slices(ALL, True)],
    "index_put.default": [
        _put(False, 4), _put(False, None, 5), _put(False, 4, None, 6), _put(True, 4, 5),
        _put(True, None, None, 6), _put_masked,
    ],
    "masked_scatter.default": [_masked_scatter],
    "sort.default": [lambda d: (*_sorted(d), False), lambda d: (*_sorted(d), True)],
    "sort.stable": [lambda d: ((d.t((3, 7), d.pick(ALL)),),
                               {"stable": True, "dim": 1, "descending": bool(d.int(0, 2))})],
    "topk.default": [_topk],
    "histc.default": [lambda d: (d.t(d.shape(), d.pick(("float32", "float64")), -4, 4), 5, -2, 3),
                      lambda d: (d.t((40,), "int64", 0, 7).float(), 8, 0, 7)],
}  # fmt: skip

MAKERS: dict[str, list[Any]] = {
    **SCATTERS, **FUNCTIONS, **ARITHMETIC, **SHAPING, **REDUCTIONS, **LINEAR,
}  # fmt: skip

# Calls of which the last bit of an operand decides the result, or infinities: not for fixtures.
EXACT: dict[str, list[Any]] = {
    "div.Tensor_mode": [keyword(m, rounding_mode="floor") for m in (_divisible, _just_below)],
    "floor_divide.default": [_divisible, _just_below],
    "remainder.Tensor": [_divisible],
    "fmod.Tensor": [_divisible],
    "cumsum.default": [_late_infinities],
}
