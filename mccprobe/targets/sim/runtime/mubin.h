// Reading of the two containers: the offload bundle, and the device ELF (mubin) inside it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <string>
#include <vector>

namespace mccsim {

struct Bytes {
  const unsigned char *data = nullptr;
  size_t size = 0;
};

// A __shared__ variable of a kernel, at its address in the ELF.
struct SharedVariable {
  uint64_t address;
  size_t size;
};

// Finds the device image in an offload bundle of unknown length. Returns false with a reason.
bool find_device_image(const void *bundle, Bytes *image, std::string *reason);

class Mubin {
public:
  // Checks the headers. Keeps a copy, which prepare_dynamic_shared() changes.
  bool parse(Bytes image, std::string *reason);

  // clang turns `extern __shared__` arrays into undefined symbols. All of them mean the same memory:
  // each becomes a local absolute symbol, so that the loader does not look for it elsewhere.
  void bind_dynamic_shared(const void *memory, bool (*is_external)(const char *name));

  // The static __shared__ variables of a kernel: local data symbols "_ZZ<kernel>E...".
  std::vector<SharedVariable> shared_variables(const std::string &kernel) const;

  // The same of functions that are none of these kernels.
  std::vector<SharedVariable> shared_of_functions(const std::vector<std::string> &kernels) const;

  // All variables of the image but what `__shared__` and other local names ("_ZZ...") are.
  std::vector<SharedVariable> variables() const;

  const std::vector<unsigned char> &image() const { return image_; }

private:
  struct Table;
  std::vector<SharedVariable>
  objects(const std::function<bool(const std::string &name, bool has_contents)> &wanted) const;
  bool symbol_table(unsigned type, Table *table) const;
  const char *string_at(const Table &table, size_t offset) const;

  std::vector<unsigned char> image_;
};

}  // namespace mccsim
