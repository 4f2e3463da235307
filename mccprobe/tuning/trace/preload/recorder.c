/* Launch recorder for LD_PRELOAD: writes each kernel launch and each loaded module of a MUSA program as a line of
 * JSON, and leaves the program as it is. Written to the public prototypes of the MUSA runtime and driver; no header
 * of the SDK is needed. `mccprobe/tuning/trace/read.py` reads what is written here.
 *
 * MCCPROBE_TRACE_DIR names the folder. Rules that keep the program what it is:
 *   - every call goes on to the next definition and its result comes back unchanged, errno too;
 *   - no file descriptor is kept: the file is opened, one line is appended with one write, and it is closed, so
 *     that a program that closes everything, forks or changes its directory loses nothing and gains nothing;
 *   - the module's bytes are read through the kernel: a wrong size ends in a short copy, never in a crash;
 *   - the lock is held over a fork, and each line has the process and thread that wrote it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NOT_SUPPORTED 801 /* musaErrorNotSupported, MUSA_ERROR_NOT_SUPPORTED */

/* NAME: of a kernel, escaped; templates reach thousands of characters. Buffers come from malloc: the program's
 * threads may have small stacks. */
enum { LINE = 1024, NAME = 1 << 15, PLACE = 4096, FATBIN_MAGIC = 0x466243B1, MAX_ENTRIES = 4096, BUFFER = 1 << 16 };
static const uint64_t kMaxModule = 4ull << 30;

typedef struct { unsigned x, y, z; } Dim3; /* passed as the SDK's dim3 is: three 32-bit members */

/* ---- state ------------------------------------------------------------------------------------- */

typedef struct Known {
  const void *key;
  char *name;
  struct Known *next;
} Known;

enum { BUCKETS = 1024 };
static Known *functions[BUCKETS]; /* launch stub or MUfunction -> kernel name; one that is registered again wins */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t order;
static __thread const char *inside; /* the recorded call that this thread is in */
static __thread struct { Dim3 grid, block; size_t shared; void *stream; } pending; /* of cudaConfigureCall */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void start(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static unsigned bucket_of(const void *key) { return (unsigned)(((uintptr_t)key >> 4) * 2654435761u) % BUCKETS; }

static void remember(const void *key, const char *name) {
  Known *entry = malloc(sizeof *entry);
  char *copy = name ? strdup(name) : NULL;
  if (!entry || !copy) {
    free(entry);
    free(copy);
    return;
  }
  unsigned bucket = bucket_of(key);
  pthread_mutex_lock(&lock);
  *entry = (Known){key, copy, functions[bucket]};
  functions[bucket] = entry;
  pthread_mutex_unlock(&lock);
}

static const char *name_of(const void *key) {
  const char *name = NULL;
  pthread_mutex_lock(&lock);
  for (const Known *entry = functions[bucket_of(key)]; entry && !name; entry = entry->next)
    if (entry->key == key)
      name = entry->name;
  pthread_mutex_unlock(&lock);
  return name; /* entries are never freed */
}

/* ---- the next definition ------------------------------------------------------------------------ */

typedef struct { const char *name; void *found, *own; } Search;

/* A runtime that was loaded with RTLD_LOCAL (a Python extension) is not in the global scope. */
static int look_into(struct dl_phdr_info *object, size_t size, void *argument) {
  Search *search = argument;
  Dl_info where;
  (void)size;
  if (!object->dlpi_name || !*object->dlpi_name)
    return 0;
  void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle)
    return 0;
  void *symbol = dlsym(handle, search->name);
  dlclose(handle);
  if (symbol && dladdr(symbol, &where) && where.dli_fbase != search->own)
    search->found = symbol;
  return search->found != NULL;
}

static void *next_definition(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  Dl_info own;
  if (!found && dladdr((void *)next_definition, &own)) {
    Search search = {name, NULL, own.dli_fbase};
    dl_iterate_phdr(look_into, &search);
    found = search.found;
    dlerror(); /* what was not found is none of the program's errors */
  }
  return found;
}

#define NEXT(type, function)                                                                       \
  static void *next_;                                                                              \
  void *known_ = __atomic_load_n(&next_, __ATOMIC_ACQUIRE);                                        \
  if (!known_)                                                                                     \
    __atomic_store_n(&next_, known_ = next_definition(#function), __ATOMIC_RELEASE);               \
  type real = (type)known_

/* ---- writing ------------------------------------------------------------------------------------ */

static char place_[PLACE];
static void read_environment(void) { /* once: the program may change its environment while others launch */
  const char *given = getenv("MCCPROBE_TRACE_DIR");
  if (given && *given == '/' && strlen(given) < sizeof place_)
    strcpy(place_, given);
}

static const char *folder(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_environment);
  return *place_ ? place_ : NULL;
}

/* A name as a JSON string without its quotes; bytes that are no printable ASCII as \u00XX. */
static void escape(char *to, size_t room, const char *from) {
  size_t at = 0;
  for (; *from && at + 7 < room; from++) {
    unsigned char c = (unsigned char)*from;
    if (c == '"' || c == '\\') {
      to[at++] = '\\';
      to[at++] = (char)c;
    } else if (c < 0x20 || c > 0x7e) {
      at += (size_t)snprintf(to + at, 7, "\\u%04x", c);
    } else {
      to[at++] = (char)c;
    }
  }
  to[at] = 0;
}

__attribute__((format(printf, 2, 3))) static void record(const char *event, const char *format, ...) {
  typedef struct { char path[PLACE + 32], line[LINE + 2 * NAME]; } Work;
  const char *place = folder();
  Work *work = place ? malloc(sizeof *work) : NULL;
  if (!work)
    return;
  char *line = work->line;
  snprintf(work->path, sizeof work->path, "%s/launches.jsonl", place);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const char *head = "{\"event\":\"%s\",\"pid\":%ld,\"tid\":%ld,\"time_ns\":%lld,";
  size_t length = (size_t)snprintf(line, sizeof work->line, head, event, (long)getpid(), (long)syscall(SYS_gettid),
                                   (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  va_list arguments;
  va_start(arguments, format);
  length += (size_t)vsnprintf(line + length, sizeof work->line - length - 2, format, arguments);
  va_end(arguments);
  memcpy(line + length, "}\n", 2); /* it fits: both names are bounded by NAME */
  int file = open(work->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) {
    ssize_t written = write(file, line, length + 2);
    (void)written; /* a full disk loses a line, which must not be the program's trouble */
    close(file);
  }
  free(work);
}

/* True in a program of mccprobe's stand-in: its runtime has this function. */
static int is_simulated(void) {
  static int answer = -1;
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known < 0)
    __atomic_store_n(&answer, known = next_definition("__mccsim_syncthreads") != NULL, __ATOMIC_RELAXED);
  return known;
}

static uint64_t launch(const char *api, const void *function, Dim3 grid, Dim3 block, size_t shared,
                       const void *stream) {
  const char *known = name_of(function);
  const char *host = NULL; /* the function's own name, where nobody registered a kernel's */
  Dl_info where;
  uint64_t number = __atomic_add_fetch(&order, 1, __ATOMIC_RELAXED);
  char *name = malloc(NAME);
  if (!name)
    return number;
  char place[256]; /* of a function without a name: libfoo.so+0x1234 */
  if (!known && dladdr(function, &where) && !(host = where.dli_sname) && where.dli_fname) {
    const char *file = strrchr(where.dli_fname, '/');
    snprintf(place, sizeof place, "%s+0x%llx", file ? file + 1 : where.dli_fname,
             (unsigned long long)((uintptr_t)function - (uintptr_t)where.dli_fbase));
    host = place;
  }
  escape(name, NAME, known ? known : host ? host : "");
  record("launch",
         "\"api\":\"%s\",\"order\":%llu,\"kernel\":%s%s%s,\"symbol\":%s%s%s,\"grid\":[%u,%u,%u],"
         "\"block\":[%u,%u,%u],\"dynamic_shared_bytes\":%zu,\"stream\":\"0x%llx\",\"simulated\":%s,\"inside\":%s%s%s",
         api, (unsigned long long)number, known ? "\"" : "", known ? name : "null", known ? "\"" : "",
         host ? "\"" : "", host ? name : "null", host ? "\"" : "", grid.x, grid.y, grid.z, block.x, block.y,
         block.z, shared, (unsigned long long)(uintptr_t)stream, is_simulated() ? "true" : "false",
         inside ? "\"" : "", inside ? inside : "null", inside ? "\"" : "");
  free(name);
  return number;
}

static void refused(const char *api, uint64_t number, long result) {
  if (result)
    record("refused", "\"api\":\"%s\",\"order\":%llu,\"result\":%ld", api, (unsigned long long)number, result);
}

/* ---- modules ------------------------------------------------------------------------------------ */

/* Copies from this process's memory; false where there is none. */
static int peek(void *to, const char *from, size_t bytes) {
  struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
  ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* forbidden in some containers */
    int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    got = file < 0 ? -1 : pread(file, to, bytes, (off_t)(uintptr_t)from);
    if (file >= 0)
      close(file);
  }
  return got == (ssize_t)bytes;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t elf_bytes(const char *image) {
  ElfW(Ehdr) header;
  if (!peek(&header, image, sizeof header) || header.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  uint64_t end = sizeof header;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) segment;
    uint64_t at = header.e_phoff + (uint64_t)i * header.e_phentsize;
    if (at > kMaxModule || !peek(&segment, image + at, sizeof segment))
      return 0;
    end = larger(end, larger(at + sizeof segment, segment.p_offset + segment.p_filesz));
  }
  for (unsigned i = 0; i < header.e_shnum; i++) {
    ElfW(Shdr) section;
    uint64_t at = header.e_shoff + (uint64_t)i * header.e_shentsize;
    if (at > kMaxModule || !peek(&section, image + at, sizeof section))
      return 0;
    end = larger(end, at + sizeof section);
    if (section.sh_type != SHT_NOBITS)
      end = larger(end, section.sh_offset + section.sh_size);
  }
  return end;
}

static uint64_t bundle_bytes(const char *image) {
  uint64_t count, end = 32, at = 32;
  if (!peek(&count, image + 24, sizeof count) || count > MAX_ENTRIES)
    return 0;
  for (uint64_t i = 0; i < count; i++) {
    struct { uint64_t offset, size, id_bytes; } entry;
    if (!peek(&entry, image + at, sizeof entry) || entry.id_bytes > NAME)
      return 0;
    at += sizeof entry + entry.id_bytes;
    end = larger(end, larger(at, entry.offset + entry.size));
  }
  return end;
}

/* Where the image begins and how long it is; 0 where its first bytes do not say. */
static uint64_t image_bytes(const char **image) {
  char magic[24];
  struct { uint32_t magic, version; const char *data; } wrapper;
  if (peek(&wrapper, *image, sizeof wrapper) && wrapper.magic == FATBIN_MAGIC)
    *image = wrapper.data;
  if (peek(magic, *image, sizeof magic) && memcmp(magic, "__CLANG_OFFLOAD_BUNDLE__", sizeof magic) == 0)
    return bundle_bytes(*image);
  return peek(magic, *image, 4) && memcmp(magic, ELFMAG, SELFMAG) == 0 ? elf_bytes(*image) : 0;
}

/* Copies the image to a file named by size and FNV-1a hash of its bytes. Returns the bytes copied. */
static uint64_t save(const char *image, uint64_t bytes, char *name, size_t room) {
  typedef struct { char temporary[PLACE + 64], path[PLACE + 64], bytes[BUFFER]; } Work;
  const char *place = folder();
  Work *work = place ? malloc(sizeof *work) : NULL;
  uint64_t hash = 14695981039346656037ull, done = 0;
  if (!work)
    return 0;
  snprintf(work->temporary, sizeof work->temporary, "%s/modules/.%ld-%ld", place, (long)getpid(),
           (long)syscall(SYS_gettid));
  int file = open(work->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  while (file >= 0 && done < bytes) {
    size_t piece = bytes - done < BUFFER ? (size_t)(bytes - done) : BUFFER;
    if (!peek(work->bytes, image + done, piece) || write(file, work->bytes, piece) != (ssize_t)piece)
      break;
    for (size_t i = 0; i < piece; i++)
      hash = (hash ^ (unsigned char)work->bytes[i]) * 1099511628211ull;
    done += piece;
  }
  if (file >= 0) {
    close(file);
    snprintf(name, room, "%016llx-%llu.bin", (unsigned long long)hash, (unsigned long long)done);
    snprintf(work->path, sizeof work->path, "%s/modules/%s", place, name);
    if (done == 0 || rename(work->temporary, work->path) != 0) {
      unlink(work->temporary);
      done = 0;
    }
  }
  free(work);
  return done;
}

static void module_from_memory(const char *api, const void *given) {
  const char *image = given;
  char name[64] = "";
  uint64_t bytes = given ? image_bytes(&image) : 0;
  if (bytes > kMaxModule)
    bytes = 0;
  uint64_t saved = bytes ? save(image, bytes, name, sizeof name) : 0;
  record("module", "\"api\":\"%s\",\"bytes\":%llu,\"saved\":%llu,\"file\":%s%s%s,\"path\":null,\"inside\":%s%s%s", api,
         (unsigned long long)bytes, (unsigned long long)saved, saved ? "\"modules/" : "", saved ? name : "null",
         saved ? "\"" : "", inside ? "\"" : "", inside ? inside : "null", inside ? "\"" : "");
}

static void module_from_file(const char *api, const char *path) {
  char *text = malloc(NAME);
  if (!text)
    return;
  escape(text, NAME, path ? path : "");
  record("module", "\"api\":\"%s\",\"bytes\":0,\"saved\":0,\"file\":null,\"path\":\"%s\",\"inside\":%s%s%s", api, text,
         inside ? "\"" : "", inside ? inside : "null", inside ? "\"" : "");
  free(text);
}

/* ---- the hooks ---------------------------------------------------------------------------------- */

/* Goes on to the next definition, with this call as the one that others are inside of; keeps errno. */
#define CALL(api, call)                                                                            \
  const char *outer_ = inside;                                                                     \
  if (!outer_)                                                                                     \
    inside = api;                                                                                  \
  errno = errno_;                                                                                  \
  __typeof__(call) result = real ? (call) : (__typeof__(call))NOT_SUPPORTED;                       \
  errno_ = errno;                                                                                  \
  inside = outer_

typedef int (*RuntimeLaunch)(const void *, Dim3, Dim3, void **, size_t, void *);
#define RUNTIME_LAUNCH(api)                                                                        \
  EXPORT int api(const void *function, Dim3 grid, Dim3 block, void **arguments, size_t shared, void *stream) { \
    int errno_ = errno;                                                                            \
    NEXT(RuntimeLaunch, api);                                                                      \
    uint64_t number = launch(#api, function, grid, block, shared, stream);                         \
    CALL(#api, real(function, grid, block, arguments, shared, stream));                            \
    refused(#api, number, result);                                                                 \
    errno = errno_;                                                                                \
    return result;                                                                                 \
  }
RUNTIME_LAUNCH(musaLaunchKernel)
RUNTIME_LAUNCH(musaLaunchCooperativeKernel)

#define GRID unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream
typedef int (*DriverLaunch)(void *, GRID, void **, void **);
EXPORT int muLaunchKernel(void *function, GRID, void **parameters, void **extra) {
  int errno_ = errno;
  NEXT(DriverLaunch, muLaunchKernel);
  uint64_t number = launch("muLaunchKernel", function, (Dim3){gx, gy, gz}, (Dim3){bx, by, bz}, shared, stream);
  CALL("muLaunchKernel", real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra));
  refused("muLaunchKernel", number, result);
  errno = errno_;
  return result;
}

typedef int (*CooperativeLaunch)(void *, GRID, void **);
EXPORT int muLaunchCooperativeKernel(void *function, GRID, void **parameters) {
  int errno_ = errno;
  NEXT(CooperativeLaunch, muLaunchCooperativeKernel);
  uint64_t number =
      launch("muLaunchCooperativeKernel", function, (Dim3){gx, gy, gz}, (Dim3){bx, by, bz}, shared, stream);
  CALL("muLaunchCooperativeKernel", real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters));
  refused("muLaunchCooperativeKernel", number, result);
  errno = errno_;
  return result;
}

/* clang's older host code, which the programs of the stand-in `sim` have: the shape first, then the launch. */
typedef int (*Configure)(Dim3, Dim3, size_t, void *);
EXPORT int cudaConfigureCall(Dim3 grid, Dim3 block, size_t shared, void *stream) {
  int errno_ = errno;
  NEXT(Configure, cudaConfigureCall);
  errno = errno_;
  pending.grid = grid;
  pending.block = block;
  pending.shared = shared;
  pending.stream = stream;
  return real ? real(grid, block, shared, stream) : NOT_SUPPORTED;
}

typedef int (*StubLaunch)(const void *);
EXPORT int cudaLaunch(const void *function) {
  int errno_ = errno;
  NEXT(StubLaunch, cudaLaunch);
  uint64_t number = launch("cudaLaunch", function, pending.grid, pending.block, pending.shared, pending.stream);
  CALL("cudaLaunch", real(function));
  refused("cudaLaunch", number, result);
  errno = errno_;
  return result;
}

/* Registration, called by code that the compiler adds to every host object: kernel names and fat binaries. */
typedef void **(*RegisterBinary)(const void *);
#define REGISTER_BINARY(api)                                                                       \
  EXPORT void **api(const void *wrapper) {                                                         \
    int errno_ = errno;                                                                            \
    NEXT(RegisterBinary, api);                                                                     \
    module_from_memory(#api, wrapper);                                                             \
    errno = errno_;                                                                                \
    return real ? real(wrapper) : NULL;                                                            \
  }
REGISTER_BINARY(__musaRegisterFatBinary)
REGISTER_BINARY(__cudaRegisterFatBinary)

typedef long (*RegisterFunction)(void **, const void *, char *, const char *, int, void *, void *, void *, void *,
                                 int *);
#define REGISTER_FUNCTION(api)                                                                     \
  EXPORT long api(void **module, const void *stub, char *device, const char *name, int limit, void *thread, \
                  void *block, void *block_size, void *grid_size, int *warp) {                     \
    int errno_ = errno;                                                                            \
    NEXT(RegisterFunction, api);                                                                   \
    remember(stub, name);                                                                          \
    errno = errno_;                                                                                \
    return real ? real(module, stub, device, name, limit, thread, block, block_size, grid_size, warp) : 0; \
  }
REGISTER_FUNCTION(__musaRegisterFunction)
REGISTER_FUNCTION(__cudaRegisterFunction)

typedef int (*LoadImage)(void **, const void *);
#define LOAD_IMAGE(api, tell)                                                                      \
  EXPORT int api(void **module, const void *image) {                                               \
    int errno_ = errno;                                                                            \
    NEXT(LoadImage, api);                                                                          \
    tell(#api, image);                                                                             \
    CALL(#api, real(module, image));                                                               \
    refused(#api, 0, result);                                                                      \
    errno = errno_;                                                                                \
    return result;                                                                                 \
  }
LOAD_IMAGE(muModuleLoad, module_from_file)
LOAD_IMAGE(muModuleLoadData, module_from_memory)
LOAD_IMAGE(muModuleLoadFatBinary, module_from_memory)

typedef int (*LoadImageEx)(void **, const void *, unsigned, void *, void **);
EXPORT int muModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
  int errno_ = errno;
  NEXT(LoadImageEx, muModuleLoadDataEx);
  module_from_memory("muModuleLoadDataEx", image);
  CALL("muModuleLoadDataEx", real(module, image, count, options, values));
  refused("muModuleLoadDataEx", 0, result);
  errno = errno_;
  return result;
}

typedef int (*GetFunction)(void **, void *, const char *);
EXPORT int muModuleGetFunction(void **function, void *module, const char *name) {
  int errno_ = errno;
  NEXT(GetFunction, muModuleGetFunction);
  errno = errno_;
  int result = real ? real(function, module, name) : NOT_SUPPORTED;
  errno_ = errno;
  if (result == 0 && function)
    remember(*function, name);
  errno = errno_;
  return result;
}
