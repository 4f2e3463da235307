"""Put another device image into a host object without compiling the host half again.

The image is data in one section that nothing is relocated in (`.hip_fatbin`, `.nv_fatbin`,
`.mt_fatbin`; found by its content, so that the name need not be known). The new image goes to the
end of the file and that section's header is pointed at it: every other byte stays as it was.
"""

from __future__ import annotations

import io
import struct

_SH_OFFSET_FIELD = 0x18  # Elf64_Shdr.sh_offset; sh_size follows it (System V ABI, section header)
_ALIGNMENT_BYTES = 4096  # the bundler's own alignment of images


def replace_image(host_object: bytes, old: bytes, new: bytes) -> bytes | None:
    """The host object with `new` in place of `old`; None if no section holds exactly `old`."""
    try:
        found = _find_image(host_object, old)
    except Exception:  # a damaged object: pyelftools raises ELFError, OverflowError and others
        return None
    if found is None:
        return None
    at, padding = found
    new += padding
    patched = bytearray(host_object)
    patched += bytes(-len(patched) % _ALIGNMENT_BYTES)
    struct.pack_into("<QQ", patched, at, len(patched), len(new))
    patched += new
    return bytes(patched)


def _find_image(host_object: bytes, old: bytes) -> tuple[int, bytes] | None:
    """File offset of sh_offset of the one section that holds exactly `old`, and the zeros behind it.

    clang ends the image with a NUL, as it does a string.
    """
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(host_object))
    if elf.elfclass != 64 or not elf.little_endian or not old:
        return None
    for index, section in enumerate(elf.iter_sections()):
        if section["sh_type"] == "SHT_PROGBITS" and section["sh_size"] >= len(old):
            data = section.data()
            if data.startswith(old) and not data[len(old) :].strip(b"\0"):
                at: int = elf["e_shoff"] + index * elf["e_shentsize"] + _SH_OFFSET_FIELD
                return (at, data[len(old) :]) if at + 16 <= len(host_object) else None
    return None
