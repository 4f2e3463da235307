"""Repeats of both sides under other circumstances: a program whose answer moves by itself proves nothing of a pass."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.judge import Judge
from mccprobe.build.program import LinkFailure
from mccprobe.oracle.checks import CommandOracle, Oracle, ReferenceOracle
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.targets.llvm.locate import which

# a process that is busy as long as its file is there
_BUSY = "import os, sys\nwhile os.path.exists(sys.argv[1]):\n    for _ in range(200000):\n        pass\n"
_BUSY_LIMIT_S = 600.0
REPEATS = 3  # runs of the good side under each circumstance


@dataclass(frozen=True)
class Moved:
    """A run with another verdict than before. circumstance: under which. good_side: it is the good side's."""

    circumstance: str
    outcome: Outcome
    good_side: bool


def steadiness(judge: Judge, good: str, bad: str, slower: str | None) -> Moved | None:
    """Run both sides under load and with the lowest priority, and a slower build of the program. None: all as before.

    good, bad: objects of both sides. slower: the object of the same program with every optional pass left out, which
    was GOOD too.
    """
    sides = [(good, Verdict.GOOD, ""), (bad, Verdict.BAD, "")]
    if slower is not None and slower != good:
        sides.insert(1, (slower, Verdict.GOOD, "built slower and "))
    with _load(judge):
        for digest, expected, how in sides:
            program = judge.program.replace(digest)
            if isinstance(program, LinkFailure):
                continue
            for circumstance, prefix in (("while the machine is busy", ()), ("with the lowest priority", _nice())):
                for _ in range(REPEATS):
                    outcome = _run(judge, program, prefix)
                    if outcome.verdict not in (expected, Verdict.UNRESOLVED):
                        return Moved(how + circumstance, outcome, expected is Verdict.GOOD)
    return None


def _nice() -> tuple[str, ...]:
    return ("nice", "-n", "19") if which("nice") is not None else ()


def _run(judge: Judge, program: Path, prefix: tuple[str, ...]) -> Outcome:
    oracle, subject = _behind(judge.oracle, prefix, program)
    with judge.program.run.scratch("steady") as scratch:
        return oracle.judge(subject, scratch)


def _behind(oracle: Oracle, prefix: tuple[str, ...], program: Path) -> tuple[Oracle, Path]:
    """The oracle with the program started through `prefix`, and the file to give to it."""
    found = which(prefix[0]) if prefix else None
    if found is None:
        return oracle, program
    if isinstance(oracle, ReferenceOracle):
        return replace(oracle, args=(*prefix[1:], str(program), *oracle.args)), found
    if isinstance(oracle, CommandOracle):
        return replace(oracle, argv=(*prefix, *oracle.argv)), program
    return oracle, program


@contextlib.contextmanager
def _load(judge: Judge) -> Iterator[None]:
    """Twice as many busy processes as there are CPUs for us, ended in any case."""
    with judge.program.run.scratch("load") as folder:
        flag = folder / "busy"
        flag.touch()
        argv = [sys.executable, "-I", "-S", "-c", _BUSY, str(flag)]
        count = 2 * len(os.sched_getaffinity(0))
        threads = [
            threading.Thread(target=run, args=(RunSpec(argv, timeout_s=_BUSY_LIMIT_S),), daemon=True)
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            flag.unlink(missing_ok=True)
            for thread in threads:
                thread.join()
