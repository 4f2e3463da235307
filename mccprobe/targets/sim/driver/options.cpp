// Command line to Invocation.
//
// The driver must know which options take their value as the next argument, or it would take the
// value for an input; the list follows clang 14's Options.td (drivers' Separate and JoinedOrSeparate
// kinds). Everything not known here goes to clang as it is, and clang refuses what it does not know.
#include "driver.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace mccsim {
namespace {

template <std::size_t N> bool isOneOf(const std::string &text, const char *const (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list), [&](const char *item) { return text == item; });
}

bool startsWith(const std::string &text, const char *prefix) {
  return text.compare(0, std::strlen(prefix), prefix) == 0;
}

bool endsWith(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Value in the next argument; for compile jobs only.
constexpr const char *kSeparateCompile[] = {
    "-Xclang",       "-mllvm",    "-include",       "-imacros",     "-include-pch", "-isystem",
    "-isystem-after", "-iquote",  "-idirafter",     "-iprefix",     "-iwithprefix", "-iwithprefixbefore",
    "-isysroot",     "-iframework", "-imultilib",   "-I",           "-D",           "-U",
    "-F",            "-Xpreprocessor", "-Xassembler", "-Xanalyzer", "-Xopenmp-target", "-ivfsoverlay",
    "-working-directory", "-dependency-file", "-dependency-dot", "-fmodules-cache-path", "-A",
    "--include-directory", "--define-macro", "--undefine-macro", "--system-header-prefix", "-Xcuda-fatbinary",
    "-Xcuda-ptxas", "-mthread-model", "--serialize-diagnostics"};
// Value in the next argument; for compile and link.
constexpr const char *kSeparateBoth[] = {"-target", "--target", "--sysroot", "-arch", "--param", "-gcc-toolchain",
                                         "-B", "-ccc-gcc-name", "-framework"};
// Value in the next argument; for the link only.
constexpr const char *kSeparateLink[] = {"-Xlinker", "-L", "-l", "-T", "-u", "-z", "-e", "--entry", "-rpath",
                                         "-Xoffload-linker"};
// No value or joined; for the link only (a compile would warn about them).
constexpr const char *kLinkOnly[] = {"-shared",     "-static",       "-rdynamic", "-s",          "-r",
                                     "-nostdlib",   "-nodefaultlibs", "-nostartfiles", "-pie",    "-no-pie",
                                     "-static-pie", "-static-libgcc", "-static-libstdc++", "-shared-libgcc",
                                     "-nopie",      "-nolibc"};
constexpr const char *kLinkOnlyJoined[] = {"-Wl,", "-l", "-L", "-fuse-ld=", "--ld-path=", "-T", "-z", "-rtlib=",
                                           "--rtlib=", "-unwindlib="};
constexpr const char *kDependency[] = {"-MD", "-MMD", "-MP", "-MG", "-MV", "-M", "-MM"};
constexpr const char *kDependencySeparate[] = {"-MF", "-MT", "-MQ", "-MJ"};
// Accepted and without effect: mcc's front-end options that only mean something on the device.
constexpr const char *kAcceptedOnly[] = {"-mtgpu",
                                         "-Od3",
                                         "--musa-path-ignore-env",
                                         "-fmusa-flush-denormals-to-zero",
                                         "-fno-musa-flush-denormals-to-zero",
                                         "--cuda-compile-host-device",
                                         "--musa-compile-host-device",
                                         "-mathx-disable-fp64", // torch_musa csrc/CMakeLists.txt
                                         "-fgpu-rdc",
                                         "-fno-gpu-rdc",
                                         "-fcuda-rdc",
                                         "-fno-cuda-rdc",
                                         "-rdc=true",
                                         "-rdc=false"};
// The architecture in the next argument, as some projects write it.
constexpr const char *kArchSeparate[] = {"--offload-arch", "--cuda-gpu-arch"};
constexpr const char *kHelp[] = {"help", "help-hidden", "help-list", "help-list-hidden", "version"};
constexpr const char *kHostSuffixes[] = {".c",  ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CPP", ".i",
                                         ".ii", ".s",  ".S",  ".sx",  ".ll",  ".bc",  ".m", ".mm",  ".cui"};

bool isQuery(const std::string &argument) {
  return argument == "--help" || argument == "-help" || argument == "--help-hidden" ||
         startsWith(argument, "-print-") || startsWith(argument, "--print-") || startsWith(argument, "-dump") ||
         startsWith(argument, "--autocomplete=");
}

void addHelpCheck(Invocation &invocation, const std::string &value) {
  std::string name = value;
  while (!name.empty() && name[0] == '-')
    name.erase(0, 1);
  if (value != name && isOneOf(name, kHelp))
    invocation.helpOnly = true;
}

void addXarch(Invocation &invocation, const std::string &option, const std::string &value) {
  if (isOneOf(value, kSeparateCompile) || isOneOf(value, kSeparateBoth) || isOneOf(value, kSeparateLink))
    throw UsageError{"invalid Xarch argument: '" + option + " " + value +
                     "', options requiring arguments are unsupported"};
  if (startsWith(value, "-mllvm=")) { // clang 14 only warns, and the value is lost
    std::fprintf(stderr, "mcc: warning: argument unused during compilation: '%s %s' [-Wunused-command-line-argument]\n",
                 option.c_str(), value.c_str());
    return;
  }
  (option == "-Xarch_device" ? invocation.deviceCompile : invocation.hostCompile).push_back(value);
}

void addInput(Invocation &invocation, const std::string &text, const std::string &language) {
  const bool device = language == "musa" || language == "cuda" || (language.empty() && (endsWith(text, ".mu") || endsWith(text, ".cu")));
  if (device) {
    invocation.inputs.push_back({Input::DeviceSource, text, ""});
    return;
  }
  const bool source = !language.empty() || std::any_of(std::begin(kHostSuffixes), std::end(kHostSuffixes),
                                                       [&](const char *suffix) { return endsWith(text, suffix); });
  invocation.inputs.push_back({source ? Input::HostSource : Input::LinkerItem, text, language});
}

void addArch(Invocation &invocation, const std::string &arch) {
  archNumber(arch);
  if (std::find(invocation.archs.begin(), invocation.archs.end(), arch) == invocation.archs.end())
    invocation.archs.push_back(arch);
}

bool isIR(const Input &input) {
  if (input.kind != Input::HostSource)
    return false;
  return input.language == "ir" || (input.language.empty() && (endsWith(input.text, ".ll") || endsWith(input.text, ".bc")));
}

/// GNU rules of a response file: blanks separate, quotes group, a backslash takes the next as it is.
Args tokenize(const std::string &text) {
  Args words;
  std::string word;
  bool inWord = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && quote != '\'') {
      word += text[++i];
      inWord = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      inWord = true;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (inWord)
        words.push_back(word);
      word.clear();
      inWord = false;
    } else {
      word += c;
      inWord = true;
    }
  }
  if (inWord)
    words.push_back(word);
  return words;
}

void expandInto(Args &result, const Args &arguments, int depth) {
  for (const std::string &argument : arguments) {
    std::ifstream file;
    if (argument.size() > 1 && argument[0] == '@')
      file.open(argument.substr(1), std::ios::binary);
    if (!file.is_open()) {
      result.push_back(argument); // as clang does: no such file, so it is a plain argument
      continue;
    }
    if (depth > 20)
      throw UsageError{"response files nested too deeply: " + argument};
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    expandInto(result, tokenize(text), depth + 1);
  }
}

} // namespace

Args expandResponseFiles(const Args &arguments) {
  Args result;
  expandInto(result, arguments, 0);
  return result;
}

int archNumber(const std::string &arch) {
  // __MUSA_ARCH__ as the MUSA headers use it: 210, 220, 310.
  if (arch == "mp_10")
    return 100;
  if (arch == "mp_21")
    return 210;
  if (arch == "mp_22")
    return 220;
  if (arch == "mp_31")
    return 310;
  if (arch == "mp_42")
    return 420;
  throw UsageError{"unsupported CUDA gpu architecture: " + arch}; // the words of clang's own driver
}

Invocation parse(const Args &arguments) {
  Invocation invocation;
  std::string language;
  bool sawE = false, sawSyntax = false, sawS = false, sawC = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    const auto next = [&]() -> const std::string & {
      if (i + 1 >= arguments.size())
        throw UsageError{"argument to '" + argument + "' is missing (expected 1 value)"};
      return arguments[++i];
    };
    const auto joined = [&](const char *prefix) { return argument.substr(std::strlen(prefix)); };
    if (argument == "-" || argument.empty() || argument[0] != '-') {
      addInput(invocation, argument, language);
    } else if (argument == "-###") {
      invocation.printJobs = true;
    } else if (argument == "--version") {
      invocation.version = true;
    } else if (isQuery(argument)) {
      invocation.query = true;
    } else if (argument == "-save-temps" || argument == "--save-temps" || startsWith(argument, "-save-temps=") ||
               startsWith(argument, "--save-temps=")) {
      // Not for clang: its names would be the same for the host and for every arch.
      invocation.keepFiles = true;
      invocation.keepBesideOutput = endsWith(argument, "=obj");
    } else if (argument == "-v" || argument == "--verbose") {
      invocation.verbose = true;
    } else if (argument == "-o" || argument == "--output") {
      invocation.output = next();
    } else if (startsWith(argument, "--output=")) {
      invocation.output = joined("--output=");
    } else if (startsWith(argument, "-o") && !startsWith(argument, "-objc")) {
      invocation.output = joined("-o");
    } else if (argument == "-x" || startsWith(argument, "-x")) {
      language = argument == "-x" ? next() : joined("-x");
      if (language == "none")
        language.clear();
    } else if (argument == "-c" || argument == "--compile" || argument == "-dc") {
      // -dc is nvcc's -rdc=true -c; each source keeps an image of its own here
      sawC = true;
    } else if (argument == "-S" || argument == "--assemble") {
      sawS = true;
    } else if (argument == "-E" || argument == "--preprocess") {
      sawE = true;
    } else if (argument == "-fsyntax-only") {
      sawSyntax = true;
    } else if (argument == "-emit-llvm") {
      invocation.emitLLVM = true;
    } else if (startsWith(argument, "--offload-arch=") || startsWith(argument, "--cuda-gpu-arch=")) {
      addArch(invocation, argument.substr(argument.find('=') + 1));
    } else if (isOneOf(argument, kArchSeparate)) {
      addArch(invocation, next());
    } else if (argument == "--musa-device-only" || argument == "--cuda-device-only") {
      invocation.scope = Scope::DeviceOnly;
    } else if (argument == "--musa-host-only" || argument == "--cuda-host-only") {
      invocation.scope = Scope::HostOnly;
    } else if (isOneOf(argument, kAcceptedOnly) || startsWith(argument, "--musa-path=")) {
      continue;
    } else if (argument == "-Xarch_device" || argument == "-Xarch_host") {
      addXarch(invocation, argument, next());
    } else if (isOneOf(argument, kDependency)) {
      invocation.dependencies.push_back(argument);
      invocation.dependencyFile |= argument == "-MD" || argument == "-MMD";
      invocation.dependenciesOnly |= argument == "-M" || argument == "-MM";
    } else if (startsWith(argument, "-MF") || startsWith(argument, "-MT") || startsWith(argument, "-MQ") ||
               argument == "-MJ") {
      invocation.dependencies.push_back(argument);
      invocation.dependencyNamed |= argument[2] == 'F';
      invocation.dependencyTarget |= argument[2] == 'T' || argument[2] == 'Q';
      if (isOneOf(argument, kDependencySeparate))
        invocation.dependencies.push_back(next());
    } else if (isOneOf(argument, kSeparateCompile)) {
      invocation.compile.push_back(argument);
      std::string value = next();
      if (argument == "-mllvm" && !value.empty() && value[0] != '-')
        value.insert(0, "-"); // mutlass writes `-mllvm unroll-threshold=5000`, which clang 14 refuses
      invocation.compile.push_back(value);
      if (argument == "-mllvm")
        addHelpCheck(invocation, invocation.compile.back());
    } else if (isOneOf(argument, kSeparateBoth)) {
      const std::string value = next();
      for (Args *list : {&invocation.compile, &invocation.link})
        list->insert(list->end(), {argument, value});
    } else if (isOneOf(argument, kSeparateLink)) {
      invocation.inputs.push_back({Input::LinkerItem, argument, ""});
      invocation.inputs.push_back({Input::LinkerItem, next(), ""});
    } else if (isOneOf(argument, kLinkOnly) ||
               std::any_of(std::begin(kLinkOnlyJoined), std::end(kLinkOnlyJoined),
                           [&](const char *prefix) { return startsWith(argument, prefix); })) {
      invocation.inputs.push_back({Input::LinkerItem, argument, ""});
    } else {
      invocation.compile.push_back(argument);
      if (argument[1] != 'D' && argument[1] != 'U' && argument[1] != 'I' && !startsWith(argument, "-fplugin=") &&
          !startsWith(argument, "-fpass-plugin="))
        invocation.link.push_back(argument);
    }
  }
  if (sawE || invocation.dependenciesOnly)
    invocation.phase = Phase::Preprocess;
  else if (sawSyntax)
    invocation.phase = Phase::Syntax;
  else if (sawS)
    invocation.phase = Phase::Assembly;
  else if (sawC)
    invocation.phase = Phase::Object;
  if (invocation.archs.empty())
    invocation.archs.push_back("mp_22"); // MTT S4000, the GPU of the article
  if (invocation.scope == Scope::DeviceOnly)
    for (Input &input : invocation.inputs)
      if (isIR(input))
        input = {Input::DeviceSource, input.text, "ir"};
  return invocation;
}

} // namespace mccsim
