#include <cstdio>

float run_saxpy(int n);

int main() {
  std::printf("%s %.2f\n", TITLE, run_saxpy(16));
  return 0;
}
