"""Registers, memory and spills of kernels as NVIDIA's ptxas tells them (`nvcc -Xptxas -v`).

The text, one block a kernel (CUDA toolkit documentation, "Printing Code Generation Statistics"):

    ptxas info    : Compiling entry function '_Z4gemmPf' for 'sm_90'
    ptxas info    : Function properties for _Z4gemmPf
        344 bytes stack frame, 704 bytes spill stores, 560 bytes spill loads
    ptxas info    : Used 64 registers, used 1 barriers, 344 bytes cumulative stack size, 37376 bytes smem
"""

from __future__ import annotations

import re
from typing import Any

from mccprobe.objects.binary.records import KernelMetadata

SOURCE_FORMAT = "ptxas"
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"(\d{1,18}) bytes stack frame, (\d{1,18}) bytes spill stores, (\d{1,18}) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d{1,18}) registers")
_BARRIERS = re.compile(r"used (\d{1,18}) barriers")
_SHARED = re.compile(r"(\d{1,18})(?:\+\d{1,18})? bytes smem")


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
        name=symbol, symbol=symbol, target=target, source_format=SOURCE_FORMAT,
        registers={"vector": raw["registers"]}, shared_memory_bytes=raw["shared_bytes"],
        private_memory_bytes=raw["stack_bytes"],
        spills={"store_bytes": raw["spill_store_bytes"], "load_bytes": raw["spill_load_bytes"]} if properties else None,
        has_barrier=bool(raw["barriers"]) if used else None, max_block_size=None, code_bytes=None, unknown_keys=(),
        raw=raw,
    )  # fmt: skip
