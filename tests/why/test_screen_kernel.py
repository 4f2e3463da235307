"""The screen of kernels on the stand-in: faults planted in one kernel, and the shipped kernel, which has none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.run import ScreenChecks, screen
from mccprobe.report.why_record import ScreenOutcome, StepState

CACHE = Path(os.environ["MCCPROBE_CACHE"])  # the stand-in SDK is built there once
CLEAN, FINDING, NOT_RUN = ScreenOutcome.CLEAN, ScreenOutcome.FINDING, ScreenOutcome.NOT_RUN

pytestmark = pytest.mark.toolchain("clang-14")

# Overflow; a write behind a shared array; a shared word that nobody wrote; a shift by one place in a race
FAULTS = """
#include <musa_runtime.h>
#include <stdio.h>
__global__ void faulty(int *out, int n) {
  __shared__ int row[128];
  __shared__ int unset[4];
  int t = threadIdx.x;
  int most = 2147483647;
  row[t] = t;
  if (t == 5) row[n] = most + n;
  __syncthreads();
  row[t] = row[(t + 127) % 128];
  out[t] = row[t] + (unset[t & 3] & 1);
}
int main() {
  int *device, host[128], sum = 0;
  musaMalloc((void **)&device, sizeof host);
  faulty<<<1, 128>>>(device, 128);
  musaMemcpy(host, device, sizeof host, musaMemcpyDeviceToHost);
  for (int i = 0; i < 128; i++) sum += host[i] * (i % 7);
#ifdef __OPTIMIZE__
  sum++;
#endif
  printf("%d\\n", sum);
}
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    made = Session(2)
    yield made
    made.close()


def opened(session: Session, root: Path, options: BisectOptions) -> Workspace:
    request = make_plan(options, CACHE).request
    run, journal = session.open(root)
    return open_workspace(request, Ledger(run, journal, session.executor), journal)


def test_planted_faults(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "faulty.mu"
    source.write_text(FAULTS)
    options = BisectOptions(
        file=str(source), toolchain="sim", args=("-O1", "--offload-arch=mp_22", "-lmusart"), reference="-O0"
    )
    workspace = opened(session, tmp_path / "run", options)
    rows = {(name, part): check for name, part, check in ScreenChecks(workspace, Deadline()).rows()}
    for name, part, word in (
        ("UBSan", "program", "runtime error: "),
        ("ASan", "program", "global-buffer-overflow"),
        ("emulator: memory not poisoned", "kernel", "memory that is not poisoned"),
        ("emulator: warps of 32 lanes", "kernel", "a race"),
    ):
        found = rows[name, part]()
        assert found.outcome is FINDING and word in found.text, found
    for part in ("host", "kernel"):
        assert rows["MSan", part]().outcome is NOT_RUN and rows["MSan", part]().text


DIVERGENT = """
#define __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <crt/mma.h>
#undef __MUSA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <musa_runtime.h>
#include <stdio.h>
using namespace mtmusa::wmma;
__global__ void tile(const half *a, float *out) {
  fragment<matrix_a, 32, 32, 16, half, col_major> one;
  fragment<matrix_b, 32, 32, 16, half, col_major> other;
  fragment<accumulator, 32, 32, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(one, a + threadIdx.x / 64 * 32, 64);
  load_matrix_sync(other, a, 16);
  mma_sync(sum, one, other, sum);
  store_matrix_sync(out, sum, 32, mem_col_major);
}
int main() {
  half *a; float *out, first;
  musaMalloc((void **)&a, 64 * 16 * sizeof(half));
  musaMemset(a, 0, 64 * 16 * sizeof(half));
  musaMalloc((void **)&out, 32 * 32 * sizeof(float));
  tile<<<1, 128>>>(a, out);
  musaMemcpy(&first, out, sizeof first, musaMemcpyDeviceToHost);
#ifdef __OPTIMIZE__
  first++;
#endif
  printf("%g\\n", first);
}
"""


def test_divergence_is_trapped_whatever_the_environment_says(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCCSIM_DIVERGE", "first")
    source = tmp_path / "divergent.mu"
    source.write_text(DIVERGENT)
    options = BisectOptions(
        file=str(source), toolchain="sim", args=("-O1", "--offload-arch=mp_22", "-lmusart"), reference="-O0"
    )
    workspace = opened(session, tmp_path / "run", options)
    [check] = [row[2] for row in ScreenChecks(workspace, Deadline()).rows() if "divergent" in row[0]]
    found = check()
    assert found.outcome is FINDING and "TRAP divergent WMMA operand" in found.text
    assert "MCCSIM_DIVERGE=trap" in found.command


def test_the_shipped_kernel_is_clean(session: Session, tmp_path: Path) -> None:
    workspace = opened(session, tmp_path / "run", BisectOptions(flags=("internal-regs-ra",)))
    told: list[str] = []
    result = screen(workspace.request, workspace, tell=told.append, deadline=Deadline())
    assert result.state is StepState.DONE and result.clean and not result.reason
    assert len(told) == len(result.checks)
    outcomes = {(check.name, check.part): check.outcome for check in result.checks}
    assert set(outcomes.values()) == {CLEAN, NOT_RUN}
    not_run = {key for key, outcome in outcomes.items() if outcome is NOT_RUN}
    assert not_run == {("MSan", "host"), ("MSan", "kernel"), ("TSan", "kernel")}
