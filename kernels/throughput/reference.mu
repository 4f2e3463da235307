// What throughput must give: the same chains on the CPU.
#include "../common/measure.h"
#include "chains.h"

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {2, 128, 256}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape) {
  return (size_t)shape.blocks * shape.threads;
}
extern "C" void mccprobe_measure_prepare(unsigned *, mccprobe_measure_shape) {}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  for (size_t thread = 0; thread < (size_t)shape.blocks * shape.threads; thread++) {
    Chains chains;
    start_chains(chains, input[thread]);
    for (int i = 0; i < shape.steps; i++)
      step_chains(chains);
    output[thread] = end_chains(chains);
  }
}
