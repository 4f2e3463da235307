// MUSA runtime names for nvcc: what the kernels of mccprobe use, mapped to CUDA's own. A stand-in for checking
// arithmetic on a real GPU; nothing here says anything about the speed of an S4000.
#pragma once

#include <cuda_runtime.h>

#define musaError_t cudaError_t
#define musaSuccess cudaSuccess
#define musaErrorInvalidValue cudaErrorInvalidValue
#define musaErrorMemoryAllocation cudaErrorMemoryAllocation
#define musaErrorInvalidConfiguration cudaErrorInvalidConfiguration
#define musaErrorInvalidDevicePointer cudaErrorInvalidDevicePointer
#define musaErrorInvalidDevice cudaErrorInvalidDevice
#define musaErrorInvalidResourceHandle cudaErrorInvalidResourceHandle
#define musaErrorLaunchFailure cudaErrorLaunchFailure
#define musaErrorNotSupported cudaErrorNotSupported

#define musaMemcpyKind cudaMemcpyKind
#define musaMemcpyHostToHost cudaMemcpyHostToHost
#define musaMemcpyHostToDevice cudaMemcpyHostToDevice
#define musaMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define musaMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define musaMemcpyDefault cudaMemcpyDefault

#define musaStream_t cudaStream_t
#define musaEvent_t cudaEvent_t
#define musaDeviceProp cudaDeviceProp
#define musaFuncAttributes cudaFuncAttributes
#define musaFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize

#define musaMalloc cudaMalloc
#define musaFree cudaFree
#define musaMemcpy cudaMemcpy
#define musaMemcpyAsync cudaMemcpyAsync
#define musaMemset cudaMemset
#define musaMemsetAsync cudaMemsetAsync
#define musaMemGetInfo cudaMemGetInfo
#define musaMemcpyToSymbol cudaMemcpyToSymbol
#define musaMemcpyFromSymbol cudaMemcpyFromSymbol

#define musaDeviceSynchronize cudaDeviceSynchronize
#define musaGetLastError cudaGetLastError
#define musaPeekAtLastError cudaPeekAtLastError
#define musaGetErrorString cudaGetErrorString
#define musaGetErrorName cudaGetErrorName

#define musaSetDevice cudaSetDevice
#define musaGetDevice cudaGetDevice
#define musaGetDeviceCount cudaGetDeviceCount
#define musaGetDeviceProperties cudaGetDeviceProperties

#define musaStreamCreate cudaStreamCreate
#define musaStreamDestroy cudaStreamDestroy
#define musaStreamSynchronize cudaStreamSynchronize

#define musaEventCreate cudaEventCreate
#define musaEventRecord cudaEventRecord
#define musaEventSynchronize cudaEventSynchronize
#define musaEventElapsedTime cudaEventElapsedTime
#define musaEventDestroy cudaEventDestroy

#define musaFuncGetAttributes cudaFuncGetAttributes
#define musaFuncSetAttribute cudaFuncSetAttribute
#define musaLaunchKernel cudaLaunchKernel

#if defined(__CUDACC__)

namespace mccprobe_cuda {

// Where this thread stands in MP22's terms: a physical warp has 128 lanes (article, section 11), which are four
// of this GPU's warps here. The last one of a block may be partial.
__device__ __forceinline__ unsigned thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ __forceinline__ unsigned quarter() { return thread() >> 5 & 3; }
__device__ __forceinline__ unsigned lanes() {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, first = thread() & ~127u;
  return threads - first < 128 ? (threads - first + 31) & ~31u : 128;
}

// MP22's lanes go in step; four warps here do not. A named barrier (1 to 8; 0 is __syncthreads) joins them.
__device__ __forceinline__ void sync_physical_warp() {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + (thread() >> 7)), "r"(lanes()) : "memory");
}

}  // namespace mccprobe_cuda

#define __syncwarp(...) mccprobe_cuda::sync_physical_warp()

#endif
