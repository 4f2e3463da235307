// Reading shared memory with a stride between the lanes (section 23). It has 16 banks of 4 bytes: lanes whose words
// lie SHARED_STRIDE apart use 16 / gcd(16, SHARED_STRIDE) of them. 27 bytes a cycle for stride 1 on the S4000, and
// 1.67 times as long for what the section calls stride 8.
#include "../common/launch_record.h"
#include "../common/measure.h"

#ifndef SHARED_STRIDE
#define SHARED_STRIDE 1
#endif

constexpr int kWords = 4096;  // 16 KB

__global__ void __launch_bounds__(1024) shared_stride(const unsigned *input, unsigned *output,
                                                      unsigned long long *cycles, int steps) {
  __shared__ unsigned words[kWords];
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x)
    words[i] = input[i];
  __syncthreads();
  unsigned sum = 0, at = threadIdx.x * SHARED_STRIDE;
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 8
  for (int i = 0; i < steps; i++)
    sum = sum * 3 + words[at++ % kWords];
  MCCPROBE_STORE_CYCLES(cycles, start);
  output[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.threads > 1024)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(shared_stride);
  shared_stride<<<dim3(shape.blocks), dim3(shape.threads)>>>(buffers.input, buffers.output, buffers.cycles,
                                                            shape.steps);
  return musaGetLastError();
}
