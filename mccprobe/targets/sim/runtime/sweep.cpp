#include "sweep.h"

#include <stddef.h>

#include "lab.h"
#include "settings.h"

using namespace mccsim;

extern "C" {
Sweep __mccsim_sweep;
}

static_assert(offsetof(Sweep, base) == 0 && offsetof(Sweep, operand) == 8 && offsetof(Sweep, left) == 16 &&
              offsetof(Sweep, step) == 20 && offsetof(Sweep, site) == 24);
static_assert(offsetof(Block, current) == 0 && offsetof(Block, lane) == 64 && sizeof(Lane) == 64);
static_assert(offsetof(Lane, stack_pointer) == 0 && offsetof(Lane, view) == 8 && sizeof(ThreadView) == 16);
static_assert(kMaxBlockThreads == 1024);

// __mccsim_wmma_load(base, ld, descriptor) and __mccsim_syncthreads(): the quick way, else ..._slowly with the same
// arguments. They save what __mccsim_switch saves, in the same order, so that either resumes what the other
// suspended. They go on by a jump: a lane resumes behind another call than the one it is called from, so a return
// would be mispredicted each time. Stacks are fetched two lanes ahead, as in wait_for().
asm(R"(
.text
.p2align 6
.globl __mccsim_wmma_load
.type __mccsim_wmma_load,@function
__mccsim_wmma_load:
  movl %edx, %ecx
  shlq $32, %rcx
  movl %esi, %r8d
  orq %r8, %rcx
  movl __mccsim_sweep+16(%rip), %eax
  testl %eax, %eax
  je 1f
  cmpq %rdi, __mccsim_sweep(%rip)
  jne 1f
  cmpq %rcx, __mccsim_sweep+8(%rip)
  jne 1f
  movq __mccsim_own_site(%rip), %rcx
  cmpq %rcx, __mccsim_sweep+24(%rip)
  je 3f
1:
  jmp __mccsim_wmma_load_slowly
.size __mccsim_wmma_load, .-__mccsim_wmma_load

.globl __mccsim_syncthreads
.type __mccsim_syncthreads,@function
__mccsim_syncthreads:
  movl __mccsim_sweep+16(%rip), %eax
  testl %eax, %eax
  je 2f
  cmpq $-1, __mccsim_sweep+8(%rip)
  jne 2f
  movq __mccsim_own_site(%rip), %rcx
  cmpq %rcx, __mccsim_sweep+24(%rip)
  je 3f
2:
  jmp __mccsim_syncthreads_slowly

.p2align 4
3:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  decl %eax
  movl %eax, __mccsim_sweep+16(%rip)
  movslq __mccsim_block(%rip), %rcx
  movslq __mccsim_sweep+20(%rip), %r9
  leaq __mccsim_block+64(%rip), %r8
  movq %rcx, %r10
  addq %r9, %rcx
  shlq $6, %r10
  movl %ecx, __mccsim_block(%rip)
  leaq (%rcx,%r9,2), %r11
  movq %rsp, (%r8,%r10)
  andl $1023, %r11d
  shlq $6, %rcx
  shlq $6, %r11
  movq (%r8,%r11), %r11
  movq (%r8,%rcx), %rsp
  prefetcht0 (%r11)
  prefetcht0 64(%r11)
  prefetcht0 128(%r11)
  prefetcht0 192(%r11)
  prefetcht0 256(%r11)
  prefetcht0 320(%r11)
  movups 8(%r8,%rcx), %xmm0
  movups %xmm0, __mccsim_own_thread(%rip)
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  movq __mccsim_wmma_result(%rip), %rax
  popq %rcx
  jmpq *%rcx
.size __mccsim_syncthreads, .-__mccsim_syncthreads
)");

void mccsim::begin_sweep(Wait reason) {
  const Warp &warp = current_warp();
  const int in_warp = block.current - block.current_warp * block.warp_lanes, last = warp.lanes - 1;
  if (!settings().sweep || warp.lanes < 3 || warp.alive_count != warp.lanes || in_warp != (warp.upward ? 0 : last) ||
      warp.ready.size() != last)
    return;
  Sweep &sweep = __mccsim_sweep;
  sweep.base = reason == Wait::wmma ? warp.base : nullptr;
  sweep.operand = reason == Wait::wmma ? warp.ld | uint64_t{warp.descriptor} << 32 : kBarrier;
  sweep.left = sweep.passed = last - 1;
  sweep.step = warp.upward ? 1 : -1;
  sweep.site = lab::here();
  sweep.first = block.current;
}

void mccsim::write_sweep() {
  Sweep &sweep = __mccsim_sweep;
  Warp &warp = current_warp();
  const int count = sweep.passed - sweep.left, begin = block.current_warp * block.warp_lanes;
  const bool barrier = sweep.operand == kBarrier;
  for (int i = 1; i <= count; i++) {
    const int index = sweep.first + i * sweep.step;
    Lane &lane = block.lane[index];
    lane.site = sweep.site;
    lane.wait = barrier ? Wait::block_barrier : Wait::wmma;
    warp.ready.remove(index - begin);
    if (barrier)
      continue;
    lane.base = warp.base;
    lane.ld = warp.ld;
    lane.descriptor = warp.descriptor;
    lane.elements = nullptr;
    warp.arrived.add(index - begin);
  }
  warp.ready.remove(block.current - begin);
  current_lane().wait = Wait::none;
  (barrier ? block.at_barrier : warp.arrived_count) += count;
  block.switches += count;
  sweep.left = sweep.passed = 0;
}
