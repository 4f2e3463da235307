"""The emulation headers and runtime, through the five compile steps of the stand-in SDK: what a .mu
program may do, and which invalid programs end in a trap (exit 125) instead of in wrong numbers."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain("clang-14", "clang++-14")

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "mccprobe/targets/sim/include"
RUNTIME = ROOT / "mccprobe/targets/sim/runtime"
GEMM = [ROOT / "kernels/gemm/gemm.mu", ROOT / "kernels/common/gemm_main.mu"]
STEP_TIMEOUT_S = 300.0  # ends hangs; measures nothing
COMMON = [
    *["-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent", "--cuda-host-only"],
    "-std=c++17",
]
DEVICE = [
    *["-mavx2", "-mfma", "-mf16c", "-fPIC", "-D__MCCPROBE_SIM_DEVICE__=1", "-D__MUSA_ARCH__=220"],
    *["-Xclang", "-fcuda-is-device"],
]


def command(*arguments: str | Path) -> None:
    """Run a build step that must work."""
    done = subprocess.run(
        [str(a) for a in arguments], capture_output=True, text=True, timeout=STEP_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"


def bundle(image: bytes) -> bytes:
    """An offload bundle with an empty host entry and the device image at a page boundary."""
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    for name, offset, size in (
        (b"host-x86_64-unknown-linux-gnu", 0, 0),
        (b"musa-mtgpu-mt-musa-mp_22", 4096, len(image)),
    ):
        header += struct.pack("<QQQ", offset, size, len(name)) + name
    return header.ljust(4096, b"\0") + image


@dataclass(frozen=True)
class Ran:
    """One run of a program."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Sim:
    """Builds and runs .mu programs in a folder."""

    folder: Path
    library: Path

    def build(
        self,
        *sources: str | Path,
        device: Sequence[str] = (),
        flags: Sequence[str] = ("-O2",),
        change_bundle: Callable[[bytes], bytes] = bytes,
    ) -> Path:
        """Compile sources (files, or the text of one) into a program. `flags` go to both passes."""
        objects: list[Path] = []
        for number, source in enumerate(sources):
            if isinstance(source, str):
                path = self.folder / f"source{number}.mu"
                path.write_text(source)
            else:
                path = source
            stem = self.folder / f"{number}"
            dev, mubin, musafb, host = (stem.with_suffix(s) for s in (".dev.o", ".mubin", ".musafb", ".o"))
            both = [*COMMON, "-isystem", INCLUDE]
            command("clang-14", *both, *DEVICE, *flags, *device, "-c", path, "-o", dev)
            command("ld.lld-14", "-shared", dev, "-o", mubin)
            musafb.write_bytes(change_bundle(bundle(mubin.read_bytes())))
            embed = ["-D__MUSACC__", "-Xclang", "-fcuda-include-gpubinary", "-Xclang", musafb]
            command("clang-14", *both, *embed, *flags, "-c", path, "-o", host)
            objects.append(host)
        program = self.folder / "program"
        link = ["-fuse-ld=lld", "-rdynamic", *objects, f"-L{self.library.parent}", "-lmusart", "-ldl", "-lm"]
        command("clang++-14", *link, "-o", program)
        return program

    def run(self, program: Path, *arguments: str, **environment: str) -> Ran:
        """Run a program with MCCSIM_ settings given without their prefix."""
        env = {**os.environ, **{f"MCCSIM_{name}": value for name, value in environment.items()}}
        done = subprocess.run(
            [str(program), *arguments],
            env=env,
            capture_output=True,
            text=True,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def output(self, *sources: str | Path, **environment: str) -> str:
        """Standard output of a program that must work."""
        ran = self.run(self.build(*sources), **environment)
        assert ran.code == 0, ran
        return ran.stdout

    def trap(self, source: str, kind: str, **environment: str) -> str:
        """The message of a program that must trap."""
        ran = self.run(self.build(source), **environment)
        assert ran.code == 125, ran
        assert ran.stderr.startswith(f"mccprobe-sim: TRAP {kind}: "), ran
        return ran.stderr


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime as a static library, built without a warning."""
    folder = tmp_path_factory.mktemp("runtime")
    sources = sorted(RUNTIME.glob("*.cpp"))
    flags = ["-std=c++17", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-isystem", str(INCLUDE)]

    def compile_one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        command("clang++-14", *flags, "-c", source, "-o", target)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    command("ar", "rcs", folder / "libmusart.a", *objects)
    return folder / "libmusart.a"


@pytest.fixture
def sim(library: Path, tmp_path: Path) -> Sim:
    return Sim(tmp_path, library)


@pytest.fixture(scope="session")
def gemm(library: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sim, Path]:
    """The shipped kernel, built once."""
    sim = Sim(tmp_path_factory.mktemp("gemm"), library)
    return sim, sim.build(*GEMM, flags=["-O3", "-Wall", "-Wextra"])


# --- the shipped GEMM ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "shape", "kernel"),
    [
        ("small", (256, 256, 512), "gemm_wmma_256"),
        ("medium", (512, 512, 1024), "gemm_wmma_256"),
        ("large", (1024, 1024, 2048), "gemm_wmma_256"),
        ("non_square", (512, 1024, 2048), "gemm_wmma_256"),
        ("fallback", (272, 144, 96), "gemm_wmma_16"),
        ("16x32x48", (16, 32, 48), "gemm_wmma_16"),
    ],
)
def test_gemm_is_right(gemm: tuple[Sim, Path], case: str, shape: tuple[int, int, int], kernel: str) -> None:
    sim, program = gemm
    ran = sim.run(program, "--case", case, "--json")
    assert ran.code == 0, ran
    result = json.loads(ran.stdout)
    assert (result["m"], result["n"], result["k"]) == shape
    assert result["kernels"] == [kernel]
    assert result["verdict"] == "GOOD"
    assert result["mismatches"] == 0
    assert 0 < result["max_err"] <= result["tolerance"]
    assert "emulation" in result["device"]


def test_gemm_seeds_and_repeats(gemm: tuple[Sim, Path]) -> None:
    sim, program = gemm
    runs = [
        json.loads(sim.run(program, "--case", "fallback", "--json", "--seed", seed, "--repeat", "2").stdout)
        for seed in ("1", "2", "1")
    ]
    assert all(len(run.pop("milliseconds")) == 2 for run in runs)
    assert runs[0] == runs[2]
    assert runs[0]["max_err"] != runs[1]["max_err"]


def test_gemm_zero_input(gemm: tuple[Sim, Path]) -> None:
    sim, program = gemm
    ran = sim.run(program, "--input", "zero", "--json")
    assert ran.code == 0, ran
    assert json.loads(ran.stdout)["max_err"] == 0


@pytest.mark.parametrize("case", ["correctness_8k", "100x100x100"])
def test_gemm_cannot_tell(gemm: tuple[Sim, Path], case: str) -> None:
    sim, program = gemm
    ran = sim.run(program, "--case", case, "--json")
    assert ran.code == 125, ran
    result = json.loads(ran.stdout)
    assert result["verdict"] == "UNRESOLVED"
    assert result["reason"]
    assert result["max_err"] is None


@pytest.mark.parametrize("arguments", [["--case", "huge"], ["--seed", "-1"], ["--repeat", "0"], ["--what"]])
def test_gemm_bad_command_line(gemm: tuple[Sim, Path], arguments: list[str]) -> None:
    sim, program = gemm
    ran = sim.run(program, *arguments)
    assert ran.code == 2, ran
    assert "usage:" in ran.stderr
    assert ran.stdout == ""


def test_any_corrupt_fma_of_the_large_kernel_gives_wrong_numbers(gemm: tuple[Sim, Path]) -> None:
    """The FMAs stand in the kernel's function, are packed, and all of them run."""
    sim, program = gemm
    listing = subprocess.run(
        ["llvm-objdump-14", "-d", "--disassemble-symbols=" + large_kernel(sim), str(sim.folder / "0.mubin")],
        capture_output=True,
        text=True,
        timeout=STEP_TIMEOUT_S,
        check=True,
    ).stdout
    found = re.findall(r"^\s*[0-9a-f]+:\s+((?:[0-9a-f]{2} ?)+)\s*vfmadd\d+ps.*%ymm", listing, re.M)
    assert len(found) == 256  # 2 steps of 16, 8 accumulators, 16 along K
    contents = program.read_bytes()
    image = contents.index((sim.folder / "0.mubin").read_bytes())
    text = [bytes.fromhex(code.replace(" ", "")) for code in found]
    at = image
    for number, code in enumerate(text):
        at = contents.index(code, at) + 1
        if number % 51:
            continue
        # The third byte of the three-byte VEX prefix holds the inverted number of a source register.
        broken = bytearray(contents)
        assert broken[at - 1] == 0xC4
        broken[at - 1 + 2] ^= 0b00001000
        corrupt = sim.folder / "corrupt"
        corrupt.write_bytes(broken)
        corrupt.chmod(0o755)
        ran = sim.run(corrupt)
        assert ran.code == 1, (number, ran)


def large_kernel(sim: Sim) -> str:
    """Mangled name of the 256x256 kernel."""
    symbols = subprocess.run(
        ["nm", str(sim.folder / "0.mubin")], capture_output=True, text=True, timeout=60, check=True
    )
    return next(word for word in symbols.stdout.split() if word.startswith("_Z13gemm_wmma_256"))


@pytest.mark.parametrize("flags", [["-O0"], ["-O1"], ["-O3", "-mllvm", "-opt-bisect-limit=0"]])
def test_gemm_is_right_at_any_level(sim: Sim, flags: list[str]) -> None:
    assert sim.run(sim.build(*GEMM, flags=["-O1"], device=flags)).code == 0


def test_gemm_with_small_accumulators(sim: Sim) -> None:
    """8 elements per lane are enough for a full warp, as the article's changed header had them."""
    program = sim.build(*GEMM, device=["-DMCCSIM_ACCUMULATOR_ELEMENTS=8"])
    assert sim.run(program).code == 0
    ran = sim.run(program, WARP="32")
    assert ran.code == 125, ran


# --- language and runtime -----------------------------------------------------------------------

PRELUDE = """
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
#include <musa_runtime.h>
template <class T> T *device_memory(size_t n) { T *p; musaMalloc(&p, n * sizeof(T)); return p; }
"""


def test_kernel_arguments(sim: Sim) -> None:
    """Integer, floating and struct arguments, in registers and on the stack; each thread owns its copy."""
    text = sim.output(
        PRELUDE
        + """
        struct Small { float x; };
        struct Large { double a[40]; };
        __global__ void k(float f, double *out, char c, half h, Small s, double d, float4 v, Large l,
                          short n, float last) {
          l.a[39] += threadIdx.x;
          out[threadIdx.x] = f + c * 10 + (float)h + s.x + d + v.w + l.a[0] + l.a[39] + n + last;
        }
        int main() {
          double *out = device_memory<double>(3);
          Large l; l.a[0] = 1000; l.a[39] = 2000;
          float4 v{0, 0, 0, 100};
          k<<<1, 3>>>(0.5f, out, (char)1, half(0.25f), Small{2}, 3.0, v, l, (short)-7, 4.f);
          std::printf("%g %g %g %d\\n", out[0], out[1], out[2], (int)musaGetLastError());
        }"""
    )
    assert text == "3112.75 3113.75 3114.75 0\n"


def test_argument_too_large(sim: Sim) -> None:
    message = sim.trap(
        PRELUDE
        + """
        struct Huge { char bytes[5000]; };
        __global__ void k(Huge h, char *p) { *p = h.bytes[0]; }
        int main() { Huge h{}; k<<<1, 1>>>(h, device_memory<char>(1)); }""",
        "argument too large",
    )
    assert "5000 bytes" in message


def test_thread_and_block_indices(sim: Sim) -> None:
    text = sim.output(
        PRELUDE
        + """
        __global__ void k(int *p) {
          int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
          int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
          __syncthreads();
          atomicAdd(&p[b], t * (int)(threadIdx.x + 2 * threadIdx.y + 3 * threadIdx.z));
        }
        int main() {
          int *p = device_memory<int>(24), expected = 0;
          musaMemset(p, 0, 24 * sizeof(int));
          k<<<dim3(2, 3, 4), dim3(5, 7, 3)>>>(p);
          for (int z = 0; z < 3; z++) for (int y = 0; y < 7; y++) for (int x = 0; x < 5; x++)
            expected += (x + 5 * (y + 7 * z)) * (x + 2 * y + 3 * z);
          for (int i = 0; i < 24; i++) if (p[i] != expected) std::printf("block %d\\n", i);
        }"""
    )
    assert text == ""


def test_dynamic_and_static_shared_memory(sim: Sim) -> None:
    """A host variable with the name of the `extern __shared__` array is another thing."""
    text = sim.output(
        "int scratch[256] = {7};\nint scratch_of_the_host() { return scratch[0]; }\n",
        PRELUDE
        + """
        int scratch_of_the_host();
        template <class T> __global__ void reverse(T *p, int n) {
          extern __shared__ int scratch[];
          __shared__ T fixed[256];
          scratch[threadIdx.x] = threadIdx.x;
          fixed[threadIdx.x] = T(threadIdx.x) * 2;
          __syncthreads();
          p[threadIdx.x] = scratch[n - 1 - threadIdx.x] + fixed[n - 1 - threadIdx.x];
        }
        int main() {
          float *p = device_memory<float>(256);
          reverse<float><<<1, 256, 256 * sizeof(int)>>>(p, 256);
          musaFuncAttributes attributes;
          musaFuncGetAttributes(&attributes, reverse<float>);
          std::printf("%g %g %d %zu\\n", p[0], p[255], scratch_of_the_host(), attributes.sharedSizeBytes);
        }""",
    )
    assert text == "765 0 7 1024\n"


def test_a_shared_scalar_that_each_thread_writes_first_is_shared(sim: Sim) -> None:
    """clang would make a private variable of it: the store of the thread itself dominates its load."""
    text = sim.output(
        PRELUDE
        + """
        __global__ void k(int *p) {
          __shared__ int sum;
          sum = 0;
          __syncthreads();
          atomicAdd(&sum, 1);
          __syncthreads();
          p[threadIdx.x] = sum;
        }
        int main() {
          int *p = device_memory<int>(64);
          k<<<1, 64>>>(p);
          std::printf("%d %d\\n", p[0], p[63]);
        }"""
    )
    assert text == "64 64\n"


def test_shared_memory_limit_is_per_kernel(sim: Sim) -> None:
    """Two kernels of 40,000 bytes fit one after the other; one of 73,760 bytes is refused."""
    source = (
        PRELUDE
        + """
        template <int N> __global__ void k(char *p) {
          __shared__ char s[N];
          s[threadIdx.x] = 1; __syncthreads(); p[threadIdx.x] = s[threadIdx.x ^ 1];
        }
        extern "C" __global__ void plain_name(char *p) {
          __shared__ char s[40001];
          s[threadIdx.x] = 2; __syncthreads(); p[threadIdx.x] = s[threadIdx.x ^ 1];
        }
        int main() {
          char *p = device_memory<char>(64);
          k<40000><<<1, 64>>>(p);
          plain_name<<<1, 64>>>(p);
          std::printf("%d %d\\n", (int)musaGetLastError(), p[5]);
          k<73760><<<1, 64>>>(p);
          std::printf("%s %d\\n", musaGetErrorName(musaGetLastError()), p[5]);
          plain_name<<<1, 64, 40000>>>(p);
          std::printf("%s\\n", musaGetErrorName(musaDeviceSynchronize()));
        }"""
    )
    ran = sim.run(sim.build(source))
    assert ran.stdout == "0 2\nmusaErrorInvalidConfiguration 2\nmusaErrorInvalidConfiguration\n", ran
    assert "shared memory of 73760 bytes (73760 static, 0 dynamic) exceeds the limit of 73728" in ran.stderr
    assert "(40001 static, 40000 dynamic)" in ran.stderr


def test_shared_memory_starts_as_nan(sim: Sim) -> None:
    source = (
        PRELUDE
        + """
        __global__ void k(float *p) {
          __shared__ float s[64];
          if (threadIdx.x & 1) s[threadIdx.x] = 1;
          __syncthreads();
          p[threadIdx.x] = s[threadIdx.x];
        }
        int main() {
          float *p = device_memory<float>(64);
          bool fresh = std::isnan(p[3]);
          musaMemset(p, 0, 256);
          k<<<2, 64>>>(p);
          std::printf("%d %d %g\\n", fresh, std::isnan(p[2]), p[3]);
        }"""
    )
    program = sim.build(source)
    assert sim.run(program).stdout == "1 1 1\n"
    assert sim.run(program, POISON="0").stdout.endswith(" 0 1\n")


def test_two_modules(sim: Sim) -> None:
    """Kernels with one name in two files, and a __host__ __device__ function whose device version differs."""
    unit = (
        PRELUDE
        + """
        __host__ __device__ float twice_%(n)d(float x) {
        #ifdef __MCCPROBE_SIM_DEVICE__
          return 2 * x;
        #else
          return -1;
        #endif
        }
        static __global__ void k(float *p) {
          __shared__ float s[%(n)d];
          s[0] = %(n)d;
          *p = twice_%(n)d(s[0]);
        }
        float run_%(n)d() {
          float *p = device_memory<float>(1);
          k<<<1, 1>>>(p);
          return *p;
        }"""
    )
    main = """
        float run_1();
        int main() { std::printf("%g %g\\n", run_1(), run_2()); }"""
    assert sim.output(unit % {"n": 1}, unit % {"n": 2} + main) == "2 4\n"


def test_device_variables(sim: Sim) -> None:
    text = sim.output(
        PRELUDE
        + """
        __device__ int counter;
        __constant__ float table[3] = {1, 2, 3};
        __global__ void k() { atomicAdd(&counter, (int)table[threadIdx.x]); }
        int main() {
          int value = 100;
          musaMemcpyToSymbol(counter, &value, sizeof value);
          k<<<2, 3>>>();
          musaMemcpyFromSymbol(&value, counter, sizeof value);
          std::printf("%d\\n", value);
        }"""
    )
    assert text == "112\n"


def test_launch_errors(sim: Sim) -> None:
    ran = sim.run(
        sim.build(
            PRELUDE
            + """
        __global__ void k(int *p) { p[0] = 1; }
        int main() {
          int *p = device_memory<int>(1);
          for (dim3 block : {dim3(1025), dim3(0), dim3(32, 33), dim3(65536, 65536, 1)}) {
            k<<<1, block>>>(p);
            musaError_t seen = musaPeekAtLastError(), got = musaGetLastError();
            std::printf("%d %d %d\\n", seen, got, musaGetLastError());
          }
          void *arguments[] = {&p};
          std::printf("%d %d\\n", musaLaunchKernel(k, dim3(1), dim3(1), arguments), p[0]);
        }"""
        )
    )
    assert ran.stdout == "9 9 0\n" * 4 + "0 1\n", ran
    assert ran.stderr.count("cannot be launched") == 4


def test_half_conversions_agree(sim: Sim) -> None:
    """The host pass converts in integer code, the device pass in hardware: all halfs, and the ties."""
    text = sim.output(
        PRELUDE
        + """
        __global__ void k(float *wide, unsigned short *narrow) {
          for (int i = threadIdx.x; i < 65536; i += 64) {
            wide[i] = __half2float(__ushort_as_half(i));
            float between = wide[i] * (1 + 1.0f / 4096), tie = wide[i] * (1 + 1.0f / 2048);
            narrow[2 * i] = __half_as_ushort(half(between));
            narrow[2 * i + 1] = __half_as_ushort(half(tie));
          }
        }
        int main() {
          float *wide = device_memory<float>(65536);
          unsigned short *narrow = device_memory<unsigned short>(131072);
          k<<<1, 64>>>(wide, narrow);
          int wrong = 0;
          for (int i = 0; i < 65536; i++) {
            float w = __half2float(__ushort_as_half(i));
            bool nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff);
            if (nan) { wrong += !std::isnan(w) || !std::isnan(wide[i]); continue; }
            wrong += w != wide[i];
            wrong += __half_as_ushort(half(w * (1 + 1.0f / 4096))) != narrow[2 * i];
            wrong += __half_as_ushort(half(w * (1 + 1.0f / 2048))) != narrow[2 * i + 1];
          }
          std::printf("%d\\n", wrong);
        }"""
    )
    assert text == "0\n"


def test_verbose_goes_to_stderr(sim: Sim) -> None:
    program = sim.build(PRELUDE + "template <int N> __global__ void k() {}\nint main() { k<3><<<dim3(1, 2), 4>>>(); }")
    ran = sim.run(program, VERBOSE="1")
    assert ran.stdout == ""
    assert "launch k<3> grid (1,2,1) block (4,1,1)" in ran.stderr
    ran = sim.run(program, WARP="64")
    assert ran.code == 125 and "MCCSIM_WARP=64" in ran.stderr, ran


def test_calling_a_host_function_is_a_compile_error(sim: Sim) -> None:
    with pytest.raises(AssertionError, match="to __host__ function"):
        sim.build(PRELUDE + "int f(int x) { return x; }\n__global__ void k(int *p) { *p = f(1); }")


# --- damaged modules ------------------------------------------------------------------------------

TRIVIAL = PRELUDE + "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b"x" + b[1:], "not an offload bundle"),
        (lambda b: b[:24] + struct.pack("<Q", 1 << 40) + b[32:], "impossible number of entries"),
        (lambda b: b[:32] + struct.pack("<QQQ", 0, 0, 1 << 50) + b[56:], "out of range"),
        (lambda b: b.replace(b"musa-mtgpu", b"cuda-mtgpu"), "no image for musa-mtgpu-mt-musa"),
        (lambda b: b[:4096] + b"junk" + b[4100:], "not an ELF file"),
        (lambda b: b[: 4096 + 18] + b"\xfd\0" + b[4096 + 20 :], "not an x86-64 shared object"),
    ],
)
def test_damaged_bundle(sim: Sim, change: Callable[[bytes], bytes], message: str) -> None:
    ran = sim.run(sim.build(TRIVIAL, change_bundle=change))
    assert ran.code == 125, ran
    assert ran.stderr.startswith("mccprobe-sim: TRAP bad module: "), ran
    assert message in ran.stderr


def test_bundle_id_with_several_hyphens(sim: Sim) -> None:
    def more_hyphens(old: bytes) -> bytes:
        name = b"musa-mtgpu-mt-musa-mp_22"
        at = old.index(name)
        longer = old[: at - 8] + struct.pack("<Q", len(name) + 2) + name.replace(b"-mp", b"---mp")
        return longer.ljust(4096, b"\0") + old[4096:]

    assert sim.run(sim.build(TRIVIAL, change_bundle=more_hyphens)).code == 0


def test_missing_kernel(sim: Sim) -> None:
    source = TRIVIAL.replace("__global__ void k() {}", "#ifdef X\n#define k other\n#endif\n__global__ void k() {}")
    ran = sim.run(sim.build(source, device=["-DX"]))
    assert ran.code == 125 and "TRAP missing kernel" in ran.stderr and "_Z1kv" in ran.stderr, ran


# --- physical warps -------------------------------------------------------------------------------

SECTION_11 = (
    PRELUDE
    + """
    template <bool DIVERGENT>
    __global__ void test(const half *A, const half *B, float *C, int M, int N, int K) {
      int sub = threadIdx.x / 32;
      int m = DIVERGENT ? blockIdx.y * 64 + sub % 2 * 32 : blockIdx.y * 32;
      int n = DIVERGENT ? blockIdx.x * 64 + sub / 2 * 32 : blockIdx.x * 32;
      fragment<accumulator, 32, 32, 16, float> acc;
      fill_fragment(acc, 0.0f);
      for (int k = 0; k < K; k += 16) {
        fragment<matrix_a, 32, 32, 16, half, col_major> a;
        fragment<matrix_b, 32, 32, 16, half, col_major> b;
        load_matrix_sync(a, A + (long)k * M + m, M);
        load_matrix_sync(b, B + (long)n * K + k, K);
        mma_sync(acc, a, b, acc);
      }
      store_matrix_sync(C + (long)n * M + m, acc, M, mem_col_major);
    }
    int main(int argc, char **) {
      const int M = 256, N = 256, K = 32;
      half *A = device_memory<half>(M * K), *B = device_memory<half>(K * N);
      float *C = device_memory<float>(M * N);
      unsigned state = 1;
      auto draw = [&] {
        state = state * 1664525u + 1013904223u;
        return half((state >> 20) / 4096.0f - 0.5f);
      };
      for (int i = 0; i < M * K; i++) A[i] = draw();
      for (int i = 0; i < K * N; i++) B[i] = draw();
      if (argc > 1) test<true><<<dim3(4, 4), 128>>>(A, B, C, M, N, K);
      else test<false><<<dim3(8, 8), 128>>>(A, B, C, M, N, K);
      int wrong = 0;
      for (int n = 0; n < N; n++) for (int m = 0; m < M; m++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += (float)A[k * M + m] * (float)B[n * K + k];
        wrong += !(std::fabs(sum - C[n * M + m]) <= 0.01f);
      }
      std::printf("%d\\n", wrong);
    }"""
)


def test_divergent_operand(sim: Sim) -> None:
    """The minimal reproduction of the article's section 11."""
    program = sim.build(SECTION_11)
    assert sim.run(program).stdout == "0\n"
    ran = sim.run(program, "divergent")
    assert ran.code == 125, ran
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert lines[0] == (
        "mccprobe-sim: TRAP divergent WMMA operand: kernel test<true> block (0,0,0) warp 0, "
        "load_matrix_sync(matrix_a)<32,32,16>:"
    )
    assert lines[1:5] == [
        "  lanes 0-31: base+0 bytes, ld=256",
        "  lanes 32-63: base+64 bytes, ld=256",
        "  lanes 64-95: base+0 bytes, ld=256",
        "  lanes 96-127: base+64 bytes, ld=256",
    ]
    # The two guesses at what the hardware does both give wrong numbers, and 32-lane warps the right ones.
    assert 40000 < int(sim.run(program, "divergent", DIVERGE="first").stdout) < 60000
    assert int(sim.run(program, "divergent", DIVERGE="lane").stdout) > 60000
    assert sim.run(program, "divergent", WARP="32").stdout == "0\n"


def one_tile(body: str, *, threads: int, shape: str = "16, 16, 16", layout: str = "col_major") -> str:
    """A program that multiplies one tile and prints the number of wrong elements; `body` stands first in
    the kernel and may return."""
    return (
        PRELUDE
        + f"""
        constexpr int S[] = {{{shape}}}, M = S[0], N = S[1], K = S[2];
        constexpr bool COL = __is_same({layout}, col_major);
        __global__ void k(const half *A, const half *B, float *C) {{
          {body}
          {{
          fragment<accumulator, {shape}, float> acc;
          fragment<matrix_a, {shape}, half, {layout}> a;
          fragment<matrix_b, {shape}, half, {layout}> b;
          fill_fragment(acc, 1.0f);
          load_matrix_sync(a, A, COL ? M : K);
          load_matrix_sync(b, B, COL ? K : N);
          mma_sync(acc, a, b, acc);
          store_matrix_sync(C, acc, COL ? M : N, COL ? mem_col_major : mem_row_major);
          }}
        }}
        int main() {{
          half *A = device_memory<half>(M * K), *B = device_memory<half>(K * N);
          float *C = device_memory<float>(M * N);
          for (int i = 0; i < M * K; i++) A[i] = half((float)(i % 7));
          for (int i = 0; i < K * N; i++) B[i] = half((float)(i % 5));
          k<<<1, {threads}>>>(A, B, C);
          int wrong = 0;
          for (int n = 0; n < N; n++) for (int m = 0; m < M; m++) {{
            float sum = 1;
            for (int i = 0; i < K; i++)
              sum += (float)A[COL ? i * M + m : m * K + i] * (float)B[COL ? n * K + i : i * N + n];
            wrong += sum != C[COL ? n * M + m : m * N + n];
          }}
          std::printf("%d\\n", wrong);
        }}"""
    )


@pytest.mark.parametrize("shape", ["16, 16, 16", "32, 32, 16"])
@pytest.mark.parametrize("layout", ["col_major", "row_major"])
@pytest.mark.parametrize("threads", [32, 96, 128])
def test_wmma_shapes(sim: Sim, shape: str, layout: str, threads: int) -> None:
    """Full and partial warps."""
    assert sim.output(one_tile("", threads=threads, shape=shape, layout=layout)) == "0\n"


def test_inactive_lanes_are_not_divergent(sim: Sim) -> None:
    """Lanes that have ended, or that wait for the block, are masked off."""
    assert sim.output(one_tile("if (threadIdx.x >= 32) return;", threads=128)) == "0\n"
    waiting = one_tile("if (threadIdx.x < 32)", threads=128).replace(
        "mem_row_major);\n          }", "mem_row_major);\n          }\n          __syncthreads();"
    )
    assert "__syncthreads" in waiting
    assert sim.output(waiting) == "0\n"


def test_too_few_lanes(sim: Sim) -> None:
    message = sim.trap(one_tile("", threads=16), "too few lanes")
    assert "16 active lanes, 32 are needed" in message


def test_lanes_in_different_operations(sim: Sim) -> None:
    message = sim.trap(one_tile("if (threadIdx.x == 70) __syncwarp();", threads=128), "divergent WMMA operation")
    assert "lane 0 is in load_matrix_sync(matrix_a)<16,16,16>, lane 70 in __syncwarp" in message


def test_stale_fragment(sim: Sim) -> None:
    body = """
      fragment<matrix_a, 16, 16, 16, half, col_major> old, other;
      fragment<matrix_b, 16, 16, 16, half, col_major> right;
      fragment<accumulator, 16, 16, 16, float> sum;
      fill_fragment(sum, 0.0f);
      load_matrix_sync(old, A, M);
      for (int i = 0; i < 40; i++) load_matrix_sync(other, A, M);
      load_matrix_sync(right, B, K);
      mma_sync(sum, old, right, sum);
      store_matrix_sync(C, sum, M, mem_col_major);"""
    assert "matrix_a" in sim.trap(one_tile(body, threads=128), "stale fragment")


def test_public_header_and_namespaces(sim: Sim) -> None:
    """<mma.h> alone declares the 16x16x16 shape, in namespaces only."""
    text = sim.output(
        """
        #include <mma.h>
        #include <cstdio>
        template <class A> struct fragment {};  // no clash with the global namespace
        __global__ void k(float *C) {
          mtmusa::wmma::fragment<mtmusa::wmma::accumulator, 16, 16, 16, float> a;
          musa::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> &same = a;
          mtmusa::wmma::fill_fragment(same, 3.0f);
          for (int i = 0; i < a.num_elements; i++) a.x[i] *= 2;
          mtmusa::wmma::store_matrix_sync(C, a, 16, mtmusa::wmma::mem_row_major);
        }
        int main() {
          float *C; musaMalloc(&C, 1024);
          k<<<1, 32>>>(C);
          std::printf("%g %g\\n", C[0], C[255]);
        }"""
    )
    assert text == "6 6\n"


# --- barriers -------------------------------------------------------------------------------------


def kernel_only(body: str, threads: int) -> str:
    return (
        PRELUDE
        + f"""
        __global__ void k(int *p) {{ {body} }}
        int main() {{
          int *p = device_memory<int>(1024);
          k<<<1, {threads}>>>(p);
          std::printf("%d\\n", p[0]);
        }}"""
    )


def test_deadlock(sim: Sim) -> None:
    source = kernel_only("if (threadIdx.x < 64) __syncthreads(); else __syncwarp(); p[0] = 1;", 128)
    message = sim.trap(source, "deadlock")
    assert "threads in __syncthreads: 64 (0-63)" in message
    assert "threads in __syncwarp: 64 (64-127)" in message


def test_ended_threads_do_not_count(sim: Sim) -> None:
    body = "if (threadIdx.x % 3 == 0) return; __syncthreads(); __syncwarp(); p[0] = 5; __syncthreads();"
    assert sim.output(kernel_only(body, 1000)) == "5\n"


def test_barrier_orders_memory(sim: Sim) -> None:
    body = """
      __shared__ int s[1024];
      int t = threadIdx.x;
      s[t] = t;
      __syncthreads();
      for (int d = 512; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
      }
      if (t == 0) p[0] = s[0];"""
    assert sim.output(kernel_only(body, 1024)) == f"{1023 * 512}\n"


def test_crash_says_where(sim: Sim) -> None:
    ran = sim.run(sim.build(kernel_only("if (threadIdx.x == 9) *(volatile int *)(size_t)p[0] = 1; p[0] = 64;", 32)))
    assert ran.code == -11, ran
    assert "kernel k block (0,0,0) thread 9: invalid access to address" in ran.stderr


def test_stack_overflow_is_not_the_programs_fault(sim: Sim) -> None:
    message = sim.trap(
        PRELUDE
        + """
        __device__ __noinline__ int deep(int n) {
          volatile char frame[2000];
          frame[n % 2000] = 1;
          return n ? deep(n - 1) + frame[n % 2000] : 0;
        }
        __global__ void k(int *p) { p[threadIdx.x] = deep(10000); }
        int main() { k<<<1, 32>>>(device_memory<int>(32)); }""",
        "stack overflow",
    )
    assert "kernel k block (0,0,0) thread 0" in message
