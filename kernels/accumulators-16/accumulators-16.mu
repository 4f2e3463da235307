// The layout of muBLAS in C++ (section 20): a 256x256x32 tile per block of 512 threads, four physical warps in 2x2
// with sixteen 32x32x16 accumulators each, so that eight fragment loads feed sixteen MMAs.
//
// Right, but slow on an S4000: the SDK gives an accumulator 32 floats a lane where 8 would do, and 2080 bytes a
// thread go to memory.
#include "../common/gemm.h"
#include "../common/tiled.h"
#include "../common/wmma_16.h"

struct Tile : tiled::Defaults {
  static constexpr int kBM = 256, kBN = 256, kBK = 32, kThreads = 512, kFragment = 32;
  static constexpr int kWarpsM = 2, kWarpsN = 2, kEpiloguePad = 1;
  static constexpr bool kSerpentine = true;
};
typedef tiled::Layout<Tile> Layout;

__global__ void __launch_bounds__(512, 1) gemm_accumulators_16(const half *__restrict__ A,
                                                               const half *__restrict__ B,
                                                               half *__restrict__ C, int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  tiled::gemm_prefetched<Layout>(A, B, C, M, K, shared);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (!tiled::whole_tiles<Layout>(M, N, K))
    return launch_wmma_16(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_accumulators_16);
  gemm_accumulators_16<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
