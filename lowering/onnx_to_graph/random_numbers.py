"""Random numbers of a seed: constants, the same in every run.

A node with the attribute `seed` draws the numbers that numpy's `RandomState(int(seed))` gives, as
onnx.reference does: uniform ones by `rand`, normal ones by `randn`, in the order of the elements.
So two nodes of one seed draw the same. A node without a seed draws anew in each run, and is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from ...dialects.errors import UserError
from ...dialects.types import Array, element_of, is_bool, is_float, shape_of, to_numpy
from .node import OnnxNode
from .tensor_data import element_of_number
from .values import NotNative, OnnxValue

Draw = Callable[[np.random.RandomState, Sequence[int]], Array]

# A product with a triangle of ones sums the classes of Multinomial.
MOST_CLASSES = 4096
_MOST_SEED = 2**32 - 1


def _seed(node: OnnxNode) -> int:
    """The seed. Raises NotNative without one, UserError where numpy has no such seed."""
    if "seed" not in node.attributes:
        raise NotNative
    # Dropout has an integer, the others a float.
    proto = node.attributes["seed"]
    given = proto.i if proto.type == proto.INT else proto.f
    if not math.isfinite(given):
        raise NotNative
    if not 0 <= int(given) <= _MOST_SEED:
        raise UserError("no such seed", expected=f"0 to {_MOST_SEED}", found=given)
    return int(given)


def _drawn(
    node: OnnxNode, shape: Sequence[int], element: Attribute, draw: Draw, name: str = "drawn"
) -> SSAValue:
    """A constant of drawn numbers, which are drawn when they are needed."""
    seed, dtype, shape = _seed(node), to_numpy(element), tuple(shape)

    def load() -> Array:
        return np.asarray(draw(np.random.RandomState(seed), shape)).astype(dtype)

    full = f"{node.proto.name or next(iter(node.proto.output), '')}/{name}"
    value = OnnxValue(full, shape, element, load=load, weight=math.prod(shape) > 0)
    return value.ssa(node.build, node.fresh, node.where)


def _uniform(state: np.random.RandomState, shape: Sequence[int]) -> Array:
    return np.asarray(state.rand(*shape))


def _between(node: OnnxNode, dtype: np.dtype) -> Draw:
    """Uniform numbers between `low` and `high`, rounded after each step."""
    low, high = node.float("low", 0.0), node.float("high", 1.0)
    return lambda s, n: _uniform(s, n).astype(dtype) * dtype.type(high - low) + dtype.type(low)


def _normal(node: OnnxNode, dtype: np.dtype) -> Draw:
    mean, scale = node.float("mean", 0.0), node.float("scale", 1.0)
    return lambda s, n: np.asarray(s.randn(*n)).astype(dtype) * dtype.type(scale) + dtype.type(mean)


def of_shape(draw: Callable[[OnnxNode, np.dtype], Draw]) -> Callable[[OnnxNode], list[SSAValue]]:
    """RandomNormal or RandomUniform: the shape is an attribute."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        element = element_of_number(node.int("dtype", 1), node.where)
        if not is_float(element):
            raise UserError("random numbers are floats", found=element)
        shape = node.ints("shape")
        if any(n < 0 for n in shape):
            raise UserError("a dim is negative", found=shape)
        return [_drawn(node, shape, element, draw(node, to_numpy(element)))]

    return convert


def like(draw: Callable[[OnnxNode, np.dtype], Draw]) -> Callable[[OnnxNode], list[SSAValue]]:
    """RandomNormalLike or RandomUniformLike: the shape, and the type by default, are x's."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        number, element = node.int("dtype", 0), node.value(0).element
        if number:
            element = element_of_number(number, node.where)
        if element is None or not is_float(element):
            raise NotNative
        return [_drawn(node, node.shape(0), element, draw(node, to_numpy(element)))]

    return convert


def bernoulli(node: OnnxNode) -> list[SSAValue]:
    """1 where a uniform number is less than x; ONNX's function body has it the wrong way round."""
    number, x = node.int("dtype", 0), node[0]
    if not is_float(element_of(x)):
        raise NotNative
    element = element_of_number(number, node.where) if number else element_of(x)
    x = x if element_of(x) == f64 else node.cast(x, f32)
    drawn = _drawn(node, shape_of(x), element_of(x), _uniform)
    return [node.cast(node.build.less(drawn, x), element)]


def multinomial(node: OnnxNode) -> list[SSAValue]:
    """The class at which the running sum of exp(x) first exceeds a uniform share of the whole."""
    batch, classes = node.of_rank(0, 2)
    if not 0 < classes <= MOST_CLASSES:
        raise NotNative
    build, count = node.build, node.int("sample_size", 1)
    element = element_of_number(node.int("dtype", 6), node.where)
    shares = _drawn(node, [batch, count], f32, _uniform)
    likely = build.softmax(node.cast(node[0], f32), axis=1)
    triangle = node.data(np.triu(np.ones((classes, classes), np.float32)), "triangle")
    sums = build.expand(
        node.reshape(build.matmul(likely, triangle), [batch, 1, classes]), [batch, count, classes]
    )
    wide = build.expand(node.reshape(shares, [batch, count, 1]), [batch, count, classes])
    before = node.cast(build.not_(build.less(wide, sums)), f32)
    found = build.reduce_sum(before, axes=[2], keep_dims=False)
    return [node.cast(build.min(found, node.literal(classes - 1.0, found)), element)]


def dropout(node: OnnxNode) -> list[SSAValue]:
    """x where it is not trained; in training x * mask / (1 - ratio), the mask drawn by the seed.

    An element stays where its uniform number is not less than the ratio.
    """
    x, shape = node[0], node.shape(0)
    if node.version < 7 and not node.flag("is_test") and "is_test" in node.attributes:
        raise NotNative
    training = node.known(2) if node.has(2) else np.asarray(False)
    ratio = node.known(1) if node.has(1) else np.asarray(0.5)
    if training is not None and (not training.any() or (ratio is not None and not ratio.any())):
        return [x, _all(node, True)][: 1 + node.wants(1)]
    if is_bool(element_of(x)) or not is_float(element_of(x)):
        raise NotNative
    build, element = node.build, element_of(x)
    drawn = _drawn(node, shape, f64, _uniform)
    limit = node.cast(node[1], f64) if node.has(1) else node.scalar(0.5, f64)
    limit = build.expand(node.reshape(limit, []), shape)
    kept = build.not_(build.less(drawn, limit))
    one = node.literal(1.0, limit)
    scale = node.cast(build.div(one, build.sub(one, limit)), element)
    y = build.mul(build.mul(x, node.cast(kept, element)), scale)
    if training is None:
        trains = build.expand(node.reshape(node[2], []), shape)
        y = build.where(trains, y, x)
        kept = build.or_(kept, build.not_(trains))
    return [y, kept][: 1 + node.wants(1)]


def _all(node: OnnxNode, value: bool) -> SSAValue:
    """A mask of one value; before opset 10 it has the operand's type."""
    element = element_of_number(9, node.where) if node.version >= 10 else element_of(node[0])
    return node.build.expand(node.scalar(value, element), shape_of(node[0]))


NORMAL, UNIFORM = _normal, _between

__all__ = ["NORMAL", "UNIFORM", "bernoulli", "dropout", "like", "multinomial", "of_shape"]
