// What isoform uses of cuBLAS, on the host: column-major products of float32 by three loops.

#include <stddef.h>
#include <stdlib.h>

typedef int R;
R fake_enqueue(R (*run)(void*), const void* data, size_t size);

R cublasCreate_v2(void** handle) { *handle = malloc(1); return 0; }
R cublasDestroy_v2(void* handle) { free(handle); return 0; }
R cublasSetStream_v2(void* handle, void* stream) { (void)handle; return stream ? 0 : 7; }
R cublasSetMathMode(void* handle, int mode) { (void)handle; return mode ? 7 : 0; }
R cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) { (void)handle; return workspace && bytes ? 0 : 7; }
const char* cublasGetStatusString(R status) { return status == 15 ? "not supported" : "invalid value"; }

typedef struct {
  int ta, tb, m, n, k, lda, ldb, ldc, batch;
  long long sa, sb, sc;
  float alpha, beta;
  const float *a, *b;
  float* c;
} Product;

static R product(void* data) {
  const Product* p = data;
  for (int q = 0; q < p->batch; ++q)
    for (int j = 0; j < p->n; ++j)
      for (int i = 0; i < p->m; ++i) {
        double sum = 0;
        for (int l = 0; l < p->k; ++l)
          sum += (double)p->a[q * p->sa + (p->ta ? l + (long)i * p->lda : i + (long)l * p->lda)] *
                 p->b[q * p->sb + (p->tb ? j + (long)l * p->ldb : l + (long)j * p->ldb)];
        float* c = &p->c[q * p->sc + i + (long)j * p->ldc];
        *c = p->alpha * sum + (p->beta ? p->beta * *c : 0);
      }
  return 0;
}

R cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                             int at, int lda, long long sa, const void* b, int bt, int ldb, long long sb,
                             const void* beta, void* c, int ct, int ldc, long long sc, int batch, int compute, int algo) {
  (void)handle; (void)algo;
  if (at || bt || ct || (compute != 68 && compute != 77)) return 15;
  if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;
  const Product p = {ta, tb, m, n, k, lda, ldb, ldc, batch, sa, sb, sc, *(const float*)alpha, *(const float*)beta, a, b, c};
  return fake_enqueue(product, &p, sizeof p);
}
