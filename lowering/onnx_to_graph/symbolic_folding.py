"""Shape computations whose numbers are symbolic: arrays of extents, as objects.

An op that is not here computes with the extents' numbers: those are guards (dialects/extents.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import i32, i64

from ...dialects.dims import broadcast_shapes, is_symbolic
from ...dialects.opaque_kernels.slices_pads_norms import slice_extent
from ...dialects.types import Array
from .node import OnnxNode
from .tensor_data import element_of_number
from .values import OnnxValue

Evaluate: TypeAlias = "Callable[[OnnxNode], Array | None]"


def fold_symbolic(node: OnnxNode) -> list[OnnxValue] | None:
    """The result of a shape computation over extents; None where it is none, or none of these."""
    given = [v for v in node.inputs if v is not None]
    if not given or not all(v.is_known for v in given):
        return None
    if not any(is_symbolic(v.array()) for v in given):
        return None
    if node.op_type == "Range":
        return _range(node)
    if node.op_type == "Split":
        return _split(node)
    evaluate = _EVALUATE.get(node.op_type)
    found = None if evaluate is None else evaluate(node)
    return None if found is None else [OnnxValue.of_array(node.proto.output[0], found)]


def shape_array(shape: tuple[Any, ...]) -> Array:
    """A shape as the data of a tensor of int64; with symbols as objects."""
    if is_symbolic(shape):
        found = np.empty(len(shape), object)
        found[:] = shape
        return found
    return np.asarray(shape, np.int64)


def _range(node: OnnxNode) -> list[OnnxValue]:
    """Positions up to a symbolic end are an op: their number is not known."""
    start, limit, step = (node.constant_ints(k, "a bound")[0] for k in range(3))
    count = -((start - limit) // step)
    if count < 0:
        count = 0
    ssa = node.build.iota(start=[start], size=[count], step=[step])
    element = node.value(0).element
    assert element is not None
    return [OnnxValue.of_ssa(node.proto.output[0], node.cast(ssa, element))]


def _split(node: OnnxNode) -> list[OnnxValue] | None:
    """A shape cut into parts, of one number each or of given sizes."""
    array, names = node.value(0).array(), node.proto.output
    if node.version < 13:
        sizes = node.ints("split", []) or None
    else:
        sizes = node.constant_ints(1, "sizes") if node.has(1) else None
    if array.ndim != 1 or (sizes is None and len(array) != len(names)):
        return None
    ends = np.cumsum([1] * len(names) if sizes is None else sizes)[:-1]
    return [
        OnnxValue.of_array(name, part)
        for name, part in zip(names, np.split(array, ends), strict=True)
    ]


def _elementwise(function: Callable[[Any, Any], Any]) -> Evaluate:
    def evaluate(node: OnnxNode) -> Array:
        arrays = [v.array() for v in node.inputs if v is not None]
        found = arrays[0]
        for array in arrays[1:]:
            found = _objects(function, found, array)
        return found

    return evaluate


def _objects(function: Callable[[Any, Any], Any], a: Array, b: Array) -> Array:
    left, right = np.broadcast_arrays(a, b)
    found = np.empty(left.shape, object)
    for at in np.ndindex(left.shape):
        found[at] = function(_plain(left[at]), _plain(right[at]))
    return found


def _plain(value: Any) -> Any:
    """A number of numpy as Python's: mixed with extents it must not become an array."""
    return value.item() if isinstance(value, np.generic) else value


def _quotient(a: Any, b: Any) -> Any:
    """Division of integers towards zero, as ONNX has it: extents are not negative."""
    if (a >= 0) != (b > 0):
        return -(-a // b)
    return a // b


def _truth(function: Callable[[Any, Any], Any]) -> Evaluate:
    """A comparison: its answers are guards, so it is an array of booleans."""
    objects = _elementwise(function)
    return lambda node: np.asarray(objects(node), np.bool_)


def _where(node: OnnxNode) -> Array:
    condition, then, other = (np.asarray(node.value(k).array(), object) for k in range(3))
    condition, then, other = np.broadcast_arrays(condition, then, other)
    found = np.empty(condition.shape, object)
    for at in np.ndindex(condition.shape):
        found[at] = _plain(then[at] if condition[at] else other[at])
    return found


def _cast(node: OnnxNode) -> Array | None:
    """Extents stay what they are among the wide integers; else numbers are asked for."""
    wanted = element_of_number(node.int("to", 0), node.where)
    return node.value(0).array() if wanted in (i64, i32) else None


def _gather(node: OnnxNode) -> Array:
    axis = node.axis(node.int("axis", 0), node.value(0).array().ndim)
    taken = np.take(node.value(0).array(), node.value(1).array().astype(np.int64), axis=axis)
    return np.asarray(taken, object)


def _concat(node: OnnxNode) -> Array:
    arrays = [np.asarray(v.array(), object) for v in node.inputs if v is not None]
    return np.concatenate(arrays, axis=node.int("axis", 0))


def _reshaped(node: OnnxNode) -> Array | None:
    array = node.value(0).array()
    if node.op_type == "Reshape":
        return array.reshape([int(n) for n in node.value(1).array().ravel()])
    if node.version < 13:
        axes = node.ints("axes", []) if "axes" in node.attributes else None
    else:
        axes = node.constant_ints(1, "axes") if node.has(1) else None
    if node.op_type == "Unsqueeze":
        return None if axes is None else np.expand_dims(array, tuple(axes))
    return np.asarray(np.squeeze(array, None if axes is None else tuple(axes)), object)


def _slice(node: OnnxNode) -> Array | None:
    """Along the one dim that shape computations have."""
    array = node.value(0).array()
    if (
        node.version < 10
        or array.ndim != 1
        or any(is_symbolic(node.value(k).array()) for k in (1, 2))
    ):
        return None
    step = node.constant_ints(4, "steps")[0] if node.has(4) else 1
    start, end = node.constant_ints(1, "starts")[0], node.constant_ints(2, "ends")[0]
    first, count = slice_extent(start, end, step, len(array))
    return array[[first + k * step for k in range(count)]]


def _product(node: OnnxNode) -> Array | None:
    """Of all elements."""
    array = node.value(0).array()
    if array.ndim > 1:
        return None
    found: Any = 1
    for value in array.ravel():
        found = found * _plain(value)
    shape = (1,) * array.ndim if node.flag("keepdims", True) else ()
    return _filled(shape, found)


def _filled(shape: tuple[int, ...], value: Any) -> Array:
    found = np.empty(shape, object)
    found[...] = value
    return found


def _expand(node: OnnxNode) -> Array | None:
    if is_symbolic(node.value(1).array()):
        return None
    array = node.value(0).array()
    shape = broadcast_shapes(array.shape, tuple(node.constant_ints(1, "the shape")))
    return np.broadcast_to(array, shape)


_EVALUATE: dict[str, Evaluate] = {
    "Add": _elementwise(operator.add),
    "Sub": _elementwise(operator.sub),
    "Mul": _elementwise(operator.mul),
    "Div": _elementwise(_quotient),
    "Max": _elementwise(max),
    "Min": _elementwise(min),
    "Equal": _truth(operator.eq),
    "Less": _truth(operator.lt),
    "Greater": _truth(operator.gt),
    "LessOrEqual": _truth(operator.le),
    "GreaterOrEqual": _truth(operator.ge),
    "Where": _where,
    "Cast": _cast,
    "Identity": lambda node: node.value(0).array(),
    "Gather": _gather,
    "Concat": _concat,
    "Reshape": _reshaped,
    "Squeeze": _reshaped,
    "Unsqueeze": _reshaped,
    "Slice": _slice,
    "ReduceProd": _product,
    "Expand": _expand,
}
