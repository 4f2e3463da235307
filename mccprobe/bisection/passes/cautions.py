"""Does the result depend on time, chance, process ids, addresses or threads? Then two builds differ without a fault.

Two questions. Of the objects: which functions do they call, which instructions do they hold? Of the program: does the
good side stay GOOD when the machine is busy, when the program has the lowest priority, when it is built slower, and
when its code and data lie elsewhere? A "yes" to the first is a caution, a "no" to the second is an observation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mccprobe.base.errors import BadBinary
from mccprobe.objects.binary.elf import EM_X86_64, SHN_UNDEF, Elf, is_elf, iter_symbols, parse_elf, read_code_symbols
from mccprobe.objects.isa.disassemble import iter_capstone

CLOCK, CHANCE, PROCESS, THREADS, ADDRESSES = "clock", "random numbers", "process ids", "threads", "addresses"
_FUNCTIONS = {
    CLOCK: (
        "clock time gettimeofday clock_gettime clock_getres timespec_get times getrusage ftime setitimer timer_create "
        "timerfd_create alarm nanosleep usleep clock_nanosleep omp_get_wtime _ZNSt6chrono3_V212steady_clock3nowEv "
        "_ZNSt6chrono3_V212system_clock3nowEv _ZNSt3__16chrono12steady_clock3nowEv _ZNSt3__16chrono12system_clock3nowEv"
    ),
    CHANCE: (
        "getrandom getentropy arc4random arc4random_buf arc4random_uniform _ZNSt13random_device9_M_getvalEv "
        "_ZNSt3__113random_deviceclEv"
    ),
    PROCESS: "getpid getppid gettid pthread_self getsid getpgrp",
    THREADS: (
        "pthread_create thrd_create fork vfork clone GOMP_parallel __kmpc_fork_call "
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"
    ),
}
_KIND_OF = {name: kind for kind, names in _FUNCTIONS.items() for name in names.split()}
# x86-64 (Intel SDM 2) and what the bytes of each begin with; only where they occur the code is disassembled
_INSTRUCTIONS = {
    "rdtsc": CLOCK,
    "rdtscp": CLOCK,
    "rdpmc": CLOCK,
    "rdrand": CHANCE,
    "rdseed": CHANCE,
    "rdpid": PROCESS,
}
_OPCODES = re.compile(rb"\x0f\x31|\x0f\x01\xf9|\x0f\x33|\x0f\xc7[\xf0-\xff]", re.DOTALL)
_FILES = re.compile(rb"/dev/(?:u?random|hwrng)\b|/proc/(?:self|uptime|stat|loadavg)\b")
_POINTER_FORMAT = re.compile(rb"%[-#0 +]*\d*p")
_MOST_BYTES = 64 << 20  # of one object


def cautions_of(objects: Sequence[Path]) -> tuple[str, ...]:
    """One sentence for each kind of dependence that the objects show, with what shows it."""
    found: dict[str, list[str]] = {}
    for path in objects:
        for kind, what in _signs(path):
            if what not in found.setdefault(kind, []):
                found[kind].append(what)
    return tuple(f"the program depends on {kind}: {', '.join(signs[:4])}" for kind, signs in found.items())


def _signs(path: Path) -> Iterator[tuple[str, str]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return
        data = path.read_bytes()
        if not is_elf(data):
            return
        elf = parse_elf(data, str(path))
        undefined = sorted({symbol.name for symbol in iter_symbols(elf) if symbol.section == SHN_UNDEF})
        yield from ((_KIND_OF[name], f"{name}()") for name in undefined if name in _KIND_OF)
        yield from _instructions(elf)
    except (OSError, BadBinary):
        return
    for section in elf.sections:
        if section.name.startswith((".rodata", ".data")):
            content = elf.section_bytes(section)
            yield from ((CHANCE, match.group().decode()) for match in _FILES.finditer(content))
            if _POINTER_FORMAT.search(content):
                yield ADDRESSES, "the format %p"


def _instructions(elf: Elf) -> Iterator[tuple[str, str]]:
    if elf.machine != EM_X86_64:
        return
    for symbol in read_code_symbols(elf):
        if _OPCODES.search(symbol.data):
            for _, _, mnemonic, _ in iter_capstone(symbol):
                word = mnemonic.rpartition(" ")[2].rstrip("lqw")
                if word in _INSTRUCTIONS:
                    yield _INSTRUCTIONS[word], f"the instruction {word}"
