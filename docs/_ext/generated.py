"""Reference pages made from the code and the data files: a line `<!-- generated: NAME -->` is replaced by Markdown.

So no table of options, exit codes, flags or formats is kept by hand beside what it describes. Pages outside of docs/
that belong to the site (`<!-- page: ../kernels/README.md -->`) are taken in the same way, with their links made right.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx

from mccprobe import cli
from mccprobe.base.errors import EXIT_CODE_MEANINGS, MccprobeError
from mccprobe.cli import help_cmd
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.entries import CONFIDENCES, Flag

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"
# a link below the mark is for those who read the file on a forge
MARK = re.compile(r"^(?:<!--|\.\.) (generated|page): (\S+)(?: -->)?$(?:\n\n\[.*$)?", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
EXTERNAL: dict[str, set[str]] = {}  # page -> its links to other sites
# pages outside of docs/ -> the page of the site that holds them
TAKEN_IN = {"kernels/README.md": "kernels.md", "ARCHITECTURE.md": "architecture.md", "kernels/MUTANTS.md": "mutants.md",
            "CHANGELOG.md": "changelog.md", "wrappers/README.md": "reference/wrapper.md"}  # fmt: skip


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", fill)
    app.connect("sphinx-click-process-description", plain_text)
    app.connect("sphinx-click-process-options", plain_text)
    app.connect("doctree-resolved", collect_links)
    app.connect("build-finished", list_links)
    return {"version": "1", "parallel_read_safe": True}


def fill(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the marks of one page."""
    page = f"{name}.md"

    def replacement(match: re.Match[str]) -> str:
        kind, value = match.groups()
        if kind == "page":
            return taken_in(posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), value)), page)
        return "\n".join(GENERATORS[value]())

    source[0] = MARK.sub(replacement, source[0])


def collect_links(app: Sphinx, tree: nodes.document, page: str) -> None:
    links = {str(node["refuri"]) for node in tree.findall(nodes.reference) if "://" in node.get("refuri", "")}
    EXTERNAL.setdefault(page, set()).update(links)


def list_links(app: Sphinx, error: Exception | None) -> None:
    """External links are listed and not asked: no network is assumed."""
    lines = sorted({f"{link}  {page}" for page, links in EXTERNAL.items() for link in links})
    Path(app.outdir, "external-links.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def taken_in(path: str, page: str) -> str:
    """A page of the repository, path from its root, as text of `page`."""
    text = (ROOT / path).read_text(encoding="utf-8")

    def moved(match: re.Match[str]) -> str:
        words, link, anchor = match.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        inside = target.removeprefix("docs/") if target.startswith("docs/") else TAKEN_IN.get(target)
        if inside is None:
            return words  # a file of the repository that is not on the site
        return f"[{words}]({posixpath.relpath(inside, posixpath.dirname(page) or '.')}{anchor or ''})"

    return LINK.sub(moved, text)


def cell(text: object) -> str:
    """One line, nothing that would end a table cell or be taken for markup."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", " ".join(str(text).split()))


def code(text: object) -> str:
    return "`" + " ".join(str(text).split()).replace("|", "\\|") + "`"


# --- commands -------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """A directive of sphinx-click for each command; by itself it leaves out those that LazyGroup imports late."""
    yield from _command_directives(cli.root, "mccprobe")


def _command_directives(group: click.Group, words: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None and command.callback is not None
        module = sys.modules[command.callback.__module__]
        attribute = next(key for key, value in vars(module).items() if value is command)
        yield f".. click:: {module.__name__}:{attribute}\n   :prog: {words} {name}\n   :nested: none\n"
        if isinstance(command, click.Group):
            yield from _command_directives(command, f"{words} {name}")


def plain_text(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Help texts are plain: no markup in them, and the examples are code."""
    for place, line in enumerate(lines):
        example = re.match(r"(\| )(?=\s*mccprobe |\s{4})(.*\S)", line)
        if example:
            lines[place] = f"{example[1]}``{example[2].strip()}``"
        elif not line.lstrip().startswith((".. ", ":")):
            escaped = re.sub(r"(?<!`)([*|`])(?!`)", r"\\\1", line) if not line.startswith("| ") else line
            lines[place] = escaped.replace(r"\*\*Required\*\*", "**Required**")  # sphinx-click's own


# --- exit codes and errors ----------------------------------------------------------------------


def exit_codes() -> Iterator[str]:
    yield "| exit | meaning |"
    yield "| --- | --- |"
    for number, meaning in EXIT_CODE_MEANINGS.items():
        yield f"| {int(number)} | {cell(meaning)} |"


def environment() -> Iterator[str]:
    yield from rows("variable", help_cmd.ENVIRONMENT)


def toolchains() -> Iterator[str]:
    yield from rows("toolchain", help_cmd.TOPICS["toolchains"]())


def rows(title: str, table: dict[str, str]) -> Iterator[str]:
    """A table of `mccprobe help`; several names of one row are separated by commas."""
    yield f"| {title} | |"
    yield "| --- | --- |"
    for names, meaning in table.items():
        yield f"| {', '.join(code(name) for name in names.split(', '))} | {cell(meaning)} |"


def errors() -> Iterator[str]:
    yield "| `code` | exit | raised when |"
    yield "| --- | --- | --- |"
    for error in sorted(_subclasses(MccprobeError), key=lambda one: (int(one.exit_code), one.code)):
        text = (error.__doc__ or "").strip().splitlines()[0].removeprefix("Raised when ").removeprefix("Raised on ")
        yield f"| {code(error.code)} | {int(error.exit_code)} | {cell(text)} |"


def _subclasses(base: type[MccprobeError]) -> Iterator[type[MccprobeError]]:
    for below in base.__subclasses__():
        yield below
        yield from _subclasses(below)


# --- the flag catalogue -------------------------------------------------------------------------


def flags() -> Iterator[str]:
    catalogue = load_catalogue()
    for compiler in ("mcc", "clang"):
        yield f"## {compiler}\n"
        for flag in catalogue.flags.values():
            if flag.compilers[0] == compiler:
                yield from _flag(flag)
    yield "## Sets\n"
    for one in catalogue.sets.values():
        yield f"### {one.name}\n"
        yield f"{cell(one.summary)} ({cell(one.source)})\n"
        yield from (f"- {code(flag)}" for flag in one.flags)
        yield ""


def _flag(flag: Flag) -> Iterator[str]:
    spelled = {"mllvm": f"-mllvm {flag.spelling}", "attribute": f"__attribute__(({flag.spelling}))"}
    where = {"llc": " (of llc alone)", "attribute": " (of a kernel, in its source)"}
    values = f": {', '.join(flag.values)}" if flag.values else ""
    also = f"; also {', '.join(flag.compilers[1:])}" if flag.compilers[1:] else ""
    yield f"### {flag.name}\n"
    yield f"{cell(flag.purpose)}\n"
    yield f"- {code(spelled.get(flag.option, flag.spelling))}{where.get(flag.option, '')}{also}"
    yield f"- {cell(flag.type + values)}; default {cell(flag.default)}"
    for risk in flag.risks:
        yield f"- **{risk.kind}**{f' ({risk.value})' if risk.value else ''}: {cell(risk.note)} ({cell(risk.source)})"
    yield f"- source: {cell(flag.source)} ({CONFIDENCES[flag.confidence]})\n"


# --- JSON and TOML formats ----------------------------------------------------------------------


def schemas() -> Iterator[str]:
    for path in sorted(REPORTS.glob("*.schema.json")):
        if path.name != "kernel.schema.json":
            yield from schema(path)


def kernel_toml() -> Iterator[str]:
    yield from schema(REPORTS / "kernel.schema.json")


def schema(path: Path) -> Iterator[str]:
    """A section with a table for the document and one for each part that it names."""
    document = json.loads(path.read_text(encoding="utf-8"))
    yield f"## {path.name.removesuffix('.schema.json')}\n"
    yield f"{cell(document.get('title', ''))}: {cell(document.get('description', ''))} Schema: `reports/{path.name}`.\n"
    if document.get("properties"):
        yield from keys(document)
    whole = str(document.get("else", {}).get("$ref", "")).rpartition("/")[2]
    for name, part in sorted(document.get("$defs", {}).items(), key=lambda item: item[0] != whole):
        if part.get("properties") and name != "error":
            yield f"**{cell(name)}**{': ' + cell(part['description']) if part.get('description') else ''}\n"
            yield from keys(part)


def keys(part: dict[str, Any]) -> Iterator[str]:
    yield "| key | type | |"
    yield "| --- | --- | --- |"
    required = part.get("required", [])
    for name, value in part["properties"].items():
        about = [cell(value["description"])] if value.get("description") else []
        about += [] if name in required else ["(optional)"]
        yield f"| {code(name)} | {cell(kind(value))} | {' '.join(about)} |"
    yield ""


def kind(value: dict[str, Any]) -> str:
    """A few words for the type of a value."""
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "const" in value:
        return json.dumps(value["const"])
    if "enum" in value:
        return ", ".join("null" if one is None else str(one) for one in value["enum"])
    for key in ("oneOf", "anyOf"):
        if key in value:
            return " or ".join(dict.fromkeys(kind(one) for one in value[key]))
    types = value.get("type", "any")
    text = " or ".join(types) if isinstance(types, list) else str(types)
    if "array" in text and isinstance(value.get("items"), dict):
        text = text.replace("array", f"list of {kind(value['items'])}")
    return text


GENERATORS = {
    "commands": commands, "exit-codes": exit_codes, "errors": errors, "flags": flags, "schemas": schemas,
    "kernel-toml": kernel_toml, "environment": environment, "toolchains": toolchains,
}  # fmt: skip
