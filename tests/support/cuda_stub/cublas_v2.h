// Declarations of the part of cuBLAS that printed programs call.
#pragma once
#include "cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_DEFAULT_MATH };
typedef struct cublasContext *cublasHandle_t;
cublasStatus_t cublasCreate(cublasHandle_t *);
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
const char *cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasSgemmStridedBatched(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const float *alpha,
    const float *a, int lda, long long stride_a, const float *b, int ldb, long long stride_b,
    const float *beta, float *c, int ldc, long long stride_c, int count);
