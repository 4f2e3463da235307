"""Static libraries: names in three manners, and damage with the place where it is."""

from __future__ import annotations

import pytest

from mccprobe.base.errors import BadBinary
from mccprobe.objects.binary.archive import is_archive, iter_members

from .writer import archive

START = b"!<arch>\n"


def member(name: bytes, content: bytes, size: bytes | None = None) -> bytes:
    size = b"%d" % len(content) if size is None else size
    return b"%-16s%-12d%-6d%-6d%-8o%-10s`\n" % (name, 0, 0, 0, 0o644, size) + content + bytes(len(content) % 2)


def test_gnu_names_short_and_long() -> None:
    members = [("a.o", b"one"), ("a-name-that-is-longer-than-sixteen.o", b"two!"), ("b.o", b"")]
    assert list(iter_members(archive(members))) == members


def test_bsd_names_stand_before_the_content() -> None:
    data = START + member(b"#1/12", b"long name.o\0content") + member(b"#1/x", b"no number") + member(b"c.o/", b"x")
    assert list(iter_members(data)) == [("long name.o", b"content"), ("#1/x", b"no number"), ("c.o", b"x")]


def test_tables_of_symbols_are_no_members() -> None:
    names = (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED")
    data = START + b"".join(member(name, b"1234") for name in names) + member(b"k.o/", b"k")
    assert list(iter_members(data)) == [("k.o", b"k")]


def test_names_that_are_no_text_are_kept() -> None:
    ((name, _),) = iter_members(START + member(b"\xff.o/", b"x"))
    assert name.encode("utf-8", "surrogateescape") == b"\xff.o"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (START + member(b"a.o/", b"one")[:59], "lib.a: the header of an archive member is damaged (offset 0x8)"),
        (START + member(b"a.o/", b"one", b"x"), "lib.a: the header of an archive member is damaged (offset 0x8)"),
        (
            START + member(b"a.o/", b"two!") + member(b"b.o/", b"one").replace(b"`\n", b"``"),
            "lib.a: the header of an archive member is damaged (offset 0x48)",
        ),
        (
            START + member(b"a.o/", b"two!", b"5"),
            "lib.a: an archive member of 5 bytes runs past the end (72) (offset 0x8)",
        ),
    ],
)
def test_damage_is_named_with_its_offset(data: bytes, message: str) -> None:
    assert is_archive(data)
    with pytest.raises(BadBinary) as caught:
        list(iter_members(data, "lib.a"))
    assert caught.value.message == message
