"""The repository's Markdown pages as something to run: blocks of commands, files that they show, links.

What a page's author writes (docs/about-these-pages.md says the same to readers):

    ```console                     commands after `$ `, each followed by what it prints; all are run in
    $ mccprobe --version           order in the page's own folder. `...` stands for any text, on a line
    mccprobe ...                   of its own for any lines. `# exit 1` behind a command: its exit code
    ```
    ```console not-run             not run; the first line says why: `# not run by the tests: it needs ...`
    ```toml file=my/kernel.toml    written to that file, when its turn comes

    <!-- file: tests/cases/x/test.c as prog.c -->   copied into the page's folder first
    <!-- link: bisect -->                          the repository's own folder, for what knows where it lies
    <!-- needs: clang-14 cmake -->                  skipped where one of these does not work
    <!-- sdk: sim -->                               `mcc` in PATH is the stand-in's

An indented block with commands is refused: nothing runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

PARSER = MarkdownIt("commonmark").enable("table")
NOT_RUN = re.compile(r"# not run by the tests: \S.{3,}")
WORD_OF_A_SHELL = re.compile(r"\s*(?:\$ \S|(?:mccprobe|make|pip|pipx|uv|mcc|bash|sh|\.venv/bin/\S+)(?: |$))")
SHELLS = frozenset({"console", "sh", "bash", "shell", "zsh", "shell-session", "fish"})
EXIT = re.compile(r"\s+# exit (\d+)$")
COMMENT = re.compile(r"\s{2,}# .*$")
DIRECTIVE = re.compile(r"<!-- (file|link|needs|sdk): (.+?) -->")


@dataclass(frozen=True)
class Block:
    """A fenced or indented block. language is "" for an indented one; words: the rest of the info string."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def file(self) -> str:
        """The file that the block is the text of, "" for none."""
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), "")

    @property
    def is_not_run(self) -> bool:
        return "not-run" in self.words

    @property
    def is_run(self) -> bool:
        return self.language == "console" and not self.is_not_run


@dataclass(frozen=True)
class Command:
    """What stands behind `$ `. expected: the lines below it; None: the page shows nothing of it."""

    text: str
    exit_code: int
    expected: tuple[str, ...] | None
    line: int


@dataclass(frozen=True)
class Page:
    """One Markdown file, its blocks in order."""

    path: Path
    text: str
    tokens: tuple[Token, ...]

    @property
    def blocks(self) -> list[Block]:
        return list(_blocks(self.tokens))

    def directives(self, name: str) -> list[str]:
        """The values of the page's `<!-- name: value -->` lines."""
        found = [DIRECTIVE.findall(token.content) for token in self.tokens if token.type == "html_block"]
        return [value for pairs in found for key, value in pairs if key == name]

    @property
    def code_spans(self) -> list[str]:
        return [span.content for span in self._inline("code_inline")]

    @property
    def links(self) -> list[str]:
        """Every address: links and images."""
        links = [str(token.attrs["href"]) for token in self._inline("link_open")]
        return links + [str(token.attrs["src"]) for token in self._inline("image")]

    @property
    def headings(self) -> list[tuple[str, str]]:
        """(h2, text) in order."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return [(token.tag, after.content) for token, after in pairs if token.type == "heading_open"]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of every table row, headers with them."""
        found: list[list[str]] = []
        for place, token in enumerate(self.tokens):
            if token.type == "tr_open":
                found.append([])
            elif token.type in ("td_open", "th_open"):
                found[-1].append(self.tokens[place + 1].content)
        return found

    def _inline(self, kind: str) -> list[Token]:
        return [child for token in self.tokens for child in token.children or () if child.type == kind]


def read_page(path: Path) -> Page:
    """A Markdown file."""
    text = path.read_text(encoding="utf-8")
    return Page(path, text, tuple(PARSER.parse(text)))


def _blocks(tokens: tuple[Token, ...]) -> Iterator[Block]:
    for token in tokens:
        if token.type in ("fence", "code_block"):
            language, *words = token.info.split() or [""]
            if token.type == "fence" and not language:
                language = "text"
            yield Block(language, tuple(words), token.content, (token.map or [0])[0] + 1)


def commands(block: Block) -> list[Command]:
    """The commands of a block that is run. Raises ValueError with the line for text before the first `$ `."""
    found: list[Command] = []
    lines = block.text.splitlines()
    place = 0
    while place < len(lines):
        number = block.line + place + 1
        if not lines[place].startswith("$ "):
            if lines[place].strip():
                raise ValueError(f"line {number}: output before the first command: {lines[place]}")
            place += 1
            continue
        text = lines[place].removeprefix("$ ")
        while text.endswith("\\"):
            place += 1
            text += "\n" + lines[place]
        place += 1
        start = place
        while place < len(lines) and not lines[place].startswith("$ "):
            place += 1
        shown = [line.rstrip() for line in lines[start:place]]
        code = EXIT.search(text)
        found.append(Command(text, int(code[1]) if code else 0, tuple(shown) if any(shown) else None, number))
    return found


def command_lines(block: Block) -> list[str]:
    """The commands without comments, also of a block that is not run."""
    marked = [line for line in block.text.splitlines() if line.startswith("$ ") or line.startswith("    ")]
    if block.is_run:
        return [COMMENT.sub("", command.text) for command in commands(block)]
    return [COMMENT.sub("", line.removeprefix("$ ")) for line in marked]


def differences(expected: tuple[str, ...], actual: list[str]) -> str:
    """ "" if `actual` is what the page shows, else what is missing. `...` as in the module's docstring."""
    parts: list[list[str]] = [[]]
    for line in expected:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for number, part in enumerate(parts):
        free_start, last = number > 0, number == len(parts) - 1
        if not part:
            if last and not free_start and actual[at:]:
                return f"nothing more is shown, but this came:\n{actual[at]}"
            if last and free_start:
                return ""
            continue
        if last and free_start:
            starts = [len(actual) - len(part)] if len(actual) - len(part) >= at else []
        elif free_start:
            starts = list(range(at, len(actual) - len(part) + 1))
        else:
            starts = [at]
        for start in starts:
            if all(_same(line, got) for line, got in zip(part, actual[start : start + len(part)], strict=False)) and (
                len(actual) >= start + len(part)
            ):
                at = start + len(part)
                break
        else:
            near = next((line for line in part if not any(_same(line, got) for got in actual)), part[0])
            return f"not there (or not in this order):\n{near}"
        if last and actual[at:]:
            return f"nothing more is shown, but this came:\n{actual[at]}"
    return ""


def _same(expected: str, actual: str) -> bool:
    pieces = [re.escape(piece) for piece in expected.split("...")]
    return re.fullmatch(".*".join(pieces), actual) is not None


def repository_pages(root: Path) -> list[Path]:
    """Every Markdown file that people read: no goldens, no data of tests, nothing generated."""
    left_out = {"build", "dist", "mccprobe-out", "goldens", "data", "_kernels", "_wrappers", "_facts", "node_modules"}
    found = [
        path
        for path in root.rglob("*.md")
        if not any(
            part in left_out or part.startswith(".") or part.endswith(".egg-info")
            for part in path.relative_to(root).parts
        )
    ]
    return sorted(found)
