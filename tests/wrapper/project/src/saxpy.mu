#include <musa_runtime.h>

__global__ void saxpy(int n, float a, const float *x, float *y) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    sum = sum * 0.5f + x[i];
    y[i] = a * x[i] + y[i] + sum;
  }
}

float run_saxpy(int n) {
  float *x, *y, result = 0.0f;
  if (musaMalloc((void **)&x, n * sizeof(float)) != musaSuccess) return -1.0f;
  if (musaMalloc((void **)&y, n * sizeof(float)) != musaSuccess) return -1.0f;
  for (int i = 0; i < n; ++i) {
    const float one = 1.0f;
    musaMemcpy(x + i, &one, sizeof one, musaMemcpyHostToDevice);
    musaMemcpy(y + i, &one, sizeof one, musaMemcpyHostToDevice);
  }
  saxpy<<<1, 1>>>(n, 2.0f, x, y);
  musaMemcpy(&result, y + n - 1, sizeof result, musaMemcpyDeviceToHost);
  return result;
}
