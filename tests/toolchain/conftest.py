"""A bench for compiles without a command line, the fakes, and the stand-in SDK behind them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.program import Linker, Program, Rest
from mccprobe.build.record import TranslationUnit, of_command
from mccprobe.build.store import RunDirectory
from mccprobe.build.unit import UNLIMITED, RecordedSource, Unit
from mccprobe.oracle.checks import Expected, ReferenceOracle
from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.mcc.toolchain import MccToolchain
from mccprobe.targets.sim.build import sim_sdk

FAKES = Path(__file__).resolve().parents[1] / "fakes"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Compiles of one run in a directory of their own."""
    run = RunDirectory(tmp_path / "run")
    journal, executor = Journal(run.journal), LocalExecutor(2)
    yield Ledger(run, journal, executor)
    executor.shutdown(cancel=True)
    journal.close()


@pytest.fixture
def fake() -> Callable[[str], str]:
    """`fake("mcc_ok")` is the path of that fake."""

    def find(name: str) -> str:
        path = FAKES / name
        assert os.access(path, os.X_OK), f"{path} is not executable"
        return str(path)

    return find


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The stand-in SDK's root, for FAKE_SDK."""
    return sim_sdk(Path(os.environ["MCCPROBE_CACHE"])).root


def linker(recorded: RecordedSource, args: list[str]) -> Linker:
    """The link of a program of one source."""
    build = of_command(recorded.source, recorded.args, [], [one for one in args if one not in recorded.args])
    rest = Rest(recorded.toolchain, recorded.ledger, build, 0, timeout_s=60)
    return Linker(recorded, rest, build.link, 0, name="bad", timeout_s=60)


PROGRAM = """#include <stdio.h>
static int sum(const int *v, int n) { int s = 0; for (int i = 0; i < n; ++i) s += v[i]; return s; }
int main(int argc, char **argv) {
  int v[4] = {1, 2, argc, 4};
  printf("%d GOOD %s\\n", sum(v, 4), argv[0] ? "" : "?");
  return 0;
}
"""


@pytest.fixture
def bench(ledger: Ledger, fake: Callable[[str], str], tmp_path: Path) -> Callable[..., PassAxis]:
    """`bench("mcc_ok")`: the pass axis of a program that a fake compiles wrongly from execution 20 on."""
    source = tmp_path / "program.c"
    source.write_text(PROGRAM, encoding="utf-8")

    def build(name: str, *, timeout_s: float = 60.0) -> PassAxis:
        toolchain = ClangToolchain([fake(name)])
        recorded = RecordedSource(
            toolchain, ledger, TranslationUnit(str(source), ("-O2",)), name="unit", timeout_s=timeout_s
        )
        unit = Unit(recorded, "bad", [CompilerFlag("-fake-fault")])
        unit.begin()
        unit.finish()
        program = Program(unit, linker(recorded, ["-O2"]))
        judge = Judge(program, ReferenceOracle(Expected(b"8 GOOD \n", 0)), ledger.journal)
        total = ledger.compile(unit.job(UNLIMITED)).log.total
        return PassAxis(unit, judge, total, None)

    return build


KERNEL = """#include <cstdio>
#include <musa_runtime.h>
__global__ void answer(int *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = 0x444F4F47 + i;  // "GOOD" as bytes
}
int main() {
  int *device = nullptr, value[2] = {0, 0};
  if (musaMalloc((void **)&device, sizeof value) != musaSuccess) return 2;
  answer<<<1, 1>>>(device, 2);
  if (musaMemcpy(value, device, sizeof value, musaMemcpyDeviceToHost) != musaSuccess) return 3;
  std::printf("%.4s\\n", (const char *)value);
  return 0;
}
"""


@pytest.fixture
def device_bench(
    ledger: Ledger, fake: Callable[[str], str], tmp_path: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PassAxis]:
    """As `bench`, but the fault is in device code, and the toolchain is mcc's own."""
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    source = tmp_path / "answer.mu"
    source.write_text(KERNEL, encoding="utf-8")

    def build(name: str, *archs: str) -> PassAxis:
        toolchain = MccToolchain(Path(fake(name)), None)
        args = [*(f"--offload-arch={arch}" for arch in archs or ("mp_22",)), "-O2"]
        record = TranslationUnit(str(source), tuple(args))
        recorded = RecordedSource(toolchain, ledger, record, name="unit", timeout_s=60)
        unit = Unit(recorded, "bad", [CompilerFlag("-fake-fault")])
        unit.begin()
        unit.finish()
        program = Program(unit, linker(recorded, [*args, "-lmusart"]))
        judge = Judge(program, ReferenceOracle(Expected(b"GOOD\n", 0)), ledger.journal)
        return PassAxis(unit, judge, ledger.compile(unit.job(UNLIMITED)).log.total, None)

    return build
