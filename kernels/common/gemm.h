// The entry that every GEMM kernel file defines and the host program calls.
#pragma once

#include <musa_fp16.h>
#include <musa_runtime.h>

// C = A * B in half precision with float accumulation. All three are column-major on the device:
// A is M x K with leading dimension M, B is K x N with K, C is M x N with M.
// Returns the error of the launch; waits for nothing.
// musaErrorNotSupported: no kernel of the file takes this shape.
extern "C" musaError_t mccprobe_gemm(const half *A, const half *B, half *C, int M, int N, int K);
