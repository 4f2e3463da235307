"""What must hold of every page without running it: no unseen command, no name that does not exist, no dead link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from doc_pages import NOT_RUN, SHELLS, WORD_OF_A_SHELL, Page, command_lines, read_page, repository_pages

from mccprobe.cli import root as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = repository_pages(ROOT)
MADE = re.compile(r"^<!-- (?:generated|page): ", re.MULTILINE)


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def page(request: pytest.FixtureRequest) -> Page:
    return read_page(request.param)


# --- nothing escapes ----------------------------------------------------------------------------


def escaped(page: Page) -> list[str]:
    """Blocks that hold commands and are neither run, nor a file, nor marked with the reason why not."""
    found = []
    for block in page.blocks:
        lines = block.text.splitlines() or [""]
        if block.is_not_run:
            if not NOT_RUN.fullmatch(lines[0]):
                found.append(f"line {block.line}: not-run, but its first line does not say why")
        elif not block.is_run and not block.file:
            if block.language in SHELLS:
                found.append(f"line {block.line}: a {block.language} block that no test runs")
            elif any(WORD_OF_A_SHELL.match(line) for line in lines):
                found.append(f"line {block.line}: commands in a block that no test runs")
    return found


def test_no_command_escapes(page: Page) -> None:
    assert not escaped(page), "run it, or say why not: docs/about-these-pages.md"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("```console\n$ mccprobe plan\n```", 0),
        ("```sh\nmccprobe plan\n```", 1),
        ("```sh file=a.sh\nmccprobe plan\n```", 0),
        ("```\nmake test   all of them\n```", 1),
        ("```text\nmccprobe-out/\n```", 0),
        ("    mccprobe plan \\\n      --json", 1),
        ("    ls -l\n    $ ./app", 1),
        ("```text\n$ ls\n```", 1),
        ("    a figure of 5 $ and words", 0),
        ("    make demo", 1),
        ("    $ mccprobe plan", 1),
        ("```console not-run\n$ make test\n```", 1),
        ("```console not-run\n# not run by the tests: it is these tests\n$ make test\n```", 0),
    ],
)
def test_the_rule_itself(text: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text(text)
    assert len(escaped(read_page(tmp_path / "p.md"))) == count


def test_files_that_a_page_shows_are_named_in_it(page: Page) -> None:
    """The name stands in the info string, which no reader sees."""
    assert not [block.file for block in page.blocks if block.file and block.file not in page.code_spans]


def test_files_that_a_page_takes_are_named_in_it(page: Page) -> None:
    """A reader must know where to get what the test copies there."""
    shown = re.sub(r"(?s)<!--.*?-->", "", page.text)
    taken = [text.partition(" as ")[0] for text in page.directives("file")]
    assert not [name for name in taken if name not in shown]


# --- names that exist ---------------------------------------------------------------------------

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*|\.\.\.|NAME\|.*")


def options_of(command: click.Command, parents: list[click.Command]) -> dict[str, int]:
    """Spelling of each option -> how many words its value takes."""
    found = {"-h": 0, "--help": 0}
    for one in (*parents, command):
        for option in one.params:
            if isinstance(option, click.Option):
                words = 0 if option.is_flag or option.count else option.nargs
                found |= dict.fromkeys((*option.opts, *option.secondary_opts), words)
    return found


def spellings(text: str) -> Iterator[list[str]]:
    """`bisect|why --json` as two command lines. A `|` outside of the words of the command is left alone."""
    words = re.split(r"\s(?=\||&&|>|<|2>|;|#)", text)[0].replace("[", " ").replace("]", " ").split()
    if "--" in words:
        words = words[: words.index("--")]
    lines: list[list[str]] = [[]]
    for word in words:
        choices = word.split("|") if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word) else [word]
        lines = [[*line, choice] for line in lines for choice in choices]
    yield from lines


def unknown_names(text: str) -> list[str]:
    """Commands and options of ours in `mccprobe ...` that do not exist."""
    found = []
    for words in spellings(text):
        command: click.Command = cli
        parents: list[click.Command] = []
        rest = iter(words[1:])
        for word in rest:
            if re.match(r"--?[a-zA-Z]", word):
                option, assigned, _ = word.partition("=")
                known = options_of(command, parents)
                if option in known:
                    for _ in range(0 if assigned else known[option]):
                        next(rest, "")
                elif not isinstance(command, click.Group):
                    found.append(f"{command.name} {option}")
            elif isinstance(command, click.Group) and not PLACEHOLDER.fullmatch(word):
                context = click.Context(command)
                below = command.get_command(context, word.rstrip(",.:;"))
                if below is None:
                    found.append(f"{command.name} {word}")
                    break
                parents.append(command)
                command = below
    return found


def mentions(page: Page) -> list[str]:
    """Every `mccprobe ...` of a page: inline code, and the lines of its blocks, run or not."""
    spans = [" ".join(span.split()) for span in page.code_spans]
    lines = [" ".join(line.replace("\\\n", " ").split()) for block in page.blocks for line in command_lines(block)]
    return [text for text in (*spans, *lines) if text.startswith("mccprobe ")]


def test_commands_and_options_exist(page: Page) -> None:
    assert not [name for text in mentions(page) for name in unknown_names(text)]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("mccprobe bisect [FILE] --flag NAME -- -O3 --nonsense", []),
        ("mccprobe bisekt x", ["root bisekt"]),
        ("mccprobe bisect|why --resume RUN", []),
        ("mccprobe bisect|plan --resume RUN", ["plan --resume"]),
        ("mccprobe flags list|show", []),
        ("mccprobe flags lost", ["flags lost"]),
        ("mccprobe plan --tiles 1x1x1 > out", ["plan --tiles"]),
        ("mccprobe --debug plan", []),
    ],
)
def test_the_names_rule_itself(text: str, unknown: list[str]) -> None:
    assert unknown_names(text) == unknown


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*words, name))
    else:
        yield words, command


def test_examples_of_help_texts_exist() -> None:
    found = []
    for words, command in leaves(cli):
        text = (command.help or "") + (command.epilog or "")
        lines = [" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines()]
        found += [(words, name) for line in lines if line.startswith("mccprobe ") for name in unknown_names(line)]
    assert not found


def test_make_targets_exist(page: Page) -> None:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    not_run = [line for block in page.blocks if block.is_not_run for line in command_lines(block)]
    said = [match[1] for text in (*page.code_spans, *not_run) if (match := re.match(r"make ([a-z][a-z-]*)", text))]
    assert not set(said) - set(targets)


# --- links --------------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """As forges and MyST make anchors of headings."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def dead(page: Page) -> list[str]:
    found = []
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (page.path.parent / name) if name else page.path
        lost = not target.exists()
        if not lost and anchor and target.suffix == ".md":
            there = read_page(target)
            is_made = MADE.search(there.text)  # of code or another page: the builder knows its anchors
            lost = not is_made and anchor not in {slug(text) for _, text in there.headings}
        found += [link] if lost else []
    return found


def test_relative_links_lead_somewhere(page: Page) -> None:
    assert not dead(page)


def test_the_link_rule_itself(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# What `it` is\n\n[x](b.md) [y](a.md#what-it-is) [z](#no) [w](https://example.org)\n"
    )
    assert dead(read_page(tmp_path / "a.md")) == ["b.md", "#no"]
