// What mma-latency must give: K times A * B, exact in float for K up to 65536.
#include <string.h>

#include <musa_fp16.h>

#include "../common/measure.h"

extern "C" mccprobe_measure_shape mccprobe_measure_default(void) { return {1, 128, 2000}; }
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape) { return 2 * 32 * 16 / 2; }
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape) { return (size_t)shape.blocks * 32 * 32; }

// Halfs from -1 to 1 in steps of 1/4.
extern "C" void mccprobe_measure_prepare(unsigned *input, mccprobe_measure_shape) {
  for (int i = 0; i < 2 * 32 * 16 / 2; i++) {
    half pair[2];
    for (int part = 0; part < 2; part++)
      pair[part] = __float2half((float)((int)(input[i] >> 16 * part & 0xffff) % 9 - 4) * 0.25f);
    memcpy(&input[i], pair, sizeof pair);
  }
}

extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape) {
  const half *A = (const half *)input, *B = A + 32 * 16;
  for (int n = 0; n < 32; n++)
    for (int m = 0; m < 32; m++) {
      float sum = 0.0f;
      for (int k = 0; k < 16; k++)
        sum += __half2float(A[k * 32 + m]) * __half2float(B[n * 16 + k]);
      sum = (float)shape.steps * sum + 0.0f;  // no negative zero
      for (int block = 0; block < shape.blocks; block++)
        memcpy(&output[(size_t)block * 1024 + n * 32 + m], &sum, sizeof sum);
    }
}
