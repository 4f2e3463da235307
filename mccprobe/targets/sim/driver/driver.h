// mcc, the offload driver of mccprobe's stand-in SDK ("sim").
//
// It turns one command line in the style of clang 14's offload driver into jobs: per source and
// arch a device compile and a device link, then the bundler, the host compile, and at last one link.
// All compiling is stock clang; the driver only decides which arguments each job gets.
#pragma once

#include <string>
#include <vector>

// Given by the SDK builder.
#ifndef MCCSIM_CLANG
#error "MCCSIM_CLANG: absolute path of clang 14"
#endif
#ifndef MCCSIM_DEVICE_LINKER
#error "MCCSIM_DEVICE_LINKER: absolute path of the linker of device images"
#endif
#ifndef MCCSIM_CLANG_VERSION_LINE
#error "MCCSIM_CLANG_VERSION_LINE: first line of `clang --version`"
#endif
#ifndef MCCSIM_VERSION_LINE
#error "MCCSIM_VERSION_LINE: the line that says that this is a simulation"
#endif

namespace mccsim {

using Args = std::vector<std::string>;

enum class Phase { Preprocess, Syntax, Assembly, Object, Link };
enum class Scope { Both, DeviceOnly, HostOnly };

/// One input in command-line order; options for the linker keep their place among the objects.
struct Input {
  enum Kind { DeviceSource, HostSource, LinkerItem } kind;
  std::string text;
  std::string language; // an explicit -x for host sources; "ir" for device code that is LLVM IR
};

/// One parsed command line.
struct Invocation {
  Phase phase = Phase::Link;
  Scope scope = Scope::Both;
  bool emitLLVM = false;
  bool printJobs = false; // -###
  bool verbose = false;
  bool dependenciesOnly = false; // -M, -MM
  bool helpOnly = false;         // -mllvm -help and the like: the first compile prints and ends
  bool version = false;          // --version
  bool query = false;            // --help, -print-..., -dumpversion: clang answers, nothing is compiled
  bool keepFiles = false;        // -save-temps: intermediate files get lasting names ...
  bool keepBesideOutput = false; // ... beside the output with =obj, else in the working directory
  std::string output;
  std::vector<std::string> archs;
  std::vector<Input> inputs;
  Args compile;       // for every compile job
  Args deviceCompile; // -Xarch_device
  Args hostCompile;   // -Xarch_host
  Args dependencies;  // -MD, -MF ...; for one job of each source only
  bool dependencyFile = false, dependencyNamed = false, dependencyTarget = false;
  Args link;
};

/// One process. A job of clang's own driver is shown by -### as the cc1 or linker line that it starts.
struct Job {
  bool viaClang = false;
  Args argv;      // argv[0] is the program; for clang jobs the name it goes by
  int group = -1; // index of the input; -1 depends on all inputs
};

/// A mistake in the command line; the driver prints "mcc: error: " and exits with 1.
struct UsageError {
  std::string text;
};

// options.cpp
Args expandResponseFiles(const Args &arguments);
Invocation parse(const Args &arguments);
/// The macro value of an arch ("mp_22" gives 220); throws UsageError for an unknown one.
int archNumber(const std::string &arch);

// jobs.cpp
std::vector<Job> planJobs(const Invocation &invocation, const std::string &sdk);

// process.cpp
void installSignalHandlers();
/// A new empty file in $TMPDIR or /tmp that is removed when the driver ends, in whatever way.
std::string temporaryFile(const std::string &stem, const std::string &suffix);
void removeTemporaryFiles();
/// Runs to the end. Returns the exit status, 128+N for signal N as a shell would.
/// With `capturedStderr` the text goes there, not to our own standard error.
int runProcess(const std::string &program, const Args &argv, std::string *capturedStderr = nullptr);

// printing.cpp
/// `clang -###` for a clang job: the command lines it would start; other text goes to `messages`.
int expandClangJob(const Job &job, std::vector<Args> &commands, std::string &messages);
/// One job as clang prints it: a leading blank, every argument quoted.
std::string quotedLine(const Args &argv);
std::string versionText(const std::string &sdk, bool threadModel);

// banner.cpp
/// Copies assembly text with a first line that says what it is. "-" is standard output.
int addBanner(const std::string &from, const std::string &to);

/// The internal option behind which addBanner is a job of its own, so that a replayed -### list works.
extern const char *const kBannerOption;

} // namespace mccsim
