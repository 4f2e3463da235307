// Entry point of mcc: queries, -###, -v, or run.
#include "driver.h"

#include <climits>
#include <cstdio>
#include <cstring>
#include <set>
#include <unistd.h>

using namespace mccsim;

namespace {

void print(const std::string &text) { std::fputs(text.c_str(), stderr); }

std::string sdkRoot() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0)
    throw UsageError{"cannot find out where mcc itself is installed (/proc/self/exe)"};
  std::string root(path, static_cast<std::size_t>(length));
  for (int level = 0; level < 2; ++level) // <root>/bin/mcc
    root.erase(root.rfind('/'));
  return root;
}

int printAllJobs(const std::vector<Job> &jobs, const std::string &sdk) {
  print(versionText(sdk, true));
  for (const Job &job : jobs) {
    std::vector<Args> commands;
    if (job.viaClang) {
      std::string messages;
      const int status = expandClangJob(job, commands, messages);
      print(messages);
      if (status != 0)
        return status;
    } else {
      commands.push_back(job.argv);
    }
    for (const Args &command : commands)
      print(quotedLine(command));
  }
  return 0;
}

/// With -v the lines that -### would print are run, so that what is shown is what runs.
int runVerbosely(Job job) {
  std::vector<Args> commands;
  if (job.viaClang) {
    job.argv.push_back("-v"); // makes cc1 print its search paths
    std::string messages;
    const int status = expandClangJob(job, commands, messages);
    print(messages);
    if (status != 0)
      return status;
  } else {
    commands.push_back(job.argv);
  }
  for (const Args &command : commands) {
    print(quotedLine(command));
    std::fflush(stderr);
    if (const int status = runProcess(command[0], command))
      return status;
  }
  return 0;
}

/// As clang does: a failed source stops its own jobs and the link, other sources are still compiled.
int runAllJobs(const std::vector<Job> &jobs, bool verbose) {
  std::set<int> failedGroups;
  int result = 0;
  for (const Job &job : jobs) {
    if (failedGroups.count(job.group) || (job.group < 0 && !failedGroups.empty()))
      continue;
    const int status = verbose ? runVerbosely(job) : runProcess(job.viaClang ? MCCSIM_CLANG : job.argv[0], job.argv);
    if (status == 0)
      continue;
    failedGroups.insert(job.group);
    if (result == 0)
      result = status;
  }
  return result;
}

/// Several jobs cannot read one standard input: they get a copy of it.
void spoolStandardInput(Invocation &invocation) {
  for (Input &input : invocation.inputs) {
    if (input.text != "-" || input.kind == Input::LinkerItem)
      continue;
    const bool single = input.kind == Input::HostSource ||
                        (invocation.scope == Scope::DeviceOnly && invocation.archs.size() == 1) ||
                        invocation.scope == Scope::HostOnly;
    if (single || invocation.printJobs)
      continue;
    input.text = temporaryFile("stdin", ".mu");
    std::FILE *copy = std::fopen(input.text.c_str(), "wb");
    char buffer[16384];
    std::size_t count;
    while (copy && (count = std::fread(buffer, 1, sizeof buffer, stdin)) > 0)
      std::fwrite(buffer, 1, count, copy);
    if (!copy || std::fclose(copy) != 0)
      throw UsageError{"unable to copy standard input to " + input.text};
  }
}

int drive(const Args &given) {
  const std::string sdk = sdkRoot();
  if (given.size() == 3 && given[0] == kBannerOption)
    return addBanner(given[1], given[2]);
  const Args arguments = expandResponseFiles(given);
  installSignalHandlers();
  Invocation invocation = parse(arguments);
  if (invocation.version) {
    std::fputs(versionText(sdk, true).c_str(), stdout);
    return 0;
  }
  if (invocation.query) {
    Args argv = arguments;
    argv.insert(argv.begin(), sdk + "/bin/mcc");
    return runProcess(MCCSIM_CLANG, argv);
  }
  if (invocation.verbose && invocation.inputs.empty()) {
    print(versionText(sdk, true));
    return 0;
  }
  spoolStandardInput(invocation);
  std::vector<Job> jobs = planJobs(invocation, sdk);
  if (invocation.printJobs)
    return printAllJobs(jobs, sdk);
  if (invocation.helpOnly)
    jobs.resize(1);
  if (invocation.verbose)
    print(versionText(sdk, true));
  return runAllJobs(jobs, invocation.verbose);
}

} // namespace

int main(int argc, char **argv) {
  int status = 1;
  try {
    status = drive(Args(argv + 1, argv + argc));
  } catch (const UsageError &error) {
    print("mcc: error: " + error.text + "\n");
  }
  removeTemporaryFiles();
  return status;
}
