"""Functions of a host ELF, and the kernels of the stand-in `sim`, as resource metadata.

The stand-in's device image is x86-64 code: it has no registers of a GPU to report, but its __shared__
variables are symbols `_ZZ<kernel>E...` with their sizes, and `-fstack-size-section` leaves the stack
bytes of each function in `.stack_sizes` (address as 8 bytes, size as ULEB128).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mccprobe.binary.records import DeviceImage, KernelMetadata

SIM_HEADING = "SIMULATED x86-64 code, not MP22"
_MACHINES = {"EM_X86_64": "x86-64", "EM_AARCH64": "aarch64"}


@dataclass(frozen=True)
class HostFunction:
    """One function with its code."""

    name: str
    address: int
    data: bytes
    is_global: bool
    stack_bytes: int | None
    shared_bytes: int


def host_functions(image: DeviceImage) -> tuple[str, list[HostFunction]]:
    """Machine and functions, in the order of their addresses. A damaged file has none."""
    try:
        return _functions(image.data)
    except Exception:  # pyelftools raises ELFError, OverflowError and others on damaged files
        return "", []


def _functions(data: bytes) -> tuple[str, list[HostFunction]]:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(data))
    table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
    if table is None:
        return _MACHINES.get(elf["e_machine"], ""), []
    relocatable = elf["e_type"] == "ET_REL"
    stacks = dict(_stack_sizes(elf)) if not relocatable else {}
    symbols = list(table.iter_symbols())  # type: ignore[attr-defined]
    shared = _shared_variables(
        (symbol.name, symbol["st_size"]) for symbol in symbols if symbol["st_info"]["type"] == "STT_OBJECT"
    )
    sections: dict[int, tuple[int, bytes]] = {}  # index -> address, content
    found = []
    for symbol in symbols:
        index = symbol["st_shndx"]
        if symbol["st_info"]["type"] != "STT_FUNC" or not isinstance(index, int) or not symbol["st_size"]:
            continue
        if index not in sections:
            section = elf.get_section(index)
            sections[index] = (0 if relocatable else section["sh_addr"], section.data())
        base, content = sections[index]
        start = symbol["st_value"] - base
        found.append(
            HostFunction(
                name=symbol.name,
                address=symbol["st_value"],
                data=content[start : start + symbol["st_size"]],
                is_global=symbol["st_info"]["bind"] != "STB_LOCAL",
                stack_bytes=stacks.get(symbol["st_value"]),
                shared_bytes=shared.get(_mangled(symbol.name), 0),
            )
        )
    return _MACHINES.get(elf["e_machine"], ""), sorted(found, key=lambda function: (function.address, function.name))


def _mangled(function: str) -> str:
    """How a local variable names its function: an extern "C" kernel's name gets its length in front."""
    return function.removeprefix("_Z") if function.startswith("_Z") else f"{len(function)}{function}"


def _shared_variables(symbols: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Bytes of the local variables of each function, by `_mangled` name."""
    found: dict[str, int] = {}
    for name, size in symbols:
        function = shared_owner(name)
        if function:
            found[function] = found.get(function, 0) + size
    return found


def shared_owner(variable: str) -> str:
    """`_ZZ<function>E<length><name>` and perhaps a discriminator: the function; "" for another symbol."""
    if variable.startswith("_ZZ"):
        for ending in _ENDING.finditer(variable):
            rest = variable[ending.end() + int(ending[1]) :]
            if len(variable) >= ending.end() + int(ending[1]) and _DISCRIMINATOR.fullmatch(rest):
                return variable[3 : ending.start()]
    return ""


_ENDING = re.compile(r"E(\d{1,4})")
_DISCRIMINATOR = re.compile(r"(?:_\d|__\d+_)?")


def _stack_sizes(elf: object) -> Iterator[tuple[int, int]]:
    section = elf.get_section_by_name(".stack_sizes")  # type: ignore[attr-defined]
    data = section.data() if section is not None else b""
    at = 0
    while at + 9 <= len(data):
        address = int.from_bytes(data[at : at + 8], "little")
        at += 8
        size = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        yield address, size


def host_kernels(image: DeviceImage, *, simulated: bool) -> list[tuple[KernelMetadata, HostFunction]]:
    """The global functions of a stand-in's device image as kernels, or all functions of a host object."""
    machine, functions = host_functions(image)
    found = []
    for function in functions:
        if simulated and not function.is_global:
            continue
        metadata = KernelMetadata(
            name=function.name,
            symbol=function.name,
            target=machine or image.target,
            source_format=image.kind,
            registers={},
            shared_memory_bytes=function.shared_bytes if simulated else None,
            private_memory_bytes=function.stack_bytes,
            spills=None,
            has_barrier=None,
            max_block_size=None,
            code_bytes=len(function.data),
            unknown_keys=(),
            raw={},
        )
        found.append((metadata, function))
    return found
