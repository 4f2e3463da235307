// What the host programs of all kernels share: command line, seeded numbers, timed launches, the JSON
// document. The contract is in kernels/README.md. No device code stands here.
//
// Exit code: 0 right, 1 wrong, 125 cannot tell (no memory, launch error, case not for this device),
// 2 bad command line.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include <musa_runtime.h>

#include "launch_record.h"

namespace mccprobe_host {

enum { kRight = 0, kWrong = 1, kUsage = 2, kCannotTell = 125 };

struct Case {
  const char *name;
  int m, n, k;
  const char *note;
};

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
  const char *name = "";
  int m = 0, n = 0, k = 0;
  unsigned long long seed = 1;
  bool zero = false;
  int repeat = 1;
  bool check_last = false;
  bool json = false;
  bool list = false;
};

struct Result {
  const char *verdict = "UNRESOLVED";
  Text reason;
  size_t elements = 0, mismatches = 0;
  double max_err = 0, tolerance = 0;
  double zero_share = -1;  // of the input elements; negative: no input was made
  double cycles = -1;      // device clock ticks for one step; negative: not counted
  std::vector<double> milliseconds;
  Text device;
};

// ---- command line -------------------------------------------------------------------------------

[[noreturn]] inline void usage(const char *program, const char *problem, const char *value) {
  fprintf(stderr,
          "%s: %s%s\n"
          "usage: %s [--case NAME|MxNxK] [--seed S] [--input random|zero] [--repeat N] [--check each|last]\n"
          "       [--json] [--list]\n",
          program, problem, value, program);
  exit(kUsage);
}

inline bool parse_number(const char *text, unsigned long long max, unsigned long long *value) {
  char *end;
  *value = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && *value <= max;
}

template <size_t count> bool parse_case(const Case (&cases)[count], const char *text, Options *options) {
  for (const Case &c : cases)
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

// The first case is the default.
template <size_t count> Options parse(const Case (&cases)[count], int argc, char **argv) {
  Options options;
  parse_case(cases, cases[0].name, &options);
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
    if (!is("--case") && !is("--seed") && !is("--input") && !is("--repeat") && !is("--check"))
      usage(argv[0], "unknown option ", argv[i]);
    if (++i == argc)
      usage(argv[0], "no value for ", option);
    const char *value = argv[i];
    unsigned long long number = 0;
    if (is("--case")) {
      if (!parse_case(cases, value, &options))
        usage(argv[0], "unknown case ", value);
    } else if (is("--seed")) {
      if (!parse_number(value, ~0ull, &options.seed))
        usage(argv[0], "bad seed ", value);
    } else if (is("--repeat")) {
      if (!parse_number(value, 1000000, &number) || number == 0)
        usage(argv[0], "bad repeat count ", value);
      options.repeat = (int)number;
    } else if (is("--check")) {
      options.check_last = strcmp(value, "last") == 0;
      if (!options.check_last && strcmp(value, "each") != 0)
        usage(argv[0], "bad check ", value);
    } else {
      options.zero = strcmp(value, "zero") == 0;
      if (!options.zero && strcmp(value, "random") != 0)
        usage(argv[0], "bad input ", value);
    }
  }
  return options;
}

template <size_t count> void list_cases(const Case (&cases)[count]) {
  for (const Case &c : cases)
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

// Device memory of the run, freed at the end of its scope.
template <typename T> struct DeviceMemory {
  T *pointer = nullptr;
  explicit DeviceMemory(size_t count) {
    if (musaMalloc((void **)&pointer, count * sizeof(T)) != musaSuccess)
      pointer = nullptr;
  }
  ~DeviceMemory() { musaFree(pointer); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
};

// ---- run ----------------------------------------------------------------------------------------

inline void explain(Text *reason, const char *what, musaError_t error) {
  (*reason = what).add(": ").add(musaGetErrorString(error));
}

// The device's name into the result. False, with the reason: there is no device.
inline bool find_device(Result *result) {
  musaDeviceProp properties;
  const musaError_t error = musaGetDeviceProperties(&properties, 0);
  if (error == musaSuccess)
    result->device = properties.name;
  else
    explain(&result->reason, "no device", error);
  return error == musaSuccess;
}

inline bool on_emulator(const Result &result) { return strstr(result.device.data, "emulation") != nullptr; }

// Launches and times as often as asked. `prepare` comes before, `check` after each launch whose output
// counts; both return an error of the device, and so does `launch`.
template <typename Prepare, typename Launch, typename Check>
void launch_repeatedly(const Options &options, Result *result, Prepare prepare, Launch launch, Check check) {
  musaEvent_t start, stop;
  musaEventCreate(&start);
  musaEventCreate(&stop);
  for (int i = 0; i < options.repeat && result->reason.empty(); i++) {
    const bool counts = !options.check_last || i + 1 == options.repeat;
    if (counts)
      prepare();
    musaEventRecord(start, 0);
    musaError_t error = launch();
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
    if (counts && (error = check()) != musaSuccess)
      explain(&result->reason, "copy from the device", error);
  }
  musaEventDestroy(start);
  musaEventDestroy(stop);
  if (result->reason.empty())
    result->verdict = result->mismatches ? "BAD" : "GOOD";
}

// The worst run of several counts. NaN is the worst error of all.
inline void take_worst(Result *result, size_t mismatches, double max_err) {
  if (mismatches > result->mismatches)
    result->mismatches = mismatches;
  if (!(max_err <= result->max_err))
    result->max_err = result->max_err == result->max_err ? max_err : result->max_err;
}

// ---- output -------------------------------------------------------------------------------------

inline void print_quoted(const char *text) {
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

inline void print_kernels(bool json) {
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

inline void print_launches() {
  const mccprobe_launch_record &record = mccprobe_launches();
  for (int i = 0; i < record.count; i++) {
    if (i)
      printf(", ");
    print_quoted(record.names[i]);
    printf(": %d", record.launches[i]);
  }
}

inline void print_number(const char *format, double value, bool known) {
  if (known)
    printf(format, value);
  else
    printf("null");
}

inline void print_json(const Options &options, const Result &result) {
  printf("{\"case\": ");
  print_quoted(options.name);
  printf(", \"m\": %d, \"n\": %d, \"k\": %d, \"seed\": %llu, \"input\": \"%s\",\n", options.m, options.n,
         options.k, options.seed, options.zero ? "zero" : "random");
  printf(" \"elements\": %zu, \"mismatches\": %zu, \"max_err\": ", result.elements, result.mismatches);
  print_number("%.9g", result.max_err, isfinite(result.max_err) && !result.milliseconds.empty());
  printf(", \"tolerance\": %.9g,\n \"kernels\": [", result.tolerance);
  print_kernels(true);
  printf("], \"launches\": {");
  print_launches();
  printf("},\n \"zero_share\": ");
  print_number("%.9g", result.zero_share, result.zero_share >= 0);
  if (result.cycles >= 0)
    printf(", \"cycles\": %.3f", result.cycles);
  printf(", \"milliseconds\": [");
  for (size_t i = 0; i < result.milliseconds.size(); i++)
    printf("%s%.3f", i ? ", " : "", result.milliseconds[i]);
  printf("],\n \"device\": ");
  print_quoted(result.device.empty() ? "unknown" : result.device.data);
  printf(", \"verdict\": \"%s\", \"reason\": ", result.verdict);
  print_quoted(result.reason.data);
  printf("}\n");
}

inline void print_text(const char *what, const Options &options, const Result &result) {
  printf("%s %s %dx%dx%d seed %llu: ", what, options.name, options.m, options.n, options.k, options.seed);
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
  printf("], %.1f ms", best);
  if (result.cycles >= 0)
    printf(", %.1f cycles a step", result.cycles);
  printf("\n");
}

// main() of a host program. `run` fills the result; without a verdict its reason tells why.
template <size_t count, typename Run>
int host_program(const char *what, const Case (&cases)[count], int argc, char **argv, Run run) {
  const Options options = parse(cases, argc, argv);
  if (options.list) {
    list_cases(cases);
    return kRight;
  }
  Result result;
  run(options, &result);
  if (options.json)
    print_json(options, result);
  else
    print_text(what, options, result);
  if (strcmp(result.verdict, "GOOD") == 0)
    return kRight;
  return strcmp(result.verdict, "BAD") == 0 ? kWrong : kCannotTell;
}

}  // namespace mccprobe_host
