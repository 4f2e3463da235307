// Bank conflicts in shared memory: 16 banks of 4 bytes, lanes taken in groups of 32, as in the article (section 13).
//
// The lanes of a group that execute an instruction for the n-th time since the last barrier access memory together.
// Each bank gives one word a cycle, and lanes that want the same word share it; so a group takes as many cycles as
// the busiest bank has words. `ideal` is the least that so many words can take.
#include <string.h>

#include <algorithm>

#include "lab.h"

namespace mccsim::lab {
namespace {

constexpr int kBanks = 16, kWordBytes = 4, kGroup = 32;
constexpr size_t kMaxKept = 1 << 14;  // accesses of a thread at one place between two barriers
std::vector<State *> touched;
uint32_t seen[kMaxSharedBytes / kWordBytes + 1], turn;

void add(State &state, const Banks &group) {
  Banks &b = state.banks;
  b.groups += group.groups;
  b.cycles += group.cycles;
  b.ideal += group.ideal;
  b.worst = std::max(b.worst, group.worst);
}

}  // namespace

Banks bank_cycles(const uint32_t *words, int count) {
  uint32_t load[kBanks] = {}, distinct = 0;
  turn++;
  for (int i = 0; i < count; i++)
    if (seen[words[i]] != turn) {
      seen[words[i]] = turn;
      load[words[i] % kBanks]++;
      distinct++;
    }
  Banks b;
  b.groups = 1;
  b.worst = *std::max_element(load, load + kBanks);
  b.cycles = b.worst;
  b.ideal = (distinct + kBanks - 1) / kBanks;
  return b;
}

void count_access(State &state, uint32_t offset) {
  if (!state.touched) {
    state.touched = true;
    state.offsets.resize(block.threads);
    touched.push_back(&state);
  }
  std::vector<uint32_t> &own = state.offsets[block.current];
  if (own.size() < kMaxKept)
    own.push_back(offset);
  else
    state.banks.uncounted++;
}

void count_banks() {
  uint32_t words[kGroup * (64 / kWordBytes + 1)];
  for (State *state : touched) {
    for (int first = 0; first < block.threads; first += kGroup) {
      const int end = std::min(first + kGroup, block.threads);
      size_t most = 0;
      for (int t = first; t < end; t++)
        most = std::max(most, state->offsets[t].size());
      for (size_t n = 0; n < most; n++) {
        int count = 0;
        for (int t = first; t < end; t++)
          if (n < state->offsets[t].size()) {
            uint32_t offset = state->offsets[t][n];
            uint32_t last = (offset + std::max(state->site->bytes, 1u) - 1) / kWordBytes;
            for (uint32_t word = offset / kWordBytes; word <= last; word++)
              words[count++] = word;
          }
        add(*state, bank_cycles(words, count));
      }
      for (int t = first; t < end; t++)
        state->offsets[t].clear();
    }
    state->touched = false;
  }
  touched.clear();
}

// How the lanes share a WMMA operand is not documented. Counted is what any way has to move: the lanes of a warp
// take equal parts of the tile in the order of memory, line by line, and 32 lanes work together.
void count_wmma(State &state, uint32_t offset, unsigned ld, int lines, int length, unsigned element_bytes, int lanes) {
  struct Known {
    State *state;
    uint32_t at, ld, shape;
    Banks banks;
  };
  static Known cache[256];
  // The count depends on the start only by its place among the banks.
  const uint32_t at = offset % (kBanks * kWordBytes), shape = lines << 20 | length << 10 | lanes;
  Known &known = cache[(at / 2 + ld * 7 + state.number * 31) % 256];
  if (known.state != &state || known.at != at || known.ld != ld || known.shape != shape) {
    known = {&state, at, ld, shape, {}};
    const int elements = lines * length, part = std::max(elements * kGroup / std::max(lanes, 1), 1);
    std::vector<uint32_t> words;
    for (int begin = 0; begin < elements; begin += part) {
      words.clear();
      for (int e = begin; e < std::min(begin + part, elements); e++)
        words.push_back((at + (e / length * static_cast<size_t>(ld) + e % length) * element_bytes) / kWordBytes);
      Banks group = bank_cycles(words.data(), static_cast<int>(words.size()));
      known.banks.groups += group.groups;
      known.banks.cycles += group.cycles;
      known.banks.ideal += group.ideal;
      known.banks.worst = std::max(known.banks.worst, group.worst);
    }
  }
  add(state, known.banks);
}

}  // namespace mccsim::lab
