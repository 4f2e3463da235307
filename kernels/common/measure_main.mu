// Host program of the micro-benchmarks of section 23: makes the input from a seed, launches mccprobe_measure,
// compares every word of the output with reference.mu of the benchmark and reports times between events and,
// where the device has a clock, ticks for one step. No device code stands here.
#include "host_program.h"
#include "measure.h"

namespace {

using namespace mccprobe_host;

// Above this the emulator would need minutes.
const double kEmulatorMaxSteps = 4e8;

double share_of_zeros(const std::vector<unsigned> &words) {
  size_t zeros = 0;
  for (unsigned word : words)
    zeros += word == 0;
  return words.empty() ? 0 : (double)zeros / (double)words.size();
}

// The words are compared as they are, whatever they stand for: all results are exact.
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
  const mccprobe_measure_shape shape = {options.m, options.n, options.k};
  result->elements = mccprobe_measure_outputs(shape);
  if (!find_device(result))
    return;
  if (on_emulator(*result) && (double)options.m * options.n * options.k > kEmulatorMaxSteps) {
    result->reason = "this case would take minutes on the emulator; run it on a real device";
    return;
  }
  std::vector<unsigned> input(mccprobe_measure_inputs(shape)), output(result->elements);
  std::vector<unsigned> expected(output.size());
  std::vector<unsigned long long> cycles(options.m);
  if (!options.zero) {
    Random random = {options.seed};
    for (unsigned &word : input)
      word = (unsigned)random.next();
    mccprobe_measure_prepare(input.data(), shape);
  }
  result->zero_share = share_of_zeros(input);
  mccprobe_measure_expect(input.data(), expected.data(), shape);

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
      // A word that the kernel does not write is a mismatch: hardly any is expected to have all bits set.
      [&] {
        musaMemset(device_output.pointer, 0xff, output.size() * sizeof(unsigned));
        musaMemset(device_cycles.pointer, 0, cycles.size() * sizeof cycles[0]);
      },
      [&] {
        return mccprobe_measure({device_input.pointer, device_output.pointer, device_cycles.pointer}, shape);
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
          result->cycles = sum / options.m / options.k;
        return copied;
      });
}

}  // namespace

int main(int argc, char **argv) {
  const mccprobe_measure_shape shape = mccprobe_measure_default();
  const Case cases[] = {{"default", shape.blocks, shape.threads, shape.steps, ""}};
  return host_program("measure", cases, argc, argv, run);
}
