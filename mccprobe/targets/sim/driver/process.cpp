// Children, temporary files and signals.
#include "driver.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mccsim {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t pendingSignal = 0;
volatile sig_atomic_t currentChild = 0;
std::vector<std::string> temporaryFiles;

/// Ends the child only; the main flow then wakes up, removes the files and ends by the same signal.
void onSignal(int number) {
  pendingSignal = number;
  if (currentChild > 0)
    kill(static_cast<pid_t>(currentChild), SIGTERM);
}

void endIfSignalled() {
  if (!pendingSignal)
    return;
  const int number = pendingSignal;
  removeTemporaryFiles();
  signal(number, SIG_DFL);
  raise(number);
}

sigset_t handledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kSignals)
    sigaddset(&set, number);
  return set;
}

std::string readAll(int file) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t count = read(file, buffer, sizeof buffer);
    if (count > 0)
      text.append(buffer, static_cast<std::size_t>(count));
    else if (count == 0 || errno != EINTR || pendingSignal)
      return text;
  }
}

} // namespace

void installSignalHandlers() {
  for (int number : kSignals) {
    struct sigaction old;
    if (sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
      continue; // nohup: keep ignoring
    struct sigaction action {};
    action.sa_handler = onSignal; // no SA_RESTART: waitpid must return
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
  std::atexit(removeTemporaryFiles);
}

std::string temporaryFile(const std::string &stem, const std::string &suffix) {
  const char *directory = std::getenv("TMPDIR");
  std::string path = directory && *directory ? directory : "/tmp";
  path += "/" + stem + "-XXXXXX" + suffix;
  std::vector<char> name(path.begin(), path.end());
  name.push_back('\0');
  const sigset_t handled = handledSignals();
  sigset_t old;
  sigprocmask(SIG_BLOCK, &handled, &old); // no moment in which the file exists but is not listed
  const int file = mkstemps(name.data(), static_cast<int>(suffix.size()));
  if (file >= 0) {
    close(file);
    temporaryFiles.emplace_back(name.data());
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &old, nullptr);
  if (file < 0)
    throw UsageError{"unable to make temporary file: " + path + ": " + std::strerror(error)};
  return name.data();
}

void removeTemporaryFiles() {
  for (const std::string &path : temporaryFiles)
    unlink(path.c_str());
  temporaryFiles.clear();
}

int runProcess(const std::string &program, const Args &argv, std::string *capturedStderr) {
  std::vector<char *> pointers;
  for (const std::string &argument : argv)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);

  int pipeEnds[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (capturedStderr) {
    if (pipe2(pipeEnds, O_CLOEXEC) != 0)
      throw UsageError{std::string("pipe: ") + std::strerror(errno)};
    posix_spawn_file_actions_adddup2(&actions, pipeEnds[1], 2);
  }
  const sigset_t handled = handledSignals();
  sigset_t old;
  sigprocmask(SIG_BLOCK, &handled, &old);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &old);

  pid_t child = 0;
  const int error = pendingSignal ? EINTR
                                  : posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(),
                                                environ);
  currentChild = error == 0 ? child : 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  sigprocmask(SIG_SETMASK, &old, nullptr);
  if (error != 0) {
    endIfSignalled();
    if (capturedStderr) {
      close(pipeEnds[0]);
      close(pipeEnds[1]);
    }
    throw UsageError{"unable to execute command: " + program + ": " + std::strerror(error)};
  }
  if (capturedStderr) {
    close(pipeEnds[1]);
    *capturedStderr = readAll(pipeEnds[0]);
    close(pipeEnds[0]);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue; // the handler has passed the signal on; the child is about to end
  currentChild = 0;
  endIfSignalled();
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace mccsim
