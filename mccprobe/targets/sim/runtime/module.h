// Device modules: one for each .mu file of the program, loaded when a kernel of it is first used.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "mubin.h"

namespace mccsim {

// Bytes of shared memory that a block of MP22 can have.
constexpr size_t kMaxSharedBytes = 73728;

struct Kernel {
  std::string symbol;  // mangled
  std::string name;    // "ns::gemm<true>", for messages and for the launch log
  void *function;
  std::vector<SharedVariable> shared;  // at run-time addresses
  size_t shared_bytes;
  std::vector<SharedVariable> shared_of_functions;  // of __device__ functions, which kernels may call
  std::vector<SharedVariable> variables;  // the image's other variables, at run-time addresses
  uintptr_t image_base;
  const void *place;  // where it stands in the source, for the laboratory; null in a build without it
};

// Memory of all `extern __shared__` arrays.
extern "C" char __mccsim_dynamic_shared[kMaxSharedBytes];

// The kernel behind a launch stub. Traps if its module cannot be loaded or lacks the kernel; returns
// null if the pointer is no launch stub.
const Kernel *find_kernel(const void *stub);

// Address of the device copy of a variable, or null.
void *find_variable(const void *host_symbol, size_t *bytes);

}  // namespace mccsim
