"""The clang plugin of the stand-in SDK: option surface, the planted fault, and nothing else changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from mccprobe.targets.sim import SimSdk, sim_sdk

pytestmark = pytest.mark.toolchain("clang-14")

FLAG = ["-mllvm", "--mtgpu-enable-internal-regs-ra"]
ARMED = "mccprobe-sim: SIMULATED FAULT armed in machine-scheduler (mtgpu-enable-internal-regs-ra)"
SCHEDULER = "Machine Instruction Scheduler"

# No SDK header: the plugin must not depend on what they do.
KERNELS = """
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
GLOBAL void dot(const float *a, const float *b, float *c, int n) {
  float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int k = 0; k < n; k++)
    for (int i = 0; i < 8; i++) acc[i] = __builtin_fmaf(a[k * 8 + i], b[k * 8 + i], acc[i]);
  for (int i = 0; i < 8; i++) c[i] = acc[i];
}
GLOBAL void scale(const float *a, float *c, float s, float t, int n) {
  for (int i = 0; i < n; i++) c[i] = __builtin_fmaf(a[i], s, t);
}
GLOBAL void no_fma(int *c, int n) { for (int i = 0; i < n; i++) c[i] += i; }
template <int N> GLOBAL void pinned(double *c, double x) {
  for (int i = 0; i < N; i++) c[i] = __builtin_fma(x, c[i], c[i + N]);
}
template GLOBAL void pinned<64>(double *, double);
DEVICE float helper(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__attribute__((host)) void on_host(const float *a, const float *b, float *c, int n) {
  for (int i = 0; i < n; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
}
"""

FLAGS_FOR_MCC = [
    "-mtgpu-if-convert=1",
    "-mtgpu-combine-instr-with-burst=0",
    "-mtgpu-combine-fop-instr=1",
    "-mtgpu-tiny-offset-hint",
    "-mtgpu-enable-const-calc=1",
    "-mtgpu-alloc-shared-memory-from-zero=1",
    "-mtgpu-opt-level=2",
    "-misched-recompute-slotindex",
    "-mtgpu-enable-postra-sched=0",
    "-mtgpu-enable-max-ilp-scheduling-strategy=0",
    "-mtgpu-enchanced-minreg-schedule=1",
    "-mtgpu-enable-cse=0",
    "-mtgpu-enable-preisel-sinking=1",
    "-mtgpu-attr-alloc-first=1",
    "-mtgpu-enable-int-hidden=1",
    "-mtgpu-use-sl=1",
    "-mtgpu-reorder-scheduling=1",
    "-mtgpu-load-store-opt=1",
    "-mtgpu-fold-global-ldst=1",
    "-mtgpu-load-cluster-mutation=1",
    "-mtgpu-store-cluster-mutation=1",
    "-mtgpu-memory-sched-mutation=1",
    "--num-dwords-of-load-in-mutation=64",
    "-mtgpu-internalize-symbols",
    "--FenceSetting=graph_color",
    "--internal-opt-user-fop=false",
    "--internal-opt-user-int=false",
    "--internal-opt-user-bit=false",
    "-mtgpu-maxregcnt=140",
]


@pytest.fixture(scope="module")
def sdk() -> SimSdk:
    built = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
    if not built.has_fault_plugin:
        pytest.skip(built.why_no_plugin)
    return built


class Compiler:
    """Device cc1 jobs of one source, taken from `mcc -###`, so that one job can be varied alone."""

    def __init__(self, sdk: SimSdk, folder: Path) -> None:
        self.sdk = sdk
        self.folder = folder
        self.source = folder / "k.mu"
        self.source.write_text(KERNELS, encoding="utf-8")
        self.count = 0

    def job(self, *flags: str, level: str = "-O3", host: bool = False) -> list[str]:
        argv = [str(self.sdk.mcc), "-###", level, "-c", str(self.source), "-o", "k.o", *flags]
        text = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=self.folder).stderr
        jobs = [re.findall(r'"((?:[^"\\]|\\.)*)"', line) for line in text.splitlines() if line[:2] == ' "']
        return [job for job in jobs if "-cc1" in job][1 if host else 0]

    def run(self, argv: list[str], env: dict[str, str] | None = None) -> tuple[bytes, str]:
        self.count += 1
        out = self.folder / f"out{self.count}.o"
        argv = list(argv)
        argv[argv.index("-o") + 1] = str(out)
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **(env or {})})
        assert done.returncode == 0, done.stderr
        return out.read_bytes(), done.stderr

    def device(self, *flags: str, level: str = "-O3", env: dict[str, str] | None = None) -> tuple[bytes, str]:
        return self.run(self.job(*flags, level=level), env)


@pytest.fixture
def cc(sdk: SimSdk, tmp_path: Path) -> Compiler:
    return Compiler(sdk, tmp_path)


def faults(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def without_plugin(job: list[str]) -> list[str]:
    kept: list[str] = []
    skip = 0
    for index, word in enumerate(job):
        if skip:
            skip -= 1
        elif word == "-load" or (word == "-mllvm" and job[index + 1] == "-mccprobe-sim-device-job"):
            skip = 1
        else:
            kept.append(word)
    assert len(kept) == len(job) - 4
    return kept


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_object_is_the_same_with_and_without_the_plugin(cc: Compiler, level: str) -> None:
    job = cc.job(level=level)
    with_plugin, messages = cc.run(job)
    assert with_plugin == cc.run(without_plugin(job))[0]
    assert messages == ""


def test_flags_of_mcc_are_accepted_and_change_nothing(cc: Compiler) -> None:
    flags = [word for flag in FLAGS_FOR_MCC for word in ("-mllvm", flag)]
    assert cc.device(*flags) == cc.device()


def test_a_value_that_mcc_does_not_know_is_refused(sdk: SimSdk, cc: Compiler) -> None:
    argv = [str(sdk.mcc), "-c", str(cc.source), "-mllvm", "--FenceSetting=other"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=cc.folder)
    assert done.returncode == 1
    assert "Cannot find option named 'other'" in done.stderr


@pytest.mark.parametrize("name", ["mtgpu-max-ilp", "mtgpu-max-occupancy"])
def test_scheduler_names_of_mcc_schedule_as_usual(cc: Compiler, name: str) -> None:
    assert cc.device("-mllvm", f"-misched={name}")[0] == cc.device()[0]


def test_every_option_is_listed_as_simulated(sdk: SimSdk, cc: Compiler) -> None:
    argv = [str(sdk.mcc), "--musa-device-only", "-S", str(cc.source), "-mllvm", "-help-hidden"]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    for flag in [*FLAGS_FOR_MCC, "-mtgpu-enable-internal-regs-ra"]:
        name = flag.lstrip("-").split("=")[0]
        line = next(line for line in text.splitlines() if re.match(rf" +--{name}[= ]", line))
        assert "[mccprobe sim]" in line


def test_exactly_one_fma_of_each_kernel_is_corrupted(cc: Compiler, tmp_path: Path) -> None:
    log = tmp_path / "faults.jsonl"
    env = {"MCCSIM_FAULT_LOG": str(log)}
    broken, messages = cc.device(*FLAG, "-mllvm", "-verify-machineinstrs", env=env)
    assert broken != cc.device()[0]
    assert messages.splitlines() == [ARMED]
    entries = faults(log)
    names = [entry["function"] for entry in entries]
    assert sorted(names) == ["_Z3dotPKfS0_Pfi", "_Z5scalePKfPfffi", "_Z6pinnedILi64EEvPdd"]
    for entry in entries:
        assert str(entry["opcode"]).startswith("VFMADD")
        assert entry["before"] != entry["after"]
    again = tmp_path / "again.jsonl"
    assert cc.device(*FLAG, env={"MCCSIM_FAULT_LOG": str(again)})[0] == broken
    assert faults(again) == entries


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
@pytest.mark.parametrize("mode", ["one", "all"])
def test_corrupted_code_passes_the_machine_verifier(cc: Compiler, tmp_path: Path, level: str, mode: str) -> None:
    log = tmp_path / "faults.jsonl"
    env = {"MCCSIM_FAULT_LOG": str(log), "MCCSIM_FAULTS": mode}
    cc.device(*FLAG, "-mllvm", "-verify-machineinstrs", level=level, env=env)
    assert len(faults(log)) >= 3


def test_all_mode_corrupts_more(cc: Compiler, tmp_path: Path) -> None:
    log = tmp_path / "faults.jsonl"
    flags = [*FLAG, "-funroll-loops"]
    cc.device(*flags, env={"MCCSIM_FAULT_LOG": str(log), "MCCSIM_FAULTS": "all"})
    assert len(faults(log)) > 3


def test_no_scheduler_at_o0_and_no_fault(cc: Compiler) -> None:
    plain = cc.device(level="-O0")
    assert cc.device(*FLAG, level="-O0") == plain


@pytest.mark.parametrize("switch", ["-enable-misched=false", "-misched=converge"])
def test_other_schedulers_have_no_fault(cc: Compiler, switch: str) -> None:
    assert cc.device(*FLAG, "-mllvm", switch) == cc.device("-mllvm", switch)


def test_bypass_switches_keep_the_fault(cc: Compiler) -> None:
    switches = [w for kind in ("fop", "int", "bit") for w in ("-mllvm", f"--internal-opt-user-{kind}=false")]
    assert cc.device(*FLAG, *switches) == cc.device(*FLAG)


def test_naming_the_fault_scheduler_without_the_flag_plants_nothing(cc: Compiler) -> None:
    named = cc.device("-mllvm", "-misched=mccprobe-sim-internal-regs-ra")
    assert named == cc.device()


def test_host_object_never_changes(cc: Compiler) -> None:
    jobs = [cc.job(*flags, host=True) for flags in ([], FLAG)]
    bundle = cc.folder / "empty.musafb"
    bundle.write_bytes(b"x")
    for job in jobs:
        job[job.index("-fcuda-include-gpubinary") + 1] = str(bundle)
    plain, flagged = (cc.run(job) for job in jobs)
    assert plain == flagged
    assert plain[0] == cc.run([w for w in jobs[0] if w != "-load" and "mccsim.so" not in w])[0]


def test_armed_without_an_eligible_instruction_is_the_normal_schedule(cc: Compiler) -> None:
    text = "__attribute__((global)) void k(int *c, int n) { for (int i = 0; i < n; i++) c[i] = c[i] * n + i; }"
    cc.source.write_text(text, encoding="utf-8")
    plain, _ = cc.device()
    armed, messages = cc.device(*FLAG)
    assert ARMED in messages
    assert armed == plain


def bisect_lines(messages: str) -> list[tuple[int, str, str]]:
    found = re.findall(r"BISECT: running pass \((\d+)\) (.*?) on (.*)", messages)
    return [(int(number), name, target) for number, name, target in found]


def test_fault_appears_with_the_scheduler_execution_of_its_function(cc: Compiler) -> None:
    lines = bisect_lines(cc.device(*FLAG, "-mllvm", "-opt-bisect-limit=-1")[1])
    number = next(n for n, name, target in lines if name == SCHEDULER and "_Z3dot" in target)
    for limit, same in ((0, True), (number - 1, True), (number, False)):
        flags = ["-mllvm", f"-opt-bisect-limit={limit}"]
        assert (cc.device(*FLAG, *flags)[0] == cc.device(*flags)[0]) is same, limit


def test_numbering_is_that_of_plain_clang(cc: Compiler) -> None:
    flags = ["-mllvm", "-opt-bisect-limit=-1"]
    plain = bisect_lines(cc.run(without_plugin(cc.job(*flags)))[1])
    assert bisect_lines(cc.device(*FLAG, *flags)[1]) == plain
    assert any(name == SCHEDULER for _, name, _ in plain)


def test_bitcode_gives_the_same_object_at_any_limit(cc: Compiler) -> None:
    front = [*cc.job(*FLAG), "-disable-llvm-passes"]
    front[front.index("-emit-obj")] = "-emit-llvm-bc"
    bitcode = cc.folder / "k.bc"
    bitcode.write_bytes(cc.run(front)[0])
    lines = bisect_lines(cc.device(*FLAG, "-mllvm", "-opt-bisect-limit=-1")[1])
    scheduler = next(n for n, name, _ in lines if name == SCHEDULER)
    for limit in (-1, 0, 1, lines[-1][0] // 2, scheduler - 1, scheduler, lines[-1][0]):
        job = cc.job(*FLAG, "-mllvm", f"-opt-bisect-limit={limit}")
        from_ir = list(job)
        from_ir[from_ir.index("-x") + 1 :] = ["ir", str(bitcode)]
        assert cc.run(from_ir)[0] == cc.run(job)[0], limit


def test_unwritable_fault_log_is_reported(cc: Compiler) -> None:
    messages = cc.device(*FLAG, env={"MCCSIM_FAULT_LOG": "/nonexistent/x"})[1]
    assert "cannot write the fault log" in messages
