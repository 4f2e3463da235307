"""Promises that stand in the source itself, which no sanitizer checks: what becomes of the bad build without them?

`restrict`, `pure` and `const` functions, `malloc` functions and `__builtin_assume` license what is wrong where they
do not hold; so do plain locals that change between setjmp and longjmp, and plain variables that a signal handler
writes. All of them stand in the IR of the front end, before the first pass. There they are taken out (or the accesses
made volatile), and the rest is compiled as the bad build is: right now means that the promise is to blame, or hides
the fault; then no pass is accused.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import OUTPUT
from mccprobe.explain.bundle.sources import needed_files
from mccprobe.explain.screen.setjmp import volatile_where_changed
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome

NAME = "promises in the source"
TurnsRight = Callable[..., ScreenCheck]

_GROUP = re.compile(r"^attributes #\d+ = \{", re.MULTILINE)
_SIGNATURE = re.compile(r"^(?:define|declare) |(?:^|[ =])(?:call|invoke|callbr) ")
# LLVM's LangRef: what says that a function or pointer touches less memory than it could
_NO_ALIAS = re.compile(r"\bnoalias (?!sret)")
_EFFECTS = re.compile(
    r"\b(?:readnone|readonly|writeonly|argmemonly|inaccessiblememonly|willreturn)\b|\bmemory\([^)]*\)"
)
_ASSUME = re.compile(r"^[ \t]+(?:tail |notail )?call void @llvm\.assume\(.*$", re.MULTILINE)
_HANDLERS = re.compile(r"\b(?:call|invoke) [^\n]*@(?:__sysv_|bsd_)?(?:signal|sigaction|sigset)\(")
_GLOBAL_ACCESS = re.compile(
    r"^([ \t]+(?:%\S+ = load|store) )(?!atomic|volatile)(?=[^\n]*\* @|[^\n]*ptr @)", re.MULTILINE
)
_ASSEMBLY = re.compile(r"\b(?:call|invoke|callbr) [^\n]*\basm (?:sideeffect |alignstack |inteldialect )*\"[^\"]")


@dataclass(frozen=True)
class Promise:
    """One kind. word: without a match in the user's own text it is the system's, and stays. told: for people."""

    told: str
    word: re.Pattern[str]
    without: Callable[[str], str]


def _signatures(pattern: re.Pattern[str]) -> Callable[[str], str]:
    """Takes the words out of the lines that declare, define or call a function."""

    def change(module: str) -> str:
        return "".join(
            pattern.sub("", line) if _SIGNATURE.search(line) else line for line in module.splitlines(keepends=True)
        )

    return change


def _without_effects(module: str) -> str:
    lines = module.splitlines(keepends=True)
    return "".join(_EFFECTS.sub("", line) if _GROUP.match(line) or _SIGNATURE.search(line) else line for line in lines)


def _volatile_globals(module: str) -> str:
    return _GLOBAL_ACCESS.sub(r"\1volatile ", module) if _HANDLERS.search(module) else module


PROMISES = (
    Promise("restrict", re.compile(r"\brestrict\b|\b__restrict(?:__)?\b"), _signatures(_NO_ALIAS)),
    Promise("a malloc attribute", re.compile(r"\b(?:__)?malloc(?:__)?\s*\)\s*\)|gnu::malloc"), _signatures(_NO_ALIAS)),
    Promise(
        "a pure or const function",
        re.compile(r"\b(?:__)?pure(?:__)?\b|__attribute(?:__)?\s*\(\([^;{]*?\b(?:__)?const(?:__)?\b|gnu::const"),
        _without_effects,
    ),
    Promise("an assumption", re.compile(r"assume"), lambda module: _ASSUME.sub("", module)),
    Promise("plain locals around setjmp", re.compile(r"setjmp"), volatile_where_changed),
    Promise("plain variables beside a signal handler", re.compile(r"\bsig(?:nal|action|set)\b"), _volatile_globals),
)


def without_promises(module: str, text: str | None) -> tuple[str, list[str]]:
    """The module without them, and which there were. text: the user's own; None: the module itself is the source."""
    found = []
    for promise in PROMISES:
        if text is not None and not promise.word.search(text):
            continue
        changed = promise.without(module)
        if changed != module:
            found.append(promise.told)
            module = changed
    return module, found


_INSTRUCTION = re.compile(r"^  .*$", re.MULTILINE)


def _instructions(pattern: str) -> Callable[[str], str]:
    words = re.compile(pattern)
    return lambda module: _INSTRUCTION.sub(lambda found: words.sub("", found.group()), module)


_RELAXED = r"(?<= )(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) "
_PROGRESS = re.compile(r"(?<= )mustprogress |, !\{!\"llvm\.loop\.mustprogress\"\}")
# what clang's options leave out of the IR, for sources that are IR already
IN_IR: dict[str, Callable[[str], str]] = {
    "-fno-strict-aliasing": _instructions(r", !tbaa(?:\.struct)? !\d+"),
    "-fwrapv": _instructions(r"(?<= )(?:nsw|nuw|inbounds) "),
    "-fno-finite-loops": lambda module: _PROGRESS.sub("", module).replace("!llvm.loop.mustprogress", "!llvm.loop.none"),
    "-ffp-contract=off": _instructions(r"(?<= )(?:fast|contract) "),
    "-fno-fast-math": _instructions(_RELAXED),
}


class PromiseCheck:
    """The row of this module, and the switches for IR. turns_right: judges an object against the bad build."""

    def __init__(self, workspace: Workspace, turns_right: TurnsRight, *, from_ir: bool) -> None:
        self.workspace = workspace
        self.from_ir = from_ir
        self._turns_right = turns_right
        self._lock = threading.Lock()  # the rows run side by side and write the same module

    def __call__(self) -> ScreenCheck:
        module = self.module()
        if module is None:
            return ScreenCheck(NAME, "program", ScreenOutcome.NOT_RUN, "the front end gives no IR")
        changed, kinds = without_promises(module, None if self.from_ir else self._own_text())
        if kinds:
            told = ", ".join(kinds)
            check = self.compare(NAME, module, changed, f"{told}: it does not hold, or the fault needs it")
            if check.outcome is not ScreenOutcome.CLEAN:
                return check
            kinds = [f"{told}: not to blame ({check.text})"]
        if _ASSEMBLY.search(module):
            told = "inline assembly: that its operands and clobbers are complete is a promise that nothing here checks"
            return ScreenCheck(NAME, "program", ScreenOutcome.HINT, "\n".join([told, *kinds]))
        return ScreenCheck(NAME, "program", ScreenOutcome.CLEAN, "; ".join(kinds) or "none that could be broken")

    def in_ir(self, option: str, means: str) -> ScreenCheck:
        """The row of one of clang's options where the source is IR, which clang does not apply it to."""
        module = self.module()
        if module is None:
            return ScreenCheck(option, "program", ScreenOutcome.NOT_RUN, "the IR cannot be printed")
        changed = IN_IR[option](module)
        if changed == module:
            return ScreenCheck(option, "program", ScreenOutcome.CLEAN, "the IR has nothing that it would leave out")
        return self.compare(option, module, changed, means)

    def module(self) -> str | None:
        """The IR before the first pass, as text."""
        source, ledger = self.workspace.unit.recorded, self.workspace.ledger
        if not source.counter.has_ir:
            return None
        front = source.counter.front_end(source.jobs[source.active], OUTPUT)
        argv = (*source.prefix, *("-emit-llvm" if part == "-emit-llvm-bc" else part for part in front))
        job = replace(source.template(), argv=argv, suffix=".ll", label="screen: IR of the front end")
        outcome = ledger.compile(job)
        return ledger.run.object_path(outcome.object).read_text("utf-8", "surrogateescape") if outcome.object else None

    def compare(self, name: str, module: str, changed: str, means: str) -> ScreenCheck:
        """Is the changed module right, built as the bad build is?"""
        plain, other = (self._compile(text) for text in (module, changed))
        if plain is None or other is None:
            return ScreenCheck(name, "program", ScreenOutcome.NOT_RUN, "the IR as text cannot be compiled")
        return self._turns_right(name, (), self.workspace.judge, other, same=plain, means=means)

    def _own_text(self) -> str:
        """Arguments, sources and headers of the user's: what is only in system headers is no promise of theirs."""
        request = self.workspace.request
        files = needed_files([request.source], request.bad_args, Path.cwd())
        return "\n".join([*request.bad_args, *(path.read_text("utf-8", "replace") for path in files)])

    def _compile(self, module: str) -> str | None:
        """The object of IR text, compiled with the bad build's own options."""
        source, unit = self.workspace.unit.recorded, self.workspace.unit
        data = module.encode("utf-8", "surrogateescape")
        name = f"unit/screen-{hashlib.sha256(data).hexdigest()[:16]}.ll"
        path = self.workspace.ledger.run.root / name
        with self._lock:
            self.workspace.ledger.run.write_text(name, module)
        argv = source.counter.at_limit(
            source.jobs[source.active], str(path), OUTPUT, limit=None, options=unit.options, bitcode=True
        )
        job = replace(source.template(), argv=(*source.prefix, *argv), label=f"screen: {NAME}")
        return self.workspace.ledger.compile(job).object
