"""Which kernels a program can launch, from its objects, and which it did launch.

clang writes one host stub for each kernel (nvcc too, with another name): `_Z28__device_stub__gemm_wmma_256...`
is what a launch calls, so the stubs of the kernel's objects are what their dispatch can launch. That is asked of the
object and not of kernel.toml, because a branch that nobody wrote down is the one that nobody checks.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from mccprobe.targets.llvm.locate import demangle

_STUB = re.compile(r"(\d{1,9})(__device_stub__)")
_NVCC_NAME = re.compile(r"Z(?:\d|N)")  # nvcc puts the kernel's whole mangled name, less its underscore, into the stub's
_EMULATED = re.compile(r"^mccprobe-sim: launch (.+) grid \(", re.MULTILINE)
_VOID = "void "  # before the name of a template's instance


def kernels_in(objects: Iterable[Path]) -> tuple[str, ...] | None:
    """The kernels of these host objects by name, with template arguments; None if an object cannot be read."""
    names: set[str] = set()
    for path in objects:
        found = _stubs(path)
        if found is None:
            return None
        names.update(kernel_name(demangle(symbol)) for symbol in found)
    return tuple(sorted(names))


def _stubs(path: Path) -> set[str] | None:
    """The symbols that the kernels themselves have, from those of their stubs."""
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(path.read_bytes()))
        table = elf.get_section_by_name(".symtab")
        every = [] if table is None else list(table.iter_symbols())  # type: ignore[attr-defined]
        functions = [symbol.name for symbol in every if symbol["st_info"]["type"] == "STT_FUNC"]
        symbols = [name for name in functions if "." not in name]  # `.cold` is a part of another
    except Exception:  # no ELF file, or a damaged one: pyelftools raises ELFError, OverflowError and others
        return None
    found = set()
    for symbol in symbols:
        match = _STUB.search(symbol)
        if match and _NVCC_NAME.match(symbol, match.end()):
            found.add("_" + symbol[match.end() : match.start(2) + int(match[1])])
        elif match and symbol.startswith("_Z"):
            length = int(match[1]) - len("__device_stub__")
            found.add(f"{symbol[: match.start()]}{length}{symbol[match.end() :]}")
        elif symbol.startswith("__device_stub__"):  # extern "C"
            found.add(symbol.removeprefix("__device_stub__"))
    return found


def kernel_name(text: str) -> str:
    """`void ns::gemm<128, true>(int*)` -> `gemm<128,true>`: without return type, namespaces, arguments, spaces."""
    text = text.strip().replace("(anonymous namespace)::", "")
    depth, start, end = 0, 0, len(text)
    for at, character in enumerate(text):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif depth == 0 and character == "(":
            end = at
            break
        elif depth == 0 and text.startswith("::", at):
            start = at + 2
        elif depth == 0 and character == " " and text.endswith("void", 0, at):
            start = at + 1
    return text[start:end].replace(" ", "")


def base_name(kernel: str) -> str:
    """Without template arguments: what a [[dispatch]] of kernel.toml names."""
    return kernel.partition("<")[0]


def emulated_launches(stderr: str) -> dict[str, int]:
    """What the emulator itself launched, from its own messages (MCCSIM_VERBOSE=1)."""
    return dict(Counter(kernel_name(name) for name in _EMULATED.findall(stderr)))


def covers(launched: str, kernel: str, all_kernels: Iterable[str]) -> bool:
    """True if a launch reported as `launched` was one of `kernel`.

    A name without template arguments stands for an instance only where there is no other one.
    """
    name = kernel_name(launched)
    if name == kernel:
        return True
    alone = sum(1 for other in all_kernels if base_name(other) == base_name(kernel)) == 1
    return alone and base_name(name) == base_name(kernel)


def launched_among(launches: Mapping[str, int], kernels: Iterable[str]) -> set[str]:
    """Those of `kernels` that were launched."""
    known = tuple(kernels)
    return {kernel for kernel in known if any(covers(name, kernel, known) for name, count in launches.items() if count)}
