"""Asking an installed compiler: which flags of the catalogue it takes, and which options it has.

Flow: catalogue entry -> driver arguments -> a compile of nothing -> Answer. A refusal is one that is
worded as LLVM's and clang's option parsers word it. Every other failure stays "unknown", with what was
said: a plugin that is not there, a crash, a time limit, a driver option that the driver knows and does
not use for this source.
That a flag is accepted says that its spelling is known, not that it does anything.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mccprobe.base.errors import ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.flags.datafile import shorten
from mccprobe.targets.flags.entries import Flag
from mccprobe.targets.flags.harvest import Harvest, read_help

State = Literal["accepted", "refused", "unknown"]

HELP_TIMEOUT_S = 60.0  # a compiler prints its options in 0.05 s; only ends a hung one
HELP_BYTES = 16 << 20  # clang-19 prints 0.4 MB
SAID = 200  # characters kept of a compiler's answer
LANGUAGES = (("-x", "musa", "--musa-device-only"), ("-x", "c++"))  # mcc's device compile, else any clang's

# clang/include/clang/Basic/DiagnosticDriverKinds.td, llvm/lib/Support/CommandLine.cpp; clang 13 to 19
REFUSALS = re.compile(
    r"Unknown command line argument|unknown argument|unsupported (?:option|argument|CUDA gpu)"
    r"|invalid (?:integral )?value|language not recognized|unknown warning option"
    r"|for the -{1,2}\S+ option: (?!may only occur)"
)


class Compiler(Protocol):
    """What is needed of a toolchain (mccprobe.targets.protocol.Toolchain has it)."""

    driver: tuple[str, ...]

    def environment(self, scratch: Path) -> dict[str, str]: ...

    def refusal(self, argv: Sequence[str], scratch: Path) -> str: ...


@dataclass(frozen=True)
class Question:
    """One compile. value: None for the flag alone. said: first line of the compiler's complaint."""

    argv: tuple[str, ...]
    value: str | None
    state: State
    said: str = ""


@dataclass(frozen=True)
class Answer:
    """What one compiler says of one flag.

    state: accepted if it takes the flag with at least one value; refused if with none; unknown if it
    was not asked or failed for another reason (`reason`).
    """

    flag: Flag
    state: State
    questions: tuple[Question, ...]
    reason: str = ""


def ask_flags(compiler: Compiler, flags: Iterable[Flag]) -> Iterator[Answer]:
    """One answer a flag, in order; each question is one compile of an empty source.

    The first is asked without a flag: what a compiler says then, it says of no flag.
    """
    with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
        nothing = _ask(compiler, (), None, Path(folder))
        for flag in flags:
            if nothing.state == "accepted":
                yield ask_flag(compiler, flag, Path(folder))
            else:
                yield Answer(flag, "unknown", (), f"an empty source does not compile without it: {nothing.said}")


def ask_flag(compiler: Compiler, flag: Flag, scratch: Path) -> Answer:
    """Ask with every public value of the flag; a boolean also alone."""
    if flag.option == "llc":
        return Answer(flag, "unknown", (), "llc alone takes it, the driver was not asked")
    if flag.option == "attribute":
        return Answer(flag, "unknown", (), "an attribute in the source, not a flag")
    values: list[str | None] = [*([None] if flag.type == "bool" else []), *flag.values]
    if not values:
        return Answer(flag, "unknown", (), "no public value to ask with")
    questions = tuple(_ask(compiler, flag.given(value).argv, value, scratch) for value in values)
    states = {question.state for question in questions}
    if "accepted" in states:
        return Answer(flag, "accepted", questions)
    if states == {"refused"}:
        return Answer(flag, "refused", questions, questions[0].said)
    return Answer(flag, "unknown", questions, next(one.said for one in questions if one.state == "unknown"))


def _ask(compiler: Compiler, argv: tuple[str, ...], value: str | None, scratch: Path) -> Question:
    complaint = compiler.refusal(argv, scratch)
    if not complaint:
        return Question(argv, value, "accepted")
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    refused = next((line for line in lines if REFUSALS.search(line)), None)
    said = shorten(refused or next(iter(lines), "it failed without a word"), SAID)
    return Question(argv, value, "refused" if refused else "unknown", said)


def ask_options(compiler: Compiler, question: str = "-help-hidden") -> Harvest:
    """The compiler's LLVM options with their defaults. question: -help-hidden or -help-list-hidden.

    Raises ToolchainError when it prints no options.
    """
    with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
        scratch = Path(folder)
        complaint = ""
        for language in LANGUAGES:
            text, complaint = _printed(compiler, language, question, scratch)
            found = read_help(text, _printed(compiler, language, "-print-all-options", scratch)[0]) if text else None
            if found is not None and found.options:
                return found
    raise ToolchainError(
        f"{compiler.driver[0]} prints no options for -mllvm {question}: {shorten(complaint, SAID) or 'nothing'}",
        hint="give a saved text with --from FILE",
    )


def _printed(compiler: Compiler, language: Sequence[str], question: str, scratch: Path) -> tuple[str, str]:
    """Standard output and, if that is empty or it failed, the complaint."""
    output = str(scratch / "probe.o")
    argv = [*compiler.driver, *language, "-mllvm", question, "-c", os.devnull, "-o", output]
    result = run(RunSpec(argv, env=compiler.environment(scratch), timeout_s=HELP_TIMEOUT_S, capture_bytes=HELP_BYTES))
    if result.ok:
        return result.stdout_text, ""
    first = next((line for line in result.stderr_text.splitlines() if line.strip()), "")
    return "", first or result.describe()
