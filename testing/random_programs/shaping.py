"""Random reductions, normalisations and ops that move data."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ...dialects.types import element_of, shape_of
from .grower import Grower, fits, is_arithmetic, of_float


def reduction(g: Grower) -> SSAValue:
    """A reduction along some axes, perhaps none, perhaps all."""
    x = g.any(is_arithmetic)
    if not is_arithmetic(x):
        return x
    rank = len(shape_of(x))
    axes = sorted(g.rng.sample(range(rank), g.rng.randint(0, rank)))
    name = g.rng.choice(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_mean"))
    if name != "reduce_sum" and any(shape_of(x)[a] == 0 for a in axes):
        name = "reduce_sum"  # the others have no value that all dtypes can hold
    return g.b.op(name, x, axes=axes, keep_dims=g.chance(0.5))


def softmax(g: Grower) -> SSAValue:
    """softmax or log_softmax along any axis."""
    x = g.float(least=1)
    axis = g.rng.randrange(len(shape_of(x)))
    return g.b.op(g.rng.choice(("softmax", "log_softmax")), x, axis=axis)


def norm(g: Grower) -> SSAValue:
    """Layer, instance, batch and local response normalisation.

    Attributes are powers of two: ONNX keeps them in 32 bits, and float64 shows what is lost.
    """
    x = g.float(rank=g.rng.choice((2, 3, 4)))
    shape, element = shape_of(x), element_of(x)
    channels = shape[1:2]
    kind = g.rng.randrange(4)
    if kind == 0 or 0 in shape:
        axis = g.rng.randrange(len(shape))
        scale = g.fresh(shape[axis:], element)
        bias = [g.fresh(shape[axis:], element)] if g.chance(0.6) else []
        return g.b.layer_norm(x, scale, *bias, axis=axis, epsilon=2.0**-7)
    if kind == 1 and len(shape) >= 3:
        return g.b.instance_norm(
            x, g.fresh(channels, element), g.fresh(channels, element), epsilon=2.0**-7
        )
    if kind == 2:
        size = g.rng.randint(1, 4)
        return g.b.lrn(x, size=size, alpha=0.125, beta=0.75, bias=1.0)
    scale, bias, mean = (g.fresh(channels, element) for _ in range(3))
    variance = g.positive(g.fresh(channels, element))
    return g.b.batch_norm(x, scale, bias, mean, variance, epsilon=2.0**-10)


def reshape(g: Grower) -> SSAValue:
    """Another factorisation of the element count, with extra 1s."""
    x = g.any()
    count = math.prod(shape_of(x))
    dims: list[int] = []
    if count == 0:
        return g.b.reshape(x, shape=[0, g.rng.randint(0, 3)])
    while count > 1 and len(dims) < 3:
        factors = [d for d in range(2, count + 1) if count % d == 0]
        dims.append(g.rng.choice(factors))
        count //= dims[-1]
    dims += [count] if count > 1 else []
    if g.chance(0.3) and len(dims) < 5:
        dims.insert(g.rng.randint(0, len(dims)), 1)
    return g.b.reshape(x, shape=dims)


def transpose(g: Grower) -> SSAValue:
    """Any permutation of the dims."""
    x = g.any()
    perm = list(range(len(shape_of(x))))
    g.rng.shuffle(perm)
    return g.b.transpose(x, perm=perm)


def broadcast(g: Grower) -> SSAValue:
    """New dims, and extent-1 dims made longer."""
    x = g.any(lambda v: len(shape_of(v)) <= 4)
    shape, dims = list[int](), list[int]()
    if len(shape_of(x)) > 4:
        return x
    for n in shape_of(x):
        if len(shape) + len(shape_of(x)) - len(dims) < 5 and g.chance(0.3):
            shape.append(g.extent(3))
        dims.append(len(shape))
        shape.append(g.extent(4) if n == 1 and g.chance(0.6) else n)
    if len(shape) < 5 and g.chance(0.3):
        shape.append(g.extent(3))
    return g.b.broadcast(x, shape=shape, dims=dims) if fits(shape) else x


def concat(g: Grower) -> SSAValue:
    """Two or three parts along any axis; perhaps the same part twice."""
    x = g.any(lambda v: len(shape_of(v)) >= 1)
    shape = shape_of(x)
    if not shape:
        return x
    axis = g.rng.randrange(len(shape))
    parts = [x]
    for _ in range(g.rng.randint(0, 2)):
        known = g.pick(lambda v: _joins(v, x, axis))
        if known is not None and g.chance(0.7):
            parts.append(known)
        else:
            size = [*shape[:axis], g.extent(4), *shape[axis + 1 :]]
            parts.append(g.fresh(size, element_of(x)))
    g.rng.shuffle(parts)
    total = [*shape[:axis], sum(shape_of(p)[axis] for p in parts), *shape[axis + 1 :]]
    return g.b.concat(*parts, axis=axis) if fits(total) else x


def _joins(value: SSAValue, other: SSAValue, axis: int) -> bool:
    a, b = shape_of(value), shape_of(other)
    return (
        element_of(value) == element_of(other)
        and len(a) == len(b)
        and all(m == n for k, (m, n) in enumerate(zip(a, b, strict=True)) if k != axis)
    )


def split(g: Grower) -> SSAValue:
    """Parts along an axis, all of them kept."""
    x = g.any(lambda v: len(shape_of(v)) >= 1)
    if not shape_of(x):
        return x
    axis = g.rng.randrange(len(shape_of(x)))
    rest, sizes = shape_of(x)[axis], list[int]()
    for _ in range(g.rng.randint(0, 2)):
        sizes.append(g.rng.randint(0 if g.chance(g.empty) else min(1, rest), rest))
        rest -= sizes[-1]
    sizes.append(rest)
    if not g.empty:
        sizes = [n for n in sizes if n] or [shape_of(x)[axis]]
    for part in g.b.split(x, axis=axis, sizes=sizes):
        g.keep(part)
    return g.values[-1]


def slices(g: Grower) -> SSAValue:
    """A range with steps, backwards too."""
    x = g.any()
    starts, sizes, steps = list[int](), list[int](), list[int]()
    for n in shape_of(x):
        step = g.rng.choice((1, 1, 1, 2, -1, -2, 3))
        if n == 0:
            start, size = 0, 0
        else:
            start = g.rng.randrange(n)
            room = (n - 1 - start) // step if step > 0 else start // -step
            size = g.rng.randint(1, room + 1)
            if g.chance(0.3):
                start, size, step = 0, n, 1
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    return g.b.slice(x, starts=starts, sizes=sizes, steps=steps)


def pad(g: Grower) -> SSAValue:
    """Constant padding, cropping where negative."""
    x = g.any(lambda v: fits([n + 2 for n in shape_of(v)]))
    shape = shape_of(x)
    low = [g.rng.choice((0, 0, 1, 2, -1 if n > 2 else 0)) for n in shape]
    high = [g.rng.choice((0, 0, 1, -1 if n > 3 else 0)) for n in shape]
    if not fits([n + a + z for n, a, z in zip(shape, low, high, strict=True)]):
        return x
    fill = g.rng.choice((0.0, 0.0, 1.0, 0.5 if of_float(x) else 1.0))
    return g.b.pad(x, pads=low + high, fill=fill)


def gather(g: Grower) -> SSAValue:
    """Rows at literal, stored or given positions, some of them counted from the end."""
    x = g.any(lambda v: len(shape_of(v)) >= 1 and 0 not in shape_of(v))
    shape = shape_of(x)
    if not shape or 0 in shape:
        return x
    axis = g.rng.randrange(len(shape))
    size = shape[axis]
    wanted = [g.rng.randint(1, 3) for _ in range(g.rng.choice((0, 1, 1, 2)))]
    if not fits([*shape[:axis], *wanted, *shape[axis + 1 :]]):
        return x
    element = g.rng.choice((i32, i64))
    positions = g.data.integers(-size, size, tuple(wanted))
    if g.chance(0.5):
        indices = g.input(wanted, element, "index")
    else:
        dtype = np.int32 if element == i32 else np.int64
        indices = g.b.constant(np.asarray(positions, dtype=dtype))
    return g.b.gather(x, indices, axis=axis)


def arg_max(g: Grower) -> SSAValue:
    """The position of the maximum, and the place along the last dim added to it."""
    x = g.float(least=1)
    axis = g.rng.randrange(len(shape_of(x)))
    if 0 in shape_of(x):
        return x
    found = g.b.arg_max(x, axis=axis)
    places = g.b.iota(start=[axis], size=[shape_of(found)[-1]])
    return g.b.add(found, g.b.expand(places, shape_of(found)))
