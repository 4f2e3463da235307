// MUSA runtime API of mccprobe's emulation SDK ("sim"): language qualifiers, vector types, device
// built-ins and the host API. It is read by both passes over a .mu file and by plain C++ host code.
//
// A .mu file is compiled twice by stock clang-14 in CUDA mode. In the device pass the kernels become
// ordinary x86-64 functions; in the host pass they become launch stubs. Both passes parse the whole
// file, so every declaration must be valid in both.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDA__)

// A kernel uses the Microsoft x86-64 convention: each argument takes one slot by position and
// anything that is not 1, 2, 4 or 8 bytes goes by reference. So the runtime can call any kernel from
// the raw argument bytes that the launch stub hands over, without knowing the parameter types.
#define __MCCSIM_KERNEL_ABI __attribute__((ms_abi))
#define __global__ __attribute__((global)) __MCCSIM_KERNEL_ABI
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
// The annotation keeps the optimizer from making a private variable of one that each thread writes before it reads.
#define __shared__ __attribute__((shared, annotate("mccsim shared")))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#else

#define __MCCSIM_KERNEL_ABI __attribute__((ms_abi))
#define __device__
#define __host__

#endif

#include <shared/mccprobe_types.h>

// ---- device built-ins ---------------------------------------------------------------------------

#if defined(__CUDA__)

// For `mccprobe check --lab`: two operations of the source stay two, so that each has its own place.
#if defined(__MCCSIM_LAB__)
#define __MCCSIM_OWN_PLACE __attribute__((nomerge))
#else
#define __MCCSIM_OWN_PLACE
#endif

// Plain variables of the runtime: it rewrites them each time it resumes a thread.
extern "C" {
extern __device__ const uint3 threadIdx, blockIdx;
extern __device__ const dim3 blockDim, gridDim;
__device__ void __mccsim_syncthreads(void) __MCCSIM_OWN_PLACE;
__device__ void __mccsim_syncwarp(void) __MCCSIM_OWN_PLACE;
}

// clang knows __syncthreads as a built-in of the NVPTX target and cannot emit it for x86-64.
#define __syncthreads() __mccsim_syncthreads()
// The mask is not used: a physical warp is wider than 32 lanes, so no 32-bit mask describes it.
#define __syncwarp(...) __mccsim_syncwarp()
// One thread runs at a time and threads change only at a barrier: memory order holds by itself.
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

// Not locked, for the reason given at __threadfence.
template <typename T> __device__ __forceinline__ T __mccsim_fetch_add(T *p, T value) {
  T old = *p;
  *p = old + value;
  return old;
}
__device__ __forceinline__ int atomicAdd(int *p, int v) { return __mccsim_fetch_add(p, v); }
__device__ __forceinline__ unsigned atomicAdd(unsigned *p, unsigned v) { return __mccsim_fetch_add(p, v); }
__device__ __forceinline__ float atomicAdd(float *p, float v) { return __mccsim_fetch_add(p, v); }
__device__ __forceinline__ double atomicAdd(double *p, double v) { return __mccsim_fetch_add(p, v); }

// Device overloads of the C library's float functions, which <math.h> declares for the host only.
#define __MCCSIM_MATH1(name)                                                                       \
  __device__ __forceinline__ float name(float x) { return __builtin_##name(x); }
#define __MCCSIM_MATH2(name)                                                                       \
  __device__ __forceinline__ float name(float x, float y) { return __builtin_##name(x, y); }
__MCCSIM_MATH1(fabsf) __MCCSIM_MATH1(sqrtf) __MCCSIM_MATH1(expf) __MCCSIM_MATH1(exp2f)
__MCCSIM_MATH1(logf) __MCCSIM_MATH1(log2f) __MCCSIM_MATH1(sinf) __MCCSIM_MATH1(cosf)
__MCCSIM_MATH1(tanhf) __MCCSIM_MATH1(floorf) __MCCSIM_MATH1(ceilf) __MCCSIM_MATH1(rintf)
__MCCSIM_MATH2(fminf) __MCCSIM_MATH2(fmaxf) __MCCSIM_MATH2(powf) __MCCSIM_MATH2(fmodf)
#undef __MCCSIM_MATH1
#undef __MCCSIM_MATH2
__device__ __forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }

#endif  // __CUDA__

#define __MCCSIM_MINMAX(type)                                                                      \
  __host__ __device__ __forceinline__ type min(type a, type b) { return b < a ? b : a; }           \
  __host__ __device__ __forceinline__ type max(type a, type b) { return a < b ? b : a; }
__MCCSIM_MINMAX(int) __MCCSIM_MINMAX(unsigned) __MCCSIM_MINMAX(long) __MCCSIM_MINMAX(unsigned long)
__MCCSIM_MINMAX(float) __MCCSIM_MINMAX(double)
#undef __MCCSIM_MINMAX

// ---- host API -----------------------------------------------------------------------------------

#include <shared/mccprobe_host_api.h>

extern "C" {
musaError_t __mccsim_func_get_attributes(musaFuncAttributes *attributes, const void *function);
musaError_t __mccsim_memcpy_symbol(const void *symbol, void *host, size_t bytes, size_t offset,
                                   int to_device);

// clang lowers kernel<<<grid, block, shared, stream>>>(args) to calls of these three.
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, musaStream_t stream = 0);
int cudaSetupArgument(const void *value, size_t bytes, size_t offset);
int cudaLaunch(const void *stub);
}

template <typename F>
inline musaError_t musaFuncGetAttributes(musaFuncAttributes *attributes, F *function) {
  return __mccsim_func_get_attributes(attributes, (const void *)function);
}

// Typed on the kernel, because an untyped argument list would not tell the argument sizes.
template <typename... P>
inline musaError_t musaLaunchKernel(void (__MCCSIM_KERNEL_ABI *kernel)(P...), dim3 grid, dim3 block,
                                    void **arguments, size_t shared = 0, musaStream_t stream = 0) {
  const size_t sizes[] = {sizeof(P)..., 0};
  int error = cudaConfigureCall(grid, block, shared, stream);
  for (size_t i = 0; i < sizeof...(P) && !error; i++)
    error = cudaSetupArgument(arguments[i], sizes[i], 0);
  return (musaError_t)(error ? error : cudaLaunch((const void *)kernel));
}

template <typename T>
inline musaError_t musaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0) {
  return __mccsim_memcpy_symbol(&symbol, (void *)from, bytes, offset, 1);
}
template <typename T>
inline musaError_t musaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0) {
  return __mccsim_memcpy_symbol(&symbol, to, bytes, offset, 0);
}
