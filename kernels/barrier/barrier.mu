// Cost of __syncthreads (section 23): in each step every thread hands a word to its neighbour through shared memory,
// with one barrier between. With BARRIER=0 it takes back its own, without one; the difference of the two is the
// barrier. 152 cycles with 8 physical warps on the S4000; the model of the same section counts 148.
#include "../common/launch_record.h"
#include "../common/measure.h"

#ifndef BARRIER
#define BARRIER 1
#endif

__global__ void __launch_bounds__(1024) barrier_steps(const unsigned *input, unsigned *output,
                                                      unsigned long long *cycles, int steps) {
  __shared__ volatile unsigned slots[2][1024];
  const unsigned thread = threadIdx.x, first = blockIdx.x * blockDim.x;
  const unsigned from = BARRIER ? (thread + 1) % blockDim.x : thread;
  unsigned word = input[first + thread];
  __syncthreads();
  const unsigned long long start = MCCPROBE_CLOCK();
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    // Two slots by turns: who writes one again has passed the barrier behind its last read.
    slots[i & 1][thread] = word;
#if BARRIER
    __syncthreads();
#endif
    word = slots[i & 1][from] + 1;
  }
  MCCPROBE_STORE_CYCLES(cycles, start);
  output[first + thread] = word;
}

extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape) {
  if (shape.threads > 1024)
    return musaErrorNotSupported;
  MCCPROBE_LAUNCHED(barrier_steps);
  barrier_steps<<<dim3(shape.blocks), dim3(shape.threads)>>>(buffers.input, buffers.output, buffers.cycles,
                                                            shape.steps);
  return musaGetLastError();
}
