#pragma once

#include <musa_runtime.h>

namespace mccsim {

// Memory from musaMalloc.
struct Allocation {
  const char *begin;
  size_t bytes;
};

// The allocation that holds the address or, with the laboratory on, lies next to it.
bool find_allocation(const void *address, Allocation *found);

// With the laboratory on: the freed one that held the address. Its place is not given to anybody else.
bool find_freed(const void *address, Allocation *found);

// Keeps an error for musaGetLastError and returns it.
musaError_t record_error(musaError_t error);

}  // namespace mccsim
