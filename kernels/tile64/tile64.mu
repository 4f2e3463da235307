// Version 1 (section 2): a 64x64x32 tile per block of 128 threads, four "warps" in 2x2 with four 16x16x16
// accumulators each. The tile goes straight to shared memory, then it is used.
//
// Wrong on MP22: each physical warp of 128 lanes holds four of these warps, and they pass different addresses
// to one WMMA operation (section 11). With GEMM_WARP=128 the same kernel is right.
#include "../common/gemm.h"
#include "../common/scalar.h"
#include "../common/tiled.h"

#ifndef GEMM_WARP
#define GEMM_WARP 32
#endif

struct Tile : tiled::Defaults {
  static constexpr int kBM = 64, kBN = 64, kBK = 32, kThreads = 128, kFragment = 16;
  static constexpr int kWarpsM = GEMM_WARP == 32 ? 2 : 1, kWarpsN = GEMM_WARP == 32 ? 2 : 1;
};
typedef tiled::Layout<Tile> Layout;

__global__ void __launch_bounds__(128) gemm_tile_64(const half *__restrict__ A, const half *__restrict__ B,
                                                    half *__restrict__ C, int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  tiled::gemm_in_turns<Layout>(A, B, C, M, K, shared);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (!tiled::whole_tiles<Layout>(M, N, K))
    return launch_scalar(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_tile_64);
  gemm_tile_64<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
