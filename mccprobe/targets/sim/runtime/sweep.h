// Sweeps: the lanes of a warp come one after the other to the same WMMA load with the same operand, or to the same
// barrier.
//
// That is most of an emulation's time, so a lane that comes as expected is passed by a few instructions
// (sweep.cpp) that only count. What everybody else reads of it (arrived, ready, the lanes' operands) is
// written by end_sweep(), which the first that does not come as expected calls. A sweep begins only where all lanes
// of a warp are alive and the others stand ready behind the first.
#pragma once

#include "block.h"

namespace mccsim {

// The quick way reads this by offsets; sweep.cpp asserts them.
struct Sweep {
  const void *base;  // the operand that is expected
  uint64_t operand;  // ld, and the descriptor in the upper half; kBarrier
  int left;          // lanes that may still come the quick way, the last of the warp not among them; 0: none
  int step;          // +1 or -1, as the warp's lanes are visited
  const void *site;  // of all of them; null without the laboratory
  int passed;        // lanes that could come the quick way at the beginning; 0: no sweep
  int first;         // lane of the block that began
};
constexpr uint64_t kBarrier = ~uint64_t{0};
extern "C" Sweep __mccsim_sweep __attribute__((visibility("hidden")));

// Begins a sweep at the running lane, which has come to a load or a barrier as the first of its warp and gives way
// next, if all other lanes of the warp stand ready behind it.
void begin_sweep(Wait reason);

// Writes down what the sweep has passed; without one does nothing.
void write_sweep();

inline void end_sweep() {
  if (__builtin_expect(__mccsim_sweep.passed, 0))
    write_sweep();
}

}  // namespace mccsim
