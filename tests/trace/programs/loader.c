/* Has no runtime of its own: it loads a plugin that brings one. */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
  int (*call)(void) = library ? (int (*)(void))dlsym(library, "launch_here") : 0;
  printf("%d\n", call ? call() : -1);
  return 0;
}
