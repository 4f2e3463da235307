"""Whose metadata stands in an assembly text is told by its own words."""

from __future__ import annotations

from mccprobe.objects.binary.read import images_of, read_kernels

from .writer import mtgpu_assembly, mtgpu_document, mtgpu_kernel

AMDGPU = """\t.text
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .sgpr_count: 12
    .vgpr_count: 7
    .group_segment_fixed_size: 64
amdhsa.target: amdgcn-amd-amdhsa--gfx908
amdhsa.version:
  - 1
  - 1
...
\t.end_amdgpu_metadata
"""


def test_each_dialect_has_its_own_names() -> None:
    (image,) = images_of(AMDGPU.encode(), "k.s")
    kernels, _ = read_kernels(image)
    assert [(one.name, one.symbol, one.shared_memory_bytes) for one in kernels] == [("k", "k.kd", 64)]
    assert kernels[0].registers["vector"] == 7
    (image,) = images_of(mtgpu_assembly(mtgpu_document(mtgpu_kernel("k"))).encode(), "k.s")
    kernels, _ = read_kernels(image)
    assert [one.name for one in kernels] == ["k"] and "vector" not in kernels[0].registers
