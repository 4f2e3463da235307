// Host program of all GEMM kernels: makes inputs from a seed, runs mccprobe_gemm, compares with a
// reference computed on the CPU and says whether the numbers are right. No device code stands here.
//
// Exit code: 0 right, 1 wrong, 125 cannot tell (no memory, launch error, case not for this device),
// 2 bad command line.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "gemm.h"
#include "launch_record.h"

namespace {

enum { kRight = 0, kWrong = 1, kUsage = 2, kCannotTell = 125 };

struct Case {
  const char *name;
  int m, n, k;
  const char *note;
};

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

// A short text without std::string: with -opt-bisect-limit clang 14 leaves calls to members of libstdc++'s
// string that no library defines, and the article's one-line command would not link at any limit.
struct Text {
  char data[512] = "";

  Text &operator=(const char *text) {
    data[0] = 0;
    return add(text);
  }
  Text &add(const char *text) {
    const size_t used = strlen(data);
    snprintf(data + used, sizeof data - used, "%s", text);
    return *this;
  }
  bool empty() const { return data[0] == 0; }
};

struct Options {
  const char *name = "small";
  int m = 0, n = 0, k = 0;
  unsigned long long seed = 1;
  bool zero = false;
  int repeat = 1;
  bool json = false;
  bool list = false;
};

struct Result {
  const char *verdict = "UNRESOLVED";
  Text reason;
  size_t elements = 0, mismatches = 0;
  double max_err = 0, tolerance = 0;
  std::vector<double> milliseconds;
  Text device;
};

// ---- command line -------------------------------------------------------------------------------

[[noreturn]] void usage(const char *program, const char *problem, const char *value) {
  fprintf(stderr,
          "%s: %s%s\n"
          "usage: %s [--case NAME|MxNxK] [--seed S] [--input random|zero] [--repeat N] [--json] [--list]\n",
          program, problem, value, program);
  exit(kUsage);
}

bool parse_number(const char *text, unsigned long long max, unsigned long long *value) {
  char *end;
  *value = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && *value <= max;
}

bool parse_case(const char *text, Options *options) {
  for (const Case &c : kCases)
    if (strcmp(text, c.name) == 0) {
      options->name = c.name;
      options->m = c.m, options->n = c.n, options->k = c.k;
      return true;
    }
  char extra;
  options->name = text;
  return sscanf(text, "%dx%dx%d%c", &options->m, &options->n, &options->k, &extra) == 3 &&
         options->m > 0 && options->n > 0 && options->k > 0;
}

Options parse(int argc, char **argv) {
  Options options;
  parse_case("small", &options);
  for (int i = 1; i < argc; i++) {
    const char *option = argv[i];
    const auto is = [option](const char *name) { return strcmp(option, name) == 0; };
    if (is("--json")) {
      options.json = true;
      continue;
    }
    if (is("--list")) {
      options.list = true;
      continue;
    }
    if (!is("--case") && !is("--seed") && !is("--input") && !is("--repeat"))
      usage(argv[0], "unknown option ", argv[i]);
    if (++i == argc)
      usage(argv[0], "no value for ", option);
    const char *value = argv[i];
    unsigned long long number = 0;
    if (is("--case")) {
      if (!parse_case(value, &options))
        usage(argv[0], "unknown case ", value);
    } else if (is("--seed")) {
      if (!parse_number(value, ~0ull, &options.seed))
        usage(argv[0], "bad seed ", value);
    } else if (is("--repeat")) {
      if (!parse_number(value, 1000000, &number) || number == 0)
        usage(argv[0], "bad repeat count ", value);
      options.repeat = (int)number;
    } else {
      options.zero = strcmp(value, "zero") == 0;
      if (!options.zero && strcmp(value, "random") != 0)
        usage(argv[0], "bad input ", value);
    }
  }
  return options;
}

void list_cases() {
  for (const Case &c : kCases)
    printf("%s %dx%dx%d%s%s\n", c.name, c.m, c.n, c.k, *c.note ? "  " : "", c.note);
}

// ---- data ---------------------------------------------------------------------------------------

// splitmix64: a seed gives the same bits on every machine and with every library.
struct Random {
  unsigned long long state;
  unsigned long long next() {
    unsigned long long z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
};

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

// ---- reference ----------------------------------------------------------------------------------

// A strip of 16 rows of A is copied together, so that it stays in the cache for all columns of B. Float
// is enough: the rounding error of the sum is below 1e-4 for K = 16384, the tolerance far above.
const int kRows = 16, kColumns = 4;

inline __attribute__((always_inline)) void reference_body(const float *A, const float *B, float *C, int M,
                                                          int N, int K, float *strip) {
  typedef float vector8 __attribute__((vector_size(32), aligned(4)));
  for (int m = 0; m < M; m += kRows) {
    const int rows = M - m < kRows ? M - m : kRows;
    for (int k = 0; k < K; k++)
      for (int r = 0; r < kRows; r++)
        strip[(size_t)k * kRows + r] = r < rows ? A[(size_t)k * M + m + r] : 0.0f;
    for (int n = 0; n < N; n += kColumns) {
      const int columns = N - n < kColumns ? N - n : kColumns;
      vector8 low[kColumns] = {}, high[kColumns] = {};
      const float *b[kColumns];
      for (int c = 0; c < kColumns; c++)
        b[c] = B + (size_t)(n + (c < columns ? c : 0)) * K;
      for (int k = 0; k < K; k++) {
        const vector8 a_low = *(const vector8 *)(strip + (size_t)k * kRows);
        const vector8 a_high = *(const vector8 *)(strip + (size_t)k * kRows + 8);
#pragma unroll
        for (int c = 0; c < kColumns; c++) {
          low[c] += a_low * b[c][k];
          high[c] += a_high * b[c][k];
        }
      }
      for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
          C[(size_t)(n + c) * M + m + r] = r < 8 ? low[c][r] : high[c][r - 8];
    }
  }
}

// The body is compiled twice: this program is built without CPU options, and the wide version makes
// the reference several times faster.
__attribute__((target("avx2,fma"))) void reference_wide(const float *A, const float *B, float *C, int M,
                                                        int N, int K, float *strip) {
  reference_body(A, B, C, M, N, K, strip);
}

void reference(const float *A, const float *B, float *C, int M, int N, int K) {
  std::vector<float> strip((size_t)K * kRows);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    reference_wide(A, B, C, M, N, K, strip.data());
  else
    reference_body(A, B, C, M, N, K, strip.data());
}

// The result is rounded to half. With inputs in +-0.5 the standard deviation of an element of C is
// sqrt(K)/12, so the largest elements and their rounding error grow with sqrt(K): at K = 512 they reach
// 8 to 16, where half an ulp is 0.004.
double tolerance_for(int K) { return 0.01 * sqrt(K / 512.0); }

// NaN and infinity count as mismatches.
void compare(const std::vector<half> &values, const std::vector<float> &expected, Result *result) {
  size_t mismatches = 0;
  double max_err = 0;
  for (size_t i = 0; i < values.size(); i++) {
    double error = fabs((double)__half2float(values[i]) - (double)expected[i]);
    if (!(error <= result->tolerance))
      mismatches++;
    if (!(error <= max_err))  // takes over NaN too
      max_err = max_err == max_err ? error : max_err;
  }
  // The worst run of several counts.
  if (mismatches > result->mismatches)
    result->mismatches = mismatches;
  if (!(max_err <= result->max_err))
    result->max_err = result->max_err == result->max_err ? max_err : result->max_err;
}

// ---- run ----------------------------------------------------------------------------------------

// Device memory of the run, freed at the end of its scope.
struct DeviceMemory {
  half *pointer = nullptr;
  explicit DeviceMemory(size_t count) {
    if (musaMalloc((void **)&pointer, count * sizeof(half)) != musaSuccess)
      pointer = nullptr;
  }
  ~DeviceMemory() { musaFree(pointer); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
};

void explain(Text *reason, const char *what, musaError_t error) {
  (*reason = what).add(": ").add(musaGetErrorString(error));
}

// Runs the kernel and compares. On return without a verdict the reason tells why.
void run(const Options &options, Result *result) {
  const int M = options.m, N = options.n, K = options.k;
  result->elements = (size_t)M * N;
  result->tolerance = tolerance_for(K);
  musaDeviceProp properties;
  musaError_t error = musaGetDeviceProperties(&properties, 0);
  if (error != musaSuccess) {
    explain(&result->reason, "no device", error);
    return;
  }
  result->device = properties.name;
  if (strstr(properties.name, "emulation") && 2.0 * M * N * K > kEmulatorMaxOperations) {
    result->reason = "this case would take minutes on the emulator; run it on a real device";
    return;
  }

  std::vector<half> A((size_t)M * K), B((size_t)K * N), C(result->elements);
  std::vector<float> exact_a(A.size()), exact_b(B.size()), expected(C.size());
  if (options.zero) {
    memset((void *)A.data(), 0, A.size() * sizeof(half));
    memset((void *)B.data(), 0, B.size() * sizeof(half));
  } else {
    Random random = {options.seed};
    fill_random(&random, &A, &exact_a);
    fill_random(&random, &B, &exact_b);
  }

  DeviceMemory device_a(A.size()), device_b(B.size()), device_c(C.size());
  if (!device_a.pointer || !device_b.pointer || !device_c.pointer) {
    result->reason = "not enough device memory";
    return;
  }
  error = musaMemcpy(device_a.pointer, A.data(), A.size() * sizeof(half), musaMemcpyHostToDevice);
  if (error == musaSuccess)
    error = musaMemcpy(device_b.pointer, B.data(), B.size() * sizeof(half), musaMemcpyHostToDevice);
  if (error != musaSuccess) {
    explain(&result->reason, "copy to the device", error);
    return;
  }
  if (!options.zero)
    reference(exact_a.data(), exact_b.data(), expected.data(), M, N, K);

  musaEvent_t start, stop;
  musaEventCreate(&start);
  musaEventCreate(&stop);
  for (int i = 0; i < options.repeat && result->reason.empty(); i++) {
    // All bits set is NaN: an element that the kernel does not write is a mismatch.
    musaMemset(device_c.pointer, 0xff, C.size() * sizeof(half));
    musaEventRecord(start, 0);
    error = mccprobe_gemm(device_a.pointer, device_b.pointer, device_c.pointer, M, N, K);
    if (error == musaErrorNotSupported) {
      result->reason = "no kernel takes this shape";
      break;
    }
    musaEventRecord(stop, 0);
    if (error == musaSuccess)
      error = musaEventSynchronize(stop);
    if (error == musaSuccess)
      error = musaDeviceSynchronize();
    if (error != musaSuccess) {
      explain(&result->reason, "kernel launch", error);
      break;
    }
    float milliseconds = 0;
    musaEventElapsedTime(&milliseconds, start, stop);
    result->milliseconds.push_back(milliseconds);
    error = musaMemcpy(C.data(), device_c.pointer, C.size() * sizeof(half), musaMemcpyDeviceToHost);
    if (error != musaSuccess)
      explain(&result->reason, "copy from the device", error);
    else
      compare(C, expected, result);
  }
  musaEventDestroy(start);
  musaEventDestroy(stop);
  if (result->reason.empty())
    result->verdict = result->mismatches ? "BAD" : "GOOD";
}

// ---- output -------------------------------------------------------------------------------------

void print_quoted(const char *text) {
  putchar('"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      printf("\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      printf("\\u%04x", *text);
    else
      putchar(*text);
  }
  putchar('"');
}

void print_kernels(bool json) {
  const mccprobe_launch_record &record = mccprobe_launches();
  for (int i = 0; i < record.count; i++) {
    if (i)
      printf(", ");
    if (json)
      print_quoted(record.names[i]);
    else
      printf("%s", record.names[i]);
  }
}

void print_json(const Options &options, const Result &result) {
  printf("{\"case\": ");
  print_quoted(options.name);
  printf(", \"m\": %d, \"n\": %d, \"k\": %d, \"seed\": %llu, \"input\": \"%s\",\n", options.m, options.n,
         options.k, options.seed, options.zero ? "zero" : "random");
  printf(" \"elements\": %zu, \"mismatches\": %zu, \"max_err\": ", result.elements, result.mismatches);
  if (isfinite(result.max_err) && !result.milliseconds.empty())
    printf("%.9g", result.max_err);
  else
    printf("null");
  printf(", \"tolerance\": %.9g,\n \"kernels\": [", result.tolerance);
  print_kernels(true);
  printf("], \"milliseconds\": [");
  for (size_t i = 0; i < result.milliseconds.size(); i++)
    printf("%s%.3f", i ? ", " : "", result.milliseconds[i]);
  printf("],\n \"device\": ");
  print_quoted(result.device.empty() ? "unknown" : result.device.data);
  printf(", \"verdict\": \"%s\", \"reason\": ", result.verdict);
  print_quoted(result.reason.data);
  printf("}\n");
}

void print_text(const Options &options, const Result &result) {
  printf("gemm %s %dx%dx%d seed %llu: ", options.name, options.m, options.n, options.k, options.seed);
  if (strcmp(result.verdict, "UNRESOLVED") == 0) {
    printf("cannot tell: %s\n", result.reason.data);
    return;
  }
  double best = result.milliseconds[0];
  for (double ms : result.milliseconds)
    best = ms < best ? ms : best;
  printf("%zu/%zu wrong, max_err %.4g, tolerance %.4f, kernels [", result.mismatches, result.elements,
         result.max_err, result.tolerance);
  print_kernels(false);
  printf("], %.1f ms\n", best);
}

}  // namespace

int main(int argc, char **argv) {
  Options options = parse(argc, argv);
  if (options.list) {
    list_cases();
    return kRight;
  }
  Result result;
  run(options, &result);
  if (options.json)
    print_json(options, result);
  else
    print_text(options, result);
  if (strcmp(result.verdict, "GOOD") == 0)
    return kRight;
  return strcmp(result.verdict, "BAD") == 0 ? kWrong : kCannotTell;
}
