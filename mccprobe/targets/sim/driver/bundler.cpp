// clang-offload-bundler of mccprobe's stand-in SDK: the part of LLVM 14's tool that mcc needs.
//
// Layout of a binary bundle (LLVM 14, ClangOffloadBundler.cpp): 24-byte magic, u64 count, then per
// entry u64 offset, u64 size, u64 id length, id; all little endian; each body at its offset.
// Upstream knows no "musa" target kind, hence an own tool.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

const std::string kMagic = "__CLANG_OFFLOAD_BUNDLE__";

struct Failure {
  std::string text;
};

struct Entry {
  std::string target;
  std::string body;
};

struct Options {
  std::string type;
  std::vector<std::string> targets, inputs, outputs;
  std::uint64_t align = 1;
  bool list = false, unbundle = false, allowMissing = false;
};

std::vector<std::string> splitCommas(const std::string &text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string readFile(const std::string &path) {
  std::ifstream file;
  std::istream *in = &std::cin;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw Failure{"'" + path + "': " + std::strerror(errno)};
    in = &file;
  }
  return {std::istreambuf_iterator<char>(*in), std::istreambuf_iterator<char>()};
}

/// Written beside and renamed, so that a failed run leaves no half file; devices are written in place.
void writeFile(const std::string &path, const std::string &data) {
  const bool special = path == "-" || path.rfind("/dev/", 0) == 0;
  const std::string partial = special ? path : path + ".tmp";
  std::FILE *file = path == "-" ? stdout : std::fopen(partial.c_str(), "wb");
  bool good = file && std::fwrite(data.data(), 1, data.size(), file) == data.size();
  if (file)
    good &= (path == "-" ? std::fflush(file) : std::fclose(file)) == 0;
  if (good && !special)
    good = std::rename(partial.c_str(), path.c_str()) == 0;
  if (!good) {
    const std::string reason = std::strerror(errno);
    if (!special)
      std::remove(partial.c_str());
    throw Failure{"'" + path + "': " + reason};
  }
}

void put64(std::string &out, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte)
    out += static_cast<char>(value >> (8 * byte));
}

std::uint64_t get64(const std::string &data, std::size_t &at) {
  if (data.size() < 8 || at > data.size() - 8)
    throw Failure{"the bundle header is cut short"};
  std::uint64_t value = 0;
  for (int byte = 7; byte >= 0; --byte)
    value = value << 8 | static_cast<unsigned char>(data[at + static_cast<std::size_t>(byte)]);
  at += 8;
  return value;
}

std::string pack(const std::vector<Entry> &entries, std::uint64_t align) {
  std::uint64_t offset = kMagic.size() + 8;
  for (const Entry &entry : entries)
    offset += 24 + entry.target.size();
  std::string out = kMagic;
  put64(out, entries.size());
  std::vector<std::uint64_t> offsets;
  for (const Entry &entry : entries) {
    offset = (offset + align - 1) / align * align;
    offsets.push_back(offset);
    put64(out, offset);
    put64(out, entry.body.size());
    put64(out, entry.target.size());
    out += entry.target;
    offset += entry.body.size();
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].body.empty())
      continue;
    out.resize(offsets[i], '\0');
    out += entries[i].body;
  }
  return out;
}

/// Entries of a bundle, or of the bundle inside a host object; none for any other file.
std::vector<Entry> unpack(const std::string &data) {
  std::vector<Entry> entries;
  const std::size_t start = data.find(kMagic);
  if (start == std::string::npos)
    return entries;
  std::size_t at = start + kMagic.size();
  const std::uint64_t count = get64(data, at);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = get64(data, at), size = get64(data, at), length = get64(data, at);
    if (length > data.size() - at)
      throw Failure{"the bundle header is cut short"};
    const std::uint64_t room = data.size() - start;
    if (size != 0 && (offset > room || size > room - offset))
      throw Failure{"entry " + std::to_string(i) + " lies outside the file"};
    entries.push_back({data.substr(at, length), size ? data.substr(start + offset, size) : std::string()});
    at += length;
  }
  return entries;
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string given = argv[i];
    std::string name = given, value;
    while (!name.empty() && name[0] == '-')
      name.erase(0, 1);
    const std::size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.erase(equals);
    }
    if (name == "list" || name == "unbundle" || name == "allow-missing-bundles") {
      (name == "list" ? options.list : name == "unbundle" ? options.unbundle : options.allowMissing) = true;
      continue;
    }
    if (given[0] != '-' || (name != "type" && name != "targets" && name != "inputs" && name != "outputs" &&
                            name != "bundle-align"))
      throw Failure{"Unknown command line argument '" + given + "'."};
    if (!joined) {
      if (++i >= argc)
        throw Failure{"for the --" + name + " option: requires a value!"};
      value = argv[i];
    }
    if (name == "type")
      options.type = value;
    else if (name == "bundle-align")
      options.align = std::strtoull(value.c_str(), nullptr, 10);
    else
      (name == "targets" ? options.targets : name == "inputs" ? options.inputs : options.outputs) = splitCommas(value);
  }
  if (options.type.empty())
    throw Failure{"for the --type option: must be specified at least once!"};
  if (options.align == 0)
    throw Failure{"for the --bundle-align option: must be a positive number"};
  if (options.inputs.empty())
    throw Failure{"for the --inputs option: must be specified at least once!"};
  return options;
}

void unbundle(const Options &options) {
  if (options.inputs.size() != 1)
    throw Failure{"only one input file supported in unbundling mode"};
  if (options.targets.size() != options.outputs.size())
    throw Failure{"number of output files and targets should match in unbundling mode"};
  const std::vector<Entry> entries = unpack(readFile(options.inputs[0]));
  for (std::size_t i = 0; i < options.targets.size(); ++i) {
    const Entry *found = nullptr;
    for (const Entry &entry : entries)
      if (entry.target == options.targets[i])
        found = &entry;
    if (!found && !options.allowMissing)
      throw Failure{"Can't find bundles for " + options.targets[i]};
    writeFile(options.outputs[i], found ? found->body : std::string());
  }
}

void bundle(const Options &options) {
  if (options.outputs.size() != 1)
    throw Failure{"only one output file supported in bundling mode"};
  if (options.targets.size() != options.inputs.size())
    throw Failure{"number of input files and targets should match in bundling mode"};
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < options.targets.size(); ++i)
    entries.push_back({options.targets[i], readFile(options.inputs[i])});
  writeFile(options.outputs[0], pack(entries, options.align));
}

} // namespace

int main(int argc, char **argv) {
  try {
    const Options options = parse(argc, argv);
    if (options.list) {
      for (const Entry &entry : unpack(readFile(options.inputs[0])))
        std::printf("%s\n", entry.target.c_str());
    } else if (options.unbundle) {
      unbundle(options);
    } else {
      bundle(options);
    }
  } catch (const Failure &failure) {
    std::fprintf(stderr, "clang-offload-bundler: error: %s\n", failure.text.c_str());
    return 1;
  }
  return 0;
}
