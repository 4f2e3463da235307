// half precision: CUDA's own type and functions have the names that mcc's headers give.
#pragma once

#include <cuda_fp16.h>
#include <musa_runtime.h>
