// Latency of global memory (section 23): one thread follows a random chain through CHASE_NODES nodes, so each load
// waits for the one before. 467 cycles a step on the S4000.
#include "../common/launch_record.h"
#include "../common/measure.h"
#include "nodes.h"

__global__ void __launch_bounds__(1) pointer_chase(const unsigned *input, unsigned *output,
                                                   unsigned long long *cycles, int steps) {
  unsigned node = 0;
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 4
  for (int i = 0; i < steps; i++)
    node = input[node * kNodeWords];
  MCCPROBE_STORE_CYCLES(cycles, start);
  output[0] = node;
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.blocks != 1 || shape.threads != 1)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(pointer_chase);
  pointer_chase<<<dim3(1), dim3(1)>>>(buffers.input, buffers.output, buffers.cycles, shape.steps);
  return musaGetLastError();
}
