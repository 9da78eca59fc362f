"""The table of writers: how each graph op is written in ONNX."""

from __future__ import annotations

from typing import Any

from ...dialects.graph import GraphOp
from ...dialects.types import finite_range, is_float, shape_of
from ..onnx_to_graph.tensor_data import number_of_element
from .nodes import NodeWriter, Writer
from .operands import batched, broadcastable, expand

_INT64_MIN = -(1 << 63)


def plain(op_type: str, *attributes: str) -> Writer:
    """One node with the same operands; properties of the same name become attributes."""

    def write(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
        e.emit(op_type, inputs, outputs, **{name: op.value(name) for name in attributes})

    return write


def cast(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Cast to the ONNX number of the element type."""
    e.emit("Cast", inputs, outputs, to=number_of_element(op.value("to")))


def clip(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Clip; a bound that changes nothing is omitted: ONNX's default is the extreme number."""
    bounds = [op.value("min"), op.value("max")]
    element = op.type.element_type
    names = [
        "" if v == default else e.scalar(v, element, role)
        for v, default, role in zip(bounds, finite_range(element), ("min", "max"), strict=True)
    ]
    while names and not names[-1]:
        names.pop()
    e.emit("Clip", [*inputs, *names], outputs)


def operands_of(e: NodeWriter, op: GraphOp) -> list[str]:
    """Names of the operands for the op's node."""
    kind = op.name.removeprefix("graph.")
    if kind in _BROADCASTING:
        return broadcastable(e, op.operands, shape_of(op.results[0]))
    if kind == "matmul" and not _is_gemm(op):
        flags = [op.value("transpose_a"), op.value("transpose_b")]
        return batched(e, op.operands, flags)
    if kind == "broadcast":  # it writes its operand itself
        return []
    return [e.name(v) for v in op.operands]


def _is_gemm(op: GraphOp) -> bool:
    """Whether a product is one of float matrices, with one read transposed."""
    flags = (op.value("transpose_a"), op.value("transpose_b"))
    shape = shape_of(op.results[0])
    return any(flags) and len(shape) == 2 and is_float(op.type.element_type)


def matmul(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Gemm if a float matrix is read transposed, else MatMul with explicit transposes."""
    if not _is_gemm(op):
        e.emit("MatMul", inputs, outputs)
        return
    flags = [int(op.value(name)) for name in ("transpose_a", "transpose_b")]
    e.emit("Gemm", inputs, outputs, transA=flags[0], transB=flags[1])


def g2bmm(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """x times all of padded y transposed, then the diagonals: rows one longer shift by one each.

    ONNX has no band product: this computes all (m + 2 * reach) columns and keeps the band.
    """
    batch, rows, columns = op.type.get_shape()
    dilation = op.value("dilation")
    reach = op.value("width") * dilation
    around = e.integers([0, reach, 0, 0, reach, 0], "pads")
    padded = e.emit("Transpose", [e.emit("Pad", [inputs[1], around])], perm=[0, 2, 1])
    product = e.emit("MatMul", [inputs[0], padded])
    flat = e.emit("Reshape", [product, e.integers([batch, rows * (rows + 2 * reach)], "flat")])
    longer = e.emit("Pad", [flat, e.integers([0, 0, 0, rows], "pads")])
    skewed = [batch, rows, rows + 2 * reach + 1]
    skew = e.emit("Reshape", [longer, e.integers(skewed, "skewed")])
    ends = [(columns - 1) * dilation + 1, 2, dilation]
    wanted = [e.integers([v], role) for v, role in zip([0, *ends], _SLICE, strict=True)]
    e.emit("Slice", [skew, *wanted], outputs)


_SLICE = ("starts", "ends", "axes", "steps")


def gbmm(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """The band as a full matrix padded with zeros, times padded y: the inverse of `g2bmm`."""
    batch, rows, columns = shape_of(op.operands[0])
    dilation = op.value("dilation")
    reach = (columns // 2) * dilation
    full = rows + 2 * reach
    spread = e.emit("Reshape", [inputs[0], e.integers([batch, rows, columns, 1], "spread")])
    spread = e.emit("Pad", [spread, e.integers([0] * 7 + [dilation - 1], "pads")])
    skewed = [batch, rows, columns * dilation]
    skew = e.emit("Reshape", [spread, e.integers(skewed, "skewed")])
    longer = e.integers([0, 0, 0, 0, 0, full + 1 - columns * dilation], "pads")
    flat = e.integers([batch, rows * (full + 1)], "flat")
    row = e.emit("Reshape", [e.emit("Pad", [skew, longer]), flat])
    cropped = e.emit("Pad", [row, e.integers([0, 0, 0, -rows], "pads")])
    band = e.emit("Reshape", [cropped, e.integers([batch, rows, full], "band")])
    around = e.integers([0, reach, 0, 0, reach, 0], "pads")
    e.emit("MatMul", [band, e.emit("Pad", [inputs[1], around])], outputs)


def resample(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """For each tap its elements, gathered from the padded operand, times its row of weights."""
    shape, (taps, out) = shape_of(op.operands[0]), shape_of(op.operands[1])
    axis, rank = op.value("axis"), len(shape)
    first = [(op.value("step") * k + op.value("shift")) // op.value("per") for k in range(out)]
    low = max(0, -min(first, default=0))
    high = max(0, max(first, default=0) + taps - shape[axis])
    pads = [low if k == axis else high if k == axis + rank else 0 for k in range(2 * rank)]
    padded = e.emit("Pad", [inputs[0], e.integers(pads, "pads")]) if low or high else inputs[0]
    column = e.integers([out] + [1] * (rank - axis - 1), "column")
    parts: list[str] = []
    for t in range(taps):
        positions = e.integers([k + low + t for k in first], f"positions{t}")
        taken = e.emit("Gather", [padded, positions], axis=axis)
        row = e.emit("Gather", [inputs[1], e.integers([t], f"tap{t}")], axis=0)
        parts.append(e.emit("Mul", [taken, e.emit("Reshape", [row, column])]))
    e.emit("Sum", parts, outputs)


def conv(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Conv; pads that crop come first, as a Pad."""
    pads, spatial = list(op.ints("pads")), len(op.ints("strides"))
    if any(p < 0 for p in pads):
        full = [0, 0, *pads[:spatial], 0, 0, *pads[spatial:]]
        inputs = [e.emit("Pad", [inputs[0], e.integers(full, "pads")]), *inputs[1:]]
        pads = [0] * len(pads)
    e.emit("Conv", inputs, outputs, pads=pads, **_convolution(op))


def _convolution(op: GraphOp) -> dict[str, Any]:
    return {
        "strides": list(op.ints("strides")),
        "dilations": list(op.ints("dilations")),
        "group": op.value("groups"),
        "kernel_shape": list(shape_of(op.operands[1])[2:]),
    }


def conv_transpose(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """ConvTranspose; pads that extend are a Pad after it, before the bias."""
    pads, spatial = list(op.ints("pads")), len(op.ints("strides"))
    settings = _convolution(op)
    settings["output_padding"] = list(op.ints("output_padding"))
    if all(p >= 0 for p in pads):
        e.emit("ConvTranspose", inputs, outputs, pads=pads, **settings)
        return
    bare = e.emit("ConvTranspose", inputs[:2], pads=[max(p, 0) for p in pads], **settings)
    extra = [max(-p, 0) for p in pads]
    full = [0, 0, *extra[:spatial], 0, 0, *extra[spatial:]]
    if len(inputs) == 2:
        e.emit("Pad", [bare, e.integers(full, "pads")], outputs)
        return
    padded = e.emit("Pad", [bare, e.integers(full, "pads")])
    bias = e.emit("Reshape", [inputs[2], e.integers([-1, *[1] * spatial], "shape")])
    e.emit("Add", [padded, bias], outputs)


def pool(op_type: str) -> Writer:
    """MaxPool and AveragePool."""

    def write(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
        attributes: dict[str, Any] = {
            "kernel_shape": list(op.ints("kernel")),
            "strides": list(op.ints("strides")),
            "pads": list(op.ints("pads")),
            "ceil_mode": int(op.value("ceil_mode")),
        }
        if op_type == "AveragePool":
            attributes["count_include_pad"] = int(op.value("count_include_pad"))
        if op_type == "MaxPool" or set(op.ints("dilations")) != {1}:
            attributes["dilations"] = list(op.ints("dilations"))
        e.emit(op_type, inputs, outputs, **attributes)

    return write


def reduction(op_type: str) -> Writer:
    """Axes as an input (ReduceSum; all from opset 18 on) or an attribute; none is Identity."""

    def write(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
        axes, keep = list(op.ints("axes")), int(op.value("keep_dims"))
        if not axes:
            e.emit("Identity", inputs, outputs)
        elif op_type == "ReduceSum" or e.opset >= 18:
            e.emit(op_type, [*inputs, e.integers(axes, "axes")], outputs, keepdims=keep)
        else:
            e.emit(op_type, inputs, outputs, axes=axes, keepdims=keep)

    return write


def reshape(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Reshape; a 0 in the shape is meant as 0."""
    shape = op.ints("shape")
    flags: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
    e.emit("Reshape", [*inputs, e.integers(shape, "shape")], outputs, **flags)


def transpose(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Transpose."""
    perm = list(op.ints("perm"))
    e.emit("Transpose", inputs, outputs, perm=perm or None)  # an empty list has no ONNX type


def broadcast(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Expand, after a Reshape where the operand's dims are not the last ones."""
    expand(e, op.results[0], outputs)


def slice_(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Slice; an end is one step past the last element, and the least integer past the first."""
    starts, sizes, steps = op.ints("starts"), op.ints("sizes"), op.ints("steps")
    ends = [s + n * step for s, n, step in zip(starts, sizes, steps, strict=True)]
    ends = [_INT64_MIN if end < 0 else end for end in ends]
    ends = [s if n == 0 else end for s, n, end in zip(starts, sizes, ends, strict=True)]
    rows = [
        (starts, "starts"),
        (ends, "ends"),
        (list(range(len(starts))), "axes"),
        (steps, "steps"),
    ]
    if not starts:
        e.emit("Identity", inputs, outputs)
        return
    e.emit("Slice", [*inputs, *(e.integers(values, role) for values, role in rows)], outputs)


def split(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Split by sizes."""
    sizes = e.integers(op.ints("sizes"), "sizes")
    e.emit("Split", [*inputs, sizes], outputs, axis=op.value("axis"))


def pad(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Constant Pad; a fill of 0 is left out."""
    fill, names = op.value("fill"), [*inputs, e.integers(op.ints("pads"), "pads")]
    if fill != 0:
        names.append(e.scalar(fill, op.type.element_type, "fill"))
    e.emit("Pad", names, outputs)


def arg_max(e: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """ArgMax, extent 1 kept."""
    e.emit("ArgMax", inputs, outputs, axis=op.value("axis"), keepdims=1)


_ELEMENTWISE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "and": "And", "asin": "Asin",
    "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos",
    "cosh": "Cosh", "div": "Div", "equal": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "is_nan": "IsNaN", "less": "Less",
    "less_equal": "LessOrEqual", "log": "Log", "max": "Max", "min": "Min", "mul": "Mul",
    "neg": "Neg", "not": "Not", "or": "Or", "pow": "Pow", "reciprocal": "Reciprocal",
    "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "softplus": "Softplus", "sqrt": "Sqrt", "sub": "Sub", "tan": "Tan",
    "tanh": "Tanh", "where": "Where",
    "xor": "Xor",
}  # fmt: skip

# Ops whose ONNX forms broadcast their operands.
_BROADCASTING = frozenset(
    {
        "add", "and", "div", "equal", "greater", "greater_equal", "less", "less_equal", "max",
        "min", "mul", "or", "pow", "sub", "where", "xor",
    }
)  # fmt: skip

WRITERS: dict[str, Writer] = {
    **{name: plain(op_type) for name, op_type in _ELEMENTWISE.items()},
    "leaky_relu": plain("LeakyRelu", "alpha"),
    "elu": plain("Elu", "alpha"),
    "hard_sigmoid": plain("HardSigmoid", "alpha", "beta"),
    "clip": clip,
    "cast": cast,
    "matmul": matmul,
    "g2bmm": g2bmm,
    "gbmm": gbmm,
    "resample": resample,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "max_pool": pool("MaxPool"),
    "avg_pool": pool("AveragePool"),
    "reduce_sum": reduction("ReduceSum"),
    "reduce_max": reduction("ReduceMax"),
    "reduce_min": reduction("ReduceMin"),
    "reduce_prod": reduction("ReduceProd"),
    "reduce_mean": reduction("ReduceMean"),
    "softmax": plain("Softmax", "axis"),
    "log_softmax": plain("LogSoftmax", "axis"),
    "layer_norm": plain("LayerNormalization", "axis", "epsilon"),
    "instance_norm": plain("InstanceNormalization", "epsilon"),
    "batch_norm": plain("BatchNormalization", "epsilon"),
    "lrn": plain("LRN", "size", "alpha", "beta", "bias"),
    "reshape": reshape,
    "transpose": transpose,
    "broadcast": broadcast,
    "concat": plain("Concat", "axis"),
    "slice": slice_,
    "split": split,
    "pad": pad,
    "gather": plain("Gather", "axis"),
    "arg_max": arg_max,
}
