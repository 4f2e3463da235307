// The chains of throughput: integer steps of an XOR and an addition, float steps of one fused multiply-add. They are
// the same for the device and for the reference; a fused multiply-add is exact in the same way on both.
#pragma once

#include <musa_runtime.h>

#ifndef THROUGHPUT_INT
#define THROUGHPUT_INT 1
#endif
#ifndef THROUGHPUT_FP
#define THROUGHPUT_FP 1
#endif

constexpr int kChains = 8;  // independent ones, of each kind, in a thread

struct Chains {
  unsigned integer[kChains];
  float number[kChains];
};

__host__ __device__ __forceinline__ void start_chains(Chains &c, unsigned word) {
  for (int i = 0; i < kChains; i++) {
    c.integer[i] = word + (unsigned)i * 0x9e3779b9u;
    c.number[i] = (float)((word >> 8) + (unsigned)i) * (1.0f / 16777216.0f);  // 0 to 1
  }
}

__host__ __device__ __forceinline__ void step_chains(Chains &c) {
#if THROUGHPUT_INT
  for (int i = 0; i < kChains; i++)
    c.integer[i] = (c.integer[i] ^ 0x5bd1e995u) + 0x27d4eb2fu;
#endif
#if THROUGHPUT_FP
  for (int i = 0; i < kChains; i++)
    c.number[i] = fmaf(c.number[i], -0.999f, 1.5f);
#endif
}

__host__ __device__ __forceinline__ unsigned end_chains(const Chains &c) {
  unsigned word = 0;
  for (int i = 0; i < kChains; i++) {
    const union {
      float number;
      unsigned word;
    } bits = {c.number[i]};
    word = word * 31 + (c.integer[i] ^ bits.word);
  }
  return word;
}
