/* The best flags for it are known from trying all: -fvectorize with -mavx2, which is worth nothing alone.
   -ffast-math makes it wrong: it promises that there is no NaN, and there is one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N 4096
static int a[N], b[N];

__attribute__((noinline)) static int sum(void) {
    int total = 0;
    for (int i = 0; i < N; i++)
        total += a[i] * b[i];
    return total;
}

__attribute__((noinline)) static int is_number(double x) { return !isnan(x); }

int main(int argc, char **argv) {
    for (int i = 0; i < N; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    int total = 0;
    for (int r = 0; r < 40; r++)
        total += sum();
    double x = 0.0 / (argc - 1);
    printf("%d %d\n", total, is_number(x));
    return 0;
}
