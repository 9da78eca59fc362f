"""The table of writers: how each graph op is written in ONNX."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import Float8E8M0FNUType

from ...dialects.graph import GraphOp
from ...dialects.types import finite_range, is_float, is_small_float, shape_of
from ..onnx_to_graph.tensor_data import number_of_element
from .nodes import NodeWriter, Writer
from .operands import batched, broadcastable, expand

_INT64_MIN = -(1 << 63)


def plain(op_type: str, *attributes: str) -> Writer:
    """One node with the same operands; properties of the same name become attributes."""

    def write(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
        writer.emit(op_type, inputs, outputs, **{name: op.value(name) for name in attributes})

    return write


def cast(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Cast to the ONNX number of the element type; small floats do not saturate here."""
    target = op.value("to")
    more: dict[str, Any] = {"saturate": 0} if is_small_float(target) else {}
    if isinstance(target, Float8E8M0FNUType):
        more["round_mode"] = "nearest"
    writer.emit("Cast", inputs, outputs, to=number_of_element(target), **more)


def clip(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Clip; a bound that changes nothing is omitted: ONNX's default is the extreme number."""
    bounds = [op.value("min"), op.value("max")]
    element = op.type.element_type
    names = [
        "" if v == default else writer.scalar(v, element, role)
        for v, default, role in zip(bounds, finite_range(element), ("min", "max"), strict=True)
    ]
    while names and not names[-1]:
        names.pop()
    writer.emit("Clip", [*inputs, *names], outputs)


def operands_of(writer: NodeWriter, op: GraphOp) -> list[str]:
    """Names of the operands for the op's node; transposes and expands them first where needed."""
    kind = op.name.removeprefix("graph.")
    if kind in _BROADCASTING:
        return broadcastable(writer, op.operands, shape_of(op.results[0]))
    if kind == "matmul" and not _is_gemm(op):
        flags = [op.value("transpose_a"), op.value("transpose_b")]
        return batched(writer, op.operands, flags)
    if kind == "broadcast":  # it writes its operand itself
        return []
    return [writer.name(v) for v in op.operands]


def _is_gemm(op: GraphOp) -> bool:
    """Whether a product is one of float matrices, at least one of them read transposed."""
    flags = (op.value("transpose_a"), op.value("transpose_b"))
    shape = shape_of(op.results[0])
    return any(flags) and len(shape) == 2 and is_float(op.type.element_type)


def matmul(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Gemm if a float matrix is read transposed, else MatMul with explicit transposes."""
    if not _is_gemm(op):
        writer.emit("MatMul", inputs, outputs)
        return
    flags = [int(op.value(name)) for name in ("transpose_a", "transpose_b")]
    writer.emit("Gemm", inputs, outputs, transA=flags[0], transB=flags[1])


def g2bmm(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """A band of the product of x and y transposed (graph.g2bmm), of which ONNX has no op.

    x is multiplied with all of y, padded by `reach` rows at both ends. Then each row is padded by
    one and all are reshaped to their old length and one more, so row i is shifted by i: the
    diagonals are columns, and a slice takes those of the band.
    """
    batch, rows, columns = op.type.get_shape()
    dilation = op.value("dilation")
    reach = op.value("width") * dilation  # rows of y before and after row i that the band holds
    around = writer.integers([0, reach, 0, 0, reach, 0], "pads")
    padded = writer.emit("Transpose", [writer.emit("Pad", [inputs[1], around])], perm=[0, 2, 1])
    product = writer.emit("MatMul", [inputs[0], padded])
    flat = writer.emit(
        "Reshape", [product, writer.integers([batch, rows * (rows + 2 * reach)], "flat")]
    )
    longer = writer.emit("Pad", [flat, writer.integers([0, 0, 0, rows], "pads")])
    skewed = [batch, rows, rows + 2 * reach + 1]
    skew = writer.emit("Reshape", [longer, writer.integers(skewed, "skewed")])
    ends = [(columns - 1) * dilation + 1, 2, dilation]
    wanted = [writer.integers([v], role) for v, role in zip([0, *ends], _SLICE, strict=True)]
    writer.emit("Slice", [skew, *wanted], outputs)


_SLICE = ("starts", "ends", "axes", "steps")


def gbmm(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """A band times y (graph.gbmm): the band as a full matrix with zeros around, times padded y.

    The shift of rows by reshapes is that of `g2bmm`, undone.
    """
    batch, rows, columns = shape_of(op.operands[0])
    dilation = op.value("dilation")
    reach = (columns // 2) * dilation
    full = rows + 2 * reach
    spread = writer.emit(
        "Reshape", [inputs[0], writer.integers([batch, rows, columns, 1], "spread")]
    )
    spread = writer.emit("Pad", [spread, writer.integers([0] * 7 + [dilation - 1], "pads")])
    skewed = [batch, rows, columns * dilation]
    skew = writer.emit("Reshape", [spread, writer.integers(skewed, "skewed")])
    longer = writer.integers([0, 0, 0, 0, 0, full + 1 - columns * dilation], "pads")
    flat = writer.integers([batch, rows * (full + 1)], "flat")
    row = writer.emit("Reshape", [writer.emit("Pad", [skew, longer]), flat])
    cropped = writer.emit("Pad", [row, writer.integers([0, 0, 0, -rows], "pads")])
    band = writer.emit("Reshape", [cropped, writer.integers([batch, rows, full], "band")])
    around = writer.integers([0, reach, 0, 0, reach, 0], "pads")
    writer.emit("MatMul", [band, writer.emit("Pad", [inputs[1], around])], outputs)


def resample(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Weighted sums of shifted elements along one axis (graph.resample), as for interpolation.

    For each tap its elements, gathered from the padded operand, times its row of weights.
    """
    shape, (taps, out) = shape_of(op.operands[0]), shape_of(op.operands[1])
    axis, rank = op.value("axis"), len(shape)
    # `per` is the denominator of the step.
    first = [(op.value("step") * k + op.value("shift")) // op.value("per") for k in range(out)]
    low = max(0, -min(first, default=0))
    high = max(0, max(first, default=0) + taps - shape[axis])
    pads = [low if k == axis else high if k == axis + rank else 0 for k in range(2 * rank)]
    padded = (
        writer.emit("Pad", [inputs[0], writer.integers(pads, "pads")]) if low or high else inputs[0]
    )
    column = writer.integers([out] + [1] * (rank - axis - 1), "column")
    parts: list[str] = []
    for t in range(taps):
        positions = writer.integers([k + low + t for k in first], f"positions{t}")
        taken = writer.emit("Gather", [padded, positions], axis=axis)
        row = writer.emit("Gather", [inputs[1], writer.integers([t], f"tap{t}")], axis=0)
        parts.append(writer.emit("Mul", [taken, writer.emit("Reshape", [row, column])]))
    writer.emit("Sum", parts, outputs)


def conv(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Conv; with a negative pad, which crops, all of them are a Pad before it."""
    pads, spatial = list(op.ints("pads")), len(op.ints("strides"))
    if any(p < 0 for p in pads):
        full = [0, 0, *pads[:spatial], 0, 0, *pads[spatial:]]
        inputs = [writer.emit("Pad", [inputs[0], writer.integers(full, "pads")]), *inputs[1:]]
        pads = [0] * len(pads)
    writer.emit("Conv", inputs, outputs, pads=pads, **_convolution(op))


def _convolution(op: GraphOp) -> dict[str, Any]:
    return {
        "strides": list(op.ints("strides")),
        "dilations": list(op.ints("dilations")),
        "group": op.value("groups"),
        "kernel_shape": list(shape_of(op.operands[1])[2:]),
    }


def conv_transpose(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """ConvTranspose; negative pads, which extend the result, are a Pad before the bias."""
    pads, spatial = list(op.ints("pads")), len(op.ints("strides"))
    settings = _convolution(op)
    settings["output_padding"] = list(op.ints("output_padding"))
    if all(p >= 0 for p in pads):
        writer.emit("ConvTranspose", inputs, outputs, pads=pads, **settings)
        return
    bare = writer.emit("ConvTranspose", inputs[:2], pads=[max(p, 0) for p in pads], **settings)
    extra = [max(-p, 0) for p in pads]
    full = [0, 0, *extra[:spatial], 0, 0, *extra[spatial:]]
    if len(inputs) == 2:
        writer.emit("Pad", [bare, writer.integers(full, "pads")], outputs)
        return
    padded = writer.emit("Pad", [bare, writer.integers(full, "pads")])
    bias = writer.emit("Reshape", [inputs[2], writer.integers([-1, *[1] * spatial], "shape")])
    writer.emit("Add", [padded, bias], outputs)


def pool(op_type: str) -> Writer:
    """MaxPool and AveragePool."""

    def write(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
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
        writer.emit(op_type, inputs, outputs, **attributes)

    return write


def reduction(op_type: str) -> Writer:
    """Axes as an input (ReduceSum; all from opset 18 on) or an attribute; none is Identity."""

    def write(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
        axes, keep = list(op.ints("axes")), int(op.value("keep_dims"))
        if not axes:
            writer.emit("Identity", inputs, outputs)
        elif op_type == "ReduceSum" or writer.opset >= 18:
            writer.emit(op_type, [*inputs, writer.integers(axes, "axes")], outputs, keepdims=keep)
        else:
            writer.emit(op_type, inputs, outputs, axes=axes, keepdims=keep)

    return write


def reshape(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Reshape; a 0 in the shape is meant as 0."""
    shape = op.ints("shape")
    flags: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
    writer.emit("Reshape", [*inputs, writer.integers(shape, "shape")], outputs, **flags)


def transpose(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Transpose."""
    perm = list(op.ints("perm"))
    writer.emit("Transpose", inputs, outputs, perm=perm or None)  # an empty list has no ONNX type


def broadcast(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Expand, after a Reshape where the operand's dims are not the last ones."""
    expand(writer, op.results[0], outputs)


def slice_(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Slice; an end is one step past the last element: INT64_MIN where that is before element 0."""
    starts, sizes, steps = op.ints("starts"), op.ints("sizes"), op.ints("steps")
    ends = [s + n * step for s, n, step in zip(starts, sizes, steps, strict=True)]
    ends = [_INT64_MIN if end < 0 else end for end in ends]
    ends = [s if n == 0 else end for s, n, end in zip(starts, sizes, ends, strict=True)]
    operands = [
        (starts, "starts"),
        (ends, "ends"),
        (list(range(len(starts))), "axes"),
        (steps, "steps"),
    ]
    if not starts:
        writer.emit("Identity", inputs, outputs)
        return
    writer.emit(
        "Slice", [*inputs, *(writer.integers(values, role) for values, role in operands)], outputs
    )


def split(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Split by sizes."""
    sizes = writer.integers(op.ints("sizes"), "sizes")
    writer.emit("Split", [*inputs, sizes], outputs, axis=op.value("axis"))


def pad(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Constant Pad; a fill of 0 is left out."""
    fill, names = op.value("fill"), [*inputs, writer.integers(op.ints("pads"), "pads")]
    if fill != 0:
        names.append(writer.scalar(fill, op.type.element_type, "fill"))
    writer.emit("Pad", names, outputs)


def iota(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """Range, up to what is never reached."""
    (start,), (size,), (step,) = (op.ints(name) for name in ("start", "size", "step"))
    if step == 0:
        raise op.fail("a step of 0 has no ONNX form")
    bounds = {"start": start, "limit": start + size * step, "delta": step}
    names = [writer.scalar(value, op.type.element_type, name) for name, value in bounds.items()]
    writer.emit("Range", names, outputs)


def arg_max(writer: NodeWriter, op: GraphOp, inputs: list[str], outputs: list[str]) -> None:
    """ArgMax, extent 1 kept."""
    writer.emit("ArgMax", inputs, outputs, axis=op.value("axis"), keepdims=1)


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
    "iota": iota,
}
