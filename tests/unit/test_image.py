"""Another image into a host object: every other section stays as it was; damage is None, never an exception."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mccprobe.build.image import replace_image

OLD = b"the old image\n" * 300

HOST = """
__attribute__((section("{section}"), aligned(4096), used)) static const char image[] = {{{bytes}}};
const char *wrapper[2] = {{image, "other"}};
extern int puts(const char *);
int twice(int n) {{ static int calls; calls++; return n * 2 + (int)puts(image); }}
"""


def build(
    clang: str, folder: Path, *, section: str = ".fat", data: bytes = OLD, options: tuple[str, ...] = ()
) -> bytes:
    source = folder / "host.c"
    source.write_text(HOST.format(section=section, bytes=",".join(map(str, data))))
    subprocess.run([clang, "-O1", *options, "-c", str(source), "-o", str(folder / "host.o")], check=True)
    return (folder / "host.o").read_bytes()


def sections(data: bytes) -> dict[str, tuple[dict[str, int], bytes]]:
    elf = ELFFile(io.BytesIO(data))
    keys = ("sh_type", "sh_flags", "sh_addr", "sh_link", "sh_info", "sh_addralign", "sh_entsize")
    return {f"{n} {s.name}": ({k: s[k] for k in keys}, s.data()) for n, s in enumerate(elf.iter_sections())}


@pytest.fixture(scope="module")
def host_object(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if shutil.which("clang-14") is None:
        pytest.skip("clang-14 is not installed")
    return build("clang-14", tmp_path_factory.mktemp("host"))


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("new", [b"", b"short", b"x" * len(OLD), b"much longer " * 4000], ids=len)
def test_only_the_images_section_changes(host_object: bytes, new: bytes) -> None:
    patched = replace_image(host_object, OLD, new)
    assert patched is not None
    before, after = sections(host_object), sections(patched)
    assert before.keys() == after.keys()
    for name, (header, data) in before.items():
        assert after[name][0] == header, name
        expected = new if name.endswith(" .fat") and "rela" not in name else data
        assert after[name][1] == expected, name
    assert patched[: len(host_object)].count(OLD) == 1, "the old bytes stay where they were, unreferenced"


@pytest.mark.toolchain("clang-14")
def test_a_patched_object_links_and_runs(host_object: bytes, tmp_path: Path) -> None:
    patched = replace_image(host_object, OLD, b"the new image\0")
    assert patched is not None
    (tmp_path / "host.o").write_bytes(patched)
    (tmp_path / "main.c").write_text("int twice(int); int main(void) { return twice(1) < 0; }")
    subprocess.run(["clang-14", "main.c", "host.o", "-o", "program"], cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "program")], capture_output=True, check=True)
    assert ran.stdout == b"the new image\n"


@pytest.mark.toolchain("clang-14")
def test_what_does_not_hold_the_image_is_refused(host_object: bytes, tmp_path: Path) -> None:
    assert replace_image(host_object, b"another image", b"new") is None
    assert replace_image(host_object, OLD[:-1], b"new") is None
    assert replace_image(host_object, OLD + b"more", b"new") is None
    assert replace_image(host_object, b"", b"new") is None
    assert replace_image(b"", OLD, b"new") is None
    assert replace_image(OLD, OLD, b"new") is None
    assert replace_image(build("clang-14", tmp_path, data=OLD + b"and more"), OLD, b"new") is None


@pytest.mark.toolchain("clang-14")
def test_zeros_behind_the_image_stay_behind_it(tmp_path: Path) -> None:
    padded = build("clang-14", tmp_path, data=OLD + bytes(100))
    patched = replace_image(padded, OLD, b"new")
    assert patched is not None
    assert next(data for name, (_, data) in sections(patched).items() if name.endswith(" .fat")) == b"new" + bytes(100)


@pytest.mark.toolchain("clang-14")
def test_a_32_bit_object_is_refused(tmp_path: Path, compiler: Callable[..., str]) -> None:
    narrow = build(compiler(14), tmp_path, options=("-m32", "-ffreestanding"))
    assert replace_image(narrow, OLD, b"new") is None


@pytest.mark.toolchain("clang-14")
def test_every_truncation_is_survived(host_object: bytes) -> None:
    for size in [*range(0, 200), *range(200, len(host_object), 97)]:
        replace_image(host_object[:size], OLD, b"new")


@pytest.mark.toolchain("clang-14")
def test_a_thousand_damaged_objects(host_object: bytes) -> None:
    elf = ELFFile(io.BytesIO(host_object))
    interesting = [*range(64), *range(elf["e_shoff"], len(host_object))]
    chance = random.Random(1)
    for _ in range(1000):
        damaged = bytearray(host_object)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.choice(interesting)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        found = replace_image(bytes(damaged), OLD, b"new")
        assert found is None or found.endswith(b"new")


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_none(data: bytes) -> None:
    assert replace_image(b"\x7fELF\x02\x01\x01" + data, b"image", b"new") is None
