#include "fiber.h"

#include <alloca.h>
#include <string.h>
#include <sys/mman.h>

#include "trap.h"

// __mccsim_switch(save_to, resume): only the System V callee-saved integer registers change hands.
// Vector registers need no saving: the caller has spilled what it needs, as before any call. A lane that gave way in
// the quick way of sweep.cpp goes on behind its call of a WMMA load, which has a result.
//
// __mccsim_call_ms(function, slots, count): calls by the Microsoft convention. Every slot goes to the
// stack; the first four also go to the integer and the vector register of their position, so the
// callee finds its argument whichever class it has. `slots` holds four entries or more.
asm(R"(
.text
.globl __mccsim_switch
.hidden __mccsim_switch
.type __mccsim_switch,@function
__mccsim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  movq __mccsim_wmma_result(%rip), %rax
  ret
.size __mccsim_switch, .-__mccsim_switch

.globl __mccsim_call_ms
.hidden __mccsim_call_ms
.type __mccsim_call_ms,@function
__mccsim_call_ms:
  pushq %rbp
  movq %rsp, %rbp
  movq %rdi, %rax
  leaq 1(%rdx), %r10
  andq $-2, %r10
  shlq $3, %r10
  subq %r10, %rsp
  movq %rdx, %rcx
  movq %rsp, %rdi
  rep movsq
  movq 0(%rsp), %rcx
  movq 8(%rsp), %rdx
  movq 16(%rsp), %r8
  movq 24(%rsp), %r9
  movq %rcx, %xmm0
  movq %rdx, %xmm1
  movq %r8, %xmm2
  movq %r9, %xmm3
  call *%rax
  leave
  ret
.size __mccsim_call_ms, .-__mccsim_call_ms
.section .note.GNU-stack,"",@progbits
.text
)");

extern "C" void __mccsim_call_ms(void *function, const uint64_t *slots, long count);

namespace mccsim {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = 256 << 10;  // a kernel built at -O0 keeps every temporary in its frame
char *stacks;
int guarded;

}  // namespace

void reserve_stacks(int count) {
  if (!stacks) {
    void *memory = mmap(nullptr, kStackBytes * kMaxBlockThreads, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      trap("no memory", "cannot reserve %zu MiB for thread stacks", kStackBytes * kMaxBlockThreads >> 20);
    stacks = static_cast<char *>(memory);
  }
  for (; guarded < count; guarded++)
    mprotect(stacks + kStackBytes * guarded, kPage, PROT_NONE);
}

bool is_own_stack(const void *address, int index) {
  const char *a = static_cast<const char *>(address);
  return stacks && a >= stacks + kStackBytes * index && a < stacks + kStackBytes * (index + 1);
}

int stack_of_guard_page(const void *address) {
  const char *a = static_cast<const char *>(address);
  if (!stacks || a < stacks || a >= stacks + kStackBytes * kMaxBlockThreads)
    return -1;
  size_t offset = a - stacks;
  return offset % kStackBytes < kPage ? static_cast<int>(offset / kStackBytes) : -1;
}

void *new_fiber(int index, void (*entry)()) {
  // Stacks start at different cache lines. All at the same page offset would compete for the same
  // cache sets when the scheduler visits 128 lanes in turn.
  char *top = stacks + kStackBytes * (index + 1) - 64 - 320 * (index % 64);
  void **slot = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{63});
  *--slot = nullptr;  // return address of entry(), which makes its frame 16-aligned as after a call
  *--slot = reinterpret_cast<void *>(entry);
  for (int saved_register = 0; saved_register < 6; saved_register++)
    *--slot = nullptr;
  return slot;
}

void call_kernel(void *function, const Arguments &arguments) {
  auto *copy = static_cast<unsigned char *>(alloca(arguments.bytes + 32));
  copy = reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(copy) + 31) & ~uintptr_t{31});
  memcpy(copy, arguments.data, arguments.bytes);
  int count = arguments.count < 4 ? 4 : arguments.count;
  auto *slots = static_cast<uint64_t *>(alloca(sizeof(uint64_t) * count));
  memset(slots, 0, sizeof(uint64_t) * count);
  for (int i = 0; i < arguments.count; i++) {
    size_t size = arguments.size[i];
    unsigned char *value = copy + arguments.offset[i];
    if (size == 1 || size == 2 || size == 4 || size == 8)
      memcpy(&slots[i], value, size);
    else
      slots[i] = reinterpret_cast<uint64_t>(value);
  }
  __mccsim_call_ms(function, slots, count);
}

}  // namespace mccsim
