#include "mubin.h"

#include <elf.h>
#include <string.h>

#include <algorithm>

namespace mccsim {
namespace {

constexpr char kMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
// The wrapper gives no length, so these bound what a damaged bundle can make us read.
constexpr uint64_t kMaxEntries = 64, kMaxIdBytes = 256, kMaxImageBytes = uint64_t{1} << 30;

uint64_t read_u64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

// "musa-mtgpu-mt-musa" or "musa-mthg-mt-musa", one or more hyphens, "mp_..."
bool is_device_id(const std::string &id) {
  for (const std::string prefix : {"musa-mtgpu-mt-musa-", "musa-mthg-mt-musa-"}) {
    if (id.compare(0, prefix.size(), prefix) != 0)
      continue;
    size_t arch = id.find_first_not_of('-', prefix.size());
    return arch != std::string::npos && id.compare(arch, 3, "mp_") == 0;
  }
  return false;
}

}  // namespace

bool find_device_image(const void *bundle, Bytes *image, std::string *reason) {
  const auto *data = static_cast<const unsigned char *>(bundle);
  if (!data || memcmp(data, kMagic, kMagicBytes) != 0) {
    *reason = "the embedded fat binary is not an offload bundle";
    return false;
  }
  uint64_t count = read_u64(data + kMagicBytes);
  if (count > kMaxEntries) {
    *reason = "the offload bundle has an impossible number of entries";
    return false;
  }
  const unsigned char *entry = data + kMagicBytes + 8;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t offset = read_u64(entry), size = read_u64(entry + 8), id_bytes = read_u64(entry + 16);
    if (id_bytes > kMaxIdBytes || offset > kMaxImageBytes || size > kMaxImageBytes) {
      *reason = "the offload bundle has an entry that is out of range";
      return false;
    }
    std::string id(reinterpret_cast<const char *>(entry + 24), id_bytes);
    entry += 24 + id_bytes;
    if (is_device_id(id) && size > 0) {
      *image = {data + offset, size};
      return true;
    }
  }
  *reason = "the offload bundle holds no image for musa-mtgpu-mt-musa";
  return false;
}

struct Mubin::Table {
  size_t symbols = 0, count = 0;  // offset in the image, number of entries
  size_t strings = 0, string_bytes = 0;
};

bool Mubin::parse(Bytes image, std::string *reason) {
  Elf64_Ehdr header;
  if (image.size < sizeof header || memcmp(image.data, ELFMAG, SELFMAG) != 0) {
    *reason = "the device image is not an ELF file";
    return false;
  }
  memcpy(&header, image.data, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_type != ET_DYN) {
    *reason = "the device image is not an x86-64 shared object; the emulator cannot run it";
    return false;
  }
  uint64_t sections = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > image.size ||
      sections > image.size - header.e_shoff) {
    *reason = "the device image is cut short";
    return false;
  }
  image_.assign(image.data, image.data + image.size);
  return true;
}

bool Mubin::symbol_table(unsigned type, Table *table) const {
  Elf64_Ehdr header;
  memcpy(&header, image_.data(), sizeof header);
  auto section = [&](unsigned index, Elf64_Shdr *out) {
    if (index >= header.e_shnum)
      return false;
    memcpy(out, image_.data() + header.e_shoff + index * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS ||
           (out->sh_offset <= image_.size() && out->sh_size <= image_.size() - out->sh_offset);
  };
  for (unsigned i = 0; i < header.e_shnum; i++) {
    Elf64_Shdr symbols, strings;
    if (!section(i, &symbols) || symbols.sh_type != type || !section(symbols.sh_link, &strings) ||
        strings.sh_type != SHT_STRTAB)
      continue;
    table->symbols = symbols.sh_offset;
    table->count = symbols.sh_size / sizeof(Elf64_Sym);
    table->strings = strings.sh_offset;
    table->string_bytes = strings.sh_size;
    return true;
  }
  return false;
}

const char *Mubin::string_at(const Table &table, size_t offset) const {
  const char *text = reinterpret_cast<const char *>(image_.data() + table.strings + offset);
  bool terminated = offset < table.string_bytes && memchr(text, 0, table.string_bytes - offset);
  return terminated ? text : "";
}

void Mubin::bind_dynamic_shared(const void *memory, bool (*is_external)(const char *name)) {
  Table table;
  if (!symbol_table(SHT_DYNSYM, &table))
    return;
  for (size_t i = 1; i < table.count; i++) {
    unsigned char *at = image_.data() + table.symbols + i * sizeof(Elf64_Sym);
    Elf64_Sym symbol;
    memcpy(&symbol, at, sizeof symbol);
    if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL ||
        is_external(string_at(table, symbol.st_name)))
      continue;
    symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
    symbol.st_other = STV_HIDDEN;
    symbol.st_shndx = SHN_ABS;
    symbol.st_value = reinterpret_cast<uint64_t>(memory);
    memcpy(at, &symbol, sizeof symbol);
  }
}

namespace {

// "_Z3fooi" has the locals "_ZZ3fooiE..."; extern "C" foo has "_ZZ3fooE...".
std::string scope_of(const std::string &kernel) {
  return kernel.compare(0, 2, "_Z") == 0 ? "_ZZ" + kernel.substr(2) + "E"
                                         : "_ZZ" + std::to_string(kernel.size()) + kernel + "E";
}

bool starts_with(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

}  // namespace

// A static constant table of a function has the same form of name, but stands in a section with contents.
// __shared__ variables are never initialised.
std::vector<SharedVariable> Mubin::shared_variables(const std::string &kernel) const {
  const std::string scope = scope_of(kernel);
  return objects([&](const std::string &name, bool has_contents) { return !has_contents && starts_with(name, scope); });
}

std::vector<SharedVariable> Mubin::shared_of_functions(const std::vector<std::string> &kernels) const {
  return objects([&](const std::string &name, bool has_contents) {
    return !has_contents && starts_with(name, "_ZZ") &&
           std::none_of(kernels.begin(), kernels.end(),
                        [&](const std::string &kernel) { return starts_with(name, scope_of(kernel)); });
  });
}

std::vector<SharedVariable> Mubin::variables() const {
  return objects([](const std::string &name, bool has_contents) { return has_contents || !starts_with(name, "_ZZ"); });
}

std::vector<SharedVariable>
Mubin::objects(const std::function<bool(const std::string &name, bool has_contents)> &wanted) const {
  std::vector<SharedVariable> found;
  Table table;
  if (!symbol_table(SHT_SYMTAB, &table))
    return found;
  Elf64_Ehdr header;
  memcpy(&header, image_.data(), sizeof header);
  for (size_t i = 1; i < table.count; i++) {
    Elf64_Sym symbol;
    memcpy(&symbol, image_.data() + table.symbols + i * sizeof symbol, sizeof symbol);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= header.e_shnum)
      continue;
    Elf64_Shdr section;
    memcpy(&section, image_.data() + header.e_shoff + symbol.st_shndx * sizeof section, sizeof section);
    if (wanted(string_at(table, symbol.st_name), section.sh_type != SHT_NOBITS))
      found.push_back({symbol.st_value, symbol.st_size});
  }
  return found;
}

}  // namespace mccsim
