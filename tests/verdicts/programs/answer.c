/* prints and writes what the macros ANSWER and FILED say: two builds that differ as the test asks for */
#include <stdio.h>
#ifdef HEADER
#include HEADER
#endif
#ifndef ANSWER
#define ANSWER "7"
#endif
#ifndef FILED
#define FILED "8"
#endif
int main(void) {
  FILE *file = fopen("result.txt", "w");
  if (!file) return 2;
  fputs(FILED, file);
  fclose(file);
  puts(ANSWER);
  return 3;
}
