"""Programs that launch: with a runtime of public prototypes, and with the stand-in's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mccprobe.targets.sim.build import SHARED_RUNTIME
from mccprobe.targets.sim.toolchain import sim_toolchain
from mccprobe.tuning.trace.run import sim_link_arguments

PROGRAMS = Path(__file__).parent / "programs"
SAXPY = """
#include <musa_runtime.h>
#include <stdio.h>
__global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
template <int N> __global__ void fill(float *x) {
  __shared__ float s[N];
  s[threadIdx.x % N] = N;
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x % N];
}
int main() {
  float *x, *y, sum = 0;
  int n = 1024;
  musaMalloc((void **)&x, n * 4);
  musaMalloc((void **)&y, n * 4);
  musaMemset(y, 0, n * 4);
  fill<3><<<8, 128>>>(x);
  for (int i = 0; i < 5; i++)
    saxpy<<<dim3(4, 2), 128, 512>>>(2.0f, x, y, n);
  saxpy<<<1, 4096>>>(2.0f, x, y, n);
  for (int i = 0; i < n; i++) sum += y[i];
  printf("sum %g error %d\\n", sum, musaGetLastError());
  return 7;
}
"""


@dataclass(frozen=True)
class Programs:
    """app: linked with the runtime; loader and plugin: the runtime is in neither's global scope."""

    app: Path
    loader: Path
    plugin: Path
    static: Path


@pytest.fixture
def programs(compiler: Callable[..., str], request: pytest.FixtureRequest) -> Programs:
    cc = compiler(14)
    made: Programs = request.getfixturevalue("_programs_by")(cc)
    return made


@pytest.fixture(scope="session")
def _programs_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Programs]:
    folder = tmp_path_factory.mktemp("programs")
    made = Programs(folder / "app", folder / "loader", folder / "plugin.so", folder / "static")

    def build(cc: str) -> Programs:
        if made.app.exists():
            return made
        find = [f"-L{folder}", "-lruntime", f"-Wl,-rpath,{folder}"]
        static = folder / "static.c"
        static.write_text('void _start(void) { __asm__("mov $60, %eax; xor %edi, %edi; syscall"); }\n')
        for argv in (
            [
                "-shared",
                "-fPIC",
                "-fsemantic-interposition",
                str(PROGRAMS / "runtime.c"),
                "-o",
                str(folder / "libruntime.so"),
            ],
            [str(PROGRAMS / "loader.c"), "-o", str(made.loader), "-ldl"],
            ["-shared", "-fPIC", str(PROGRAMS / "plugin.c"), *find, "-o", str(made.plugin)],
            ["-static", "-nostdlib", str(static), "-o", str(made.static)],
            [str(PROGRAMS / "app.c"), *find, "-pthread", "-o", str(made.app)],
        ):
            subprocess.run([cc, "-O1", "-Wall", "-Werror", *argv], check=True, capture_output=True)
        return made

    return build


@dataclass(frozen=True)
class SimPrograms:
    """The same source with the stand-in's shared runtime and with the archive inside."""

    shared: Path
    archive: Path


@pytest.fixture
def sim_programs(compiler: Callable[..., str], request: pytest.FixtureRequest) -> SimPrograms:
    compiler(14)
    made: SimPrograms = request.getfixturevalue("_sim_programs_made")
    return made


@pytest.fixture(scope="session")
def _sim_programs_made(tmp_path_factory: pytest.TempPathFactory, root: Path) -> SimPrograms:
    folder = tmp_path_factory.mktemp("sim-programs")
    source = folder / "saxpy.mu"
    source.write_text(SAXPY)
    sim = sim_toolchain(root / ".test-cache")
    assert sim.sdk is not None
    made = SimPrograms(folder / "shared", folder / "archive")
    for program, link in ((made.shared, sim_link_arguments(sim.sdk.root, SHARED_RUNTIME)), (made.archive, [])):
        argv = [*sim.driver, "--offload-arch=mp_22", "-O2", str(source), *link, "-lmusart", "-o", str(program)]
        subprocess.run(argv, check=True, capture_output=True)
    return made
