// Device assembly must say that it is not MTGPU's.
#include "driver.h"

#include <cstdio>
#include <unistd.h>

namespace mccsim {

const char *const kBannerOption = "--mccprobe-sim-banner";

int addBanner(const std::string &from, const std::string &to) {
  std::FILE *in = std::fopen(from.c_str(), "rb");
  std::FILE *out = to == "-" ? stdout : std::fopen(to.c_str(), "wb");
  bool good = in && out;
  if (good) {
    std::fputs("# mccprobe sim: SIMULATED device, x86-64 assembly, not MTGPU\n", out);
    char buffer[16384];
    std::size_t count;
    while ((count = std::fread(buffer, 1, sizeof buffer, in)) > 0)
      good &= std::fwrite(buffer, 1, count, out) == count;
    good &= std::ferror(in) == 0;
  }
  if (in)
    std::fclose(in);
  if (out)
    good &= (to == "-" ? std::fflush(out) : std::fclose(out)) == 0;
  if (!good) {
    std::fprintf(stderr, "mcc: error: unable to copy '%s' to '%s'\n", from.c_str(), to.c_str());
    if (to != "-")
      unlink(to.c_str());
    return 1;
  }
  return 0;
}

} // namespace mccsim
