// WMMA of MP22 on an NVIDIA GPU (sm_80 and later), by mma.sync.m16n8k16 (PTX ISA: fragment layouts of m16n8k16).
//
// A tile of M x N is cut into strips of 16 x 8. A physical warp of 128 lanes is four warps here; each owns some
// of the strips and reads operands through its own address. Lanes of one physical warp that pass different
// addresses thus mix tiles, as it happens on MP22 (article, section 11); on the S4000 the wrong numbers are others.
//
// 32x32x16 in a full warp: each quarter owns two strips, that is 8 of the 32 accumulator floats that the SDK
// declares (article, section 20). A partial warp (blocks that are no multiple of 128) needs all of them: compile
// with -DMCCPROBE_PARTIAL_WARPS; without it such a launch traps. 16x16x16 works in both kinds of warp.
#ifndef MCCPROBE_CUDA_CRT_MMA_H
#define MCCPROBE_CUDA_CRT_MMA_H

#include <musa_fp16.h>
#include <musa_runtime.h>
#include <mccprobe_wmma_types.h>

#include <stdio.h>

namespace mtmusa {
namespace wmma {

// Strips of a tile: s counts the 16-row blocks first. slots: how many of them one thread can hold.
template <int m, int n> struct __strips {
  static_assert(m % 16 == 0 && n % 8 == 0, "a strip has 16 rows and 8 columns");
  enum { blocks = m / 16, columns = n / 8, count = blocks * columns };
#if defined(MCCPROBE_PARTIAL_WARPS)
  enum { quartered = 0, slots = count };
#else
  enum { quartered = count == 8, slots = quartered ? 2 : count };
#endif
};

template <int count> struct __operand_base {
  enum { num_elements = 2 * count };
  unsigned x[count];  // pairs of halfs
};

template <typename Layout> class fragment<matrix_a, 16, 16, 16, half, Layout> : public __operand_base<4> {};
template <typename Layout> class fragment<matrix_b, 16, 16, 16, half, Layout> : public __operand_base<4> {};
template <> class fragment<accumulator, 16, 16, 16, float> : public __frag_base<float, 8> {};

#if defined(__CUDACC__)

// The strips of one quarter of the physical warp. Slot j is known to the compiler, the strip in it only at run time.
template <int m, int n> struct __owner {
  typedef __strips<m, n> strips;
  unsigned quarter, quarters;

  __device__ __forceinline__ __owner() : quarter(mccprobe_cuda::quarter()), quarters(mccprobe_cuda::lanes() / 32) {
    if (strips::quartered && quarters != 4) {
      if ((threadIdx.x & 31) == 0)
        printf("mccprobe: %dx%dx16 fragments in a partial warp of %u lanes: compile with "
               "-DMCCPROBE_PARTIAL_WARPS\n", m, n, quarters * 32);
      __trap();
    }
  }
  __device__ __forceinline__ int strip(int j) const { return strips::quartered ? (int)quarter + 4 * j : j; }
  __device__ __forceinline__ bool owns(int j) const { return strips::quartered || j % quarters == quarter; }
  __device__ __forceinline__ int block(int j) const { return strip(j) % strips::blocks; }
  __device__ __forceinline__ int column(int j) const { return strip(j) / strips::blocks; }
  // Operand slots: the strips of a quarter of a quartered tile lie in one block of rows.
  static constexpr __device__ int a_slot(int j) { return strips::quartered ? 0 : j % strips::blocks; }
  static constexpr __device__ int b_slot(int j) { return strips::quartered ? j : j / strips::blocks; }
};

__device__ __forceinline__ unsigned __pair(half low, half high) {
  return (unsigned)__half_as_ushort(low) | (unsigned)__half_as_ushort(high) << 16;
}

template <typename Use, int m, int n, int k, typename T, typename Layout>
__device__ __forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout> &f, T value) {
#pragma unroll
  for (int i = 0; i < f.num_elements; i++)
    f.x[i] = value;
}

// Register r of A holds rows group + 8 * (r & 1) and the pair of k at 2 * lane-in-group + 8 * (r >> 1).
template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_a, m, n, k, half, Layout> &f, const half *base,
                                                 unsigned ld) {
  const __owner<m, n> own;
  const int group = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int j = 0; j < __strips<m, n>::slots; j++)
    if (own.owns(j) && !(__strips<m, n>::quartered && j)) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int row = own.block(j) * 16 + group + (r & 1) * 8, at = pair + (r >> 1) * 8;
        f.x[own.a_slot(j) * 4 + r] = __is_col_major<Layout>::value
                                         ? __pair(base[(size_t)at * ld + row], base[(size_t)(at + 1) * ld + row])
                                         : __pair(base[(size_t)row * ld + at], base[(size_t)row * ld + at + 1]);
      }
    }
}

template <int m, int n, int k, typename Layout>
__device__ __forceinline__ void load_matrix_sync(fragment<matrix_b, m, n, k, half, Layout> &f, const half *base,
                                                 unsigned ld) {
  const __owner<m, n> own;
  const int group = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int j = 0; j < __strips<m, n>::slots; j++)
    if (own.owns(j)) {
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int column = own.column(j) * 8 + group, at = pair + r * 8;
        f.x[own.b_slot(j) * 2 + r] =
            __is_col_major<Layout>::value
                ? __pair(base[(size_t)column * ld + at], base[(size_t)column * ld + at + 1])
                : __pair(base[(size_t)at * ld + column], base[(size_t)(at + 1) * ld + column]);
      }
    }
}

template <int m, int n, int k, typename LayoutA, typename LayoutB>
__device__ __forceinline__ void mma_sync(fragment<accumulator, m, n, k, float> &d,
                                         const fragment<matrix_a, m, n, k, half, LayoutA> &a,
                                         const fragment<matrix_b, m, n, k, half, LayoutB> &b,
                                         const fragment<accumulator, m, n, k, float> &c) {
  const __owner<m, n> own;
#pragma unroll
  for (int j = 0; j < __strips<m, n>::slots; j++)
    if (own.owns(j)) {
      const unsigned *x = a.x + own.a_slot(j) * 4, *y = b.x + own.b_slot(j) * 2;
      const float *from = c.x + j * 4;
      float *to = d.x + j * 4;
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
                   "{%10,%11,%12,%13};"
                   : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                   : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(from[0]),
                     "f"(from[1]), "f"(from[2]), "f"(from[3]));
    }
}

// Before and after, all lanes of the physical warp are waited for, as they go in step on MP22.
template <int m, int n, int k>
__device__ __forceinline__ void store_matrix_sync(float *base, const fragment<accumulator, m, n, k, float> &f,
                                                  unsigned ld, layout_t layout) {
  const __owner<m, n> own;
  const int group = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
  mccprobe_cuda::sync_physical_warp();
#pragma unroll
  for (int j = 0; j < __strips<m, n>::slots; j++)
    if (own.owns(j)) {
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int row = own.block(j) * 16 + group + (e >> 1) * 8, column = own.column(j) * 8 + pair + (e & 1);
        base[layout == mem_col_major ? (size_t)column * ld + row : (size_t)row * ld + column] =
            f.x[j * 4 + e];
      }
    }
  mccprobe_cuda::sync_physical_warp();
}

#endif  // __CUDACC__

}  // namespace wmma
}  // namespace mtmusa

#endif  // MCCPROBE_CUDA_CRT_MMA_H

#if defined(__MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__) && !defined(MCCPROBE_CUDA_CRT_MMA_H_INTERNAL)
#define MCCPROBE_CUDA_CRT_MMA_H_INTERNAL

namespace mtmusa {
namespace wmma {
template <typename Layout>
class fragment<matrix_a, 32, 32, 16, half, Layout> : public __operand_base<__strips<32, 32>::quartered ? 4 : 8> {};
template <typename Layout>
class fragment<matrix_b, 32, 32, 16, half, Layout> : public __operand_base<__strips<32, 32>::quartered ? 4 : 8> {};
template <>
class fragment<accumulator, 32, 32, 16, float> : public __frag_base<float, 4 * __strips<32, 32>::slots> {};
}  // namespace wmma
}  // namespace mtmusa

using namespace mtmusa::wmma;

#endif
