// Version 2 (section 3): a 128x128x32 tile per block of 512 threads, sixteen "warps" in 4x4 with four 16x16x16
// accumulators each. Loading and computing take turns.
//
// Wrong on MP22: each physical warp of 128 lanes holds four of these warps, and they pass different addresses
// to one WMMA operation (section 11). With GEMM_WARP=128 the same kernel is right.
#include "../common/gemm.h"
#include "../common/tiled.h"
#include "../common/wmma_16.h"

#ifndef GEMM_WARP
#define GEMM_WARP 32
#endif

struct Tile : tiled::Defaults {
  static constexpr int kBM = 128, kBN = 128, kBK = 32, kThreads = 512, kFragment = 16;
  static constexpr int kWarpsM = GEMM_WARP == 32 ? 4 : 2, kWarpsN = GEMM_WARP == 32 ? 4 : 2;
};
typedef tiled::Layout<Tile> Layout;

__global__ void __launch_bounds__(512) gemm_tile_128(const half *__restrict__ A, const half *__restrict__ B,
                                                     half *__restrict__ C, int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  tiled::gemm_in_turns<Layout>(A, B, C, M, K, shared);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if ((M <= 1024 && N <= 1024) || !tiled::whole_tiles<Layout>(M, N, K))
    return launch_wmma_16(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_tile_128);
  gemm_tile_128<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
