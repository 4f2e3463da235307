// The scalar kernel: one element of C per thread, no shared memory, any shape.
#pragma once

#include <musa_fp16.h>
#include <musa_runtime.h>

#include "launch_record.h"

__global__ void __launch_bounds__(256) gemm_scalar(const half *__restrict__ A, const half *__restrict__ B,
                                                   half *__restrict__ C, int M, int N, int K) {
  const long element = (long)blockIdx.x * 256 + (long)threadIdx.x;
  if (element >= (long)M * N)
    return;
  const long row = element % M, column = element / M;
  float sum = 0.0f;
  for (int k = 0; k < K; k++)
    sum = fmaf(__half2float(A[(long)k * M + row]), __half2float(B[column * K + k]), sum);
  C[element] = __float2half(sum);
}

inline musaError_t launch_scalar(const half *A, const half *B, half *C, int M, int N, int K) {
  MCCPROBE_LAUNCHED(gemm_scalar);
  gemm_scalar<<<dim3((unsigned)(((long)M * N + 255) / 256)), dim3(256)>>>(A, B, C, M, N, K);
  return musaGetLastError();
}
