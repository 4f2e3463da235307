// One kernel for each rule of the laboratory, broken or kept. The program runs the one that is named.
// A line with `@name` is where the finding of that name must stand.
#include <crt/mma.h>
#include <musa_fp16.h>
#include <musa_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace mtmusa::wmma;

__device__ int table[16];
__constant__ int constants[4] = {1, 2, 3, 4};

// ---- races --------------------------------------------------------------------------------------

__global__ void race(int *out) {
  __shared__ int s[256];
  s[threadIdx.x] = threadIdx.x;               // @race.other
  out[threadIdx.x] = s[255 - threadIdx.x];    // @race
}
__global__ void no_race(int *out) {
  __shared__ int s[256];
  for (int i = 0; i < 3; i++) {
    s[threadIdx.x] = threadIdx.x + i;
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
    __syncthreads();
  }
}
__global__ void write_after_read(int *out) {
  __shared__ int s[256];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[255 - threadIdx.x];    // @write_after_read.other
  s[threadIdx.x] = -1;                        // @write_after_read
}
__global__ void two_writers(int *out) {
  __shared__ int s;
  s = threadIdx.x;                            // @two_writers
  __syncthreads();
  out[threadIdx.x] = s;
}
__global__ void same_value(int *out) {
  __shared__ int s;
  s = 7;
  __syncthreads();
  out[threadIdx.x] = s;
}
__global__ void warp_race(int *out) {
  __shared__ int s[128];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x ^ 1];      // @warp_race
}
__global__ void warp_in_order(int *out) {
  __shared__ int s[128];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void neighbour_bytes(int *out) {
  __shared__ char s[256];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void atomics(int *out) {
  __shared__ int s;
  s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  __syncthreads();
  out[threadIdx.x] = s;
}
__global__ void atomic_and_plain(int *out) {
  __shared__ int s;
  s = 0;
  __syncthreads();
  out[threadIdx.x] = s;                       // @atomic_and_plain
  atomicAdd(&s, 1);
}

__global__ void global_race(int *out) {
  out[threadIdx.x] = threadIdx.x + 1;             // @global_race.other
  out[threadIdx.x] += out[255 - threadIdx.x];     // @global_race
}
__global__ void two_blocks(int *out) {
  out[threadIdx.x] = blockIdx.x + 1;              // @two_blocks
}
__global__ void neighbour_block(int *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int before = out[i == 0 ? 0 : i - 1];     // @neighbour_block
  __syncthreads();
  out[i] = before + 1;
}
__global__ void through_global(int *out) {
  out[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const int other = out[255 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = other;
}
__global__ void neighbour_halfs(half *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = __float2half(blockIdx.x); }
__global__ void last_block(int *out, unsigned *done) {  // the last block adds up what each has written
  __shared__ bool last;
  if (threadIdx.x == 0) {
    out[1 + blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0)
    for (unsigned i = 0; i < gridDim.x; i++)
      out[0] += out[1 + i];
}
__global__ void all_blocks_add(int *out) { atomicAdd(out, 1); }

// ---- bounds -------------------------------------------------------------------------------------

__global__ void shared_bounds(int *out, int shift) {
  __shared__ int s[128];
  s[threadIdx.x + shift] = threadIdx.x;       // @shared_bounds
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_bounds(int *out) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = threadIdx.x;         // @dynamic_bounds
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x];
}
__global__ void global_bounds(int *out) {
  out[threadIdx.x] = out[threadIdx.x + 200];  // @global_bounds
}
__global__ void before_global(int *out) {
  out[threadIdx.x] += *(out - 1 - threadIdx.x / 255);  // @before_global
}
__global__ void table_bounds(int *out) {
  out[threadIdx.x] = table[threadIdx.x];      // @table_bounds
}
__global__ void host_pointer(int *out, int *wrong) {
  out[threadIdx.x] = *wrong;                  // @host_pointer
}
__global__ void freed(int *wrong) {
  wrong[threadIdx.x] = 1;                     // @freed
}
__global__ void misaligned(int *out) {
  float4 *wide = (float4 *)(out + 1);
  wide[threadIdx.x] = make_float4(1, 2, 3, 4);  // @misaligned
}
struct Large { int values[32]; };
__global__ void own_memory(int *out, Large by_value, int shift) {
  int local[32];
  static const int literal[4] = {5, 6, 7, 8};
  for (int i = 0; i < 32; i++)
    local[(i + shift) % 32] = by_value.values[i] + constants[i % 4] + literal[(i + shift) % 4] + table[i % 16];
  out[threadIdx.x] = local[threadIdx.x % 32];
}
__global__ void wmma_bounds(float *out, const half *in) {
  __shared__ float tile[256];
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, in, 16);
  load_matrix_sync(b, in + 16, 16);           // @wmma_bounds
  mma_sync(c, a, b, c);
  store_matrix_sync(tile, c, 16, mem_col_major);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

// ---- barriers and collectives -------------------------------------------------------------------

__global__ void divergent_barrier(int *out) {
  if (threadIdx.x < 128) {
    out[threadIdx.x] = 1;
    __syncthreads();                          // @divergent_barrier
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
  }
}
__global__ void unrolled_barrier(int *out) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    out[threadIdx.x] = i;
    __syncthreads();
  }
}
__global__ void early_exit(int *out) {
  if (threadIdx.x >= 200)
    return;
  __syncthreads();                            // @early_exit
  out[threadIdx.x] = 1;
}
__global__ void deadlock(int *out) {
  if (threadIdx.x % 2)
    __syncwarp();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void divergent_operation(float *out, const half *in) {
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  if (threadIdx.x < 64)
    load_matrix_sync(a, in, 16);
  else
    load_matrix_sync(b, in, 16);
  load_matrix_sync(a, in, 16);
  load_matrix_sync(b, in, 16);
  mma_sync(c, a, b, c);
  store_matrix_sync(out, c, 16, mem_col_major);
}

// ---- WMMA ---------------------------------------------------------------------------------------

__global__ void unloaded(float *out, const half *in) {
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, in, 16);
  mma_sync(c, a, b, c);                       // @unloaded
  store_matrix_sync(out, c, 16, mem_col_major);
}
template <bool divergent, bool synchronised> __device__ __forceinline__ void multiply(float *out, const half *in) {
  __shared__ float tile[4 * 256];
  const int part = divergent ? threadIdx.x / 32 : 0;
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, in + part * 256, 16);   // @divergent_operand
  load_matrix_sync(b, in, 16);
  mma_sync(c, a, b, c);
  store_matrix_sync(tile, c, 16, mem_col_major);
  if (synchronised)
    __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x];       // @unsynchronised_tile
}
__global__ void divergent_operand(float *out, const half *in) { multiply<true, true>(out, in); }
__global__ void uniform_operand(float *out, const half *in) { multiply<false, true>(out, in); }
__global__ void unsynchronised_tile(float *out, const half *in) { multiply<false, false>(out, in); }

__global__ void stale(float *out, const half *in) {
  fragment<matrix_a, 16, 16, 16, half, col_major> a, other;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, in, 16);
  for (int i = 0; i < 32; i++)
    load_matrix_sync(other, in, 16);
  load_matrix_sync(b, in, 16);
  mma_sync(c, a, b, c);                       // @stale
  mma_sync(c, other, b, c);
  store_matrix_sync(out, c, 16, mem_col_major);
}

// ---- banks --------------------------------------------------------------------------------------

template <int stride> __global__ void banks(int *out) {
  __shared__ int s[32 * 33 + 1];
  for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x)
    s[i] = i;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x * stride];  // @banks
}
__global__ void wide_banks(int *out) {
  __shared__ float4 s[32];
  s[threadIdx.x] = ((float4 *)out)[threadIdx.x];  // @wide_banks
  __syncthreads();
  out[threadIdx.x] = (int)s[31 - threadIdx.x].x;
}
__global__ void built_wide(int *out) {
  __shared__ float4 s[32];
  s[threadIdx.x] = make_float4(out[0], out[1], out[2], out[3]);  // @built_wide
  __syncthreads();
  out[threadIdx.x] = (int)s[31 - threadIdx.x].y;
}
template <int ld> __global__ void wmma_banks(float *out) {
  __shared__ half s[16 * 48];
  for (int i = threadIdx.x; i < 16 * 48; i += blockDim.x)
    s[i] = __float2half(1.0f);
  __syncthreads();
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<matrix_b, 16, 16, 16, half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  load_matrix_sync(a, s, ld);                 // @wmma_banks
  load_matrix_sync(b, s, 24);
  mma_sync(c, a, b, c);
  store_matrix_sync(out, c, 16, mem_col_major);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  int *out, host = 3;
  float *real;
  half *in;
  musaMalloc(&out, 256 * sizeof(int));
  musaMemset(out, 0, 256 * sizeof(int));
  unsigned *done;
  musaMalloc(&done, sizeof *done);
  musaMemset(done, 0, sizeof *done);
  int *gone;
  musaMalloc(&gone, 256 * sizeof(int));
  musaFree(gone);
  musaMalloc(&real, 1024 * sizeof(float));
  musaMalloc(&in, 16 * 16 * 4 * sizeof(half));
  musaMemset(in, 0, 16 * 16 * 4 * sizeof(half));
  half *small;
  musaMalloc(&small, 16 * 16 * sizeof(half));
  musaMemset(small, 0, 16 * 16 * sizeof(half));
  bool known = false;
#define RUN_BLOCKS(kernel, blocks, threads, shared, ...) \
  if (strcmp(name, #kernel) == 0) {                      \
    known = true;                                        \
    kernel<<<blocks, threads, shared>>>(__VA_ARGS__);    \
  }
#define RUN(kernel, threads, shared, ...) RUN_BLOCKS(kernel, 1, threads, shared, __VA_ARGS__)
  RUN(race, 256, 0, out) RUN(no_race, 256, 0, out) RUN(write_after_read, 256, 0, out) RUN(two_writers, 256, 0, out)
  RUN(same_value, 256, 0, out) RUN(warp_race, 128, 0, out) RUN(warp_in_order, 128, 0, out)
  RUN(neighbour_bytes, 256, 0, out) RUN(atomics, 256, 0, out) RUN(atomic_and_plain, 256, 0, out)
  RUN(global_race, 256, 0, out) RUN_BLOCKS(two_blocks, 2, 128, 0, out) RUN_BLOCKS(neighbour_block, 2, 128, 0, out)
  RUN(through_global, 256, 0, out) RUN_BLOCKS(neighbour_halfs, 5, 33, 0, in) RUN_BLOCKS(last_block, 8, 128, 0, out, done)
  RUN_BLOCKS(all_blocks_add, 4, 128, 0, out) RUN(freed, 32, 0, gone) RUN(misaligned, 32, 0, out)
  RUN(shared_bounds, 128, 0, out, 5) RUN(dynamic_bounds, 128, 100 * sizeof(int), out)
  RUN(global_bounds, 100, 0, out) RUN(before_global, 256, 0, out) RUN(table_bounds, 20, 0, out)
  RUN(host_pointer, 1, 0, out, &host) RUN(own_memory, 64, 0, out, Large{}, argc)
  RUN(wmma_bounds, 32, 0, real, small)
  RUN(divergent_barrier, 256, 0, out) RUN(unrolled_barrier, 256, 0, out) RUN(early_exit, 256, 0, out)
  RUN(deadlock, 128, 0, out) RUN(divergent_operation, 128, 0, real, in)
  RUN(divergent_operand, 128, 0, real, in) RUN(uniform_operand, 128, 0, real, in)
  RUN(unsynchronised_tile, 128, 0, real, in) RUN(unloaded, 128, 0, real, in) RUN(stale, 128, 0, real, in)
  RUN(banks<0>, 32, 0, out) RUN(banks<1>, 32, 0, out) RUN(banks<2>, 32, 0, out) RUN(banks<16>, 32, 0, out)
  RUN(banks<17>, 32, 0, out) RUN(banks<32>, 32, 0, out) RUN(banks<33>, 32, 0, out) RUN(wide_banks, 32, 0, out) RUN(built_wide, 32, 0, out)
  RUN(wmma_banks<16>, 32, 0, real) RUN(wmma_banks<24>, 32, 0, real) RUN(wmma_banks<32>, 32, 0, real)
  if (strcmp(name, "too_much") == 0) {
    known = true;
    dynamic_bounds<<<1, 128, 80000>>>(out);
  }
  return known ? 0 : 2;
}
