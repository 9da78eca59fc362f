"""Shape computations: nodes whose operands are known at import time are evaluated then.

They are evaluated by onnx.reference or `dialects/opaque_kernels`, in the ONNX dtypes. Large float
weights do not count as known: they stay in the IR (values.py has the limits).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference.ops._op_list import load_op

from ...dialects.dims import broadcast_shapes, is_symbolic
from ...dialects.errors import UserError
from ...dialects.index_range import check_node, ints_of
from ...dialects.opaque import operators
from ...dialects.types import Array, is_float, is_storage
from .node import OnnxNode
from .symbolic_folding import fold_symbolic, shape_array
from .tensor_data import element_of_number, is_supported, reader, tensor_shape
from .values import KNOWN_FLOATS, KNOWN_INTEGERS, LITERAL, NotConstant, OnnxValue

# Ops whose results may be much larger than their operands; known operands give their size.
_GROWING: dict[str, Callable[[OnnxNode], float]] = {
    "Expand": lambda n: math.prod(broadcast_shapes(n.shape(0), tuple(n.constant_ints(1, "shape")))),
    "Tile": lambda n: math.prod(n.shape(0)) * math.prod(n.constant_ints(1, "repeats")),
    "Range": lambda n: range_size(n),
    "EyeLike": lambda n: math.prod(n.shape(0)),
    "OneHot": lambda n: math.prod(n.shape(0)) * max(n.constant_ints(1, "depth")),
    "Pad": lambda n: (
        math.prod(size + sum(map(abs, n.constant_ints(1, "pads"))) for size in n.shape(0))
        if n.has(1)
        else math.inf
    ),
    "BlackmanWindow": lambda n: n.constant_int(0, "the size"),
    "HammingWindow": lambda n: n.constant_int(0, "the size"),
    "HannWindow": lambda n: n.constant_int(0, "the size"),
}
# The ops of shape computations. Heavier ops on constants are converted like all others.
_FOLDED = frozenset(
    {
        "Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot",
        "BitwiseOr", "BitwiseXor", "BlackmanWindow", "Cast", "CastLike", "Ceil", "Clip",
        "Compress", "Concat", "CumSum", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten",
        "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual",
        "HammingWindow", "HannWindow", "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Log",
        "Max", "Mean", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pad", "Pow",
        "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Sign", "Slice", "Split",
        "Sqrt", "Squeeze", "StringConcat", "Sub", "Sum", "Tile", "TopK", "Transpose", "Trilu",
        "Unique", "Unsqueeze", "Where", "Xor",
    }
)  # fmt: skip
# Ops whose operands after the first are sizes, and the opset since which they are.
_SIZED = {"Slice": 10, "Expand": 8, "Tile": 6, "Reshape": 5}
# Ops whose shapes depend on data: weights are read for them.
_SHAPED_BY_DATA = frozenset({"Compress", "NonZero", "Unique"})


def fold(node: OnnxNode, domain: str) -> list[OnnxValue] | None:
    """The node's results as data; None if they are not known or too large."""
    if domain != "":
        return None
    special = _SPECIAL.get(node.op_type)
    if special is not None:
        return special(node)
    if (symbolic := fold_symbolic(node)) is not None:
        return symbolic
    if node.op_type not in _FOLDED or not node.inputs or _has_symbolic_size(node):
        return None
    decides = node.op_type in _SHAPED_BY_DATA
    if not all(v is None or v.is_known or (decides and v.is_readable) for v in node.inputs):
        return None
    if _has_graphs_or_old_broadcast(node) or _too_large(node) or _is_cast_to_few_bits(node):
        return None
    return _evaluate(node)


def _has_symbolic_size(node: OnnxNode) -> bool:
    """Whether the size of a part or a repetition of data is not known, while the data are."""
    if node.op_type not in _SIZED or node.version < _SIZED[node.op_type]:
        return False
    data, *sizes = [None if v is None or not v.is_known else v.array() for v in node.inputs]
    known = data is not None and not is_symbolic(data)
    return known and any(size is not None and is_symbolic(size) for size in sizes)


def _has_graphs_or_old_broadcast(node: OnnxNode) -> bool:
    return "broadcast" in node.attributes or any(
        a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        for a in node.attributes.values()
    )


def _is_cast_to_few_bits(node: OnnxNode) -> bool:
    """Whether this is a cast to integers of 2 or 4 bits, which onnx.reference does not round."""
    if node.op_type == "CastLike":
        target = node.value(1).element
        return target is not None and is_storage(target)
    number = node.int("to", 0) if node.op_type == "Cast" else TensorProto.UNDEFINED
    return is_supported(number) and is_storage(element_of_number(number, node.where))


def _too_large(node: OnnxNode) -> bool:
    estimate = _GROWING.get(node.op_type)
    if estimate is None:
        return False
    try:
        size = estimate(node)
    except ValueError:  # shapes that do not broadcast: the converter reports them
        return True
    if node.op_type.endswith("Window"):
        return size > KNOWN_INTEGERS
    element = node.value(0).element
    return size > (KNOWN_FLOATS if element is None or is_float(element) else KNOWN_INTEGERS)


def range_size(node: OnnxNode) -> float:
    """Number of elements of a Range of known bounds. Raises UserError for a step of zero."""
    start, limit, delta = (float(node.constant_number(k, "a bound")) for k in range(3))
    if delta == 0 or not math.isfinite(start + limit + delta):
        raise UserError("the step is zero or a bound is not finite")
    return max(0.0, (limit - start) / delta)


def _decoded(node: OnnxNode) -> list[OnnxValue] | None:
    """An image of known bytes. Raises NotConstant for others: its size depends on them."""
    node.constant(0, "the encoded image")
    return _evaluate(node)


def _mel_weights(node: OnnxNode) -> list[OnnxValue] | None:
    """A table of known numbers. Raises NotConstant for the two that its size depends on."""
    size = node.constant_int(0, "the number of bins") * node.constant_int(1, "the length")
    known = all(node.known(k) is not None for k in range(2, len(node)))
    return _evaluate(node) if known and size <= KNOWN_INTEGERS else None


def _evaluate(node: OnnxNode) -> list[OnnxValue] | None:
    for value in node.inputs:
        if value is not None:
            value.fix()
    arrays = [None if v is None else v.array() for v in node.inputs]
    results = run_reference(node, arrays)
    if results is None:
        return None
    found: list[OnnxValue] = []
    for name, array in zip(node.proto.output, results, strict=False):
        if not isinstance(array, np.ndarray | np.generic):
            return None
        found.append(OnnxValue.of_array(name, np.asarray(array)))
    return found


def run_reference(node: OnnxNode, arrays: Sequence[Array | None]) -> Sequence[Any] | None:
    """Results of the kernel for the op; None if it has none.

    Raises:
        UserError: the kernel fails on these values.
    """
    check_node(node.op_type, ints_of(node.proto), arrays, node.where)
    try:
        kernel = operators().get(node.op_type) or load_op("", node.op_type, node.version)
        return kernel(node.proto, {**_RUN, "opsets": {"": node.version}}).run(*arrays)
    except (NotImplementedError, RuntimeError, AssertionError):
        return None  # a function without a kernel of its own is expanded
    except Exception as error:  # whatever a kernel raises on bad operands, the user sees the node
        raise UserError(f"it cannot be evaluated ({error})", where=node.where) from error


def _silent(*_: object) -> None:
    return None


_RUN: dict[str, Any] = {
    "log": _silent,
    "verbose": 0,
    "new_ops": None,
    "existing_functions": {},
    "evaluator_cls": None,
}


# --- ops that are data by themselves ---


def _shape(node: OnnxNode) -> list[OnnxValue]:
    """The operand's static shape, whatever its data."""
    shape = node.shape(0)
    return [
        OnnxValue.of_array(node.proto.output[0], shape_array(shape[_shape_range(node, len(shape))]))
    ]


def _shape_range(node: OnnxNode, rank: int) -> slice:
    def clamp(k: int) -> int:
        return min(max(k + rank if k < 0 else k, 0), rank)

    start = clamp(node.int("start", 0))
    return slice(start, max(start, clamp(node.int("end", rank))))


def _size(node: OnnxNode) -> list[OnnxValue]:
    count = shape_array((math.prod(node.shape(0)),)).reshape(())
    return [OnnxValue.of_array(node.proto.output[0], count)]


def _constant(node: OnnxNode) -> list[OnnxValue]:
    """The literal of a Constant node, in whichever attribute it is."""
    name = node.proto.output[0]
    if len(node.attributes) != 1:
        raise UserError("a constant needs exactly one value", found=sorted(node.attributes))
    ((attribute, proto),) = node.attributes.items()
    match attribute:
        case "value" if (tensor := node.tensor("value")) is not None:
            return [_literal(tensor, name, node.where)]
        case "value_float" | "value_floats":
            data = np.asarray(
                node.floats(attribute) if attribute[-1] == "s" else proto.f, np.float32
            )
        case "value_int" | "value_ints":
            data = np.asarray(node.ints(attribute) if attribute[-1] == "s" else proto.i, np.int64)
        case "value_string" | "value_strings":
            data = np.asarray(node.strings(attribute) if attribute[-1] == "s" else proto.s, object)
        case _:
            raise UserError(f"a constant of kind '{attribute}' is not supported")
    return [OnnxValue.of_array(name, data)]


def _literal(proto: TensorProto, name: str, where: str) -> OnnxValue:
    shape = tensor_shape(proto, where)
    load = reader(proto, None, where)
    if not is_supported(proto.data_type):
        return OnnxValue(name, shape, None, load=load)
    element = element_of_number(proto.data_type, where)
    return OnnxValue(name, shape, element, load=load, weight=math.prod(shape) > LITERAL)


def _constant_of_shape(node: OnnxNode) -> list[OnnxValue] | None:
    """One number everywhere: a weight for floats, so that its data can be replaced."""
    if not node.value(0).is_known:
        raise NotConstant(node.value(0).name, "the shape", node.where)
    shape = tuple(node.constant_ints(0, "the shape"))
    if any(n < 0 for n in shape):
        raise UserError("a dim is negative", found=list(shape))
    proto = node.tensor("value")
    fill = np.zeros(1, np.float32) if proto is None else reader(proto, None, node.where)()
    number = TensorProto.FLOAT if proto is None else proto.data_type
    element = element_of_number(number, node.where)
    if fill.size != 1:
        raise UserError("the value is not a single number", found=list(fill.shape))

    def load() -> Array:
        return np.broadcast_to(fill.ravel()[0], shape)

    name = node.proto.output[0]
    if is_symbolic(shape):
        number_ = node.scalar(fill.ravel()[0], element)
        return [OnnxValue.of_ssa(name, node.build.expand(number_, shape))]
    return [
        OnnxValue(
            name, shape, element, load=load, weight=is_float(element) and shape not in ((), (1,))
        )
    ]


_SPECIAL: dict[str, Callable[[OnnxNode], list[OnnxValue] | None]] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "ImageDecoder": _decoded,
    "MelWeightMatrix": _mel_weights,
    "Shape": _shape,
    "Size": _size,
}
