// Latency of one 32x32x16 MMA (section 23): each step adds to the sums of the step before, so nothing overlaps. A
// block is one physical warp. 403 cycles a step on the S4000, where 31 had been guessed.
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <musa_fp16.h>
#include <musa_runtime.h>

#include "../common/launch_record.h"
#include "../common/measure.h"

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) mma_chain(const half *A, const half *B, float *out,
                                                      unsigned long long *cycles, int steps) {
  fragment<accumulator, 32, 32, 16, float> acc;
  fragment<matrix_a, 32, 32, 16, half, col_major> a;
  fragment<matrix_b, 32, 32, 16, half, col_major> b;
  fill_fragment(acc, 0.0f);
  load_matrix_sync(a, A, 32);
  load_matrix_sync(b, B, 16);
  __syncthreads();
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 8
  for (int i = 0; i < steps; i++)
    mma_sync(acc, a, b, acc);
  MCCPROBE_STORE_CYCLES(cycles, start);
  store_matrix_sync(out + (long)blockIdx.x * 1024, acc, 32, mem_col_major);
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.threads != kThreads)
    return musaErrorNotSupported;
  const half *A = (const half *)buffers.input, *B = A + 32 * 16;
  MCCPROBE_LAUNCHED(mma_chain);
  mma_chain<<<dim3(shape.blocks), dim3(kThreads)>>>(A, B, (float *)buffers.output, buffers.cycles, shape.steps);
  return musaGetLastError();
}
