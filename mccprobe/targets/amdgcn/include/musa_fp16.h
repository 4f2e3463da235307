// half precision on gfx908, which has it in hardware.
#pragma once

#include <musa_runtime.h>

struct __half {
  _Float16 __x;
  __half() = default;
  __host__ __device__ __forceinline__ __half(float value) : __x((_Float16)value) {}
  __host__ __device__ __forceinline__ operator float() const { return (float)__x; }
};
typedef __half half;
struct __align__(4) __half2 { half x, y; };
typedef __half2 half2;

__host__ __device__ __forceinline__ float __half2float(half value) { return (float)value.__x; }
__host__ __device__ __forceinline__ half __float2half(float value) { return half(value); }
__host__ __device__ __forceinline__ half __float2half_rn(float value) { return half(value); }
