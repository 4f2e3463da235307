#include "trap.h"

#include "lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

namespace mccsim {

void trap(const char *kind, const char *format, ...) {
  fflush(stdout);
  fprintf(stderr, "mccprobe-sim: TRAP %s: ", kind);
  va_list arguments;
  va_start(arguments, format);
  char text[4096];
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s\n", text);
  if (lab::on) {
    lab::trapped(kind, text);
    lab::write_report();
  }
  fflush(nullptr);
  // Not exit(): the trap may come from a fiber's stack, in the middle of a kernel.
  _exit(kExitCannotTell);
}

void say(const char *format, ...) {
  fputs("mccprobe-sim: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

}  // namespace mccsim
