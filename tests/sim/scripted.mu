// Each thread does what a table says, step by step, so that threads come to WMMA operations and barriers in any order.
// Table: one byte a thread and step. 0: nothing; 1 to 4: load tile 1 to 4; 5: the same tile from another line of the
// source; 6: __syncthreads; 7: __syncwarp; 8: store; 9: end; 10: write to shared memory; 11: read from it.
#include <crt/mma.h>
#include <musa_fp16.h>
#include <musa_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

using namespace mtmusa::wmma;

__device__ __forceinline__ float first_of(const fragment<matrix_a, 16, 16, 16, half, col_major> &f) {
  return f.tile->value[threadIdx.x % 256];
}

__global__ void scripted(const unsigned char *table, int steps, const half *tiles, float *sums, float *stored) {
  __shared__ float kept[1024];
  __shared__ float out[1024];
  fragment<matrix_a, 16, 16, 16, half, col_major> a;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, (float)threadIdx.x);
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = 0;
  float sum = 0;
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    const int what = table[thread * steps + step];
    switch (what) {
    case 1: case 2: case 3: case 4:
      load_matrix_sync(a, tiles + 256 * (what - 1), 16);
      sum += first_of(a) * (step + 1);
      break;
    case 5:
      load_matrix_sync(a, tiles, 16);
      sum += first_of(a) * (step + 2);
      break;
    case 6:
      __syncthreads();
      break;
    case 7:
      __syncwarp();
      break;
    case 8:
      store_matrix_sync(out, c, 16, mem_col_major);
      break;
    case 9:
      sums[thread] = sum;
      return;
    case 10:
      kept[threadIdx.x] = sum + step;
      break;
    case 11:
      sum += kept[(threadIdx.x * 7 + 1) % blockDim.x];
      break;
    }
  }
  sums[thread] = sum;
  stored[thread] = threadIdx.x < 256 ? out[threadIdx.x] : 0;
}

// scripted THREADS STEPS: the table comes on standard input, one line of hexadecimal digits a thread.
int main(int argc, char **argv) {
  const int threads = atoi(argv[1]), steps = atoi(argv[2]);
  std::vector<unsigned char> table(threads * steps);
  for (unsigned char &one : table) {
    int digit = getchar();
    while (digit == '\n')
      digit = getchar();
    one = digit <= '9' ? digit - '0' : digit - 'a' + 10;
  }
  std::vector<half> tiles(1024);
  for (int i = 0; i < 1024; i++)
    tiles[i] = __float2half((float)(i % 61) + i / 256);
  unsigned char *device_table;
  half *device_tiles;
  float *sums, *stored;
  musaMalloc((void **)&device_table, table.size());
  musaMalloc((void **)&device_tiles, tiles.size() * sizeof(half));
  musaMalloc((void **)&sums, threads * sizeof(float));
  musaMalloc((void **)&stored, threads * sizeof(float));
  musaMemcpy(device_table, table.data(), table.size(), musaMemcpyHostToDevice);
  musaMemcpy(device_tiles, tiles.data(), tiles.size() * sizeof(half), musaMemcpyHostToDevice);
  musaMemset(sums, 0, threads * sizeof(float));
  musaMemset(stored, 0, threads * sizeof(float));
  scripted<<<1, threads>>>(device_table, steps, device_tiles, sums, stored);
  std::vector<float> result(threads);
  for (const float *from : {sums, stored}) {
    musaMemcpy(result.data(), from, threads * sizeof(float), musaMemcpyDeviceToHost);
    for (float one : result)
      printf("%a\n", one);
  }
  return 0;
}
