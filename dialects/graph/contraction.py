"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from ..index import Index, iterators
from ..scalars import Expr
from ..scope_builder import ScopeBuilder, Source
from ..types import Tensor, dims_of, same_type, tensor
from .base import GraphOp, ints_def

_SPATIAL = ("d", "h", "w")
_TAPS = ("q", "r", "s")


def spatial_names(rank: int, names: Sequence[str] = _SPATIAL) -> list[str]:
    """Iterator names of `rank` spatial dims, the last ones first: `w`, `h w`, `d h w`."""
    return list(names[-rank:]) if rank <= 3 else [f"{names[0]}{k}" for k in range(rank)]


@irdl_op_definition
class MatmulOp(GraphOp):
    """Batched matrix product: [..., m, k] x [..., k, n] -> [..., m, n], equal batch dims.

    `transpose_a`/`transpose_b` read the last two dims swapped. ONNX MatMul, Gemm.
    """

    name = "graph.matmul"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    transpose_a = prop_def(BoolAttr)
    transpose_b = prop_def(BoolAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"transpose_a": False, "transpose_b": False}

    def infer(self) -> Tensor:
        a, b = self.operand_type(0), self.operand_type(1)
        left, right = list(dims_of(a)), list(dims_of(b))
        if len(left) < 2 or len(left) != len(right) or left[:-2] != right[:-2]:
            raise self.fail(
                "operands need one rank of at least 2 and equal batch dims", found=f"{a} and {b}"
            )
        if a.element_type != b.element_type:
            raise self.fail("operands need one element type", found=f"{a} and {b}")
        m, k = reversed(left[-2:]) if self.value("transpose_a") else left[-2:]
        k2, n = reversed(right[-2:]) if self.value("transpose_b") else right[-2:]
        if k != k2:
            raise self.fail("inner dims differ", expected=k, found=k2)
        return tensor([*left[:-2], m, n], a.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        a, b = operands
        rank = len(dims_of(self.type))
        *batch, m, n = iterators(rank)
        (k,) = iterators(1, rank)
        inner = a.shape[-2] if self.value("transpose_a") else a.shape[-1]
        left = a[[*batch, k, m] if self.value("transpose_a") else [*batch, m, k]]
        right = b[[*batch, n, k] if self.value("transpose_b") else [*batch, k, n]]
        names = [*(f"b{i}" for i in range(rank - 2)), "m", "n", "k"]
        return build.scope(self.type, left * right, [inner], names=names)


class ConvolutionOp(GraphOp):
    """The base of conv and conv_transpose. x: [n, c, *spatial]; properties per spatial dim."""

    x = operand_def(TensorType)
    w = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    strides = ints_def()
    pads = ints_def()
    dilations = ints_def()
    groups = prop_def(IntegerAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"groups": 1}

    def _check(self) -> tuple[Tensor, Tensor, int]:
        """Types of x and w and the number of spatial dims, after checking that they fit."""
        x, w = self.operand_type(0), self.operand_type(1)
        spatial = len(dims_of(x)) - 2
        if spatial < 1 or len(dims_of(w)) != spatial + 2:
            raise self.fail("x and w need one rank of at least 3", found=f"{x} and {w}")
        for name, count in (("strides", 1), ("dilations", 1), ("pads", 2)):
            if len(self.ints(name)) != count * spatial:
                raise self.fail(
                    f"'{name}' needs {count * spatial} numbers", found=list(self.ints(name))
                )
        if any(s < 1 for s in (*self.ints("strides"), *self.ints("dilations"))):
            raise self.fail("strides and dilations are at least 1")
        if self.value("groups") < 1:
            raise self.fail("'groups' is at least 1", found=self.value("groups"))
        if x.element_type != w.element_type:
            raise self.fail("x and w need one element type", found=f"{x} and {w}")
        return x, w, spatial

    def _check_bias(self, result: Tensor) -> Tensor:
        expected = tensor(dims_of(result)[1:2], result.element_type)
        if len(self.operands) == 3 and not same_type(self.operand_type(2), expected):
            raise self.fail(
                "bias needs one number per output channel",
                expected=expected,
                found=self.operand_type(2),
            )
        return result


def _widened(build: ScopeBuilder, operands: Sequence[Source]) -> Sequence[Source]:
    """With a bias there are two steps, and half floats are rounded after the second."""
    return operands if len(operands) == 2 else [build.widened(x) for x in operands]


def _add_bias(
    result: Tensor, value: Source, bias: Sequence[Source], build: ScopeBuilder, names: Sequence[str]
) -> Source:
    """The sum of products, plus the bias if there is one, in the result's type."""
    if not bias:
        return value
    rank = len(value.shape)
    expr: Expr = value.here() + bias[0][iterators(rank)[1]]
    return build.narrowed(result, expr, value, list(names)[:rank])


@irdl_op_definition
class ConvOp(ConvolutionOp):
    """Convolution of any spatial rank: x [n, c, *in], w [f, c / groups, *kernel] -> [n, f, *out].

    `pads` are begins then ends, as in ONNX; zeros outside. ONNX Conv.
    """

    name = "graph.conv"

    def infer(self) -> Tensor:
        x, w, spatial = self._check()
        n, c, *size = dims_of(x)
        f, per_group, *kernel = dims_of(w)
        groups = self.value("groups")
        if c != per_group * groups or f % groups != 0:
            raise self.fail(
                f"channels do not fit {groups} groups", expected=per_group * groups, found=c
            )
        pads, out = self.ints("pads"), list[int]()
        for k in range(spatial):
            reach = (kernel[k] - 1) * self.ints("dilations")[k] + 1
            room = size[k] + pads[k] + pads[k + spatial] - reach
            if room < 0:
                raise self.fail(f"the kernel is larger than the padded image in dim {k}")
            out.append(room // self.ints("strides")[k] + 1)
        return self._check_bias(tensor([n, f, *out], x.element_type))

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, w, *bias = _widened(build, operands)
        f_count, per_group, *kernel = w.shape
        spatial, groups = len(kernel), self.value("groups")
        n, f, *position = iterators(spatial + 2)
        c, *tap = iterators(spatial + 1, spatial + 2)
        stride, dilation, pad = self.ints("strides"), self.ints("dilations"), self.ints("pads")
        at = [position[k] * stride[k] + tap[k] * dilation[k] - pad[k] for k in range(spatial)]
        # With no filters nothing is computed, but the expression must be valid.
        per_filter_group = max(1, f_count // groups)
        channel = c if groups == 1 else (f // per_filter_group) * per_group + c
        names = ["n", "f", *spatial_names(spatial), "c", *spatial_names(spatial, _TAPS)]
        expr = x[[n, channel, *at]] * w[[f, c, *tap]]
        whole = tensor(dims_of(self.type), x.element)
        y = build.scope(whole, expr, [per_group, *kernel], names=names)
        return _add_bias(self.type, y, bias, build, names)


@irdl_op_definition
class ConvTransposeOp(ConvolutionOp):
    """Transposed convolution: x [n, c, *in], w [c, f / groups, *kernel] -> [n, f, *out].

    out = (in - 1) * stride + dilation * (kernel - 1) + 1 + output_padding - pads. Written in gather
    form: output o takes tap r from input (o + pad - dilation * r) / stride where that division is
    exact. A floor and a read of ones (a guard) express this. ONNX ConvTranspose.
    """

    name = "graph.conv_transpose"
    output_padding = ints_def()

    def infer(self) -> Tensor:
        groups = self.value("groups")
        x, w, spatial = self._check()
        n, c, *size = dims_of(x)
        if dims_of(w)[0] != c:
            raise self.fail("w needs one row per input channel", expected=c, found=dims_of(w)[0])
        if c % groups != 0:
            raise self.fail(f"channels do not fit {groups} groups", found=c)
        pads, extra = self.ints("pads"), self.ints("output_padding")
        if len(extra) != spatial:
            raise self.fail(f"'output_padding' needs {spatial} numbers", found=list(extra))
        out = [
            (size[k] - 1) * self.ints("strides")[k]
            + (dims_of(w)[k + 2] - 1) * self.ints("dilations")[k]
            + 1
            + extra[k]
            - pads[k]
            - pads[k + spatial]
            for k in range(spatial)
        ]
        if any(size < 1 for size in out):
            raise self.fail("the pads leave no output", found=out)
        return self._check_bias(tensor([n, dims_of(w)[1] * groups, *out], x.element_type))

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, w, *bias = _widened(build, operands)
        c_count, f_per_group, *kernel = w.shape
        f_per_group = max(1, f_per_group)  # with no filters nothing is computed
        spatial, groups = len(kernel), self.value("groups")
        n, f, *position = iterators(spatial + 2)
        c, *tap = iterators(spatial + 1, spatial + 2)
        stride, dilation, pad = self.ints("strides"), self.ints("dilations"), self.ints("pads")
        reach = [position[k] + pad[k] - tap[k] * dilation[k] for k in range(spatial)]
        per_group = c_count // groups
        channel = c if groups == 1 else (f // f_per_group) * per_group + c
        at = [reach[k] // stride[k] for k in range(spatial)]
        filters = w[[channel, f, *tap]] if groups == 1 else self._by_feature(build, w)[[f, c, *tap]]
        expr: Expr = x[[n, channel, *at]] * filters
        guards = [reach[k] % stride[k] for k in range(spatial) if stride[k] > 1]
        if guards:
            one = build.ones([1] * len(guards), x.element)
            expr = expr * one[guards]
        names = ["n", "f", *spatial_names(spatial), "c", *spatial_names(spatial, _TAPS)]
        whole = tensor(dims_of(self.type), x.element)
        y = build.scope(whole, expr, [per_group, *kernel], names=names)
        return _add_bias(self.type, y, bias, build, names)

    def _by_feature(self, build: ScopeBuilder, w: Source) -> Source:
        """The filters of groups as a convolution has them: [f, c / groups, *kernel]."""
        c_count, f_per_group, *kernel = w.shape
        per_group, f_per_group = c_count // self.value("groups"), max(1, f_per_group)
        f, c, *tap = iterators(len(kernel) + 2)
        here = [(f // f_per_group) * per_group + c, f % f_per_group, *tap]
        shape = [w.shape[1] * self.value("groups"), per_group, *kernel]
        return build.pointwise(tensor(shape, w.element), w[here])


@irdl_op_definition
class G2bmmOp(GraphOp):
    """General matrices to a band: x, y [b, m, k] -> [b, m, 2 * width + 1].

    Row i meets the rows of y around it, `dilation` apart: out[b, i, j] = sum over k of
    x[b, i, k] * y[b, i + (j - width) * dilation, k]; rows outside y are zeros.
    """

    name = "graph.g2bmm"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    width = prop_def(IntegerAttr)
    dilation = prop_def(IntegerAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"dilation": 1}

    def infer(self) -> Tensor:
        x, y = self.operand_type(0), self.operand_type(1)
        if len(dims_of(x)) != 3 or not same_type(x, y):
            raise self.fail("operands need one type of rank 3", found=f"{x} and {y}")
        if self.value("width") < 0 or self.value("dilation") < 1:
            raise self.fail("'width' is at least 0 and 'dilation' at least 1")
        b, m, _ = dims_of(x)
        return tensor([b, m, 2 * self.value("width") + 1], x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, y = operands
        b, i, j, k = iterators(4)
        row = i + (j - self.value("width")) * self.value("dilation")
        return build.scope(self.type, x[b, i, k] * y[b, row, k], [x.shape[2]], names="bijk")


@irdl_op_definition
class GbmmOp(GraphOp):
    """A band times general matrices: band [b, m, 2 * w + 1], y [b, m, n] -> [b, m, n].

    out[b, i, n] = sum over j of band[b, i, j] * y[b, i + (j - w) * dilation, n]; rows outside y
    are zeros.
    """

    name = "graph.gbmm"
    band = operand_def(TensorType)
    y = operand_def(TensorType)
    dilation = prop_def(IntegerAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"dilation": 1}

    def infer(self) -> Tensor:
        band, y = self.operand_type(0), self.operand_type(1)
        if len(dims_of(band)) != 3 or len(dims_of(y)) != 3:
            raise self.fail("operands need rank 3", found=f"{band} and {y}")
        if dims_of(band)[:2] != dims_of(y)[:2] or band.element_type != y.element_type:
            raise self.fail("batch, rows or element types differ", found=f"{band} and {y}")
        if dims_of(band)[2] % 2 == 0:
            raise self.fail("a band has an odd number of columns", found=band)
        if self.value("dilation") < 1:
            raise self.fail("'dilation' is at least 1", found=self.value("dilation"))
        return y

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        band, y = operands
        b, i, n, j = iterators(4)
        columns = band.shape[2]
        row = i + (j - columns // 2) * self.value("dilation")
        return build.scope(self.type, band[b, i, j] * y[b, row, n], [columns], names="binj")


@irdl_op_definition
class ResampleOp(GraphOp):
    """Weighted sums of neighbours along `axis`. ONNX Resize (linear, cubic), Upsample.

    Result k weighs the elements from position (step * k + shift) floordiv per on, weights [taps,
    out]: y[k] = sum over t of x[(step * k + shift) floordiv per + t] * weights[t, k]; 0 outside x.
    """

    name = "graph.resample"
    x = operand_def(TensorType)
    weights = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    step = prop_def(IntegerAttr)
    shift = prop_def(IntegerAttr)
    per = prop_def(IntegerAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"step": 1, "shift": 0, "per": 1}

    def infer(self) -> Tensor:
        x, weights, axis = self.operand_type(0), self.operand_type(1), self.value("axis")
        shape = dims_of(x)
        if not 0 <= axis < len(shape):
            raise self.fail(f"axis {axis} is not in [0, {len(shape)})")
        if len(dims_of(weights)) != 2 or weights.element_type != x.element_type:
            raise self.fail("weights need rank 2 and the operand's element type", found=weights)
        if self.value("step") < 1 or self.value("per") < 1:
            raise self.fail("'step' and 'per' are at least 1")
        return tensor([*shape[:axis], dims_of(weights)[1], *shape[axis + 1 :]], x.element_type)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x, weights = operands
        axis, rank = self.value("axis"), len(x.shape)
        here, tap = iterators(rank), Index.iterator(rank)
        out = here[axis]
        first = (out * self.value("step") + self.value("shift")) // self.value("per")
        at = [*here[:axis], first + tap, *here[axis + 1 :]]
        return build.scope(self.type, x[at] * weights[tap, out], [weights.shape[0]])


CONTRACTION_OPS = (MatmulOp, G2bmmOp, GbmmOp, ConvOp, ConvTransposeOp, ResampleOp)
