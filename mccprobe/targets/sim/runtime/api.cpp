// Memory, errors, device, streams and events. Launches run to their end before they return, so
// everything asynchronous has already happened when it is asked for.
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "block.h"
#include "lab.h"
#include "module.h"
#include "settings.h"

using namespace mccsim;

namespace {

musaError_t last_error = musaSuccess;

struct Owned {
  void *memory;
  size_t bytes, margin;
};

std::map<const char *, Owned> &allocations() {
  static auto *a = new std::map<const char *, Owned>;
  return *a;
}

// What was freed with the laboratory on, so that a later use of it is known for what it is.
std::map<const char *, size_t> &freed() {
  static auto *a = new std::map<const char *, size_t>;
  return *a;
}

// Nothing else lies within the margin, so that an access outside an allocation meets no other one. Pages that
// nobody touches cost nothing.
size_t margin_of(size_t bytes) {
  constexpr size_t kLeast = 1 << 20, kMost = 1 << 30;
  return lab::on ? (std::clamp(bytes, kLeast, kMost) + 4095) & ~size_t{4095} : 0;
}

double milliseconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

size_t physical_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct ErrorText {
  musaError_t error;
  const char *name, *text;
};
const ErrorText error_texts[] = {
    {musaSuccess, "musaSuccess", "no error"},
    {musaErrorInvalidValue, "musaErrorInvalidValue", "invalid argument"},
    {musaErrorMemoryAllocation, "musaErrorMemoryAllocation", "out of memory"},
    {musaErrorInvalidConfiguration, "musaErrorInvalidConfiguration", "invalid configuration argument"},
    {musaErrorInvalidSymbol, "musaErrorInvalidSymbol", "invalid device symbol"},
    {musaErrorInvalidDevicePointer, "musaErrorInvalidDevicePointer", "invalid device pointer"},
    {musaErrorInvalidMemcpyDirection, "musaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {musaErrorInvalidDeviceFunction, "musaErrorInvalidDeviceFunction", "invalid device function"},
    {musaErrorInvalidDevice, "musaErrorInvalidDevice", "invalid device ordinal"},
    {musaErrorInvalidResourceHandle, "musaErrorInvalidResourceHandle", "invalid resource handle"},
    {musaErrorLaunchFailure, "musaErrorLaunchFailure", "unspecified launch failure"},
    {musaErrorNotSupported, "musaErrorNotSupported", "operation not supported"},
};

const ErrorText *error_text(musaError_t error) {
  for (const ErrorText &e : error_texts)
    if (e.error == error)
      return &e;
  return nullptr;
}

}  // namespace

musaError_t mccsim::record_error(musaError_t error) {
  if (error != musaSuccess)
    last_error = error;
  return error;
}

bool mccsim::find_allocation(const void *address, Allocation *found) {
  auto *at = static_cast<const char *>(address);
  auto next = allocations().upper_bound(at);
  const auto take = [&](const std::pair<const char *const, Owned> &entry) {
    const Owned &owned = entry.second;
    *found = {entry.first, owned.bytes};
    return at >= entry.first - owned.margin && at < entry.first + owned.bytes + owned.margin;
  };
  return (next != allocations().begin() && take(*std::prev(next))) || (next != allocations().end() && take(*next));
}

bool mccsim::find_freed(const void *address, Allocation *found) {
  auto *at = static_cast<const char *>(address);
  auto next = freed().upper_bound(at);
  if (next == freed().begin())
    return false;
  const auto &before = *std::prev(next);
  *found = {before.first, before.second};
  return at < before.first + before.second;
}

struct MUevent_st {
  double milliseconds = -1;  // negative: not recorded
};
struct MUstream_st {
  char unused;
};

extern "C" {

// ---- memory -------------------------------------------------------------------------------------

musaError_t musaMalloc(void **pointer, size_t bytes) {
  if (!pointer)
    return record_error(musaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0)
    return musaSuccess;
  void *memory = nullptr;
  // Linux would promise more than there is and kill the process later.
  const size_t margin = margin_of(bytes);
  if (bytes > physical_memory() || posix_memalign(&memory, 4096, bytes + 2 * margin) != 0)
    return record_error(musaErrorMemoryAllocation);
  char *begin = static_cast<char *>(memory) + margin;
  if (settings().poison)
    memset(begin, 0xff, bytes);  // NaN as float and as half
  allocations()[begin] = {memory, bytes, margin};
  *pointer = begin;
  return musaSuccess;
}

musaError_t musaFree(void *pointer) {
  if (!pointer)
    return musaSuccess;
  auto known = allocations().find(static_cast<const char *>(pointer));
  if (known == allocations().end())
    return record_error(musaErrorInvalidDevicePointer);
  const Owned &owned = known->second;
  if (lab::on) {
    lab::forget(known->first);
    freed()[known->first] = owned.bytes;
    const size_t pages = (owned.bytes + 2 * owned.margin) & ~size_t{4095};
    madvise(owned.memory, pages, MADV_DONTNEED);  // the addresses stay, the memory goes back
  } else {
    free(owned.memory);
  }
  allocations().erase(known);
  return musaSuccess;
}

musaError_t musaMemcpy(void *to, const void *from, size_t bytes, musaMemcpyKind kind) {
  if (kind < musaMemcpyHostToHost || kind > musaMemcpyDefault)
    return record_error(musaErrorInvalidMemcpyDirection);
  if (bytes && (!to || !from))
    return record_error(musaErrorInvalidValue);
  if (bytes)
    memmove(to, from, bytes);
  return musaSuccess;
}

musaError_t musaMemcpyAsync(void *to, const void *from, size_t bytes, musaMemcpyKind kind, musaStream_t) {
  return musaMemcpy(to, from, bytes, kind);
}

musaError_t musaMemset(void *pointer, int value, size_t bytes) {
  if (bytes && !pointer)
    return record_error(musaErrorInvalidValue);
  if (bytes)
    memset(pointer, value, bytes);
  return musaSuccess;
}

musaError_t musaMemsetAsync(void *pointer, int value, size_t bytes, musaStream_t) {
  return musaMemset(pointer, value, bytes);
}

musaError_t musaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  *total_bytes = physical_memory();
  *free_bytes = static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return musaSuccess;
}

musaError_t __mccsim_memcpy_symbol(const void *symbol, void *host, size_t bytes, size_t offset,
                                   int to_device) {
  size_t size = 0;
  auto *device = static_cast<char *>(find_variable(symbol, &size));
  if (!device)
    return record_error(musaErrorInvalidSymbol);
  if (offset > size || bytes > size - offset)
    return record_error(musaErrorInvalidValue);
  if (to_device)
    memcpy(device + offset, host, bytes);
  else
    memcpy(host, device + offset, bytes);
  return musaSuccess;
}

// ---- errors -------------------------------------------------------------------------------------

musaError_t musaDeviceSynchronize(void) { return last_error; }

musaError_t musaGetLastError(void) {
  musaError_t error = last_error;
  last_error = musaSuccess;
  return error;
}

musaError_t musaPeekAtLastError(void) { return last_error; }

const char *musaGetErrorString(musaError_t error) {
  const ErrorText *e = error_text(error);
  return e ? e->text : "unrecognized error code";
}

const char *musaGetErrorName(musaError_t error) {
  const ErrorText *e = error_text(error);
  return e ? e->name : "unrecognized error code";
}

// ---- device -------------------------------------------------------------------------------------

musaError_t musaSetDevice(int device) {
  return device == 0 ? musaSuccess : record_error(musaErrorInvalidDevice);
}

musaError_t musaGetDevice(int *device) {
  *device = 0;
  return musaSuccess;
}

musaError_t musaGetDeviceCount(int *count) {
  *count = 1;
  return musaSuccess;
}

musaError_t musaGetDeviceProperties(musaDeviceProp *properties, int device) {
  if (device != 0)
    return record_error(musaErrorInvalidDevice);
  *properties = musaDeviceProp();
  snprintf(properties->name, sizeof properties->name, "mccprobe sim (x86-64 emulation)");
  properties->totalGlobalMem = physical_memory();
  properties->sharedMemPerBlock = kMaxSharedBytes;
  properties->warpSize = settings().warp_lanes;
  properties->maxThreadsPerBlock = kMaxBlockThreads;
  for (int &side : properties->maxThreadsDim)
    side = kMaxBlockThreads;
  for (int &side : properties->maxGridSize)
    side = 0x7fffffff;
  properties->major = 2;
  properties->minor = 2;
  properties->multiProcessorCount = 1;
  properties->maxThreadsPerMultiProcessor = kMaxBlockThreads;
  return musaSuccess;
}

// ---- streams and events -------------------------------------------------------------------------

musaError_t musaStreamCreate(musaStream_t *stream) {
  *stream = new MUstream_st();
  return musaSuccess;
}

musaError_t musaStreamDestroy(musaStream_t stream) {
  delete stream;
  return musaSuccess;
}

musaError_t musaStreamSynchronize(musaStream_t) { return last_error; }

musaError_t musaEventCreate(musaEvent_t *event) {
  *event = new MUevent_st();
  return musaSuccess;
}

musaError_t musaEventRecord(musaEvent_t event, musaStream_t) {
  event->milliseconds = milliseconds_now();
  return musaSuccess;
}

musaError_t musaEventSynchronize(musaEvent_t) { return last_error; }

musaError_t musaEventElapsedTime(float *milliseconds, musaEvent_t start, musaEvent_t stop) {
  if (start->milliseconds < 0 || stop->milliseconds < 0)
    return record_error(musaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(stop->milliseconds - start->milliseconds);
  return musaSuccess;
}

musaError_t musaEventDestroy(musaEvent_t event) {
  delete event;
  return musaSuccess;
}

}  // extern "C"
