// Fibers: the stacks on which the threads of a block run, and the switch between them (x86-64).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace mccsim {

constexpr int kMaxBlockThreads = 1024;

// Raw bytes of the kernel's arguments, in order.
struct Arguments {
  static constexpr size_t kMaxBytes = 4096;  // CUDA's limit for all arguments of a launch
  static constexpr int kMaxCount = 128;
  int count = 0;
  size_t bytes = 0;                  // used part of `data`; each argument starts 32-aligned
  uint16_t offset[kMaxCount];
  uint16_t size[kMaxCount];
  alignas(32) unsigned char data[kMaxBytes];
};

// Lays out a new fiber on stack number `index` and returns its stack pointer. The first switch to
// it calls entry(), which must not return.
void *new_fiber(int index, void (*entry)());

// Makes sure that stacks 0 .. count-1 exist.
void reserve_stacks(int count);

// True for an address on stack number `index`.
bool is_own_stack(const void *address, int index);

// The number of the stack whose guard page holds the address, or -1.
int stack_of_guard_page(const void *address);

// Calls a kernel on the current stack. Each call gets its own copy of the by-reference arguments.
void call_kernel(void *function, const Arguments &arguments);

extern "C" void __mccsim_switch(void **save_to, void *resume);

}  // namespace mccsim
