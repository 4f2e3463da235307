// The host API of the stand-ins `sim`, whose runtime has these functions, and `amdgcn`, which only compiles.
#pragma once

#include <stddef.h>

enum musaError_t {
  musaSuccess = 0,
  musaErrorInvalidValue = 1,
  musaErrorMemoryAllocation = 2,
  musaErrorInvalidConfiguration = 9,
  musaErrorInvalidSymbol = 13,
  musaErrorInvalidDevicePointer = 17,
  musaErrorInvalidMemcpyDirection = 21,
  musaErrorInvalidDeviceFunction = 98,
  musaErrorInvalidDevice = 101,
  musaErrorInvalidResourceHandle = 400,
  musaErrorLaunchFailure = 719,
  musaErrorNotSupported = 801,
};

enum musaMemcpyKind {
  musaMemcpyHostToHost = 0,
  musaMemcpyHostToDevice = 1,
  musaMemcpyDeviceToHost = 2,
  musaMemcpyDeviceToDevice = 3,
  musaMemcpyDefault = 4,
};

enum musaFuncAttribute { musaFuncAttributeMaxDynamicSharedMemorySize = 8 };

typedef struct MUstream_st *musaStream_t;
typedef struct MUevent_st *musaEvent_t;

struct musaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  int major;
  int minor;
  int multiProcessorCount;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
};

struct musaFuncAttributes {
  size_t sharedSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
};

extern "C" {
musaError_t musaMalloc(void **pointer, size_t bytes);
musaError_t musaFree(void *pointer);
musaError_t musaMemcpy(void *to, const void *from, size_t bytes, musaMemcpyKind kind);
musaError_t musaMemcpyAsync(void *to, const void *from, size_t bytes, musaMemcpyKind kind,
                            musaStream_t stream = 0);
musaError_t musaMemset(void *pointer, int value, size_t bytes);
musaError_t musaMemsetAsync(void *pointer, int value, size_t bytes, musaStream_t stream = 0);
musaError_t musaMemGetInfo(size_t *free_bytes, size_t *total_bytes);

musaError_t musaDeviceSynchronize(void);
musaError_t musaGetLastError(void);
musaError_t musaPeekAtLastError(void);
const char *musaGetErrorString(musaError_t error);
const char *musaGetErrorName(musaError_t error);

musaError_t musaSetDevice(int device);
musaError_t musaGetDevice(int *device);
musaError_t musaGetDeviceCount(int *count);
musaError_t musaGetDeviceProperties(musaDeviceProp *properties, int device);

musaError_t musaStreamCreate(musaStream_t *stream);
musaError_t musaStreamDestroy(musaStream_t stream);
musaError_t musaStreamSynchronize(musaStream_t stream);

musaError_t musaEventCreate(musaEvent_t *event);
musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream = 0);
musaError_t musaEventSynchronize(musaEvent_t event);
musaError_t musaEventElapsedTime(float *milliseconds, musaEvent_t start, musaEvent_t stop);
musaError_t musaEventDestroy(musaEvent_t event);
}

template <typename T> inline musaError_t musaMalloc(T **pointer, size_t bytes) {
  return musaMalloc((void **)pointer, bytes);
}

template <typename F> inline musaError_t musaFuncSetAttribute(F *, musaFuncAttribute, int) {
  return musaSuccess;  // the whole shared memory can always be used dynamically
}
