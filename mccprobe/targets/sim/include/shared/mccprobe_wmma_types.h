// What the WMMA headers of the stand-ins share: `sim`, `amdgcn` and `cuda` differ in what a fragment of operands is
// and in who computes what. Each includes this and goes on in its own crt/mma.h.
#pragma once

namespace mtmusa {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <typename T, int size> struct __frag_base {
  enum { num_elements = size };
  T x[size];
};

template <typename Use, int m, int n, int k, typename T, typename Layout = void> class fragment;

template <typename Layout> struct __is_col_major;
template <> struct __is_col_major<row_major> { enum { value = 0 }; };
template <> struct __is_col_major<col_major> { enum { value = 1 }; };

}  // namespace wmma
}  // namespace mtmusa

namespace musa { namespace wmma = ::mtmusa::wmma; }
