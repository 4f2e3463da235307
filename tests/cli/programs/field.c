/* The faulty half of a program of two files; the same kind of fault as in grid.cpp. */
#include "field.h"

void settle(int (*level)[WIDE], int (*flow)[WIDE], int (*seen)[WIDE]) {
  for (int x = 1; x < WIDE; x++)
    for (int y = 1; y < HIGH; y++) {
      level[1][x - 1] += flow[y][x];
      seen[y][x] = level[1][x];
    }
}
