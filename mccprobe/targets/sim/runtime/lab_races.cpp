// Races: two accesses to one place in memory, one of them a write, that nothing puts in order.
//
// Shared memory: two threads of the block with no barrier between. Global memory: the same, and two blocks of one
// launch. Blocks can order themselves by atomic operations (the last of them adds up what all have written), so a
// block that has done one, or has used global memory as volatile, is not judged from there on.
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "lab.h"

extern "C" uint3 blockIdx;

namespace mccsim::lab {
namespace {

constexpr uint64_t kEnough = 1000;          // of one race: counting goes on no longer
constexpr size_t kMaxGranules = 40u << 20;  // of all memory together: 2 GB of records
constexpr unsigned kWidest = 4;             // granules begin with 16 bytes: a float4
uint32_t block_time, block_start, launch_start;
bool orders_itself;  // this block did an atomic operation

// Who used a granule. Two readers are enough: of two warps if there are two, so that a write of any warp meets one
// of another.
struct Granule {
  Stamp write, read, other_read;
};

size_t granules_kept;

// Bytes of a granule as a power of two: as wide as all accesses so far are. Untouched pages cost nothing. Without a
// record (`at` is null) nothing is looked for.
struct Shadow {
  unsigned shift = kWidest;
  size_t bytes = 0;
  Granule *at = nullptr;

  size_t count() const { return (bytes >> shift) + 1; }

  void make(size_t size) {
    bytes = size;
    if (granules_kept + count() > kMaxGranules)
      return;
    // Large pages where the system has them: accesses jump, and misses of the TLB were a tenth of the time.
    void *memory = mmap(nullptr, count() * sizeof(Granule), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return;
    madvise(memory, count() * sizeof(Granule), MADV_HUGEPAGE);
    at = static_cast<Granule *>(memory);
    granules_kept += count();
  }

  void drop() {
    if (!at)
      return;
    granules_kept -= count();
    munmap(at, count() * sizeof(Granule));
    at = nullptr;
  }

  void refine(unsigned wanted) {
    Shadow fine;
    fine.shift = wanted;
    fine.make(bytes);
    if (!fine.at)
      return drop();
    static const Granule untouched = {};
    for (size_t coarse = 0; coarse <= bytes >> shift; coarse++)
      if (memcmp(&at[coarse], &untouched, sizeof untouched) != 0) {
        const size_t first = coarse << (shift - wanted), last = bytes >> wanted;
        for (size_t i = first; i < first + (size_t{1} << (shift - wanted)) && i <= last; i++)
          fine.at[i] = at[coarse];
      }
    drop();
    *this = fine;
  }
};
Shadow shared_shadow;

std::map<const char *, Shadow> &global_shadows() {
  static auto *m = new std::map<const char *, Shadow>;
  return *m;
}
struct {
  const char *begin;
  Shadow *shadow;
} recent[4];  // of global memory, by their first byte
unsigned next_recent;

struct BlockStart {
  uint32_t time;
  uint3 index;
};
std::vector<BlockStart> block_starts;  // of this launch

enum class Order { ordered, in_warp, in_block, between_blocks };

// A write that nothing separates from an earlier access is no race if it leaves the value as it is.
struct Pending {
  const char *address;
  unsigned char before[1 << kWidest];
  unsigned bytes;
  Stamp now, earlier;
  Order order;
  bool global, after_write;
};
std::vector<Pending> pending;

int warp_of(const Stamp &s) { return (s.thread & ~kWholeWarp) / block.warp_lanes; }

bool of_other_block(const Stamp &s) { return s.time >= launch_start && s.time < block_start; }

template <bool global> inline Order order_of(const Stamp &earlier, const Stamp &now, uint32_t compare_time) {
  if (earlier.time != block_time) // a barrier, the end of the launch, or another block lies between
    return global && of_other_block(earlier) && !(earlier.flags & now.flags & kAtomic) ? Order::between_blocks
                                                                                      : Order::ordered;
  if (earlier.thread == now.thread || (earlier.flags & now.flags & kAtomic))
    return Order::ordered;
  if (warp_of(earlier) != warp_of(now))
    return Order::in_block;
  const bool both_whole = earlier.thread & now.thread & kWholeWarp;
  return both_whole || earlier.warp_time < compare_time ? Order::ordered : Order::in_warp;
}

std::string thread_text(const Stamp &s) {
  const int thread = s.thread & ~kWholeWarp, warp = thread / block.warp_lanes;
  std::string text = "warp " + std::to_string(warp);
  if (!(s.thread & kWholeWarp))
    text += " lane " + std::to_string(thread % block.warp_lanes);
  if (!of_other_block(s))
    return text;
  auto next = std::upper_bound(block_starts.begin(), block_starts.end(), s.time,
                               [](uint32_t time, const BlockStart &start) { return time < start.time; });
  const uint3 &index = std::prev(next)->index;
  return "block (" + std::to_string(index.x) + "," + std::to_string(index.y) + "," + std::to_string(index.z) + ") " +
         text;
}

void report(const Stamp &earlier, const Stamp &now, Order order, bool global, const char *what, bool two_writes) {
  // What a block reads of another one may be of no importance for the result; which of two values stays is.
  const bool between = order == Order::between_blocks, doubt = order == Order::in_warp || (between && !two_writes);
  const char *kind = order == Order::in_warp ? "warp-race" : !global ? "race" : doubt ? "block-race" : "global-race";
  Finding *f = find(kind, doubt ? Severity::doubt : Severity::error, record.states[now.state]->site,
                    record.states[earlier.state]->site, warp_of(now));
  if (f->count > kEnough)
    return;
  const int thread = now.thread & ~kWholeWarp;
  if (now.thread & kWholeWarp)
    f->lanes = block.warp[warp_of(now)].arrived;
  else if (f->warp == warp_of(now) && memcmp(&f->block, &blockIdx, sizeof f->block) == 0)
    f->lanes.add(thread % block.warp_lanes);
  if (f->count == 1)
    f->text = std::string(what) + (global ? " in global memory: " : ": ") + thread_text(now) + " after " +
              thread_text(earlier) +
              (between                      ? ", which no order of blocks puts first"
               : order == Order::in_warp ? ", in one warp without __syncwarp"
                                         : ", no __syncthreads between");
}

void consider(const Stamp &earlier, const Stamp &now, Order order, bool global, const char *address, unsigned bytes,
              bool after_write) {
  if (global && orders_itself)
    return;
  if (!(now.flags & kWrite)) {
    report(earlier, now, order, global, "read after write", false);
    return;
  }
  if (pending.size() > 4096)
    return;
  Pending p = {address, {}, bytes, now, earlier, order, global, after_write};
  memcpy(p.before, address, bytes);
  pending.push_back(p);
}

template <bool global>
inline void touch_in(Shadow &shadow, size_t offset, size_t bytes, const Stamp &now, uint32_t compare_time,
                     const char *address) {
  const unsigned aligned = __builtin_ctzll(offset | bytes | size_t{1} << kWidest);
  if (aligned < shadow.shift)
    shadow.refine(aligned);
  if (!shadow.at)
    return;
  const unsigned size = 1u << shadow.shift;
  for (size_t g = offset >> shadow.shift, end = (offset + bytes) >> shadow.shift; g < end; g++, address += size) {
    Granule &x = shadow.at[g];
    Order order = order_of<global>(x.write, now, compare_time);
    if (order != Order::ordered)
      consider(x.write, now, order, global, address, size, true);
    if (now.flags & kWrite) {
      for (const Stamp *reader : {&x.read, &x.other_read})
        if ((order = order_of<global>(*reader, now, compare_time)) != Order::ordered)
          consider(*reader, now, order, global, address, size, false);
      x.write = now;
    } else if (x.read.time != block_time || x.read.thread == now.thread) {
      if (global && x.read.time != block_time && of_other_block(x.read))
        x.other_read = x.read;
      x.read = now;
    } else if (x.other_read.time != block_time || warp_of(x.other_read) == warp_of(x.read) ||
               warp_of(now) != warp_of(x.read)) {
      x.other_read = now;
    }
  }
}

Shadow &shadow_of(const char *begin, size_t bytes) {
  for (const auto &entry : recent)
    if (entry.begin == begin)
      return *entry.shadow;
  Shadow &shadow = global_shadows()[begin];
  if (shadow.bytes == 0)
    shadow.make(bytes);
  recent[next_recent++ % std::size(recent)] = {begin, &shadow};
  return shadow;
}

}  // namespace

uint32_t time_now() { return block_time; }
void next_time() { block_time++; }

void start_races() {
  if (!shared_shadow.at)
    shared_shadow.make(kMaxSharedBytes);
  launch_start = block_time + 1;
  block_starts.clear();
}

void start_block() {
  next_time();
  block_start = block_time;
  block_starts.push_back({block_time, blockIdx});
  orders_itself = false;
}

void forget(const char *begin) {
  auto known = global_shadows().find(begin);
  if (known == global_shadows().end())
    return;
  known->second.drop();
  global_shadows().erase(known);
  memset(recent, 0, sizeof recent);
}

void settle() {
  if (pending.empty())
    return;
  for (const Pending &p : pending)
    if (memcmp(p.address, p.before, p.bytes) != 0)
      report(p.earlier, p.now, p.order, p.global, p.after_write ? "write after write" : "write after read",
             p.after_write);
  pending.clear();
}

void touch(uint32_t offset, uint32_t bytes, const Stamp &now, uint32_t compare_time, const char *address) {
  touch_in<false>(shared_shadow, offset, bytes, now, compare_time, address);
}

void touch_global(const char *begin, size_t size, const char *address, size_t bytes, const Stamp &now,
                  uint32_t compare_time) {
  if (now.flags & (kAtomic | kVolatile))
    orders_itself = true;
  Shadow &shadow = shadow_of(begin, size);
  if (!shadow.at || !bytes)
    return;
  // Lanes come in turn, so the record that a lane after this one will need is as far from this as this from an
  // earlier one.
  State &state = *record.states[now.state];
  const long offset = address - begin, ahead = offset + (offset - state.before[state.turn % std::size(state.before)]);
  state.before[state.turn++ % std::size(state.before)] = offset;
  if (ahead >= 0 && ahead < static_cast<long>(size)) {
    auto *record_ahead = reinterpret_cast<const char *>(&shadow.at[ahead >> shadow.shift]);
    __builtin_prefetch(record_ahead, 1);
    __builtin_prefetch(record_ahead + sizeof(Granule) - 1, 1);
  }
  touch_in<true>(shadow, offset, bytes, now, compare_time, address);
}

}  // namespace mccsim::lab
