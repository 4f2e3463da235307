"""FOUND or EXPOSED: what may be said of the pass execution at which GOOD turns into BAD.

N-1 good and N bad is only "first bad prefix". It is FOUND when the pass itself is confirmed:
  - an IR pass whose execution N changed instructions, with right IR before it and wrong IR after it as
    another code generator (-O0) sees them, and the IR before it right with every other code generator asked, or
  - an option that switches this pass off, and nothing else, turns the whole bad build GOOD (and
    the machine code was still valid before the pass, and the IR before the code generator is not BAD at -O0).
Everything else is EXPOSED: instruction selection (it is never absent; a skipped one only takes
another path), passes that changed only attributes or metadata, schedulers and others that no
switch confirms. A later step that no limit can skip may then be the guilty one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mccprobe.base.process import TIMED_OUT
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.determinism import repeated_job
from mccprobe.bisection.passes.ir_change import IrChange, changed_functions, changed_lines, compare_ir
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.second_opinion import contradiction, opinions, optimised_ir_is_wrong
from mccprobe.build.job import CompileJob
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import Confirmation, Culprit, Status
from mccprobe.targets.llvm.locate import demangle
from mccprobe.targets.passes.table import PassInfo, PassTable, guess_kind
from mccprobe.targets.protocol import LogSummary

OPTION_REPEATS = 2  # runs of a build with a neutralising option before it counts as GOOD
_INVALID_MIR = "Bad machine code"  # first words of the machine verifier's complaint
_NO_SECOND = (
    "this build generates code at -O0 already, so there is no second code generator that could confirm it: the fault "
    "may lie in the code generator, which no limit can skip"
)
_CHANGED = "this execution changed instructions of the IR"
_UNKNOWN_OPTION = "Unknown command line argument"  # llvm/lib/Support/CommandLine.cpp


@dataclass
class Judgement:
    """Status, culprit and the reasons, filled step by step."""

    status: Status
    culprit: Culprit
    confirmation: Confirmation
    log: LogSummary
    notes: list[str] = field(default_factory=list)
    neutraliser: str = ""
    neutralised_object: str = ""
    neutralised: Outcome | None = None


def identify(unit: Unit, limit: int, total: int, table: PassTable) -> tuple[Culprit, LogSummary, PassInfo | None]:
    """Name pass and function of execution `limit`, from the log of the compile with that very limit."""
    log = unit.ledger.compile(repeated_job(unit, limit, 1)).log  # compiled anyway, to compare
    title = log.at.name if log.at else "unknown pass"
    info = table.find(title)
    symbol = log.function or None
    culprit = Culprit(
        title=title,
        argument=(info.argument or None) if info else None,
        function=demangle(symbol) if symbol else None,
        symbol=symbol,
        function_from=log.function_from or None,
        execution=limit,
        total=total,
    )
    return culprit, log, info


def judge_edge(
    unit: Unit,
    axis: PassAxis,
    judge: Judge,
    good: int,
    bad: int,
    table: PassTable,
    *,
    verify_reference: Callable[[], bool],
) -> Judgement:
    """Decide what may be said of the edge good -> bad (bad == good + 1 unless limits between are unresolved).

    verify_reference: True if the machine verifier already complains about the reference build.
    """
    culprit, log, info = identify(unit, bad, axis.total, table)
    kind = info.kind if info else guess_kind(culprit.title)
    judgement = Judgement(Status.EXPOSED, culprit, Confirmation("none", ""), log)
    if bad != good + 1:
        judgement.confirmation = Confirmation(
            "none",
            f"limits {good + 1} to {bad - 1} cannot be judged; the change lies in one of executions "
            f"{good + 1} to {bad}",
        )
    elif kind == "ir" and unit.recorded.counter.has_ir and not axis.in_code_generator(bad):
        _judge_ir(judgement, unit, axis, judge, good, bad)
    elif kind == "isel":
        judgement.confirmation = Confirmation(
            "none",
            "instruction selection is never absent: at the limit before, it only took another path. The fault may "
            "be in it, in the IR that reaches it, or in a later step that no limit can skip",
        )
    else:
        _judge_codegen(judgement, unit, judge, info, verify_reference=verify_reference, bad=bad)
    return judgement


def _symptom(axis: PassAxis, judge: Judge, limit: int) -> str:
    """What the program does that has this limit's object."""
    key = axis.object_at(limit)
    outcome = judge.first.get(key) if isinstance(key, str) else None
    return outcome.reason if outcome is not None else ""


def _judge_ir(judgement: Judgement, unit: Unit, axis: PassAxis, judge: Judge, good: int, bad: int) -> None:
    texts, printed = [], []
    for limit in (good, bad):
        outcome = unit.ledger.compile(unit.job(limit, emit="-emit-llvm", label=f"{unit.tag} IR at {limit}"))
        if outcome.object is None:
            text = f"the IR at limit {limit} cannot be printed: {outcome.reason}"
            judgement.confirmation = Confirmation("none", text)
            return
        printed.append(unit.ledger.run.object_path(outcome.object))
        texts.append(printed[-1].read_text("utf-8", "replace"))
    change = compare_ir(*texts)
    if change is not IrChange.NOTHING:
        _correct_function(judgement, changed_functions(*texts))
    if change is IrChange.INSTRUCTIONS:
        symptom = _symptom(axis, judge, bad)
        _judge_with_plain_back_end(judgement, unit, judge, printed)
        if judgement.status is Status.FOUND:
            _ask_other_code_generators(judgement, unit, judge, good, symptom)
        judgement.notes += ["changed by this execution:", *(f"  {line}" for line in changed_lines(*texts))]
    elif change is IrChange.ATTRIBUTES:
        judgement.confirmation = Confirmation(
            "none",
            "this execution changed attributes or metadata only, no instruction: a later step that relies on them "
            "(or is enabled by them) makes the difference, and may be the guilty one",
        )
    else:
        judgement.confirmation = Confirmation(
            "none", "the printed IR is the same before and after; the pass changed what is not printed, or its analyses"
        )


def _judge_with_plain_back_end(judgement: Judgement, unit: Unit, judge: Judge, printed: list[Path]) -> None:
    """The IR before and after the pass through another code generator: is the IR itself what became wrong?

    A pass that makes right IR into right IR can still bring a fault of the code generator to light
    (register allocation under -enable-ipra), and one behind the guilty pass can bring that pass's
    wrong IR to light. Either way it must not be called found.
    """
    outcomes: list[Outcome | str] = []
    for path, side in zip(printed, ("before", "after"), strict=True):
        job = unit.plain_back_end_job(path, f"{unit.tag} IR {side}, code generator at -O0")
        if job is None:
            judgement.confirmation = Confirmation("none", f"{_CHANGED}, but {_NO_SECOND}")
            return
        compiled = unit.ledger.compile(job)
        outcomes.append(judge.run_briefly(compiled.object) if compiled.object else compiled.reason)
    judgement.status, judgement.confirmation = weigh_plain_back_end(*outcomes)


def _ask_other_code_generators(judgement: Judgement, unit: Unit, judge: Judge, good: int, symptom: str) -> None:
    """-O0 code generation can hide a fault that the IR before the pass holds already."""
    given = opinions(unit, judge, good)
    found = contradiction(given, symptom)
    if found is not None:
        judgement.status = Status.EXPOSED
        judgement.confirmation = Confirmation(
            "none",
            f"{_CHANGED}, but the IR before it is right at -O0 only: with {found.name} it is BAD "
            f"({found.outcome.reason}). The fault may be in that IR already, and the pass only copies it",
        )
        return
    judgement.notes += [
        f"the IR before the pass is BAD ({one.outcome.reason}) with {one.name}: another fault, or one in that IR"
        for one in given
        if one.outcome.verdict is Verdict.BAD
    ]


def weigh_plain_back_end(before: Outcome | str, after: Outcome | str) -> tuple[Status, Confirmation]:
    """What follows from the IR before and after the pass, each compiled by the second code generator.

    A text stands for a compile that gave no object, and says why. Without a verdict on both sides nothing is
    found, but for one case: a program that ended with the IR before and does not end with the IR after.
    """
    if isinstance(before, Outcome) and before.verdict is Verdict.BAD:
        return Status.EXPOSED, Confirmation(
            "none",
            f"the IR before this pass is not right either: compiled at -O0 it is BAD ({before.reason}). "
            "An earlier pass may be the guilty one",
        )
    if isinstance(after, Outcome) and after.verdict is Verdict.GOOD:
        return Status.EXPOSED, Confirmation(
            "none",
            "the IR after this pass is right when it is compiled at -O0: the pass changed instructions, but the fault "
            "may lie in the code generator, which no limit can skip",
        )
    right_before = isinstance(before, Outcome) and before.verdict is Verdict.GOOD
    hangs = isinstance(after, Outcome) and after.reason.startswith(TIMED_OUT)
    if right_before and isinstance(after, Outcome) and (after.verdict is Verdict.BAD or hangs):
        told = "BAD" if after.verdict is Verdict.BAD else "without an end"
        return Status.FOUND, Confirmation(
            "ir-changed", f"{_CHANGED}; compiled at -O0, the IR before it is GOOD and the IR after it {told}"
        )
    side, outcome = ("after", after) if right_before else ("before", before)
    why = outcome if isinstance(outcome, str) else f"{outcome.verdict}, {outcome.reason}"
    return Status.EXPOSED, Confirmation(
        "none",
        f"{_CHANGED}, but a second code generator (-O0) gives no verdict on the IR {side} it ({why}): the fault "
        "may lie in the code generator, which no limit can skip",
    )


def _correct_function(judgement: Judgement, changed: list[str]) -> None:
    """The log names no function for a module or loop pass; where one function alone changed, it is that one."""
    culprit = judgement.culprit
    if culprit.function_from == "log" or len(changed) != 1 or changed[0] == culprit.symbol:
        return
    judgement.culprit = replace(culprit, symbol=changed[0], function=demangle(changed[0]), function_from="inferred")


def _judge_codegen(
    judgement: Judgement,
    unit: Unit,
    judge: Judge,
    info: PassInfo | None,
    *,
    verify_reference: Callable[[], bool],
    bad: int,
) -> None:
    options = info.neutralisers if info else ()
    # the two compiles that are nearly always needed go side by side
    verify = (verify_job(unit, bad - 1),) if unit.recorded.counter.verify else ()
    for job in (*verify, *(neutralised_job(unit, option) for option in options[:1])):
        unit.ledger.submit(job)
    invalid = invalid_before(unit, bad - 1)
    if invalid and not verify_reference():
        judgement.confirmation = Confirmation(
            "none",
            f"the machine code is invalid before this pass already ({invalid}); the pass only brings it to light",
        )
        option = unit.recorded.counter.verify
        judgement.notes.append(f"compile with -mllvm {option} to see where the machine code first becomes invalid")
        return
    tried = []
    for option in options:
        outcome = unit.ledger.compile(neutralised_job(unit, option))
        if outcome.object is None:
            refused = _UNKNOWN_OPTION in outcome.diagnostics
            tried.append(f"{option} ({'refused by this compiler' if refused else outcome.reason})")
            continue
        runs = [judge.run(outcome.object) for _ in range(OPTION_REPEATS)]
        if all(run.verdict is Verdict.GOOD for run in runs):
            wrong = optimised_ir_is_wrong(unit, judge)
            if wrong is not None:
                judgement.confirmation = Confirmation(
                    "none",
                    f"with {option}, which switches off this pass alone, the whole bad build is GOOD, but the IR that "
                    f"reaches the code generator is wrong already: with {wrong.name} it is BAD "
                    f"({wrong.outcome.reason}). An earlier pass may be the guilty one",
                )
                return
            judgement.status = Status.FOUND
            judgement.neutraliser, judgement.neutralised_object = option, outcome.object
            judgement.neutralised = runs[0]
            judgement.confirmation = Confirmation(
                "option", f"with {option}, which switches off this pass alone, the whole bad build is GOOD", option
            )
            return
        tried.append(f"{option} ({runs[-1].verdict.value})")
    why = "tried: " + ", ".join(tried) if tried else "no option is known that switches off this pass alone"
    judgement.confirmation = Confirmation(
        "none", f"no switch confirms this pass ({why}); a later step that no limit can skip may be the guilty one"
    )


def neutralised_job(unit: Unit, option: str) -> CompileJob:
    """The whole build with an option that switches one pass off."""
    return unit.job(UNLIMITED, options=[option], label=f"{unit.tag} with {option}")


def verify_job(unit: Unit, limit: int) -> CompileJob:
    """The compile at one limit with the machine verifier on."""
    return unit.job(limit, options=[unit.recorded.counter.verify], label=f"{unit.tag} verified at {limit}")


def invalid_before(unit: Unit, limit: int) -> str:
    """The first complaint of the machine verifier at a limit, "" if there is none, or no verifier."""
    if not unit.recorded.counter.verify:
        return ""
    outcome = unit.ledger.compile(verify_job(unit, limit))
    if outcome.object is not None:
        return ""
    # its text can lie behind the dump of a large function, which is cut: the failure alone forbids "found"
    return verifier_complaint(outcome.diagnostics) or f"the compile with the machine verifier fails: {outcome.reason}"


def verifier_complaint(diagnostics: str) -> str:
    """ "Bad machine code: ..." with the step after which it appeared, "" if the verifier said nothing."""
    lines = diagnostics.splitlines()
    for index, line in enumerate(lines):
        if _INVALID_MIR in line:
            after = next((text.strip("# ") for text in reversed(lines[:index]) if text.startswith("# After")), "")
            text = line.strip("* ").rstrip(" *")
            return f"{text}, {after[0].lower() + after[1:]}" if after else text
    return ""
