// The small WMMA kernel: one 16x16 tile of C per block of 32 threads, operands straight from global memory. Such
// a partial warp is legal on MP22, since its idle lanes are masked off (section 11).
#pragma once

#ifndef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#endif
#include <musa_fp16.h>
#include <musa_runtime.h>

#include "launch_record.h"

__global__ void __launch_bounds__(32) gemm_wmma_16(const half *__restrict__ A, const half *__restrict__ B,
                                                   half *__restrict__ C, int M, int K) {
  __shared__ float tile[16 * 16];
  const long m0 = (long)blockIdx.x * 16, n0 = (long)blockIdx.y * 16;
  fragment<accumulator, 16, 16, 16, float> acc;
  fill_fragment(acc, 0.0f);
#pragma unroll 1
  for (int k = 0; k < K; k += 16) {
    fragment<matrix_a, 16, 16, 16, half, col_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    load_matrix_sync(a, A + (long)k * M + m0, M);
    load_matrix_sync(b, B + n0 * K + k, K);
    mma_sync(acc, a, b, acc);
  }
  store_matrix_sync(tile, acc, 16, mem_col_major);
  __syncthreads();
  for (int i = (int)threadIdx.x; i < 16 * 16; i += 32)
    C[(n0 + i / 16) * M + m0 + i % 16] = __float2half(tile[i]);
}

// musaErrorNotSupported: not a multiple of 16 in each direction.
inline musaError_t launch_wmma_16(const half *A, const half *B, half *C, int M, int N, int K) {
  if (M % 16 || N % 16 || K % 16)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(gemm_wmma_16);
  gemm_wmma_16<<<dim3(M / 16, N / 16), dim3(32)>>>(A, B, C, M, K);
  return musaGetLastError();
}
