// Environment settings of the emulator, read once per process.
#pragma once

namespace mccsim {

enum class Divergence { trap, first, lane };

struct Settings {
  int warp_lanes = 128;                     // MCCSIM_WARP=32|128
  Divergence divergence = Divergence::trap;  // MCCSIM_DIVERGE=trap|first|lane
  bool poison = true;                       // MCCSIM_POISON=0 turns it off
  bool verbose = false;                     // MCCSIM_VERBOSE=1
  bool sweep = true;                        // MCCSIM_SWEEP=0: no quick way (sweep.h); for the tests
};

// A value that is not understood ends the process: a misspelt setting must not pass unseen.
const Settings &settings();

}  // namespace mccsim
