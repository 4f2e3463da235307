"""Functions of a host ELF, and the kernels of the stand-in `sim`, as resource metadata.

The stand-in's device image is x86-64 code: it has no registers of a GPU to report, but its __shared__
variables are symbols `_ZZ<kernel>E...` with their sizes, and `-fstack-size-section` leaves the stack
bytes of each function in `.stack_sizes` (address as 8 bytes, size as ULEB128).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mccprobe.base.errors import BadElf
from mccprobe.objects.binary.elf import (
    ET_REL,
    HOSTS,
    STT_FUNC,
    STT_OBJECT,
    Elf,
    iter_symbols,
    read_code_symbols,
)
from mccprobe.objects.binary.metadata import MTGPU
from mccprobe.objects.binary.read import SIMULATED
from mccprobe.objects.binary.records import DeviceImage, KernelMetadata

SIM_HEADING = SIMULATED


@dataclass(frozen=True)
class HostFunction:
    """One function."""

    name: str
    address: int
    size_bytes: int
    is_global: bool
    stack_bytes: int | None
    shared_bytes: int


def host_functions(image: DeviceImage) -> tuple[str, list[HostFunction]]:
    """Machine and functions, in the order of their addresses. A damaged file has none."""
    try:
        elf = image.elf
        symbols = {(one.name, one.section, one.value): one for one in iter_symbols(elf)}.values()  # of both tables
        code = {(symbol.name, symbol.address): len(symbol.data) for symbol in read_code_symbols(elf)}
        stacks = dict(_stack_sizes(elf)) if elf.type != ET_REL else {}
        shared = _shared_variables((one.name, one.size) for one in symbols if one.kind == STT_OBJECT)
        functions = {
            (one.name, one.value): HostFunction(
                name=one.name,
                address=one.value,
                size_bytes=code[one.name, one.value],
                is_global=not one.is_local,
                stack_bytes=stacks.get(one.value),
                shared_bytes=shared.get(_mangled(one.name), 0),
            )
            for one in symbols
            if one.kind == STT_FUNC and one.size and (one.name, one.value) in code
        }
    except BadElf:
        return "", []
    machine = HOSTS.get(elf.machine, "")
    return machine, sorted(functions.values(), key=lambda function: (function.address, function.name))


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


def _stack_sizes(elf: Elf) -> Iterator[tuple[int, int]]:
    data = b"".join(elf.section_bytes(section) for section in elf.sections if section.name == ".stack_sizes")
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
            registers=dict.fromkeys(MTGPU.registers) if simulated else {},  # mcc would count these, nobody does here
            shared_memory_bytes=function.shared_bytes if simulated else None,
            private_memory_bytes=function.stack_bytes,
            spills=None,
            has_barrier=None,
            max_block_size=None,
            code_bytes=function.size_bytes,
            unknown_keys=(),
            raw={},
        )
        found.append((metadata, function))
    return found
