// The laboratory's entries: accesses of device code, and events of the scheduler and of WMMA operations.
#include "lab.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "api.h"
#include "fiber.h"
#include "settings.h"
#include "trap.h"

extern "C" {
mccsim::lab::Site *__mccsim_lab_site;  // where the running thread's next barrier or WMMA operation stands
extern uint3 blockIdx;
extern dim3 blockDim, gridDim;
}
asm(R"(
.globl __mccsim_own_site
.hidden __mccsim_own_site
.set __mccsim_own_site, __mccsim_lab_site
)");

namespace mccsim::lab {

bool on = getenv("MCCSIM_LAB") && *getenv("MCCSIM_LAB");
Record record;
int current_kernel = -1;

namespace {

constexpr size_t kScratchBytes = 4096;
alignas(64) char scratch[kScratchBytes];  // what an access outside device memory is given instead

const Site *barrier_site;
bool barrier_mixed;
uint32_t warp_time[kMaxWarps];
bool explained;  // the trap that comes has its finding already

using Key = std::tuple<std::string, int, const void *, const void *>;
std::map<Key, Finding *> &known_findings() {
  static auto *m = new std::map<Key, Finding *>;
  return *m;
}

const void *state_or_null(const Site *site) { return site ? state_of(const_cast<Site *>(site)) : nullptr; }

Stamp stamp(const State &state, uint32_t flags) {
  return {time_now(), warp_time[block.current_warp], static_cast<uint16_t>(block.current), static_cast<uint16_t>(flags),
          state.number};
}

char *access(char *a, Site *site, size_t bytes) {
  settle();
  if (reinterpret_cast<uintptr_t>(a) & (site->alignment - 1))
    misaligned(a, bytes, site);
  const bool write = site->flags & kWrite;
  const bool inside = !site->object || Range{site->object, site->object_bytes, 0}.has(a, bytes);
  long offset = inside ? shared_offset(a, bytes) : -1;
  if (offset >= 0) {
    State *state = state_of(site);
    touch(static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes), stamp(*state, site->flags),
          warp_time[block.current_warp], a);
    if (bytes == site->bytes)
      count_access(*state, static_cast<uint32_t>(offset));
    return a;
  }
  Range watched = {};
  if (bytes == 0 || (inside && is_global(a, bytes, write, &watched))) {
    if (watched.begin)
      touch_global(watched.begin, watched.bytes, a, bytes, stamp(*state_of(site), site->flags),
                   warp_time[block.current_warp]);
    return a;
  }
  out_of_bounds(a, bytes, site, write, block.current_warp, "");
  if (bytes > kScratchBytes)
    trap("out of bounds", "%s thread %d: %zu bytes outside device memory", where().c_str(), block.current, bytes);
  memset(scratch, 0xff, bytes);
  return scratch;
}

// The lanes of a group of waiting or arrived threads, by place.
std::vector<Group> by_site(Wait wait, const char *what) {
  std::vector<Group> groups;
  std::map<const void *, std::pair<const Site *, LaneSet[kMaxWarps]>> found;
  for (int t = 0; t < block.threads; t++)
    if (block.lane[t].wait == wait) {
      const Site *site = wait == Wait::finished ? nullptr : static_cast<const Site *>(block.lane[t].site);
      auto &entry = found[state_or_null(site)];
      entry.first = site;
      entry.second[t / block.warp_lanes].add(t % block.warp_lanes);
    }
  for (auto &entry : found) {
    Group group{"", what, entry.second.first};
    for (int w = 0, shown = 0; w < block.warps; w++)
      if (!entry.second.second[w].empty() && shown++ < 8)
        group.lanes += (group.lanes.empty() ? "warp " : "; warp ") + std::to_string(w) + " lanes " +
                       lane_list(entry.second.second[w]);
    groups.push_back(group);
  }
  return groups;
}

// One barrier of the source, although unrolling may have made several of it.
bool same_place(const Site *a, const Site *b) {
  return a == b || (a && b && a->chain == b->chain && a->line == b->line && strcmp(a->file, b->file) == 0);
}

}  // namespace

const Site *here() { return __mccsim_lab_site; }

State *state_of(Site *site) {
  if (site->state && site->state->kernel == current_kernel)
    return site->state;
  using Place = std::tuple<int, std::string, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  static auto *states = new std::map<Place, State *>;
  State *&state = (*states)[{current_kernel, site->file, site->line, site->column, site->outer_line, site->flags,
                             site->bytes}];
  if (!state) {
    state = new State{site, current_kernel, static_cast<uint32_t>(record.states.size()), {}, false, {}};
    record.states.push_back(state);
  }
  return site->state = state;
}

Finding *find(const char *kind, Severity severity, const Site *site, const Site *other, int warp) {
  Finding *&f = known_findings()[{kind, current_kernel, state_or_null(site), state_or_null(other)}];
  if (!f) {
    f = new Finding{kind, severity, current_kernel, site, other, blockIdx, warp, {}, 0, "", {}};
    record.findings.push_back(f);
  }
  f->count++;
  return f;
}

void launch_begins(const Kernel &kernel, size_t dynamic) {
  static bool registered = atexit(write_report) == 0;
  (void)registered;
  auto entry = std::find_if(record.kernels.begin(), record.kernels.end(),
                            [&](const KernelRecord &k) { return k.name == kernel.name; });
  current_kernel = static_cast<int>(entry - record.kernels.begin());
  if (entry == record.kernels.end()) {
    record.kernels.push_back({});
    entry = record.kernels.end() - 1;
    entry->name = kernel.name;
  }
  entry->launches++;
  entry->blocks += uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  entry->grid = gridDim;
  entry->threads = blockDim;
  entry->static_bytes = kernel.shared_bytes;
  entry->dynamic_bytes = dynamic;
  find_memory(kernel, dynamic);
  start_races();
}

void launch_refused(const Kernel &kernel, size_t dynamic) {
  launch_begins(kernel, dynamic > kMaxSharedBytes ? 0 : dynamic);
  record.kernels[current_kernel].dynamic_bytes = dynamic;
  blockIdx = {};
  char text[160];
  snprintf(text, sizeof text, "%zu bytes of shared memory (%zu static, %zu dynamic); a block has %zu",
           kernel.shared_bytes + dynamic, kernel.shared_bytes, dynamic, kMaxSharedBytes);
  find("shared-memory", Severity::error, static_cast<const Site *>(kernel.place), nullptr, -1)->text = text;
}

void block_begins() {
  start_block();
  memset(warp_time, 0, sizeof warp_time);
  barrier_site = nullptr;
  barrier_mixed = false;
}

void block_ends() {
  settle();
  count_banks();
}

void arrives_at_barrier() {
  settle();
  const Site *site = here();
  current_lane().site = site;
  if (block.at_barrier == 1)
    barrier_site = site;
  else
    barrier_mixed |= !same_place(site, barrier_site);
}

void barrier_passes(bool by_arrival) {
  if (by_arrival)
    current_lane().wait = Wait::block_barrier;  // it does not wait, but it is one of them
  if (barrier_mixed) {
    Finding *f = find("barrier-divergence", Severity::error, barrier_site, nullptr, block.current_warp);
    if (f->count == 1) {
      f->text = "threads of one block wait in different __syncthreads";
      f->groups = by_site(Wait::block_barrier, "in this __syncthreads");
    }
  }
  if (block.alive < block.threads) {
    Finding *f = find("barrier-after-exit", Severity::doubt, barrier_site, nullptr, block.current_warp);
    if (f->count == 1) {
      f->text = std::to_string(block.threads - block.alive) + " of " + std::to_string(block.threads) +
                " threads have ended before this __syncthreads; whether MP22 waits for them is not documented";
      f->groups = by_site(Wait::finished, "have ended");
    }
  }
  if (by_arrival)
    current_lane().wait = Wait::none;
  barrier_mixed = false;
  count_banks();
  next_time();
}

void thread_ends() { settle(); }

void deadlock() {
  Finding *f = find("deadlock", Severity::error, nullptr, nullptr, -1);
  f->text = "no thread can run: a barrier that not all threads reach";
  const struct {
    Wait wait;
    const char *what;
  } kinds[] = {{Wait::block_barrier, "in __syncthreads"},
               {Wait::warp_barrier, "in __syncwarp"},
               {Wait::wmma, "in a WMMA operation"},
               {Wait::finished, "have ended"}};
  for (const auto &kind : kinds)
    for (const Group &group : by_site(kind.wait, kind.what))
      f->groups.push_back(group);
  for (const Group &group : f->groups)
    if (group.site && !f->site)
      f->site = group.site;
  explained = true;
}

void divergent_operand(int w, const std::string &what) {
  const Warp &warp = block.warp[w];
  const Lane *lanes = &block.lane[w * block.warp_lanes];
  const Lane &first = lanes[warp.arrived.lowest()];
  Finding *f = find("divergent-operand", Severity::error, static_cast<const Site *>(first.site), nullptr, w);
  explained = settings().divergence == Divergence::trap;  // else the run goes on
  if (f->count > 1)
    return;
  f->lanes = warp.arrived;
  f->text = what + ": the lanes of one warp of " + std::to_string(block.warp_lanes) + " pass different addresses";
  for (int l = 0; l < warp.lanes; l++) {
    if (!warp.arrived.has(l))
      continue;
    LaneSet same;
    bool new_operand = true;
    for (int other = 0; other < warp.lanes; other++)
      if (warp.arrived.has(other) && lanes[other].base == lanes[l].base && lanes[other].ld == lanes[l].ld) {
        same.add(other);
        new_operand &= other >= l;
      }
    if (!new_operand || f->groups.size() >= 8)
      continue;
    long offset = static_cast<const char *>(lanes[l].base) - static_cast<const char *>(first.base);
    f->groups.push_back({lane_list(same),
                         "base" + std::string(offset < 0 ? "-" : "+") + std::to_string(std::abs(offset)) +
                             " bytes, ld " + std::to_string(lanes[l].ld),
                         static_cast<const Site *>(lanes[l].site)});
  }
}

void divergent_operation(int w) {
  const Warp &warp = block.warp[w];
  const Lane &first = block.lane[w * block.warp_lanes + warp.arrived.lowest()];
  Finding *f = find("divergent-operation", Severity::error, static_cast<const Site *>(first.site), nullptr, w);
  f->lanes = warp.arrived;
  f->text = "lanes of one warp are in different collective operations";
  for (Wait wait : {Wait::wmma, Wait::warp_barrier})
    for (const Group &group : by_site(wait, wait == Wait::wmma ? "in a WMMA operation" : "in __syncwarp"))
      f->groups.push_back(group);
  explained = true;
}

bool wmma_begins(int w, int lines, int length, unsigned element_bytes, const char *name, bool write) {
  settle();
  Warp &warp = block.warp[w];
  const Lane *lanes = &block.lane[w * block.warp_lanes];
  bool inside = true;
  const Lane *before = nullptr;
  for (int l = 0; l < warp.lanes; l++) {
    const Lane &lane = lanes[l];
    if (!warp.arrived.has(l) || (before && before->base == lane.base && before->ld == lane.ld))
      continue;
    before = &lane;
    auto *site = const_cast<Site *>(static_cast<const Site *>(lane.site));
    auto *base = static_cast<const char *>(lane.base);
    State *state = site ? state_of(site) : nullptr;
    const uint32_t compare = warp_time[w] + 1;
    // A load is over when its warp goes on. What a store wrote can be read by the warp's lanes after a __syncwarp.
    Stamp now = {time_now(), write ? compare : warp_time[w],
                 static_cast<uint16_t>((w * block.warp_lanes) | kWholeWarp), static_cast<uint16_t>(write ? kWrite : 0),
                 state ? state->number : 0};
    const size_t bytes = length * element_bytes;
    long first_offset = -1;
    for (int line = 0; line < lines; line++) {
      const char *at = base + static_cast<size_t>(line) * lane.ld * element_bytes;
      long offset = shared_offset(at, bytes);
      if (line == 0)
        first_offset = offset;
      if (offset >= 0) {
        if (state)
          touch(static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes), now, compare, at);
        continue;
      }
      Range watched = {};
      if (!is_global(at, bytes, write, &watched)) {
        out_of_bounds(at, bytes, site, write, w, std::string(name) + " line " + std::to_string(line));
        inside = false;
        break;
      }
      if (state && watched.begin)
        touch_global(watched.begin, watched.bytes, at, bytes, now, compare);
    }
    if (first_offset >= 0 && state && inside)
      count_wmma(*state, static_cast<uint32_t>(first_offset), lane.ld, lines, length, element_bytes,
                 warp.arrived.size());
  }
  return inside;
}

void collective_ends(int w) { warp_time[w]++; }

void trapped(const char *kind, const char *text) {
  record.ended = std::string(kind) + ": " + text;
  if (explained || current_kernel < 0)
    return;
  const bool unloaded = strcmp(kind, "unloaded fragment") == 0;
  const char *name = unloaded ? "unloaded-fragment" : strcmp(kind, "stale fragment") == 0 ? "stale-fragment" : "trap";
  Finding *f = find(name, unloaded ? Severity::error : Severity::doubt, here(), nullptr, block.current_warp);
  f->lanes.add(block.current - block.current_warp * block.warp_lanes);
  f->text = record.ended;
}

void crashed(const void *address) {
  char text[64];
  snprintf(text, sizeof text, "crash at address %p", address);
  record.ended = text;
  Finding *f = find("crash", Severity::doubt, nullptr, nullptr, block.current_warp);
  f->lanes.add(block.current - block.current_warp * block.warp_lanes);
  f->text = text;
  write_report();
}

}  // namespace mccsim::lab

// ---- called by device code ----------------------------------------------------------------------

// Both go to one stack of their own: on the lanes' stacks their frames would be as many more lines that compete for
// the cache. They do not nest.
namespace mccsim::lab {
alignas(64) char stack[256 << 10] asm("__mccsim_lab_stack") __attribute__((visibility("hidden"), used));
static_assert(sizeof stack == 262144);
}  // namespace mccsim::lab
asm(R"(
.text
.globl __mccsim_lab_access
.type __mccsim_lab_access,@function
__mccsim_lab_access:
  leaq __mccsim_lab_access_there(%rip), %rax
  jmp 4f
.size __mccsim_lab_access, .-__mccsim_lab_access
.globl __mccsim_lab_range
.type __mccsim_lab_range,@function
__mccsim_lab_range:
  leaq __mccsim_lab_range_there(%rip), %rax
4:
  movq %rsp, %rcx
  leaq __mccsim_lab_stack+262144(%rip), %rsp
  pushq %rcx
  subq $8, %rsp
  call *%rax
  movq 8(%rsp), %rsp
  ret
.size __mccsim_lab_range, .-__mccsim_lab_range
)");

extern "C" __attribute__((visibility("hidden"), used)) char *__mccsim_lab_access_there(char *address,
                                                                                       mccsim::lab::Site *site) {
  return mccsim::lab::on ? mccsim::lab::access(address, site, site->bytes) : address;
}

extern "C" __attribute__((visibility("hidden"), used)) char *__mccsim_lab_range_there(
    char *address, mccsim::lab::Site *site, uint64_t bytes) {
  return mccsim::lab::on ? mccsim::lab::access(address, site, bytes) : address;
}
