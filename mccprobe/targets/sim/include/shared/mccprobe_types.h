// What the headers of the stand-ins `sim` and `amdgcn` share: qualifiers and vector types.
// Read after __host__ and __device__ are defined.
#pragma once

#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

#define __MCCPROBE_VECTORS(scalar, prefix, align2, align4)                                         \
  struct __align__(align2) prefix##2 { scalar x, y; };                                             \
  struct __align__(align4) prefix##4 { scalar x, y, z, w; };                                       \
  __host__ __device__ inline prefix##2 make_##prefix##2(scalar x, scalar y) { return {x, y}; }     \
  __host__ __device__ inline prefix##4 make_##prefix##4(scalar x, scalar y, scalar z, scalar w) {  \
    return {x, y, z, w};                                                                           \
  }
__MCCPROBE_VECTORS(float, float, 8, 16)
__MCCPROBE_VECTORS(int, int, 8, 16)
__MCCPROBE_VECTORS(unsigned, uint, 8, 16)
#undef __MCCPROBE_VECTORS

#if defined(__CUDA__) || defined(__HIP__)
template <typename T> __device__ __forceinline__ T __ldg(const T *p) { return *p; }
#endif
