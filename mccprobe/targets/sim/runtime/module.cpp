#include "module.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "trap.h"

namespace mccsim {

extern "C" {
alignas(1024) char __mccsim_dynamic_shared[kMaxSharedBytes];
}

namespace {

struct Module {
  const void *bundle;
  void *handle = nullptr;
  uintptr_t base = 0;
  Mubin mubin;
};

struct Stub {
  Module *module;
  std::string symbol;
};

struct Variable {
  Module *module;
  std::string symbol;
  size_t bytes;
};

// Made on first use: the registration calls come from static constructors of the program.
struct Registry {
  std::map<const void *, Stub> stubs;
  std::map<const void *, Variable> variables;
  std::map<const void *, Kernel> kernels;
};

Registry &registry() {
  static auto *r = new Registry;
  return *r;
}

// Names that device code takes from outside: the runtime's own, and the C library's (memcpy, expf).
// A symbol of the program itself never counts, so that a host variable that happens to have the name
// of an `extern __shared__` array is not taken for it.
bool is_external(const char *name) {
  for (const char *builtin : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
    if (strcmp(name, builtin) == 0)
      return true;
  if (strncmp(name, "__mccsim_", 9) == 0)
    return true;
  void *address = dlsym(RTLD_DEFAULT, name);
  Dl_info object, program;
  if (!address || !dladdr(address, &object))
    return false;
  const void *program_headers = reinterpret_cast<const void *>(getauxval(AT_PHDR));
  return !dladdr(program_headers, &program) || object.dli_fbase != program.dli_fbase;
}

int image_file(const std::vector<unsigned char> &image) {
  int file = memfd_create("mccprobe-sim-module", MFD_CLOEXEC);
  if (file < 0) {
    char path[] = "/tmp/mccprobe-sim-XXXXXX";
    file = mkstemp(path);
    if (file >= 0)
      unlink(path);
  }
  for (size_t done = 0; file >= 0 && done < image.size();) {
    ssize_t n = write(file, image.data() + done, image.size() - done);
    if (n <= 0)
      trap("bad module", "cannot write the device image to memory");
    done += n;
  }
  return file;
}

void load(Module &module) {
  if (module.handle)
    return;
  std::string reason;
  Bytes image;
  if (!find_device_image(module.bundle, &image, &reason) || !module.mubin.parse(image, &reason))
    trap("bad module", "%s", reason.c_str());
  dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);  // the program itself may not need it
  module.mubin.bind_dynamic_shared(__mccsim_dynamic_shared, is_external);
  // The file stays open: the loader knows an object by its path, so the number must not come back.
  int file = image_file(module.mubin.image());
  std::string path = "/proc/self/fd/" + std::to_string(file);
  // DEEPBIND: a __host__ __device__ function exists in the program too, and device code must call its
  // own copy, which is the one under test.
  module.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!module.handle)  // -fgpu-rdc is taken, but each source keeps an image of its own
    trap("bad module", "the device image does not load (device code is not linked across sources here): %s", dlerror());
  link_map *map;
  if (dlinfo(module.handle, RTLD_DI_LINKMAP, &map) == 0)
    module.base = map->l_addr;
}

// "void ns::gemm<true>(int*)" -> "ns::gemm<true>"
std::string display_name(const std::string &symbol) {
  int status;
  char *text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (!text)
    return symbol;
  std::string name = text;
  free(text);
  int depth = 0;
  size_t end = name.size();
  for (size_t i = 0; i < name.size(); i++) {
    if (name[i] == '<')
      depth++;
    else if (name[i] == '>')
      depth--;
    else if (depth == 0 && name[i] == '(' && name.compare(i, 11, "(anonymous ") != 0) {
      end = i;
      break;
    }
  }
  // Only a template's name is preceded by its return type, which for a kernel is void.
  size_t start = name.compare(0, 5, "void ") == 0 ? 5 : 0;
  return name.substr(start, end - start);
}

}  // namespace

const Kernel *find_kernel(const void *stub) {
  Registry &r = registry();
  auto known = r.kernels.find(stub);
  if (known != r.kernels.end())
    return &known->second;
  auto registered = r.stubs.find(stub);
  if (registered == r.stubs.end())
    return nullptr;
  Module &module = *registered->second.module;
  load(module);
  Kernel kernel;
  kernel.symbol = registered->second.symbol;
  kernel.name = display_name(kernel.symbol);
  kernel.function = dlsym(module.handle, kernel.symbol.c_str());
  if (!kernel.function)
    trap("missing kernel", "the device image has no kernel %s (%s)", kernel.name.c_str(),
         kernel.symbol.c_str());
  kernel.place = dlsym(module.handle, ("__mccsim_lab_kernel_" + kernel.symbol).c_str());
  kernel.shared_bytes = 0;
  for (SharedVariable variable : module.mubin.shared_variables(kernel.symbol)) {
    variable.address += module.base;
    kernel.shared_bytes += variable.size;
    kernel.shared.push_back(variable);
  }
  kernel.image_base = module.base;
  std::vector<std::string> kernels;
  for (const auto &stub_of : r.stubs)
    if (stub_of.second.module == &module)
      kernels.push_back(stub_of.second.symbol);
  kernel.shared_of_functions = module.mubin.shared_of_functions(kernels);
  kernel.variables = module.mubin.variables();
  for (auto *variables : {&kernel.shared_of_functions, &kernel.variables})
    for (SharedVariable &variable : *variables)
      variable.address += module.base;
  return &(r.kernels[stub] = kernel);
}

void *find_variable(const void *host_symbol, size_t *bytes) {
  auto found = registry().variables.find(host_symbol);
  if (found == registry().variables.end())
    return nullptr;
  load(*found->second.module);
  *bytes = found->second.bytes;
  return dlsym(found->second.module->handle, found->second.symbol.c_str());
}

}  // namespace mccsim

// ---- registration, called by the code that clang adds to each host object -----------------------

using namespace mccsim;

extern "C" void **__cudaRegisterFatBinary(const void *wrapper) {
  struct Wrapper {
    uint32_t magic, version;
    const void *data;
    const void *unused;
  };
  const auto *w = static_cast<const Wrapper *>(wrapper);
  auto *module = new Module;
  module->bundle = w->magic == 0x466243B1 ? w->data : nullptr;
  return reinterpret_cast<void **>(module);
}

extern "C" void __cudaUnregisterFatBinary(void **) {}

extern "C" int __cudaRegisterFunction(void **module, const void *stub, char *, const char *symbol, int,
                                      void *, void *, void *, void *, int *) {
  registry().stubs[stub] = {reinterpret_cast<Module *>(module), symbol};
  return 0;
}

extern "C" void __cudaRegisterVar(void **module, const void *host_symbol, char *, const char *symbol, int,
                                  size_t bytes, int, int) {
  registry().variables[host_symbol] = {reinterpret_cast<Module *>(module), symbol, bytes};
}
