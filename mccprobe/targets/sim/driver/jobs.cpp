// Invocation to jobs: which processes run, on what, in which order.
#include "driver.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace mccsim {
namespace {

constexpr const char *kHostTarget = "host-x86_64-unknown-linux-gnu";
constexpr const char *kDeviceTargetPrefix = "musa-mtgpu-mt-musa-"; // as SDK 5.2.0 lists them
constexpr const char *kNewDeviceTargetPrefix = "musa-mthg-mt-musa-"; // mp_4x (julia-musa S2 C07)
constexpr const char *kTextBundle = "; __CLANG_OFFLOAD_BUNDLE____"; // LLVM 14, ClangOffloadBundler.cpp
constexpr const char *kBundleAlign = "-bundle-align=4096";         // what clang's driver asks for
// For any clang job: the simulated device is x86-64, so device code is a host compile in CUDA device
// mode, and a CUDA installation of the machine must not be found.
const Args kCuda = {"-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent", "--cuda-host-only",
                    "-std=c++17"};

void append(Args &list, const Args &more) { list.insert(list.end(), more.begin(), more.end()); }

std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string stemOf(const std::string &path) {
  if (path == "-")
    return "a";
  const std::string name = baseName(path);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

/// The bundle id of an architecture.
std::string deviceId(const std::string &arch) {
  return (arch.compare(0, 4, "mp_4") == 0 ? kNewDeviceTargetPrefix : kDeviceTargetPrefix) + arch;
}

/// The entry of a bundle of text for this architecture; "" where the file is no such bundle.
std::string textOf(const std::string &path, const std::string &arch) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string start = std::string(kTextBundle) + "START__ ", end = std::string(kTextBundle) + "END__ ";
  if (text.find(start) == std::string::npos)
    return "";
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t line = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string id = text.substr(at + start.size(), line - at - start.size() - 1);
    const bool device = id.compare(0, 5, "musa-") == 0 && id.size() > arch.size();
    if (device && id.compare(id.size() - arch.size(), arch.size(), arch) == 0)
      return text.substr(line, text.find(end, line) - line);
  }
  throw UsageError{"'" + path + "' is a bundle without an entry for " + arch};
}

class Planner {
public:
  Planner(const Invocation &invocation, const std::string &sdk) : cl(invocation), sdk(sdk) {
    const std::string path = sdk + "/lib/mccsim.so";
    if (access(path.c_str(), R_OK) == 0)
      plugin = path;
  }

  std::vector<Job> plan() {
    Args linkItems;
    bool anyToLink = false;
    checkOutputs();
    for (std::size_t i = 0; i < cl.inputs.size(); ++i) {
      const Input &input = cl.inputs[i];
      group = static_cast<int>(i);
      if (input.kind == Input::LinkerItem) {
        linkItems.push_back(input.text);
        anyToLink |= input.text[0] != '-';
        continue;
      }
      fromIR = input.language == "ir";
      const std::string object = input.kind == Input::DeviceSource ? planDeviceSource(input) : planHostSource(input);
      linkItems.push_back(object);
      anyToLink = true;
    }
    if (!anyToLink)
      throw UsageError{"no input files"};
    group = -1;
    if (cl.phase == Phase::Link && cl.scope != Scope::DeviceOnly)
      planLink(linkItems);
    return std::move(jobs);
  }

private:
  const Invocation &cl;
  const std::string &sdk;
  std::string plugin;
  std::vector<Job> jobs;
  int group = 0;
  bool fromIR = false; // the device source at hand is LLVM IR

  bool oneFilePerArch() const {
    return cl.phase == Phase::Preprocess || cl.phase == Phase::Assembly || cl.emitLLVM;
  }

  /// clang refuses one -o for several files before it starts anything.
  void checkOutputs() const {
    std::size_t files = 0;
    for (const Input &input : cl.inputs) {
      if (input.kind == Input::LinkerItem)
        continue;
      if (input.kind == Input::HostSource || cl.dependenciesOnly || !oneFilePerArch())
        files += 1;
      else
        files += (cl.scope == Scope::HostOnly ? 0 : cl.archs.size()) + (cl.scope == Scope::DeviceOnly ? 0 : 1);
    }
    const bool linked = cl.phase == Phase::Link && cl.scope != Scope::DeviceOnly;
    if (!cl.output.empty() && cl.output != "-" && files > 1 && !linked && cl.phase != Phase::Syntax)
      throw UsageError{"cannot specify -o when generating multiple output files"};
  }

  /// A file between two jobs; `arch` is empty for the host's.
  std::string intermediate(const std::string &source, const std::string &arch, const std::string &ending) const {
    if (!cl.keepFiles)
      return temporaryFile(stemOf(source) + (arch.empty() ? "" : "-" + arch), ending);
    const std::string folder =
        cl.keepBesideOutput ? cl.output.substr(0, cl.output.rfind('/') + 1) : std::string();
    return folder + stemOf(source) + (arch.empty() ? "" : "-" + deviceId(arch)) + ending;
  }

  void addClangJob(Args arguments) {
    // The name makes clang report this SDK as InstalledDir.
    arguments.insert(arguments.begin(), sdk + "/bin/mcc");
    jobs.push_back({true, std::move(arguments), group});
  }
  void addToolJob(Args argv) { jobs.push_back({false, std::move(argv), group}); }

  std::string suffix() const {
    if (cl.phase == Phase::Assembly)
      return cl.emitLLVM ? ".ll" : ".s";
    return cl.emitLLVM ? ".bc" : ".o";
  }

  Args phaseFlags() const {
    Args flags;
    if (cl.dependenciesOnly)
      return flags;
    if (cl.phase == Phase::Preprocess)
      flags.push_back("-E");
    else if (cl.phase == Phase::Syntax)
      flags.push_back("-fsyntax-only");
    else
      flags.push_back(cl.phase == Phase::Assembly ? "-S" : "-c");
    if (cl.emitLLVM)
      flags.insert(flags.begin(), "-emit-llvm");
    return flags;
  }

  static void addOutput(Args &arguments, const std::string &output) {
    if (!output.empty())
      append(arguments, {"-o", output});
  }

  /// -MD and friends for one job, with the names clang would choose for the whole command.
  Args dependencyFlags(const std::string &source) const {
    Args flags = cl.dependencies;
    if (cl.dependencyFile && !cl.dependenciesOnly) {
      std::string named = cl.output.empty() || cl.output == "-" ? stemOf(source) + ".o" : cl.output;
      if (!cl.dependencyTarget)
        append(flags, {"-MQ", named});
      if (!cl.dependencyNamed) {
        const std::size_t dot = named.rfind('.');
        const std::size_t slash = named.rfind('/');
        if (dot != std::string::npos && (slash == std::string::npos || dot > slash + 1))
          named.erase(dot);
        append(flags, {"-MF", named + ".d"});
      }
    }
    return flags;
  }

  /// What clang reads for this architecture: the source, or the entry of a bundle of IR text.
  std::string deviceInput(const std::string &source, const std::string &arch) const {
    const std::string text = fromIR ? textOf(source, arch) : std::string();
    if (text.empty())
      return source;
    const std::string path = temporaryFile(stemOf(source) + "-" + arch, ".ll");
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  Args deviceArguments(const std::string &source, const std::string &arch) const {
    Args arguments = fromIR ? Args{"-x", "ir"} : kCuda;
    append(arguments, {"-mavx2", "-mfma", "-mf16c", "-fPIC", "-Xclang", "-fcuda-is-device"});
    if (!fromIR)
      append(arguments, {"-isystem", sdk + "/include", "-D__MCCPROBE_SIM_DEVICE__=1",
                         "-D__MUSA_ARCH__=" + std::to_string(archNumber(arch))});
    if (!plugin.empty())
      append(arguments, {"-fplugin=" + plugin, "-mllvm", "-mccprobe-sim-device-job"});
    append(arguments, cl.compile);
    append(arguments, cl.deviceCompile);
    if (cl.scope == Scope::DeviceOnly)
      append(arguments, dependencyFlags(source));
    return arguments;
  }

  Args hostArguments(const std::string &source, const std::string &bundle) const {
    Args arguments = kCuda;
    append(arguments, {"-isystem", sdk + "/include"});
    if (!bundle.empty())
      append(arguments, {"-Xclang", "-fcuda-include-gpubinary", "-Xclang", bundle});
    if (!plugin.empty())
      arguments.push_back("-fplugin=" + plugin);
    append(arguments, cl.compile);
    append(arguments, cl.hostCompile);
    append(arguments, dependencyFlags(source));
    return arguments;
  }

  /// Where one file of a source goes: -o, else a name in the working directory.
  std::string outputFor(const std::string &source, const std::string &arch) const {
    if (cl.phase == Phase::Syntax)
      return "";
    if (!cl.output.empty() || cl.phase == Phase::Preprocess)
      return cl.output;
    return stemOf(source) + (arch.empty() ? "" : "-" + deviceId(arch)) + suffix();
  }

  /// Text and bitcode of one arch: no device link, no bundle.
  void planDeviceText(const std::string &source, const std::string &arch) {
    Args arguments = deviceArguments(source, arch);
    append(arguments, phaseFlags());
    arguments.push_back(deviceInput(source, arch));
    const std::string output = outputFor(source, arch);
    const bool banner = cl.phase == Phase::Assembly && !cl.emitLLVM && !cl.helpOnly;
    const std::string plain = banner ? intermediate(source, arch, ".plain.s") : output;
    addOutput(arguments, plain);
    addClangJob(arguments);
    if (banner)
      addToolJob({sdk + "/bin/mcc", kBannerOption, plain, output});
  }

  /// Device compile and link of every arch, then the bundle.
  void planBundle(const std::string &source, const std::string &bundle) {
    std::string targets = std::string("-targets=") + kHostTarget;
    std::string inputs = "-inputs=/dev/null"; // the host entry is empty, as in clang's own fat binaries
    for (const std::string &arch : cl.archs) {
      const std::string object = intermediate(source, arch, ".o");
      const std::string image = intermediate(source, arch, ".mubin");
      Args arguments = deviceArguments(source, arch);
      append(arguments, {"-c", deviceInput(source, arch), "-o", object});
      addClangJob(arguments);
      addToolJob({MCCSIM_DEVICE_LINKER, "-shared", object, "-o", image});
      targets += "," + deviceId(arch);
      inputs += "," + image;
    }
    addToolJob({sdk + "/bin/clang-offload-bundler", "-type=o", kBundleAlign, targets, inputs, "-outputs=" + bundle});
  }

  /// Returns the object for the link; "" when there is none.
  std::string planDeviceSource(const Input &input) {
    const std::string &source = input.text;
    const bool perArch = cl.phase == Phase::Syntax || oneFilePerArch();
    std::string bundle;
    if (cl.scope == Scope::DeviceOnly && !perArch) {
      const std::string unnamed = cl.phase == Phase::Link ? "a.out" : stemOf(source) + ".o";
      planBundle(source, cl.output.empty() ? unnamed : cl.output);
      return "";
    }
    if (cl.scope != Scope::HostOnly && !cl.dependenciesOnly) {
      if (perArch) {
        for (const std::string &arch : cl.archs)
          planDeviceText(source, arch);
      } else {
        bundle = intermediate(source, "", ".musafb");
        planBundle(source, bundle);
      }
    }
    if (cl.scope == Scope::DeviceOnly && !cl.dependenciesOnly)
      return "";
    Args arguments = cl.scope == Scope::DeviceOnly ? deviceArguments(source, cl.archs.front())
                                                   : hostArguments(source, bundle);
    return finishHostCompile(std::move(arguments), source);
  }

  std::string planHostSource(const Input &input) {
    Args arguments = {"-isystem", sdk + "/include"};
    const std::string ending = input.text.substr(std::min(input.text.rfind('.'), input.text.size()));
    if (!plugin.empty() && ending != ".s") // -mllvm reaches every compile: mcc's options must be known here too
      arguments.push_back("-fplugin=" + plugin);
    append(arguments, cl.compile);
    append(arguments, cl.hostCompile);
    append(arguments, dependencyFlags(input.text));
    if (!input.language.empty())
      append(arguments, {"-x", input.language});
    return finishHostCompile(std::move(arguments), input.text);
  }

  std::string finishHostCompile(Args arguments, const std::string &source) {
    append(arguments, phaseFlags());
    arguments.push_back(source);
    std::string output;
    if (cl.phase == Phase::Link)
      output = intermediate(source, "", ".o");
    else if (cl.dependenciesOnly)
      output = cl.output;
    else
      output = outputFor(source, "");
    addOutput(arguments, output);
    addClangJob(arguments);
    return output;
  }

  void planLink(const Args &items) {
    Args arguments = {"--driver-mode=g++", "-fuse-ld=lld", "-rdynamic", "-Qunused-arguments"};
    append(arguments, cl.link);
    append(arguments, items);
    append(arguments, {"-L" + sdk + "/lib", "-ldl", "-lm", "-o", cl.output.empty() ? "a.out" : cl.output});
    addClangJob(arguments);
  }
};

} // namespace

std::vector<Job> planJobs(const Invocation &invocation, const std::string &sdk) {
  return Planner(invocation, sdk).plan();
}

} // namespace mccsim
