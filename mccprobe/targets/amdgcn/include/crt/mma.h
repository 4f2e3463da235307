// WMMA for the compile-only toolchain `amdgcn`: plain FMAs of each lane over a physical warp of 128
// lanes, no matrix instruction. It keeps what a kernel's registers depend on, the accumulators
// (M * N / 128 floats a lane, as mutlass has them for mp_22) and a long run of FMAs.
//
// An operand fragment is the address of its tile: right as long as the tile is not overwritten before
// mma_sync, which compiling does not need. As in SDK 3.1.0 the 32x32x16 shape exists only under
// __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__, and that macro also brings the names into the global
// namespace. The file may be included again with the macro after it was included without.
#ifndef __MCCPROBE_AMDGCN_CRT_MMA_H
#define __MCCPROBE_AMDGCN_CRT_MMA_H

#include <musa_fp16.h>
#include <musa_runtime.h>
#include <mccprobe_wmma_types.h>

namespace mtmusa {
namespace wmma {

template <int size> struct __operand_base {
  enum { num_elements = size };
  const half *tile;
  unsigned ld;
};

// 16x16x16 is done by 32 lanes, a partial warp: 8 elements each.
template <typename Layout> class fragment<matrix_a, 16, 16, 16, half, Layout> : public __operand_base<8> {};
template <typename Layout> class fragment<matrix_b, 16, 16, 16, half, Layout> : public __operand_base<8> {};
template <> class fragment<accumulator, 16, 16, 16, float> : public __frag_base<float, 8> {};

// Lane `i` of the lanes that share a tile holds `elements` consecutive rows of one column.
__device__ __forceinline__ unsigned __first_element(unsigned elements, unsigned m, unsigned n) {
  return threadIdx.x % (m * n / elements) * elements;
}

template <typename Use, int m, int n, int k, typename T, typename Layout>
__device__ __forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout> &f, T value) {
#pragma unroll
  for (int i = 0; i < f.num_elements; i++)
    f.x[i] = value;
}

template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_a, m, n, k, half, Layout> &f, const half *base,
                                                 unsigned ld) {
  f.tile = base;
  f.ld = ld;
}
template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_b, m, n, k, half, Layout> &f, const half *base,
                                                 unsigned ld) {
  f.tile = base;
  f.ld = ld;
}

template <int m, int n, int k>
__device__ __forceinline__ void store_matrix_sync(float *base, const fragment<accumulator, m, n, k, float> &f,
                                                  unsigned ld, layout_t layout) {
  const unsigned first = __first_element(f.num_elements, m, n), row = first % m, column = first / m;
#pragma unroll
  for (unsigned i = 0; i < f.num_elements; i++)
    base[layout == mem_col_major ? column * ld + row + i : (row + i) * ld + column] = f.x[i];
}

template <int m, int n, int k, typename LayoutA, typename LayoutB>
__device__ __forceinline__ void mma_sync(fragment<accumulator, m, n, k, float> &d,
                                         const fragment<matrix_a, m, n, k, half, LayoutA> &a,
                                         const fragment<matrix_b, m, n, k, half, LayoutB> &b,
                                         const fragment<accumulator, m, n, k, float> &c) {
  const unsigned first = __first_element(d.num_elements, m, n), row = first % m, column = first / m;
#pragma unroll
  for (unsigned i = 0; i < d.num_elements; i++)
    d.x[i] = c.x[i];
#pragma unroll
  for (unsigned step = 0; step < k; step++) {
    const float scale = b.tile[__is_col_major<LayoutB>::value ? column * b.ld + step : step * b.ld + column];
#pragma unroll
    for (unsigned i = 0; i < d.num_elements; i++) {
      const float left = a.tile[__is_col_major<LayoutA>::value ? step * a.ld + row + i : (row + i) * a.ld + step];
      d.x[i] = __builtin_fmaf(left, scale, d.x[i]);
    }
  }
}

}  // namespace wmma
}  // namespace mtmusa

namespace nvcuda { namespace wmma = ::mtmusa::wmma; }

#endif  // __MCCPROBE_AMDGCN_CRT_MMA_H

#if defined(__MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__) && !defined(__MCCPROBE_AMDGCN_CRT_MMA_H_INTERNAL)
#define __MCCPROBE_AMDGCN_CRT_MMA_H_INTERNAL

namespace mtmusa {
namespace wmma {
template <typename Layout> class fragment<matrix_a, 32, 32, 16, half, Layout> : public __operand_base<16> {};
template <typename Layout> class fragment<matrix_b, 32, 32, 16, half, Layout> : public __operand_base<16> {};
template <> class fragment<accumulator, 32, 32, 16, float> : public __frag_base<float, 8> {};
}  // namespace wmma
}  // namespace mtmusa

using namespace mtmusa::wmma;

#endif
