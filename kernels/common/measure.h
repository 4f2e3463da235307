// What a micro-benchmark's file and its host program (measure_main.mu) call each other by. A case MxNxK is M
// blocks of N threads with K steps each; what a step is, the benchmark says.
//
// A micro-benchmark is checked like any kernel: its output is compared, word for word, with the reference that
// reference.mu of its folder computes on the CPU. A time of a chain that was computed wrong is no time.
#pragma once

#include <musa_runtime.h>

// Words of 32 bits on the device. `cycles` holds one number a block: clock ticks from before its first step to after
// its last one, as the block's first thread sees them; 0 where the device has no clock that a kernel can read.
struct mccprobe_measure_buffers {
  const unsigned *input;
  unsigned *output;
  unsigned long long *cycles;
};

struct mccprobe_measure_shape {
  int blocks, threads, steps;
};

// In the benchmark's file. musaErrorNotSupported: a shape that no kernel of the file takes.
extern "C" musaError_t mccprobe_measure(mccprobe_measure_buffers buffers, mccprobe_measure_shape shape);

// In reference.mu: the case that runs without --case; how many words go in and come out; what of the benchmark's
// input is not any random word (made of random words, in place); the expected output.
extern "C" mccprobe_measure_shape mccprobe_measure_default(void);
extern "C" size_t mccprobe_measure_inputs(mccprobe_measure_shape shape);
extern "C" size_t mccprobe_measure_outputs(mccprobe_measure_shape shape);
extern "C" void mccprobe_measure_prepare(unsigned *input, mccprobe_measure_shape shape);
extern "C" void mccprobe_measure_expect(const unsigned *input, unsigned *output, mccprobe_measure_shape shape);

// Device clock. The emulation has none: its times would be taken for those of a device.
#if defined(__MCCSIM_KERNEL_ABI) || defined(__AMDGCN__)
#define MCCPROBE_CLOCK() 0ull
#else
#define MCCPROBE_CLOCK() ((unsigned long long)clock64())
#endif

#define MCCPROBE_STORE_CYCLES(buffer, start)           \
  do {                                                 \
    const unsigned long long stop = MCCPROBE_CLOCK();  \
    if (threadIdx.x == 0)                              \
      (buffer)[blockIdx.x] = stop - (start);           \
  } while (0)
