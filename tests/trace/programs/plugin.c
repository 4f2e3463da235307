/* A library that brings its runtime with it, as a Python extension does. */
#include <stddef.h>
typedef struct { unsigned x, y, z; } Dim3;
int musaLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
static void nameless(void) {}
int launch_here(void) {
  int calls = 0;
  void *arguments[] = {&calls};
  musaLaunchKernel((void *)nameless, (Dim3){9, 1, 1}, (Dim3){64, 1, 1}, arguments, 0, 0);
  int result = musaLaunchKernel((void *)launch_here, (Dim3){7, 1, 1}, (Dim3){64, 1, 1}, arguments, 0, 0);
  return 10 * result + calls;
}
