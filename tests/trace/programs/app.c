/* Programs that launch, one for each word on the command line. Each prints what it saw of the calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { unsigned x, y, z; } Dim3;
int muModuleLoad(void **, const char *);
int muModuleLoadData(void **, const void *);
int muModuleLoadFatBinary(void **, const void *);
int muModuleLoadDataEx(void **, const void *, unsigned, void *, void **);
int muModuleGetFunction(void **, void *, const char *);
typedef unsigned U;
int muLaunchKernel(void *, U, U, U, U, U, U, U, void *, void **, void **);
int muLaunchCooperativeKernel(void *, U, U, U, U, U, U, U, void *, void **);
int musaLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
void __musaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);

enum { THREADS = 8, EACH = 200 };
void stub(void) {}
static int calls;

static int launch(unsigned block) {
  void *arguments[] = {&calls};
  return musaLaunchKernel((void *)stub, (Dim3){3, 2, 1}, (Dim3){block, 1, 1}, arguments, 64, (void *)0x20);
}

static void *many(void *unused) {
  int mine = 0;
  void *arguments[] = {&mine};
  for (int i = 0; i < EACH; i++)
    musaLaunchKernel((void *)stub, (Dim3){1, 1, 1}, (Dim3){32, 1, 1}, arguments, 0, 0);
  return unused;
}

static void threads(pthread_t *all) {
  for (int i = 0; i < THREADS; i++)
    pthread_create(&all[i], 0, many, 0);
}
static void join(pthread_t *all) {
  for (int i = 0; i < THREADS; i++)
    pthread_join(all[i], 0);
}

/* The file's bytes at the end of a mapping, with no page behind it. */
static void *at_the_edge(const char *path, size_t *size) {
  int file = open(path, O_RDONLY);
  *size = (size_t)lseek(file, 0, SEEK_END);
  size_t pages = (*size + 4095) / 4096 * 4096;
  char *memory = mmap(0, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(memory + pages, 4096);
  char *start = memory + pages - *size;
  if (pread(file, start, *size, 0) < 0)
    exit(3);
  close(file);
  return start;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  void *module, *function;
  pthread_t all[THREADS];
  __musaRegisterFunction(0, (void *)stub, 0, "_Z4gemmIL\"\xc3\xa4\\", 0, 0, 0, 0, 0, 0);
  if (!strcmp(mode, "launch")) {
    errno = 5;
    int taken = launch(256);
    printf("%d errno %d, %d, calls %d\n", taken, errno, launch(2048), calls);
    fprintf(stderr, "to stderr\n");
    char line[64] = "";
    if (fgets(line, sizeof line, stdin))
      printf("read %s", line);
    return 42;
  }
  if (!strcmp(mode, "images")) { /* FILE...: from memory that ends with the file */
    for (int i = 2; i < argc; i++) {
      size_t size;
      void *image = at_the_edge(argv[i], &size);
      printf("%d", i % 3 == 0   ? muModuleLoadData(&module, image)
                   : i % 3 == 1 ? muModuleLoadDataEx(&module, image, 0, 0, 0)
                                : muModuleLoadFatBinary(&module, image));
    }
    printf(" %d %d\n", muModuleLoadData(&module, 0), muModuleLoad(&module, "/no/such \"module\".mubin"));
    muModuleLoadData(&module, "no image at all, just a text");
    muModuleGetFunction(&function, module, "by_name");
    muLaunchKernel(function, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0);
    muLaunchCooperativeKernel(function, 8, 1, 1, 4096, 1, 1, 0, 0, 0);
    return 0;
  }
  if (!strcmp(mode, "threads")) {
    threads(all);
    join(all);
    return 0;
  }
  if (!strcmp(mode, "fork")) { /* forks while other threads launch */
    threads(all);
    for (int i = 0; i < 4; i++)
      if (fork() == 0) {
        for (int j = 0; j < 50; j++)
          launch(32);
        _exit(0);
      }
    join(all);
    while (wait(0) > 0) {
    }
    return 0;
  }
  if (!strcmp(mode, "away")) { /* nothing that it changes may cost a line, and descriptors stay what they are */
    launch(1);
    clearenv();
    if (chdir("/") != 0)
      return 3;
    for (int i = 3; i < 256; i++)
      close(i);
    launch(2);
    printf("next descriptor %d\n", open("/dev/null", O_RDONLY));
    launch(3);
    return 0;
  }
  if (!strcmp(mode, "late")) { /* DONE GO: its child waits for GO after the program has ended, then makes DONE */
    if (fork() == 0) {
      while (access(argv[3], F_OK) != 0)
        usleep(1000);
      launch(42);
      close(open(argv[2], O_WRONLY | O_CREAT, 0666));
      _exit(0);
    }
    launch(1);
    return 0;
  }
  if (!strcmp(mode, "signal"))
    raise(SIGKILL);
  return 0;
}
