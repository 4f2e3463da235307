// Races in shared memory: two accesses to one word, one of them a write, that no barrier puts in order.
#include <string.h>

#include <algorithm>

#include "lab.h"

extern "C" uint3 blockIdx;

namespace mccsim::lab {
namespace {

constexpr uint64_t kEnough = 1000;  // of one race: counting goes on no longer
uint32_t block_time;

// Bytes of a granule as a power of two: words, until an access is smaller or crooked.
unsigned shift = 2;
std::vector<Stamp> writes, reads, other_reads;

// A write that no barrier separates from an earlier access is no race if it leaves the value as it is.
struct Pending {
  const char *address;
  unsigned char before[4];
  unsigned bytes;
  Stamp now, earlier;
  bool after_write;
};
std::vector<Pending> pending;

int warp_of(const Stamp &s) { return (s.thread & ~kWholeWarp) / block.warp_lanes; }

void refine(unsigned wanted) {
  while (shift > wanted) {
    for (std::vector<Stamp> *stamps : {&writes, &reads, &other_reads}) {
      std::vector<Stamp> fine(stamps->size() * 2);
      for (size_t i = 0; i < fine.size(); i++)
        fine[i] = (*stamps)[i / 2];
      stamps->swap(fine);
    }
    shift--;
  }
}

enum class Order { ordered, unordered_in_warp, unordered };

inline Order order(const Stamp &earlier, const Stamp &now, uint32_t compare_time) {
  if (earlier.time != block_time || earlier.thread == now.thread || (earlier.flags & now.flags & kAtomic))
    return Order::ordered;
  if (warp_of(earlier) != warp_of(now))
    return Order::unordered;
  bool both_whole = earlier.thread & now.thread & kWholeWarp;
  return both_whole || earlier.warp_time < compare_time ? Order::ordered : Order::unordered_in_warp;
}

std::string thread_text(const Stamp &s) {
  int thread = s.thread & ~kWholeWarp, warp = thread / block.warp_lanes;
  return s.thread & kWholeWarp ? "warp " + std::to_string(warp)
                               : "warp " + std::to_string(warp) + " lane " + std::to_string(thread % block.warp_lanes);
}

void report(const Stamp &earlier, const Stamp &now, Order how, const char *what) {
  bool in_warp = how == Order::unordered_in_warp;
  Finding *f = find(in_warp ? "warp-race" : "race", in_warp ? Severity::doubt : Severity::error,
                    record.states[now.state]->site, record.states[earlier.state]->site, warp_of(now));
  if (f->count > kEnough)
    return;
  int thread = now.thread & ~kWholeWarp;
  if (now.thread & kWholeWarp)
    f->lanes = block.warp[warp_of(now)].arrived;
  else if (f->warp == warp_of(now) && memcmp(&f->block, &blockIdx, sizeof f->block) == 0)
    f->lanes.add(thread % block.warp_lanes);
  if (f->count == 1)
    f->text = std::string(what) + ": " + thread_text(now) + " after " + thread_text(earlier) +
              (in_warp ? ", in one warp without __syncwarp" : ", no __syncthreads between");
}

void consider(const Stamp &earlier, const Stamp &now, uint32_t compare_time, const char *address, unsigned bytes,
              bool after_write) {
  Order how = order(earlier, now, compare_time);
  if (how == Order::ordered)
    return;
  if (!(now.flags & kWrite)) {
    report(earlier, now, how, "read after write");
    return;
  }
  if (pending.size() > 4096)
    return;
  Pending p = {address, {}, bytes, now, earlier, after_write};
  memcpy(p.before, address, bytes);
  pending.push_back(p);
}

}  // namespace

uint32_t time_now() { return block_time; }
void next_time() { block_time++; }

void start_races() {
  if (writes.empty())
    for (std::vector<Stamp> *stamps : {&writes, &reads, &other_reads})
      stamps->resize(kMaxSharedBytes >> shift);
}

void settle() {
  if (pending.empty())
    return;
  for (const Pending &p : pending)
    if (memcmp(p.address, p.before, p.bytes) != 0)
      report(p.earlier, p.now, warp_of(p.earlier) == warp_of(p.now) ? Order::unordered_in_warp : Order::unordered,
             p.after_write ? "write after write" : "write after read");
  pending.clear();
}

void touch(uint32_t offset, uint32_t bytes, const Stamp &now, uint32_t compare_time, const char *address) {
  unsigned crooked = (offset | bytes) & 3;
  if (crooked && shift)
    refine(crooked & 1 ? 0 : 1);
  const unsigned size = 1u << shift;
  const bool write = now.flags & kWrite;
  for (uint32_t g = offset >> shift, end = (offset + bytes) >> shift; g < end; g++, address += size) {
    Stamp &w = writes[g], &r = reads[g];
    if (w.time == block_time && w.thread != now.thread)
      consider(w, now, compare_time, address, size, true);
    if (write) {
      if (r.time == block_time) {
        if (r.thread != now.thread)
          consider(r, now, compare_time, address, size, false);
        if (other_reads[g].time == block_time)
          consider(other_reads[g], now, compare_time, address, size, false);
      }
      w = now;
    } else if (r.time != block_time || r.thread == now.thread) {
      r = now;
    } else {
      // Two readers are enough: of two warps if there are two, so that a write of any warp meets one of another.
      Stamp &o = other_reads[g];
      if (o.time != block_time || warp_of(o) == warp_of(r) || warp_of(now) != warp_of(r))
        o = now;
    }
  }
}

}  // namespace mccsim::lab
