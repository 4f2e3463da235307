#include "block.h"

#include <algorithm>

#include "lab.h"
#include "sweep.h"
#include "trap.h"

// The built-in variables of device code. threadIdx and __mccsim_lane_rank are the two parts of
// __mccsim_thread, so that one 16-byte copy sets both.
extern "C" {
mccsim::ThreadView __mccsim_thread;
uint3 blockIdx;
dim3 blockDim, gridDim;
int __mccsim_active_lanes;
const void *__mccsim_wmma_result;
}
asm(R"(
.globl threadIdx
.type threadIdx,@object
.set threadIdx, __mccsim_thread
.size threadIdx, 12
.globl __mccsim_lane_rank
.type __mccsim_lane_rank,@object
.set __mccsim_lane_rank, __mccsim_thread + 12
.size __mccsim_lane_rank, 4
.globl __mccsim_own_thread
.hidden __mccsim_own_thread
.set __mccsim_own_thread, __mccsim_thread
)");

namespace mccsim {

Block block;

namespace {

void *scheduler_stack;
void *kernel_function;
const Arguments *kernel_arguments;

void resume(void **save_to, int warp_index, int lane_in_warp) {
  Lane &lane = enter(warp_index, lane_in_warp);
  // A lane that gave way can be the next to run, when its wait made a partial collective complete.
  if (save_to == &lane.stack_pointer)
    return;
  block.switches++;
  __mccsim_switch(save_to, lane.stack_pointer);
}

// A warp whose remaining lanes cannot reach the pending WMMA operation, because they have finished
// or wait for the whole block, has these lanes masked off: the operation runs with the others.
bool complete_partial_wmma() {
  for (int w = 0; w < block.warps; w++) {
    Warp &warp = block.warp[w];
    if (warp.arrived_count == 0)
      continue;
    bool wmma_only = true;
    for (int l = 0; l < warp.lanes; l++)
      wmma_only &= !warp.arrived.has(l) || block.lane[w * block.warp_lanes + l].wait == Wait::wmma;
    if (wmma_only) {
      complete_collective(w);
      release_warp(warp);
      return true;
    }
  }
  return false;
}

std::string waiting_threads(Wait reason) {
  std::string text;
  int count = 0;
  for (int t = 0; t < block.threads;) {
    int end = t;
    while (end < block.threads && block.lane[end].wait == reason)
      end++;
    if (end > t) {
      count += end - t;
      if (text.size() < 200)
        text += (text.empty() ? "" : ", ") + std::to_string(t) + "-" + std::to_string(end - 1);
    }
    t = std::max(end, t + 1);
  }
  return std::to_string(count) + " (" + (count ? text : "none") + ")";
}

[[noreturn]] void deadlock() {
  if (lab::on)
    lab::deadlock();
  trap("deadlock",
       "%s: no thread can run (a barrier that not all threads reach)\n"
       "  threads in __syncthreads: %s\n  threads in __syncwarp: %s\n  threads in a WMMA operation: %s\n"
       "  threads that have ended: %s of %d",
       where().c_str(), waiting_threads(Wait::block_barrier).c_str(),
       waiting_threads(Wait::warp_barrier).c_str(), waiting_threads(Wait::wmma).c_str(),
       waiting_threads(Wait::finished).c_str(), block.threads);
}

}  // namespace

// Picks the next lane: first in the running warp, then in the warps after it.
void switch_to_other_warp(void **save_to) {
  for (;;) {
    int w = block.current_warp;
    for (int tried = 0; tried < block.warps; tried++) {
      Warp &warp = block.warp[w];
      if (!warp.ready.empty()) {
        resume(save_to, w, warp.upward ? warp.ready.lowest() : warp.ready.highest());
        return;
      }
      if (++w == block.warps)
        w = 0;
    }
    if (block.alive == 0) {
      __mccsim_switch(save_to, scheduler_stack);
      return;
    }
    if (!complete_partial_wmma())
      deadlock();
  }
}

namespace {

void release_block_barrier(bool by_arrival) {
  if (lab::on)
    lab::barrier_passes(by_arrival);
  block.at_barrier = 0;
  for (int w = 0; w < block.warps; w++) {
    Warp &warp = block.warp[w];
    warp.ready = warp.alive;
    warp.upward = !warp.upward;
  }
}

// A thread that has ended no longer counts, so its end can complete a barrier.
void finish_thread() {
  end_sweep();
  if (lab::on)
    lab::thread_ends();
  Warp &warp = current_warp();
  int in_warp = block.current - block.current_warp * block.warp_lanes;
  current_lane().wait = Wait::finished;
  warp.alive.remove(in_warp);
  warp.alive_count--;
  block.alive--;
  if (warp.alive_count && warp.arrived_count == warp.alive_count) {
    complete_collective(block.current_warp);
    release_warp(warp);
  }
  if (block.alive && block.at_barrier == block.alive)
    release_block_barrier(false);
  void *never_resumed;
  switch_to_other_warp(&never_resumed);
  __builtin_unreachable();
}

void thread_entry() {
  call_kernel(kernel_function, *kernel_arguments);
  finish_thread();
}

void set_up_lanes() {
  block.alive = block.threads;
  block.at_barrier = 0;
  for (int t = 0; t < block.threads; t++) {
    Lane &lane = block.lane[t];
    unsigned x = t % blockDim.x, rest = t / blockDim.x;
    lane.view = {{x, rest % blockDim.y, rest / blockDim.y}, t % block.warp_lanes};
    lane.wait = Wait::none;
    lane.stack_pointer = new_fiber(t, thread_entry);
  }
  block.warps = (block.threads + block.warp_lanes - 1) / block.warp_lanes;
  for (int w = 0; w < block.warps; w++) {
    Warp &warp = block.warp[w];
    warp = Warp();
    warp.lanes = std::min(block.warp_lanes, block.threads - w * block.warp_lanes);
    warp.alive_count = warp.active = warp.lanes;
    warp.upward = true;
    for (int l = 0; l < warp.lanes; l++)
      warp.alive.add(l);
    warp.ready = warp.alive;
  }
}

}  // namespace

std::string where() {
  return "kernel " + block.kernel + " block (" + std::to_string(blockIdx.x) + "," +
         std::to_string(blockIdx.y) + "," + std::to_string(blockIdx.z) + ")";
}

void release_warp(Warp &warp) {
  warp.ready.half[0] |= warp.arrived.half[0];
  warp.ready.half[1] |= warp.arrived.half[1];
  warp.arrived = LaneSet();
  warp.arrived_count = 0;
  warp.upward = !warp.upward;
}

void run_block(void *function, const Arguments &arguments) {
  kernel_function = function;
  kernel_arguments = &arguments;
  set_up_lanes();
  resume(&scheduler_stack, 0, 0);
}

}  // namespace mccsim

extern "C" void __mccsim_syncthreads_slowly() {
  using namespace mccsim;
  end_sweep();
  block.at_barrier++;
  if (lab::on)
    lab::arrives_at_barrier();
  if (block.at_barrier < block.alive) {
    begin_sweep(Wait::block_barrier);
    wait_for(Wait::block_barrier);
    return;
  }
  release_block_barrier(true);
  current_warp().ready.remove(block.current - block.current_warp * block.warp_lanes);
}
