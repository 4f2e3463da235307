"""Static libraries: the members of an `ar` archive.

    "!<arch>\\n" | member: name[16] date[12] uid[6] gid[6] mode[8] size[10] "`\\n" | content | pad to 2

Long names stand in the member "//" (GNU) or in front of the content (BSD). Source: System V ABI,
chapter 7, and the BSD variant as llvm/lib/Object/Archive.cpp reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mccprobe.base.errors import BadBinary

MAGIC = b"!<arch>\n"
HEADER_BYTES = 60
_INDEXES = frozenset((b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED"))  # tables of symbols


def is_archive(data: bytes) -> bool:
    """True for a static library that holds its members."""
    return data.startswith(MAGIC)


def iter_members(data: bytes, origin: str = "") -> Iterator[tuple[str, bytes]]:
    """(name, content) of each member. Raises BadBinary if a header is damaged."""
    at, long_names = len(MAGIC), b""
    while at < len(data):
        header = data[at : at + HEADER_BYTES]
        digits = header[48:58].rstrip()
        if len(header) < HEADER_BYTES or header[58:] != b"`\n" or not digits.isdigit():
            raise BadBinary(origin, "the header of an archive member is damaged", offset=at)
        size = int(digits)
        start = at + HEADER_BYTES
        if size > len(data) - start:
            raise BadBinary(origin, f"an archive member of {size} bytes runs past the end ({len(data)})", offset=at)
        name = header[:16].rstrip()
        content = data[start : start + size]
        at = start + size + size % 2
        if name == b"//":
            long_names = content
            continue
        if name[:3] == b"#1/" and name[3:].isdigit():
            length = int(name[3:])
            name, content = content[:length].rstrip(b"\0"), content[length:]
        elif name[:1] == b"/" and name[1:].isdigit():
            place = int(name[1:])
            name = long_names[place : place + 4096].partition(b"\n")[0].removesuffix(b"/")
        if name not in _INDEXES:
            yield name.removesuffix(b"/").decode("utf-8", "surrogateescape"), content
