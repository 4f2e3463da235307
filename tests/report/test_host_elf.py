"""Which kernel a local variable of the stand-in belongs to, by its mangled name."""

from __future__ import annotations

import pytest

from mccprobe.inspection.host_elf import host_functions, host_kernels, shared_owner
from mccprobe.objects.binary.records import DeviceImage


@pytest.mark.parametrize(
    ("variable", "owner"),
    [
        ("_ZZ13gemm_wmma_256PK6__halfS1_PS_iiE6shared", "13gemm_wmma_256PK6__halfS1_PS_ii"),
        ("_ZZ5plainE1s_0", "5plain"),  # a second variable of the name
        ("_ZZ1kIiEvPT_E4tile", "1kIiEvPT_"),  # of a template
        ("_ZZN2ns1kE3FooE1s", "N2ns1kE3Foo"),  # in a namespace, of a class type
        ("_ZZ1kPfE4sE2x", "1kPf"),  # a name that looks like an ending
        ("_ZZ1kPf", ""),
        ("_ZN2ns1xE", ""),
        ("_ZZ1kE9999x", ""),
        ("shared", ""),
    ],
)
def test_whose_variable(variable: str, owner: str) -> None:
    assert shared_owner(variable) == owner


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(57)])
def test_a_damaged_file_has_no_functions(data: bytes) -> None:
    image = DeviceImage("x86-64", "host-elf", data, "x", "")
    assert host_functions(image) == ("", []) or host_functions(image)[1] == []
    assert host_kernels(image, simulated=True) == []
