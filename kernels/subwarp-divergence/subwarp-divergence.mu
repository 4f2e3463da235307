// The smallest proof that a physical warp of MP22 has 128 lanes (section 11): blocks of 128 threads whose four
// groups of 32 lanes compute four 32x32 tiles of C, each with addresses of its own. With SUBWARP_DIVERGENT=0 all
// four compute one tile, with one address, and the result is right.
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <musa_fp16.h>
#include <musa_runtime.h>

#include "../common/gemm.h"
#include "../common/launch_record.h"

#ifndef SUBWARP_DIVERGENT
#define SUBWARP_DIVERGENT 1
#endif

constexpr int kTiles = SUBWARP_DIVERGENT ? 2 : 1;  // of a block, along M and along N
constexpr int kLanes = 128 / (kTiles * kTiles);    // that write one tile

__global__ void __launch_bounds__(128) subwarp(const half *__restrict__ A, const half *__restrict__ B,
                                               half *__restrict__ C, int M, int K) {
  __shared__ float shared[kTiles * kTiles][32 * 33];
  const int sub = (int)threadIdx.x / kLanes, lane = (int)threadIdx.x % kLanes;
  const long tile_m = (long)blockIdx.y * 32 * kTiles + sub % kTiles * 32;
  const long tile_n = (long)blockIdx.x * 32 * kTiles + sub / kTiles * 32;
  fragment<accumulator, 32, 32, 16, float> acc;
  fill_fragment(acc, 0.0f);
#pragma unroll 1
  for (int k = 0; k < K; k += 16) {
    fragment<matrix_a, 32, 32, 16, half, col_major> a;
    fragment<matrix_b, 32, 32, 16, half, col_major> b;
    load_matrix_sync(a, A + (long)k * M + tile_m, M);
    load_matrix_sync(b, B + tile_n * K + k, K);
    mma_sync(acc, a, b, acc);
  }
  // What no store reaches is zero, so that the errors stay finite.
  for (int i = lane; i < 32 * 33; i += kLanes)
    shared[sub][i] = 0.0f;
  __syncthreads();
  store_matrix_sync(shared[sub], acc, 33, mem_col_major);
  __syncthreads();
  for (int i = lane; i < 32 * 32; i += kLanes)
    C[(tile_n + i / 32) * M + tile_m + i % 32] = __float2half(shared[sub][i / 32 * 33 + i % 32]);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (M % 64 || N % 64 || K % 16)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(subwarp);
  subwarp<<<dim3(N / (32 * kTiles), M / (32 * kTiles)), dim3(128)>>>(A, B, C, M, K);
  return musaGetLastError();
}
