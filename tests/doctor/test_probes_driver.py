"""Each assumption on the command line: confirmed by a compiler that keeps it, contradicted by one that does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mccprobe.doctor.subject import CONFIRMED, CONTRADICTED, UNCHECKED, ProbeAnswer

pytestmark = [pytest.mark.toolchain("clang-14"), pytest.mark.clean]

MakeMcc = Callable[..., Path]
Ask = Callable[..., Mapping[str, ProbeAnswer]]
FAKES = Path(__file__).resolve().parents[1] / "fakes"

# the one thing that each compiler does wrong
WRONG = {
    "version-line": 'version_text() { echo "clang version 14.0.6"; }',
    "clang-version": 'version_text() { echo "clang version 20.1.0"; echo "mcc version 5.1.0"; }',
    "offload-arch": 'driver_call() { refuse "--offload-arch=*" "error: unsupported CUDA gpu architecture" "$@"; }',
    "language-musa": 'driver_call() { refuse "musa" "error: language not recognized:" "$@"; }',
    "jobs-shown": 'driver_call() { case " $* " in *" -### "*) ;; *) obedient "$@" ;; esac; }',
    "device-cc1": 'driver_call() { obedient "$@" 2>&1 | sed "s/ \\"-fcuda-is-device\\"//" >&2; }',
    "device-link": 'driver_call() { obedient "$@" 2>&1 | sed "s|/usr/bin/ld[^\\"]*|/usr/bin/packer|" >&2; }',
    "bundle-job": 'driver_call() { obedient "$@" 2>&1 | sed "s|clang-offload-bundler|packer|" >&2; }',
    "host-embeds": 'driver_call() { obedient "$@" 2>&1 | sed "s|-fcuda-include-gpubinary|-fembed|" >&2; }',
    "cc1-replay": 'device_compile() { cc1 "$@" && [ ! -f "$output" ] || od -An -N8 /dev/urandom >> "$output"; }',
    "bitcode-route": 'device_compile() { cc1 "$@" || return; case " $* " in *" ir "*) echo >> "$output" ;; esac; }',
    "bisect-log": 'real_cc1() { clang-14 "$@" 2> /dev/null; }',
    "bisect-limit": 'device_compile() { cc1 "$@"; echo "BISECT: running pass (2) x on function (f)" >&2; }',
    "mllvm-device": 'driver_call() { without "-opt-bisect-limit=*" "$@"; }',
    "mllvm-dashes": 'driver_call() { refuse "--opt-bisect-limit=*" "error: Unknown command line argument" "$@"; }',
    "unknown-option": 'driver_call() { without "-mccprobe-no-such-option" "$@"; }',
    "help-hidden": 'driver_call() { without "-help*hidden" "$@"; }',
    "quiet-environment": 'driver_call() { [ -n "${MUSA_HOME:-}" ] || { echo "error: no MUSA_HOME" >&2; exit 1; }; '
                         'obedient "$@"; }',
    "device-ir": 'driver_call() { obedient "$@"; }',  # the stand-in's IR is x86-64's
    "runtime-header": 'driver_call() { refuse "-lmusart" "error: no such library" "$@"; }',
    "fat-section": 'driver_call() { case " $* " in *" -### "* | *--musa-device-only*) obedient "$@" ;; '
                   '*) echo "int x;" | clang-14 -x c -c - -o "$(output_of "$@")" ;; esac; }',
    "program-runs": 'driver_call() { obedient "$@"; case " $* " in *" -lmusart "*) '
                    'printf "#!/bin/sh\\nexit 4\\n" > "$(output_of "$@")" ;; esac; }',
}  # fmt: skip
# what needs more than a wrong driver: the other tests of this folder
NOT_RIGHT_ON_X86 = {"device-ir"}


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_thing_is_contradicted(
    name: str, broken: MakeMcc, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if name == "quiet-environment":
        monkeypatch.setenv("MUSA_HOME", str(tmp_path))
    found = ask(broken(WRONG[name]), name)[name]
    assert found.state == CONTRADICTED, found
    assert found.evidence


def test_a_good_compiler_contradicts_none_of_them(broken: MakeMcc, ask: Ask) -> None:
    ids = sorted(set(WRONG) - NOT_RIGHT_ON_X86)
    found = ask(broken(), *ids)
    assert {name: answer.state for name, answer in found.items()} == dict.fromkeys(ids, CONFIRMED), found


@pytest.mark.parametrize(
    ("fake", "name"),
    [
        ("mcc_without_jobs", "jobs-shown"),
        ("mcc_prints_no_bisect", "bisect-log"),
        ("mcc_stale_cache", "no-compile-cache"),
        ("mcc_ignores_the_limit", "bisect-limit"),
        ("mcc_ignores_the_limit", "mllvm-device"),
    ],
)
def test_the_fakes_are_seen_through(
    fake: str, name: str, ask: Ask, sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    monkeypatch.setenv("FAKE_CACHE", str(tmp_path / "kept"))
    assert ask(FAKES / fake, name)[name].state == CONTRADICTED
    assert ask(FAKES / "mcc_ok", name)[name].state == CONFIRMED


def test_limits_are_compared_by_their_objects(ask: Ask, sdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that claims an effect is not believed; a limit that works in silence is."""
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    idle = ask(FAKES / "mcc_ignores_the_limit", "bisect-log", "bisect-limit")
    assert idle["bisect-log"].state == CONFIRMED
    assert "passes as NOT running, and limit 0 and no limit give equal objects" in idle["bisect-limit"].evidence
    assert ask(FAKES / "mcc_prints_no_bisect", "bisect-limit")["bisect-limit"].state == CONFIRMED


def test_a_log_on_standard_output_is_seen(broken: MakeMcc, ask: Ask) -> None:
    found = ask(broken('real_cc1() { clang-14 "$@" 2>&1; }'), "bisect-log", "bisect-limit")
    assert found["bisect-log"].state == CONTRADICTED
    assert "BISECT lines are on standard output" in found["bisect-log"].evidence
    assert found["bisect-limit"].state == CONFIRMED
    assert "with limit 1 the log shows 1 executions" in found["bisect-limit"].evidence


def test_a_compiler_that_compiles_nothing_contradicts_one_thing_and_leaves_the_rest_open(
    broken: MakeMcc, ask: Ask
) -> None:
    mcc = broken('device_compile() { echo "error: not today" >&2; return 1; }')
    found = ask(mcc, "device-source", "raw-bundle", "device-elf", "no-compile-cache", "program-runs")
    assert found["device-source"] == ProbeAnswer(CONTRADICTED, "error: not today")
    assert {found[name].state for name in found if name != "device-source"} == {UNCHECKED}
    assert "not today" in found["device-elf"].evidence


def test_one_refused_flag_is_named(broken: MakeMcc, ask: Ask) -> None:
    said = "error: Unknown command line argument"
    mcc = broken(f'driver_call() {{ refuse "-mtgpu-if-convert*" "{said}" "$@"; }}')
    found = ask(mcc, "shipped-flags")["shipped-flags"]
    assert found == ProbeAnswer(CONTRADICTED, "refused: mtgpu-if-convert")


def test_the_toolkit_and_what_is_in_it(broken: MakeMcc, ask: Ask) -> None:
    ids = (
        "toolkit-root",
        "toolkit-pins",
        "version-json",
        "matrix-header",
        "tools-beside",
        "musaasm",
        "runtime-symbols",
    )
    good = ask(broken(toolkit=True), *ids)
    states = {name: answer.state for name, answer in good.items()}
    assert states == {
        "toolkit-root": CONFIRMED,
        "version-json": CONFIRMED,
        "matrix-header": CONFIRMED,
        "toolkit-pins": CONFIRMED,
        "tools-beside": CONTRADICTED,  # nothing but mcc is in bin/
        "musaasm": UNCHECKED,  # not in every image
        "runtime-symbols": UNCHECKED,  # the stand-in has a static library there
    }
    alone = ask(broken(), *ids)
    assert alone["toolkit-root"].state == CONTRADICTED
    assert {alone[name].state for name in ("toolkit-pins", "version-json", "matrix-header")} == {UNCHECKED}


def test_a_compiler_that_takes_no_pins(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken('driver_call() { refuse "--musa-path=*" "error: unknown argument:" "$@"; }', toolkit=True)
    assert ask(mcc, "toolkit-pins")["toolkit-pins"] == ProbeAnswer(CONTRADICTED, "taken: --musa-path-ignore-env")


def test_a_version_file_of_another_form(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken(toolkit=True)
    (mcc.parents[1] / "version.json").write_text('{"release": 1}', encoding="utf-8")
    assert ask(mcc, "version-json")["version-json"] == ProbeAnswer(CONTRADICTED, "keys: release")


def test_tools_beside_mcc(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken()
    for name in ("llc", "ld.lld", "llvm-objdump", "clang-offload-bundler", "musaasm"):
        mcc.with_name(name).write_text("#!/bin/sh\n", encoding="utf-8")
        mcc.with_name(name).chmod(0o755)
    assert {one.state for one in ask(mcc, "tools-beside", "musaasm").values()} == {CONFIRMED}


def test_what_the_device_says_is_compared(broken: MakeMcc, ask: Ask) -> None:
    ids = ("warp-threads", "shared-per-block", "threads-per-block", "multiprocessors")

    def with_device(*lines: str) -> dict[str, str]:
        program = "".join(f"echo {line}\\n" for line in lines)
        mcc = broken(
            'driver_call() { obedient "$@"; case " $* " in *" -lmusart "*) '
            f'printf "#!/bin/sh\\n{program}" > "$(output_of "$@")" ;; esac; }}'
        )
        return {name: answer.state for name, answer in ask(mcc, *ids).items()}

    right = ("arch mp_22", "warp 128", "shared 73728", "threads 1024", "multiprocessors 56")
    assert with_device(*right) == dict.fromkeys(ids, CONFIRMED)
    wrong = ("arch mp_22", "warp 32", "shared 73729", "threads 512", "multiprocessors 48")
    assert with_device(*wrong) == dict.fromkeys(ids, CONTRADICTED)
    assert with_device("arch mp_99", *right[1:]) == dict.fromkeys(ids, UNCHECKED)
    newer = with_device("arch mp_31", "warp 32", "shared 196608", "threads 1024", "multiprocessors 56")
    assert newer == {**dict.fromkeys(ids, CONFIRMED), "multiprocessors": UNCHECKED}


def test_the_gpu_tool(broken: MakeMcc, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mcc = broken()
    tool = tmp_path / "tools" / "mthreads-gmi"
    tool.parent.mkdir()
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    for status, state in ((0, CONFIRMED), (1, CONTRADICTED)):
        tool.write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
        tool.chmod(0o755)
        assert ask(mcc, "gpu-tool")["gpu-tool"].state == state


def test_the_time_limit_ends_it_and_says_so(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken("driver_call() { sleep 30; }")
    found = ask(mcc, "device-source", "jobs-shown", "runtime-header", timeout_s=1)
    assert {answer.state for answer in found.values()} == {UNCHECKED}
    assert "did not end" in found["device-source"].evidence
    assert "--timeout" in found["jobs-shown"].evidence
