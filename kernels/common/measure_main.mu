// Host program of the micro-benchmarks of section 23: makes the input from a seed, launches mccprobe_measure,
// compares every word of the output with reference.mu of the benchmark and reports times between events and,
// where the device has a clock, ticks for one step. No device code stands here.
#include "host_program.h"
#include "measure.h"

#ifndef MEASURE_CASE_M
#error "kernel.toml gives the default case in compile_args: -DMEASURE_CASE_M=... _N, _K"
#endif

namespace {

using namespace mccprobe_host;

const Case kCases[] = {{"default", MEASURE_CASE_M, MEASURE_CASE_N, MEASURE_CASE_K, ""}};

// Above this the emulator would need minutes.
const double kEmulatorMaxSteps = 4e8;

double share_of_zeros(const std::vector<unsigned> &words) {
  size_t zeros = 0;
  for (unsigned word : words)
    zeros += word == 0;
  return words.empty() ? 0 : (double)zeros / (double)words.size();
}

// The words are compared as they are, so the result does not depend on what they stand for.
void compare(const std::vector<unsigned> &values, const std::vector<unsigned> &expected, Result *result) {
  size_t mismatches = 0;
  double max_err = 0;
  for (size_t i = 0; i < values.size(); i++) {
    mismatches += values[i] != expected[i];
    max_err = fmax(max_err, fabs((double)values[i] - (double)expected[i]));
  }
  take_worst(result, mismatches, max_err);
}

// Runs the benchmark and compares. On return without a verdict the reason tells why.
void run(const Options &options, Result *result) {
  const int M = options.m, N = options.n, K = options.k;
  result->elements = mccprobe_measure_outputs(M, N, K);
  if (!find_device(result))
    return;
  if (on_emulator(*result) && (double)M * N * K > kEmulatorMaxSteps) {
    result->reason = "this case would take minutes on the emulator; run it on a real device";
    return;
  }
  std::vector<unsigned> input(mccprobe_measure_inputs(M, N, K)), output(result->elements);
  std::vector<unsigned> expected(output.size());
  std::vector<unsigned long long> cycles(M);
  if (!options.zero) {
    Random random = {options.seed};
    for (unsigned &word : input)
      word = (unsigned)random.next();
    mccprobe_measure_prepare(input.data(), M, N, K);
  }
  result->zero_share = share_of_zeros(input);
  mccprobe_measure_expect(input.data(), expected.data(), M, N, K);

  DeviceMemory<unsigned> device_input(input.size()), device_output(output.size());
  DeviceMemory<unsigned long long> device_cycles(cycles.size());
  if (!device_input.pointer || !device_output.pointer || !device_cycles.pointer) {
    result->reason = "not enough device memory";
    return;
  }
  const musaError_t error =
      musaMemcpy(device_input.pointer, input.data(), input.size() * sizeof(unsigned), musaMemcpyHostToDevice);
  if (error != musaSuccess) {
    explain(&result->reason, "copy to the device", error);
    return;
  }
  launch_repeatedly(
      options, result,
      // No output word is expected to have all bits set.
      [&] {
        musaMemset(device_output.pointer, 0xff, output.size() * sizeof(unsigned));
        musaMemset(device_cycles.pointer, 0, cycles.size() * sizeof cycles[0]);
      },
      [&] {
        return mccprobe_measure({device_input.pointer, device_output.pointer, device_cycles.pointer}, M, N, K);
      },
      [&] {
        musaError_t copied = musaMemcpy(output.data(), device_output.pointer, output.size() * sizeof(unsigned),
                                        musaMemcpyDeviceToHost);
        if (copied == musaSuccess)
          copied = musaMemcpy(cycles.data(), device_cycles.pointer, cycles.size() * sizeof cycles[0],
                              musaMemcpyDeviceToHost);
        if (copied == musaSuccess)
          compare(output, expected, result);
        double sum = 0;
        for (unsigned long long ticks : cycles)
          sum += (double)ticks;
        if (sum > 0)
          result->cycles = sum / M / K;
        return copied;
      });
}

}  // namespace

int main(int argc, char **argv) { return host_program("measure", kCases, argc, argv, run); }
