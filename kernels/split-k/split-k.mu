// Split-K (section 21): SPLIT_K blocks share a tile of C, each takes its part of K and adds its sums to a float
// matrix by atomicAdd; a second kernel makes halfs of it. 33 TFLOPS with two parts and 6.8 with four on the
// S4000, where an atomic addition of floats is done in software.
#include "../common/gemm.h"
#include "../common/tiled.h"
#include "../common/wmma_16.h"

#ifndef SPLIT_K
#define SPLIT_K 2
#endif

struct Tile : tiled::Defaults {
  static constexpr int kBM = 256, kBN = 256, kBK = 32, kThreads = 1024, kFragment = 32;
  static constexpr int kWarpsM = 4, kWarpsN = 2, kEpiloguePad = 1, kUnrollWrites = 1;
  static constexpr bool kSerpentine = true;
};
typedef tiled::Layout<Tile> Layout;
static_assert(SPLIT_K == 2 || SPLIT_K == 4, "the two of section 21");

// What the epilogue writes to: adds a float where the other kernels store a half.
struct Sums {
  float *at;
};

__device__ __forceinline__ void write_element(Sums sums, long i, float value) { atomicAdd(sums.at + i, value); }

__global__ void __launch_bounds__(1024, 1)
    gemm_split_k(const half *__restrict__ A, const half *__restrict__ B, float *sums, int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  const int part = K / SPLIT_K, first = (int)blockIdx.z * part;
  tiled::gemm_prefetched<Layout>(A + (long)first * M, B + first, Sums{sums}, M, part, K, shared);
}

__global__ void __launch_bounds__(256) round_sums(const float *__restrict__ sums, half *__restrict__ C,
                                                  long elements) {
  const long i = (long)blockIdx.x * 256 + (long)threadIdx.x;
  if (i < elements)
    C[i] = __float2half(sums[i]);
}

// Memory for the sums, which stays for the next launch.
static musaError_t take_sums(long elements, float **sums) {
  static float *kept;
  static long capacity;
  if (elements > capacity) {
    musaFree(kept);
    kept = nullptr;
    capacity = 0;
    const musaError_t error = musaMalloc((void **)&kept, elements * sizeof(float));
    if (error != musaSuccess)
      return error;
    capacity = elements;
  }
  *sums = kept;
  return musaMemset(kept, 0, elements * sizeof(float));
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (!tiled::whole_tiles<Layout>(M, N, K) || K % (4 * Layout::kBK))  // whole tiles for two parts and for four
    return launch_wmma_16(A, B, C, M, N, K);
  const long elements = (long)M * N;
  float *sums = nullptr;
  const musaError_t error = take_sums(elements, &sums);
  if (error != musaSuccess)
    return error;
  MCCPROBE_LAUNCHED(gemm_split_k);
  gemm_split_k<<<dim3(M / Layout::kBM, N / Layout::kBN, SPLIT_K), dim3(Layout::kThreads)>>>(A, B, sums, M, K);
  MCCPROBE_LAUNCHED(round_sums);
  round_sums<<<dim3((unsigned)((elements + 255) / 256)), dim3(256)>>>(sums, C, elements);
  return musaGetLastError();
}
