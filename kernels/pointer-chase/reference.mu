// What pointer-chase must give: the node after K steps.
#include <utility>

#include "../common/measure.h"
#include "nodes.h"

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {1, 1, 2000}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape) { return (size_t)kNodes * kNodeWords; }
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape) { return 1; }

// One cycle through all nodes (Sattolo's shuffle, by the random word of the node's second place).
extern "C" void mccprobe_measure_prepare(unsigned *input, mccprobe_measure_shape) {
  for (unsigned i = 0; i < kNodes; i++)
    input[(size_t)i * kNodeWords] = i;
  for (unsigned i = kNodes - 1; i > 0; i--) {
    const unsigned other = input[(size_t)i * kNodeWords + 1] % i;
    std::swap(input[(size_t)i * kNodeWords], input[(size_t)other * kNodeWords]);
  }
}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  unsigned node = 0;
  for (int i = 0; i < shape.steps; i++)
    node = input[(size_t)node * kNodeWords];
  output[0] = node;
}
