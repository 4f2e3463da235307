// One block of threads: lanes, physical warps, and the scheduler that runs them as fibers.
//
// One block runs at a time and one thread of it at a time. A thread gives way only in a barrier or
// in a warp collective, so the order of events is the same in every run.
#pragma once

#include <musa_runtime.h>
#include <stdint.h>

#include <string>

#include "fiber.h"

namespace mccsim {

constexpr int kPrefetchLines = 6;  // of 64 bytes; measured: 2 are fewer, 8 no better
constexpr int kMaxWarps = kMaxBlockThreads / 32;

// A set of lanes of one warp.
struct LaneSet {
  uint64_t half[2] = {0, 0};
  void add(int lane) { half[lane >> 6] |= uint64_t{1} << (lane & 63); }
  void remove(int lane) { half[lane >> 6] &= ~(uint64_t{1} << (lane & 63)); }
  bool has(int lane) const { return half[lane >> 6] >> (lane & 63) & 1; }
  bool empty() const { return (half[0] | half[1]) == 0; }
  int size() const { return __builtin_popcountll(half[0]) + __builtin_popcountll(half[1]); }
  int lowest() const { return half[0] ? __builtin_ctzll(half[0]) : 64 + __builtin_ctzll(half[1]); }
  int highest() const { return half[1] ? 127 - __builtin_clzll(half[1]) : 63 - __builtin_clzll(half[0]); }
  friend bool operator==(const LaneSet &a, const LaneSet &b) {
    return a.half[0] == b.half[0] && a.half[1] == b.half[1];
  }
  friend bool operator!=(const LaneSet &a, const LaneSet &b) { return !(a == b); }
};

enum class Wait : uint8_t { none, block_barrier, warp_barrier, wmma, finished };

// What device code sees of the running thread. Copied as a whole at each switch, and laid out so that
// threadIdx and __mccsim_lane_rank are its parts.
struct ThreadView {
  uint3 index;
  int rank;  // among the warp's active lanes
};

struct alignas(64) Lane {
  void *stack_pointer;
  ThreadView view;
  // The operand that the lane passed to its warp's collective.
  const void *base;
  const float *elements;
  unsigned ld;
  unsigned descriptor;
  const void *site;  // where it waits; set with the laboratory on
  Wait wait;  // for a lane that does not run
};

struct Warp {
  int lanes;         // threads of the block in this warp
  LaneSet alive;
  LaneSet ready;     // can run; the running lane is not in it
  LaneSet arrived;   // wait in the warp's barrier or collective
  LaneSet wmma;      // lanes that took part in the first WMMA operation; empty before it
  int arrived_count, alive_count;
  int active;        // lanes that share the elements of a fragment
  bool uniform;      // the arrived lanes pass the same operand
  bool upward;       // direction in which lanes are visited
  const void *result;
  // What the first to arrive passed.
  const void *base;
  unsigned ld, descriptor;
};

struct Block {
  int current;       // running lane; first and in front of the lanes, as sweep.cpp expects it
  int current_warp;
  int threads, warps, warp_lanes;
  int alive, at_barrier;
  uint64_t switches;
  Lane lane[kMaxBlockThreads];
  Warp warp[kMaxWarps];
  std::string kernel;  // for messages
};

extern Block block asm("__mccsim_block") __attribute__((visibility("hidden")));
extern "C" ThreadView __mccsim_thread;
extern "C" int __mccsim_active_lanes;
// What the running warp's last WMMA load made: a resumed lane's call gives it, whichever way the lane gave way.
extern "C" const void *__mccsim_wmma_result __attribute__((visibility("hidden")));

inline Lane &current_lane() { return block.lane[block.current]; }
inline Warp &current_warp() { return block.warp[block.current_warp]; }

// Runs one block to its end. `threads` lanes of shape blockDim run `function`.
void run_block(void *function, const Arguments &arguments);

// Makes a lane the running one; the switch to its stack comes after.
inline Lane &enter(int warp_index, int lane_in_warp) {
  Warp &warp = block.warp[warp_index];
  warp.ready.remove(lane_in_warp);
  block.current_warp = warp_index;
  block.current = warp_index * block.warp_lanes + lane_in_warp;
  Lane &lane = block.lane[block.current];
  lane.wait = Wait::none;
  __mccsim_thread = lane.view;
  __mccsim_active_lanes = warp.active;
  __mccsim_wmma_result = warp.result;
  return lane;
}

// Gives way to another warp, or to the end of the block.
void switch_to_other_warp(void **save_to);

// Gives way until the scheduler picks this thread again. Within a warp the direction turns at each release, so
// that the lanes visited last, whose stacks are still in the cache, come first in the next round. Inline, because
// it is most of an emulation: all lanes of a warp wait in one place, and a second frame is a second cache line.
inline __attribute__((always_inline)) void wait_for(Wait reason) {
  Lane &lane = current_lane();
  lane.wait = reason;
  Warp &warp = current_warp();
  if (__builtin_expect(warp.ready.empty(), 0)) {
    switch_to_other_warp(&lane.stack_pointer);
    return;
  }
  Lane &next = enter(block.current_warp, warp.upward ? warp.ready.lowest() : warp.ready.highest());
  block.switches++;
  // The stacks of a warp do not fit the first cache: the one after the next is fetched meanwhile.
  const int soon = block.current + (warp.upward ? 2 : -2);
  const char *stack = static_cast<const char *>(block.lane[soon & (kMaxBlockThreads - 1)].stack_pointer);
  for (int line = 0; line < kPrefetchLines; line++)
    __builtin_prefetch(stack + 64 * line, 1);
  __mccsim_switch(&lane.stack_pointer, next.stack_pointer);
}

// All arrived lanes of a warp can go on.
void release_warp(Warp &warp);

// Does the pending collective of a warp with the lanes that have arrived.
void complete_collective(int warp_index);

// True for an address in what WMMA loads have made.
bool is_operand_tile(const void *address);

// "kernel gemm block (0,0,0)"
std::string where();

}  // namespace mccsim
