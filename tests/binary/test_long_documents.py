"""Documents with lists over what msgpack may reserve at once: every byte is walked over before anything is made."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from mccprobe.base.errors import BadMetadata
from mccprobe.objects.binary.describe import decode_note
from mccprobe.objects.binary.document import MAX_DEPTH, QUICK_ITEMS, plain, read_messagepack, read_yaml, scalar_of
from mccprobe.objects.binary.notes import Note

LONG = QUICK_ITEMS + 1  # items from which the bytes are walked over first
VALUES = {
    "nothing": None, "truth": [True, False], "small": [0, 127, -1, -32],
    "integers": [200, 60_000, 1 << 31, 1 << 63, -100, -30_000, -(1 << 31), -(1 << 63)], "real": 1.5,
    "short text": "x" * 31, "text 8": "x" * 32, "text 16": "x" * 300, "text 32": "x" * 70_000,
    "list of 15": list(range(15)), "list of 16": list(range(16)), "map of 15": {str(n): n for n in range(15)},
    "map of 16": {str(n): n for n in range(16)}, "empty": [[], {}, ""], "map 16": {str(n): n for n in range(300)},
}  # fmt: skip


def said(data: bytes) -> str:
    with pytest.raises(BadMetadata) as caught:
        read_messagepack(data, "k.o")
    return caught.value.message


@pytest.mark.parametrize("name", VALUES)
def test_every_kind_of_value_behind_a_long_list(name: str) -> None:
    document = {"long": [0] * LONG, "value": VALUES[name], "behind": 7}
    assert read_messagepack(msgpack.packb(document)) == document


@pytest.mark.parametrize("name", VALUES)
def test_a_cut_anywhere_in_the_value_is_told(name: str) -> None:
    whole = msgpack.packb([[0] * LONG, VALUES[name]])
    for left in {1, 2, len(msgpack.packb(VALUES[name])) // 2} - {0}:
        message = said(whole[:-left])
        assert message.startswith("k.o: ") and ("ends inside" in message or "runs past the end" in message), message


def test_where_a_cut_is() -> None:
    head = msgpack.packb([[0] * LONG, "x"])[:-2]  # the text is two bytes
    end = len(head)
    assert said(head) == f"k.o: the descriptor ends inside of its MessagePack document (offset 0x{end:x})"
    past = f"k.o: a MessagePack value runs past the end of the descriptor ({end + 1} bytes) (offset 0x{end:x})"
    assert said(head + b"\xa1") == past
    assert said(head + b"\x91") == past
    assert said(head + b"\xc1") == f"k.o: byte c1 has no meaning in MessagePack (offset 0x{end:x})"


def test_depth_is_bounded_to_the_level() -> None:
    deep: Any = [0] * LONG
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    assert said(msgpack.packb(deep)).startswith(f"k.o: MessagePack nested deeper than {MAX_DEPTH} levels (offset 0x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0b101", 5),
        ("-0b1", -1),
        ("0x1F", 31),
        ("+0x10", 16),
        ("017", 15),
        ("0o17", 15),
        ("09", "09"),
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("0b2", "0b2"),
        ("0xg", "0xg"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.e-2", 0.01),
        ("no", False),
        ("On", True),
        ("oN", "oN"),
        ("~", None),
        ("null", None),
        ("", None),
        ("Null", "Null"),
        ("1" * 21, "1" * 21),
        ("1." + "0" * 61, 1.0),
        ("1." + "0" * 62, "1." + "0" * 62),
    ],
)
def test_scalars_by_llvms_rule(text: str, value: Any) -> None:
    found = scalar_of(text)
    assert found == value and type(found) is type(value)


def test_yaml_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(BadMetadata) as caught:
        read_yaml("a: 1\nb: [1, 2\nc: 3\n", "k.s")
    assert caught.value.message.startswith("k.s: ") and "line 3" in caught.value.message


def test_keys_are_texts_and_the_origin_is_told() -> None:
    assert plain({7: "a", "b": 2}) == {"7": "a", "b": 2}
    with pytest.raises(BadMetadata) as caught:
        plain([0] * 9, max_nodes=5)
    assert not caught.value.message.startswith(":"), "no origin, no colon"


def described(owner: str, kind: int, descriptor: bytes) -> Any:
    return decode_note(Note(owner, kind, descriptor, name="", location=".note"), "k.o")


def test_notes_that_are_no_metadata() -> None:
    words = (4).to_bytes(4, "little"), (2).to_bytes(4, "little"), (6).to_bytes(4, "little"), (32).to_bytes(4, "little")
    assert described("GNU", 1, bytes(4) + b"".join(words[1:])) == "Linux 2.6.32"
    assert described("GNU", 1, (3).to_bytes(4, "little") + b"".join(words[1:])) == "FreeBSD 2.6.32"
    assert described("GNU", 1, b"".join(words)) == "system 4 2.6.32"
    with pytest.raises(BadMetadata, match="an ABI tag of 15 bytes, expected 16"):
        described("GNU", 1, bytes(15))
    assert described("GNU", 3, b"\xab\xcd") == "abcd"
    assert described("GNU", 4, b"gold 1.16\0") == "gold 1.16"
    assert described("AMD", 11, b"amdgcn-amd-amdhsa--gfx908\0\0") == "amdgcn-amd-amdhsa--gfx908"
    assert described("AMD", 10, b"---\nVersion: [1, 0]\n...\n\0") == {"Version": [1, 0]}
    assert described("LLVMOMPOFFLOAD", 1, b"1.0") == "1.0"
    assert described("AMD", 12, b"x") is None and described("GNU", 5, b"x") is None
