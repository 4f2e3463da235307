"""What report, plan, gate, why and trace rely on beyond the files: confirmed where it holds, contradicted where not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mccprobe.doctor.probes_machine import RUNTIME_SYMBOLS
from mccprobe.doctor.probes_relied import DRIVER_FUNCTIONS
from mccprobe.doctor.subject import CONFIRMED, CONTRADICTED, UNCHECKED, ProbeAnswer
from mccprobe.tuning.trace.library import SOURCE

pytestmark = [pytest.mark.toolchain("clang-14"), pytest.mark.clean]

MakeMcc = Callable[..., Path]
Ask = Callable[..., Mapping[str, ProbeAnswer]]
LIMITS = (
    "threads-per-mp", "registers-per-block", "registers-per-mp", "article-threads", "article-registers",
    "shared-per-mp", "l2-cache",
)  # fmt: skip
# field of musaDeviceProp -> value, as the public numbers have it
S80 = {"maxThreadsPerMultiProcessor": 6144, "regsPerBlock": 262144, "regsPerMultiprocessor": 131072}
S4000 = {"maxThreadsPerMultiProcessor": 6144, "regsPerMultiprocessor": 262144, "sharedMemPerMultiprocessor": 73728,
         "l2CacheSize": 25165824}  # fmt: skip
S5000 = {"maxThreadsPerMultiProcessor": 3072, "regsPerBlock": 131072}


def device(arch: str, fields: Mapping[str, int | str]) -> str:
    """A driver whose programs say what a device of this kind says; a field that is not there does not compile."""
    cases = "".join(f'*property-{name}) said="{value}" ;; ' for name, value in fields.items())
    return (
        'driver_call() { case " $* " in *" -lmusart "*) made=$(output_of "$@"); case $made in '
        f'*/properties) said="arch {arch}" ;; {cases} *) echo "error: no member named so" >&2; exit 1 ;; esac; '
        'printf "#!/bin/sh\\necho $said\\n" > "$made"; chmod +x "$made" ;; *) obedient "$@" ;; esac; }'
    )


@pytest.mark.parametrize(
    ("arch", "fields", "asked"),
    [
        ("mp_21", S80, {"threads-per-mp", "registers-per-block", "registers-per-mp"}),
        ("mp_22", S4000, {"article-threads", "article-registers", "shared-per-mp", "l2-cache"}),
        ("mp_31", S5000, {"threads-per-mp", "registers-per-block"}),
    ],
)
def test_limits_are_compared_where_there_is_a_number(
    arch: str, fields: dict[str, int], asked: set[str], broken: MakeMcc, ask: Ask
) -> None:
    for change, state in ((0, CONFIRMED), (1, CONTRADICTED)):
        mcc = broken(device(arch, {name: value + change for name, value in fields.items()}))
        states = {name: one.state for name, one in ask(mcc, *LIMITS).items()}
        assert states == {name: state if name in asked else UNCHECKED for name in LIMITS}


def test_a_field_that_the_sdk_lacks_takes_no_other_answer_away(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken(device("mp_22", {"l2CacheSize": 25165824, "regsPerMultiprocessor": "many"}))
    found = ask(mcc, *LIMITS)
    assert found["l2-cache"].state == CONFIRMED
    assert found["shared-per-mp"].state == UNCHECKED and "no member named so" in found["shared-per-mp"].evidence
    assert found["article-registers"].state == UNCHECKED


def test_tools_of_another_llvm(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken()
    assert "no llc beside" in ask(mcc, "llvm-tools")["llvm-tools"].evidence
    for version, state in (("14.0.6", CONFIRMED), ("20.1.0", CONTRADICTED)):
        for name in ("llc", "opt"):
            path = mcc.with_name(name)
            # another folder for each: versions are asked once
            other = path.parent.parent / version / name
            other.parent.mkdir(exist_ok=True)
            other.write_text(f"#!/bin/sh\necho 'LLVM version {version}'\n", encoding="utf-8")
            other.chmod(0o755)
        twin = mcc.parent.parent / version / "mcc"
        twin.write_text(mcc.read_text("utf-8"), encoding="utf-8")
        twin.chmod(0o755)
        found = ask(twin, "llvm-tools")["llvm-tools"]
        assert found.state == state, found


def test_a_kernel_without_a_host_stub(broken: MakeMcc, ask: Ask) -> None:
    assert ask(broken(), "host-stub")["host-stub"] == ProbeAnswer(CONFIRMED, "kernels with a host stub: mccprobe_probe")
    empty = (
        'driver_call() { case " $* " in *" -### "* | *--musa-device-only*) obedient "$@" ;; '
        '*) echo "int x;" | clang-14 -x c -c - -o "$(output_of "$@")" ;; esac; }'
    )
    assert ask(broken(empty), "host-stub")["host-stub"] == ProbeAnswer(CONTRADICTED, "kernels with a host stub: none")


def test_functions_of_the_driver(broken: MakeMcc, ask: Ask) -> None:
    def said(script: str) -> ProbeAnswer:
        return ask(
            broken(f'driver_call() {{ case " $* " in *" -lmusa "*) {script} ;; *) obedient "$@" ;; esac; }}'),
            "driver-symbols",
        )["driver-symbols"]

    assert said(":") == ProbeAnswer(CONFIRMED, "all link")
    assert said('echo "ld: cannot find -lmusa: error" >&2; exit 1').state == UNCHECKED
    lacking = 'grep -q muLaunchKernel "$3" || exit 0; echo "undefined reference to \\`muModuleLoadDataEx\'" >&2; exit 1'
    assert said(lacking) == ProbeAnswer(CONTRADICTED, "not in libmusa: muModuleLoadDataEx")


def test_they_are_the_functions_that_the_recorder_stands_in_front_of() -> None:
    text = SOURCE.read_text("utf-8")
    assert set(DRIVER_FUNCTIONS) == set(re.findall(r"\bmu[A-Z]\w+(?=\()|(?<=LOAD_IMAGE\()mu\w+", text))
    assert set(RUNTIME_SYMBOLS) <= set(re.findall(r"\w+", text))


def test_accumulator_of_the_header(broken: MakeMcc, ask: Ask) -> None:
    mcc = broken(toolkit=True)
    include = mcc.parents[1] / "include"
    include.unlink()
    (include / "crt").mkdir(parents=True)
    assert ask(mcc, "accumulator-floats")["accumulator-floats"].state == UNCHECKED
    for size, state in ((32, CONFIRMED), (8, CONTRADICTED)):
        (include / "crt" / "mma.h").write_text(f"class f : public __frag_base<float,  {size}> {{}};", encoding="utf-8")
        assert ask(mcc, "accumulator-floats")["accumulator-floats"].state == state
