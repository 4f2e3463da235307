// -### and -v: clang's own job lines, and ours in the same form.
#include "driver.h"

#include <sstream>

namespace mccsim {
namespace {

/// Reads one line of `clang -###` back: ` "a" "b\"c"`.
Args unquote(const std::string &line) {
  Args argv;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '"')
      continue;
    std::string word;
    for (++i; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && i + 1 < line.size())
        ++i;
      word += line[i];
    }
    argv.push_back(word);
  }
  return argv;
}

bool isHeader(const std::string &line) {
  return line == MCCSIM_CLANG_VERSION_LINE || line.rfind("Target: ", 0) == 0 || line.rfind("Thread model: ", 0) == 0 ||
         line.rfind("InstalledDir: ", 0) == 0 || line == " (in-process)" ||
         line.rfind("Found candidate GCC installation:", 0) == 0 || line.rfind("Selected GCC installation:", 0) == 0 ||
         line.rfind("Candidate multilib:", 0) == 0 || line.rfind("Selected multilib:", 0) == 0 ||
         line.rfind("Found CUDA installation:", 0) == 0;
}

} // namespace

int expandClangJob(const Job &job, std::vector<Args> &commands, std::string &messages) {
  Args argv = job.argv;
  argv.insert(argv.begin() + 1, "-###");
  std::string text;
  const int status = runProcess(MCCSIM_CLANG, argv, &text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(" \"", 0) == 0)
      commands.push_back(unquote(line));
    else if (!isHeader(line))
      messages += line + "\n";
  }
  return status;
}

std::string quotedLine(const Args &argv) {
  std::string line;
  for (const std::string &argument : argv) {
    line += " \"";
    for (const char c : argument) {
      if (c == '"' || c == '\\' || c == '$') // the set clang escapes
        line += '\\';
      line += c;
    }
    line += '"';
  }
  return line + "\n";
}

std::string versionText(const std::string &sdk, bool threadModel) {
  std::string text = std::string(MCCSIM_VERSION_LINE) + "\n" + MCCSIM_CLANG_VERSION_LINE + "\n";
  text += "Target: x86_64-unknown-linux-gnu\n";
  if (threadModel)
    text += "Thread model: posix\n";
  return text + "InstalledDir: " + sdk + "/bin\n";
}

} // namespace mccsim
