// What barrier must give: every word moved on by one thread and increased by one in each step.
#include "../common/measure.h"

#ifndef BARRIER
#define BARRIER 1
#endif

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {1, 1024, 1000}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" void mccprobe_measure_prepare(unsigned *, mccprobe_measure_shape) {}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  for (int block = 0; block < shape.blocks; block++, input += shape.threads, output += shape.threads)
    for (int t = 0; t < shape.threads; t++)
      output[t] = input[BARRIER ? (t + shape.steps) % shape.threads : t] + (unsigned)shape.steps;
}
