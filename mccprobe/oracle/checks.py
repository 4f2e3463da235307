"""Oracles: what decides GOOD, BAD or UNRESOLVED from one run of one program.

Every oracle runs the program in a folder of its own with a time limit. A time limit, a missing
program or exit 125 is UNRESOLVED: a program that cannot be judged is not thereby wrong.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mccprobe.base.errors import OracleUnusable
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.oracle.folders import alone_in
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.oracle.written import Written, state_of, written_since

SKIP_STATUS = 125  # git bisect: "this revision cannot be tested"
CANNOT_EXECUTE = (126, 127)  # a shell's "not executable" and "not found"
_SHOWN_CHARACTERS = 60
# how a program ends that may be right all the same: another CPU has the instruction, or somebody else ended it.
# SIGILL is also a trap that the compiler put there (ud2), so it says neither
NO_ANSWER = {
    signal.SIGILL: "an instruction that this processor lacks, or a trap of the compiler's",
    **dict.fromkeys(
        (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU),
        "ended from outside (memory, limits, another process)",
    ),
}


class Oracle(Protocol):
    """Judges programs. id: changes when the question changes, so that journals do not mix."""

    id: str
    timeout_s: float

    def judge(self, program: Path, scratch: Path) -> Outcome:
        """Run the program once. Raises OracleUnusable when the check itself does not work."""

    def command(self, program: str) -> list[str]:
        """The argv that judges `program`, to show to people."""


def _environment(scratch: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(scratch)}


def _identity(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace").strip().replace("\n", " / ")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _ended_without_answer(result: RunResult, *, bad_if_timeout: bool) -> Outcome | None:
    if result.returncode is None:
        return Outcome(Verdict.UNRESOLVED, result.describe())
    if result.timed_out:
        verdict = Verdict.BAD if bad_if_timeout else Verdict.UNRESOLVED
        return Outcome(verdict, result.describe(), timed_out=True)
    if result.returncode == SKIP_STATUS:
        lines = result.stderr_text.strip().splitlines()
        told = next((line for line in lines if "TRAP" in line), lines[-1] if lines else "")
        return Outcome(Verdict.UNRESOLVED, f"invalid program: {told}" if told else "exit 125 (cannot tell)")
    return None


@dataclass(frozen=True)
class Expected:
    """What the reference build printed, how it ended, and which files it wrote into its folder.

    files: those that two runs wrote alike, None where files are not compared. unstable: names of others that it wrote.
    """

    stdout: bytes
    returncode: int
    files: tuple[Written, ...] | None = None
    unstable: tuple[str, ...] = ()

    def describe(self) -> str:
        ended = f"exit {self.returncode}" if self.returncode >= 0 else f"signal {-self.returncode}"
        return f"{_shown(self.stdout)!r}, {ended}"


@dataclass
class ReferenceOracle:
    """Same standard output, exit status and files as the reference build: GOOD; different: BAD.

    A program that dies by a signal where the reference does not is BAD: that is a difference too, unless the
    signal is one of `NO_ANSWER`. bad_if_crash: SIGILL is BAD as well. ignored: patterns of files not compared.
    """

    expected: Expected
    args: Sequence[str] = ()
    timeout_s: float = 60.0
    bad_if_timeout: bool = False
    run_in: Path | None = None
    bad_if_crash: bool = False
    stdin: Path | None = None
    ignored: Sequence[str] = ()
    id: str = field(init=False)

    def __post_init__(self) -> None:
        files = [[one.name, one.sha256] for one in self.expected.files or ()]
        self.id = _identity(
            "reference",
            self.expected.stdout.hex(),
            self.expected.returncode,
            list(self.args),
            self.bad_if_timeout,
            *(["crash"] if self.bad_if_crash else []),
            *(["stdin"] if self.stdin else []),
            *([files] if files else []),
        )

    def command(self, program: str) -> list[str]:
        return [program, *self.args]

    def judge(self, program: Path, scratch: Path) -> Outcome:
        with alone_in(self.run_in):
            seen = observe_files(
                program,
                self.run_in or scratch,
                args=self.args,
                timeout_s=self.timeout_s,
                ignored=self.ignored,
                stdin=self.stdin,
            )
        result = seen.result
        early = _ended_without_answer(result, bad_if_timeout=self.bad_if_timeout)
        if early is not None and (result.timed_out or result.returncode != self.expected.returncode):
            return early
        if result.stdout_bytes > len(result.stdout):
            return Outcome(Verdict.UNRESOLVED, f"printed {result.stdout_bytes} bytes, too many to compare")
        if (result.stdout, result.returncode) == (self.expected.stdout, self.expected.returncode):
            other = self._other_file(seen.files)
            return Outcome(Verdict.BAD, other) if other else Outcome(Verdict.GOOD, "as the reference")
        doubt = self._no_answer(result)
        if doubt:
            return Outcome(Verdict.UNRESOLVED, f"{result.describe()}: {doubt}")
        if result.stdout != self.expected.stdout and result.returncode == self.expected.returncode:
            return Outcome(Verdict.BAD, f"prints {_shown(result.stdout)!r}")
        return Outcome(Verdict.BAD, f"{result.describe()}, prints {_shown(result.stdout)!r}")

    def _other_file(self, files: Sequence[Written]) -> str:
        """The first file that is not as the reference wrote it, "" if there is none.

        A further file is a difference only where the reference writes the same files each time.
        """
        if self.expected.files is None:
            return ""
        written = {one.name: one for one in files}
        for one in self.expected.files:
            found = written.pop(one.name, None)
            if found is None:
                return f"does not write {one.name}, which the reference writes"
            if found.sha256 != one.sha256:
                return f"writes {_shown(found.head)!r} to {one.name}, the reference {_shown(one.head)!r}"
        if written and not self.expected.unstable:
            return f"writes {min(written)}, which the reference does not write"
        return ""

    def _no_answer(self, result: RunResult) -> str:
        """Why this end says nothing of the code, "" if it does."""
        number = -(result.returncode or 0)
        if number not in NO_ANSWER or result.returncode == self.expected.returncode:
            return ""
        return "" if self.bad_if_crash and number == signal.SIGILL else NO_ANSWER[signal.Signals(number)]


def observe(
    program: Path, args: Sequence[str], scratch: Path, timeout_s: float, stdin: Path | None = None
) -> RunResult:
    """Run a program for its output."""
    argv, env = [str(program), *args], _environment(scratch)
    return run(RunSpec(argv, cwd=scratch, env=env, timeout_s=timeout_s, stdin=stdin))


def observe_in(program: Path, scratch: Path, *, args: Sequence[str], timeout_s: float) -> RunResult:
    """`observe`, as an executor's `run_program` calls it."""
    return observe(program, args, scratch, timeout_s)


@dataclass(frozen=True)
class Observation:
    """How a program ended, and which files it wrote into its folder."""

    result: RunResult
    files: tuple[Written, ...]


def observe_files(
    program: Path,
    scratch: Path,
    *,
    args: Sequence[str],
    timeout_s: float,
    ignored: Sequence[str] = (),
    stdin: Path | None = None,
) -> Observation:
    """Run a program for its output and its files, as an executor's `run_program` calls it."""
    before = state_of(scratch)
    result = observe(program, args, scratch, timeout_s, stdin)
    return Observation(result, written_since(scratch, before, ignored))


@dataclass
class CommandOracle:
    """The user's own check, with git bisect's exit codes: 0 good, 125 skip, 1 to 124 bad.

    `{exe}` in an argument stands for the program; without it the program is the last argument.
    126 and 127 mean that the check cannot be run; 128 and more, or a signal, that it broke.
    """

    argv: Sequence[str]
    timeout_s: float = 60.0
    bad_if_timeout: bool = False
    bad_if_crash: bool = False
    cwd: Path | None = None
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = _identity("command", list(self.argv), self.bad_if_timeout, self.bad_if_crash)

    def command(self, program: str) -> list[str]:
        if any("{exe}" in argument for argument in self.argv):
            return [argument.replace("{exe}", program) for argument in self.argv]
        return [*self.argv, program]

    def judge(self, program: Path, scratch: Path) -> Outcome:
        argv = self.command(str(program))
        with alone_in(self.cwd):
            result = run(RunSpec(argv, cwd=self.cwd, env=_environment(scratch), timeout_s=self.timeout_s))
        if result.returncode is None or result.returncode in CANNOT_EXECUTE:
            raise OracleUnusable(
                f"the oracle cannot be executed: {result.describe()}",
                detail=result.stderr_text.strip()[-2000:],
                hint="ran: " + " ".join(argv),
            )
        early = _ended_without_answer(result, bad_if_timeout=self.bad_if_timeout)
        if early is not None:
            return early
        if result.returncode == 0:
            return Outcome(Verdict.GOOD, "exit 0")
        if 0 < result.returncode < SKIP_STATUS:
            return Outcome(Verdict.BAD, f"exit {result.returncode}")
        if self.bad_if_crash:
            return Outcome(Verdict.BAD, result.describe())
        number = -result.returncode if result.returncode < 0 else result.returncode - 128
        known = {int(s) for s in signal.Signals}
        name = signal.Signals(number).name if number in known else str(number)
        raise OracleUnusable(
            f"the oracle itself broke: {result.describe()} ({name})",
            detail=result.stderr_text.strip()[-2000:],
            hint="0 is good, 1 to 124 bad, 125 cannot tell; --bad-if crash counts a broken check as bad",
        )


@dataclass
class KernelOracle:
    """A kernel's own host program (the contract of kernel.toml): exit 0 right, 1 wrong, 125 cannot tell.

    It prints one JSON document; `max_err` in it is kept. A signal or another status is a wrong
    program only if it is told so: it is UNRESOLVED here.
    """

    case: str
    seed: int = 1
    input: str = "random"
    timeout_s: float = 120.0
    bad_if_timeout: bool = False
    bad_if_crash: bool = False
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = _identity("kernel", self.case, self.seed, self.input, self.bad_if_timeout, self.bad_if_crash)

    def command(self, program: str) -> list[str]:
        return [program, "--case", self.case, "--seed", str(self.seed), "--input", self.input, "--json"]

    def judge(self, program: Path, scratch: Path) -> Outcome:
        argv = self.command(str(program))
        result = run(RunSpec(argv, cwd=scratch, env=_environment(scratch), timeout_s=self.timeout_s))
        early = _ended_without_answer(result, bad_if_timeout=self.bad_if_timeout)
        if early is not None:
            return early
        document = json_document(result.stdout)
        max_err = finite_number(document.get("max_err")) if document else None
        if result.returncode in (0, 1):
            doubt = document_doubt(document, result.returncode, seed=self.seed)
            if doubt:
                return Outcome(Verdict.UNRESOLVED, doubt, max_err)
        if result.returncode == 0:
            if document and finite_number(document.get("mismatches")):
                return Outcome(Verdict.UNRESOLVED, f"{self._numbers(document)}: exit 0 all the same", max_err)
            return Outcome(Verdict.GOOD, self._numbers(document), max_err)
        if result.returncode == 1:
            return Outcome(Verdict.BAD, self._numbers(document), max_err)
        if self.bad_if_crash and (result.returncode or 0) < 0:
            return Outcome(Verdict.BAD, result.describe())
        # a trap of the emulator, a usage error: its own words say which
        told = next((line.strip() for line in result.stderr_text.splitlines() if line.strip()), "")
        return Outcome(
            Verdict.UNRESOLVED, f"the host program ends with {result.describe()}" + (f": {told[:200]}" if told else "")
        )

    @staticmethod
    def _numbers(document: dict[str, object] | None) -> str:
        if not document:
            return ""
        wrong, elements = document.get("mismatches"), document.get("elements")
        error = document.get("max_err")
        return f"{wrong}/{elements} wrong, max_err {'not finite' if error is None else error}"


def document_doubt(document: dict[str, object] | None, status: int, *, seed: int | None) -> str:
    """Why what a host program prints beside exit 0 or 1 is no answer to what was asked, "" if it is one.

    seed: that was asked for, None if the caller does not care. The contract is in kernels/README.md.
    """
    if document is None:
        return f"exit {status} without the JSON document of the contract"
    said = document.get("verdict")
    if said is not None and said != (Verdict.GOOD if status == 0 else Verdict.BAD):
        return f"exit {status}, but its document says {said}"
    if seed is not None and document.get("seed", seed) != seed:
        return f"the host program ran seed = {document['seed']}, not {seed}"
    if document.get("elements") == 0:
        return "the host program compared no element"
    return ""


def finite_number(value: object) -> float | None:
    """A JSON number as a finite float, None for anything else (true and false are no numbers)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def json_document(data: bytes) -> dict[str, object] | None:
    """The one JSON object that these bytes are; None for anything else, and where a key has two values."""
    try:
        document = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found
