"""What a user sees of a misbehaving compiler: message, exit code, nothing left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.toolchain("clang-14"), pytest.mark.clean("mccprobe-out")]

Fake = Callable[[str], str]
RunCli = Callable[..., Any]
FAULT = "--flag=-fake-fault"
FAULT_AT = 20  # as in fakes/driver.sh

PROGRAM = """#include <stdio.h>
static const char *volatile nonce = "NONCE";
static int sum(const int *v, int n) { int s = 0; for (int i = 0; i < n; ++i) s += v[i]; return s; }
int main(int argc, char **argv) {
  int v[4] = {1, 2, argc, 4};
  printf("%d GOOD %s\\n", sum(v, 4), nonce && argv[0] ? "" : "?");
  return 0;
}
"""

DEVICE_PROGRAM = """#include <cstdio>
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
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "own.mu"
    path.write_text("__attribute__((global)) void k(int *p) { *p = 1; }\nint main() {}\n", encoding="utf-8")
    return path


def bisected(run_cli: RunCli, compiler: str, program: Path, *more: str, **env: str) -> dict[str, Any]:
    run = run_cli(
        "bisect",
        program,
        "--toolchain",
        "clang",
        "--compiler",
        compiler,
        FAULT,
        "--json",
        *more,
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None, **env},
    )
    assert run.code == 0, run
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def test_a_well_behaved_fake(run_cli: RunCli, fake: Fake, program: Path) -> None:
    document = bisected(run_cli, fake("mcc_ok"), program)
    assert document["culprit"]["execution"] == FAULT_AT
    assert document["simulated"] is False


def test_a_flood_changes_nothing(run_cli: RunCli, fake: Fake, program: Path) -> None:
    flood = {"FAKE_LIMIT_AT": str(FAULT_AT), "FAKE_FLOOD_BYTES": str(64 << 20)}
    document = bisected(run_cli, fake("mcc_floods_stderr"), program, **flood)
    assert document["culprit"]["execution"] == FAULT_AT


@pytest.mark.parametrize("name", ["mcc_hangs_with_child", "mcc_crashes_at_one_limit", "mcc_exits_0_without_output"])
def test_a_limit_that_cannot_be_built_is_unresolved_and_no_one_is_called_found(
    run_cli: RunCli, fake: Fake, program: Path, name: str
) -> None:
    where = {"FAKE_LIMIT_AT": str(FAULT_AT - 1)}
    document = bisected(run_cli, fake(name), program, "--compile-timeout", "4", **where)
    assert document["status"] == "exposed"
    (edge,) = document["edges"]
    assert (edge["execution"], edge["from"], edge["to"]) == (FAULT_AT, "GOOD", "BAD")
    assert document["monotone"] is None


def test_a_compiler_that_gives_other_objects_is_called_so(run_cli: RunCli, fake: Fake, program: Path) -> None:
    run = run_cli(
        "bisect",
        program,
        "--toolchain",
        "clang",
        "--compiler",
        fake("mcc_gives_other_objects"),
        FAULT,
        "--json",
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None},
    )
    assert json.loads(run.stdout)["status"] == "non-deterministic", run


def test_a_fault_that_fixed_addresses_hide_is_looked_for_with_other_layouts(
    run_cli: RunCli, fake: Fake, program: Path, tmp_path: Path
) -> None:
    run_directory = tmp_path / "run"
    document = bisected(run_cli, fake("mcc_hides_its_fault"), program, "-o", str(run_directory))
    assert document["status"] == "non-deterministic"
    assert document["culprit"]["execution"] == FAULT_AT
    assert any("MALLOC_MMAP_THRESHOLD_=12000" in text for text in document["warnings"])
    assert '"env", "MALLOC_MMAP_THRESHOLD_=12000", "setarch", "-R"' in json.dumps(document["reproduce"]["bad"])
    resumed = json.loads(run_cli("bisect", "--resume", run_directory, "--json", env={"FAKE_SDK": None}).stdout)
    assert resumed["culprit"] == document["culprit"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mcc_without_jobs", "-### shows no jobs, so its compiles cannot be replayed"),
        ("mcc_prints_no_bisect", "logs no pass for -opt-bisect-limit=-1"),
        ("mcc_ignores_the_limit", "the limit has no effect in this compiler"),
    ],
)
def test_a_compiler_that_cannot_be_bisected(
    run_cli: RunCli, fake: Fake, program: Path, name: str, message: str
) -> None:
    flag = FAULT if name == "mcc_ignores_the_limit" else "--flag=-enable-newgvn"
    run = run_cli(
        "bisect",
        program,
        "--toolchain",
        "clang",
        "--compiler",
        fake(name),
        flag,
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None},
    )
    assert run.code == 3 and message in run.stderr, run
    assert "front end" not in run.stdout + run.stderr


def test_why_gives_the_exit_code_of_a_compiler_whose_limit_has_no_effect(
    run_cli: RunCli, fake: Fake, program: Path
) -> None:
    run = run_cli(
        "why",
        program,
        "--toolchain",
        "clang",
        "--compiler",
        fake("mcc_ignores_the_limit"),
        FAULT,
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None},
    )
    assert run.code == 3 and "the limit has no effect in this compiler" in run.stdout + run.stderr, run
    assert "front end" not in run.stdout


@pytest.mark.parametrize("level", [(), ("-O0",)], ids=["no-level", "O0"])
def test_a_source_that_no_pass_changes_is_no_fault_of_the_limit(
    run_cli: RunCli, fake: Fake, tmp_path: Path, level: tuple[str, ...]
) -> None:
    source = tmp_path / "nothing.c"
    source.write_text('int puts(const char *);\nint main(void) { return puts("GOOD") < 0; }\n', encoding="utf-8")
    run = run_cli(
        "bisect",
        source,
        "--toolchain",
        "clang",
        "--compiler",
        fake("mcc_ok"),
        FAULT,
        "--json",
        "--",
        *level,
        cwd=Path.cwd(),
        env={"FAKE_SDK": None, "FAKE_FAULT_AT": "0"},
    )
    assert run.code == 1 and json.loads(run.stdout)["status"] == "wrong-at-zero", run


def test_a_source_that_does_not_compile(run_cli: RunCli, fake: Fake, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return nowhere; }\n", encoding="utf-8")
    run = run_cli(
        "bisect",
        broken,
        "--toolchain",
        "clang",
        "--compiler",
        fake("mcc_ok"),
        FAULT,
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None},
    )
    assert run.code == 4 and "use of undeclared identifier 'nowhere'" in run.stderr, run


def test_a_compiler_that_changed_is_not_resumed(run_cli: RunCli, fake: Fake, program: Path, tmp_path: Path) -> None:
    env = {"FAKE_STATE": str(tmp_path / "state")}
    out = tmp_path / "run"
    begun = run_cli(
        "bisect",
        program,
        "--toolchain",
        "clang",
        "--compiler",
        fake("mcc_other_version"),
        FAULT,
        "-o",
        out,
        "--json",
        "--",
        "-O2",
        cwd=Path.cwd(),
        env={"FAKE_SDK": None, **env},
    )
    assert begun.code == 3 and json.loads(begun.stdout)["code"] == "compiler-changed", begun
    assert "changed while the run was going on: it was mcc version 3.1.1, it is mcc version 3.1." in begun.stderr
    run = run_cli("bisect", "--resume", out, cwd=Path.cwd(), env={"FAKE_SDK": None, **env})
    assert run.code == 4 and "cannot be resumed: version, fingerprint changed" in run.stderr, run


# --- mcc -------------------------------------------------------------------------------------------


def test_a_cu_source_is_bisected_with_mcc(run_cli: RunCli, fake: Fake, sdk: Path, tmp_path: Path) -> None:
    """The arguments are those of public builds: gen.sh's, the architecture in two words, -rdc=true -dc."""
    source = tmp_path / "answer.cu"
    source.write_text(DEVICE_PROGRAM, encoding="utf-8")
    command = (
        "mcc",
        source,
        "-o",
        "X.elf",
        "-rdc=true",
        "-dc",
        "--cuda-device-only",
        "-mtgpu",
        "--cuda-gpu-arch",
        "mp_22",
        "-O2",
        "-lmusart",
    )
    run = run_cli(
        "bisect",
        source,
        "--mcc",
        fake("mcc_ok"),
        FAULT,
        "--json",
        "--",
        *command,
        cwd=Path.cwd(),
        env={"FAKE_SDK": str(sdk)},
    )
    assert run.code == 0, run
    document = json.loads(run.stdout)
    assert (document["toolchain"], document["arch"]) == ("mcc", "mp_22")
    assert document["culprit"]["execution"] == FAULT_AT


def test_a_stale_cache_of_mcc_is_exit_3(run_cli: RunCli, fake: Fake, kernel: Path, sdk: Path, tmp_path: Path) -> None:
    run = run_cli(
        "bisect",
        kernel,
        "--toolchain",
        "mcc",
        "--mcc",
        fake("mcc_stale_cache"),
        FAULT,
        "--json",
        "--",
        "-O2",
        "-lmusart",
        cwd=Path.cwd(),
        env={"FAKE_SDK": str(sdk), "FAKE_CACHE": str(tmp_path / "stale")},
    )
    assert run.code == 3, run
    assert "answers from a compile cache" in run.stdout + run.stderr
    assert json.loads(run.stdout)["code"] == "stale-cache"


def test_a_users_kernel_without_mcc_is_exit_3_with_the_way_out(run_cli: RunCli, kernel: Path) -> None:
    run = run_cli("bisect", kernel, FAULT, "--", "-O2", cwd=Path.cwd(), env={"PATH": os.environ["PATH"]})
    assert run.code == 3 and "--toolchain sim" in run.stderr, run


def test_toolchains_lists_it_with_what_was_found(run_cli: RunCli, fake: Fake, sdk: Path) -> None:
    run = run_cli("toolchains", "--json", "--mcc", fake("mcc_ok"), cwd=Path.cwd(), env={"FAKE_SDK": str(sdk)})
    assert run.code == 0, run
    entry = json.loads(run.stdout)["toolchains"][0]
    assert (entry["name"], entry["found"], entry["simulated"]) == ("mcc", True, False)
    assert entry["capabilities"]["bisect"] is True
    assert any("given twice: fatal" in note for note in entry["notes"])
