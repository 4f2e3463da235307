"""Names of many kernels for people: one run of the demangler for hundreds of them."""

from __future__ import annotations

from collections.abc import Iterable

from mccprobe.base.process import RunSpec, run
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S, which

DEMANGLERS = ("c++filt", "llvm-cxxfilt", *(f"llvm-cxxfilt-{major}" for major in range(21, 12, -1)))
MAX_ARGUMENT_BYTES = 1 << 16  # of one command line; systems allow at least 128 KiB


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Mangled name -> C++ name, of those that have one. Empty where no demangler is here: it is no need."""
    wanted = [name for name in dict.fromkeys(names) if name.startswith("_Z") and name.isprintable()]
    tool = next((tool for tool in DEMANGLERS if wanted and which(tool) is not None), None)
    found: dict[str, str] = {}
    while tool is not None and wanted:
        chosen, size = 0, 0
        while chosen < len(wanted) and (not chosen or size + len(wanted[chosen].encode()) < MAX_ARGUMENT_BYTES):
            size += len(wanted[chosen].encode()) + 1
            chosen += 1
        names_now, wanted = wanted[:chosen], wanted[chosen:]
        result = run(RunSpec([tool, *names_now], timeout_s=QUERY_TIMEOUT_S))
        lines = result.stdout_text.splitlines()
        if not result.ok or len(lines) != len(names_now):
            break
        found.update((name, line) for name, line in zip(names_now, lines, strict=True) if line and line != name)
    return found
