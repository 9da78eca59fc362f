"""Reductions, windows, extremes with their positions, and sorts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import f32, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.types import element_of, is_bool, is_float, is_half, is_unsigned, shape_of, tensor
from .combiners import combiner, extreme, identity_of, order_of
from .mapped import folded, mapped
from .node import Converter, HloNode
from .shaping import padded

_REDUCE = {"add": "reduce_sum", "mul": "reduce_prod", "max": "reduce_max", "min": "reduce_min"}
_OF_BOOL = {"add": "max", "or": "max", "max": "max", "mul": "min", "and": "min", "min": "min"}


def reduce(n: HloNode) -> SSAValue | Sequence[SSAValue]:
    """Combine the elements of dims."""
    dims = n.ints("dimensions")
    block = n.hlo.regions[0] if n.hlo.regions else None
    if len(n.operands) == 4 and block is not None:
        found = _extreme(n, dims)
        return folded(n, partial(mapped, n, block), dims) if found is None else found
    name = combiner(n, block)
    if len(n.operands) != 2 or name is None:
        return folded(n, partial(mapped, n, n.block()), dims)
    if not _has_op(name, element_of(n[0])):
        return folded(n, lambda values: [n.binary(name, *values)], dims)
    found = reduced(n, n[0], name, dims)
    return _with_start(n, found, n[1], name)


def _has_op(name: str, element: Attribute) -> bool:
    """Whether graph ops reduce by this combiner."""
    if is_bool(element):
        return name in (*_OF_BOOL, "xor")
    return name in _REDUCE and not (name in ("max", "min") and str(element) == "ui64")


def _with_start(n: HloNode, found: SSAValue, start: SSAValue, name: str) -> SSAValue:
    """The result with the value that it starts from, which is mostly the identity."""
    if n.number_of(start) == identity_of(name, element_of(start)):
        return found
    return n.binary(name, found, n.expand(start, shape_of(found)))


def reduced(n: HloNode, x: SSAValue, name: str, dims: Sequence[int]) -> SSAValue:
    """Dims reduced by a combiner, from its identity on."""
    element = element_of(x)
    if not dims:
        return x
    if is_bool(element):
        if name not in _OF_BOOL:
            return _parity(n, x, dims)
        wide = n.op("cast", x, to=i32)
        if 0 in (shape_of(x)[d] for d in dims):  # of nothing: the identity, not the least number
            rest = [m for d, m in enumerate(shape_of(x)) if d not in dims]
            return n.expand(n.scalar(identity_of(name, element), i1), rest)
        return n.cast(n.op(_REDUCE[_OF_BOOL[name]], wide, axes=list(dims), keep_dims=False), i1)
    if is_unsigned(element):
        found = n.op(_REDUCE[name], n.cast(x, i64), axes=list(dims), keep_dims=False)
        if name == "min" and 0 in (shape_of(x)[d] for d in dims):
            return n.literal(int(identity_of(name, element)), n.cast(found, element))
        return n.cast(found, element)
    return n.op(_REDUCE[name], x, axes=list(dims), keep_dims=False)


def _parity(n: HloNode, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    count = n.op("reduce_sum", n.op("cast", x, to=i64), axes=list(dims), keep_dims=False)
    half = n.op("div", count, n.literal(2, count))
    odd = n.op("sub", count, n.op("mul", half, n.literal(2, half)))
    return n.cast(odd, i1)


def _extreme(n: HloNode, dims: Sequence[int]) -> list[SSAValue] | None:
    """The extreme along a dim, and its position: what jnp.argmax writes; None of another region."""
    found = extreme(n, n.block())
    maker = n.scope.maker(n.hlo.operands[1])
    if found is None or len(dims) != 1:
        return None
    (axis,) = dims
    along = maker is not None and maker.name == "stablehlo.iota"
    if not along or maker.attributes.get("dim", maker.attributes.get("iota_dimension")) != axis:  # pyright: ignore
        return None
    start, first = n.number_of(n[2]), n.number_of(n[3])
    if start != identity_of(found, element_of(n[0])) or first != 0:
        return None
    x = n[0]
    if is_bool(element_of(x)) or is_unsigned(element_of(x)):
        x = n.cast(x, i64)
    if shape_of(x)[axis] == 0:
        return [n.expand(v, t.get_shape()) for v, t in zip((n[2], n[3]), n.types, strict=True)]  # pyright: ignore
    shape = [m for k, m in enumerate(shape_of(x)) if k != axis]
    kept = [1 if k == axis else m for k, m in enumerate(shape_of(x))]
    if found == "max":
        place = n.op("arg_max", x, axis=axis)
    else:
        place = n.onnx("ArgMin", [x], [tensor(kept, i64)], axis=axis, keepdims=1)[0]
    value = n.op(_REDUCE[found], x, axes=[axis], keep_dims=False)
    results = (value, n.reshape(place, shape))
    return [n.cast(v, t.element_type) for v, t in zip(results, n.types, strict=True)]  # pyright: ignore


# --- windows ---


def reduce_window(n: HloNode) -> SSAValue:
    """Combine the elements of windows, dim by dim: a window of 2k is one of k and the next k."""
    name = combiner(n, n.block())
    if len(n.operands) != 2 or name is None or name == "second":
        raise n.refusal("its region is none of sum, product, maximum, minimum, and, or")
    rank, element = len(shape_of(n[0])), element_of(n[0])
    ones = [1] * rank
    window = n.ints("window_dimensions")
    strides = n.ints("window_strides", default=ones)
    spread = n.ints("base_dilations", default=ones)
    steps = n.ints("window_dilations", default=ones)
    pads = n.ints("padding", default=[0] * (2 * rank))
    low, high = pads[::2], pads[1::2]
    neutral = identity_of(name, element)
    repeats = name in ("max", "min", "and", "or") or is_bool(element)
    if n.number_of(n[1]) != neutral and not repeats:
        raise n.refusal("it starts from another value than the identity")
    x = n[0]
    found = _scan(n, name, window, (strides, spread, steps), (low, high))
    if found is None:
        found = _pool(n, name, window, (strides, spread, steps), (low, high))
    if found is None:
        x = _wide(n, x)
        neutral = identity_of(name, element_of(x))
        if str(element) == "i1":
            neutral = int(identity_of(_OF_BOOL.get(name, name), element))
            name = _OF_BOOL.get(name, name)
        x = padded(n, x, low, high, [s - 1 for s in spread], float(neutral))
        for axis in range(rank):
            x = _windows(n, name, x, axis, window[axis], steps[axis], strides[axis])
        found = n.cast(x, element)
    return _with_start(n, found, n[1], combiner(n, n.block()) or name)


def _wide(n: HloNode, x: SSAValue) -> SSAValue:
    """A type that pads and sums: booleans as numbers."""
    element = element_of(x)
    if is_bool(element):
        return n.op("cast", x, to=i32)
    if is_unsigned(element):
        if str(element) == "ui64":
            raise n.refusal("windows of numbers of 64 bits without a sign")
        return n.cast(x, i64)
    return n.cast(x, f32) if is_half(element) else x


def _windows(
    n: HloNode, name: str, x: SSAValue, axis: int, size: int, step: int, stride: int
) -> SSAValue:
    """Windows of `size` elements, `step` apart, along one dim: sums of powers of two of them."""
    length = shape_of(x)[axis]
    count = (length - (size - 1) * step - 1) // stride + 1 if length > (size - 1) * step else 0
    if size == 1 or count == 0:
        return n.slice(x, axis, 0, max(count, 0), stride)
    total: SSAValue | None = None
    power, width, done = x, 1, 0
    while True:
        if size & width:
            part = n.slice(power, axis, done * step, count, stride)
            total = part if total is None else n.binary(name, total, part)
            done += width
        if done == size:
            assert total is not None
            return total
        keep = shape_of(power)[axis] - width * step
        halves = [n.slice(power, axis, start, keep) for start in (0, width * step)]
        power, width = n.binary(name, *halves), 2 * width


def _scan(
    n: HloNode,
    name: str,
    window: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int], Sequence[int]],
    pads: tuple[Sequence[int], Sequence[int]],
) -> SSAValue | None:
    """A running sum: each window is all elements up to, or from, its own."""
    wide = [k for k, size in enumerate(window) if size > 1]
    if name != "add" or len(wide) != 1 or any(s != 1 for group in steps for s in group):
        return None
    (axis,) = wide
    size, edges = shape_of(n[0])[axis], (pads[0][axis], pads[1][axis])
    others = [p for group in pads for k, p in enumerate(group) if k != axis]
    backward = edges == (0, size - 1)
    element = element_of(n[0])
    if window[axis] != size or any(others) or not (backward or edges == (size - 1, 0)):
        return None
    if is_bool(element) or is_unsigned(element):
        return None
    x = n.cast(n[0], f32) if is_half(element) else n[0]
    place = n.scalar(axis, i64)
    type_ = tensor(shape_of(x), element_of(x))
    return n.cast(n.onnx("CumSum", [x, place], [type_], reverse=int(backward))[0], element)


def _pool(
    n: HloNode,
    name: str,
    window: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int], Sequence[int]],
    pads: tuple[Sequence[int], Sequence[int]],
) -> SSAValue | None:
    """Maximum, or sum of floats, over images: a pool of some dims, the others in front."""
    strides, spread, dilations = steps
    moving = [
        k for k in range(len(window))
        if (window[k], strides[k], pads[0][k], pads[1][k]) != (1, 1, 0, 0)
    ]  # fmt: skip
    element, shape = element_of(n[0]), shape_of(n[0])
    simple = all(s == 1 for s in spread) and all(p >= 0 for group in pads for p in group)
    if not simple or not 1 <= len(moving) <= 3 or name not in ("max", "add") or 0 in shape:
        return None
    if is_bool(element) or is_unsigned(element) or 0 in n.shape:
        return None
    if name == "add" and (not is_float(element) or is_half(element)):
        return None
    rest = [k for k in range(len(shape)) if k not in moving]
    order = [*rest, *moving]
    lead = [shape[k] for k in rest]
    x = n.transpose(n[0], order)
    x = n.reshape(x, [1, math.prod(lead), *(shape[k] for k in moving)])
    kind = {"kernel": window, "strides": strides, "dilations": dilations}
    given = {key: [values[k] for k in moving] for key, values in kind.items()}
    edges = [group[k] for group in pads for k in moving]
    if name == "max":
        found = n.op("max_pool", x, pads=edges, **given)
    else:
        mean = n.op("avg_pool", x, pads=edges, count_include_pad=True, **given)
        found = n.op("mul", mean, n.literal(math.prod(given["kernel"]), mean))
    found = n.reshape(found, [*lead, *(n.shape[k] for k in moving)])
    return n.transpose(found, [order.index(k) for k in range(len(order))])


# --- sorts ---


def sort(n: HloNode) -> list[SSAValue]:
    """Operands in the order of the first of them, stable; by several, the last one first."""
    axis = n.number("dimension", default=len(shape_of(n[0])) - 1) % max(len(shape_of(n[0])), 1)
    falling = order_of(n, n.block(), [element_of(v) for v in n.operands])
    if falling is None:
        raise n.refusal("its region does not compare the operands in their order")
    values = list(n.operands)
    if not shape_of(n[0]) or shape_of(n[0])[axis] < 2 or 0 in shape_of(n[0]):
        return values
    for k in reversed(range(len(falling))):
        found, places = n.ranked(values[k], axis, shape_of(n[0])[axis], falling[k])
        values = [found if j == k else along(n, v, places, axis) for j, v in enumerate(values)]
    return values


def top_k(n: HloNode) -> list[SSAValue]:
    """The greatest elements of the last dim, and their positions."""
    count = n.attr("k", default=n.attr("composite_attributes", default={}).get("k"))
    if not isinstance(count, int):
        raise n.refusal("the number of elements is not known")
    axis = len(shape_of(n[0])) - 1
    found, places = n.ranked(n[0], axis, count, True)
    return [found, n.cast(places, i32)]


def along(n: HloNode, x: SSAValue, places: SSAValue, axis: int) -> SSAValue:
    """The elements of a dim at positions, which each place of the other dims has its own of."""
    shape, out = shape_of(x), shape_of(places)
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    flat = n.op("mul", places, n.literal(steps[axis], places)) if steps[axis] != 1 else places
    for k, size in enumerate(out):
        if k != axis and size > 1:
            flat = n.op("add", flat, n.along(n.iota(size, i64, step=steps[k]), out, k))
    return n.op("gather", n.reshape(x, [math.prod(shape)]), flat, axis=0)


TABLE: dict[str, Converter] = {
    "stablehlo.reduce": reduce,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.sort": sort,
    "chlo.top_k": top_k,
}
