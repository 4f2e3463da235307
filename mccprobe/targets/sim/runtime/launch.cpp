// Kernel launches. clang's host stub calls cudaSetupArgument for each argument, then cudaLaunch.
#include <musa_runtime.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "block.h"
#include "lab.h"
#include "module.h"
#include "settings.h"
#include "trap.h"

extern "C" {
extern uint3 blockIdx;
extern dim3 blockDim, gridDim;
// Device code refers to these from a shared object; the table makes the linker take their archive
// members into the program.
void __mccsim_syncthreads();
void __mccsim_syncwarp();
const void *__mccsim_wmma_load(const void *, unsigned, unsigned);
char *__mccsim_lab_access(char *, mccsim::lab::Site *);
__attribute__((used)) const void *const __mccsim_device_entries[] = {
    reinterpret_cast<const void *>(&__mccsim_syncthreads),
    reinterpret_cast<const void *>(&__mccsim_syncwarp),
    reinterpret_cast<const void *>(&__mccsim_wmma_load),
    reinterpret_cast<const void *>(&__mccsim_lab_access),
};
}

namespace mccsim {
namespace {

struct Configuration {
  dim3 grid, block;
  size_t dynamic_shared = 0;
  Arguments arguments;
};
Configuration pending;
const void *running_kernel;

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// A wild access of a kernel stays a crash of the process, but says where it happened first. A stack
// that is too small is the emulator's limit and not the program's fault.
void on_crash(int signal_number, siginfo_t *info, void *) {
  if (running_kernel) {
    int stack = stack_of_guard_page(info->si_addr);
    if (stack >= 0)
      trap("stack overflow", "%s thread %d: the emulator's stack for a thread is too small",
           where().c_str(), stack);
    if (lab::on)
      lab::crashed(info->si_addr);
    say("%s thread %d: invalid access to address %p", where().c_str(), block.current, info->si_addr);
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void install_crash_handler() {
  static bool installed;
  if (installed)
    return;
  installed = true;
  alignas(16) static char handler_stack[64 << 10];  // the fiber's own stack may be what ran out
  stack_t alternate = {};
  alternate.ss_sp = handler_stack;
  alternate.ss_size = sizeof handler_stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS}) {
    struct sigaction previous;
    sigaction(number, nullptr, &previous);
    if (previous.sa_handler == SIG_DFL)  // leave a handler of the program alone
      sigaction(number, &action, nullptr);
  }
}

void require_cpu() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    trap("unsupported CPU", "the emulator needs AVX2, FMA and F16C");
}

bool valid_shape(const Kernel &kernel, const dim3 &grid, const dim3 &threads) {
  uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  bool empty = uint64_t{grid.x} * grid.y * grid.z == 0 || count == 0;
  // Each side is checked by itself too: the product of three 32-bit numbers can wrap around.
  bool large = threads.x > 1024 || threads.y > 1024 || threads.z > 1024 || count > kMaxBlockThreads;
  if (empty || large)
    say("kernel %s: a block of %ux%ux%u threads in a grid of %ux%ux%u cannot be launched (1 to %d threads)",
        kernel.name.c_str(), threads.x, threads.y, threads.z, grid.x, grid.y, grid.z, kMaxBlockThreads);
  return !empty && !large;
}

bool valid_shared_memory(const Kernel &kernel, size_t dynamic) {
  if (kernel.shared_bytes + dynamic <= kMaxSharedBytes)
    return true;
  say("kernel %s: shared memory of %zu bytes (%zu static, %zu dynamic) exceeds the limit of %zu",
      kernel.name.c_str(), kernel.shared_bytes + dynamic, kernel.shared_bytes, dynamic, kMaxSharedBytes);
  return false;
}

// NaN as float and as half: a value that was never written shows up in the result.
void poison_shared_memory(const Kernel &kernel, size_t dynamic) {
  for (const SharedVariable &variable : kernel.shared)
    memset(reinterpret_cast<void *>(variable.address), 0xff, variable.size);
  memset(__mccsim_dynamic_shared, 0xff, dynamic);
}

musaError_t launch(const void *stub) {
  const Kernel *kernel = find_kernel(stub);
  if (!kernel) {
    say("launch of something that is not a kernel");
    return musaErrorInvalidDeviceFunction;
  }
  if (!valid_shape(*kernel, pending.grid, pending.block))
    return musaErrorInvalidConfiguration;
  if (!valid_shared_memory(*kernel, pending.dynamic_shared)) {
    if (lab::on)
      lab::launch_refused(*kernel, pending.dynamic_shared);
    return musaErrorInvalidConfiguration;
  }
  require_cpu();
  install_crash_handler();
  gridDim = pending.grid;
  blockDim = pending.block;
  block.kernel = kernel->name;
  block.threads = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  block.warp_lanes = settings().warp_lanes;
  block.switches = 0;
  reserve_stacks(block.threads);
  if (lab::on)
    lab::launch_begins(*kernel, pending.dynamic_shared);
  running_kernel = stub;
  const double start = now(CLOCK_MONOTONIC), start_cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  for (unsigned z = 0; z < gridDim.z; z++)
    for (unsigned y = 0; y < gridDim.y; y++)
      for (unsigned x = 0; x < gridDim.x; x++) {
        blockIdx = {x, y, z};
        if (settings().poison)
          poison_shared_memory(*kernel, pending.dynamic_shared);
        if (lab::on)
          lab::block_begins();
        run_block(kernel->function, pending.arguments);
        if (lab::on)
          lab::block_ends();
      }
  running_kernel = nullptr;
  if (settings().verbose)
    say("launch %s grid (%u,%u,%u) block (%u,%u,%u) shared %zu+%zu bytes: %.3f ms (%.3f ms of CPU), %llu switches",
        kernel->name.c_str(), gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z,
        kernel->shared_bytes, pending.dynamic_shared, (now(CLOCK_MONOTONIC) - start) * 1e3,
        (now(CLOCK_PROCESS_CPUTIME_ID) - start_cpu) * 1e3, static_cast<unsigned long long>(block.switches));
  return musaSuccess;
}

}  // namespace
}  // namespace mccsim

using namespace mccsim;

extern "C" int cudaConfigureCall(dim3 grid, dim3 threads, size_t shared, musaStream_t) {
  pending.grid = grid;
  pending.block = threads;
  pending.dynamic_shared = shared;
  pending.arguments.count = 0;
  pending.arguments.bytes = 0;
  return musaSuccess;
}

extern "C" int cudaSetupArgument(const void *value, size_t bytes, size_t) {
  Arguments &a = pending.arguments;
  size_t offset = (a.bytes + 31) & ~size_t{31};
  const size_t limit = Arguments::kMaxBytes;
  if (bytes > limit || offset > limit - bytes || a.count == Arguments::kMaxCount)
    trap("argument too large",
         "by-value argument %d of a kernel has %zu bytes; all arguments of a launch may have %zu",
         a.count + 1, bytes, limit);
  memcpy(a.data + offset, value, bytes);
  a.offset[a.count] = static_cast<uint16_t>(offset);
  a.size[a.count] = static_cast<uint16_t>(bytes);
  a.count++;
  a.bytes = offset + bytes;
  return musaSuccess;
}

extern "C" int cudaLaunch(const void *stub) { return record_error(launch(stub)); }

extern "C" musaError_t __mccsim_func_get_attributes(musaFuncAttributes *attributes, const void *function) {
  const Kernel *kernel = find_kernel(function);
  if (!kernel)
    return record_error(musaErrorInvalidDeviceFunction);
  *attributes = {kernel->shared_bytes, 0, kMaxBlockThreads, 0};
  return musaSuccess;
}
