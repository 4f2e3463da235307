// half precision for both passes. The value is held as its bits: clang-14 has no _Float16 on x86-64
// without AVX512-FP16, and g++ has no __fp16. With F16C (always in the device pass) the compiler
// converts in hardware; without it the conversion is integer code, because nothing at link time
// provides the compiler's helper functions.
#pragma once

#include <musa_runtime.h>

__host__ __device__ __forceinline__ float __mccsim_half_to_float(unsigned short bits) {
#if defined(__F16C__) && defined(__clang__)
  __fp16 value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return (float)value;
#else
  unsigned sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ffu;
  float value;
  unsigned out;
  if (exponent == 0) {  // zero or subnormal: the mantissa in units of 2^-24
    value = (float)mantissa * 5.9604644775390625e-8f;
    __builtin_memcpy(&out, &value, sizeof out);
    out |= sign;
  } else if (exponent == 31) {
    out = sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0);
  } else {
    out = sign | ((exponent + 112) << 23) | (mantissa << 13);
  }
  __builtin_memcpy(&value, &out, sizeof value);
  return value;
#endif
}

// Rounds to nearest, ties to even.
__host__ __device__ __forceinline__ unsigned short __mccsim_float_to_half(float value) {
#if defined(__F16C__) && defined(__clang__)
  __fp16 narrow = (__fp16)value;
  unsigned short bits;
  __builtin_memcpy(&bits, &narrow, sizeof bits);
  return bits;
#else
  unsigned in;
  __builtin_memcpy(&in, &value, sizeof in);
  unsigned sign = (in >> 16) & 0x8000u, magnitude = in & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return (unsigned short)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u)  // 65520 and above round to infinity
    return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; adding 0.5 aligns the bits and rounds
    float shifted;
    __builtin_memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    __builtin_memcpy(&magnitude, &shifted, sizeof magnitude);
    return (unsigned short)(sign | (magnitude - 0x3f000000u));
  }
  unsigned odd = (magnitude >> 13) & 1;
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

struct __half {
  unsigned short __x;
  __half() = default;
  __host__ __device__ __forceinline__ __half(float value) : __x(__mccsim_float_to_half(value)) {}
  __host__ __device__ __forceinline__ explicit __half(double value) : __half((float)value) {}
  __host__ __device__ __forceinline__ explicit __half(int value) : __half((float)value) {}
  __host__ __device__ __forceinline__ operator float() const { return __mccsim_half_to_float(__x); }
};
typedef __half half;

struct __align__(4) __half2 { __half x, y; };
typedef __half2 half2;

__host__ __device__ __forceinline__ float __half2float(half h) { return (float)h; }
__host__ __device__ __forceinline__ half __float2half(float f) { return half(f); }
__host__ __device__ __forceinline__ half __float2half_rn(float f) { return half(f); }
__host__ __device__ __forceinline__ unsigned short __half_as_ushort(half h) { return h.__x; }
__host__ __device__ __forceinline__ half __ushort_as_half(unsigned short bits) {
  half h;
  h.__x = bits;
  return h;
}

// Each operation is done in float and rounded once. That is exact rounding for + - * /, since a
// float holds more than twice the bits of a half.
#define __MCCSIM_HALF_OPERATOR(op, name)                                                           \
  __host__ __device__ __forceinline__ half operator op(half a, half b) {                           \
    return half((float)a op (float)b);                                                             \
  }                                                                                                \
  __host__ __device__ __forceinline__ half &operator op##=(half &a, half b) { return a = a op b; } \
  __host__ __device__ __forceinline__ half name(half a, half b) { return a op b; }
__MCCSIM_HALF_OPERATOR(+, __hadd)
__MCCSIM_HALF_OPERATOR(-, __hsub)
__MCCSIM_HALF_OPERATOR(*, __hmul)
__MCCSIM_HALF_OPERATOR(/, __hdiv)
#undef __MCCSIM_HALF_OPERATOR
__host__ __device__ __forceinline__ half operator-(half a) { return __ushort_as_half(a.__x ^ 0x8000u); }
__host__ __device__ __forceinline__ half __hneg(half a) { return -a; }

__host__ __device__ __forceinline__ half2 __halves2half2(half x, half y) { return {x, y}; }
__host__ __device__ __forceinline__ half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
__host__ __device__ __forceinline__ half __low2half(half2 h) { return h.x; }
__host__ __device__ __forceinline__ half __high2half(half2 h) { return h.y; }
__host__ __device__ __forceinline__ float2 __half22float2(half2 h) { return {(float)h.x, (float)h.y}; }
