"""Make the program of a fault small: C-Vise for source, llvm-reduce for IR, with our own test of every variant.

    <run>/reduce/
      task.pickle    what must stay (interesting.py)
      interesting.sh the test that the reducer calls: syntax first, then python -m mccprobe.explain.reduce.interesting
      best.c         the smallest variant that passed; a later call starts from it
      work/          the reducer's own copy

The reducer may be stopped at any time: what counts is `best`, written by the test itself, and it is
examined once more in the end.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.console import number_of, visible
from mccprobe.base.errors import CannotReduce, ToolchainError
from mccprobe.base.files import file_digest, replace_file
from mccprobe.base.process import RunSpec, folder_outside, run
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.program import Rest
from mccprobe.build.record import Build, of_command
from mccprobe.build.store import RunDirectory, disk_errors
from mccprobe.explain.bundle.sources import absolute_paths
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.reduce.interesting import (
    Refused,
    Task,
    build,
    examine,
    holes_in,
    measure,
    screened,
    syntax_command,
    weight,
    write_task,
)
from mccprobe.oracle.checks import observe
from mccprobe.report.record import Culprit
from mccprobe.report.why_record import StepState
from mccprobe.targets import registry
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.command import is_cxx

SCHEMA_VERSION = 1
IR_SUFFIXES = frozenset((".ll", ".bc"))
TEST_TIMEOUT_LEAST_S = 10.0  # of one variant; C-Vise's own default of 300 s waits for every endless loop
TEST_TIMEOUT_FACTOR = 20.0  # of what the untouched source takes: other work shares the machine
_SOCKET_PATH_BYTES = 107  # sun_path of unix(7), without the zero at its end
_CVISE_SOCKET = "/pymp-????????/listener-????????"  # as Python's multiprocessing names it below TMPDIR
_SHORT_FOLDER = "/tmp"
_REDUCERS = "mccprobe-reducer-"
RUN_TIMEOUT_LEAST_S = 2.0
RUN_TIMEOUT_FACTOR = 20.0
SANITIZERS = (
    ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    ("-fsanitize=memory", "-fno-sanitize-recover=all"),
)
# Each is a way in which a reducer makes an invalid program that still "fails".
WARNINGS = (
    "uninitialized", "sometimes-uninitialized", "unsequenced", "return-type", "implicit-function-declaration",
    "implicit-int", "int-conversion", "incompatible-pointer-types", "format", "array-bounds", "shift-count-overflow",
    "shift-count-negative", "division-by-zero", "infinite-recursion", "strict-prototypes", "deprecated-non-prototype",
)  # fmt: skip
_PROGRESS = re.compile(rb"\(([-\d.]+)%, (\d{1,18}) bytes")


@dataclass(frozen=True)
class Reduction:
    """How far it came. lines, bytes: of the source, before and after. execution: the culprit's, in the result.

    verified: the result passed the whole test once more after the reducer ended. screens: what the variants
    had to pass beside the fault itself. file: the result, "" when nothing smaller was found.
    """

    state: StepState
    source: str
    file: str
    tool: str
    lines_before: int
    lines_after: int
    bytes_before: int
    bytes_after: int
    title: str
    function: str
    execution: int | None
    verified: bool
    screens: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_dict(self, tool_version: str) -> dict[str, Any]:
        """The `--json` document (reports/reduce.schema.json)."""
        values = {**asdict(self), "state": self.state.value, "seconds": round(self.seconds, 1)}
        values |= {"screens": list(self.screens), "notes": list(self.notes)}
        return {"schema_version": SCHEMA_VERSION, "tool_version": tool_version, "status": "done", **values}


def reduce_source(
    request: BisectRequest,
    culprit: Culprit,
    *,
    folder: Path,
    jobs: int,
    tell: Callable[[str], None],
    deadline: Deadline,
) -> Reduction:
    """Reduce the request's source as far as time allows. Raises CannotReduce, ToolchainError."""
    started = time.monotonic()
    ir = request.source.suffix in IR_SUFFIXES
    reducer = _reducer(request, ir=ir)
    if not ir:
        require_text(folder.absolute() / request.source.name)
    with disk_errors(folder, hint="free space; the same command goes on from there"):
        (folder / "work").mkdir(parents=True, exist_ok=True)
    untouched = _untouched(request, folder, ir=ir)
    best = folder / f"best{untouched.suffix}"
    work = folder / "work" / untouched.name
    _forget_another_source(folder, untouched, best)
    tell("reduce: what must stay")
    symbol = culprit.symbol or culprit.function or ""
    task, screens, notes, test_s = _task(request, culprit.title, symbol, untouched, folder, ir=ir)
    task = replace(task, best=best)
    write_task(folder / "task.pickle", task)
    script = _script(task, folder)
    resumed = best.is_file()
    shutil.copyfile(best if resumed else untouched, work)
    if resumed:
        tell(f"reduce: going on from {number_of(_lines(best.read_bytes(), ir=ir), 'line')}")
    ended = _run_reducer(reducer, script, work, task, jobs, test_s, ir=ir, tell=tell, deadline=deadline)
    # llvm-reduce goes through its passes once: what one makes unused is for an earlier one of the next round
    while ir and ended and best.is_file() and weight(task, best.read_bytes()) < weight(task, work.read_bytes()):
        shutil.copyfile(best, work)
        ended = _run_reducer(reducer, script, work, task, jobs, test_s, ir=ir, tell=tell, deadline=deadline)
    execution = None
    result = best if best.is_file() else untouched
    with tempfile.TemporaryDirectory(prefix="mccprobe-reduce-") as scratch:
        try:
            execution = examine(task, result, Path(scratch))
        except Refused as refused:
            notes.append(f"the smallest variant does not pass the test once more: {refused}")
    before, after = untouched.read_bytes(), result.read_bytes()
    return Reduction(
        state=StepState.DONE if ended else StepState.BUDGET,
        source=str(request.source),
        file=str(result) if execution is not None and result is best else "",
        tool=reducer.name,
        lines_before=_lines(before, ir=ir),
        lines_after=_lines(after, ir=ir),
        bytes_before=len(before),
        bytes_after=len(after),
        title=culprit.title,
        function=symbol,
        execution=execution,
        verified=execution is not None,
        screens=tuple(screens),
        notes=tuple(notes),
        seconds=time.monotonic() - started,
    )


def _lines(data: bytes, *, ir: bool) -> int:
    """Lines of a source; of IR those with code, for its printer adds blanks and comments."""
    lines = data.splitlines()
    return sum(bool(line.partition(b";")[0].strip()) for line in lines) if ir else len(lines)


def require_text(path: Path) -> None:
    """Raise CannotReduce for a name that C-Vise, which reads the names of files as UTF-8, ends with a traceback at."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise CannotReduce(
            f"{visible(str(path))}: C-Vise takes only names that are UTF-8",
            hint="give the source and the run directory other names, and begin a new run",
        ) from error


def _reducer(request: BisectRequest, *, ir: bool) -> Path:
    if not ir:
        return locate.require_program(
            "cvise", what="C-Vise, which reduces the source", hint="Debian: apt-get install cvise"
        )
    return _llvm_tool(request, "llvm-reduce")


def _llvm_tool(request: BisectRequest, name: str) -> Path:
    """A tool of the compiler's own version: IR of another version may not be read. Raises ToolchainError."""
    major = request.toolchain.identify().clang_major
    beside = request.toolchain.identify().resolved.parent / name
    for tried in (str(beside), f"{name}-{major}") if major else (str(beside),):
        found = locate.which(tried)
        if found is not None:
            return found
    raise ToolchainError(
        f"no {name} of the compiler's version {major or '(unknown)'} found",
        hint=f"Debian: apt-get install llvm-{major or 'N'}",
    )


def _untouched(request: BisectRequest, folder: Path, *, ir: bool) -> Path:
    """The source as the reducer begins with it, under its own name; bitcode as text."""
    target = folder / "untouched" / request.source.name
    target.parent.mkdir(exist_ok=True)
    if request.source.suffix != ".bc":
        shutil.copyfile(request.source, target)
        return target
    target = target.with_suffix(".ll")
    result = run(RunSpec([str(_llvm_tool(request, "llvm-dis")), str(request.source), "-o", str(target)], timeout_s=60))
    if not result.ok:
        raise ToolchainError(f"{request.source}: llvm-dis cannot read it", detail=result.stderr_text.strip())
    return target


def _forget_another_source(folder: Path, untouched: Path, best: Path) -> None:
    """Remove `best` unless it is of this very source. The stamp that says so is never written over by itself."""
    stamp = folder / "source.sha256"
    digest = file_digest(untouched)
    if not (stamp.is_file() and stamp.read_text() == digest):
        best.unlink(missing_ok=True)
        replace_file(stamp, digest.encode())


def _standing(request: BisectRequest, untouched: Path, folder: Path) -> BisectRequest:
    """The request with all that a variant does not change made absolute and compiled once."""
    here = Path.cwd()
    own = () if request.source.suffix in IR_SUFFIXES else ("-iquote", str(request.source.absolute().parent))

    def standing(build: Build, inputs: Sequence[str]) -> Build:
        args = (*absolute_paths(build.units[request.unit].args, here), *own)
        return of_command(untouched, args, inputs, absolute_paths(build.link.args, here))

    inputs = _compiled_rest(request, folder) if request.inputs else []
    reference = None if request.reference is None else standing(request.reference, inputs)
    return replace(request, build=standing(request.build, inputs), reference=reference, unit=0)


def _compiled_rest(request: BisectRequest, folder: Path) -> list[str]:
    """The other inputs of the link, compiled once below `folder`, as absolute paths."""
    run_directory = RunDirectory(folder / "rest")
    journal = Journal(run_directory.journal)
    executor = LocalExecutor()
    try:
        ledger = Ledger(run_directory, journal, executor)
        rest = Rest(request.toolchain, ledger, request.rest, request.unit, timeout_s=request.compile_timeout_s)
        return [str(Path(name).absolute()) if Path(name).exists() else name for name in rest.inputs()]
    finally:
        executor.shutdown(cancel=True)
        journal.close()


def _task(
    request: BisectRequest, title: str, symbol: str, untouched: Path, folder: Path, *, ir: bool
) -> tuple[Task, list[str], list[str], float]:
    """What must stay, proved on the untouched source; what is screened for, what is not, seconds of one test.

    Raises CannotReduce when the untouched source does not pass.
    """
    standing = _standing(request, untouched, folder)
    screens: list[str] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mccprobe-reduce-") as name:
        scratch = Path(name)
        statuses, run_s = _statuses(standing, untouched, scratch)
        timeout_s = min(standing.oracle.timeout_s, max(RUN_TIMEOUT_LEAST_S, RUN_TIMEOUT_FACTOR * run_s))
        standing = replace(standing, oracle=replace(standing.oracle, timeout_s=timeout_s))
        task = Task(standing, title, symbol, *statuses, holes=holes_in(untouched.read_bytes()) if ir else None)
        started = time.monotonic()
        try:
            oracle = measure(task, untouched, scratch)
            examine(task, untouched, scratch)
        except Refused as refused:
            raise CannotReduce(
                f"{request.source}: the untouched source does not pass the test: {refused}",
                hint="reduction needs a culprit with N-1 GOOD and N BAD, found again by its name",
            ) from refused
        if ir:
            notes.append("IR: no sanitizer applies; variants with more undefined operands than before are refused")
        elif registry.target(request.toolchain.name).device:
            notes.append("device code: no sanitizer applies; a trap of the emulator is no answer, so it is refused")
        else:
            clean = []
            for sanitizer in SANITIZERS:
                if "memory" in sanitizer[0] and standing.inputs:
                    notes.append("not screened with -fsanitize=memory: the other objects are not built with it")
                    continue
                try:
                    screened(task, untouched, scratch, oracle, sanitizer)
                except Refused as refused:
                    notes.append(f"not screened with {sanitizer[0]}: the untouched source already fails: {refused}")
                else:
                    clean.append(sanitizer)
                    screens.append(" ".join(sanitizer))
            task = replace(task, sanitizers=tuple(clean), warnings=_quiet_warnings(task, untouched))
            screens += task.warnings
        return task, screens, notes, time.monotonic() - started


def _statuses(request: BisectRequest, source: Path, scratch: Path) -> tuple[tuple[int, int], float]:
    """How both programs end, and the longer of their times in seconds. Raises CannotReduce."""
    statuses, longest = [], 0.0
    for name, args, link in (
        ("reference", request.reference_args, request.reference_link_args),
        ("bad", request.bad_args, request.link_args),
    ):
        if args is None:
            statuses.append(0)
            continue
        program = scratch / name
        if not build(request, source, args, link, program):
            raise CannotReduce(f"{request.source}: the {name} build does not work with one driver command")
        choice = request.oracle
        arguments = choice.run_args if choice.kind != "kernel" else ()
        if choice.kind == "reference":
            seen = observe(program, arguments, choice.run_in or scratch, choice.timeout_s, choice.stdin)
            longest = max(longest, seen.seconds)
            statuses.append(seen.returncode if seen.returncode is not None else 0)
        else:
            statuses.append(0)
            longest = choice.timeout_s
    return (statuses[0], statuses[1]), longest


def _quiet_warnings(task: Task, source: Path) -> tuple[str, ...]:
    """Those that the untouched source does not raise."""
    argv = [*syntax_command(task), *(f"-W{name}" for name in WARNINGS), str(source)]
    result = run(RunSpec(argv, timeout_s=task.request.compile_timeout_s))
    if not result.ok:  # -Werror is the user's own: then every variant is held to it anyhow
        return ()
    told = result.stderr_text
    # `[-Wname]` ends a warning; an option that this clang does not know is named in quotes
    return tuple(f"-Werror={name}" for name in WARNINGS if f"-W{name}]" not in told and f"'-W{name}'" not in told)


def _script(task: Task, folder: Path) -> Path:
    """The test as the reducer calls it, in a folder with the variant, or with its name as an argument."""
    name = shlex.quote(task.request.source.name)
    syntax = shlex.join(syntax_command(task))
    pickled = str(folder.absolute() / "task.pickle")
    python = shlex.join([sys.executable, "-m", "mccprobe.explain.reduce.interesting", pickled])
    path = folder.absolute() / "interesting.sh"
    text = (
        "#!/bin/sh\n"
        "# Written by mccprobe reduce. Exit 0: this file still shows the same fault.\n"
        f"file=${{1:-{name}}}\n"
        f'{syntax} "$file" >/dev/null 2>&1 || exit 1\n'
        "export PYTHONSAFEPATH=1\n"
        f'exec {python} "$file"\n'
    )
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o755)
    return path


def _run_reducer(
    reducer: Path,
    script: Path,
    work: Path,
    task: Task,
    jobs: int,
    test_s: float,
    *,
    ir: bool,
    tell: Callable[[str], None],
    deadline: Deadline,
) -> bool:
    """True when it came to its own end; False when time ran out. Raises ToolchainError when it does not work."""
    limit = max(TEST_TIMEOUT_LEAST_S, TEST_TIMEOUT_FACTOR * test_s)
    name = f"./{work.name}" if work.name.startswith("-") else work.name
    if ir:
        argv = [str(reducer), f"--test={script}", "-o", work.with_suffix(".reduced.ll").name, name]
    else:
        argv = [str(reducer), "--n", str(jobs), "--timeout", str(math.ceil(limit)), "--tidy", *_language(task)]
        argv += [str(script), name]
    told = [0.0]

    def progress(chunk: bytes) -> bytes:
        found = _PROGRESS.findall(chunk)
        if found and time.monotonic() - told[0] > 5:
            told[0] = time.monotonic()
            percent, size = found[-1]
            tell(f"reduce: {float(percent):.0f}% smaller, {int(size)} bytes")
        return chunk

    if deadline.passed:
        return False
    left = 0.0 if math.isinf(deadline.left_s) else deadline.left_s
    with _reducers_folder() as temporary:
        env = {**os.environ, "TMPDIR": temporary}
        result = run(RunSpec(argv, cwd=work.parent, env=env, timeout_s=left, on_stderr=progress))
    if result.timed_out:
        return False
    if not result.ok:
        raise ToolchainError(
            f"{reducer.name} does not work: {result.describe()}",
            detail=(result.stderr_text + result.stdout_text).strip()[-2000:],
            hint="ran: " + shlex.join(argv),
        )
    return True


def _reducers_folder() -> AbstractContextManager[str]:
    """A folder for C-Vise's temporary files: it makes a Unix socket there, whose path must not be too long."""
    usual = len(os.fsencode(tempfile.gettempdir())) + len(f"/{_REDUCERS}????????{_CVISE_SOCKET}")
    if usual <= _SOCKET_PATH_BYTES or not os.access(_SHORT_FOLDER, os.W_OK | os.X_OK):
        return tempfile.TemporaryDirectory(prefix=_REDUCERS)
    return folder_outside(_SHORT_FOLDER, _REDUCERS)


def _language(task: Task) -> list[str]:
    source = task.request.source.name
    plain = Path(source).suffix == ".c" or is_cxx(source)
    options = [] if plain else ["--not-c"]
    if plain and task.symbol:
        options += ["--clang-delta-preserve-routine", task.symbol]
    return options
