"""What a note says, as a value, and a value as lines of text.

Only formats with a public source are decoded; the bytes of any other note are shown on request.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from mccprobe.base.errors import BadMetadata
from mccprobe.objects.binary.arguments import NAMES as ARGUMENTS
from mccprobe.objects.binary.document import read_messagepack, read_yaml
from mccprobe.objects.binary.metadata import ALL_ONES
from mccprobe.objects.binary.notes import AMDGPU_METADATA, MTGPU_METADATA
from mccprobe.objects.binary.records import Note

_SYSTEMS = ("Linux", "GNU Hurd", "Solaris", "FreeBSD")  # of NT_GNU_ABI_TAG, glibc elf.h
_KINDS = frozenset((".kind", "kind"))  # of an MTGPU argument; AMDGPU's are texts
_CONTAINERS: frozenset[type] = frozenset((dict, list))
_encode = json.JSONEncoder(ensure_ascii=False).encode
_ABI_TAG = struct.Struct("<IIII")


def decode_note(note: Note, origin: str = "") -> Any:
    """The descriptor as maps, lists and scalars; None where no format is known for it.

    Raises BadMetadata if it is not of the format that its owner and type stand for.
    """
    where = f"{origin}: {note.location}" if origin else note.location
    key = (note.owner, note.type)
    if key in (MTGPU_METADATA, AMDGPU_METADATA):
        return read_messagepack(note.descriptor, where)
    if key == ("AMD", 10):
        return read_yaml(_text(note.descriptor), where)
    if key == ("AMD", 11) or note.owner == "LLVMOMPOFFLOAD" or key == ("GNU", 4):
        return _text(note.descriptor)
    if key == ("GNU", 3):
        return note.descriptor.hex()
    if key == ("GNU", 1):
        if len(note.descriptor) < _ABI_TAG.size:
            raise BadMetadata(where, f"an ABI tag of {len(note.descriptor)} bytes", expected="16")
        system, *version = _ABI_TAG.unpack_from(note.descriptor)
        name = _SYSTEMS[system] if system < len(_SYSTEMS) else f"system {system}"
        return f"{name} {'.'.join(map(str, version))}"
    return None


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape")


def iter_described(value: Any, indent: int = 0) -> Iterator[list[str]]:
    """Lines in the manner of YAML: one key a line, keys as stored, texts quoted; each kernel's by themselves."""
    pad = " " * indent
    for key, item in value.items() if type(value) is dict else ():
        if type(item) is list and not _is_flat(item):
            yield [f"{pad}{key}:"]
            yield from (_described([part], pad + "  ") for part in item)
        else:
            yield _described({key: item}, pad)
    if type(value) is not dict or not value:
        yield _described(value, pad)


def _described(value: Any, pad: str) -> list[str]:
    lines: list[str] = []
    _describe(value, pad, lines)
    return lines


def _describe(value: Any, pad: str, lines: list[str]) -> None:
    if type(value) is dict and value:
        for key, item in value.items():
            kind = type(item)
            if kind is str or kind is int:  # nearly all; the rest of this function is slower
                lines.append(f"{pad}{key}: {_scalar(item)}")
                if kind is int and key in _KINDS and item in ARGUMENTS:
                    lines[-1] += f" ({ARGUMENTS[item]})"
            elif kind in _CONTAINERS and item and not _is_flat(item):
                lines.append(f"{pad}{key}:")
                _describe(item, pad + "  ", lines)
            else:
                lines.append(f"{pad}{key}: {_flat(item)}")
    elif type(value) is list and not _is_flat(value):
        for item in value:
            at = len(lines)
            _describe(item, pad + "  ", lines)
            lines[at] = f"{pad}- {lines[at][len(pad) + 2 :]}"
    else:
        lines.append(pad + _flat(value))


def _is_flat(value: Any) -> bool:
    return type(value) is list and _CONTAINERS.isdisjoint([type(item) for item in value])


def _flat(value: Any) -> str:
    return f"[{', '.join(map(_scalar, value))}]" if type(value) is list else _scalar(value)


def _scalar(value: Any) -> str:
    if type(value) is int:
        return f"{value} (all ones)" if value in ALL_ONES else str(value)
    return _encode(value)


def hex_lines(data: bytes, indent: int = 0) -> Iterator[str]:
    """Offset, 16 bytes and their ASCII a line."""
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{' ' * indent}{at:06x}  {row.hex(' '):<47}  {text}"
