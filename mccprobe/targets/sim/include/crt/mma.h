// WMMA of the emulation SDK, in namespace mtmusa::wmma.
//
// load_matrix_sync and store_matrix_sync are collectives of a physical warp (128 lanes) and are done
// by the runtime. mma_sync is inline: each lane computes its own elements with packed FMAs, so the
// arithmetic stands in the kernel's own function, where compiler passes work on it.
//
// As in SDK 3.1.0 the 32x32x16 shape exists only under __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__,
// and that macro also brings the names into the global namespace. The file may be included again
// with the macro after it was included without.
#ifndef __MCCSIM_CRT_MMA_H
#define __MCCSIM_CRT_MMA_H

#include <musa_fp16.h>
#include <musa_runtime.h>
#include <shared/mccprobe_wmma_types.h>

// ---- interface to the runtime (its side: runtime/wmma.cpp) ---------------------------------

// An operand tile in float, made once per load and read by all lanes of the warp. matrix_a is
// stored as [k][m] and matrix_b as [n][k]. The runtime re-uses tiles; the generation tells.
struct __attribute__((aligned(64))) __mccsim_tile {
  float value[32 * 16];
  unsigned generation;
};

enum __mccsim_wmma_operation { __mccsim_load_a = 0, __mccsim_load_b = 1, __mccsim_store = 2 };

// One word that names the operation: m, n, k, then layout (1 = column major) and operation.
__host__ __device__ constexpr unsigned __mccsim_wmma_descriptor(int operation, int column_major,
                                                                int m, int n, int k) {
  return (unsigned)(m | n << 8 | k << 16 | column_major << 24 | operation << 25);
}

#if defined(__CUDA__)
extern "C" {
// Rank of this lane among its warp's active lanes, and how many there are. The first WMMA operation
// of a warp sets them, so they are not constant as threadIdx is.
extern __device__ int __mccsim_lane_rank, __mccsim_active_lanes;
__device__ const __mccsim_tile *__mccsim_wmma_load(const void *base, unsigned ld, unsigned descriptor)
    __MCCSIM_OWN_PLACE;
__device__ void __mccsim_wmma_store(void *base, unsigned ld, unsigned descriptor, const float *elements,
                                    int capacity) __MCCSIM_OWN_PLACE;
__device__ void __mccsim_stale_fragment(unsigned descriptor) __attribute__((noreturn));
__device__ void __mccsim_unloaded_fragment(unsigned descriptor) __attribute__((noreturn));
__device__ void __mccsim_fragment_too_small(unsigned descriptor, int capacity) __attribute__((noreturn));
}

typedef float __mccsim_float8 __attribute__((vector_size(32)));
typedef float __mccsim_float8_unaligned __attribute__((vector_size(32), aligned(4)));
#endif

namespace mtmusa {
namespace wmma {

// An operand fragment refers to the tile that the load made; with the laboratory on, to none before it.
#if defined(__MCCSIM_LAB__)
#define __MCCSIM_NO_TILE = nullptr
#else
#define __MCCSIM_NO_TILE
#endif
template <int size> struct __operand_base {
  enum { num_elements = size };
  const __mccsim_tile *tile __MCCSIM_NO_TILE;
  unsigned generation;
};

template <typename Layout>
class fragment<matrix_a, 16, 16, 16, half, Layout> : public __operand_base<8> {};
template <typename Layout>
class fragment<matrix_b, 16, 16, 16, half, Layout> : public __operand_base<8> {};
template <> class fragment<accumulator, 16, 16, 16, float> : public __frag_base<float, 8> {};

#if defined(__CUDA__)

template <typename Use, int m, int n, int k, typename T, typename Layout>
__device__ __forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout> &f, T value) {
#pragma clang loop unroll(disable)
  for (int i = 0; i < f.num_elements; i++)
    f.x[i] = value;
}

template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_a, m, n, k, half, Layout> &f,
                                                 const half *base, unsigned ld) {
  f.tile = __mccsim_wmma_load(
      base, ld, __mccsim_wmma_descriptor(__mccsim_load_a, __is_col_major<Layout>::value, m, n, k));
  f.generation = f.tile->generation;
}

template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_b, m, n, k, half, Layout> &f,
                                                 const half *base, unsigned ld) {
  f.tile = __mccsim_wmma_load(
      base, ld, __mccsim_wmma_descriptor(__mccsim_load_b, __is_col_major<Layout>::value, m, n, k));
  f.generation = f.tile->generation;
}

template <int m, int n, int k>
__device__ __forceinline__ void store_matrix_sync(float *base,
                                                  const fragment<accumulator, m, n, k, float> &f,
                                                  unsigned ld, layout_t layout) {
  unsigned descriptor = __mccsim_wmma_descriptor(__mccsim_store, 0, m, n, k);
  descriptor |= (layout == mem_col_major ? 1u : 0u) << 24;
  __mccsim_wmma_store(base, ld, descriptor, f.x, f.num_elements);
}

// The accumulator is held in chunks of 8 consecutive rows of a column. Chunk c (column-major order)
// belongs to lane c % active lanes: in a full warp a 32x32 tile gives each lane one chunk, in a
// partial warp of 32 lanes four. The loop over chunks is not unrolled: every FMA in the kernel is
// then one that runs, whatever the number of lanes.
template <int m, int n, int k, typename LayoutA, typename LayoutB>
__device__ __forceinline__ void mma_sync(fragment<accumulator, m, n, k, float> &d,
                                         const fragment<matrix_a, m, n, k, half, LayoutA> &a,
                                         const fragment<matrix_b, m, n, k, half, LayoutB> &b,
                                         const fragment<accumulator, m, n, k, float> &c) {
#if defined(__MCCSIM_LAB__)
  if (__builtin_expect(!a.tile, 0))
    __mccsim_unloaded_fragment(__mccsim_wmma_descriptor(__mccsim_load_a, 0, m, n, k));
  if (__builtin_expect(!b.tile, 0))
    __mccsim_unloaded_fragment(__mccsim_wmma_descriptor(__mccsim_load_b, 0, m, n, k));
#endif
  if (__builtin_expect(a.tile->generation != a.generation, 0))
    __mccsim_stale_fragment(__mccsim_wmma_descriptor(__mccsim_load_a, 0, m, n, k));
  if (__builtin_expect(b.tile->generation != b.generation, 0))
    __mccsim_stale_fragment(__mccsim_wmma_descriptor(__mccsim_load_b, 0, m, n, k));
  // Unsigned, so that the index arithmetic is shifts and masks.
  const unsigned chunks = m * n / 8, lanes = __mccsim_active_lanes;
  // The runtime asks for 32 lanes or more; a fragment cut below m * n / 32 elements needs still more.
  if (c.num_elements < m * n / 32 && __builtin_expect(c.num_elements / 8 * lanes < chunks, 0))
    __mccsim_fragment_too_small(__mccsim_wmma_descriptor(__mccsim_store, 0, m, n, k), c.num_elements);
  const float *from = c.x;
  float *to = d.x;
#pragma clang loop unroll(disable) vectorize(disable)
  for (unsigned chunk = __mccsim_lane_rank; chunk < chunks; chunk += lanes, from += 8, to += 8) {
    const float *rows = a.tile->value + chunk % (m / 8) * 8;
    const float *column = b.tile->value + chunk / (m / 8) * k;
#if defined(MCCSIM_SCALAR)  // what benchmarks/lab_speed.py holds the packed arithmetic against
#pragma clang loop unroll(disable) vectorize(disable)
    for (int row = 0; row < 8; row++) {
      float sum = from[row];
      for (int i = 0; i < k; i++)
        sum = __builtin_fmaf(rows[i * m + row], column[i], sum);
      to[row] = sum;
    }
#else
    __mccsim_float8 sum = *(const __mccsim_float8_unaligned *)from;
#pragma clang loop unroll(full)
    for (int i = 0; i < k; i++) {
      const float s = column[i];
      const __mccsim_float8 scale = {s, s, s, s, s, s, s, s};
      sum = __builtin_ia32_vfmaddps256(*(const __mccsim_float8 *)(rows + i * m), scale, sum);
    }
    *(__mccsim_float8_unaligned *)to = sum;
#endif
  }
}

#endif  // __CUDA__

}  // namespace wmma
}  // namespace mtmusa

namespace nvcuda { namespace wmma = ::mtmusa::wmma; }

#endif  // __MCCSIM_CRT_MMA_H

#if defined(__MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__) && !defined(__MCCSIM_CRT_MMA_H_INTERNAL)
#define __MCCSIM_CRT_MMA_H_INTERNAL

namespace mtmusa {
namespace wmma {
template <typename Layout>
class fragment<matrix_a, 32, 32, 16, half, Layout> : public __operand_base<16> {};
template <typename Layout>
class fragment<matrix_b, 32, 32, 16, half, Layout> : public __operand_base<16> {};
// 32 elements per lane as in SDK 3.1.0, although a full warp of 128 lanes uses only 8 of them.
template <>
class fragment<accumulator, 32, 32, 16, float>
#ifdef MCCSIM_ACCUMULATOR_ELEMENTS
    : public __frag_base<float, MCCSIM_ACCUMULATOR_ELEMENTS> {};
#else
    : public __frag_base<float, 32> {};
#endif
}  // namespace wmma
}  // namespace mtmusa

using namespace mtmusa::wmma;

#endif
