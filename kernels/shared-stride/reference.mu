// What shared-stride must give: a weighted sum of K consecutive words from where each thread starts.
#include "../common/measure.h"

#ifndef SHARED_STRIDE
#define SHARED_STRIDE 1
#endif

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {1, 1024, 1024}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape) { return 4096; }
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" void mccprobe_measure_prepare(unsigned *, mccprobe_measure_shape) {}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  for (int t = 0; t < shape.threads; t++) {
    unsigned sum = 0;
    for (int i = 0; i < shape.steps; i++)
      sum = sum * 3 + input[((unsigned)t * SHARED_STRIDE + (unsigned)i) % 4096];
    for (int block = 0; block < shape.blocks; block++)
      output[(size_t)block * shape.threads + t] = sum;
  }
}
