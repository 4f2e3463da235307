"""UBSan without its runtime: every check calls a function of ours, which writes what was undefined and ends the run.

`-fsanitize=undefined -fsanitize-trap=all` needs nothing of compiler-rt, so a compiler that was installed without it
has this check too. `-ftrap-function` makes each trap a call with the kind of the check.
"""

from __future__ import annotations

from mccprobe.build.store import RunDirectory
from mccprobe.explain.screen.build import Extra

TRAP_FLAGS = ("-fsanitize=undefined", "-fsanitize-trap=all", "-ftrap-function=mccprobe_undefined")
TRAP_OPTIONS = "MCCPROBE_UNDEFINED=exit"  # as a sanitizer's variable: ":log_path=FILE" follows
# clang/lib/CodeGen/CodeGenFunction.h, LIST_SANITIZER_CHECKS, in its order: the argument of the trap function
_KINDS = (
    "signed integer overflow in an addition", "an unreachable place is reached", "control-flow integrity",
    "division by zero or overflow in a division", "wrong dynamic type", "conversion of a floating-point value",
    "call through a pointer to another function type", "implicit conversion", "invalid argument of a builtin",
    "invalid cast", "load of a value that its type does not have", "a function with a result ends without one",
    "signed integer overflow in a multiplication", "signed integer overflow in a negation", "null argument",
    "null result", "null argument", "null result", "array index out of bounds", "pointer arithmetic overflow",
    "shift exponent out of range", "signed integer overflow in a subtraction",
    "null or misaligned pointer, or too small an object", "wrong alignment assumption",
    "variable length array with a bound that is not positive",
)  # fmt: skip
_RUNTIME = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __cplusplus
extern "C" {
#endif
void mccprobe_undefined(unsigned char kind);
static const char *const kinds[] = {%s};
static FILE *report(void) {
  const char *options = getenv("MCCPROBE_UNDEFINED"), *path = options ? strstr(options, "log_path=") : 0;
  char name[4096];
  if (!path || snprintf(name, sizeof name, "%%s.%%d", path + 9, (int)getpid()) >= (int)sizeof name) return 0;
  return fopen(name, "a");
}
__attribute__((constructor)) static void started(void) {
  FILE *out = report();
  if (out) { fputs("started\\n", out); fclose(out); }
}
void mccprobe_undefined(unsigned char kind) {
  FILE *out = report();
  if (out) {
    fprintf(out, "runtime error: %%s\\n", kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "undefined behaviour");
    fclose(out);
  }
  _exit(1);
}
#ifdef __cplusplus
}
#endif
"""


def trap_extra(run: RunDirectory) -> Extra:
    """What a build with it takes."""
    name = "unit/screen-trap.c"
    path = run.root / name
    if not path.is_file():
        run.write_text(name, _RUNTIME % ", ".join(f'"{kind}"' for kind in _KINDS))
    return Extra("UBSan trap", ("-g1", *TRAP_FLAGS), (), (str(path),))
