"""A driver's command taken apart: what comes out is the driver's own, whoever compiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.process import RunSpec, run
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.job import CompileJob, CompileOutcome, compile_once
from mccprobe.build.replay import is_compile, replay
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.targets.llvm.opt_bisect import LogReader
from mccprobe.targets.sim.toolchain import sim_toolchain
from mccprobe.tuning.check.build import BuiltKernel, build_kernel

SOURCE = "#include <stdio.h>\nint main(void) { return puts(NAME) < 0; }\n"
Jobs = list[CompileJob]


def counted(jobs: Jobs) -> Callable[[CompileJob], CompileOutcome]:
    def compile_one(job: CompileJob) -> CompileOutcome:
        jobs.append(job)
        return compile_once(job)

    return compile_one


def given(tmp_path: Path, compiler: str, *options: str, output: str = "out.o", **more: object) -> RunSpec:
    (tmp_path / "prog.c").write_text(SOURCE)
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    return RunSpec([compiler, *options, "-c", "prog.c", "-o", output], cwd=tmp_path, env=env, timeout_s=60.0, **more)  # type: ignore[arg-type]


def test_what_is_a_compile() -> None:
    assert is_compile(["clang", "-c", "x.c", "-o", "x.o"]) and is_compile(["clang", "-c", "-o", "x"])
    assert not is_compile(["clang", "x.o", "-o", "x"]) and not is_compile(["ld.lld", "-shared", "x.o", "-o", "x"])
    assert not is_compile(["clang", "-c", "x.c"]) and not is_compile(["clang", "-###", "-c", "x.c", "-o", "x.o"])


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("options", [("-O2", '-DNAME="a b"'), ("-O1", "-g", "-DNAME=__FILE__")])
def test_the_driver_s_own_object(compiler: Callable[..., str], tmp_path: Path, options: tuple[str, ...]) -> None:
    clang, jobs = compiler(14), Jobs()
    assert run(given(tmp_path, clang, *options, output="direct.o")).ok
    # -main-file-name and debug information hold no output name, so the objects are one
    assert replay(given(tmp_path, clang, *options), counted(jobs)).ok and len(jobs) == 1
    assert (tmp_path / "out.o").read_bytes() == (tmp_path / "direct.o").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"prog.c", "out.o", "direct.o"}, "nothing is left between"


@pytest.mark.toolchain("clang-14")
def test_what_fails_elsewhere_is_said_by_the_driver(compiler: Callable[..., str], tmp_path: Path) -> None:
    clang, jobs = compiler(14), Jobs()
    wrong = given(tmp_path, clang, "-DNAME=nobody")
    here, there = run(wrong), replay(wrong, counted(jobs))
    assert (there.describe(), there.stderr) == (here.describe(), here.stderr) and b"nobody" in there.stderr and jobs


@pytest.mark.toolchain("clang-14")
def test_a_machine_in_trouble_says_nothing_about_the_compile(compiler: Callable[..., str], tmp_path: Path) -> None:
    def in_trouble(job: CompileJob) -> CompileOutcome:
        return CompileOutcome(None, "compile: signal SIGKILL", 0.1, LogReader(0).finish()[0], "out of memory")

    assert replay(given(tmp_path, compiler(14), '-DNAME="x"'), in_trouble).ok and (tmp_path / "out.o").is_file()


@pytest.mark.toolchain("clang-14")
def test_a_time_limit_is_one(compiler: Callable[..., str], tmp_path: Path) -> None:
    def too_slow(job: CompileJob) -> CompileOutcome:
        return CompileOutcome(None, "compile: timeout after 60.0 s", 60.0, LogReader(0).finish()[0], "still at it")

    result = replay(given(tmp_path, compiler(14), '-DNAME="x"'), too_slow)
    assert result.timed_out and not result.ok and result.describe() == "timeout after 60.0 s"
    assert not (tmp_path / "out.o").exists()


def test_a_driver_that_shows_no_jobs_runs_here(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text('#!/bin/sh\n[ "$1" = "-###" ] || echo object >"$4"\n')
    silent.chmod(0o755)
    jobs = Jobs()
    assert replay(given(tmp_path, str(silent)), counted(jobs)).ok and not jobs
    assert (tmp_path / "out.o").read_text() == "object\n"


@pytest.mark.toolchain("clang-14")
def test_device_and_host_of_a_kernel(tmp_path: Path) -> None:
    """Both halves by the parts give the device object and the launches of the plain build."""
    toolchain, jobs = sim_toolchain(Path(os.environ["MCCPROBE_CACHE"])), Jobs()

    def step(spec: RunSpec):  # type: ignore[no-untyped-def]
        return replay(spec, counted(jobs)) if is_compile(spec.argv) else run(spec)

    plain = build_kernel(shipped_kernel("gemm"), toolchain, folder=tmp_path / "plain")
    parts = build_kernel(shipped_kernel("gemm"), toolchain, folder=tmp_path / "parts", step=step)
    assert isinstance(plain, BuiltKernel) and isinstance(parts, BuiltKernel), parts
    assert (parts.device_object, parts.launchable) == (plain.device_object, plain.launchable)
    assert [job.suffix for job in jobs] == [".o"] * 4  # kernel and host program, device and host


def test_the_local_executor_runs_it_as_it_is(tmp_path: Path) -> None:
    executor = LocalExecutor(1)
    assert executor.build_step(RunSpec(["sh", "-c", "echo $0"], cwd=tmp_path)).stdout == b"sh\n"
    executor.shutdown(cancel=True)
