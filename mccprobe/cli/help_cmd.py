"""`mccprobe help [TOPIC | COMMAND]`: exit codes, environment, words, toolchains, facts; a command as its --help."""

from __future__ import annotations

import contextlib
import difflib
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.base.errors import EXIT_CODE_MEANINGS, UsageError, describe_exit_codes

Rows = dict[str, str]
PACKAGE = Path(__file__).resolve().parents[1]
# docs/reference/mtgpu.md and kernels/README.md, in the wheel too
PAGES = {"facts": PACKAGE / "_facts" / "mtgpu.md", "kernels": PACKAGE / "_kernels" / "README.md"}

# everything that mccprobe, its wrapper or its stand-in reads from the environment, by its own name
ENVIRONMENT: Rows = {
    "MCCPROBE_CACHE": "the one cache folder: the built stand-in, probes of compilers [~/.cache/mccprobe]",
    "MCCPROBE_MCC": "the mcc to use, where --mcc is not given",
    "MCCPROBE_OBJDUMP": "the llvm-objdump that knows MTGPU, if it is not beside mcc",
    "MCCPROBE_TABLES": "folder of learned instruction tables [~/.local/share/mccprobe/tables]",
    "MCCPROBE_TARGETS": "folders of further toolchains, separated as in PATH; their code is executed (SECURITY.md)",
    "MCCPROBE_KERNELS": "folder of kernels that stand in for the shipped ones",
    "MCCPROBE_WRAPPER": "of the wrapper: off passes every argument on as it is",
    "MCCPROBE_SET": "of the wrapper: this flag set instead of the installed one; none: no set",
    "MCCPROBE_FLAGS": "of the wrapper: flags on top of the set, quoted as in a response file",
    "MCCPROBE_LOG": "of the wrapper: a file that gets one JSON line a call",
    "MCCPROBE_WRAPPER_CHAIN": "of the wrapper, set by itself: it must not call itself",
    "MCCPROBE_UNDEFINED": "of a screened program, set by mccprobe why: where its undefined behaviour is reported",
    "MCCPROBE_TRACE_DIR": "of the launch recorder, set by mccprobe trace: where the record goes",
    "MCCSIM_WARP": "of the stand-in: threads of a warp, 128 or 32",
    "MCCSIM_DIVERGE": "of the stand-in: trap, first or lane; what a divergent warp operation does",
    "MCCSIM_POISON": "of the stand-in: 0 leaves memory that nobody wrote as zeros",
    "MCCSIM_SWEEP": "of the stand-in: 0 goes the long way with threads that do the same; only slower",
    "MCCSIM_VERBOSE": "of the stand-in: 1 tells each launch",
    "MCCSIM_FAULTS": "of the stand-in: all plants the fault at every place, not at one",
    "MCCSIM_FAULT_LOG": "of the stand-in: a file that gets what was planted where",
    "MCCSIM_LAB": "of the stand-in, set by check --lab: where the emulator's record goes",
    "MUSA_HOME, MUSA_PATH, MUSA_INSTALL_PATH": "where mcc is looked for; compiles are pinned to its own toolkit",
    "MUSA_CACHE_PATH": "replaced by an empty folder in every compile",
    "XDG_CACHE_HOME, XDG_DATA_HOME": "folders above the cache and the tables",
    "NO_COLOR": "not empty: no colour; TERM=dumb means the same and leaves out animation",
    "FORCE_COLOR, CLICOLOR_FORCE": "not empty and not 0: colour also into a pipe; CLICOLOR=0: none",
    "COLUMNS": "width of tables; else the terminal's, else 80",
    "CUDA_VISIBLE_DEVICES": "which GPU --toolchain cuda uses",
    "CCC_OVERRIDE_OPTIONS, CPATH": "of clang, with COMPILER_PATH, LIBRARY_PATH and their kin: told, kept in the "
    "commands that reproduce, and carried by a bug report",
}
WORDS: Rows = {
    "GOOD": "a trial gave the right answer",
    "BAD": "a trial gave another answer than the reference (a crash is one), or the check said wrong",
    "UNRESOLVED": "a trial says nothing: no object, out of time, no device, a trap of sim; never counted GOOD or BAD",
    "found": "one pass execution is to blame: N-1 good, N bad, repeated, and the pass itself confirmed",
    "exposed": "the border holds, but that this very pass is wrong is not confirmed; the caveat says why",
    "wrong-at-zero": "wrong already before the first pass that can be switched off",
    "no-difference": "both ends give the same verdict: there is nothing to search",
    "non-deterministic": "one command line gives different objects; a culprit, if any, holds for fixed addresses",
    "undecided": "too little could be resolved to name one execution",
    "error": "with --json: there is no answer; code, message and hint say why",
    "SIMULATED": "from the stand-in sim: x86-64 code with a planted fault; says nothing of mcc or of speed",
    "promise": "a flag that tells the compiler something; if that is not true, a wrong result is no compiler bug",
}


def _toolchains() -> Rows:
    from mccprobe.targets import registry

    return registry.help_rows()


def _exit_codes() -> Rows:
    return {str(int(code)): meaning for code, meaning in EXIT_CODE_MEANINGS.items()}


def _page(topic: str) -> Rows:
    """Heading -> the text below it."""
    _, *parts = re.split(r"^#+ ", PAGES[topic].read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = (part.partition("\n") for part in parts)
    return {heading: text.strip() for heading, _, text in sections if text.strip()}


TOPICS: dict[str, Callable[[], Rows]] = {
    "exit-codes": _exit_codes,
    "environment": lambda: ENVIRONMENT,
    "words": lambda: WORDS,
    "toolchains": _toolchains,
    "kernels": lambda: _page("kernels"),
    "facts": lambda: _page("facts"),
}


MEANINGS: Rows = {
    "exit-codes": "what each exit status means",
    "environment": "variables that are read",
    "words": "verdicts and statuses",
    "toolchains": "what --toolchain takes",
    "kernels": "how a kernel of your own is described, built, run and judged; the shipped ones",
    "facts": "what is publicly known of mcc and MTGPU; sources cite it as mtgpu.md",
}


def _offer(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    group, words = ctx.find_root(), ctx.params.get(parameter.name or "") or ()
    names: list[str] = [] if words else list(TOPICS)
    with contextlib.suppress(UsageError):
        found = _command(group, words)
        names += found.command.list_commands(found) if isinstance(found.command, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("help", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", metavar="[TOPIC | COMMAND ...]", nargs=-1, shell_complete=_offer)
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/help.schema.json)")
@click.pass_context
def help_topic(ctx: click.Context, words: tuple[str, ...], as_json: bool) -> int:
    """Explain a topic or a command; without either, list both.

    TOPIC is exit-codes, environment, words, toolchains, kernels (how a kernel is described, built, run and judged) or
    facts: what is publicly known of mcc and MTGPU, which sources cite as mtgpu.md. A command is explained as by its own
    --help.

    \b
    Examples:
      mccprobe help exit-codes
      mccprobe help flags search
    """
    console: Console = ctx.obj
    if len(words) == 1 and words[0] in TOPICS:
        rows = TOPICS[words[0]]()
        text = _text(words[0], rows)
    else:
        found = _command(ctx.find_root(), words)
        rows = _rows(found)
        text = found.get_help()
        if not words:
            rows |= MEANINGS
            text += f"\n\nTopics (mccprobe help TOPIC):\n{textwrap.indent(_table(MEANINGS), '  ')}"
    if as_json:
        listed = [{"name": name, "meaning": meaning} for name, meaning in rows.items()]
        topic = " ".join(words) or "mccprobe"
        console.document({"schema_version": 1, "tool_version": __version__, "topic": topic, "rows": listed})
    else:
        console.result(text)
    return 0


def _command(ctx: click.Context, words: Sequence[str]) -> click.Context:
    """The command of these words, below `ctx`. Raises UsageError."""
    for number, word in enumerate(words):
        group = ctx.command
        command = group.get_command(ctx, word) if isinstance(group, click.Group) else None
        if command is None:
            known = [*group.list_commands(ctx)] if isinstance(group, click.Group) else []
            known += [] if number else TOPICS
            close = difflib.get_close_matches(word, known, n=3)
            hint = f"close: {', '.join(close)}" if close else f"topics: {', '.join(TOPICS)}; commands: mccprobe --help"
            raise UsageError(f"no topic and no command {' '.join(words[: number + 1])}", hint=hint)
        ctx = click.Context(command, info_name=word, parent=ctx)
    return ctx


def _rows(found: click.Context) -> Rows:
    """Commands of a group, then options: name -> what it does."""
    group = found.command
    commands = group.list_commands(found) if isinstance(group, click.Group) else []
    below = {name: group.get_command(found, name) for name in commands} if isinstance(group, click.Group) else {}
    rows = {name: command.get_short_help_str(120) for name, command in below.items() if command is not None}
    records = (parameter.get_help_record(found) for parameter in group.get_params(found))
    return rows | {name: meaning for name, meaning in filter(None, records) if meaning}


def _text(topic: str, rows: Rows) -> str:
    if topic == "exit-codes":
        return describe_exit_codes()
    return PAGES[topic].read_text(encoding="utf-8").rstrip("\n") if topic in PAGES else _table(rows)


def _table(rows: Rows) -> str:
    width = max(len(name) for name in rows if "," not in name)
    lines = []
    for name, meaning in rows.items():
        if len(name) > width:
            lines += [name, f"{'':<{width}}  {meaning}"]
        else:
            lines.append(f"{name:<{width}}  {meaning}")
    return "\n".join(lines)
