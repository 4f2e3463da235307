"""Probes of the toolkit's tools and libraries, and of the device."""

from __future__ import annotations

from mccprobe.base.errors import MccprobeError
from mccprobe.doctor.probes import probe
from mccprobe.doctor.subject import Answer, Subject, Unasked, answer, no, why, yes
from mccprobe.objects.binary.elf import SHN_UNDEF, iter_symbols, parse_elf
from mccprobe.objects.model.limits import PUBLIC_LIMITS, Constant, Limits
from mccprobe.targets.llvm.locate import which
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.tuning.plan.machine import MULTIPROCESSORS

GMI = "mthreads-gmi"
RUNTIME_SYMBOLS = ("musaLaunchKernel", "__musaRegisterFatBinary", "__musaRegisterFunction")
LINKERS = ("ld.lld", "lld")


@probe
def tools_beside(subject: Subject) -> Answer:
    missing = [name for name in ("llc", "llvm-objdump", "clang-offload-bundler") if subject.beside(name) is None]
    if not any(subject.beside(name) for name in LINKERS):
        missing.append("ld.lld or lld")
    return no(f"not there: {', '.join(missing)}") if missing else yes("all there")


@probe
def musaasm(subject: Subject) -> Answer:
    found = subject.beside("musaasm")
    if found is None:
        raise Unasked("not there, as in some images")
    return yes(str(found))


@probe
def runtime_header(subject: Subject) -> Answer:
    made = subject.program
    return answer(bool(made.data), "a program with one kernel is built" if made.data else made.problem)


@probe
def matrix_header(subject: Subject) -> Answer:
    folder = subject.require_root() / "include"
    missing = [name for name in ("mma.h", "crt/mma.h") if not (folder / name).is_file()]
    return no(f"not below {folder}: {', '.join(missing)}") if missing else yes(f"both below {folder}")


@probe
def runtime_symbols(subject: Subject) -> Answer:
    path = subject.require_root() / "lib" / "libmusart.so"
    try:
        elf = parse_elf(path.read_bytes(), str(path))
        names = {symbol.name for symbol in iter_symbols(elf) if symbol.section != SHN_UNDEF}
    except OSError as error:
        raise Unasked(f"{path}: {error.strerror or error}") from error
    except MccprobeError as error:
        return no(error.message)
    missing = [name for name in RUNTIME_SYMBOLS if name not in names]
    return no(f"not exported: {', '.join(missing)}") if missing else yes(f"{path}: all exported")


@probe
def program_runs(subject: Subject) -> Answer:
    subject.program.require("a program with one kernel")
    ran = subject.run([str(subject.program.path)])
    if ran.returncode == 2:
        raise Unasked("no device memory is given: is a device there?")
    return answer(ran.ok, "the right number" if ran.ok else f"the program ends with {ran.describe()}")


@probe
def gpu_tool(subject: Subject) -> Answer:
    if which(GMI) is None:
        raise Unasked(f"{GMI} is not in PATH: no GPU driver here")
    result = subject.run([GMI])
    return answer(result.ok, "answers" if result.ok else why(result))


def _limits(subject: Subject) -> tuple[str, Limits]:
    arch = subject.properties.get("arch", "")
    if arch not in PUBLIC_LIMITS:
        raise Unasked(f"the device calls itself {arch or 'nothing'}; public limits are of {', '.join(PUBLIC_LIMITS)}")
    return arch, PUBLIC_LIMITS[arch]


def _compared(subject: Subject, key: str, arch: str, expected: Constant) -> Answer:
    told = subject.properties.get(key, "")
    if expected.value is None:
        raise Unasked(f"no public number for {arch}; the device says {told}")
    return answer(told == str(expected.value), f"{arch}: the device says {told}, expected {expected.value}")


@probe
def warp_threads(subject: Subject) -> Answer:
    arch, limits = _limits(subject)
    return _compared(subject, "warp", arch, limits.warp_threads)


@probe
def shared_per_block(subject: Subject) -> Answer:
    arch, limits = _limits(subject)
    return _compared(subject, "shared", arch, limits.shared_per_block)


@probe
def threads_per_block(subject: Subject) -> Answer:
    arch, limits = _limits(subject)
    return _compared(subject, "threads", arch, limits.threads_per_block)


@probe
def multiprocessors(subject: Subject) -> Answer:
    arch, _ = _limits(subject)
    if arch != DEFAULT_ARCH:
        raise Unasked(f"the number is of {DEFAULT_ARCH}, the device is {arch}")
    expected = Constant(int(MULTIPROCESSORS.value), MULTIPROCESSORS.unit, MULTIPROCESSORS.source)
    return _compared(subject, "multiprocessors", arch, expected)
