// The laboratory: what is checked and counted while a kernel runs (MCCSIM_LAB=FILE, `mccprobe check --lab`).
//
// plugin/lab_access.cpp has put a call in front of each access to device memory and tells where barriers and WMMA
// operations stand. Findings are kept, one for each kind and place, and the run goes on; at its end, however it
// comes, FILE gets one JSON document. Without MCCSIM_LAB nothing here runs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "block.h"
#include "module.h"

namespace mccsim::lab {

enum : uint32_t { kWrite = 1, kAtomic = 2, kVolatile = 4 };  // as in plugin/lab_access.cpp

struct State;

// One instruction of the device code; the plugin makes them.
struct Site {
  const char *file, *function, *outer_file;
  const char *object;  // the variable that is accessed, where that is known
  uint64_t object_bytes;
  uint32_t line, column, outer_line, bytes, flags, chain;
  uint32_t alignment;  // that the compiler takes for granted
  State *state;  // null until first used
};

// Serial cycles over 16 banks, of one place in one kernel.
struct Banks {
  uint64_t groups = 0, cycles = 0, ideal = 0, uncounted = 0;
  uint32_t worst = 0;
};

// All copies of one instruction that stand at one place, in one kernel.
struct State {
  const Site *site;
  int kernel;
  uint32_t number;
  Banks banks;
  bool touched = false;
  std::vector<std::vector<uint32_t>> offsets;  // of each thread since the last barrier
  long before[4] = {};  // the last places in global memory, in turn
  unsigned turn = 0;
};

// Who was at a place in memory, and when. Two accesses in one `time` (between two barriers of the block) are
// in no order, unless the threads are of one warp and its `warp_time` moved in between.
struct Stamp {
  uint32_t time = 0, warp_time = 0;
  uint16_t thread = 0;
  uint16_t flags = 0;
  uint32_t state = 0;
};
constexpr uint16_t kWholeWarp = 0x8000;  // of `thread`: its warp, in a WMMA operation

enum class Severity { error, doubt };

// What one part of the lanes did.
struct Group {
  std::string lanes, what;
  const Site *site;
};

struct Finding {
  const char *kind;
  Severity severity;
  int kernel;
  const Site *site, *other;
  uint3 block;
  int warp;
  LaneSet lanes;  // of that block and warp
  uint64_t count;
  std::string text;
  std::vector<Group> groups;
};

struct KernelRecord {
  std::string name;
  uint64_t launches = 0, blocks = 0;
  dim3 grid, threads;
  size_t static_bytes = 0, dynamic_bytes = 0;
};

struct Record {
  std::vector<KernelRecord> kernels;
  std::vector<State *> states;
  std::vector<Finding *> findings;
  std::string ended;  // the trap or signal that ended the run
};

extern bool on;
extern Record record;
extern int current_kernel;

// ---- events, from the runtime -------------------------------------------------------------------

void launch_begins(const Kernel &kernel, size_t dynamic);
void launch_refused(const Kernel &kernel, size_t dynamic);
void block_begins();
void block_ends();
void arrives_at_barrier();  // the running thread, at a barrier of its block
void barrier_passes(bool by_arrival);  // else by the end of the running thread
void thread_ends();
void deadlock();
void divergent_operand(int warp, const std::string &what);
void divergent_operation(int warp);
// Before a WMMA load or store is done. False: it reaches outside device memory, and must not be done.
bool wmma_begins(int warp, int lines, int length, unsigned element_bytes, const char *name, bool write);
void collective_ends(int warp);
void trapped(const char *kind, const char *text);
void crashed(const void *address);

// ---- parts --------------------------------------------------------------------------------------

State *state_of(Site *site);
// Adds to the finding of this kind and place, or makes it. Null once it has been seen too often to go on counting.
Finding *find(const char *kind, Severity severity, const Site *site, const Site *other, int warp);
const Site *here();

// An access to shared memory, and one to the global memory of `size` bytes that begins at `begin`.
void touch(uint32_t offset, uint32_t bytes, const Stamp &now, uint32_t compare_time, const char *address);
void touch_global(const char *begin, size_t size, const char *address, size_t bytes, const Stamp &now,
                  uint32_t compare_time);
void forget(const char *begin);  // of global memory that is freed
void settle();  // decides on writes that may have changed nothing
void start_races();
void start_block();
uint32_t time_now();
void next_time();

void count_access(State &state, uint32_t offset);
void count_banks();
Banks bank_cycles(const uint32_t *words, int count);
void count_wmma(State &state, uint32_t offset, unsigned ld, int lines, int length, unsigned element_bytes, int lanes);

// Memory of the launch: what belongs to it, and what to say of an access beside it.
struct Range {
  const char *begin;
  size_t bytes;
  long offset;  // in shared memory
  bool has(const char *a, size_t n) const { return a >= begin && n <= bytes && a <= begin + (bytes - n); }
};
void find_memory(const Kernel &kernel, size_t dynamic);
long shared_offset(const char *address, size_t bytes);  // in the kernel's shared memory, or -1
// Device memory that is not shared: an allocation, a __device__ variable, the image's constants, the thread's frame.
// For the first two `watched` gets the whole of it.
bool is_global(const char *address, size_t bytes, bool write, Range *watched);
void out_of_bounds(const char *address, size_t bytes, const Site *site, bool write, int warp,
                   const std::string &operation);
void misaligned(const char *address, size_t bytes, const Site *site);

std::string lane_list(const LaneSet &lanes);
void write_report();

}  // namespace mccsim::lab
