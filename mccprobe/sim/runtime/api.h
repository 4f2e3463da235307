#pragma once

#include <musa_runtime.h>

namespace mccsim {

// Keeps an error for musaGetLastError and returns it.
musaError_t record_error(musaError_t error);

}  // namespace mccsim
