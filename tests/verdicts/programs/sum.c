/* -ffast-math lets the compiler reassociate, which changes the result */
#include <stdio.h>

int main(int argc, char **argv) {
  (void)argv;
  double a = 1e16 * argc, b = -1e16 * argc;
  volatile double one = argc;
  printf("%g\n", (a + one) + b);
  return 0;
}
