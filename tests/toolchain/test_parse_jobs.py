"""`-###` as text: literal snippets with every difficulty, and what the installed clangs print today."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.targets.llvm.jobs import (
    Job,
    JobKind,
    back_end_argv,
    cc1_input,
    emits_object,
    front_end_argv,
    mllvm_options,
    option_key,
    parse_jobs,
    value_after,
    with_mllvm,
    with_stable_cuid,
)

# Invented shape, put together from mtgpu.md 2.3 (the cc1 flags are CUDA-named; libdevice.bc, then lld with
# the object and trap_handler.o from lib/clang/14.0.0/lib/linux, then the bundler): not an mcc recording.
MCC_SHAPED = """\
clang version 14.0.0 (invented)
mcc version 5.2.0 (invented)
Target: x86_64-unknown-linux-gnu
Thread model: posix
InstalledDir: /usr/local/musa/bin
 "/usr/local/musa/bin/clang-14" "-cc1" "-triple" "mtgpu-mt-musa" "-aux-triple" "x86_64-unknown-linux-gnu" "-emit-obj" "-main-file-name" "k.mu" "-mlink-builtin-bitcode" "/usr/local/musa/mtgpu/bitcode/libdevice.bc" "-fcuda-is-device" "-target-cpu" "mp_22" "-resource-dir" "/usr/local/musa/lib/clang/14.0.0" "-O2" "-mllvm" "-mtgpu-opt-level=1" "-o" "/tmp/k-1a2b3c/k-mp_22.o" "-x" "musa" "k.mu"
 "/usr/local/musa/bin/lld" "-flavor" "gnu" "-shared" "--no-undefined" "-plugin-opt=mcpu=mp_22" "-o" "/tmp/k-4d5e6f/k-mp_22.out" "/tmp/k-1a2b3c/k-mp_22.o" "/usr/local/musa/lib/clang/14.0.0/lib/linux/trap_handler.o"
 "/usr/local/musa/bin/clang-offload-bundler" "-type=o" "-bundle-align=4096" "-targets=host-x86_64-unknown-linux-gnu,musa-mtgpu-mt-musa-mp_22" "-inputs=/dev/null,/tmp/k-4d5e6f/k-mp_22.out" "-outputs=/tmp/k-7a8b9c.musafb"
 "/usr/local/musa/bin/clang-14" "-cc1" "-triple" "x86_64-unknown-linux-gnu" "-aux-triple" "mtgpu-mt-musa" "-emit-obj" "-fcuda-include-gpubinary" "/tmp/k-7a8b9c.musafb" "-target-cpu" "x86-64" "-o" "k.o" "-x" "musa" "k.mu"
"""  # noqa: E501


def line(*argv: str) -> str:
    """As clang/lib/Driver/Job.cpp prints it: a blank, then each argument quoted."""
    escaped = (argument.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") for argument in argv)
    return "".join(f' "{argument}"' for argument in escaped) + "\n"


def test_mcc_shaped_text() -> None:
    device, link, bundle, host = parse_jobs(MCC_SHAPED)
    assert (device.kind, device.arch, device.output) == (JobKind.DEVICE_COMPILE, "mp_22", "/tmp/k-1a2b3c/k-mp_22.o")
    assert (link.kind, link.arch, link.output) == (JobKind.DEVICE_LINK, "mp_22", "/tmp/k-4d5e6f/k-mp_22.out")
    assert (bundle.kind, bundle.output) == (JobKind.BUNDLE, "/tmp/k-7a8b9c.musafb")
    assert (host.kind, host.output) == (JobKind.HOST_COMPILE_WITH_IMAGE, "k.o")
    assert value_after(device.argv, "-mlink-builtin-bitcode").endswith("libdevice.bc")
    assert cc1_input(device.argv) == "k.mu" and emits_object(device)
    moved = bundle.substitute({link.output: "new.out", bundle.output: "new.fb"})
    assert moved.argv[-2:] == ("-inputs=/dev/null,new.out", "-outputs=new.fb") and moved.output == "new.fb"
    assert link.substitute({device.output: "new.o"}).argv[-2] == "new.o"


@pytest.mark.parametrize(
    "argument",
    ['say="hi"', "back\\slash", "$HOME", "two words", "", "line\nbreak", 'a "quoted" end\\', '\n "-cc1"', "a=b,c"],
)
def test_every_argument_comes_back(argument: str) -> None:
    (job,) = parse_jobs(line("/usr/bin/clang", "-cc1", "-D", argument, "-o", "x.o", "-x", "c", "x.c"))
    assert job.argv == ("/usr/bin/clang", "-cc1", "-D", argument, "-o", "x.o", "-x", "c", "x.c")


def test_other_lines_are_passed_over() -> None:
    text = (
        "clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n (in-process)\n"
        + line("/c/clang", "-cc1", "-emit-obj", "-o", "a.o", "-x", "c", "a.c")
        + 'clang: warning: argument unused: "-lm"\n'
        + line("/usr/bin/ld", "-o", "a.out", "a.o")
    )
    assert [job.kind for job in parse_jobs(text)] == [JobKind.COMPILE, JobKind.LINK]


@pytest.mark.parametrize("text", ["", "\n\n", ' "unterminated', ' "', "no jobs here", ' ""\n'])
def test_damaged_text_gives_no_exception(text: str) -> None:
    parse_jobs(text)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("/x/ld.lld", "-o", "p"), JobKind.LINK),
        (("/usr/bin/ld", "-o", "p"), JobKind.LINK),
        (("/usr/bin/x86_64-linux-gnu-ld", "-o", "p"), JobKind.LINK),
        (("/usr/bin/ldd", "-o", "p"), JobKind.OTHER),
        (("/x/lld", "-flavor", "gnu", "-o", "p"), JobKind.LINK),
        (("/x/clang-offload-bundler", "-type=o", "-output=p"), JobKind.BUNDLE),
        (("/x/clang", "-cc1as", "-o", "p"), JobKind.OTHER),
        (("/x/clang", "-cc1", "-triple", "amdgcn-amd-amdhsa", "-o", "p"), JobKind.DEVICE_COMPILE),
        (("/x/clang", "-cc1", "-triple", "mthg-mt-musa", "-o", "p"), JobKind.DEVICE_COMPILE),
    ],
)
def test_kinds(argv: tuple[str, ...], kind: JobKind) -> None:
    (job,) = parse_jobs(line(*argv))
    assert (job.kind, job.output) == (kind, "p")


# --- edits ----------------------------------------------------------------------------------------

CC1 = ("clang", "-cc1", "-emit-obj", "-mllvm", "-mtgpu-x=1", "-o", "a.o", "-x", "musa", "k.mu")


@pytest.mark.parametrize("given", ["-mtgpu-x=1", "--mtgpu-x=1", "-mtgpu-x", "--mtgpu-x=0"])
def test_an_option_that_is_there_is_not_added(given: str) -> None:
    assert with_mllvm(CC1, [given]) == CC1


def test_options_go_before_the_input_and_each_once() -> None:
    argv = with_mllvm(CC1, ["-opt-bisect-limit=3", "--opt-bisect-limit=3"])
    assert argv == (*CC1[:7], "-mllvm", "-opt-bisect-limit=3", *CC1[7:])


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (("-mllvm", "-a", "-O2", "-mllvm", "--b=1"), ["-a", "--b=1"]),
        (("-mllvm=-a",), ["-a"]),
        (("-Xclang", "-mllvm", "-Xclang", "-a=2", "-O2"), ["-a=2"]),
        (("-mllvm",), []),
    ],
)
def test_llvm_options_in_every_spelling(argv: tuple[str, ...], found: list[str]) -> None:
    assert mllvm_options(argv) == found


def test_option_keys() -> None:
    assert {option_key(text) for text in ("-x", "--x", "-x=1", "--x=a=b")} == {"x"}


def test_front_and_back_end() -> None:
    (job,) = parse_jobs(line(*CC1))
    front = front_end_argv(job, "k.bc")
    assert front[2] == "-emit-llvm-bc" and value_after(front, "-o") == "k.bc"
    assert front[-4:] == ("-disable-llvm-passes", "-x", "musa", "k.mu")
    back = back_end_argv(job, "k.bc", "out.o", options=["-opt-bisect-limit=1"])
    assert back[-3:] == ("-x", "ir", "k.bc") and value_after(back, "-o") == "out.o"
    assert back_end_argv(job, "", "out.s", language="", emit="-S")[2] == "-S"


def test_the_random_compile_unit_id_is_replaced_in_all_jobs() -> None:
    with_id, without = line("c", "-cc1", "-cuid=1f", "-o", "a"), line("c", "-cc1", "-o", "b")
    jobs = parse_jobs(with_id + without + with_id)
    fixed = with_stable_cuid(jobs, "seed")
    assert fixed[0].argv[2] == fixed[2].argv[2] != "-cuid=1f" and fixed[1] == jobs[1]
    assert with_stable_cuid(jobs, "seed") == fixed != with_stable_cuid(jobs, "another")


# --- today's compilers ----------------------------------------------------------------------------


def words_of_a_shell(text: str) -> tuple[str, ...]:
    """An outside reference: `-###` lines are made for pasting into a shell."""
    script = 'eval "set -- $1"; printf "%s\\0" "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", text], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split("\0")[:-1])


def printed(compiler: str, *args: str) -> tuple[Job, ...]:
    done = subprocess.run([compiler, "-###", *args], capture_output=True, text=True, check=True)
    jobs = parse_jobs(done.stderr)
    lines = [text for text in done.stderr.splitlines() if text.startswith(' "')]
    assert len(jobs) == len(lines)
    for job, text in zip(jobs, lines, strict=True):
        assert job.argv == words_of_a_shell(text)
    return jobs


@pytest.mark.toolchain
@pytest.mark.parametrize("version", [13, 14, 15, 16, 19])
def test_a_host_compile_and_link(version: int, compiler: Callable[..., str], tmp_path: Path) -> None:
    source = tmp_path / 'odd "name" $x.c'
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    define = '-DTEXT="a\\b $c"'
    compile_job, link = printed(compiler(version), define, "-O2", "-mllvm", "-enable-misched=false", str(source))
    assert (compile_job.kind, link.kind) == (JobKind.COMPILE, JobKind.LINK)
    assert value_after(compile_job.argv, "-D") == define[2:] and cc1_input(compile_job.argv) == str(source)
    assert "-enable-misched=false" in mllvm_options(compile_job.argv)
    assert compile_job.output in link.argv and emits_object(compile_job)
    output = tmp_path / "out.o"
    subprocess.run(back_end_argv(compile_job, "", str(output), language=""), check=True, capture_output=True)
    assert output.stat().st_size > 0


@pytest.mark.toolchain
@pytest.mark.parametrize("version", [13, 14, 15, 16, 19])
def test_a_hip_compile_for_two_architectures(version: int, compiler: Callable[..., str], tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text("__attribute__((device)) int x;\n", encoding="utf-8")
    args = ("-x", "hip", "-nogpulib", "-nogpuinc", "--offload-arch=gfx906", "--offload-arch=gfx908", "-c", str(source))
    jobs = printed(compiler(version), *args, "-o", "k.o")
    kinds = [job.kind for job in jobs]
    assert kinds.count(JobKind.DEVICE_COMPILE) == kinds.count(JobKind.DEVICE_LINK) == 2
    assert kinds[-2:] == [JobKind.BUNDLE, JobKind.HOST_COMPILE_WITH_IMAGE]
    for kind in (JobKind.DEVICE_COMPILE, JobKind.DEVICE_LINK):
        assert [job.arch for job in jobs if job.kind is kind] == ["gfx906", "gfx908"]
