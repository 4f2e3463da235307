"""Probes of what report, plan, gate, why and trace take for granted beyond the files themselves."""

from __future__ import annotations

import re
from pathlib import Path

from mccprobe.base.process import RunResult
from mccprobe.doctor.probes import probe
from mccprobe.doctor.subject import ProbeAnswer, Subject, Unasked, answer, no, why, yes
from mccprobe.objects.binary.metadata import ALL_ONES
from mccprobe.objects.model.limits import ARTICLE_LIMITS, PUBLIC_LIMITS
from mccprobe.targets import registry
from mccprobe.targets.llvm.jobs import JobKind
from mccprobe.targets.llvm.llvm_tools import find_tool
from mccprobe.tuning.check.launchable import kernels_in
from mccprobe.tuning.plan.machine import L2_BYTES, SDK_ACCUMULATOR_FLOATS

PROBE_KERNEL = "mccprobe_probe"  # of toolchain.probe.KERNEL, which has no barrier and no launch bounds
# Fields of musaDeviceProp, named as in CUDA's cudaDeviceProp; each is asked by a program of its own, for an SDK
# that lacks one has the others.
THREADS_PER_MP, REGISTERS_PER_MP = "maxThreadsPerMultiProcessor", "regsPerMultiprocessor"
SHARED_PER_MP, REGISTERS_PER_BLOCK, L2_SIZE = "sharedMemPerMultiprocessor", "regsPerBlock", "l2CacheSize"
DRIVER_FUNCTIONS = (  # of trace/preload/recorder.c
    "muLaunchKernel", "muLaunchCooperativeKernel", "muModuleLoad", "muModuleLoadData", "muModuleLoadDataEx",
    "muModuleLoadFatBinary", "muModuleGetFunction",
)  # fmt: skip


def _held_against(subject: Subject, arch: str, expected: dict[str, int | None]) -> ProbeAnswer:
    """field of musaDeviceProp -> its number in public, None where there is none."""
    known = {field: number for field, number in expected.items() if number is not None}
    if not known:
        raise Unasked(f"no public number for {arch}")
    told = {field: subject.device_property(field) for field in known}
    evidence = ", ".join(f"{field} {told[field]:,}, expected {number:,}" for field, number in known.items())
    return answer(told == known, f"{arch}: {evidence}")


def _arch(subject: Subject) -> str:
    arch = subject.properties.get("arch", "")
    if arch not in PUBLIC_LIMITS:
        raise Unasked(f"the device calls itself {arch or 'nothing'}; public limits are of {', '.join(PUBLIC_LIMITS)}")
    return arch


@probe
def threads_per_mp(subject: Subject) -> ProbeAnswer:
    arch = _arch(subject)
    return _held_against(subject, arch, {THREADS_PER_MP: PUBLIC_LIMITS[arch].threads_per_mp.value})


@probe
def registers_per_block(subject: Subject) -> ProbeAnswer:
    arch = _arch(subject)
    return _held_against(subject, arch, {REGISTERS_PER_BLOCK: PUBLIC_LIMITS[arch].registers_per_block.value})


@probe
def registers_per_mp(subject: Subject) -> ProbeAnswer:
    arch = _arch(subject)
    return _held_against(subject, arch, {REGISTERS_PER_MP: PUBLIC_LIMITS[arch].registers_per_mp.value})


def _article(subject: Subject) -> str:
    arch = _arch(subject)
    if arch != ARTICLE_LIMITS.target:
        raise Unasked(f"the number is of {ARTICLE_LIMITS.target}, the device is {arch}")
    return arch


@probe
def article_threads(subject: Subject) -> ProbeAnswer:
    return _held_against(subject, _article(subject), {THREADS_PER_MP: ARTICLE_LIMITS.threads_per_mp.value})


@probe
def article_registers(subject: Subject) -> ProbeAnswer:
    return _held_against(subject, _article(subject), {REGISTERS_PER_MP: ARTICLE_LIMITS.registers_per_mp.value})


@probe
def shared_per_mp(subject: Subject) -> ProbeAnswer:
    return _held_against(subject, _article(subject), {SHARED_PER_MP: ARTICLE_LIMITS.shared_per_mp.value})


@probe
def l2_bytes(subject: Subject) -> ProbeAnswer:
    return _held_against(subject, _article(subject), {L2_SIZE: L2_BYTES})


@probe
def accumulator_floats(subject: Subject) -> ProbeAnswer:
    path = subject.require_root() / "include" / "crt" / "mma.h"
    try:
        text = "".join(path.read_text("utf-8", "replace").split())
    except OSError as error:
        raise Unasked(f"{path}: {error.strerror or error}") from error
    wanted = f"__frag_base<float,{SDK_ACCUMULATOR_FLOATS}>"
    return answer(wanted in text, f"{wanted} is {'' if wanted in text else 'not '}in {path}")


@probe
def max_block_is_no_bound(subject: Subject) -> ProbeAnswer:
    found = subject.require_kernel().max_block_size
    if found is None:
        raise Unasked("the metadata has no .max_block_size")
    return answer(found == 1, f".max_block_size {found} without launch bounds")


@probe
def all_ones_is_none(subject: Subject) -> ProbeAnswer:
    raw = subject.require_kernel().raw
    found = raw.get(".barrier_coef", raw.get("barrier_coef"))
    if found is None:
        raise Unasked("the metadata has no .barrier_coef")
    return answer(found in ALL_ONES, f".barrier_coef {found} of a kernel without a barrier")


@probe
def llvm_tools_match(subject: Subject) -> ProbeAnswer:
    compiler = subject.require_job(JobKind.DEVICE_COMPILE).argv[0]
    elsewhere = not registry.target(subject.toolchain.name).own_tools
    found = [find_tool(name, compiler, elsewhere=elsewhere) for name in ("llc", "opt")]
    wrong = [one for one in found if isinstance(one, str)]
    right = [str(one.path) for one in found if not isinstance(one, str)]
    return no("; ".join(wrong)) if wrong else yes(f"of one version: {compiler}, {', '.join(right)}")


@probe
def host_stub(subject: Subject) -> ProbeAnswer:
    whole = subject.whole
    whole.require("a host object")
    found = kernels_in([Path(whole.path)])
    if found is None:
        raise Unasked("the host object's symbols cannot be read")
    return answer(PROBE_KERNEL in found, f"kernels with a host stub: {', '.join(found) or 'none'}")


@probe
def driver_symbols(subject: Subject) -> ProbeAnswer:
    """Linked, not run: no device is needed, but the driver's library."""
    source, target = subject.folder / "driver.cpp", subject.folder / "driver"
    names = DRIVER_FUNCTIONS
    declared = "".join(f'extern "C" int {name}();\n' for name in names)
    calls = " + ".join(f"{name}()" for name in names)

    def links(text: str) -> RunResult:
        source.write_text(text, encoding="utf-8")
        library = [f"-L{subject.root / 'lib'}"] if subject.root else []
        argv = [*subject.toolchain.driver, "-x", "c++", str(source), *library, "-lmusa", "-o", str(target)]
        return subject.run(argv)

    alone = links("int main() { return 0; }\n")
    if not alone.ok:
        raise Unasked(f"nothing links with -lmusa: {why(alone)}")
    result = links(f"{declared}int main(int count, char **) {{ return count > 9 ? {calls} : 0; }}\n")
    missing = [name for name in names if re.search(rf"\b{name}\b", result.stderr_text)]
    return yes("all link") if result.ok else no(f"not in libmusa: {', '.join(missing) or why(result)}")
