// MUSA declarations for the compile-only toolchain `amdgcn`: enough of the runtime API that a .mu file
// compiles for gfx908 in clang's HIP mode. Nothing of it is ever run or linked into a program; what it
// is for are the registers, the spills and the code that a real GPU back end makes of a kernel.
//
// Only the device pass is compiled, but all of the file is parsed: host functions need declarations.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
// clang 14 ignores launch_bounds for amdgcn. threads: of a block; blocks: at least so many on a compute
// unit, which has four SIMDs with waves of 64.
#define __MCCPROBE_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __MCCPROBE_BOUNDS2(threads, blocks)                                                        \
  __attribute__((amdgpu_flat_work_group_size(1, threads),                                          \
                 amdgpu_waves_per_eu(((blocks) * (((threads) + 63) / 64) + 3) / 4)))
#define __MCCPROBE_BOUNDS(one, two, chosen, ...) chosen
#define __launch_bounds__(...)                                                                     \
  __MCCPROBE_BOUNDS(__VA_ARGS__, __MCCPROBE_BOUNDS2, __MCCPROBE_BOUNDS1, )(__VA_ARGS__)

#include <mccprobe_types.h>

// ---- device built-ins ---------------------------------------------------------------------------

// A member read is a call of its getter (-fdeclspec), as in clang's own CUDA and HIP headers.
#define __MCCPROBE_MEMBER(name, value)                                                             \
  __declspec(property(get = __get_##name)) unsigned name;                                          \
  __device__ __forceinline__ unsigned __get_##name() const { return value; }
#define __MCCPROBE_INDEX(type, X, Y, Z)                                                            \
  struct type {                                                                                    \
    __MCCPROBE_MEMBER(x, X) __MCCPROBE_MEMBER(y, Y) __MCCPROBE_MEMBER(z, Z)                        \
  };

// hsa_kernel_dispatch_packet_t: workgroup_size_x, _y, _z as 16 bits from byte 4 on, grid_size_x, _y,
// _z in threads as 32 bits from byte 12 on (HSA Platform System Architecture, AQL packets).
#define __MCCPROBE_PACKET(type, byte)                                                              \
  (*(const __attribute__((address_space(4))) type *)((const __attribute__((address_space(4))) char *) \
                                                         __builtin_amdgcn_dispatch_ptr() + (byte)))
#define __MCCPROBE_BLOCKS(axis) (__MCCPROBE_PACKET(uint32_t, 12 + 4 * axis) / __MCCPROBE_PACKET(uint16_t, 4 + 2 * axis))

__MCCPROBE_INDEX(__mccprobe_thread_index, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                 __builtin_amdgcn_workitem_id_z())
__MCCPROBE_INDEX(__mccprobe_block_index, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                 __builtin_amdgcn_workgroup_id_z())
__MCCPROBE_INDEX(__mccprobe_block_size, __MCCPROBE_PACKET(uint16_t, 4), __MCCPROBE_PACKET(uint16_t, 6),
                 __MCCPROBE_PACKET(uint16_t, 8))
__MCCPROBE_INDEX(__mccprobe_grid_size, __MCCPROBE_BLOCKS(0), __MCCPROBE_BLOCKS(1), __MCCPROBE_BLOCKS(2))
#define threadIdx (__mccprobe_thread_index{})
#define blockIdx (__mccprobe_block_index{})
#define blockDim (__mccprobe_block_size{})
#define gridDim (__mccprobe_grid_size{})

__device__ __forceinline__ void __mccprobe_syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define __syncthreads() __mccprobe_syncthreads()
#define __syncwarp(...) __builtin_amdgcn_wave_barrier()
#define __threadfence() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent")
#define __threadfence_block() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup")

__device__ __forceinline__ int atomicAdd(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
__device__ __forceinline__ unsigned atomicAdd(unsigned *p, unsigned v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
__device__ __forceinline__ float atomicAdd(float *p, float v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

// The float functions that the back end makes of an LLVM intrinsic; others need AMD's device library.
#define __MCCPROBE_MATH(name)                                                                      \
  __device__ __forceinline__ float name(float x) { return __builtin_##name(x); }
__MCCPROBE_MATH(fabsf) __MCCPROBE_MATH(sqrtf) __MCCPROBE_MATH(expf) __MCCPROBE_MATH(exp2f)
__MCCPROBE_MATH(logf) __MCCPROBE_MATH(log2f) __MCCPROBE_MATH(sinf) __MCCPROBE_MATH(cosf)
__MCCPROBE_MATH(floorf) __MCCPROBE_MATH(ceilf) __MCCPROBE_MATH(rintf)
#undef __MCCPROBE_MATH
__device__ __forceinline__ float fminf(float a, float b) { return __builtin_fminf(a, b); }
__device__ __forceinline__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__device__ __forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }

template <typename T> __host__ __device__ __forceinline__ T min(T a, T b) { return b < a ? b : a; }
template <typename T> __host__ __device__ __forceinline__ T max(T a, T b) { return a < b ? b : a; }

// ---- host API: declarations only ----------------------------------------------------------------

#include <mccprobe_host_api.h>

extern "C" {
// kernel<<<grid, block, shared, stream>>>(arguments) is parsed as a call of this one.
unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = 0);
int hipConfigureCall(dim3 grid, dim3 block, size_t shared = 0, void *stream = 0);
int hipLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
}
