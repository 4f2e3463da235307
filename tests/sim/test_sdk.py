"""The stand-in SDK: its builder, the mcc driver and the bundler."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mccprobe.base import console
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.targets.sim import SimBuildError, SimSdk, build, sim_sdk

pytestmark = pytest.mark.toolchain("clang-14")

HOST_ID = "host-x86_64-unknown-linux-gnu"
DEVICE_ID = "musa-mtgpu-mt-musa-"
IRA = ["-mllvm", "--mtgpu-enable-internal-regs-ra"]
KERNEL = "__attribute__((global)) void k(int *c) { c[0] = ARCH; }\n".replace("ARCH", "__MUSA_ARCH__")
HOST_ONLY = "int helper() { return 3; }\n"


@pytest.fixture(scope="module")
def sdk() -> SimSdk:
    return sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a kernel, and an empty TMPDIR beside it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.chdir(folder)
    (folder / "k.mu").write_text("#ifdef __MUSA_ARCH__\n" + KERNEL + "#endif\n", encoding="utf-8")
    return folder


def left_in_tmp() -> list[str]:
    return sorted(path.name for path in Path(os.environ["TMPDIR"]).iterdir())


def call(tool: Path, *args: str, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(tool), *args], capture_output=True, text=True, input=stdin)
    assert done.returncode == code, f"{args}: exit {done.returncode}\n{done.stderr}"
    return done


def jobs_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(' "')]
    return [[re.sub(r"\\(.)", r"\1", w) for w in re.findall(r'"((?:[^"\\]|\\.)*)"', line)] for line in lines]


def listed(sdk: SimSdk, path: str) -> list[str]:
    return call(sdk.root / "bin" / "clang-offload-bundler", "--type=o", f"--inputs={path}", "--list").stdout.split()


def repository_kernel() -> tuple[str, str]:
    root = Path(__file__).resolve().parents[2]
    pair = root / "kernels/gemm/gemm.mu", root / "kernels/common/gemm_main.mu"
    return str(pair[0]), str(pair[1])


# --- builder ------------------------------------------------------------------------------------


def test_layout_of_the_sdk(sdk: SimSdk) -> None:
    version = json.loads((sdk.root / "version.json").read_text(encoding="utf-8"))
    assert version["musa_toolkits"]["version"] == "0-sim"
    assert version["simulated"] is True
    assert sdk.mcc == sdk.root / "bin/mcc"
    assert (sdk.root / "include/musa_runtime.h").is_file()
    assert (sdk.root / "lib/libmusart.a").is_file()
    assert (sdk.root / "lib/mccsim.so").is_file() is sdk.has_fault_plugin
    assert bool(sdk.why_no_plugin) is not sdk.has_fault_plugin


def test_second_call_starts_no_process(sdk: SimSdk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(build, "run", refuse)
    assert sim_sdk(Path(os.environ["MCCPROBE_CACHE"])) == sdk


def small_sources(folder: Path) -> Path:
    """A source tree with next to nothing in it, to build in a moment."""
    for name in ("driver", "include", "runtime", "plugin"):
        (folder / name).mkdir(parents=True)
    for name in ("main", "bundler"):
        (folder / f"driver/{name}.cpp").write_text("int main() { return 0; }\n", encoding="utf-8")
    (folder / "runtime/empty.cpp").write_text("int nothing() { return 0; }\n", encoding="utf-8")
    return folder


def test_without_llvm_headers_all_but_the_plugin_is_built(
    sdk: SimSdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_HERE", small_sources(tmp_path / "src"))
    monkeypatch.setattr(build, "_PLUGIN_HEADER", "no/such/header.h")
    first = sim_sdk(tmp_path / "cache")
    assert not first.has_fault_plugin
    assert "llvm-14-dev" in first.why_no_plugin
    assert not (first.root / "lib/mccsim.so").exists()
    monkeypatch.undo()
    monkeypatch.setattr(build, "_HERE", tmp_path / "src")
    assert build._fingerprint(build._find_tools(tmp_path / "cache/sim", "clang-14")) != first.root.name
    # the driver, which is not in the small tree, does not name a plugin that is not there
    shutil.copytree(sdk.root, tmp_path / "sdk", ignore=shutil.ignore_patterns("mccsim*.so"))
    (tmp_path / "k.mu").write_text(KERNEL, encoding="utf-8")
    with_plugin, without = (
        call(root / "bin/mcc", "-###", "-c", str(tmp_path / "k.mu")).stderr for root in (sdk.root, tmp_path / "sdk")
    )
    assert "mccsim.so" not in without and "mccprobe-sim-device-job" not in without
    assert not sdk.has_fault_plugin or "mccsim.so" in with_plugin


def test_damaged_sdk_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_HERE", small_sources(tmp_path / "src"))
    monkeypatch.setattr(build, "_PLUGIN_HEADER", "no/such/header.h")
    first = sim_sdk(tmp_path / "cache")
    first.mcc.unlink()
    assert sim_sdk(tmp_path / "cache") == first
    assert first.mcc.is_file()
    assert [p.name for p in (tmp_path / "cache/sim").iterdir() if p.name.startswith(".")] == []


def test_source_error_is_reported_with_the_compilers_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = small_sources(tmp_path / "src")
    (source / "runtime/empty.cpp").write_text("int broken(", encoding="utf-8")
    monkeypatch.setattr(build, "_HERE", source)
    monkeypatch.setattr(build, "_PLUGIN_HEADER", "no/such/header.h")
    with pytest.raises(SimBuildError) as caught:
        sim_sdk(tmp_path / "cache")
    assert "empty.cpp" in caught.value.stderr
    assert any("empty.cpp" in word for word in caught.value.command)
    assert caught.value.hint
    left = [path for path in (tmp_path / "cache/sim").iterdir() if path.is_dir()]
    assert left == []


FIRST_USE = ["bisect", "--flag", "internal-regs-ra", "--toolchain", "sim"]


@pytest.mark.parametrize("options", [FIRST_USE, [*FIRST_USE, "--json"], ["-q", *FIRST_USE]], ids=["", "json", "quiet"])
def test_the_first_build_is_announced_before_it_begins(
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call_cli: Callable[..., tuple[int, str, str]],
) -> None:
    said: list[str] = []  # on standard error before the first compile

    def refuse(argv: Sequence[str]) -> RunResult:
        said.append(capsys.readouterr().err)
        raise SimBuildError("refused by the test")

    monkeypatch.setattr(build, "_clang_version", lambda *_: "clang version 14.0.6")
    monkeypatch.setattr(build, "_step", refuse)
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path / "cache"))
    code, stdout, _ = call_cli(*options)
    files = len([path for part in ("plugin", "runtime", "driver") for path in (build._HERE / part).glob("*.cpp")])
    place = tmp_path / "cache/sim"
    expected = f"... building the stand-in SDK in {place} (first use only): compiling {files} files\n"
    assert said[0] == ("" if "-q" in options else expected)
    assert code == 3
    assert json.loads(stdout)["status"] == "error" if "--json" in options else stdout == ""


def test_on_a_terminal_each_compiled_file_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call_cli: Callable[..., tuple[int, str, str]],
) -> None:
    monkeypatch.setattr(build, "_HERE", small_sources(tmp_path / "src"))
    monkeypatch.setattr(build, "_PLUGIN_HEADER", "no/such/header.h")
    monkeypatch.setattr(build, "_step", lambda argv: run(RunSpec(["true"])))
    monkeypatch.setattr(build, "_clang_version", lambda *_: "clang version 14.0.6")
    monkeypatch.setattr(console, "animated", lambda: True)
    monkeypatch.setattr(console, "terminal_width", lambda: 500)
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path / "cache"))
    _, _, stderr = call_cli(*FIRST_USE)
    files = len([path for part in ("runtime", "driver") for path in (tmp_path / "src" / part).glob("*.cpp")])
    assert files > 2
    assert [text for text in stderr.split("\r\x1b[2K") if "compiled" in text] == [
        f"... building the stand-in SDK in {tmp_path}/cache/sim (first use only): {done} of {files} files compiled"
        for done in range(1, files + 1)
    ]


def test_a_build_that_waits_for_another_one_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call_cli: Callable[..., tuple[int, str, str]],
) -> None:
    monkeypatch.setattr(build, "_clang_version", lambda *_: "clang version 14.0.6")
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/sim").mkdir(parents=True)
    with (tmp_path / "cache/sim/lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: (waiting.wait(60), fcntl.flock(held, fcntl.LOCK_UN)))
        waiting = threading.Event()
        plain = console.Console.progress

        def progress(self: console.Console, text: str, *, live: str | None = None) -> None:
            plain(self, text, live=live)
            waiting.set()

        def refuse(argv: Sequence[str]) -> RunResult:
            raise SimBuildError("refused by the test")

        monkeypatch.setattr(console.Console, "progress", progress)
        monkeypatch.setattr(build, "_step", refuse)
        other.start()
        _, _, stderr = call_cli(*FIRST_USE)
        other.join()
    assert "... waiting: another mccprobe is building the stand-in SDK\n" in stderr


def test_two_processes_at_once_give_one_sdk(tmp_path: Path) -> None:
    source = small_sources(tmp_path / "src")
    script = (
        "import sys; from pathlib import Path; from mccprobe.targets.sim import build;"
        "build._HERE = Path(sys.argv[1]); build._PLUGIN_HEADER = 'no/such/header.h';"
        "print(build.sim_sdk(Path(sys.argv[2])).root)"
    )
    argv = [sys.executable, "-c", script, str(source), str(tmp_path / "cache")]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    roots = {process.communicate()[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(roots) == 1
    call(Path(roots.pop()) / "bin/mcc", "--version")


def test_missing_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SimBuildError) as caught:
        sim_sdk(tmp_path, clang="clang-14-is-not-here")
    assert "clang-14" in caught.value.hint and "lld-14" in caught.value.hint


def test_another_compiler_than_clang_14_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "fake-clang"
    fake.write_text("#!/bin/sh\necho 'clang version 19.1.0'\n", encoding="utf-8")
    fake.chmod(0o755)
    (tmp_path / "ld.lld").touch()
    with pytest.raises(SimBuildError, match="not clang 14"):
        sim_sdk(tmp_path / "cache", clang=str(fake))


# --- queries and refusals -----------------------------------------------------------------------


def test_version(sdk: SimSdk) -> None:
    lines = call(sdk.mcc, "--version").stdout.splitlines()
    assert re.fullmatch(r"mccprobe-sim version \d+\.\d+\.\d+ \(clang version 14\.\d+\.\d+\) SIMULATED", lines[0])
    assert "clang version 14." in lines[1]
    assert "Target: x86_64-unknown-linux-gnu" in lines
    assert f"InstalledDir: {sdk.root}/bin" in lines


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-c", "k.mu", "--no-such-flag"], "--no-such-flag"),
        (["-c", "k.mu", "-mllvm", "-no-such-flag"], "Unknown command line argument '-no-such-flag'"),
        (["-c", "k.mu", "--offload-arch=mp_99"], "unsupported CUDA gpu architecture: mp_99"),
        (
            ["-c", "k.mu", "-mllvm", "-opt-bisect-limit=1", "-mllvm", "-opt-bisect-limit=1"],
            "may only occur zero",
        ),
        (["-c", "nowhere.mu"], "no such file or directory: 'nowhere.mu'"),
        ([], "no input files"),
        (["-c", "k.mu", "-o"], "argument to '-o' is missing"),
        (["-S", "k.mu", "-o", "x"], "cannot specify -o when generating multiple output files"),
        (["-c", "k.mu", "-Xarch_device", "-mllvm"], "options requiring arguments are unsupported"),
    ],
)
def test_refusals(sdk: SimSdk, work: Path, args: list[str], message: str) -> None:
    assert message in call(sdk.mcc, *args, code=1).stderr
    assert sorted(path.name for path in work.iterdir()) == ["k.mu"]
    assert left_in_tmp() == []


def test_device_error_in_a_kernel_is_clangs_own(sdk: SimSdk, work: Path) -> None:
    (work / "bad.mu").write_text(HOST_ONLY + KERNEL.replace("__MUSA_ARCH__", "helper()"), encoding="utf-8")
    done = call(sdk.mcc, "-c", "bad.mu", "k.mu", code=1)
    assert "no matching function for call to 'helper'" in done.stderr
    assert (work / "k.o").is_file() and not (work / "bad.o").exists()


@pytest.mark.parametrize(
    "flag",
    ["-mtgpu", "-Od3", "--musa-path=/opt/x", "--musa-path-ignore-env", "-fmusa-flush-denormals-to-zero"],
)
def test_front_end_flags_of_mcc_are_accepted(sdk: SimSdk, work: Path, flag: str) -> None:
    call(sdk.mcc, "-c", "k.mu", "-o", "plain.o")
    assert call(sdk.mcc, "-c", "k.mu", flag, "-o", "flag.o").stderr == ""
    assert (work / "flag.o").read_bytes() == (work / "plain.o").read_bytes()


@pytest.mark.parametrize(
    "flags",
    [
        "-rdc=true -c",
        "-rdc=true -dc",
        "-dc",
        "-c -fgpu-rdc",
        "-c --cuda-gpu-arch mp_22",
        "-c --offload-arch mp_22",
        "-c -mathx-disable-fp64",
        "-c -U__CUDA__ -fPIC -w",
        "-c -mllvm unroll-threshold=5000",
        "-c -mllvm pragma-unroll-threshold=100000",
        "-c -mllvm -enable-ldma-index",
        "-c -mllvm -mtgpu-enable-const-calc=0",
    ],
)
def test_flags_of_public_builds_are_accepted(sdk: SimSdk, work: Path, flags: str) -> None:
    """torch_musa, mutlass and other public MUSA builds: no word about them, and the same object."""
    call(sdk.mcc, "-c", "k.mu", "-o", "plain.o")
    assert call(sdk.mcc, "k.mu", *flags.split(), "-o", "flag.o").stderr == ""
    if "-fPIC" not in flags:
        assert (work / "flag.o").read_bytes() == (work / "plain.o").read_bytes()


def test_the_command_of_the_public_objects(sdk: SimSdk, work: Path) -> None:
    """gen.sh of gpu-compute-driver-bench: a .cu source, no -x, no -c."""
    (work / "X.cu").write_bytes((work / "k.mu").read_bytes())
    archs = ["mp_21", "mp_22", "mp_31"]
    call(sdk.mcc, "X.cu", "-o", "X.elf", "--cuda-device-only", "-mtgpu", *(f"--offload-arch={a}" for a in archs))
    assert listed(sdk, "X.elf") == [HOST_ID, *(DEVICE_ID + arch for arch in archs)]
    assert sorted(path.name for path in work.iterdir()) == ["X.cu", "X.elf", "k.mu"]


@pytest.mark.parametrize(("arch", "macro", "family"), [("mp_10", 100, "mtgpu"), ("mp_42", 420, "mthg")])
def test_old_and_new_architectures(sdk: SimSdk, work: Path, arch: str, macro: int, family: str) -> None:
    call(sdk.mcc, "-c", "--cuda-gpu-arch", arch, "--musa-device-only", "k.mu", "-o", "k.fb")
    assert listed(sdk, "k.fb")[1] == f"musa-{family}-mt-musa-{arch}"
    text = call(sdk.mcc, "-S", f"--offload-arch={arch}", "-O1", "--musa-device-only", "k.mu", "-o", "-").stdout
    assert f"${macro}" in text


def test_device_ir_and_a_bundle_of_it(sdk: SimSdk, work: Path) -> None:
    archs = ["mp_22", "mp_31"]
    bundle = ""
    for arch in archs:
        call(sdk.mcc, "-S", "-emit-llvm", "--musa-device-only", f"--offload-arch={arch}", "k.mu", "-o", f"{arch}.ll")
        text = (work / f"{arch}.ll").read_text(encoding="utf-8")
        mark = "; __CLANG_OFFLOAD_BUNDLE____"
        bundle += f"\n{mark}START__ {DEVICE_ID}{arch}\n{text}\n{mark}END__ {DEVICE_ID}{arch}\n"
    (work / "bundle.ll").write_text(bundle, encoding="utf-8")
    call(
        sdk.mcc,
        "-c",
        "-x",
        "ir",
        "bundle.ll",
        "--musa-device-only",
        *(f"--offload-arch={a}" for a in archs),
        "-o",
        "k.fb",
    )
    assert listed(sdk, "k.fb") == [HOST_ID, *(DEVICE_ID + arch for arch in archs)]
    for arch in archs:
        call(sdk.mcc, "-S", "-x", "ir", "bundle.ll", "--musa-device-only", f"--offload-arch={arch}", "-o", "one.s")
        call(sdk.mcc, "-S", "-x", "ir", f"{arch}.ll", "--musa-device-only", f"--offload-arch={arch}", "-o", "two.s")
        assert (work / "one.s").read_bytes() == (work / "two.s").read_bytes()
    refused = call(sdk.mcc, "-c", "-x", "ir", "bundle.ll", "--musa-device-only", "--offload-arch=mp_21", code=1)
    assert "is a bundle without an entry for mp_21" in refused.stderr
    assert left_in_tmp() == []


# --- outputs ------------------------------------------------------------------------------------


def test_device_only_object_is_a_raw_bundle_of_elf_images(sdk: SimSdk, work: Path) -> None:
    archs = ["mp_22", "mp_31", "mp_21", "mp_22"]
    call(sdk.mcc, *(f"--offload-arch={a}" for a in archs), "-c", "--musa-device-only", "k.mu", "-o", "k.fb")
    assert listed(sdk, "k.fb") == [HOST_ID, *(DEVICE_ID + arch for arch in archs[:3])]
    data = (work / "k.fb").read_bytes()
    assert data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
    assert struct.unpack_from("<Q", data, 24) == (4,)
    bundler = sdk.root / "bin/clang-offload-bundler"
    call(bundler, "--unbundle", "--type=o", f"--targets={DEVICE_ID}mp_31", "--inputs=k.fb", "--outputs=k.mubin")
    image = (work / "k.mubin").read_bytes()
    assert image[:4] == b"\x7fELF"
    assert struct.unpack_from("<HH", image, 16) == (3, 62)  # ET_DYN, EM_X86_64
    assert (310).to_bytes(4, "little") in image  # __MUSA_ARCH__ of mp_31
    assert data.find(image) % 4096 == 0
    assert left_in_tmp() == []


def test_host_object_carries_the_bundle(sdk: SimSdk, work: Path) -> None:
    text = KERNEL + "__attribute__((host)) void *address() { return (void *)k; }\n"
    text = "#ifndef __MUSA_ARCH__\n#define __MUSA_ARCH__ 0\n#endif\n#include <musa_runtime.h>\n" + text
    (work / "h.mu").write_text(text, encoding="utf-8")
    call(sdk.mcc, "-c", "h.mu")
    assert listed(sdk, "h.o") == [HOST_ID, DEVICE_ID + "mp_22"]
    call(sdk.mcc, "-c", "--cuda-host-only", "h.mu")
    assert listed(sdk, "h.o") == []


def test_device_assembly_says_what_it_is(sdk: SimSdk, work: Path) -> None:
    call(sdk.mcc, "-S", "--musa-device-only", "k.mu")
    lines = (work / f"k-{DEVICE_ID}mp_22.s").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#") and "SIMULATED" in lines[0] and "not MTGPU" in lines[0]
    assert any("_Z1kPi:" in line for line in lines)
    assert call(sdk.mcc, "-S", "--cuda-device-only", "k.mu", "-o", "-").stdout.splitlines() == lines


def test_device_ir_from_standard_input(sdk: SimSdk, work: Path) -> None:
    args = ["-x", "musa", "--offload-arch=mp_31", "--musa-device-only", "-S", "-emit-llvm", "-o", "-", "-"]
    text = call(sdk.mcc, *args, stdin=KERNEL).stdout
    assert "define" in text and "@_Z1kPi" in text and "310" in text
    call(sdk.mcc, "-x", "musa", "-c", "-", "-o", "in.o", stdin=(work / "k.mu").read_text(encoding="utf-8"))
    assert (work / "in.o").is_file()


def test_bitcode_and_preprocessed_text(sdk: SimSdk, work: Path) -> None:
    call(sdk.mcc, "-c", "-emit-llvm", "--musa-device-only", "k.mu", "-o", "k.bc")
    assert (work / "k.bc").read_bytes()[:2] == b"BC"
    assert "c[0] = 220" in call(sdk.mcc, "-E", "--musa-device-only", "k.mu").stdout
    assert "c[0]" not in call(sdk.mcc, "-E", "--musa-host-only", "k.mu").stdout


def test_dependencies_come_from_one_job(sdk: SimSdk, work: Path) -> None:
    (work / "part.h").write_text("", encoding="utf-8")
    (work / "k.mu").write_text('#include "part.h"\n', encoding="utf-8")
    (work / "m.cpp").write_text("int main() {}\n", encoding="utf-8")
    call(sdk.mcc, "-MMD", "k.mu", "-c", "-o", "out.o")
    assert (work / "out.d").read_text(encoding="utf-8").split() == ["out.o:", "k.mu", "part.h"]
    call(sdk.mcc, "-MMD", "-MF", "named.d", "k.mu", "m.cpp", "-o", "prog")
    assert (work / "named.d").read_text(encoding="utf-8").startswith("prog:")
    assert call(sdk.mcc, "-MM", "k.mu").stdout.split() == ["k.o:", "k.mu", "part.h"]


def test_host_sources_objects_and_response_files(sdk: SimSdk, work: Path) -> None:
    (work / "a.cpp").write_text(HOST_ONLY, encoding="utf-8")
    (work / "sub dir").mkdir()
    (work / "sub dir/m.c").write_text("int helper2(void);\nint main(void) { return helper2(); }\n", encoding="utf-8")
    (work / "b.x").write_text(
        'extern "C" int helper2(); int helper(); int helper2() { return helper(); }', encoding="utf-8"
    )
    (work / "inner.rsp").write_text("-x c++ b.x -x none", encoding="utf-8")
    (work / "all.rsp").write_text('-O1 "sub dir/m.c"\n @inner.rsp a.o -o sub\\ dir/prog', encoding="utf-8")
    call(sdk.mcc, "-c", "a.cpp")
    call(sdk.mcc, "@all.rsp")
    assert subprocess.run([str(work / "sub dir/prog")]).returncode == 3
    assert left_in_tmp() == []


def test_back_end_flags_of_mcc_are_accepted_for_host_sources(sdk: SimSdk, work: Path) -> None:
    if not sdk.has_fault_plugin:
        pytest.skip(sdk.why_no_plugin)
    (work / "a.cpp").write_text(HOST_ONLY, encoding="utf-8")
    (work / "b.s").write_text(".globl b\nb: ret\n", encoding="utf-8")
    assert call(sdk.mcc, "-c", "a.cpp", "-O2", *IRA).stderr == ""
    with_flag = (work / "a.o").read_bytes()
    call(sdk.mcc, "-c", "a.cpp", "b.s", "-O2")
    assert (work / "a.o").read_bytes() == with_flag


def test_help_of_the_back_end_is_printed_once(sdk: SimSdk, work: Path) -> None:
    text = call(sdk.mcc, "-c", "k.mu", "-mllvm", "-help-hidden").stdout
    assert text.count("--opt-bisect-limit=") == 1
    assert sorted(path.name for path in work.iterdir()) == ["k.mu"]


def test_values_of_options_are_not_taken_for_queries(sdk: SimSdk, work: Path) -> None:
    args = ["-mllvm", "-print-after=machine-scheduler", "-Xclang", "-print-stats", "-O2"]
    assert "# *** IR Dump After Machine Instruction Scheduler" in call(sdk.mcc, "-c", "k.mu", *args).stderr
    assert (work / "k.o").is_file()
    assert call(sdk.mcc, "-print-resource-dir").stdout.strip().rpartition("/")[2].startswith("14.")


def test_kept_intermediate_files(sdk: SimSdk, work: Path) -> None:
    (work / "out").mkdir()
    call(sdk.mcc, "-c", "k.mu", "-o", "plain.o")
    call(sdk.mcc, "-c", "k.mu", "-save-temps=obj", "-o", "out/k2.o")
    stem = f"k-{DEVICE_ID}mp_22"
    names = sorted(path.name for path in (work / "out").iterdir())
    assert names == [f"{stem}.mubin", f"{stem}.o", "k.musafb", "k2.o"]
    assert (work / "out/k2.o").read_bytes() == (work / "plain.o").read_bytes()


def test_mllvm_reaches_both_jobs_and_xarch_only_one(sdk: SimSdk, work: Path) -> None:
    args = ["-mllvm", "-enable-misched=false", "-Xarch_device", "-DONE", "-Xarch_host", "-DTWO"]
    device, host = (job for job in jobs_of(call(sdk.mcc, "-###", "-c", "k.mu", *args).stderr) if "-cc1" in job)
    assert "-enable-misched=false" in device and "-enable-misched=false" in host
    assert ("ONE" in device, "TWO" in device) == (True, False)
    assert ("ONE" in host, "TWO" in host) == (False, True)
    assert "-fcuda-is-device" in device and "-fcuda-is-device" not in host
    assert not any("offload-arch" in word for word in [*device, *host])


# --- -### and -v --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["-c", "k.mu", "-o", "out"],
        [
            "-c",
            "-O3",
            "-g",
            '-DNAME="a $b\\c"',
            "--offload-arch=mp_21",
            "--offload-arch=mp_31",
            "k.mu",
            "-o",
            "out",
        ],
        ["-c", "-O2", "--musa-device-only", *IRA, "k.mu", "-o", "out"],
        ["-S", "--musa-device-only", "k.mu", "-o", "out"],
        ["-O3", "k.mu", "m.cpp", "-o", "out"],
    ],
)
def test_printed_jobs_replayed_give_identical_files(sdk: SimSdk, work: Path, args: list[str]) -> None:
    if "--mtgpu-enable-internal-regs-ra" in args and not sdk.has_fault_plugin:
        pytest.skip(sdk.why_no_plugin)
    (work / "m.cpp").write_text("int main() {}\n", encoding="utf-8")
    call(sdk.mcc, *args)
    direct = (work / "out").read_bytes()
    (work / "out").unlink()
    text = call(sdk.mcc, "-###", *args).stderr
    assert not (work / "out").exists() and left_in_tmp() == []
    jobs = jobs_of(text)
    for job in jobs:
        subprocess.run(job, check=True, capture_output=True)
    assert (work / "out").read_bytes() == direct
    (work / "out").unlink()
    # -v shows cc1 what to print, which is an argument more; otherwise it runs the same jobs
    verbose = jobs_of(call(sdk.mcc, "-v", *args).stderr)
    assert [Path(job[0]).name for job in verbose] == [Path(job[0]).name for job in jobs]
    assert (work / "out").read_bytes() == direct


def test_printed_jobs_have_clangs_form(sdk: SimSdk, work: Path) -> None:
    lines = call(sdk.mcc, "-###", "--offload-arch=mp_22", "-O3", "k.mu", "-lmusart", "-o", "k").stderr.splitlines()
    header = [line for line in lines if not line.startswith(' "')]
    assert [line.split(":")[0] for line in header[-3:]] == ["Target", "Thread model", "InstalledDir"]
    assert "SIMULATED" in header[0]
    jobs = jobs_of("\n".join(lines))
    names = [(Path(job[0]).name, "-cc1" in job) for job in jobs]
    assert names == [
        ("clang", True),
        ("ld.bfd", False),
        ("clang-offload-bundler", False),
        ("clang", True),
        ("ld.lld", False),
    ]
    output = [job[job.index("-o") + 1] for job in (jobs[0], jobs[1], jobs[3], jobs[4])]
    assert output[0] in jobs[1] and f"-inputs=/dev/null,{output[1]}" in jobs[2]
    bundle = next(word for word in jobs[2] if word.startswith("-outputs=")).partition("=")[2]
    assert jobs[3][jobs[3].index("-fcuda-include-gpubinary") + 1] == bundle
    assert output[2] in jobs[4] and "-lmusart" in jobs[4] and output[3] == "k"


# --- processes ----------------------------------------------------------------------------------


def test_parallel_runs_do_not_collide(sdk: SimSdk, work: Path) -> None:
    argvs = [[str(sdk.mcc), "-O1", "-c", "k.mu", "-o", f"k{i}.o"] for i in range(8)]
    running = [subprocess.Popen(argv) for argv in argvs]
    assert [process.wait() for process in running] == [0] * 8
    assert len({(work / f"k{i}.o").read_bytes() for i in range(8)}) == 1
    assert left_in_tmp() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.clean
def test_signal_ends_the_compiler_and_leaves_nothing(sdk: SimSdk, tmp_path: Path, number: int) -> None:
    fifo = tmp_path / "never.mu"
    os.mkfifo(fifo)
    process = subprocess.Popen([str(sdk.mcc), "-c", str(fifo), "-o", "k.o"])
    writer = os.open(fifo, os.O_RDWR)  # clang now reads and waits for an end that never comes
    deadline = time.monotonic() + 20
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(timeout=20) == -number
    os.close(writer)


# --- running ------------------------------------------------------------------------------------


def build_and_run(sdk: SimSdk, *flags: str) -> int:
    call(sdk.mcc, "--offload-arch=mp_22", "-O3", *repository_kernel(), *flags, "-lmusart", "-o", "gemm")
    return subprocess.run([str(Path("gemm").resolve())], capture_output=True).returncode


BYPASS = {kind: ["-mllvm", f"--internal-opt-user-{kind}=false"] for kind in ("fop", "int", "bit")}


@pytest.mark.parametrize(
    ("flags", "right"),
    [
        ([*IRA, "-mllvm", "-enable-misched=false"], True),
        ([], True),
        ([*IRA, "-mllvm", "-misched=converge"], True),
        ([*IRA, *BYPASS["fop"]], False),
        ([*IRA, *BYPASS["int"]], False),
        ([*IRA, *BYPASS["bit"]], False),
        ([*IRA, *BYPASS["fop"], *BYPASS["int"], *BYPASS["bit"]], False),
        (IRA, False),
    ],
)
def test_right_and_wrong_as_in_section_19(sdk: SimSdk, work: Path, flags: list[str], right: bool) -> None:
    """The eight rows of the article's table: which combinations give right numbers."""
    if flags and not sdk.has_fault_plugin:
        pytest.skip(sdk.why_no_plugin)
    assert build_and_run(sdk, *flags) == (0 if right else 1)
