"""Inputs that grow: one place of a good input repeated a hundred thousand times. Twice as much must cost twice as much.

A reader whose work grows with the square of such an input needs minutes of processor time for one, and one that
does not needs tenths of a second: the bound of `limits` lies between, so nothing here depends on how fast a machine is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

TIMES = 100_000
PIECES = (
    b" ", b"\t", b"a", b"A", b"0", b"f0", b"\n", b"\r", b"x ", b"<", b">", b"(", b")", b"[", b"]", b"{", b"}", b":",
    b"::", b",", b", ", b";", b"; ", b"/", b"//", b"/*", b"*/", b"%", b"%0 ", b"@", b"@a ", b'"', b"'", b'"a"', b"\\",
    b"-", b"--", b"=", b" =", b"= ", b"#", b"#1 ", b"!", b", !a !1", b"|", b"`", b".", b"..", b"1.", b"\xff", b"0x",
    b"/home/", b"a@b ", b"a: ", b" on ", b" on function (", b" in function (", b"asm ", b"noalias ", b"void ", b"=<",
    b"[0:1]", b"\n\n", b"a\n", b"\n a", b"- { id: 1, class: x }\n",
)  # fmt: skip


def grown(
    data: bytes, kind: str, *, lines: int, times: int = TIMES, pieces: Sequence[bytes] = PIECES
) -> Iterator[bytes]:
    """The input with each piece many times in the middle and at the end of some lines; of binary ones, lone pieces."""
    if kind == "binary":
        return
    parts = data.split(b"\n")
    chosen = [at for at, line in enumerate(parts) if line.strip()]
    step = max(1, len(chosen) // lines)
    for at in chosen[::step][:lines]:
        line = parts[at]
        for place in sorted({len(line) // 2, len(line)}):
            for piece in pieces:
                fill = piece * max(1, times // len(piece))
                yield b"\n".join([*parts[:at], line[:place] + fill + line[place:], *parts[at + 1 :]])
                if place == len(line):
                    yield b"\n".join([*parts[:at], line + fill + b"?", *parts[at + 1 :]])
