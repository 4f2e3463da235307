"""Is a smaller program still the same fault? What C-Vise and llvm-reduce ask of every variant.

    python -m mccprobe.explain.reduce.interesting TASK FILE     exit 0: yes; 1: no; the reason on standard error

Cheap questions first, for nearly every variant is refused: the bad build wrong and the reference right
(one driver command each), then the same pass on the same function (its executions are taken from the log
by name, so two limited builds and a few between them do instead of a bisection), then sanitizers. A
variant that is wrong because it became an invalid program, or wrong by another pass, is refused.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.console import Console
from mccprobe.base.errors import MccprobeError
from mccprobe.base.files import replace_file
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.reference import make_oracle
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.job import OUTPUT
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.line_feed import LineFeed
from mccprobe.build.store import RunDirectory
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import Expected, Oracle, observe
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.llvm.command import language, split_arguments
from mccprobe.targets.llvm.inherited import prefix

YES, NO = 0, 1
COMPLAINT = re.compile(rb"runtime error:|ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|SUMMARY: \w+Sanitizer")
# what llvm-reduce puts in an operand's place; each makes an IR program say less than it did
_HOLES = re.compile(rb"\b(?:undef|poison|unreachable|null)\b")
_IR_PADDING = re.compile(rb";[^\n]*|^source_filename.*$", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """What must stay: written by `reduce`, read for every variant.

    request: with `source` and `inputs` of the whole run replaced by what stands still. symbol: the culprit's
    function as in the object, "" when no log names one. reference_status, bad_status: how the programs of the
    untouched source ended. sanitizers: option lists, each one build at -O0 that must stay clean and right.
    warnings: options that make a warning an error, each clean on the untouched source. holes: how many
    undefined operands the untouched IR has (None: source, not IR).
    """

    request: BisectRequest
    title: str
    symbol: str
    reference_status: int
    bad_status: int
    sanitizers: tuple[tuple[str, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    holes: int | None = None
    best: Path | None = None


class Refused(Exception):
    """This variant is not interesting, and why."""


def holes_in(ir: bytes) -> int:
    """Undefined operands and unreachable ends in textual IR."""
    return len(_HOLES.findall(ir))


def syntax_command(task: Task) -> list[str]:
    """The cheapest test of all; the file is its last argument, to be added."""
    request = task.request
    compiler = (*prefix(request.inherited), *request.toolchain.driver)
    return [*compiler, *request.bad_args, "-fsyntax-only", *task.warnings]


def build(request: BisectRequest, source: Path, args: Sequence[str], link: Sequence[str], output: Path) -> bool:
    """One driver command from source to program."""
    objects = ["-x", "none", *request.inputs] if language(split_arguments(args)) else list(request.inputs)
    argv = [*request.toolchain.driver, *args, str(source), *objects, *link, "-o", str(output)]
    env = request.toolchain.environment(output.parent)
    result = run(RunSpec(argv, env=env, timeout_s=request.compile_timeout_s))
    return result.ok and output.is_file()


def measure(task: Task, source: Path, folder: Path) -> Oracle:
    """The reference right, the bad build wrong, both ending as they did. Returns the oracle. Raises Refused."""
    request, choice = task.request, task.request.oracle
    good, bad = folder / "good", folder / "bad"
    if request.reference_args is None:
        oracle = make_oracle(request, None)
    else:
        if not build(request, source, request.reference_args, request.reference_link_args, good):
            raise Refused("the reference does not build")
        expected = None
        if choice.kind == "reference":
            seen = observe(good, choice.run_args, choice.run_in or folder, choice.timeout_s, choice.stdin)
            if seen.timed_out or seen.returncode != task.reference_status or seen.stdout_bytes > len(seen.stdout):
                raise Refused(f"the reference: {seen.describe()}")
            expected = Expected(seen.stdout, seen.returncode)
        oracle = make_oracle(request, expected)
        if choice.kind != "reference" and oracle.judge(good, folder).verdict is not Verdict.GOOD:
            raise Refused("the reference is not GOOD")
    if not build(request, source, request.bad_args, request.link_args, bad):
        raise Refused("the bad build does not build")
    if choice.kind == "reference":
        seen = observe(bad, choice.run_args, choice.run_in or folder, choice.timeout_s, choice.stdin)
        if seen.returncode != task.bad_status:
            raise Refused(f"the bad build: {seen.describe()}")
    outcome = oracle.judge(bad, folder)
    if outcome.verdict is not Verdict.BAD:
        raise Refused(f"the bad build is {outcome.verdict}")
    return oracle


def executions(unit: Unit, title: str, symbol: str) -> list[int]:
    """Numbers of the executions of this pass, in order; those on a function that the log names otherwise left out."""
    found: list[int] = []
    lines = LineFeed()

    def read(chunk: bytes) -> bytes:
        wanted = title.encode()
        for line in lines.feed(chunk):
            if wanted not in line:
                continue
            execution = unit.recorded.counter.parse_line(line.decode("utf-8", "replace"))
            if not execution or not execution.ran or execution.name != title:
                continue
            if not symbol or not execution.function or symbol in execution.function.split(", "):
                found.append(execution.number)
        return b""

    job = unit.job(UNLIMITED)
    with unit.ledger.run.scratch("log") as scratch:
        argv = [argument.replace(OUTPUT, str(scratch / "log.o")) for argument in job.argv]
        env = unit.recorded.toolchain.environment(scratch)
        run(RunSpec(argv, cwd=job.cwd, env=env, timeout_s=job.timeout_s, on_stderr=read))
    return found


def first_bad(numbers: Sequence[int], is_bad: Callable[[int], bool]) -> int | None:
    """The first of the limits at which the build is bad, None if it is not even at the last (halving)."""
    if not numbers or not is_bad(numbers[-1]):
        return None
    low, high = 0, len(numbers) - 1
    while low < high:
        middle = (low + high) // 2
        if is_bad(numbers[middle]):
            high = middle
        else:
            low = middle + 1
    return numbers[high]


def named_edge(workspace: Workspace, title: str, symbol: str) -> int | None:
    """The execution N of this pass on this function with N-1 GOOD and N BAD, None if there is none."""
    unit, judge = workspace.unit, workspace.judge
    verdicts: dict[int, Verdict] = {}

    def verdict(limit: int) -> Verdict:
        if limit not in verdicts:
            outcome = unit.ledger.compile(unit.job(limit))
            verdicts[limit] = judge.run(outcome.object).verdict if outcome.object else Verdict.UNRESOLVED
        return verdicts[limit]

    edge = first_bad(executions(unit, title, symbol), lambda limit: verdict(limit) is Verdict.BAD)
    if edge is None or verdict(edge - 1) is not Verdict.GOOD:
        return None
    log = unit.ledger.compile(unit.job(edge)).log
    return edge if not symbol or symbol in log.function.split(", ") else None


def same_culprit(task: Task, source: Path, folder: Path) -> int:
    """The execution that is the same pass on the same function. Raises Refused."""
    directory = RunDirectory(folder / "run")
    journal = Journal(directory.journal)
    executor = LocalExecutor(1)
    try:
        request = task.request.with_source(source)
        workspace = open_workspace(request, Ledger(directory, journal, executor), journal)
        edge = named_edge(workspace, task.title, task.symbol)
    except MccprobeError as error:
        raise Refused(error.message) from error
    finally:
        executor.shutdown(cancel=True)
        journal.close()
    if edge is None:
        raise Refused(f"{task.title} on {task.symbol or 'any function'} is not where it turns wrong")
    return edge


def screened(task: Task, source: Path, folder: Path, oracle: Oracle, sanitizer: Sequence[str]) -> None:
    """Built at -O0 with this sanitizer: silent, and right. Raises Refused."""
    request, choice = task.request, task.request.oracle
    program = folder / "screened"
    args = [*(request.reference_args or request.args), "-O0", *sanitizer]
    if not build(request, source, args, [*request.link_args, *sanitizer], program):
        raise Refused(f"does not build with {' '.join(sanitizer)}")
    where = choice.run_in or folder
    seen = observe(program, oracle.command(str(program))[1:], where, choice.timeout_s * 4, choice.stdin)
    complaint = COMPLAINT.search(seen.stderr)
    if complaint:
        raise Refused(f"{' '.join(sanitizer)}: {complaint.group().decode()}")
    if oracle.judge(program, folder).verdict is not Verdict.GOOD:
        raise Refused(f"wrong or without an answer at -O0 with {' '.join(sanitizer)}")


def examine(task: Task, source: Path, folder: Path) -> int:
    """Ask everything of one variant. Returns the culprit's execution. Raises Refused."""
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # a leak is no undefined behaviour
    if task.holes is not None and holes_in(source.read_bytes()) > task.holes:
        raise Refused("more undefined operands than before")
    oracle = measure(task, source, folder)
    edge = same_culprit(task, source, folder)
    for sanitizer in task.sanitizers:
        screened(task, source, folder, oracle, sanitizer)
    return edge


def weight(task: Task, data: bytes) -> int:
    """What counts as smaller: bytes; of IR without the comments and blanks that its printer adds."""
    return len(data) if task.holes is None else len(b"".join(_IR_PADDING.sub(b"", data).split()))


def keep_if_smaller(task: Task, source: Path) -> None:
    """Keep the smallest variant that passed, whatever becomes of the reducer's own file."""
    if task.best is None:
        return
    data, best = source.read_bytes(), task.best
    if weight(task, data) < weight(task, (best if best.exists() else task.request.source).read_bytes()):
        replace_file(best, data)


def read_task(path: Path) -> Task:
    """What `write_task` wrote; only ever a file of our own run directory, made in the same run."""
    with path.open("rb") as file:
        task: Task = pickle.load(file)
    return task


def write_task(path: Path, task: Task) -> None:
    """For the tests that follow, in processes of their own."""
    path.write_bytes(pickle.dumps(task))


def main(argv: Sequence[str]) -> int:
    """Exit status for the reducer."""
    task, source = read_task(Path(argv[0])), Path(argv[1]).absolute()
    with tempfile.TemporaryDirectory(prefix="mccprobe-interesting-") as folder:
        try:
            examine(task, source, Path(folder))
        except (Refused, MccprobeError) as refused:
            Console().always(f"not interesting: {refused}")
            return NO
    keep_if_smaller(task, source)
    return YES


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
