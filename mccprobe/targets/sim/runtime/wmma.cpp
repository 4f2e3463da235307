// Collectives of a physical warp: the WMMA loads and stores, and __syncwarp. The last lane of a warp to
// arrive does the operation for all of them.
#include <crt/mma.h>
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "block.h"
#include "lab.h"
#include "settings.h"
#include "sweep.h"
#include "trap.h"

using namespace mccsim;

namespace {

// Takes the place of a fourth WMMA operation in the descriptor.
constexpr int kSyncWarp = 3;

struct Operation {
  int m, n, k, operation;
  bool column_major;
  explicit Operation(unsigned d)
      : m(d & 255), n(d >> 8 & 255), k(d >> 16 & 255), operation(d >> 25 & 3), column_major(d >> 24 & 1) {}

  std::string text() const {
    if (operation == kSyncWarp)
      return "__syncwarp";
    static const char *const names[] = {"load_matrix_sync(matrix_a)", "load_matrix_sync(matrix_b)",
                                        "store_matrix_sync"};
    return std::string(names[operation]) + "<" + std::to_string(m) + "," + std::to_string(n) + "," +
           std::to_string(k) + ">";
  }
};

// Tiles that a warp has loaded, in rotation. A fragment that outlives the rotation is caught by its
// generation. A double-buffered kernel with 2 x 12 live fragments still fits.
constexpr int kTilesPerWarp = 32;
__mccsim_tile *tiles;
unsigned next_tile[kMaxWarps];
unsigned generation;

__mccsim_tile *new_tile(int warp_index) {
  if (!tiles) {
    tiles = static_cast<__mccsim_tile *>(
        aligned_alloc(64, sizeof(__mccsim_tile) * kTilesPerWarp * kMaxWarps));
    if (!tiles)
      trap("no memory", "cannot allocate the operand tiles");
  }
  unsigned index = next_tile[warp_index]++ % kTilesPerWarp;
  __mccsim_tile *tile = &tiles[warp_index * kTilesPerWarp + index];
  tile->generation = ++generation;
  return tile;
}

// A load makes `lines` lines of `length` floats: [k][m] for matrix_a, [n][k] for matrix_b. Memory is
// read along the lines where it is contiguous (column-major), else across them.
__attribute__((target("avx2,f16c"))) void convert_tile(float *to, const unsigned short *from, long ld,
                                                       int lines, int length, bool contiguous) {
  if (contiguous) {
    for (int line = 0; line < lines; line++, to += length, from += ld)
      for (int i = 0; i < length; i += 8)
        _mm256_store_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                    reinterpret_cast<const __m128i *>(from + i))));
    return;
  }
  for (int i = 0; i < length; i++, from += ld)
    for (int line = 0; line < lines; line += 8) {
      alignas(32) float part[8];
      _mm256_store_ps(part, _mm256_cvtph_ps(_mm_loadu_si128(
                                reinterpret_cast<const __m128i *>(from + line))));
      for (int j = 0; j < 8; j++)
        to[(line + j) * length + i] = part[j];
    }
}

}  // namespace

bool mccsim::is_operand_tile(const void *address) {
  auto *at = static_cast<const char *>(address), *begin = reinterpret_cast<const char *>(tiles);
  return begin && at >= begin && at < begin + sizeof(__mccsim_tile) * kTilesPerWarp * kMaxWarps;
}

namespace {

std::string operand_list(const Lane *lanes, const Warp &warp) {
  std::string text;
  const Lane &first = lanes[warp.arrived.lowest()];
  for (int l = 0; l < warp.lanes; l++) {
    if (!warp.arrived.has(l))
      continue;
    int end = l;
    while (end + 1 < warp.lanes && warp.arrived.has(end + 1) && lanes[end + 1].base == lanes[l].base &&
           lanes[end + 1].ld == lanes[l].ld)
      end++;
    long offset = static_cast<const char *>(lanes[l].base) - static_cast<const char *>(first.base);
    char line[120];
    snprintf(line, sizeof line, "\n  lanes %d-%d: base%+ld bytes, ld=%u", l, end, offset, lanes[l].ld);
    text += line;
    if (text.size() > 2000)
      return text + "\n  ...";
    l = end;
  }
  return text;
}

// The lane whose operand counts for element `index` (which is its rank % active in the `lane` model).
const Lane &source_lane(const Lane *lanes, const Warp &warp, int rank) {
  if (warp.uniform || settings().divergence != Divergence::lane)
    return lanes[warp.arrived.lowest()];
  for (int l = 0; l < warp.lanes; l++)
    if (warp.arrived.has(l) && rank-- == 0)
      return lanes[l];
  return lanes[warp.arrived.lowest()];
}

void load(const Lane *lanes, Warp &warp, int warp_index, const Operation &op) {
  __mccsim_tile *tile = new_tile(warp_index);
  bool is_a = op.operation == __mccsim_load_a;
  int lines = is_a ? op.k : op.n, length = is_a ? op.m : op.k;
  // matrix_a is m x k, matrix_b is k x n: in column-major memory a line of the tile is a column.
  const Lane &first = lanes[warp.arrived.lowest()];
  if (warp.uniform || settings().divergence == Divergence::first) {
    convert_tile(tile->value, static_cast<const unsigned short *>(first.base), first.ld, lines, length,
                 op.column_major);
  } else {
    for (int index = 0; index < lines * length; index++) {
      const Lane &lane = source_lane(lanes, warp, index % warp.active);
      long line = index / length, i = index % length;
      long at = op.column_major ? line * lane.ld + i : i * lane.ld + line;
      tile->value[index] = __mccsim_half_to_float(static_cast<const unsigned short *>(lane.base)[at]);
    }
  }
  warp.result = tile;
}

// The laboratory's look at an operation before it is done; false if it must not be.
bool allowed(Warp &warp, int warp_index, const Operation &op) {
  bool is_store = op.operation == __mccsim_store;
  int rows = op.operation == __mccsim_load_b ? op.k : op.m, columns = op.operation == __mccsim_load_a ? op.k : op.n;
  bool inside = lab::wmma_begins(warp_index, op.column_major ? columns : rows, op.column_major ? rows : columns,
                                 is_store ? 4 : 2, op.text().c_str(), is_store);
  if (!inside && !is_store) {
    __mccsim_tile *tile = new_tile(warp_index);
    std::fill(std::begin(tile->value), std::end(tile->value), __builtin_nanf(""));
    warp.result = tile;
  }
  return inside;
}

void store(const Lane *lanes, Warp &warp, const Operation &op) {
  int rank = 0;
  for (int l = 0; l < warp.lanes; l++) {
    if (!warp.arrived.has(l))
      continue;
    const Lane &lane = source_lane(lanes, warp, rank);
    auto *to = static_cast<float *>(const_cast<void *>(lane.base));
    const float *from = lanes[l].elements;
    for (int chunk = rank; chunk < op.m * op.n / 8; chunk += warp.active, from += 8) {
      long row = chunk * 8 % op.m, column = chunk * 8 / op.m;
      if (op.column_major)
        memcpy(to + column * lane.ld + row, from, 8 * sizeof(float));
      else
        for (int i = 0; i < 8; i++)
          to[(row + i) * lane.ld + column] = from[i];
    }
    rank++;
  }
}

// Fragments are shared among the lanes that take part, so these must be the same throughout.
void set_active_lanes(Lane *lanes, Warp &warp, int warp_index, const Operation &op) {
  if (warp.wmma == warp.arrived)
    return;
  if (!warp.wmma.empty())
    trap("active lanes changed", "%s warp %d, %s: %d lanes take part, but %d in the operation before",
         where().c_str(), warp_index, op.text().c_str(), warp.arrived.size(), warp.wmma.size());
  warp.wmma = warp.arrived;
  warp.active = warp.arrived.size();
  if (warp.active < 32)
    trap("too few lanes", "%s warp %d, %s: %d active lanes, 32 are needed", where().c_str(), warp_index,
         op.text().c_str(), warp.active);
  int rank = 0;
  for (int l = 0; l < warp.lanes; l++)
    if (warp.arrived.has(l))
      lanes[l].view.rank = rank++;
}

// Returns when the operation is done for all lanes of the warp.
template <bool is_load>
inline __attribute__((always_inline)) void take_part(Wait reason, const void *base, unsigned ld,
                                                     unsigned descriptor, const float *elements) {
  end_sweep();
  Lane &lane = current_lane();
  Warp &warp = current_warp();
  lane.base = base;
  lane.ld = ld;
  lane.descriptor = descriptor;
  lane.elements = elements;
  if (lab::on) {
    lane.site = lab::here();
    lane.wait = reason;  // also of the last to arrive, for what is said about it
  }
  int first = block.current_warp * block.warp_lanes, in_warp = block.current - first;
  if (warp.arrived_count == 0) {
    warp.uniform = true;
    warp.base = base;
    warp.ld = ld;
    warp.descriptor = descriptor;
  } else {
    warp.uniform &= warp.base == base && warp.ld == ld && warp.descriptor == descriptor;
  }
  warp.arrived.add(in_warp);
  if (++warp.arrived_count < warp.alive_count) {
    if (warp.arrived_count == 1 && is_load)
      begin_sweep(reason);
    wait_for(reason);
    return;
  }
  complete_collective(block.current_warp);
  release_warp(warp);
  warp.ready.remove(in_warp);
  lane.wait = Wait::none;
  // What enter() does for the other lanes: the operation may have set the ranks.
  __mccsim_thread.rank = lane.view.rank;
  __mccsim_active_lanes = warp.active;
}

}  // namespace

void mccsim::complete_collective(int warp_index) {
  Warp &warp = block.warp[warp_index];
  Lane *lanes = &block.lane[warp_index * block.warp_lanes];
  const Lane &first = lanes[warp.arrived.lowest()];
  Operation op(first.descriptor);
  if (!warp.uniform)
    for (int l = 0; l < warp.lanes; l++)
      if (warp.arrived.has(l) && lanes[l].descriptor != first.descriptor) {
        if (lab::on)
          lab::divergent_operation(warp_index);
        trap("divergent WMMA operation", "%s warp %d: lane %d is in %s, lane %d in %s", where().c_str(),
             warp_index, warp.arrived.lowest(), op.text().c_str(), l,
             Operation(lanes[l].descriptor).text().c_str());
      }
  if (op.operation == kSyncWarp) {
    if (lab::on)
      lab::collective_ends(warp_index);
    return;
  }
  if (!warp.uniform && lab::on)
    lab::divergent_operand(warp_index, op.text());
  if (!warp.uniform && settings().divergence == Divergence::trap)
    trap("divergent WMMA operand",
         "%s warp %d, %s:%s\n  all active lanes of a physical warp (%d threads) must pass one address",
         where().c_str(), warp_index, op.text().c_str(), operand_list(lanes, warp).c_str(),
         block.warp_lanes);
  set_active_lanes(lanes, warp, warp_index, op);
  if (lab::on && !allowed(warp, warp_index, op)) {
    lab::collective_ends(warp_index);
    return;
  }
  if (op.operation == __mccsim_store)
    store(lanes, warp, op);
  else
    load(lanes, warp, warp_index, op);
  if (lab::on)
    lab::collective_ends(warp_index);
}

// ---- called by device code ----------------------------------------------------------------------

extern "C" void __mccsim_syncwarp() {
  take_part<false>(Wait::warp_barrier, nullptr, 0, kSyncWarp << 25, nullptr);
}

extern "C" const __mccsim_tile *__mccsim_wmma_load_slowly(const void *base, unsigned ld, unsigned descriptor) {
  take_part<true>(Wait::wmma, base, ld, descriptor, nullptr);
  return static_cast<const __mccsim_tile *>(current_warp().result);
}

extern "C" void __mccsim_fragment_too_small(unsigned descriptor, int capacity) {
  Operation op(descriptor);
  trap("fragment too small",
       "%s warp %d: an accumulator of %d elements per lane cannot hold %dx%d with %d active lanes",
       where().c_str(), block.current_warp, capacity, op.m, op.n, current_warp().active);
}

extern "C" void __mccsim_wmma_store(void *base, unsigned ld, unsigned descriptor, const float *elements,
                                    int capacity) {
  Operation op(descriptor);
  if (capacity / 8 * std::max(current_warp().active, 1) < op.m * op.n / 8)
    __mccsim_fragment_too_small(descriptor, capacity);
  take_part<false>(Wait::wmma, base, ld, descriptor, elements);
}

extern "C" void __mccsim_unloaded_fragment(unsigned descriptor) {
  trap("unloaded fragment", "%s warp %d, lane %d: mma_sync uses an operand of %s that nothing was loaded into",
       where().c_str(), block.current_warp, block.current % block.warp_lanes, Operation(descriptor).text().c_str());
}

extern "C" void __mccsim_stale_fragment(unsigned descriptor) {
  trap("stale fragment",
       "%s warp %d, lane %d: mma_sync uses an operand of %s after %d more loads by its warp",
       where().c_str(), block.current_warp, block.current % block.warp_lanes,
       Operation(descriptor).text().c_str(), kTilesPerWarp);
}
