"""Host code for library steps: cuBLAS products and cuDNN convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from .program_data import ConvCall, ConvTensor, Gemm, GemmOperand

BUILD = {"cublas": "-lcublas", "cudnn": "-lcudnn"}

GEMM = """\
static void check(cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "%s\\n", cublasGetStatusString(status));
    std::exit(1);
}

static cublasHandle_t make_blas(cudaStream_t stream) {
    cublasHandle_t blas = nullptr;
    check(cublasCreate(&blas));
    check(cublasSetStream(blas, stream));
    check(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH));  // full float: no TF32
    return blas;
}

struct Matrix {
    const float *first;
    long long row_stride, batch_stride;
    bool transposed;
};

// c = a b for every product of a batch, row-major: cuBLAS sees the transposed product b' a' = c'.
static void gemm(cublasHandle_t blas, int batch, int m, int n, int k, Matrix a, Matrix b,
                 float *c, long long row_stride, long long batch_stride) {
    const float one = 1.0f, zero = 0.0f;
    check(cublasSgemmStridedBatched(
        blas, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        n, m, k, &one, b.first, b.row_stride, b.batch_stride, a.first, a.row_stride,
        a.batch_stride, &zero, c, row_stride, batch_stride, batch));
}
"""

CONV = """\
static void check(cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::fprintf(stderr, "%s\\n", cudnnGetErrorString(status));
    std::exit(1);
}

static cudnnHandle_t make_dnn(cudaStream_t stream) {
    cudnnHandle_t dnn = nullptr;
    check(cudnnCreate(&dnn));
    check(cudnnSetStream(dnn, stream));
    return dnn;
}

struct Tensor {
    float *first;
    std::vector<int> dims, strides;
};

static cudnnTensorDescriptor_t describe(const Tensor &tensor) {
    cudnnTensorDescriptor_t made = nullptr;
    check(cudnnCreateTensorDescriptor(&made));
    check(cudnnSetTensorNdDescriptor(made, CUDNN_DATA_FLOAT, static_cast<int>(tensor.dims.size()),
                                     tensor.dims.data(), tensor.strides.data()));
    return made;
}

// out = convolution of data; transposed: data's part is that of a convolution's result. With a bias
// out = max(convolution + bias + residual, 0), the residual being out itself where there is none.
static void convolve(cudnnHandle_t dnn, const Tensor &data, const float *weights,
                     const std::vector<int> &filter, const Tensor &out,
                     const std::vector<int> &pads, const std::vector<int> &strides,
                     const std::vector<int> &dilations, int groups, bool transposed,
                     const Tensor &bias = {}, const Tensor &residual = {}) {
    const float one = 1.0f, zero = 0.0f;
    cudnnTensorDescriptor_t from = describe(data), to = describe(out);
    cudnnFilterDescriptor_t taps = nullptr;
    check(cudnnCreateFilterDescriptor(&taps));
    check(cudnnSetFilterNdDescriptor(taps, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                     static_cast<int>(filter.size()), filter.data()));
    cudnnConvolutionDescriptor_t how = nullptr;
    check(cudnnCreateConvolutionDescriptor(&how));
    check(cudnnSetConvolutionNdDescriptor(how, static_cast<int>(pads.size()), pads.data(),
                                          strides.data(), dilations.data(),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionGroupCount(how, groups));
    check(cudnnSetConvolutionMathType(how, CUDNN_FMA_MATH));  // full float: no TF32
    if (bias.first != nullptr) {
        cudnnTensorDescriptor_t offset = describe(bias), added = describe(residual);
        cudnnActivationDescriptor_t relu = nullptr;
        check(cudnnCreateActivationDescriptor(&relu));
        check(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
        const float *by = residual.first == out.first ? &zero : &one;  // no residual: out, times 0
        check(cudnnConvolutionBiasActivationForward(
            dnn, &one, from, data.first, taps, weights, how,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, by, added, residual.first, offset,
            bias.first, relu, to, out.first));
        check(cudnnDestroyActivationDescriptor(relu));
        check(cudnnDestroyTensorDescriptor(added));
        check(cudnnDestroyTensorDescriptor(offset));
    } else if (transposed)
        check(cudnnConvolutionBackwardData(dnn, &one, taps, weights, from, data.first, how,
                                           CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, &zero,
                                           to, out.first));
    else
        check(cudnnConvolutionForward(dnn, &one, from, data.first, taps, weights, how,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero,
                                      to, out.first));
    check(cudnnDestroyConvolutionDescriptor(how));
    check(cudnnDestroyFilterDescriptor(taps));
    check(cudnnDestroyTensorDescriptor(to));
    check(cudnnDestroyTensorDescriptor(from));
}
"""


def gemm_call(step: Gemm, names: Sequence[str]) -> str:
    """The statement that runs a product."""
    c = step.c
    return (
        f"gemm(blas, {step.batch}, {step.m}, {step.n}, {step.k}, {_matrix(step.a, names)}, "
        f"{_matrix(step.b, names)}, {_first(c.buffer, c.offset, names)}, {c.row_stride}, "
        f"{c.batch_stride});"
    )


def _matrix(m: GemmOperand, names: Sequence[str]) -> str:
    transposed = "true" if m.transposed else "false"
    first = _first(m.buffer, m.offset, names)
    return f"{{{first}, {m.row_stride}, {m.batch_stride}, {transposed}}}"


def _first(buffer: int, offset: int, names: Sequence[str]) -> str:
    return f"{names[buffer]} + {offset}" if offset else names[buffer]


def conv_call(step: ConvCall, names: Sequence[str]) -> str:
    """The statement that runs a convolution."""
    numbers = ", ".join(_braces(part) for part in (step.pads, step.strides, step.dilations))
    return (
        f"convolve(dnn, {_tensor(step.data, names)}, "
        f"{_first(step.filter.buffer, step.filter.offset, names)}, {_braces(step.filter.dims)}, "
        f"{_tensor(step.out, names)}, {numbers}, {step.groups}, "
        f"{'true' if step.transposed else 'false'}{_fused(step, names)});"
    )


def _fused(step: ConvCall, names: Sequence[str]) -> str:
    """The arguments for what is computed with a convolution."""
    if step.fused is None:
        return ""
    residual = step.out if step.fused.residual is None else step.fused.residual
    return f", {_tensor(step.fused.bias, names)}, {_tensor(residual, names)}"


def _tensor(t: ConvTensor, names: Sequence[str]) -> str:
    first = f"const_cast<float *>({_first(t.buffer, t.offset, names)})"
    return f"{{{first}, {_braces(t.dims)}, {_braces(t.strides)}}}"


def _braces(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"
