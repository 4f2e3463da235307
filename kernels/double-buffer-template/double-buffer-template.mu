// Double buffer, scheme 4 (section 21): the buffer is a template argument of the step. 49 TFLOPS on the S4000. The
// section speaks of a correctness bug of its own version without saying which; this one has none.
#include "../common/double_buffer.h"

// Uses buffer BUF and fills the other one with tile t.
template <int BUF>
__device__ __forceinline__ void step_in(double_buffer::State &s, const half *A, const half *B, int M, int K, int t,
                                        half *base) {
  double_buffer::step(s, A, B, M, K, t * Layout::kBK, base + BUF * Layout::kHalfs, base + (1 - BUF) * Layout::kHalfs);
}

__global__ void __launch_bounds__(1024, 1)
    gemm_buffer_template(const half *__restrict__ A, const half *__restrict__ B, half *__restrict__ C, int M, int K) {
  extern __shared__ float4 shared[];
  double_buffer::State s;
  half *base = (half *)shared;
  double_buffer::begin(s, A, B, M, K, base);
  const int tiles = K / Layout::kBK;
#pragma unroll 1
  for (int t = 1; t < tiles; t++) {
    if (t & 1)
      step_in<0>(s, A, B, M, K, t, base);
    else
      step_in<1>(s, A, B, M, K, t, base);
  }
  double_buffer::end(s, C, M, tiles & 1 ? base : base + Layout::kHalfs, shared);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (!tiled::whole_tiles<Layout>(M, N, K))
    return launch_wmma_16(A, B, C, M, N, K);
  const musaError_t error =
      musaFuncSetAttribute(gemm_buffer_template, musaFuncAttributeMaxDynamicSharedMemorySize, double_buffer::kBytes);
  if (error != musaSuccess)
    return error;
  MCCPROBE_LAUNCHED(gemm_buffer_template);
  gemm_buffer_template<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads), double_buffer::kBytes>>>(A, B, C, M, K);
  return musaGetLastError();
}
