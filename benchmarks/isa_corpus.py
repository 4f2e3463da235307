"""Small kernels, one object each: what `isa learn` is measured on.

Written here from recipes, compiled with clang's cc1 (no ROCm, no CUDA, no bundler) for gfx908; those
without AMD's builtins for NVIDIA's sm_80 (through PTX and ptxas) and for Hexagon as well. `gemm` kernels
are kept apart: they are the far test (spills, packed half, matrix instructions).
"""
# ruff: noqa: E501 (kernel sources, one a line)

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PREFIX = """
#define K extern "C" __attribute__((global)) void
#define D static __attribute__((device)) inline __attribute__((always_inline))
#define SH static __attribute__((shared))
typedef unsigned u32; typedef unsigned long long u64; typedef long long s64;
typedef unsigned char u8; typedef unsigned short u16; typedef signed char s8; typedef _Float16 f16;
typedef float f2 __attribute__((ext_vector_type(2))); typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16))); typedef float f32v __attribute__((ext_vector_type(32)));
typedef f16 h2 __attribute__((ext_vector_type(2))); typedef f16 h4 __attribute__((ext_vector_type(4)));
typedef int i4 __attribute__((ext_vector_type(4))); typedef short s2 __attribute__((ext_vector_type(2)));
#define T ((int)__builtin_amdgcn_workitem_id_x())
#define TY ((int)__builtin_amdgcn_workitem_id_y())
#define B ((int)__builtin_amdgcn_workgroup_id_x())
#define BY ((int)__builtin_amdgcn_workgroup_id_y())
#define G (B * 256 + T)
#define SYNC (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \\
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
"""
# what stands for the AMD builtins of PREFIX elsewhere
NVIDIA = {"workitem_id_x": "tid_x", "workitem_id_y": "tid_y", "workgroup_id_x": "ctaid_x", "workgroup_id_y": "ctaid_y"}
HEXAGON_PREFIX = """
#define K extern "C" void
#define D static inline __attribute__((always_inline))
#define SH static
extern "C" { extern volatile int tid, tidy, bid, bidy; void sync_all(void); }
#define T tid
#define TY tidy
#define B bid
#define BY bidy
#define G (B * 256 + T)
#define SYNC sync_all()
"""
TYPES = {"f32": "float", "f64": "double", "i32": "int", "u32": "u32", "s64": "s64", "u64": "u64", "i16": "short",
         "u8": "u8", "f16": "f16"}  # fmt: skip


def _typed() -> dict[str, str]:
    """The same few shapes for several types."""
    kernels = {}
    for name, ctype in TYPES.items():
        real = name.startswith("f")
        kernels[f"axpy_{name}"] = (
            f"K k({ctype}* x, {ctype}* y, {ctype} a, int n) {{ if (G < n) y[G] = a * x[G] + y[G]; }}"
        )
        kernels[f"minmax_{name}"] = (
            f"K k({ctype}* x, {ctype}* y, int n) {{ {ctype} lo = x[T], hi = lo, s = 0; for (int i = T; i < n; i += 64) "
            "{ auto v = x[i]; lo = v < lo ? v : lo; hi = v > hi ? v : hi; s += v; } "
            "y[3*G] = lo; y[3*G+1] = hi; y[3*G+2] = s; }"
        )
        kernels[f"reduce_{name}"] = (
            f"SH {ctype} b[256]; K k({ctype}* x, {ctype}* y) {{ b[T] = x[G] + x[G + 4096]; SYNC; "
            "for (int s = 128; s; s >>= 1) { if (T < s) b[T] += b[T + s]; SYNC; } if (!T) y[B] = b[0]; }"
        )
        kernels[f"poly_{name}"] = (
            f"K k({ctype}* x, {ctype}* y, {ctype} a, {ctype} c) {{ {ctype} v = x[G]; "
            + "".join(f"v = v * x[G + {i}] {'-+'[i % 2]} ({ctype}){i + 1} * a;" for i in range(6))
            + ("if (v != c) v = -v / (c - a);" if real and name != "f16" else "v = v - c;")
            + " y[G] = v; }"
        )
        if not real:
            kernels[f"bits_{name}"] = (
                f"K k({ctype}* x, {ctype}* y, int s) {{ {ctype} v = x[G]; v ^= v << 3; v |= v >> (s & 7); "
                "v &= ~x[G + 7]; v = (v << (s & 3)) ^ (v >> 5); y[G] = v; y[G + 1024] = v % 7; }"
            )
            kernels[f"cond_{name}"] = (
                f"K k({ctype}* x, {ctype}* y, {ctype} a, int n) {{ for (int i = T; i < n; i++) {{ {ctype} v = x[i]; "
                "if (v > a) y[i] = v - a; else if (v == a) y[i] = 1; else if (i & 4) y[i] += 3; } }"
            )
    return kernels


PLAIN = {
    "cvt": "K k(float* f, int* i, double* d, f16* h, u8* b) { int g = G; i[g] = (int)f[g]; d[g] = f[g]; h[g] = (f16)f[g]; "
    "b[g] = (u8)f[g + 1]; f[g + 2] = (float)d[g + 3]; f[g + 4] = (float)b[g + 5]; d[g + 6] = i[g + 7]; "
    "f[g + 8] = (float)(u32)i[g + 8]; i[g + 9] = (u32)d[g + 9]; f[g + 10] = (float)h[g + 10]; }",
    "atomics": "K k(int* p, u32* u, float* f, u64* q) { __hip_atomic_fetch_add(p, T, 0, 4); "
    "__atomic_fetch_add(p + 1, 3, 0); __atomic_fetch_xor(u, T, 0); __atomic_fetch_max(p + 2, T, 0); "
    "__atomic_fetch_min(u + 3, (u32)T, 0); __atomic_fetch_or(u + 4, 1u << (T & 31), 5); __atomic_fetch_and(u + 5, ~1u, 0);"
    " q[G] = __atomic_fetch_add(q + 9, 5ull, 0); u[6] = __atomic_exchange_n(u + 7, T, 0); int e = 1; "
    "__atomic_compare_exchange_n(p + 8, &e, T, false, 5, 5); p[9] = e; }",
    "lds_atomics": "SH int h[256]; K k(int* x, int* y) { h[T] = 0; SYNC; __atomic_fetch_add(&h[x[G] & 255], 1, 0); "
    "__atomic_fetch_max(&h[x[G] & 15], T, 0); __atomic_fetch_or(&h[x[G + 3] & 31], 8, 0); SYNC; y[G] = h[T]; }",
    "shuffle": "K k(int* x, int* y) { int v = x[G]; v += __builtin_amdgcn_ds_bpermute(((T + 1) & 63) << 2, v); "
    "v ^= __builtin_amdgcn_ds_swizzle(v, 0x101f); v += __builtin_amdgcn_mov_dpp(v, 0x111, 15, 15, true); "
    "v += __builtin_amdgcn_update_dpp(0, v, 0x142, 10, 15, false); v += __builtin_amdgcn_readfirstlane(v); "
    "v -= __builtin_amdgcn_readlane(v, 13); y[G] = v; }",
    "dpp": "K k(float* x, float* y) { float v = x[G]; for (int i = 0; i < 2; i++) { "
    + "".join(
        f"v += __builtin_bit_cast(float, __builtin_amdgcn_mov_dpp(__builtin_bit_cast(int, v), {c}, 15, 15, true));"
        for c in (0x111, 0x112, 0x114, 0x118, 0x121, 0x140, 0x141)
    )
    + " } y[G] = v; }",
    "trans": "K k(float* x, float* y) { float v = x[G]; y[G] = __builtin_amdgcn_rcpf(v) + __builtin_amdgcn_rsqf(v) + "
    "__builtin_amdgcn_sinf(v) * __builtin_amdgcn_cosf(v) + __builtin_amdgcn_fractf(v) + __builtin_floorf(v) + "
    "__builtin_sqrtf(v) + __builtin_ceilf(v) + __builtin_truncf(v) + __builtin_rintf(v) + __builtin_fabsf(x[G + 1]); }",
    "fma": "K k(float* x, float* y, float a) { float v = x[G]; y[G] = __builtin_fmaf(v, a, -x[G + 1]) * "
    "__builtin_fmaf(-v, __builtin_fabsf(a), 2.0f) + __builtin_amdgcn_fmed3f(v, a, 0.5f) + __builtin_fminf(v, 1.0f) "
    "- __builtin_fmaxf(v, -4.0f) + __builtin_amdgcn_ldexpf(v, 3) + 0.15915494f * v; }",
    "vec4": "K k(f4* x, f4* y, f4 a) { y[G] = x[G] * a + x[G + 64]; }",
    "vec2": "K k(f2* x, f2* y, f2 a) { f2 v = x[G]; y[G] = v.yx * a - v; }",
    "half2": "K k(h2* x, h2* y, h2 a) { h2 v = x[G]; v = v * a + x[G + 1]; v = v - x[G + 2] * a; y[G] = v.yx + v; }",
    "half4": "K k(h4* x, h4* y, h4 a) { h4 v = x[G]; y[G] = v * a + v.wzyx; }",
    "short2": "K k(s2* x, s2* y, s2 a) { s2 v = x[G]; y[G] = (v + a) * x[G + 1] - (v << (s2)(3)); }",
    "mixfma": "K k(f16* x, float* y, float a) { float s = 0; for (int i = 0; i < 8; i++) "
    "s += (float)x[G * 8 + i] * a; y[G] = s; }",
    "bitcount": "K k(u32* x, u64* y) { u32 v = x[G]; y[G] = __builtin_popcount(v) + __builtin_clz(v | 1) + "
    "__builtin_ctz(v | 256) + __builtin_bitreverse32(v) + __builtin_bswap32(v) + __builtin_popcountll(y[G + 1]); }",
    "alignbit": "K k(u32* x, u32* y, u32 s) { u32 v = x[G]; y[G] = __builtin_amdgcn_alignbit(v, x[G + 1], 7) + "
    "__builtin_amdgcn_alignbyte(v, s, 1) + __builtin_amdgcn_ubfe(v, 5, 9) + (u32)__builtin_amdgcn_sbfe(v, s & 7, 6) + "
    "__builtin_amdgcn_perm(v, s, 0x05010400) + ((v & s) | (~v & 0x1234)) + ((v << 8) | s) + ((v + s) << 2) + (v ^ s ^ y[G]); }",
    "sad": "K k(u32* x, u32* y, u32 s) { y[G] = __builtin_amdgcn_sad_u8(x[G], s, y[G]) + "
    "__builtin_amdgcn_lerp(x[G + 1], s, 3u) + __builtin_amdgcn_msad_u8(x[G + 2], s, 9u); }",
    "dot": "K k(int* x, int* y, h2* p, float* f) { y[G] = __builtin_amdgcn_sdot4(x[G], x[G + 1], y[G], false) + "
    "__builtin_amdgcn_udot4(x[G + 2], x[G + 3], 5u, true) + __builtin_amdgcn_sdot8(x[G + 4], x[G + 5], 7, false); "
    "f[G] = __builtin_amdgcn_fdot2(p[G], p[G + 1], f[G], false); }",
    "mul24": "K k(int* x, int* y) { int a = x[G] & 0xffffff, b = x[G + 1] & 0xffff; y[G] = a * b + (x[G + 2] & 0xffff); }",
    "mulhi": "K k(u32* x, u32* y, s64* z, int* w) { y[G] = (u64)x[G] * x[G + 1] >> 32; z[G] = (s64)w[G] * w[G + 1] + z[G + 1]; "
    "y[G + 1] = x[G + 2] / 10u; w[G + 3] = w[G + 4] / 7; }",
    "hash": "K k(u32* x, u32* y) { u32 h = x[G]; for (int i = 0; i < 5; i++) { h ^= h >> 16; h *= 0x85ebca6b; h ^= h >> 13; "
    "h *= 0xc2b2ae35; h = (h << 15) | (h >> 17); h += 0xe6546b64 + i; } y[G] = h; }",
    "sha": "K k(u32* x, u32* y) { u32 a = x[G], e = x[G + 1], w = x[G + 2]; for (int i = 0; i < 16; i++) { "
    "u32 s = ((e >> 6) | (e << 26)) ^ ((e >> 11) | (e << 21)); u32 c = (e & a) ^ (~e & w); u32 t = s + c + x[i] + 0x428a2f98; "
    "u32 m = (a & e) | (a & w) | (e & w); w = e; e = a + t; a = t + m; } y[G] = a ^ e ^ w; }",
    "rng": "K k(u64* s, float* o, int n) { u64 z = s[G]; for (int i = 0; i < n; i++) { z ^= z << 13; z ^= z >> 7; z ^= z << 17; "
    "o[i * 256 + G] = (float)(u32)(z >> 40) * 5.9604645e-8f; } s[G] = z; }",
    "sort": "SH u32 b[512]; K k(u32* x) { b[T] = x[G]; b[T + 256] = x[G + 256]; for (u32 k = 2; k <= 512; k <<= 1) "
    "for (u32 j = k >> 1; j; j >>= 1) { SYNC; u32 i = 2 * T - (T & (j - 1)); u32 p = b[i], q = b[i + j]; "
    "if ((p > q) == !(i & k)) { b[i] = q; b[i + j] = p; } } SYNC; x[G] = b[T]; x[G + 256] = b[T + 256]; }",
    "scan": "SH int b[512]; K k(int* x, int* y) { b[T] = x[G]; SYNC; for (int d = 1; d < 256; d *= 2) { int v = T >= d ? b[T - d] : 0; "
    "SYNC; b[T] += v; SYNC; } y[G] = b[T] - x[G]; }",
    "stencil": "K k(float* x, float* y, int w, int h) { int i = B * 16 + T, j = BY * 16 + TY; if (i > 0 && j > 0 && i < w - 1 && j < h - 1) "
    "y[j * w + i] = 0.2f * (x[j * w + i] + x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]); }",
    "transpose": "SH float b[32][33]; K k(float* x, float* y, int n) { for (int r = 0; r < 32; r += 8) b[TY + r][T] = "
    "x[(BY * 32 + TY + r) * n + B * 32 + T]; SYNC; for (int r = 0; r < 32; r += 8) y[(B * 32 + TY + r) * n + BY * 32 + T] = b[T][TY + r]; }",
    "fft": "D f2 cm(f2 a, f2 b) { return f2{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } K k(f2* x, f2* w) { f2 v[8]; "
    "for (int i = 0; i < 8; i++) v[i] = x[G + 64 * i]; for (int s = 1; s < 8; s *= 2) for (int i = 0; i < 8; i++) if (!(i & s)) { "
    "f2 t = cm(v[i + s], w[i * s & 7]); v[i + s] = v[i] - t; v[i] = v[i] + t; } for (int i = 0; i < 8; i++) x[G + 64 * i] = v[i]; }",
    "dynarray": "K k(int* x, int* y, int n) { int a[24]; for (int i = 0; i < 24; i++) a[i] = x[G + i]; for (int i = 0; i < n; i++) "
    "a[x[i] % 24] += a[(i * 5) % 24]; y[G] = a[n % 24]; }",
    "dynbytes": "K k(u8* x, u8* y, int n) { u8 a[40]; for (int i = 0; i < 40; i++) a[i] = x[G + i]; for (int i = 0; i < n; i++) "
    "a[x[i] % 40] += a[(i * 5) % 40]; y[G] = a[n % 40]; }",
    "dynshorts": "K k(short* x, short* y, int n) { short a[40]; for (int i = 0; i < 40; i++) a[i] = x[G + i]; for (int i = 0; i < n; i++) "
    "a[(u16)x[i] % 40] += a[(i * 5) % 40]; y[G] = a[n % 40]; }",
    "pressure": "K k(f4* x, f4* y, float a) { f4 v[20]; for (int i = 0; i < 20; i++) v[i] = x[G + i * 64]; for (int r = 0; r < 3; r++) "
    "for (int i = 0; i < 20; i++) v[i] = v[(i + 7) % 20] * a + v[i]; f4 s = 0; for (int i = 0; i < 20; i++) s += v[i] * v[(i * 3) % 20]; y[G] = s; }",
    "spill": "__attribute__((amdgpu_flat_work_group_size(1024, 1024))) K k(f4* x, f4* y, float a) { f4 v[24]; for (int i = 0; i < 24; i++) v[i] = x[G + i * 64]; "
    "SYNC; for (int r = 0; r < 3; r++) for (int i = 0; i < 24; i++) v[i] = v[(i + 7) % 24] * a + v[i]; f4 s = 0; "
    "for (int i = 0; i < 24; i++) s += v[i] * v[(i * 5) % 24]; y[G] = s; }",
    "mfma": "K k(f4* x, float* y) { f4 c = x[T]; for (int i = 0; i < 4; i++) c = __builtin_amdgcn_mfma_f32_16x16x4f32(y[i + T], y[i + 64], c, 0, 0, 0); x[T] = c; }",
    "mfma16": "K k(f16v* x, h4* y) { f16v c = x[T]; for (int i = 0; i < 4; i++) c = __builtin_amdgcn_mfma_f32_32x32x8f16(y[i + T], y[i + 64], c, 0, 0, 0); x[T] = c; }",
    "mfmai": "typedef int i16v __attribute__((ext_vector_type(16))); K k(i16v* x, int* y) { i16v c = x[T]; "
    "for (int i = 0; i < 4; i++) c = __builtin_amdgcn_mfma_i32_32x32x8i8(y[i + T], y[i + 64], c, 0, 0, 0); x[T] = c; }",
    "ballot": "K k(int* x, u64* y) { u64 m = __builtin_amdgcn_uicmp(x[G], 5, 34); y[G] = m; y[G + 1] = __builtin_amdgcn_mbcnt_lo((u32)m, 0) + "
    "__builtin_amdgcn_mbcnt_hi((u32)(m >> 32), 3) + __builtin_popcountll(__builtin_amdgcn_fcmpf(x[G], 2.0f, 2)); }",
    "diverge": "K k(int* x, int n) { int v = x[G]; while (v > n) { if (v & 1) { v = v * 3 + 1; if (v == 77) break; } else v >>= 1; "
    "if (T == v) continue; switch (v & 3) { case 0: v -= n; break; case 1: v ^= 9; break; case 2: v += T; } } x[G] = v; }",
    "mandel": "K k(int* o, float s) { float cx = B * s - 2, cy = T * s - 1, a = 0, b = 0; int i = 0; for (; i < 200 && a * a + b * b < 4; i++) { "
    "float t = a * a - b * b + cx; b = 2 * a * b + cy; a = t; } o[G] = i; }",
    "nbody": "K k(f4* p, f4* v, int n) { f4 me = p[G]; float ax = 0, ay = 0, az = 0; for (int i = 0; i < n; i++) { f4 q = p[i]; float dx = q.x - me.x, "
    "dy = q.y - me.y, dz = q.z - me.z; float r = __builtin_amdgcn_rsqf(dx * dx + dy * dy + dz * dz + 1e-3f); r = q.w * r * r * r; "
    "ax += dx * r; ay += dy * r; az += dz * r; } v[G] += f4{ax, ay, az, 0}; }",
    "strided": "struct S { int a; short b; u8 c, d; float e; double f; }; K k(S* s, int n) { for (int i = T; i < n; i += 64) { S v = s[i]; v.a += v.b; "
    "v.c ^= v.d; v.e *= 2; v.f -= v.e; v.b = v.a >> 3; s[i + n] = v; } }",
    "conv": "K k(float* x, float* w, float* y, int n) { float s = 0; for (int r = 0; r < 5; r++) for (int c = 0; c < 5; c++) "
    "s += x[(BY + r) * n + G + c] * w[r * 5 + c]; y[BY * n + G] = s > 0 ? s : 0.01f * s; }",
    "ldswide": "SH f4 b[512]; SH double d[256]; K k(f4* x, double* y) { b[T] = x[G]; d[T] = y[G]; SYNC; x[G] = b[T ^ 31] + b[T + 256]; y[G] = d[255 - T] + d[T ^ 1]; }",
    "ldsbytes": "SH u8 b[512]; SH u16 s[256]; SH s8 c[256]; K k(u8* x, u16* y) { b[T] = x[G]; s[T] = y[G]; c[T] = x[G + 9]; SYNC; y[G] = b[T ^ 31] + s[T ^ 7] + c[T ^ 3]; }",
    "nontemporal": "K k(float* x, float* y, i4* z) { __builtin_nontemporal_store(__builtin_nontemporal_load(x + G), y + G); z[G] = __builtin_nontemporal_load(z + G + 64); }",
    "volatile": "K k(volatile int* x, volatile u64* y) { x[G] = x[G + 1]; y[G] = y[G + 1] + x[7]; __atomic_store_n(x, 4, 5); x[9] = __atomic_load_n(x + 5, 2); }",
    "scalar": "K k(int* y, int a, int b, s64 c, s64 d) { int t = a; for (int i = 0; i < b; i++) { t = t * 5 + (t >> 2); t ^= b; if (t & 8) t -= a; } "
    "s64 u = c << (a & 31); u |= d; u &= ~c; u -= d; y[B] = t + (int)(u >> 32) + (a < b ? a : b) + __builtin_popcount(a) + (a > 9 ? 3 : t); }",
    "clock": "K k(u64* y, int* x) { u64 t = __builtin_readcyclecounter(); int v = x[G]; __builtin_amdgcn_s_sleep(2); v += x[v & 255]; "
    "y[G] = __builtin_readcyclecounter() - t + v; }",
    "calls": "__attribute__((device, noinline)) int f(int a, int b) { return a * b + (a >> 2); } __attribute__((device, noinline)) "
    "float g(float a, int n) { return n < 2 ? a : g(a * 0.5f, n - 1) + f(n, 3); } K k(float* x, int n) { x[G] = g(x[G + 1], n) + f(n, T); }",
    "doubles": "K k(double* x, double* y) { double v = x[G]; y[G] = __builtin_floor(v) + __builtin_fma(v, x[G + 1], -2.0) + __builtin_fmin(v, x[G + 2]) + "
    "__builtin_trunc(v) + __builtin_amdgcn_rcp(v) + __builtin_amdgcn_rsq(v) + __builtin_amdgcn_ldexp(v, 4); }",
    "packbits": "K k(u8* x, u32* y) { u32 r = 0; for (int i = 0; i < 4; i++) r |= (u32)x[4 * G + i] << (8 * i); y[G] = r; "
    "y[G + 1] = (r & 0xff) * 3 + ((r >> 8) & 0xff) * 5 + (r >> 24); }",
    "f16math": "K k(f16* x, f16* y) { f16 v = x[G]; y[G] = v * x[G + 1] + (v > (f16)1 ? -v : v / (f16)2) + (f16)(int)v; y[G + 1] = v < x[G + 3] ? v : x[G + 3]; }",
    "interp": "K k(float* x, float* y, int n) { float p = y[G] * n; int i = (int)p; float f = p - i; i = i < 0 ? 0 : i > n - 2 ? n - 2 : i; y[G] = x[i] + f * (x[i + 1] - x[i]); }",
    "histogram": "SH u32 h[64]; K k(u8* x, u32* y, int n) { if (T < 64) h[T] = 0; SYNC; for (int i = T; i < n; i += 256) __atomic_fetch_add(h + (x[i] >> 2), 1u, 0); SYNC; "
    "if (T < 64) __atomic_fetch_add(y + T, h[T], 0); }",
    "crc": "K k(u8* x, u32* y, u32* t) { u32 c = ~0u; for (int i = 0; i < 16; i++) c = t[(c ^ x[16 * G + i]) & 255] ^ (c >> 8); y[G] = ~c; }",
}


def _gemm(name: str, element: str, tile: int, unroll: int, threads: int) -> str:
    """One tiled product; the accumulator is large enough to spill where `threads` is 1024."""
    return (
        f"SH {element} sa[32][{tile * 16}], sb[32][{tile * 16}]; "
        f"__attribute__((amdgpu_flat_work_group_size({threads}, {threads}))) K {name}({element}* a, {element}* b, float* c, int n) {{ "
        f"float acc[{tile}][{tile}]; for (int i = 0; i < {tile}; i++) for (int j = 0; j < {tile}; j++) acc[i][j] = 0; "
        f"for (int k = 0; k < n; k += 32) {{ for (int r = 0; r < {tile}; r++) {{ sa[T & 31][r * 16 + TY] = a[(k + TY) * n + B * {tile * 16} + r * 16 + T]; "
        f"sb[T & 31][r * 16 + TY] = b[(k + TY) * n + BY * {tile * 16} + r * 16 + T]; }} SYNC;\n#pragma unroll {unroll}\n"
        f"for (int q = 0; q < 32; q++) for (int i = 0; i < {tile}; i++) for (int j = 0; j < {tile}; j++) "
        f"acc[i][j] += (float)sa[q][TY * {tile} + i] * (float)sb[q][T * {tile} + j]; SYNC; }} "
        f"for (int i = 0; i < {tile}; i++) for (int j = 0; j < {tile}; j++) c[(B * {tile * 16} + TY * {tile} + i) * n + BY * {tile * 16} + T * {tile} + j] = acc[i][j]; }}"
    )


def kernels() -> dict[str, str]:
    """Name -> source of every kernel but the products."""
    return {**_typed(), **PLAIN}


def gemms() -> dict[str, str]:
    """The far test."""
    return {
        f"gemm_{element}_{tile}_{unroll}_{threads}": _gemm("k", ctype, tile, unroll, threads)
        for element, ctype in (("f32", "float"), ("f16", "f16"))
        for tile, unroll, threads in ((4, 8, 256), (8, 4, 256), (8, 2, 1024), (10, 1, 1024))
    }


def prefix(cpu: str) -> str:
    """Types and macros in front of a kernel."""
    if cpu.startswith("gfx"):
        return PREFIX
    lines = PREFIX.splitlines()
    types = "\n".join(line for line in lines if line.startswith("typedef"))
    if cpu.startswith("hexagon"):
        return HEXAGON_PREFIX + types.replace("typedef _Float16 f16;", "typedef float f16;") + "\n"
    text = PREFIX[: PREFIX.index("#define SYNC")] + "#define SYNC __nvvm_bar_sync(0)\n"
    for amd, nvidia in NVIDIA.items():
        text = text.replace(f"__builtin_amdgcn_{amd}", f"__nvvm_read_ptx_sreg_{nvidia}")
    return text.replace("typedef _Float16 f16;", "typedef __fp16 f16;")


def compile_object(source: str, target: Path, level: str, cpu: str = "gfx908") -> bool:
    """One object; False where clang refuses (a builtin that this target or version lacks)."""
    text = target.with_suffix(".hip")
    text.write_text(prefix(cpu) + source + "\n", encoding="utf-8")
    device = [
        "clang-14",
        "-cc1",
        "-aux-triple",
        "x86_64-unknown-linux-gnu",
        "-fcuda-is-device",
        "-target-cpu",
        cpu,
        "-std=c++17",
        "-fvisibility",
        "hidden",
        f"-{level}",
        "-vectorize-loops",
        "-w",
    ]
    if cpu.startswith("gfx"):
        keep = ["-disable-O0-optnone"] if level == "O0" else []
        commands = [
            [*device, "-triple", "amdgcn-amd-amdhsa", "-x", "hip", *keep, "-emit-obj", "-o", str(target), str(text)]
        ]
    elif cpu.startswith("hexagon"):
        commands = [
            [
                "clang-14",
                "-target",
                "hexagon",
                f"-mcpu={cpu}",
                "-ffreestanding",
                "-w",
                f"-{level}",
                "-x",
                "c++",
                "-c",
                str(text),
                "-o",
                str(target),
            ]
        ]
    else:
        ptx = target.with_suffix(".ptx")
        commands = [
            [
                *device,
                "-triple",
                "nvptx64-nvidia-cuda",
                "-target-feature",
                "+ptx70",
                "-fnative-half-type",
                "-x",
                "cuda",
                "-S",
                "-o",
                str(ptx),
                str(text),
            ],
            ["ptxas", f"-arch={cpu}", "-o", str(target), str(ptx)],
        ]
    for command in commands:
        result = subprocess.run(command, capture_output=True, check=False)
        if result.returncode:
            target.with_suffix(".err").write_bytes(result.stderr)
            return False
    return True


def disassembler(cpu: str) -> list[str]:
    """The command that names an object's instructions; its program may be missing."""
    return ["nvdisasm", "-hex"] if cpu.startswith("sm_") else ["llvm-objdump-14", "-d"]


def missing_tools(cpu: str) -> list[str]:
    """What `make_corpus` needs and is not here."""
    wanted = ["clang-14", disassembler(cpu)[0], *(["ptxas"] if cpu.startswith("sm_") else [])]
    return [name for name in wanted if shutil.which(name) is None]


def make_corpus(
    folder: Path, levels: tuple[str, ...] = ("O1", "O2", "Os"), cpu: str = "gfx908"
) -> dict[str, list[Path]]:
    """Kernel name -> its listings, made once."""
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, list[Path]] = {}
    for name, source in {**kernels(), **gemms()}.items():
        for level in ("O2", "O3") if name.startswith("gemm") else levels:
            listing = folder / f"{name}.{level}.lst"
            target = listing.with_suffix(".o")
            if not listing.exists():
                if not compile_object(source, target, level, cpu):
                    continue
                text = subprocess.run([*disassembler(cpu), str(target)], capture_output=True, check=True).stdout
                listing.write_bytes(text)
            made.setdefault(name, []).append(listing)
    return made
