"""The build that is right: its program tells what to expect, its object is known to be GOOD."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mccprobe.base.errors import OracleUnusable, SourceDoesNotCompile
from mccprobe.base.process import RunResult
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.missed_files import named_by_program
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.journal import Journal
from mccprobe.build.program import Linker, LinkFailure, Program
from mccprobe.build.unit import RecordedSource, Unit
from mccprobe.oracle.checks import (
    CANNOT_EXECUTE,
    CommandOracle,
    Expected,
    KernelOracle,
    Oracle,
    ReferenceOracle,
    observe_files,
)
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.oracle.written import stable

REFERENCE_RUNS = 2


@dataclass
class Reference:
    """The reference build and the runs of it. notes: what those runs show that a reader must know."""

    unit: Unit
    program: Program
    judge: Judge
    notes: list[str] = field(default_factory=list)

    @property
    def object(self) -> str:
        return self.unit.base[self.unit.recorded.active]


def linked_reference(unit: Unit, program: Program) -> Path:
    """The reference program. Raises SourceDoesNotCompile when it does not link."""
    linked = program.replace(unit.base[unit.recorded.active])
    if isinstance(linked, LinkFailure):
        raise SourceDoesNotCompile(
            f"the reference build does not link: {linked.reason}",
            hint=linked.hint or "are libraries missing? give them after --, as for the compiler",
        )
    return linked


def expected_output(request: BisectRequest, program: Path, unit: Unit, notes: list[str]) -> Expected:
    """What the reference prints, from two runs that must agree; `notes` gets what they show. Raises OracleUnusable."""
    choice = request.oracle
    seen: list[Expected] = []
    seeing = partial(
        observe_files,
        args=tuple(choice.run_args),
        timeout_s=choice.timeout_s,
        ignored=choice.ignored_files,
        stdin=choice.stdin,
    )
    for _ in range(REFERENCE_RUNS):
        with unit.ledger.run.scratch("reference") as scratch:
            if choice.run_in is not None or choice.stdin is not None:
                observation = seeing(program, choice.run_in or scratch)
            else:  # where the trials run, too
                observation = unit.ledger.executor.run_program(seeing, program, scratch)
            result = observation.result
            if choice.run_in is None and not seen:
                known = (str(request.source), *request.inputs)
                missed = named_by_program(program, result.stderr_text, scratch, Path.cwd(), known)
                notes += [missed] if missed else []
        if result.returncode is None or result.timed_out:
            raise OracleUnusable(
                f"the reference build gives no answer: {result.describe()}",
                hint="raise --timeout, or give a check of your own with --oracle",
            )
        if result.returncode in CANNOT_EXECUTE:
            raise OracleUnusable(
                f"the reference build cannot be run: {result.describe()}",
                detail=result.stderr_text.strip()[-2000:],
                hint="programs run in an empty folder of their own: --run-in DIR, or absolute paths for libraries",
            )
        if result.stdout_bytes > len(result.stdout):
            raise OracleUnusable(
                f"the reference build prints {result.stdout_bytes} bytes, too many to compare",
                hint="print less, or give a check of your own with --oracle",
            )
        seen.append(Expected(result.stdout, result.returncode, observation.files))
    if (seen[0].stdout, seen[0].returncode) != (seen[1].stdout, seen[1].returncode):
        raise OracleUnusable(
            "the reference build prints something else at each run, so its output cannot be the measure: "
            f"{seen[0].describe()} and {seen[1].describe()}",
            hint="make the program deterministic, or give a check of your own with --oracle",
        )
    if seen[0].returncode:
        notes.append(_ends_badly(result))
    alike, others = stable(seen[0].files or (), seen[1].files or ())
    return replace(seen[0], files=alike, unstable=others)


def _ends_badly(result: RunResult) -> str:
    """A reference that fails by itself may measure nothing: tell how it ended."""
    words = result.stderr_text.strip().splitlines()
    told = f': "{words[-1]}"' if words else ""
    return (
        f"the reference build itself ends with {result.describe()}{told}; if that is not what it should do: programs "
        "run in an empty folder of their own (--run-in DIR), their arguments are --run-args, standard input is --stdin"
    )


def make_oracle(request: BisectRequest, expected: Expected | None) -> Oracle:
    """The oracle that the request names."""
    choice = request.oracle
    if choice.kind == "command":
        return CommandOracle(
            choice.command, choice.timeout_s, choice.bad_if_timeout, choice.bad_if_crash, cwd=Path.cwd()
        )
    if choice.kind == "kernel":
        return KernelOracle(
            choice.case,
            seed=choice.seed,
            timeout_s=choice.timeout_s,
            bad_if_timeout=choice.bad_if_timeout,
            bad_if_crash=choice.bad_if_crash,
        )
    assert expected is not None
    return ReferenceOracle(
        expected,
        choice.run_args,
        choice.timeout_s,
        choice.bad_if_timeout,
        run_in=choice.run_in,
        bad_if_crash=choice.bad_if_crash,
        stdin=choice.stdin,
        ignored=choice.ignored_files,
    )


def require_good(reference: Reference) -> Outcome:
    """The reference must pass the very check that the bad build fails. Raises OracleUnusable."""
    outcomes = [reference.judge.run(reference.object) for _ in range(REFERENCE_RUNS)]
    for outcome in outcomes:
        if outcome.verdict is not Verdict.GOOD:
            raise OracleUnusable(
                f"the reference build is not GOOD: {outcome.verdict} ({outcome.reason})",
                hint="it must pass the check before a pass can be blamed; other arguments for it: --reference ARGS",
            )
    return outcomes[0]


def reference_unit(request: BisectRequest, bad: Unit) -> Unit | None:
    """The reference build's unit, not yet compiled; None without a reference.

    One that differs in LLVM options alone is a variant of the very source that `bad` is of.
    """
    if request.reference is None:
        return None
    if request.shares_source:
        return Unit(bad.recorded, "reference")
    recorded = RecordedSource(
        request.toolchain,
        bad.ledger,
        request.reference.units[request.unit],
        name="reference",
        timeout_s=request.compile_timeout_s,
        prefix=bad.recorded.prefix,
    )
    return Unit(recorded, "reference")


def build_reference(bad: Unit, unit: Unit) -> None:
    """Compile the reference's unlimited objects."""
    if unit.recorded is bad.recorded:
        unit.prepare_from(bad)
    else:
        unit.recorded.active = bad.recorded.active
        unit.prepare_direct()


def judged_reference(request: BisectRequest, unit: Unit, linker: Linker, journal: Journal) -> tuple[Reference, Oracle]:
    """Link the built reference, make the oracle and prove that the reference passes it."""
    program = Program(unit, linker)
    path = linked_reference(unit, program)
    notes: list[str] = []
    expected = expected_output(request, path, unit, notes) if request.oracle.kind == "reference" else None
    oracle = make_oracle(request, expected)
    reference = Reference(unit, program, Judge(program, oracle, journal), notes)
    if request.oracle.kind != "reference":
        require_good(reference)
    return reference, oracle
