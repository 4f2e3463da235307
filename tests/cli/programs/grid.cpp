// Loop interchange of clang 14 to 16 where the inner loop reads what the outer one writes
// (the kind of llvm-project issue 54176), through a template in a namespace; scaled by an argument.
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace grid {
constexpr int Rows = 40, Cols = 9;

template <class T>
__attribute__((noinline)) void spread(T (*sum)[Cols], T (*in)[Cols], T (*out)[Cols]) {
  for (int c = 1; c < Cols; c++)
    for (int r = 1; r < Rows; r++) {
      sum[1][c - 1] += in[r][c];
      out[r][c] = sum[1][c];
    }
}
}  // namespace grid

static int sum[grid::Rows][grid::Cols], in[grid::Rows][grid::Cols], out[grid::Rows][grid::Cols];

int main(int argc, char **argv) {
  int scale = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int r = 0; r < grid::Rows; r++)
    for (int c = 0; c < grid::Cols; c++) {
      sum[r][c] = r - c;
      in[r][c] = (r * 3 + c * 7) % 11 * scale;
    }
  grid::spread(sum, in, out);
  std::vector<unsigned> hash(1);
  for (auto &row : out)
    for (int value : row) hash.at(0) = hash.at(0) * 31 + value;
  std::printf("%u\n", hash.at(0));
}
