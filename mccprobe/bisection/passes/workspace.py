"""The build under examination, opened once: the bad build, its reference, and who judges programs of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.determinism import one_object_in_every_layout
from mccprobe.bisection.passes.reference import (
    Reference,
    build_reference,
    judged_reference,
    linked_reference,
    make_oracle,
    reference_unit,
)
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.codegen_only import CodegenOnly
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.program import Linker, Program, Rest
from mccprobe.build.unit import UNLIMITED, RecordedSource, Unit
from mccprobe.oracle.checks import Oracle
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.flags.levels import levels_in
from mccprobe.targets.llvm.flag_probe import OPTION_COMPLAINTS, not_taken
from mccprobe.targets.llvm.jobs import option_key
from mccprobe.targets.llvm.locate import fixed_addresses_prefix


class EqualBuilds(Exception):
    """Bad build and reference are one object and one link; never leaves mccprobe.bisection."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


@dataclass
class Workspace:
    """One request, compiled and judged as far as every step needs it.

    short: the code generator alone from optimised bitcode, where that is possible.
    reference: None when the request has none. notes: sentences for the report.
    """

    request: BisectRequest
    ledger: Ledger
    journal: Journal
    prefix: tuple[str, ...]
    unit: Unit
    rest: Rest
    linker: Linker
    reference_linker: Linker
    oracle: Oracle
    judge: Judge
    reference: Reference | None
    short: CodegenOnly | None
    notes: list[str] = field(default_factory=list)

    @property
    def same_link(self) -> bool:
        """True when bad build and reference link alike, so that one object is one program."""
        return self.linker.described() == self.reference_linker.described()

    def variant(self, flags: Sequence[CompilerFlag], tag: str, *, args: Sequence[str] | None = None) -> Judge:
        """The same build with other flags (the request's own are not in it).

        args: compile options in place of the request's. Its unlimited objects are compiled and stand in
        `.program.unit.base`; `.run(object)` judges. tag names the variant in programs and journal: one tag, one
        set of flags. Raises SourceDoesNotCompile.
        """
        request = self.request
        if args is None and request.shares_source and all(flag.option for flag in flags):
            unit = Unit(self.unit.recorded, tag, flags)
            unit.prepare_from(self.unit)
            return Judge(Program(unit, self.linker), self.oracle, self.journal)
        argv = (argument for flag in flags for argument in flag.argv)
        record = request.record.with_args((*(request.args if args is None else args), *argv))
        recorded = RecordedSource(
            request.toolchain,
            self.ledger,
            record,
            name=f"variant-{tag}",
            timeout_s=request.compile_timeout_s,
            prefix=self.prefix,
        )
        recorded.active = self.unit.recorded.active
        unit = Unit(recorded, tag)
        unit.prepare_direct()
        linker = Linker(
            recorded, self.rest, request.build.link, request.place, name=tag, timeout_s=request.compile_timeout_s
        )
        return Judge(Program(unit, linker), self.oracle, self.journal)


def open_workspace(
    request: BisectRequest,
    ledger: Ledger,
    journal: Journal,
    *,
    prove_later: bool = False,
    draw: Sequence[str] = (),
    refuse_equal: bool = False,
) -> Workspace:
    """Compile the bad build and the reference, and prove that the reference passes the check.

    refuse_equal: raise EqualBuilds before anything is linked or run if there is nothing to search.
    draw: a command that runs the compiles with another memory layout (determinism.OTHER_DRAWS).
    Raises SourceDoesNotCompile, UnknownFlag, OracleUnusable, ToolchainError.
    """
    prefix = (*draw, *fixed_addresses_prefix()) if request.fixed_addresses else ()
    # first, for it takes longest: front end and code generator of the other sources in one, and nothing runs before it
    rest = Rest(request.toolchain, ledger, request.rest, request.unit, timeout_s=request.compile_timeout_s)
    unit = _bad_unit(request, ledger, prefix)
    with _flags_taken(request):
        unit.begin()
        other = reference_unit(request, unit)
        linker, other_linker = _linkers(request, unit, other, rest)
        variants = [other] if other is not None and other.recorded is unit.recorded else []
        unit.finish(variants, prove_later=prove_later)
        short = CodegenOnly(unit) if unit.recorded.from_bitcode else None
        reference: Reference | None = None
        if other is None:
            oracle = make_oracle(request, None)
        else:
            build_reference(unit, other)
            same = other.base == unit.base and linker.described() == other_linker.described()
            if unit.recorded.offload:  # the host half is of its own recording
                same = same and other.recorded is unit.recorded
            if refuse_equal and same and _nothing_to_search(request, unit):
                linked_reference(other, Program(other, other_linker))  # what does not link is no answer
                raise EqualBuilds(unit.base[unit.recorded.active])
            reference, oracle = judged_reference(request, other, other_linker, journal)
        judge = Judge(Program(unit, linker), oracle, journal)
    workspace = Workspace(
        request, ledger, journal, prefix, unit, rest, linker, other_linker, oracle, judge, reference, short
    )
    if len(unit.recorded.jobs) > 1:
        workspace.notes += _choose_architecture(request, ledger, unit, judge)
    return workspace


@contextlib.contextmanager
def _flags_taken(request: BisectRequest) -> Iterator[None]:
    """A compile that fails for one of the flags is the flag's fault, not the source's."""
    try:
        yield
    except SourceDoesNotCompile as error:
        if any(words in error.detail for words in OPTION_COMPLAINTS):
            for flag in request.flags:
                if any(option_key(part) in error.detail for part in (flag.option, *flag.words) if part):
                    raise not_taken(request.toolchain, flag.argv, " ".join(flag.argv), error.detail) from error
        raise


def _bad_unit(request: BisectRequest, ledger: Ledger, prefix: tuple[str, ...]) -> Unit:
    """The build that is bisected. LLVM flags are a variant's options; a driver's flags need their own recording."""
    shared = request.shares_source
    record = request.record if shared else request.record.with_args(request.bad_args)
    recorded = RecordedSource(
        request.toolchain, ledger, record, name="bisected", timeout_s=request.compile_timeout_s, prefix=prefix
    )
    return Unit(recorded, "bad", request.flags if shared else ())


def _linkers(request: BisectRequest, unit: Unit, other: Unit | None, rest: Rest) -> tuple[Linker, Linker]:
    """How the bad build links, and how its reference does: one and the same where the commands are."""
    timeout_s = request.compile_timeout_s
    place = request.place
    linker = Linker(unit.recorded, rest, request.build.link, place, name="bad", timeout_s=timeout_s)
    if other is None or other.recorded is unit.recorded or request.reference is None:
        return linker, linker
    return linker, Linker(other.recorded, rest, request.reference.link, place, name="reference", timeout_s=timeout_s)


def _nothing_to_search(request: BisectRequest, unit: Unit) -> bool:
    """True where equal objects are an answer: the compiler counts its passes, and gives this object every time."""
    if not unit.bitcode_holds() or unit.ledger.compile(unit.job(UNLIMITED)).log.total == 0:
        return False
    plain = (levels_in(request.bad_args) or ["-O0"])[-1] == "-O0"  # what orders by pointer is an optimisation
    return plain or one_object_in_every_layout(unit)


def _choose_architecture(request: BisectRequest, ledger: Ledger, unit: Unit, judge: Judge) -> list[str]:
    """Of several device architectures, bisect the one that the device runs: its object decides the verdict.

    Returns what is to be told.
    """
    wanted = request.arch
    names = [job.arch for job in unit.recorded.jobs]
    if wanted:
        if wanted not in names:
            raise ToolchainError(f"no device compile for --arch {wanted}", hint="compiled for: " + ", ".join(names))
        unit.recorded.active = names.index(wanted)
        others = ", ".join(name for name in names if name != wanted)
        return [
            f"only the compile for {wanted} is limited; {others} keeps the flag and every pass. If the device runs "
            "that one, the program stays wrong at every limit: leave out --arch, and the one that runs is found"
        ]
    for index in range(len(unit.recorded.jobs)):
        outcome = ledger.compile(unit.job(0, index=index, label=f"{unit.tag} {names[index]} limit 0"))
        unit.recorded.active = index
        if outcome.object is not None and judge.run(outcome.object).verdict is Verdict.GOOD:
            return [f"bisecting the compile for {names[index]}: at limit 0 it alone turns the program GOOD"]
    unit.recorded.active = 0
    return [
        f"no single architecture of {', '.join(names)} turns the program GOOD at limit 0; bisecting {names[0]} "
        "(choose with --arch)"
    ]
