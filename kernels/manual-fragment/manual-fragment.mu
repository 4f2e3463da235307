// Operand fragments that are filled by hand (section 21): the elements that load_matrix_sync gave go through shared
// memory into other fragments, word by word, and mma_sync gets these. With GEMM_MANUAL=0 it gets the loaded ones.
//
// Wrong on MP22, says the article: all words are equal, and all of the result differs (max 311), since the MMA unit
// reads its operands from fragment registers that only load_matrix_sync fills. Neither the emulator nor another GPU
// has such registers, so there it is right.
#include "../common/gemm.h"
#include "../common/tiled.h"
#include "../common/wmma_16.h"

#ifndef GEMM_MANUAL
#define GEMM_MANUAL 1
#endif

typedef fragment<matrix_a, 32, 32, 16, half, col_major> FragmentA;
typedef fragment<matrix_b, 32, 32, 16, half, col_major> FragmentB;
constexpr int kThreads = 128;  // one physical warp
constexpr int kWords = (int)(sizeof(FragmentA) > sizeof(FragmentB) ? sizeof(FragmentA) : sizeof(FragmentB)) / 4;
constexpr int kFloats = kThreads * kWords > 32 * 33 ? kThreads * kWords : 32 * 33;

// Through memory and not from register to register, so that no compiler makes one fragment of the two.
template <typename Fragment>
__device__ __forceinline__ void fill_by_hand(Fragment &to, const Fragment &from, volatile unsigned *shared) {
  volatile unsigned *words = shared + (int)threadIdx.x * kWords;
#pragma unroll
  for (int i = 0; i < (int)sizeof(Fragment) / 4; i++)
    words[i] = ((const unsigned *)&from)[i];
#pragma unroll
  for (int i = 0; i < (int)sizeof(Fragment) / 4; i++)
    ((unsigned *)&to)[i] = words[i];
}

__global__ void __launch_bounds__(kThreads) gemm_manual_fragment(const half *__restrict__ A,
                                                                 const half *__restrict__ B, half *__restrict__ C,
                                                                 int M, int K) {
  __shared__ float shared[kFloats];
  const long m0 = (long)blockIdx.y * 32, n0 = (long)blockIdx.x * 32;
  fragment<accumulator, 32, 32, 16, float> acc;
  fill_fragment(acc, 0.0f);
#pragma unroll 1
  for (int k = 0; k < K; k += 16) {
    FragmentA a;
    FragmentB b;
    load_matrix_sync(a, A + (long)k * M + m0, M);
    load_matrix_sync(b, B + n0 * K + k, K);
#if GEMM_MANUAL
    FragmentA manual_a;
    FragmentB manual_b;
    fill_by_hand(manual_a, a, (volatile unsigned *)shared);
    fill_by_hand(manual_b, b, (volatile unsigned *)shared);
    mma_sync(acc, manual_a, manual_b, acc);
#else
    mma_sync(acc, a, b, acc);
#endif
  }
  __syncthreads();
  store_matrix_sync(shared, acc, 33, mem_col_major);
  __syncthreads();
  for (int i = (int)threadIdx.x; i < 32 * 32; i += kThreads)
    C[(n0 + i / 32) * M + m0 + i % 32] = __float2half(shared[i / 32 * 33 + i % 32]);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (M % 32 || N % 32 || K % 16)
    return launch_wmma_16(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_manual_fragment);
  gemm_manual_fragment<<<dim3(N / 32, M / 32), dim3(kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
