"""Made by scripts/builder_stub.py from the op definitions."""

import inspect
from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from .graph import GraphOp

CLASSES: dict[str, type[GraphOp]]

def method_name(op_name: str) -> str: ...
def docstring(op: type[GraphOp]) -> str: ...
def signature(op: type[GraphOp]) -> inspect.Signature: ...

class GraphOps:
    def op(
        self, op_name: str, *operands: SSAValue, results: int = 1, **properties: Any
    ) -> SSAValue: ...
    def abs(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """abs(x), elementwise. ONNX Abs."""
    def neg(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """neg(x), elementwise. ONNX Neg."""
    def exp(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """exp(x), elementwise. ONNX Exp."""
    def log(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """log(x), elementwise. ONNX Log."""
    def sqrt(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """sqrt(x), elementwise. ONNX Sqrt."""
    def tanh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """tanh(x), elementwise. ONNX Tanh."""
    def erf(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """erf(x), elementwise. ONNX Erf."""
    def floor(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """floor(x), elementwise. ONNX Floor."""
    def ceil(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """ceil(x), elementwise. ONNX Ceil."""
    def round(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """roundeven(x), elementwise. ONNX Round."""
    def sin(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """sin(x), elementwise. ONNX Sin."""
    def cos(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """cos(x), elementwise. ONNX Cos."""
    def tan(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """tan(x), elementwise. ONNX Tan."""
    def asin(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """asin(x), elementwise. ONNX Asin."""
    def acos(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """acos(x), elementwise. ONNX Acos."""
    def atan(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """atan(x), elementwise. ONNX Atan."""
    def sinh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """sinh(x), elementwise. ONNX Sinh."""
    def cosh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """cosh(x), elementwise. ONNX Cosh."""
    def asinh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """asinh(x), elementwise. ONNX Asinh."""
    def acosh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """acosh(x), elementwise. ONNX Acosh."""
    def atanh(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """atanh(x), elementwise. ONNX Atanh."""
    def add(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """add(a, b), elementwise. ONNX Add."""
    def sub(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """sub(a, b), elementwise. ONNX Sub."""
    def mul(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """mul(a, b), elementwise. ONNX Mul."""
    def div(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """div(a, b), elementwise. ONNX Div."""
    def max(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """max(a, b), elementwise. ONNX Max."""
    def min(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """min(a, b), elementwise. ONNX Min."""
    def pow(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """pow(a, b), elementwise. ONNX Pow."""
    def equal(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """eq(a, b), elementwise. ONNX Equal."""
    def less(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """lt(a, b), elementwise. ONNX Less."""
    def less_equal(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """le(a, b), elementwise. ONNX LessOrEqual."""
    def greater(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """gt(a, b), elementwise. ONNX Greater."""
    def greater_equal(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """ge(a, b), elementwise. ONNX GreaterOrEqual."""
    def and_(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """and(a, b), elementwise. ONNX And."""
    def or_(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """or(a, b), elementwise. ONNX Or."""
    def xor(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """xor(a, b), elementwise. ONNX Xor."""
    def relu(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """max(x, 0), NaN kept. ONNX Relu."""
    def sigmoid(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """1 / (1 + exp(-x)). ONNX Sigmoid."""
    def softplus(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """log(1 + exp(x)). ONNX Softplus."""
    def reciprocal(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """1 / x. ONNX Reciprocal."""
    def leaky_relu(
        self,
        x: SSAValue,
        /,
        *,
        alpha: float | None = 0.01,
    ) -> SSAValue:
        """x where x >= 0, alpha * x elsewhere. ONNX LeakyRelu."""
    def elu(
        self,
        x: SSAValue,
        /,
        *,
        alpha: float | None = 1.0,
    ) -> SSAValue:
        """x where x >= 0, alpha * (exp(x) - 1) elsewhere. ONNX Elu."""
    def hard_sigmoid(
        self,
        x: SSAValue,
        /,
        *,
        alpha: float | None = 0.2,
        beta: float | None = 0.5,
    ) -> SSAValue:
        """max(0, min(1, alpha * x + beta)). ONNX HardSigmoid."""
    def clip(
        self,
        x: SSAValue,
        /,
        *,
        min: float | None = ...,
        max: float | None = ...,
    ) -> SSAValue:
        """min(max(x, min), max) with literal bounds. ONNX Clip, Relu6."""
    def not_(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """Logical not. ONNX Not."""
    def is_nan(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """x != x. ONNX IsNaN."""
    def sign(
        self,
        x: SSAValue,
        /,
    ) -> SSAValue:
        """-1, 0 or 1; NaN stays NaN. ONNX Sign."""
    def cast(
        self,
        x: SSAValue,
        /,
        *,
        to: Attribute,
    ) -> SSAValue:
        """Convert the element type: floats to integers truncate and saturate, NaN gives 0. ONNX Cast.

        To a narrower float it rounds, and overflows to infinity (to NaN in a type without, as Cast with
        saturate 0; small_floats.py has those of 8 and 4 bits). Integers wrap. Unsigned integers,
        integers of 2 and 4 bits and floats of 8 and 4 bits are data: this op and those that move data
        take them."""
    def where(
        self,
        condition: SSAValue,
        a: SSAValue,
        b: SSAValue,
        /,
    ) -> SSAValue:
        """a where condition, b elsewhere. ONNX Where."""
    def matmul(
        self,
        a: SSAValue,
        b: SSAValue,
        /,
        *,
        transpose_a: bool | None = False,
        transpose_b: bool | None = False,
    ) -> SSAValue:
        """Batched matrix product: [..., m, k] x [..., k, n] -> [..., m, n], equal batch dims.

        `transpose_a`/`transpose_b` read the last two dims swapped. ONNX MatMul, Gemm."""
    def g2bmm(
        self,
        x: SSAValue,
        y: SSAValue,
        /,
        *,
        width: int,
        dilation: int | None = 1,
    ) -> SSAValue:
        """General matrices to a band: x, y [b, m, k] -> [b, m, 2 * width + 1].

        Row i meets the rows of y around it, `dilation` apart: out[b, i, j] = sum over k of
        x[b, i, k] * y[b, i + (j - width) * dilation, k]; rows outside y are zeros."""
    def gbmm(
        self,
        band: SSAValue,
        y: SSAValue,
        /,
        *,
        dilation: int | None = 1,
    ) -> SSAValue:
        """A band times general matrices: band [b, m, 2 * w + 1], y [b, m, n] -> [b, m, n].

        out[b, i, n] = sum over j of band[b, i, j] * y[b, i + (j - w) * dilation, n]; rows outside y
        are zeros."""
    def conv(
        self,
        x: SSAValue,
        w: SSAValue,
        bias: SSAValue | None = None,
        /,
        *,
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        groups: int | None = 1,
    ) -> SSAValue:
        """Convolution of any spatial rank: x [n, c, *in], w [f, c / groups, *kernel] -> [n, f, *out].

        `pads` are begins then ends, as in ONNX; zeros outside. ONNX Conv."""
    def conv_transpose(
        self,
        x: SSAValue,
        w: SSAValue,
        bias: SSAValue | None = None,
        /,
        *,
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        groups: int | None = 1,
        output_padding: Sequence[int],
    ) -> SSAValue:
        """Transposed convolution: x [n, c, *in], w [c, f / groups, *kernel] -> [n, f, *out].

        out = (in - 1) * stride + dilation * (kernel - 1) + 1 + output_padding - pads. Written in gather
        form: output o takes tap r from input (o + pad - dilation * r) / stride where that division is
        exact. A floor and a read of ones (a guard) express this. ONNX ConvTranspose."""
    def resample(
        self,
        x: SSAValue,
        weights: SSAValue,
        /,
        *,
        axis: int,
        step: int | None = 1,
        shift: int | None = 0,
        per: int | None = 1,
    ) -> SSAValue:
        """Weighted sums of neighbours along `axis`. ONNX Resize (linear, cubic), Upsample.

        Result k weighs the elements from position (step * k + shift) floordiv per on, weights [taps,
        out]: y[k] = sum over t of x[(step * k + shift) floordiv per + t] * weights[t, k]; 0 outside x."""
    def max_pool(
        self,
        x: SSAValue,
        /,
        *,
        kernel: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        ceil_mode: bool | None = False,
    ) -> SSAValue:
        """Maximum over a window; outside counts as the least value. ONNX MaxPool (first output)."""
    def avg_pool(
        self,
        x: SSAValue,
        /,
        *,
        kernel: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        ceil_mode: bool | None = False,
        count_include_pad: bool | None = False,
    ) -> SSAValue:
        """Mean over a window, by the window's size or by the number of taps inside the image.

        With `count_include_pad`, taps in the pads count, taps beyond them (ceil_mode) do not.
        ONNX AveragePool."""
    def reduce_sum(
        self,
        x: SSAValue,
        /,
        *,
        axes: Sequence[int],
        keep_dims: bool | None = True,
    ) -> SSAValue:
        """Sum along axes. ONNX ReduceSum."""
    def reduce_max(
        self,
        x: SSAValue,
        /,
        *,
        axes: Sequence[int],
        keep_dims: bool | None = True,
    ) -> SSAValue:
        """Maximum along axes. ONNX ReduceMax, GlobalMaxPool."""
    def reduce_min(
        self,
        x: SSAValue,
        /,
        *,
        axes: Sequence[int],
        keep_dims: bool | None = True,
    ) -> SSAValue:
        """Minimum along axes. ONNX ReduceMin."""
    def reduce_prod(
        self,
        x: SSAValue,
        /,
        *,
        axes: Sequence[int],
        keep_dims: bool | None = True,
    ) -> SSAValue:
        """Product along axes. ONNX ReduceProd."""
    def reduce_mean(
        self,
        x: SSAValue,
        /,
        *,
        axes: Sequence[int],
        keep_dims: bool | None = True,
    ) -> SSAValue:
        """Mean along axes. ONNX ReduceMean, GlobalAveragePool."""
    def softmax(
        self,
        x: SSAValue,
        /,
        *,
        axis: int,
    ) -> SSAValue:
        """exp(x - max) / sum(exp(x - max)) along `axis`. ONNX Softmax (opset 13 meaning)."""
    def log_softmax(
        self,
        x: SSAValue,
        /,
        *,
        axis: int,
    ) -> SSAValue:
        """x - max - log(sum(exp(x - max))) along `axis`. ONNX LogSoftmax (opset 13 meaning)."""
    def layer_norm(
        self,
        x: SSAValue,
        scale: SSAValue,
        bias: SSAValue | None = None,
        /,
        *,
        axis: int,
        epsilon: float | None = 1e-05,
    ) -> SSAValue:
        """(x - mean) * rsqrt(variance + epsilon) * scale + bias over dims `axis` ... rank-1.

        scale and bias have the shape of the normalised dims. ONNX LayerNormalization (first output)."""
    def instance_norm(
        self,
        x: SSAValue,
        scale: SSAValue,
        bias: SSAValue,
        /,
        *,
        epsilon: float | None = 1e-05,
    ) -> SSAValue:
        """Normalise each (n, c) plane over its spatial dims, then scale and bias per channel.

        ONNX InstanceNormalization."""
    def batch_norm(
        self,
        x: SSAValue,
        scale: SSAValue,
        bias: SSAValue,
        mean: SSAValue,
        variance: SSAValue,
        /,
        *,
        epsilon: float | None = 1e-05,
    ) -> SSAValue:
        """(x - mean) * scale * rsqrt(variance + epsilon) + bias, all four per channel (dim 1).

        The inference form of ONNX BatchNormalization."""
    def lrn(
        self,
        x: SSAValue,
        /,
        *,
        size: int,
        alpha: float | None = 0.0001,
        beta: float | None = 0.75,
        bias: float | None = 1.0,
    ) -> SSAValue:
        """x / (bias + alpha / size * squares of `size` neighbours, summed) ^ beta. ONNX LRN."""
    def reshape(
        self,
        x: SSAValue,
        /,
        *,
        shape: Sequence[int],
    ) -> SSAValue:
        """The same elements in row-major order under another shape. ONNX Reshape, Flatten, Squeeze."""
    def transpose(
        self,
        x: SSAValue,
        /,
        *,
        perm: Sequence[int],
    ) -> SSAValue:
        """Result dim k is operand dim `perm[k]`. ONNX Transpose."""
    def broadcast(
        self,
        x: SSAValue,
        /,
        *,
        shape: Sequence[int],
        dims: Sequence[int],
    ) -> SSAValue:
        """Operand dim k becomes result dim `dims[k]`, of its extent, or from extent 1.

        `dims` is increasing; the other result dims are new. ONNX Expand, and implicit broadcasting."""
    def concat(
        self,
        *inputs: SSAValue,
        axis: int,
    ) -> SSAValue:
        """Operands one after another along `axis`. ONNX Concat."""
    def slice(
        self,
        x: SSAValue,
        /,
        *,
        starts: Sequence[int],
        sizes: Sequence[int],
        steps: Sequence[int],
    ) -> SSAValue:
        """Elements start + step * i, i in [0, size), per dim; steps may be negative. ONNX Slice."""
    def pad(
        self,
        x: SSAValue,
        /,
        *,
        pads: Sequence[int],
        fill: float | None = 0.0,
    ) -> SSAValue:
        """Pad with `fill`: `pads` are begins then ends, negative ones crop. ONNX Pad (constant)."""
    def gather(
        self,
        x: SSAValue,
        indices: SSAValue,
        /,
        *,
        axis: int | None = 0,
    ) -> SSAValue:
        """Slices of `x` along `axis` at integer positions: x[.., indices, ..]. ONNX Gather.

        Negative indices count from the end. An index outside [-size, size) is an error when the
        program runs. Not a tensor expression: reads depend on data."""
    def iota(
        self,
        *,
        start: Sequence[int] | None = [0],
        size: Sequence[int],
        step: Sequence[int] | None = [1],
    ) -> SSAValue:
        """The whole numbers `start + step * i`, i in [0, size), each a list of one. ONNX Range."""
    def arg_max(
        self,
        x: SSAValue,
        /,
        *,
        axis: int,
    ) -> SSAValue:
        """Position of the (first) maximum along `axis`, extent 1 kept. ONNX ArgMax."""
