"""What the `.kind` of an MTGPU kernel's argument means.

Sources: public `mcc -S` texts (mtgpu.md 3.3) and the notes of public objects, where the compiler names its hidden
arguments itself (real-objects.md: 9, 10 and 25). A number that is not here is shown as it is, and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

USER = 18
NAMES: Mapping[int, str] = {
    1: "threadIdx.x",
    2: "threadIdx.y",
    3: "threadIdx.z",
    5: "blockIdx.x",
    6: "blockIdx.y",
    7: "blockIdx.z",
    9: "blockDim.x",
    10: "blockDim.y",
    13: "gridDim.x",
    14: "gridDim.y",
    15: "gridDim.z",
    USER: "user parameter",
    19: "Global Spill Base",
    23: "Core Number",
    25: "Const Calc Output",
    33: "prog_addr",
    34: "prog_size",
}


def kinds_of(kernel: Mapping[str, Any]) -> Iterator[int]:
    """The kinds of a kernel's arguments, as far as they are numbers."""
    arguments = kernel.get(".args", kernel.get("args"))
    for one in arguments if isinstance(arguments, list) else ():
        kind = one.get(".kind", one.get("kind")) if isinstance(one, Mapping) else None
        if type(kind) is int:
            yield kind


def unknown_kinds(kernel: Mapping[str, Any]) -> list[int]:
    """Kinds without a known meaning, each once."""
    return sorted({kind for kind in kinds_of(kernel) if kind not in NAMES})
