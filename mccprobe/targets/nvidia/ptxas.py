"""Registers, memory and spills of kernels in NVIDIA's texts: `ptxas -v`, `cuobjdump -res-usage`, nvdisasm's sections.

The text, one block a kernel (CUDA toolkit documentation, "Printing Code Generation Statistics"):

    ptxas info    : Compiling entry function '_Z4gemmPf' for 'sm_90'
    ptxas info    : Function properties for _Z4gemmPf
        344 bytes stack frame, 704 bytes spill stores, 560 bytes spill loads
    ptxas info    : Used 64 registers, used 1 barriers, 344 bytes cumulative stack size, 37376 bytes smem

`cuobjdump -res-usage` (CUDA Binary Utilities, "Command-line Options"), one `Function` a kernel; STACK and LOCAL
are bytes a thread, SHARED bytes a block:

    arch = sm_80
     Function gemm:
      REG:8 STACK:0 SHARED:256 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

from __future__ import annotations

import re
from typing import Any

from mccprobe.objects.binary.assembly import is_text
from mccprobe.objects.binary.records import KernelMetadata

SOURCE_FORMAT = "ptxas"
USAGE_FORMAT = "ptxas-usage"  # cuobjdump's account of what ptxas wrote
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"(\d{1,18}) bytes stack frame, (\d{1,18}) bytes spill stores, (\d{1,18}) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d{1,18}) registers")
_BARRIERS = re.compile(r"used (\d{1,18}) barriers")
_SHARED = re.compile(r"(\d{1,18})(?:\+\d{1,18})? bytes smem")


_USAGE = re.compile(r"^[ \t]*Function[ \t]+(\S{1,4096}):[ \t]*\r?\n[ \t]*(REG:\d[^\n]*)", re.MULTILINE)
_USAGE_ARCH = re.compile(r"^arch = (sm_\w+)", re.MULTILINE)
_USAGE_COUNT = re.compile(r"\b(REG|STACK|SHARED|LOCAL|BAR):(\d{1,18})\b")
_SECTION = re.compile(r'^[ \t]*\.section[ \t]+"?\.text\.([^\s,"]+)', re.MULTILINE)
_ANY_SECTION = re.compile(r"^[ \t]*\.section[ \t]", re.MULTILINE)
_BARRIERS_ATTRIBUTE = re.compile(
    r"EIATTR_NUM_BARRIERS[ \t]*\r?\n(?:[ \t]*\.align[^\n]*\n)?[^\n]*\.byte[ \t]+0x02, 0x4c[ \t]*\r?\n"
    r"[^\n]*\.byte[ \t]+0x([0-9a-f]{2})"
)
_INFO = re.compile(r'^[ \t]*\.section[ \t]+"?\.nv\.info\.([^\s,"]+)', re.MULTILINE)
_SECTION_COUNT = re.compile(r"\bSH[IF]_(REGISTERS|BARRIERS)=(\d{1,18})")


def usage_format(data: bytes) -> str:
    """SOURCE_FORMAT or USAGE_FORMAT for such a text, "" for anything else."""
    if not is_text(data):
        return ""
    text = data.decode("utf-8", "replace")
    if _ENTRY.search(text):
        return SOURCE_FORMAT
    return USAGE_FORMAT if _USAGE.search(text) else ""


def kernels_of_text(data: bytes) -> list[KernelMetadata]:
    """The kernels of a text for which `usage_format` gave a name."""
    text = data.decode("utf-8", "replace")
    return parse_ptxas(text) if _ENTRY.search(text) else parse_usage(text)


def parse_usage(text: str) -> list[KernelMetadata]:
    """One record a `Function` of `cuobjdump -res-usage`."""
    found = []
    archs = list(_USAGE_ARCH.finditer(text))
    for match in _USAGE.finditer(text):
        counts = {key: int(value) for key, value in _USAGE_COUNT.findall(match[2])}
        target = next((arch[1] for arch in reversed(archs) if arch.start() < match.start()), "")
        raw = {"line": match[2].strip(), **counts}
        found.append(
            KernelMetadata(
                name=match[1],
                symbol=match[1],
                target=target,
                source_format=USAGE_FORMAT,
                registers={"vector": counts.get("REG")},
                shared_memory_bytes=counts.get("SHARED"),
                private_memory_bytes=_sum(counts.get("STACK"), counts.get("LOCAL")),
                spills=None,
                has_barrier=bool(counts["BAR"]) if "BAR" in counts else None,
                max_block_size=None,
                code_bytes=None,
                unknown_keys=(),
                raw=raw,
            )
        )
    return found


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def counts_of_sections(data: bytes) -> dict[str, dict[str, int]]:
    """Kernel -> REGISTERS and BARRIERS that nvdisasm prints at the head of its section, as far as they are there."""
    text = data.decode("utf-8", "replace")
    found: dict[str, dict[str, int]] = {}
    for match in _SECTION.finditer(text):
        after = _ANY_SECTION.search(text, match.end())
        label = text.find(f"\n.text.{match[1]}:", match.end())
        ends = [place for place in (after.start() if after else -1, label) if place >= 0]
        head = text[match.end() : min(ends, default=len(text))]
        counts = {key: int(value) for key, value in _SECTION_COUNT.findall(head)}
        if counts:
            found[match[1]] = counts
    for match in _INFO.finditer(text):
        after = _ANY_SECTION.search(text, match.end())
        told = _BARRIERS_ATTRIBUTE.search(text, match.end(), after.start() if after else len(text))
        if told:
            found.setdefault(match[1], {}).setdefault("BARRIERS", int(told[1], 16))
    return found


def parse_ptxas(text: str) -> list[KernelMetadata]:
    """One record a kernel; what a line does not tell is None. Other lines are passed over."""
    found: list[KernelMetadata] = []
    blocks = list(_ENTRY.finditer(text))
    for index, match in enumerate(blocks):
        end = blocks[index + 1].start() if index + 1 < len(blocks) else len(text)
        found.append(_kernel(match.group(1), match.group(2), text[match.end() : end]))
    return found


def _kernel(symbol: str, target: str, block: str) -> KernelMetadata:
    properties = _PROPERTIES.search(block)
    used = _REGISTERS.search(block)
    line = block[used.start() :].split("\n", 1)[0] if used else ""
    barriers, shared = _BARRIERS.search(line), _SHARED.search(line)
    raw: dict[str, Any] = {
        "registers": int(used[1]) if used else None,
        "barriers": int(barriers[1]) if barriers else (0 if used else None),
        "shared_bytes": int(shared[1]) if shared else (0 if used else None),
        "stack_bytes": int(properties[1]) if properties else None,
        "spill_store_bytes": int(properties[2]) if properties else None,
        "spill_load_bytes": int(properties[3]) if properties else None,
    }
    return KernelMetadata(
        name=symbol,
        symbol=symbol,
        target=target,
        source_format=SOURCE_FORMAT,
        registers={"vector": raw["registers"]},
        shared_memory_bytes=raw["shared_bytes"],
        private_memory_bytes=raw["stack_bytes"],
        spills={"store_bytes": raw["spill_store_bytes"], "load_bytes": raw["spill_load_bytes"]} if properties else None,
        has_barrier=bool(raw["barriers"]) if used else None,
        max_block_size=None,
        code_bytes=None,
        unknown_keys=(),
        raw=raw,
    )
