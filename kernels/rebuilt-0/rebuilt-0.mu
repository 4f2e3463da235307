// The first right version (section 12): warps of 128 threads. A 128x128x64 tile per block of 512 threads, four
// physical warps in 2x2 with four 32x32x16 accumulators each.
//
// GEMM_EPILOGUE_STRIDE 32 reads the epilogue's tile through one of the 16 banks; 33 is version 1 of the rebuilding
// (section 13). GEMM_SERPENTINE=1 is its version 2, with blocks along M first and odd columns backwards (section 14).
#include "../common/gemm.h"
#include "../common/tiled.h"
#include "../common/wmma_16.h"

#ifndef GEMM_EPILOGUE_STRIDE
#define GEMM_EPILOGUE_STRIDE 32
#endif
#ifndef GEMM_SERPENTINE
#define GEMM_SERPENTINE 0
#endif

struct Tile : tiled::Defaults {
  static constexpr int kBM = 128, kBN = 128, kBK = 64, kThreads = 512, kFragment = 32;
  static constexpr int kWarpsM = 2, kWarpsN = 2;
  static constexpr int kEpiloguePad = GEMM_EPILOGUE_STRIDE - 32;
  static constexpr bool kSerpentine = GEMM_SERPENTINE != 0;
};
typedef tiled::Layout<Tile> Layout;

__global__ void __launch_bounds__(512) gemm_rebuilt_0(const half *__restrict__ A, const half *__restrict__ B,
                                                      half *__restrict__ C, int M, int K) {
  __shared__ float4 shared[Layout::kTileBytes / sizeof(float4)];
  tiled::gemm_prefetched<Layout>(A, B, C, M, K, shared);
}

extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K) {
  if (!tiled::whole_tiles<Layout>(M, N, K))
    return launch_wmma_16(A, B, C, M, N, K);
  MCCPROBE_LAUNCHED(gemm_rebuilt_0);
  gemm_rebuilt_0<<<tiled::grid_for<Layout>(M, N), dim3(Layout::kThreads)>>>(A, B, C, M, K);
  return musaGetLastError();
}
