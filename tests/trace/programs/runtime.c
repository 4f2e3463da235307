/* A runtime and driver with MUSA's public prototypes that only say what they were given. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct { unsigned x, y, z; } Dim3;

int muModuleLoad(void **module, const char *path) { *module = (void *)path; return *path ? 0 : 301; }
int muModuleLoadData(void **module, const void *image) { *module = (void *)image; return image ? 0 : 1; }
int muModuleLoadFatBinary(void **module, const void *image) { return muModuleLoadData(module, image); }
int muModuleLoadDataEx(void **module, const void *image, unsigned n, void *options, void **values) {
  (void)n, (void)options, (void)values;
  return muModuleLoadData(module, image);
}
int muModuleGetFunction(void **function, void *module, const char *name) {
  *function = (void *)((const char *)module + strlen(name));
  return 0;
}
int muLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
  if (parameters)
    ++*(int *)parameters[0];
  errno = 77;
  return bx > 1024 ? 1 : 0;
}
int muLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void *stream, void **parameters) {
  return muLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, 0);
}
int musaLaunchKernel(const void *function, Dim3 grid, Dim3 block, void **arguments, size_t shared, void *stream) {
  int error = muLaunchKernel((void *)function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
                             stream, arguments, 0);
  return error ? 9 : 0;
}
void **__musaRegisterFatBinary(const void *wrapper) { return (void **)wrapper; }
void __musaRegisterFunction(void **module, const void *stub, char *device, const char *name, int limit, void *a,
                            void *b, void *c, void *d, int *e) {
  (void)module, (void)stub, (void)device, (void)name, (void)limit, (void)a, (void)b, (void)c, (void)d, (void)e;
}
