// Reading global memory in 16-byte words, in order (section 23): 748 GB/s on the S4000, 97 % of its data sheet. A
// step reads 16 bytes a thread; the bandwidth is M * N * K * 16 bytes over the time between the events.
#include "../common/launch_record.h"
#include "../common/measure.h"

__global__ void __launch_bounds__(1024) global_bandwidth(const uint4 *input, unsigned *output,
                                                         unsigned long long *cycles, int steps) {
  const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long)gridDim.x * blockDim.x;
  unsigned sum = 0;
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 4
  for (int i = 0; i < steps; i++) {
    const uint4 word = input[(long)i * threads + thread];
    sum = sum * 3 + (word.x ^ word.y) + (word.z ^ word.w);
  }
  MCCPROBE_STORE_CYCLES(cycles, start);
  output[thread] = sum;
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.threads > 1024)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(global_bandwidth);
  global_bandwidth<<<dim3(shape.blocks), dim3(shape.threads)>>>((const uint4 *)buffers.input, buffers.output,
                                                               buffers.cycles, shape.steps);
  return musaGetLastError();
}
