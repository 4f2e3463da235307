// What the five double-buffer schemes of section 21 share: the tile of the final kernel with two buffers in shared
// memory, filled by turns, so that one barrier a tile is enough. They differ in how the code says which buffer.
//
// With both pads two buffers need 74,752 bytes, above the 73,728 of MP22. Section 21 gives 66 KB for all five,
// which is what they need without the pad of B (66,560 bytes), and that pad is the one whose want costs half of
// the speed in its own table. The buffers are dynamic shared memory, as other GPUs limit the static kind to 48 KB.
#pragma once

#include "gemm.h"
#include "tiled.h"
#include "wmma_16.h"

struct DoubleBufferTile : tiled::Defaults {
  static constexpr int kBM = 256, kBN = 256, kBK = 32, kThreads = 1024, kFragment = 32;
  static constexpr int kWarpsM = 4, kWarpsN = 2, kPadB = 0, kEpiloguePad = 1;
  static constexpr bool kSerpentine = true;
};
typedef tiled::Layout<DoubleBufferTile> Layout;

namespace double_buffer {

constexpr int kBytes = 2 * Layout::kTileBytes;
static_assert(kBytes == 66560, "the 66 KB of section 21");

// The start and the end of all five: the first tile in the first buffer, and the epilogue.
struct State {
  tiled::Place place;
  tiled::Accumulators<Layout> acc;
  tiled::Operands<Layout> next;
};

__device__ __forceinline__ void begin(State &s, const half *A, const half *B, int M, int K, half *tile) {
  s.place = tiled::find_place<Layout>();
  tiled::clear(s.acc);
  tiled::fetch(s.next, A, B, M, K, s.place, 0);
  tiled::commit(s.next, tile);
  __syncthreads();
}

// One tile: uses `now`, and fills `then` with the one at k0. The barrier waits for both.
__device__ __forceinline__ void step(State &s, const half *A, const half *B, int M, int K, int k0, const half *now,
                                     half *then) {
  tiled::fetch(s.next, A, B, M, K, s.place, k0);
  tiled::multiply(s.acc, now, s.place);
  tiled::commit(s.next, then);
  __syncthreads();
}

__device__ __forceinline__ void end(State &s, half *C, int M, const half *now, void *shared) {
  tiled::multiply(s.acc, now, s.place);
  __syncthreads();
  tiled::write_result(s.acc, shared, C, M, s.place);
}

}  // namespace double_buffer
