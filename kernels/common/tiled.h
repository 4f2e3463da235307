// What the tiled GEMM kernels of the article share: where a thread stands, how a tile gets from global memory
// to shared memory, the WMMA steps over one tile, the epilogue, and the two orders of these that several
// versions have. A kernel's own file has its tile, its warps and what no other one does.
//
// All matrices are column-major. In shared memory a tile of A is [BK][BM + pad] and a tile of B [BN][BK + pad].
#pragma once

// The 32x32x16 fragments are only declared under this macro (section 6).
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <musa_fp16.h>
#include <musa_runtime.h>

namespace tiled {

// A kernel derives from this and gives kBM, kBN, kBK (tile of a block), kThreads, kWarpsM and kWarpsN (how the
// block's warps lie over its tile) and kFragment (16 or 32: side of a WMMA accumulator).
struct Defaults {
  static constexpr int kPadA = 8, kPadB = 8;  // halfs added to a line, against bank conflicts
  static constexpr int kEpiloguePad = 0;      // floats added to a column of the epilogue's tile
  static constexpr bool kSerpentine = false;  // blocks along M first, odd columns backwards (section 14)
  static constexpr int kUnrollWrites = 32;    // of a lane in the epilogue
};

template <typename T> struct Layout : T {
  static constexpr int kWarps = T::kWarpsM * T::kWarpsN;
  static constexpr int kWarp = T::kThreads / kWarps;  // 128 on MP22; 32 is the mistake of section 8
  static constexpr int kWarpM = T::kBM / T::kWarpsM, kWarpN = T::kBN / T::kWarpsN;  // output of a warp
  static constexpr int kRows = kWarpM / T::kFragment, kColumns = kWarpN / T::kFragment;  // its accumulators
  static constexpr int kVector = 8;                                                     // halfs in a float4
  static constexpr int kVectorsA = T::kBM * T::kBK / kVector / T::kThreads;             // float4s of a thread
  static constexpr int kVectorsB = T::kBN * T::kBK / kVector / T::kThreads;
  static constexpr int kLineA = T::kBM + T::kPadA, kLineB = T::kBK + T::kPadB;
  static constexpr int kHalfsA = T::kBK * kLineA, kHalfsB = T::kBN * kLineB;
  static constexpr int kHalfs = kHalfsA + kHalfsB;  // of one buffer
  static constexpr int kTileBytes = 2 * kHalfs;
  static constexpr int kStride = T::kFragment + T::kEpiloguePad;  // of the epilogue's tile
  static constexpr int kEpilogueFloats = T::kFragment * kStride;
  // The epilogue re-uses the operand tiles (section 5). Where not all warps fit, they take turns: a power of two
  // at once, so that warps of 32 which share a physical warp have the same turn.
  static constexpr int kFit = kTileBytes / (4 * kEpilogueFloats);
  static constexpr int kAtOnce = kFit >= kWarps ? kWarps : kFit >= 8 ? 8 : kFit >= 4 ? 4 : kFit;

  static_assert(kWarp == 32 || kWarp == 128, "a warp of the kernel has 32 or 128 threads");
  static_assert(kWarpM % T::kFragment == 0 && kWarpN % T::kFragment == 0, "each warp needs whole fragments");
  static_assert(kVectorsA * kVector * T::kThreads == T::kBM * T::kBK, "each thread moves whole float4s of A");
  static_assert(kVectorsB * kVector * T::kThreads == T::kBN * T::kBK, "each thread moves whole float4s of B");
  static_assert(T::kBK % 16 == 0, "a step of the WMMA operation covers 16 of K");
  static_assert(kAtOnce > 0, "one epilogue tile must fit");
};

// Where a thread stands: the first element of its block's tile in C, its warp and lane, and the first
// element of its warp's part in that tile.
struct Place {
  long m0, n0;
  int warp, lane, warp_m, warp_n;
};

template <typename L> __device__ __forceinline__ Place find_place() {
  Place p;
  // Along N first by default: neighbouring blocks share a strip of A, and B streams past the L2 cache.
  int by = (int)blockIdx.y, bx = (int)blockIdx.x;
  if (L::kSerpentine) {
    bx = (int)blockIdx.y;
    by = bx & 1 ? (int)gridDim.x - 1 - (int)blockIdx.x : (int)blockIdx.x;
  }
  p.m0 = (long)by * L::kBM;
  p.n0 = (long)bx * L::kBN;
  p.warp = (int)threadIdx.x / L::kWarp;
  p.lane = (int)threadIdx.x % L::kWarp;
  p.warp_m = p.warp % L::kWarpsM * L::kWarpM;
  p.warp_n = p.warp / L::kWarpsM * L::kWarpN;
  return p;
}

// ---- operand tiles ------------------------------------------------------------------------------

// The part of a tile that one thread moves.
template <typename L> struct Operands {
  float4 a[L::kVectorsA], b[L::kVectorsB];
};

// Vector i of a thread in a tile of A: contiguous along M.
template <typename L> __device__ __forceinline__ int a_row(int i) {
  return (i * L::kThreads + (int)threadIdx.x) * L::kVector % L::kBM;
}
template <typename L> __device__ __forceinline__ int a_step(int i) {
  return (i * L::kThreads + (int)threadIdx.x) * L::kVector / L::kBM;
}
// Vector i of a thread in a tile of B: contiguous along K.
template <typename L> __device__ __forceinline__ int b_step(int i) {
  return (i * L::kThreads + (int)threadIdx.x) * L::kVector % L::kBK;
}
template <typename L> __device__ __forceinline__ int b_column(int i) {
  return (i * L::kThreads + (int)threadIdx.x) * L::kVector / L::kBK;
}

template <typename L> __device__ __forceinline__ float4 fetch_a(const half *A, int M, const Place &p, int k0, int i) {
  return *(const float4 *)(A + (long)(k0 + a_step<L>(i)) * M + p.m0 + a_row<L>(i));
}
template <typename L> __device__ __forceinline__ float4 fetch_b(const half *B, int K, const Place &p, int k0, int i) {
  return *(const float4 *)(B + (p.n0 + b_column<L>(i)) * K + k0 + b_step<L>(i));
}

// Global memory to registers: the tile that starts at k0.
template <typename L>
__device__ __forceinline__ void fetch(Operands<L> &o, const half *A, const half *B, int M, int K, const Place &p,
                                      int k0) {
#pragma unroll
  for (int i = 0; i < L::kVectorsA; i++)
    o.a[i] = fetch_a<L>(A, M, p, k0, i);
#pragma unroll
  for (int i = 0; i < L::kVectorsB; i++)
    o.b[i] = fetch_b<L>(B, K, p, k0, i);
}

// Registers to shared memory: the tile of A, and behind it the tile of B.
template <typename L> __device__ __forceinline__ void commit(const Operands<L> &o, half *tile) {
#pragma unroll
  for (int i = 0; i < L::kVectorsA; i++)
    *(float4 *)(tile + a_step<L>(i) * L::kLineA + a_row<L>(i)) = o.a[i];
#pragma unroll
  for (int i = 0; i < L::kVectorsB; i++)
    *(float4 *)(tile + L::kHalfsA + b_column<L>(i) * L::kLineB + b_step<L>(i)) = o.b[i];
}

// ---- arithmetic ---------------------------------------------------------------------------------

template <typename L> struct Accumulators {
  fragment<accumulator, L::kFragment, L::kFragment, 16, float> at[L::kRows][L::kColumns];
};
template <typename L> using FragmentA = fragment<matrix_a, L::kFragment, L::kFragment, 16, half, col_major>;
template <typename L> using FragmentB = fragment<matrix_b, L::kFragment, L::kFragment, 16, half, col_major>;

template <typename L> __device__ __forceinline__ void clear(Accumulators<L> &acc) {
#pragma unroll
  for (int i = 0; i < L::kRows; i++)
#pragma unroll
    for (int j = 0; j < L::kColumns; j++)
      fill_fragment(acc.at[i][j], 0.0f);
}

// The operands of a warp for the WMMA step at kk of a tile.
template <typename L>
__device__ __forceinline__ void load_operands(FragmentA<L> (&a)[L::kRows], FragmentB<L> (&b)[L::kColumns],
                                              const half *tile, const Place &p, int kk) {
#pragma unroll
  for (int i = 0; i < L::kRows; i++)
    load_matrix_sync(a[i], tile + kk * L::kLineA + p.warp_m + L::kFragment * i, L::kLineA);
#pragma unroll
  for (int j = 0; j < L::kColumns; j++)
    load_matrix_sync(b[j], tile + L::kHalfsA + (p.warp_n + L::kFragment * j) * L::kLineB + kk, L::kLineB);
}

// acc += A tile * B tile
template <typename L> __device__ __forceinline__ void multiply(Accumulators<L> &acc, const half *tile, const Place &p) {
#pragma unroll
  for (int kk = 0; kk < L::kBK; kk += 16) {
    FragmentA<L> a[L::kRows];
    FragmentB<L> b[L::kColumns];
    load_operands<L>(a, b, tile, p, kk);
#pragma unroll
    for (int i = 0; i < L::kRows; i++)
#pragma unroll
      for (int j = 0; j < L::kColumns; j++)
        mma_sync(acc.at[i][j], a[i], b[j], acc.at[i][j]);
  }
}

// ---- epilogue -----------------------------------------------------------------------------------

// What the epilogue does with element i of C. An overload for another kind of output changes it (split-k).
__device__ __forceinline__ void write_element(half *C, long i, float value) { C[i] = __float2half(value); }

// Each warp passes its accumulators one by one through its part of shared memory, which must not be in use any
// more: a lane reads rows of one column and writes them out.
template <typename L, typename Output>
__device__ __forceinline__ void write_result(const Accumulators<L> &acc, void *shared, Output C, int M,
                                             const Place &p) {
  constexpr int rows = L::kFragment * L::kFragment / L::kWarp;  // of one lane
  float *tile = (float *)shared + p.warp % L::kAtOnce * L::kEpilogueFloats;
  const int column = p.lane % L::kFragment, row = p.lane / L::kFragment * rows;
#pragma unroll
  for (int i = 0; i < L::kRows; i++)
#pragma unroll
    for (int j = 0; j < L::kColumns; j++)
#pragma unroll
      for (int turn = 0; turn < L::kWarps; turn += L::kAtOnce) {
        const bool mine = p.warp >= turn && p.warp < turn + L::kAtOnce;
        if (mine)
          store_matrix_sync(tile, acc.at[i][j], L::kStride, mem_col_major);
        __syncthreads();
        if (mine) {
          const long to = (p.n0 + p.warp_n + L::kFragment * j + column) * M + p.m0 + p.warp_m + L::kFragment * i + row;
#pragma unroll L::kUnrollWrites
          for (int r = 0; r < rows; r++)
            write_element(C, to + r, tile[column * L::kStride + row + r]);
        }
        __syncthreads();
      }
}

// ---- whole kernels ------------------------------------------------------------------------------

// Loading and computing in turns (sections 2 and 3). shared: Layout::kTileBytes.
template <typename L>
__device__ __forceinline__ void gemm_in_turns(const half *A, const half *B, half *C, int M, int K, float4 *shared) {
  half *tile = (half *)shared;
  const Place place = find_place<L>();
  Accumulators<L> acc;
  clear(acc);
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += L::kBK) {
    Operands<L> operands;
    fetch(operands, A, B, M, K, place, k0);
    commit(operands, tile);
    __syncthreads();
    multiply(acc, tile, place);
    __syncthreads();
  }
  write_result(acc, shared, C, M, place);
}

// The next tile waits in registers while this one is used (section 4): fetch, multiply, barrier, commit, barrier.
// ldb: of B, where K is only a part of it.
template <typename L, typename Output>
__device__ __forceinline__ void gemm_prefetched(const half *A, const half *B, Output C, int M, int K, int ldb,
                                                float4 *shared) {
  half *tile = (half *)shared;
  const Place place = find_place<L>();
  Accumulators<L> acc;
  clear(acc);
  Operands<L> next;
  fetch(next, A, B, M, ldb, place, 0);
  commit(next, tile);
  __syncthreads();
#pragma unroll 1
  for (int k0 = L::kBK; k0 < K; k0 += L::kBK) {
    fetch(next, A, B, M, ldb, place, k0);
    multiply(acc, tile, place);
    __syncthreads();
    commit(next, tile);
    __syncthreads();
  }
  multiply(acc, tile, place);
  __syncthreads();
  write_result(acc, shared, C, M, place);
}

template <typename L>
__device__ __forceinline__ void gemm_prefetched(const half *A, const half *B, half *C, int M, int K,
                                                float4 *shared) {
  gemm_prefetched<L>(A, B, C, M, K, K, shared);
}

// The grid for an M x N result.
template <typename L> inline dim3 grid_for(int M, int N) {
  return L::kSerpentine ? dim3(M / L::kBM, N / L::kBN) : dim3(N / L::kBN, M / L::kBM);
}

template <typename L> inline bool whole_tiles(int M, int N, int K) {
  return M % L::kBM == 0 && N % L::kBN == 0 && K % L::kBK == 0;
}

}  // namespace tiled
