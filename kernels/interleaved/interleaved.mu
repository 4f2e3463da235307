// Version 70 (section 7): version 59 with the global loads of the next tile between the MMAs. The two WMMA steps of
// a tile are 32 MMAs of each "warp"; a float4 is fetched before every eighth of them.
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
  static constexpr int kBM = 256, kBN = 256, kBK = 32, kThreads = 512, kFragment = 16;
  static constexpr int kWarpsM = GEMM_WARP == 32 ? 4 : 2, kWarpsN = GEMM_WARP == 32 ? 4 : 2;
};
typedef tiled::Layout<Tile> Layout;

__device__ __forceinline__ void multiply_and_fetch(tiled::Accumulators<Layout> &acc, tiled::Operands<Layout> &next,
                                                   const half *A, const half *B, int M, int K,
                                                   const tiled::Place &place, const half *tile, int k0) {
  constexpr int steps = Layout::kRows * Layout::kColumns * Layout::kBK / 16;
  constexpr int fetches = Layout::kVectorsA + Layout::kVectorsB;
#pragma unroll
  for (int kk = 0; kk < Layout::kBK; kk += 16) {
    tiled::FragmentA<Layout> a[Layout::kRows];
    tiled::FragmentB<Layout> b[Layout::kColumns];
    tiled::load_operands<Layout>(a, b, tile, place, kk);
#pragma unroll
    for (int i = 0; i < Layout::kRows; i++)
#pragma unroll
      for (int j = 0; j < Layout::kColumns; j++) {
        const int step = (kk / 16 * Layout::kRows + i) * Layout::kColumns + j;
        const int which = step / (steps / fetches);
        if (step % (steps / fetches) == 0) {
          if (which < Layout::kVectorsA)
            next.a[which] = tiled::fetch_a<Layout>(A, M, place, k0, which);
          else
            next.b[which - Layout::kVectorsA] = tiled::fetch_b<Layout>(B, K, place, k0, which - Layout::kVectorsA);
        }
        mma_sync(acc.at[i][j], a[i], b[j], acc.at[i][j]);
      }
  }
}

__global__ void __launch_bounds__(512, 1) gemm_interleaved(const half *__restrict__ A,
                                                           const half *__restrict__ B, half *__restrict__ C,
                                                           int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  half *tile = (half *)shared;
  const tiled::Place place = tiled::find_place<Layout>();
  tiled::Accumulators<Layout> acc;
  tiled::clear(acc);
  tiled::Operands<Layout> next;
  tiled::fetch(next, A, B, M, K, place, 0);
  tiled::commit(next, tile);
  __syncthreads();
#pragma unroll 1
  for (int k0 = Layout::kBK; k0 < K; k0 += Layout::kBK) {
    multiply_and_fetch(acc, next, A, B, M, K, place, tile, k0);
    __syncthreads();
    tiled::commit(next, tile);
    __syncthreads();
  }
  tiled::multiply(acc, tile, place);
  __syncthreads();
  tiled::write_result(acc, shared, C, M, place);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if ((M <= 1024 && N <= 1024) || !tiled::whole_tiles<Layout>(M, N, K))
    return launch_wmma_16(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_interleaved);
  gemm_interleaved<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
