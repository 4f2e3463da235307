// FP16 GEMM for MP22 (S4000), after the final version in the article (sections 12 to 16): a 256x256x32
// tile per block, 1024 threads in 8 physical warps, 32x32x16 WMMA, float accumulation.
//
// A physical warp of MP22 has 128 threads, and all of them must pass the same address to a WMMA
// operation (section 11). So everything below counts warps by 128.

// The 32x32x16 fragments are only declared under this macro (section 6).
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <musa_fp16.h>
#include <musa_runtime.h>

#include "../common/gemm.h"
#include "../common/launch_record.h"

#ifndef GEMM_BM
#define GEMM_BM 256
#endif
#ifndef GEMM_BN
#define GEMM_BN 256
#endif
#ifndef GEMM_BK
#define GEMM_BK 32
#endif
// Physical warps along M and N. 4x2 gave 57 TFLOPS where 2x4 gave 37 and 8x1 gave 44 (section 15).
#ifndef GEMM_WARPS_M
#define GEMM_WARPS_M 4
#endif
#ifndef GEMM_WARPS_N
#define GEMM_WARPS_N 2
#endif
// Halfs added to each line of a tile in shared memory, against bank conflicts of the WMMA loads. With
// 4 instead of 8 for A the kernel lost 4 of 22 TFLOPS (section 12).
#ifndef GEMM_PAD_A
#define GEMM_PAD_A 8
#endif
#ifndef GEMM_PAD_B
#define GEMM_PAD_B 8
#endif
// Floats between the columns of the epilogue's 32x32 tile. Shared memory has 16 banks: with 32 all
// lanes of a column read hit one bank, with 33 they spread over all (section 13).
#ifndef GEMM_EPILOGUE_STRIDE
#define GEMM_EPILOGUE_STRIDE 33
#endif
// 1: the main loop alone (section 13, ../compute-only).
#ifndef GEMM_COMPUTE_ONLY
#define GEMM_COMPUTE_ONLY 0
#endif

namespace {

constexpr int kWarp = 128;
constexpr int kThreads = kWarp * GEMM_WARPS_M * GEMM_WARPS_N;
constexpr int kWarpM = GEMM_BM / GEMM_WARPS_M, kWarpN = GEMM_BN / GEMM_WARPS_N;  // output of a warp
constexpr int kTilesM = kWarpM / 32, kTilesN = kWarpN / 32;  // its 32x32 accumulators
constexpr int kVector = 8;                                   // halfs in a float4
constexpr int kLineA = GEMM_BM + GEMM_PAD_A, kLineB = GEMM_BK + GEMM_PAD_B;
constexpr int kHalfsA = GEMM_BK * kLineA, kHalfsB = GEMM_BN * kLineB;
constexpr int kTileBytes = (kHalfsA + kHalfsB) * 2;
constexpr int kEpilogueFloats = 32 * GEMM_EPILOGUE_STRIDE;  // one 32x32 tile of one warp
constexpr int kEpilogueBytes = GEMM_WARPS_M * GEMM_WARPS_N * kEpilogueFloats * 4;
constexpr int kSharedBytes = kTileBytes > kEpilogueBytes ? kTileBytes : kEpilogueBytes;

static_assert(kThreads <= 1024, "a block has at most 1024 threads");
static_assert(GEMM_BM % (32 * GEMM_WARPS_M) == 0, "each warp needs whole 32x32 tiles along M");
static_assert(GEMM_BN % (32 * GEMM_WARPS_N) == 0, "each warp needs whole 32x32 tiles along N");
static_assert(GEMM_BK % 16 == 0, "a step of the WMMA operation covers 16 of K");
static_assert(GEMM_BM * GEMM_BK == kThreads * kVector, "each thread moves one float4 of A per step");
static_assert(GEMM_BN * GEMM_BK == kThreads * kVector, "each thread moves one float4 of B per step");
static_assert(GEMM_PAD_A % kVector == 0 && GEMM_PAD_B % kVector == 0, "float4 stores need aligned lines");
static_assert(GEMM_EPILOGUE_STRIDE >= 32, "a column of the epilogue tile holds 32 floats");
static_assert(kSharedBytes <= 73728, "MP22 has 72 KiB of shared memory per block");

}  // namespace

// __launch_bounds__(1024, 2) would halve the registers per thread, and the accumulators spill (section 15).
__global__ void __launch_bounds__(kThreads, 1)
    gemm_wmma_256(const half *__restrict__ A, const half *__restrict__ B, half *__restrict__ C, int M,
                  int K) {
  // The operand tiles are not needed any more when the epilogue starts, so it uses the same memory.
  __shared__ float4 shared[kSharedBytes / sizeof(float4)];
  half(*sA)[kLineA] = (half(*)[kLineA])shared;                    // [BK][BM + pad]
  half(*sB)[kLineB] = (half(*)[kLineB])((half *)shared + kHalfsA);  // [BN][BK + pad]

  // M first: neighbouring blocks share a strip of B, which fits the L2 cache. Odd columns run backwards,
  // so that the block after a turn also finds A in the cache (section 14).
  const int bx = (int)blockIdx.y;
  const int by = bx & 1 ? (int)gridDim.x - 1 - (int)blockIdx.x : (int)blockIdx.x;

  const int tid = (int)threadIdx.x;
  const int warp = tid / kWarp, lane = tid % kWarp;
  const int warp_m = warp % GEMM_WARPS_M * kWarpM, warp_n = warp / GEMM_WARPS_M * kWarpN;

  // The float4 that this thread moves: A is contiguous along M, B along K.
  const int a_m = tid * kVector % GEMM_BM, a_k = tid * kVector / GEMM_BM;
  const int b_k = tid * kVector % GEMM_BK, b_n = tid * kVector / GEMM_BK;
  const half *next_a = A + (long)a_k * M + (long)by * GEMM_BM + a_m;
  const half *next_b = B + ((long)bx * GEMM_BN + b_n) * K + b_k;

  fragment<accumulator, 32, 32, 16, float> acc[kTilesM][kTilesN];
#pragma unroll
  for (int i = 0; i < kTilesM; i++)
#pragma unroll
    for (int j = 0; j < kTilesN; j++)
      fill_fragment(acc[i][j], 0.0f);

  *(float4 *)&sA[a_k][a_m] = *(const float4 *)next_a;
  *(float4 *)&sB[b_n][b_k] = *(const float4 *)next_b;
  __syncthreads();

#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += GEMM_BK) {
    // Single buffer: the next tile waits in registers while this one is used (section 15).
    float4 prefetch_a, prefetch_b;
    const bool more = k0 + GEMM_BK < K;
    if (more) {
      next_a += (long)GEMM_BK * M;
      next_b += GEMM_BK;
      prefetch_a = *(const float4 *)next_a;
      prefetch_b = *(const float4 *)next_b;
    }

#pragma unroll
    for (int kk = 0; kk < GEMM_BK; kk += 16) {
      fragment<matrix_a, 32, 32, 16, half, col_major> a[kTilesM];
      fragment<matrix_b, 32, 32, 16, half, col_major> b[kTilesN];
#pragma unroll
      for (int i = 0; i < kTilesM; i++)
        load_matrix_sync(a[i], &sA[kk][warp_m + 32 * i], kLineA);
#pragma unroll
      for (int j = 0; j < kTilesN; j++)
        load_matrix_sync(b[j], &sB[warp_n + 32 * j][kk], kLineB);
#pragma unroll
      for (int i = 0; i < kTilesM; i++)
#pragma unroll
        for (int j = 0; j < kTilesN; j++)
          mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
    }

    __syncthreads();
    if (more) {
      *(float4 *)&sA[a_k][a_m] = prefetch_a;
      *(float4 *)&sB[b_n][b_k] = prefetch_b;
      __syncthreads();
    }
  }

#if GEMM_COMPUTE_ONLY
  // The article keeps only a barrier, which does not keep the sums alive. This store does, and never runs.
  if (K < 0) {
    for (int i = 0; i < kTilesM; i++)
      for (int j = 0; j < kTilesN; j++)
        store_matrix_sync((float *)shared, acc[i][j], GEMM_EPILOGUE_STRIDE, mem_col_major);
    C[tid] = __float2half(((float *)shared)[tid]);
  }
#else
  // Epilogue: each warp passes its accumulators one by one through its part of shared memory. A group
  // of 32 lanes reads the same rows of 32 columns, 8 rows for each of the four groups.
  float *tile = (float *)shared + warp * kEpilogueFloats;
  const int column = lane % 32, row = lane / 32 * 8;
#pragma unroll
  for (int i = 0; i < kTilesM; i++)
#pragma unroll
    for (int j = 0; j < kTilesN; j++) {
      store_matrix_sync(tile, acc[i][j], GEMM_EPILOGUE_STRIDE, mem_col_major);
      __syncthreads();
      half *to = C + ((long)bx * GEMM_BN + warp_n + 32 * j + column) * M + (long)by * GEMM_BM + warp_m +
                 32 * i + row;
#pragma unroll
      for (int r = 0; r < 8; r++)
        to[r] = __float2half(tile[column * GEMM_EPILOGUE_STRIDE + row + r]);
      __syncthreads();
    }
#endif
}

// gemm_wmma_16, for shapes that the large kernel does not take. It stands behind the large one, as passes are
// numbered in the order of the functions.
#include "../common/wmma_16.h"

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (M <= 0 || N <= 0 || K <= 0)
    return musaErrorInvalidValue;
  if (M % GEMM_BM == 0 && N % GEMM_BN == 0 && K % GEMM_BK == 0) {
    MCCPROBE_LAUNCHED(gemm_wmma_256);
    gemm_wmma_256<<<dim3(M / GEMM_BM, N / GEMM_BN), dim3(kThreads)>>>(A, B, C, M, K);
  } else if (M % 16 == 0 && N % 16 == 0 && K % 16 == 0) {
    MCCPROBE_LAUNCHED(gemm_wmma_16);
    gemm_wmma_16<<<dim3(M / 16, N / 16), dim3(32)>>>(A, B, C, M, K);
  } else {
    return musaErrorNotSupported;
  }
  return musaGetLastError();
}
