// Throughput of integer and float arithmetic, each alone or both together (section 23). A step is 16 integer
// operations and 8 fused multiply-adds of a thread. On the S4000 24, 79 and 39 operations a cycle: mixed they do not
// add up, so address arithmetic takes time from the rest.
#include "../common/launch_record.h"
#include "../common/measure.h"
#include "chains.h"

__global__ void __launch_bounds__(1024) throughput(const unsigned *input, unsigned *output,
                                                   unsigned long long *cycles, int steps) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  Chains chains;
  start_chains(chains, input[thread]);
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 4
  for (int i = 0; i < steps; i++)
    step_chains(chains);
  MCCPROBE_STORE_CYCLES(cycles, start);
  output[thread] = end_chains(chains);
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.threads > 1024)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(throughput);
  throughput<<<dim3(shape.blocks), dim3(shape.threads)>>>(buffers.input, buffers.output, buffers.cycles, shape.steps);
  return musaGetLastError();
}
