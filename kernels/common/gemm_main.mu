// Host program of all GEMM kernels: makes inputs from a seed, runs mccprobe_gemm, compares with a
// reference computed on the CPU and says whether the numbers are right. No device code stands here.
#include "gemm.h"
#include "host_program.h"

// Largest error that is allowed for an element. With inputs in +-0.5 the standard deviation of an element of
// C is sqrt(K)/12, so the largest elements and their rounding error grow with sqrt(K): at K = 512 they reach
// 8 to 16, where half an ulp is 0.004. kernel.toml has the same formula.
#ifndef GEMM_TOLERANCE
#define GEMM_TOLERANCE (0.01 * sqrt(K / 512.0))
#endif

namespace {

using namespace mccprobe_host;

const Case kCases[] = {
    {"small", 256, 256, 512, "one tile of the large kernel"},
    {"medium", 512, 512, 1024, ""},
    {"large", 1024, 1024, 2048, ""},
    {"non_square", 512, 1024, 2048, ""},
    {"fallback", 272, 144, 96, "not a multiple of the large tile"},
    {"correctness_8k", 8192, 8192, 16384, "real device only"},
};

// Above this the emulator would need minutes.
const double kEmulatorMaxOperations = 4e10;

// ---- data ---------------------------------------------------------------------------------------

// Uniform in [-0.5, 0.5) in steps of 2^-12. Every such value is exact in half precision, so `exact`
// holds just what the kernel reads and the reference starts from the same numbers.
void fill_random(Random *random, std::vector<half> *values, std::vector<float> *exact) {
  for (size_t i = 0; i < values->size();) {
    unsigned long long bits = random->next();
    for (int part = 0; part < 5 && i < values->size(); part++, i++, bits >>= 12) {
      float value = (float)((int)(bits & 4095) - 2048) * (1.0f / 4096);
      (*exact)[i] = value;
      (*values)[i] = __float2half(value);
    }
  }
}

// Timing on zero input is no timing of the work: one tile in the L2 cache serves for all of them.
double share_of_zeros(const std::vector<half> &a, const std::vector<half> &b) {
  size_t zeros = 0;
  for (const std::vector<half> *values : {&a, &b})
    for (const half &value : *values)
      zeros += __half2float(value) == 0.0f;
  return (double)zeros / (double)(a.size() + b.size());
}

// ---- reference ----------------------------------------------------------------------------------

// Float is enough for the tolerance: the rounding error of the sum is below 1e-4 for K = 16384. With
// MCCPROBE_REFERENCE_FLOAT64 the sums are exact (a product has at most 22 bits), on all cores if the host
// compiler has OpenMP.
#ifdef MCCPROBE_REFERENCE_FLOAT64
typedef double Real;
#else
typedef float Real;
#endif

// A strip of 16 rows of A is copied together, so that it stays in the cache for all columns of B.
const int kRows = 16, kColumns = 4;
const int kLanes = 32 / sizeof(Real), kParts = kRows / kLanes;  // a vector has 32 bytes

inline __attribute__((always_inline)) void reference_body(const float *A, const float *B, Real *C, int M,
                                                          int N, int K, int m, Real *strip) {
  typedef Real Vector __attribute__((vector_size(32), aligned(sizeof(Real))));
  const int rows = M - m < kRows ? M - m : kRows;
  for (int k = 0; k < K; k++)
    for (int r = 0; r < kRows; r++)
      strip[(size_t)k * kRows + r] = r < rows ? A[(size_t)k * M + m + r] : 0.0f;
  for (int n = 0; n < N; n += kColumns) {
    const int columns = N - n < kColumns ? N - n : kColumns;
    Vector sum[kColumns][kParts] = {};
    const float *b[kColumns];
    for (int c = 0; c < kColumns; c++)
      b[c] = B + (size_t)(n + (c < columns ? c : 0)) * K;
    for (int k = 0; k < K; k++) {
      const Vector *a = (const Vector *)(strip + (size_t)k * kRows);
#pragma unroll
      for (int c = 0; c < kColumns; c++)
#pragma unroll
        for (int p = 0; p < kParts; p++)
          sum[c][p] += a[p] * (Real)b[c][k];
    }
    for (int c = 0; c < columns; c++)
      for (int r = 0; r < rows; r++)
        C[(size_t)(n + c) * M + m + r] = sum[c][r / kLanes][r % kLanes];
  }
}

// The body is compiled twice: this program is built without CPU options, and the wide version makes
// the reference several times faster.
__attribute__((target("avx2,fma"))) void reference_wide(const float *A, const float *B, Real *C, int M,
                                                        int N, int K, int m, Real *strip) {
  reference_body(A, B, C, M, N, K, m, strip);
}

void reference(const float *A, const float *B, Real *C, int M, int N, int K) {
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
  for (int m = 0; m < M; m += kRows) {
    std::vector<Real> strip((size_t)K * kRows);
    if (wide)
      reference_wide(A, B, C, M, N, K, m, strip.data());
    else
      reference_body(A, B, C, M, N, K, m, strip.data());
  }
}

// NaN and infinity count as mismatches.
void compare(const std::vector<half> &values, const std::vector<Real> &expected, Result *result) {
  size_t mismatches = 0;
  double max_err = 0;
  for (size_t i = 0; i < values.size(); i++) {
    double error = fabs((double)__half2float(values[i]) - (double)expected[i]);
    if (!(error <= result->tolerance))
      mismatches++;
    if (!(error <= max_err))  // takes over NaN too
      max_err = max_err == max_err ? error : max_err;
  }
  take_worst(result, mismatches, max_err);
}

// ---- run ----------------------------------------------------------------------------------------

// Runs the kernel and compares. On return without a verdict the reason tells why.
void run(const Options &options, Result *result) {
  const int M = options.m, N = options.n, K = options.k;
  result->elements = (size_t)M * N;
  result->tolerance = GEMM_TOLERANCE;
  if (!find_device(result))
    return;
  if (on_emulator(*result) && 2.0 * M * N * K > kEmulatorMaxOperations) {
    result->reason = "this case would take minutes on the emulator; run it on a real device";
    return;
  }

  std::vector<half> A((size_t)M * K), B((size_t)K * N), C(result->elements);
  std::vector<float> exact_a(A.size()), exact_b(B.size());
  std::vector<Real> expected(C.size());
  if (options.zero) {
    memset((void *)A.data(), 0, A.size() * sizeof(half));
    memset((void *)B.data(), 0, B.size() * sizeof(half));
  } else {
    Random random = {options.seed};
    fill_random(&random, &A, &exact_a);
    fill_random(&random, &B, &exact_b);
  }
  result->zero_share = share_of_zeros(A, B);

  DeviceMemory<half> device_a(A.size()), device_b(B.size()), device_c(C.size());
  if (!device_a.pointer || !device_b.pointer || !device_c.pointer) {
    result->reason = "not enough device memory";
    return;
  }
  musaError_t error = musaMemcpy(device_a.pointer, A.data(), A.size() * sizeof(half), musaMemcpyHostToDevice);
  if (error == musaSuccess)
    error = musaMemcpy(device_b.pointer, B.data(), B.size() * sizeof(half), musaMemcpyHostToDevice);
  if (error != musaSuccess) {
    explain(&result->reason, "copy to the device", error);
    return;
  }
  if (!options.zero)
    reference(exact_a.data(), exact_b.data(), expected.data(), M, N, K);

  launch_repeatedly(
      options, result,
      // All bits set is NaN: an element that the kernel does not write is a mismatch.
      [&] { musaMemset(device_c.pointer, 0xff, C.size() * sizeof(half)); },
      [&] { return mccprobe_gemm(device_a.pointer, device_b.pointer, device_c.pointer, M, N, K); },
      [&] {
        const musaError_t copied =
            musaMemcpy(C.data(), device_c.pointer, C.size() * sizeof(half), musaMemcpyDeviceToHost);
        if (copied == musaSuccess)
          compare(C, expected, result);
        return copied;
      });
}

}  // namespace

int main(int argc, char **argv) { return host_program("gemm", kCases, argc, argv, run); }
