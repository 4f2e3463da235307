/* writes an int as a float: no sanitizer of these compilers sees it */
#include <stdio.h>

__attribute__((noinline)) int both(int *whole, float *real) {
  *whole = 1;
  *real = 2.0f;
  return *whole;
}

int main(void) {
  int x;
  printf("%d\n", both(&x, (float *)&x));
  return 0;
}
