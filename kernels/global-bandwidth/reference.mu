// What global-bandwidth must give: a weighted sum of the 16-byte words of each thread.
#include "../common/measure.h"

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {8, 256, 16}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads * shape.steps * 4;
}
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" void mccprobe_measure_prepare(unsigned *, mccprobe_measure_shape) {}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  const size_t threads = (size_t)shape.blocks * shape.threads;
  for (size_t thread = 0; thread < threads; thread++) {
    unsigned sum = 0;
    for (int i = 0; i < shape.steps; i++) {
      const unsigned *word = input + (i * threads + thread) * 4;
      sum = sum * 3 + (word[0] ^ word[1]) + (word[2] ^ word[3]);
    }
    output[thread] = sum;
  }
}
