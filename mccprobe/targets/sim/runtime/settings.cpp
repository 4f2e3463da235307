#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "trap.h"

namespace mccsim {
namespace {

// Index of the variable's value in the list; the first entry is the default.
int choice(const char *name, std::initializer_list<const char *> values) {
  const char *text = getenv(name);
  if (!text || !*text)
    return 0;
  int index = 0;
  for (const char *value : values) {
    if (strcmp(text, value) == 0)
      return index;
    index++;
  }
  trap("bad setting", "%s=%s is not understood", name, text);
}

Settings read() {
  Settings s;
  s.warp_lanes = choice("MCCSIM_WARP", {"128", "32"}) == 0 ? 128 : 32;
  s.divergence = static_cast<Divergence>(choice("MCCSIM_DIVERGE", {"trap", "first", "lane"}));
  s.poison = choice("MCCSIM_POISON", {"1", "0"}) == 0;
  s.verbose = choice("MCCSIM_VERBOSE", {"0", "1"}) == 1;
  s.sweep = choice("MCCSIM_SWEEP", {"1", "0"}) == 0;
  return s;
}

}  // namespace

const Settings &settings() {
  static const Settings s = read();
  return s;
}

}  // namespace mccsim
