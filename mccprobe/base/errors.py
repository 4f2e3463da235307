"""Every error that a user can meet, with its exit code, and the one table of exit codes.

Message pattern: what failed, on what, what was expected or got; `hint` says what to do. Data
stays in fields, text is made in `message`. `cli` is the only place that prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line; printed by `mccprobe help exit-codes`."""

    DONE = 0
    ANSWER_IS_NO = 1
    USAGE = 2
    TOOLCHAIN = 3
    INPUT = 4
    ORACLE = 5
    BUDGET = 6
    BUG = 70
    INTERRUPTED = 130


EXIT_CODE_MEANINGS: dict[ExitCode, str] = {
    ExitCode.DONE: "done: found, or exposed with its caveat",
    ExitCode.ANSWER_IS_NO: "done, and the answer is no: wrong already at limit 0, no difference, or undecided; "
    "diff: they differ; lint: there are findings; check, cycle, edit: not passed; bench: refused; "
    "flags search: nothing better; recheck: a report got no answer; reduce: nothing smaller was found",
    ExitCode.USAGE: "usage: an option, a flag name or a combination that makes no sense",
    ExitCode.TOOLCHAIN: "a compiler or tool is missing or unusable",
    ExitCode.INPUT: "an input cannot be read, decoded or compiled",
    ExitCode.ORACLE: "the oracle is unusable: cannot run, cannot fail, flaky beyond the budget, "
    "or the compiler itself is non-deterministic and no culprit holds",
    ExitCode.BUDGET: "stopped by a budget; the partial result is written",
    ExitCode.BUG: "a bug in mccprobe",
    ExitCode.INTERRUPTED: "interrupted; the run can be resumed",
}


MAX_MESSAGE = 2000  # characters; what stands in a file may be quoted, and may be a megabyte


def _bounded(text: str) -> str:
    if len(text) <= MAX_MESSAGE:
        return text
    half = MAX_MESSAGE // 2
    return f"{text[:half]} ({len(text) - 2 * half} characters left out) {text[-half:]}"


class MccprobeError(Exception):
    """Base of all user-facing errors."""

    exit_code: ExitCode = ExitCode.BUG
    code: str = "error"
    usual_hint: str = ""  # where the place that raises it knows nothing better

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        self.message = _bounded(message)
        super().__init__(self.message)
        self.hint = _bounded(hint or self.usual_hint)
        self.detail = detail

    def __str__(self) -> str:
        return self.message


class UsageError(MccprobeError):
    """Raised when options contradict each other or a value cannot be understood."""

    exit_code = ExitCode.USAGE
    code = "usage"
    usual_hint = "mccprobe COMMAND --help shows the options"


class NoHomeFolder(UsageError):
    """Raised when something lies in the home folder unless told otherwise, and the system knows no such folder: HOME
    is not set and the user has no entry in the password database, as a container's numeric user."""

    code = "no-home"

    def __init__(self, instead: str) -> None:
        super().__init__(
            "no home folder is known: HOME is not set, and this user has no entry in the password database",
            hint=f"set HOME, or {instead}",
        )


class BadTarget(UsageError):
    """Raised when a folder of MCCPROBE_TARGETS does not describe a target."""

    code = "bad-target"

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"MCCPROBE_TARGETS: {folder}: {problem}",
            hint="each folder is a Python package whose target.py holds TARGET, as in mccprobe/targets/clang/",
        )


class UnknownFlag(UsageError):
    """Raised when a flag name is in no catalogue, or the compiler refuses it."""

    code = "unknown-flag"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, reason: str = "", hint: str = "") -> None:
        self.name = name
        self.nearest = tuple(nearest)
        text = reason or f"unknown flag: {name}"
        if not hint:
            hint = (
                "nearest names: " + ", ".join(self.nearest)
                if self.nearest
                else "a name with a leading dash is passed to the compiler as it stands"
            )
        super().__init__(text, hint=hint)


class AmbiguousFlag(UsageError):
    """Raised when a short flag name fits several catalogue entries."""

    code = "ambiguous-flag"

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        super().__init__(
            f"flag name {name} fits {len(self.candidates)} catalogue entries",
            hint="write one of: " + ", ".join(self.candidates),
        )


class UnknownEntry(UsageError):
    """Raised when a journal has no entry of this id, or several that begin so."""

    code = "unknown-entry"

    def __init__(self, text: str, candidates: Sequence[str], journal: str) -> None:
        self.text = text
        self.candidates = tuple(candidates)
        fits = f"fits {len(self.candidates)} entries of" if self.candidates else "is no entry of"
        super().__init__(
            f"{text[:60]} {fits} {journal}",
            hint="write more of one of: " + ", ".join(self.candidates[:5])
            if self.candidates
            else "mccprobe journal list shows the ids; last is the newest",
        )


class ToolchainError(MccprobeError):
    """Raised when a compiler or one of its tools is missing or does not work."""

    exit_code = ExitCode.TOOLCHAIN
    code = "toolchain"
    usual_hint = "mccprobe toolchains lists what is here and what each can do"


class CompilerNotFound(ToolchainError):
    """Raised when no compiler was found where it was looked for."""

    code = "compiler-not-found"

    def __init__(self, name: str, looked: Sequence[str], *, hint: str) -> None:
        self.name = name
        self.looked = tuple(looked)
        where = f" (looked at: {', '.join(self.looked)})" if self.looked else ""
        super().__init__(f"no {name} found{where}", hint=hint)


class CompilerChanged(ToolchainError):
    """Raised when the compiler at the end of a run is not the one that the run began with."""

    code = "compiler-changed"

    def __init__(self, path: str, before: str, now: str) -> None:
        self.path, self.before, self.now = path, before, now
        what = f"it was {before}, it is {now}" if before != now else f"it still says {now}, but the file is another one"
        super().__init__(
            f"{path} changed while the run was going on: {what}",
            hint="its answers are of two compilers and are not used; start a new run",
        )


class StaleCompileCache(ToolchainError):
    """Raised when the compiler answers from a cache of its own that cannot be isolated."""

    code = "stale-cache"


class LimitHasNoEffect(ToolchainError):
    """Raised when the compiler logs the passes that a limit holds back, and runs them all the same."""

    code = "limit-no-effect"

    def __init__(self, driver: str, limit: str, source: str) -> None:
        super().__init__(
            f"the limit has no effect in this compiler: with {limit} the log of {driver} shows every pass as NOT "
            f"running, and the object of {source} equals the object without a limit",
            hint="passes cannot be bisected with this compiler; mccprobe flags search compares flag settings instead",
        )


class PackagesMissing(ToolchainError):
    """Raised before any work when an option needs Python packages that are not installed."""

    code = "packages-missing"

    def __init__(self, option: str, missing: Sequence[str], extra: str) -> None:
        from mccprobe.base.extras import install_command  # its imports are for this error alone

        self.option = option
        self.missing = tuple(missing)
        self.extra = extra
        noun = "package" if len(self.missing) == 1 else "packages"
        super().__init__(f"{option} needs the {noun} {' and '.join(self.missing)}", hint=install_command(extra))


class InputError(MccprobeError):
    """Raised when a file cannot be read, decoded or compiled."""

    exit_code = ExitCode.INPUT
    code = "input"
    usual_hint = "check the file and its name"


class InputsChanged(InputError):
    """Raised when a source, header or library is not what it was when the run began."""

    code = "inputs-changed"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        shown = ", ".join(self.names[:5]) + (f" and {len(self.names) - 5} more" if len(self.names) > 5 else "")
        super().__init__(
            f"input files changed while the run was reading them: {shown}",
            hint="the answers are of two programs and are not used; start a new run and leave the files alone",
        )


class SourceDoesNotCompile(InputError):
    """Raised when the untouched command line does not compile; `detail` is the compiler's own message."""

    code = "does-not-compile"


class PathUnusable(InputError):
    """Raised when a path cannot be examined: a folder above it is closed, its links form a loop, it is too long."""

    code = "path-unusable"
    usual_hint = "check the path"

    def __init__(self, path: str, problem: str, *, denied: bool = False) -> None:
        self.path, self.problem = path, problem
        hint = "check the permissions of the path and of each folder above it" if denied else ""
        super().__init__(f"{path}: {problem}", hint=hint)


class BadDataFile(InputError):
    """Raised when a TOML/JSON file does not follow its schema; the key path is in the message."""

    code = "bad-data-file"
    usual_hint = "the formats are described by the schemas in reports/"


class JournalUnreadable(InputError):
    """Raised when a run directory to resume has no readable journal."""

    code = "journal-unreadable"
    usual_hint = "start a new run"


class RunDirectoryUnusable(InputError):
    """Raised when the run directory cannot be made, is in use, or the disk is full."""

    code = "run-directory"


class UnsafeRunFolder(RunDirectoryUnusable):
    """Raised when a run folder holds what mccprobe never writes there: a link may lead out of the folder."""

    code = "unsafe-run-folder"

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.kind = path, kind
        super().__init__(
            f"{path}: {kind} in a run folder; expected regular files and folders only",
            hint="remove it if you know where it comes from, or start a new run",
        )


class ChangedRunFile(RunDirectoryUnusable):
    """Raised when a file of a run does not have the hash that the journal recorded."""

    code = "changed-run-file"

    def __init__(self, path: str, expected: str, found: str) -> None:
        self.path, self.expected, self.found = path, expected, found
        super().__init__(
            f"{path}: changed since the run recorded it: SHA-256 is {found[:16]}..., expected {expected[:16]}...",
            hint="remove this file to have it made again, or start a new run",
        )


class ForeignFolder(RunDirectoryUnusable):
    """Raised when files of a folder would be executed that another user can replace."""

    code = "foreign-folder"

    def __init__(self, path: str, problem: str, *, owned: bool) -> None:
        self.path, self.problem = path, problem
        own = "name a folder of your own: MCCPROBE_CACHE=DIR"
        super().__init__(
            f"{path}: refused as a cache: it {problem}, and mccprobe executes files from it",
            hint=f"chmod go-w {path} if you trust what is in it, or {own}" if owned else own,
        )


class NoRoom(RunDirectoryUnusable):
    """Raised when the disk takes no more: full, over quota, read-only or broken. What is written stays.

    remedy: what makes this very place usable again.
    """

    def __init__(self, message: str, *, hint: str = "", detail: str = "", remedy: str = "free space") -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.remedy = remedy


class BadBinary(InputError):
    """Raised when the bytes of an object are not what its format says; the base of the four below."""

    code = "bad-binary"
    usual_hint = "the file is damaged, cut off, or of another kind than its first bytes say"

    def __init__(
        self, file: str, problem: str, *, offset: int | None = None, expected: str = "", hint: str = ""
    ) -> None:
        self.file, self.problem, self.offset, self.expected = file, problem, offset, expected
        text = f"{file}: {problem}" if file else problem
        text += f", expected {expected}" if expected else ""
        super().__init__(text + (f" (offset 0x{offset:x})" if offset is not None else ""), hint=hint)


class BadElf(BadBinary):
    """Raised when ELF headers, sections, segments or symbols cannot be read."""

    code = "bad-elf"


class BadNote(BadBinary):
    """Raised when a note section or segment does not consist of notes."""

    code = "bad-note"


class BadBundle(BadBinary):
    """Raised when an offload bundle, compressed or not, cannot be taken apart."""

    code = "bad-bundle"


class BadMetadata(BadBinary):
    """Raised when kernel metadata is no MessagePack or YAML document of maps, lists and scalars."""

    code = "bad-metadata"


class CannotReduce(InputError):
    """Raised when the untouched source does not pass the test that every smaller variant must pass."""

    code = "cannot-reduce"


class PageNotWritten(InputError):
    """Raised when a page or a figure cannot be written, or would replace a file that is not ours."""

    code = "page-not-written"
    usual_hint = "name another file"


class BadReport(InputError):
    """Raised when a bug report to be tried again is not one, is damaged, or is not safe to unpack."""

    code = "bad-report"
    usual_hint = "give the folder or the .tar.gz that mccprobe bug-report wrote"


class OracleUnusable(MccprobeError):
    """Raised when the check cannot tell right from wrong."""

    exit_code = ExitCode.ORACLE
    code = "oracle-unusable"


class BudgetSpent(MccprobeError):
    """Raised when a stated budget is used up."""

    exit_code = ExitCode.BUDGET
    code = "budget"


class Interrupted(MccprobeError):
    """Raised on Ctrl-C or SIGTERM; the journal is complete up to the trial in flight."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"
    usual_hint = "a run that had begun goes on with --resume"


class NotOurWrapper(InputError):
    """Raised when a file that mccprobe did not write, or that was edited since, stands where the wrapper goes."""

    code = "not-our-wrapper"

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        super().__init__(
            f"{path} {what}; it is left as it is",
            hint="choose another place with --prefix DIR, or move that file away yourself",
        )


class WrapperNotInstalled(InputError):
    """Raised when there is no wrapper at the place that was named."""

    code = "wrapper-not-installed"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"no wrapper at {path}", hint="mccprobe wrapper install puts it there; --prefix DIR as there")


class EditState(UsageError):
    """Raised when `edit` cannot do what it is asked for: an edit is open already, or none is, or one is running."""

    code = "edit-state"


class CannotTrace(InputError):
    """Raised when LD_PRELOAD cannot reach a program's launches."""

    code = "cannot-trace"

    def __init__(self, program: str, problem: str, hint: str) -> None:
        self.program = program
        super().__init__(f"{program} {problem}", hint=hint)


class PatchDoesNotApply(InputError):
    """Raised when a change of a header does not apply exactly once; `count` is how often it does.

    other_ends: it would be found if lines of both ended alike (CRLF and LF).
    """

    code = "patch-does-not-apply"

    def __init__(self, header: str, what: str, count: int, *, other_ends: bool = False) -> None:
        self.header, self.what, self.count = header, what, count
        times = "nowhere" if count == 0 else f"{count} times"
        hint = "give more of the text around it" if count else "compare with the header, blanks included"
        if other_ends:
            hint = "lines end with CR LF in one of the two and with LF in the other"
        super().__init__(f"{header}: {what} stands there {times}, it must stand there exactly once", hint=hint)


def describe_exit_codes() -> str:
    """The exit-code table as text, one line a code."""
    return "\n".join(f"{int(code):>4}  {EXIT_CODE_MEANINGS[code]}" for code in ExitCode)
