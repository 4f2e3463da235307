"""Machine passes: the code before and after the pass, and the first bad instruction in mixes of the two.

An instruction is named only when all of this holds on this very input: the pass is one whose correct
runs never made a wrong mix (`passes.mixes`); the code staged through llc is right without the pass (or
without the flag) and wrong with it; the empty mix is right and the full one wrong; and the finding is
confirmed from both sides, or all of several sufficient edits are found. Otherwise: diff and reason.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.console import number_of
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate.diff import bounded_diff
from mccprobe.explain.locate.ir_text import function_lines, readable_lines
from mccprobe.explain.locate.judge import BudgetEnded, ObjectJudge
from mccprobe.explain.locate.mir_mix import Hunk, HunkKind, Mixes
from mccprobe.explain.locate.mir_stage import StageFailed, Stages
from mccprobe.explain.locate.mir_text import MirFile, parse_mir
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import BisectReport, Culprit
from mccprobe.report.why_record import BadInstruction, Confirmed, StepState, Where
from mccprobe.search.mixes import MixResult, MixStatus, Parts, find_border, find_in_mixes
from mccprobe.targets import registry
from mccprobe.targets.llvm.counter import CC1
from mccprobe.targets.llvm.llvm_tools import find_tool
from mccprobe.targets.passes.mixes import mix_evidence

SWITCHED_OFF = CC1.spelled(0)  # in one stage: skips what this stage could skip
MOST_NAMED = 4  # instructions in one answer; more that hang together are no instruction but a rewriting
CONFIRM_RUNS = 2
_CONFIRMED = {MixStatus.BOTH_SIDES: Confirmed.BOTH_SIDES, MixStatus.ALL_TOGETHER: Confirmed.ALL_TOGETHER}


@dataclass
class _Staged:
    """A cut that holds on this input: right without, wrong with. what: how the good side was made."""

    cut: str
    what: str
    tail: tuple[str, ...]
    pre: Path
    good: Path
    bad: Path
    texts: tuple[MirFile, MirFile]
    lines: tuple[list[str], list[str]]  # of the function, for people


@dataclass
class _Answer:
    """What becomes the record, filled step by step."""

    reason: str = ""
    instruction: BadInstruction | None = None
    diff: str = ""
    reproducer: tuple[tuple[str, ...], ...] = ()
    verified: bool = False
    state: StepState = StepState.DONE
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def where_in_machine_pass(
    workspace: Workspace,
    report: BisectReport,
    culprit: Culprit,
    argument: str,
    *,
    kind: str,
    tell: Callable[[str], None],
    deadline: Deadline,
    folder: Path,
) -> Where:
    """Stage the code generator around the pass, show the difference, and search it where that is sound.

    kind: of the pass table; an IR pass of the code generator gets its diff and no search.
    """
    answer = _Answer()
    judge = ObjectJudge(workspace, report, deadline)
    stages: Stages | None = None
    try:
        stages = open_stages(workspace)
        tell(f"staging the code generator around {argument}")
        staged = _stage(stages, judge, culprit, argument, kind, answer, folder)
        if staged is not None:
            _describe(stages, staged, answer, folder)
            _search(stages, staged, judge, argument, kind, answer, culprit, tell)
    except StageFailed as error:
        answer.reason = str(error)
    except BudgetEnded:
        answer.state, answer.reason = StepState.BUDGET, "the time budget is spent"
    finally:
        if stages is not None:
            stages.forget_mixes()
    return Where(
        answer.state,
        "mir",
        answer.instruction,
        answer.reason,
        answer.diff,
        answer.reproducer,
        answer.verified,
        files=answer.files,
        builds=stages.builds if stages is not None else 0,
        notes=tuple(answer.notes),
    )


def open_stages(workspace: Workspace) -> Stages:
    """Raises StageFailed where this LLVM's own tools are not there."""
    source = workspace.unit.recorded
    compiler = source.jobs[source.active].argv[0]
    vendor = registry.target(workspace.request.toolchain.name).own_tools
    tools = [find_tool(name, compiler, elsewhere=not vendor) for name in ("llc", "opt")]
    missing = [tool for tool in tools if isinstance(tool, str)]
    if missing:
        text = f"the code generator cannot be staged: {missing[0]}"
        if vendor:
            text += (
                "; round trips through musaasm (disassemble, edit, assemble) would need that tool and a proof that "
                "they give the object back bit for bit, which no machine here could give"
            )
        raise StageFailed(text)
    llc, opt = tools
    assert not isinstance(llc, str) and not isinstance(opt, str)
    return Stages(workspace, llc, opt)


# -- the cut ---------------------------------------------------------------------------------------


def _stage(
    stages: Stages, judge: ObjectJudge, culprit: Culprit, argument: str, kind: str, answer: _Answer, folder: Path
) -> _Staged | None:
    """The first way to stage that passes the gate; without one, the diff of the last and the reason."""
    unit = stages.workspace.unit
    if stages.one_step() != unit.base[unit.recorded.active]:
        answer.notes.append("llc's object of the whole code generator differs from the compiler's own, byte for byte")
        if registry.target(stages.workspace.request.toolchain.name).own_tools:
            raise StageFailed("llc does not give mcc's own object, so what it shows says nothing about mcc")
    cut = stages.cut_point(culprit, argument)
    pre = stages.before(cut)
    bad = stages.through(cut, pre, stages.options, "as in the bad build")
    ways: list[tuple[str, Sequence[str]]] = [("switched off", [*stages.options, SWITCHED_OFF])]
    if stages.without_flags is not None:
        ways.insert(0, ("without the flags under examination", stages.without_flags))
    failed = []
    for what, options in ways:
        good = stages.through(cut, pre, options, what)
        texts = _texts(culprit, good, bad)
        one, other = (_lines(text, culprit.symbol or "", kind) for text in texts)
        if one == other:
            failed.append(f"{what}: the function is the same")
            continue
        for tail in ((), (SWITCHED_OFF,)):
            staged = _Staged(cut, what, tail, pre, good, bad, texts, (one, other))
            verdicts = [
                judge.verdict(stages.rest(stages.rest_job(cut, side, tail, f"rest of {name}")).object, CONFIRM_RUNS)
                for side, name in ((good, f"staged good, {what}"), (bad, "staged bad"))
            ]
            if verdicts == [Verdict.GOOD, Verdict.BAD]:
                return staged
            later = "with" if not tail else "without"
            failed.append(f"{what}, {later} what later passes do: {verdicts[0]} before, {verdicts[1]} after")
        answer.diff = bounded_diff(one, other, folder / "diff.txt", names=(f"before {cut}", f"after {cut}"))
        answer.files["diff.txt"] = str(folder / "diff.txt")
        if kind == "machine" and texts[0].blocks == texts[1].blocks:
            failed.append("the pass changed no instruction of this function, only what its header says")
    answer.reason = (
        f"not reproduced in stages around {cut} ({'; '.join(failed)}): the code before the pass must be GOOD and "
        "the code after it BAD"
    )
    return None


def _texts(culprit: Culprit, good: Path, bad: Path) -> tuple[MirFile, MirFile]:
    """Both texts of the function. Raises StageFailed."""
    sides = [parse_mir(path.read_text("utf-8", "surrogateescape"), culprit.symbol or "") for path in (good, bad)]
    one, other = sides
    if one is None or other is None:
        raise StageFailed(f"the machine code holds no function {culprit.symbol}")
    return one, other


def _lines(text: MirFile, symbol: str, kind: str) -> list[str]:
    """The function for people: its machine code, or its IR, which a MIR file holds in front of it."""
    if kind == "machine":
        return text.lines()
    module = textwrap.dedent(text.before.partition("--- |\n")[2].partition("\n...\n")[0])
    return readable_lines(module, function_lines(module, symbol))


def _describe(stages: Stages, staged: _Staged, answer: _Answer, folder: Path) -> None:
    """Files, diff, and the command line that turns right into wrong."""
    paths = {name: folder / f"{name}.mir" for name in ("before", "good", "bad")}
    for path, source in zip(paths.values(), (staged.pre, staged.good, staged.bad), strict=True):
        shutil.copyfile(source, path)
        answer.files[path.name] = str(path)
    answer.diff = bounded_diff(
        *staged.lines,
        folder / "diff.txt",
        names=(f"{staged.cut} {staged.what}", f"{staged.cut} as in the bad build"),
    )
    answer.files["diff.txt"] = str(folder / "diff.txt")
    cut = (f"-start-before={staged.cut}", f"-stop-after={staged.cut}")
    rest = (f"-start-after={staged.cut}",)
    options = [*stages.options, *staged.tail]
    lines = [
        stages.llc_argv(paths["before"], stages.options, *cut, output=str(paths["bad"])),
        stages.llc_argv(paths["good"], options, *rest, output=str(folder / "good.o")),
        stages.llc_argv(paths["bad"], options, *rest, output=str(folder / "bad.o")),
    ]
    answer.reproducer, answer.verified = tuple(map(tuple, lines)), True
    answer.notes.append(f"good side: the pass {staged.what}; staged, it is GOOD, and the code after the pass BAD")


# -- the search ------------------------------------------------------------------------------------


def _search(
    stages: Stages,
    staged: _Staged,
    judge: ObjectJudge,
    argument: str,
    kind: str,
    answer: _Answer,
    culprit: Culprit,
    tell: Callable[[str], None],
) -> None:
    """Fill in the instruction, or the reason why none is named."""
    if kind != "machine":
        answer.reason = f"{argument} rewrites IR: function and diff are shown, an instruction is not searched for"
        return
    evidence = mix_evidence().get(argument)
    if evidence is None:
        answer.reason = f"mixes of a correct {argument} were never measured, so a search in them could accuse falsely"
        return
    if not evidence.searched:
        answer.reason = (
            f"a search in mixes accuses a correct {argument} falsely or cannot be made ({evidence.wrong} of "
            f"{evidence.right + evidence.wrong} mixes wrong; {evidence.evidence})"
        )
        return
    mixes = Mixes(*staged.texts)
    if mixes.refusal:
        answer.reason = f"no instruction is searched for: {mixes.refusal}"
        return
    tell(f"searching {number_of(len(mixes.units), 'difference')} for the first bad instruction")
    search = _MixSearch(stages, staged, judge, mixes)
    result = find_in_mixes(len(mixes.units), search.verdict, ahead=search.ahead)
    answer.notes.append(
        f"{number_of(len(mixes.hunks), 'difference')} in {number_of(len(mixes.units), 'unit')}; "
        f"{number_of(result.tests, 'mix', 'mixes')} judged, {result.unresolved} of them could not be; "
        f"correct {argument}: {number_of(evidence.right, 'mix', 'mixes')} right, {evidence.wrong} wrong"
    )
    if result.status not in _CONFIRMED:
        answer.reason = f"no instruction is confirmed: {result.reason}"
        if result.status is MixStatus.BUDGET:
            answer.state = StepState.BUDGET
        return
    if not search.confirms(result):
        answer.reason = "no instruction is confirmed: a mix came out otherwise when it was run again"
        return
    answer.instruction, answer.reason = _name(search, result, culprit)


def _name(search: _MixSearch, result: MixResult, culprit: Culprit) -> tuple[BadInstruction | None, str]:
    """The confirmed instruction, or why it cannot be one."""
    mixes = search.mixes
    several = result.status is MixStatus.ALL_TOGETHER
    chosen = result.sets[0] if not several else min(result.sets, key=min)
    hunks = [hunk for unit in sorted(chosen) for hunk in mixes.units[unit]]
    kinds = {hunk.kind for hunk in hunks}
    if several and not all(_is_one_edit(mixes, unit) for found in result.sets for unit in found):
        return None, f"{len(result.sets)} differences are each enough, and not all of them are edits in place"
    if kinds == {HunkKind.ORDER} and len(hunks) == 1:
        return _name_swap(search, min(chosen), hunks[0].block, culprit)
    if kinds & {HunkKind.ORDER, HunkKind.WHOLE}:
        return None, "an order and other edits are only wrong together, so no instruction is named"
    if len(hunks) > MOST_NAMED:
        return None, f"{len(hunks)} edits hang together; the guilty one among them cannot be told"
    instruction = BadInstruction(
        before=_joined(hunk.good for hunk in hunks),
        after=_joined(hunk.bad for hunk in hunks),
        function=culprit.function or culprit.symbol or "",
        block=mixes.label(hunks[0].block),
        confirmed=_CONFIRMED[result.status],
        sufficient=len(result.sets),
    )
    return instruction, ""


def _is_one_edit(mixes: Mixes, unit: int) -> bool:
    hunks: Sequence[Hunk] = mixes.units[unit]
    return len(hunks) == 1 and hunks[0].kind is HunkKind.EDIT


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(text.strip() for text in texts if text)


def _name_swap(search: _MixSearch, unit: int, block: int, culprit: Culprit) -> tuple[BadInstruction | None, str]:
    """The pair whose order is wrong, found on the path of swaps and confirmed from both sides."""
    mixes = search.mixes
    path = mixes.swap_path(block)
    border = find_border(path.length, lambda stop: search.ordered(frozenset(), {block: path.order(stop)}))
    if border.bad is None:
        return None, "the order of a block is at fault; on the way from the good to the bad one, stops cannot be built"
    first, second = path.swapped(border.bad)
    alone = search.ordered(frozenset(), {block: path.good_with(first, second)}, CONFIRM_RUNS)
    every = frozenset(range(len(mixes.units)))
    without = search.ordered(every, {block: path.bad_without(first, second)}, CONFIRM_RUNS)
    texts = [mixes.instruction(block, index) for index in (first, second)]
    if (alone, without) != (Verdict.BAD, Verdict.GOOD):
        return None, (
            f"the order of block {mixes.label(block)} is at fault, but no single pair is confirmed: the good order "
            f"with `{texts[1]}` before `{texts[0]}` is {alone}, the bad order without that {without}"
        )
    instruction = BadInstruction(
        before="\n".join(texts),
        after="\n".join(reversed(texts)),
        function=culprit.function or culprit.symbol or "",
        block=mixes.label(block),
        confirmed=Confirmed.BOTH_SIDES,
    )
    return instruction, ""


class _MixSearch:
    """Builds and judges mixes."""

    def __init__(self, stages: Stages, staged: _Staged, judge: ObjectJudge, mixes: Mixes) -> None:
        self.stages = stages
        self.staged = staged
        self.judge = judge
        self.mixes = mixes

    def verdict(self, units: Parts) -> Verdict:
        """Of the mix with these units from bad."""
        return self.ordered(units, None)

    def confirms(self, result: MixResult) -> bool:
        """The mixes on which the answer rests, run once more."""
        every, guilty = frozenset(range(len(self.mixes.units))), frozenset[int]().union(*result.sets)
        sides = [(frozenset[int](), Verdict.GOOD), (every, Verdict.BAD), (every - guilty, Verdict.GOOD)]
        sides += [(found, Verdict.BAD) for found in result.sets[:1]]
        return all(self.ordered(units, None, CONFIRM_RUNS) is wanted for units, wanted in sides)

    def ordered(self, units: Parts, orders: Mapping[int, Sequence[int]] | None, runs: int = 1) -> Verdict:
        """Of a mix with these orders of blocks."""
        self.judge.require_time()
        text = self.mixes.text(units, orders)
        return self.judge.verdict(self.stages.mix_object(self.staged.cut, text, self.staged.tail), runs)

    def ahead(self, mixes: Sequence[Parts]) -> None:
        """Start their compiles in the background."""
        for units in mixes:
            self.stages.start_mix(self.staged.cut, self.mixes.text(units), self.staged.tail)
