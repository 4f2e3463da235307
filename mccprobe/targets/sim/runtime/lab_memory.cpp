// The laboratory's map of memory: what belongs to a launch, and what is said of an access that does not keep to it.
#include <link.h>
#include <string.h>

#include <algorithm>

#include "api.h"
#include "fiber.h"
#include "lab.h"

extern "C" uint3 blockIdx;

namespace mccsim::lab {
namespace {

std::vector<Range> shared, variables, constants;
Range recent[4];  // of global memory
unsigned next_recent;

const Range *in_list(const std::vector<Range> &ranges, const char *a, size_t n) {
  auto found = std::find_if(ranges.begin(), ranges.end(), [&](const Range &r) { return r.has(a, n); });
  return found == ranges.end() ? nullptr : &*found;
}

std::string distance(const char *a, size_t n, const char *begin, size_t bytes) {
  if (a < begin)
    return std::to_string(begin - a) + " bytes before its start";
  return std::to_string(a + n - (begin + bytes)) + " bytes past its end";
}

// The place's finding, with the running lane in it where a lane does the access.
Finding *seen_by_lane(const char *kind, Severity severity, const Site *site, int warp, bool one_lane) {
  Finding *f = find(kind, severity, site, nullptr, warp);
  if (one_lane && f->warp == warp && memcmp(&f->block, &blockIdx, sizeof blockIdx) == 0)
    f->lanes.add(block.current - block.current_warp * block.warp_lanes);
  return f;
}

}  // namespace

void find_memory(const Kernel &kernel, size_t dynamic) {
  shared.clear();
  variables.clear();
  constants.clear();
  long offset = 0;
  for (const auto *list : {&kernel.shared, &kernel.shared_of_functions})
    for (const SharedVariable &v : *list) {
      // Functions that this kernel does not call could have more than there is; theirs are then not watched.
      const bool fits = offset + static_cast<long>(v.size + dynamic) <= static_cast<long>(kMaxSharedBytes);
      (fits ? shared : variables).push_back({reinterpret_cast<const char *>(v.address), v.size, offset});
      offset += fits ? static_cast<long>(v.size + 15) & ~15L : 0;
    }
  // Gaps of alignment may not push it over the end.
  if (dynamic)
    shared.push_back({__mccsim_dynamic_shared, dynamic, std::min<long>(offset, kMaxSharedBytes - dynamic)});
  for (const SharedVariable &v : kernel.variables)
    variables.push_back({reinterpret_cast<const char *>(v.address), v.size, 0});
  struct Search {
    uintptr_t base;
  } search = {kernel.image_base};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        if (info->dlpi_addr == static_cast<Search *>(data)->base)
          for (int i = 0; i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && !(info->dlpi_phdr[i].p_flags & PF_W))
              constants.push_back({reinterpret_cast<const char *>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                                   info->dlpi_phdr[i].p_memsz, 0});
        return 0;
      },
      &search);
  for (Range &range : recent)
    range = {};
}

long shared_offset(const char *a, size_t bytes) {
  for (const Range &r : shared)
    if (r.has(a, bytes))
      return r.offset + (a - r.begin);
  return -1;
}

bool is_global(const char *a, size_t n, bool write, Range *watched) {
  for (const Range &range : recent)
    if (range.has(a, n)) {
      *watched = range;
      return true;
    }
  Allocation found;
  const Range *variable = nullptr;
  if (find_allocation(a, &found) && Range{found.begin, found.bytes, 0}.has(a, n))
    *watched = {found.begin, found.bytes, 0};
  else if ((variable = in_list(variables, a, n)))
    *watched = *variable;
  else
    return is_own_stack(a, block.current) || is_operand_tile(a) || (!write && in_list(constants, a, n));
  recent[next_recent++ % std::size(recent)] = *watched;
  return true;
}

void out_of_bounds(const char *a, size_t n, const Site *site, bool write, int warp, const std::string &operation) {
  Finding *f = seen_by_lane("out-of-bounds", Severity::error, site, warp, operation.empty());
  if (f->count > 1)
    return;
  std::string what = operation.empty() ? std::string(write ? "write" : "read") : operation;
  what += " of " + std::to_string(n) + " bytes";
  Allocation near;
  const Range *area = nullptr;
  for (const Range &r : shared)
    if (a < r.begin + r.bytes + kMaxSharedBytes && a + kMaxSharedBytes > r.begin && (!area || a >= r.begin))
      area = &r;
  if (site && site->object) {
    bool is_shared = std::any_of(shared.begin(), shared.end(), [&](const Range &r) { return r.begin == site->object; });
    f->text = what + ", " + distance(a, n, site->object, site->object_bytes) +
              (is_shared ? ": a __shared__" : ": a __device__") + " variable of " +
              std::to_string(site->object_bytes) + " bytes";
  } else if (find_allocation(a, &near)) {
    f->text = what + ", " + distance(a, n, near.begin, near.bytes) + ": global memory of " +
              std::to_string(near.bytes) + " bytes";
  } else if (find_freed(a, &near)) {
    f->text = what + " of global memory of " + std::to_string(near.bytes) + " bytes that was freed";
  } else if (area) {
    f->text = what + ", " + distance(a, n, area->begin, area->bytes) + ": shared memory of " +
              std::to_string(area->bytes) + " bytes";
  } else {
    f->text = what + " that is in no device memory";
  }
}

void misaligned(const char *a, size_t n, const Site *site) {
  Finding *f = seen_by_lane("misaligned", Severity::doubt, site, block.current_warp, true);
  if (f->count == 1)
    f->text = std::string(site->flags & kWrite ? "write" : "read") + " of " + std::to_string(n) +
              " bytes, whose type is aligned to " + std::to_string(site->alignment) + ", " +
              std::to_string(reinterpret_cast<uintptr_t>(a) & (site->alignment - 1)) + " bytes beside that";
}

}  // namespace mccsim::lab
