"""IR passes: the function before and after the culprit, and one `opt` line that alone turns right into wrong.

No instruction is named: edits of SSA and control flow hang together, and half of a right transformation
is as wrong as a fault. The IR comes from compiles at the two limits; with names for all values, so
that both prints number alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.ir_change import changed_functions
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import OUTPUT, CompileJob, CompileOutcome
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate.diff import bounded_diff
from mccprobe.explain.locate.ir_pipeline import single_pass_texts
from mccprobe.explain.locate.ir_text import function_lines, readable_lines
from mccprobe.explain.locate.judge import BudgetEnded, ObjectJudge
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import BisectReport, Culprit
from mccprobe.report.why_record import StepState, Where
from mccprobe.targets import registry
from mccprobe.targets.flags.levels import code_generator_level, levels_in
from mccprobe.targets.llvm.llvm_tools import LlvmTool, find_tool, llvm_options, plugins

MOST_FUNCTIONS = 3  # shown of a pass that changed more than one
CONFIRM_RUNS = 2
PLAIN = "the code generator at -O0"
SKIPPING = "the build's own code generator, which skips all it can"
OWN = "the build's own code generator"
NOT_PLAIN = "; the one at -O0 does not tell them apart, so a later step may be the guilty one"
NO_INSTRUCTION = (
    "an IR pass gets its function and diff: edits of SSA and control flow hang together, and a part of a right "
    "transformation is as wrong as a fault"
)


@dataclass(frozen=True)
class _Back:
    """A code generator for IR texts. make: path -> compile; told: how it is called in a sentence."""

    make: Callable[[Path, str], CompileJob | None]
    told: str


def where_in_ir_pass(
    workspace: Workspace,
    report: BisectReport,
    culprit: Culprit,
    *,
    tell: Callable[[str], None],
    deadline: Deadline,
    folder: Path,
) -> Where:
    """The diff and the single-pass reproducer. Raises nothing for what cannot be had: it is told."""
    work = _Work(workspace, report, culprit, deadline, folder)
    state = StepState.DONE
    try:
        tell(f"the IR before and after {culprit.title}")
        work.look(tell)
    except BudgetEnded:
        state = StepState.BUDGET
        work.notes.append("the time budget is spent; what is not told was not tried")
    return Where(
        state,
        "ir",
        None,
        NO_INSTRUCTION,
        work.diff,
        tuple(map(tuple, work.reproducer)),
        bool(work.reproducer),
        files=work.files,
        builds=work.builds,
        notes=tuple(work.notes),
    )


class _Work:
    """One culprit's IR. sides: the texts before and after, as files of the run."""

    def __init__(
        self, workspace: Workspace, report: BisectReport, culprit: Culprit, deadline: Deadline, folder: Path
    ) -> None:
        self.workspace = workspace
        self.unit = workspace.unit
        self.culprit = culprit
        self.folder = folder
        self.judge = ObjectJudge(workspace, report, deadline)
        source = self.unit.recorded
        self.cc1 = source.jobs[source.active].argv
        elsewhere = not registry.target(workspace.request.toolchain.name).own_tools
        self.opt = find_tool("opt", self.cc1[0], elsewhere=elsewhere)
        self.sides: list[Path] = []
        self.shown: list[str] = []  # functions in the diff
        self.also: list[str] = []  # further functions that changed
        self.diff = ""
        self.reproducer: list[list[str]] = []
        self.files: dict[str, str] = {}
        self.notes: list[str] = []
        self.builds = 0

    def compile(self, job: CompileJob) -> CompileOutcome:
        """Compile, counted."""
        self.judge.require_time()
        self.builds += 1
        return self.unit.ledger.compile(job)

    def _path(self, outcome: CompileOutcome) -> Path | None:
        return self.unit.ledger.run.object_path(outcome.object) if outcome.object else None

    def _show(self, path: Path, name: str) -> Path:
        """A copy for the user; compiles read the file of the run, whose name is its content."""
        shown = self.folder / name
        shutil.copyfile(path, shown)
        self.files[name] = str(shown)
        return shown

    # -- the diff ----------------------------------------------------------------------------------

    def print_both(self, *, named: bool) -> bool:
        """IR at the limits before and at the culprit, into `sides`, files and the diff. False if it cannot be had."""
        bitcode = self._named_bitcode() if named else None
        texts = self._at_limits(bitcode) if bitcode is not None or not named else None
        if texts is None:
            return False
        self.sides = texts
        for name, path in zip(("before.ll", "after.ll"), texts, strict=True):
            self._show(path, name)
        modules = [path.read_text("utf-8", "replace") for path in self.sides]
        changed = changed_functions(*modules)
        own = self.culprit.symbol
        self.shown = [own] if own and (own in changed or not changed) else changed[:MOST_FUNCTIONS]
        self.also = [name for name in changed if name not in self.shown]
        # metadata is shown where nothing else differs
        for simplify in (readable_lines, lambda _, lines: list(lines)):
            one, other = (
                [line for name in self.shown for line in simplify(module, function_lines(module, name))]
                for module in modules
            )
            self.diff = bounded_diff(one, other, self.folder / "diff.txt", names=self._labels())
            if self.diff:
                self.files["diff.txt"] = str(self.folder / "diff.txt")
                break
        return True

    def _labels(self) -> tuple[str, str]:
        title, number = self.culprit.title, self.culprit.execution
        return f"before {title} ({number})", f"after {title} ({number})"

    def _named_bitcode(self) -> Path | None:
        """The source as the front end gives it, every value named; None where that cannot be had."""
        source = self.unit.recorded
        if isinstance(self.opt, str):
            return None
        argv = _keeping_names(source.counter.front_end(source.jobs[source.active], OUTPUT))
        template = source.template()
        front = self._path(
            self.compile(replace(template, argv=(*source.prefix, *argv), suffix=".bc", label="front end, with names"))
        )
        if front is None:
            return None
        argv = (*source.prefix, str(self.opt.path), "-passes=instnamer", str(front), "-o", OUTPUT)
        return self._path(self.compile(replace(template, argv=argv, suffix=".bc", label="values named")))

    def _at_limits(self, named: Path | None) -> list[Path] | None:
        """The IR at N-1 and N; None unless execution N is the culprit there as well."""
        source, number = self.unit.recorded, self.culprit.execution
        texts = []
        for limit in (number - 1, number):
            job = self.unit.job(limit, emit="-emit-llvm", label=f"{self.unit.tag} IR at {limit}")
            if named is not None:
                argv = source.counter.at_limit(
                    source.jobs[source.active],
                    str(named),
                    OUTPUT,
                    limit=limit,
                    options=self.unit.options,
                    emit="-emit-llvm",
                    bitcode=True,
                )
                job = replace(job, argv=(*source.prefix, *_keeping_names(argv)), label=f"named IR at {limit}")
            outcome = self.compile(job)
            path = self._path(outcome)
            if path is None:
                return None
            texts.append(path)
        at = outcome.log.at
        return texts if at is not None and at.name == self.culprit.title else None

    # -- one pass alone ------------------------------------------------------------------------------

    def look(self, tell: Callable[[str], None]) -> None:
        """Diff and reproducer: with named values where that keeps the fault, else as the compiler prints it."""
        back: _Back | None = None
        printed = False
        for named in (True, False):
            if self.print_both(named=named):
                printed = True
                back = next((back for back in self._back_ends() if self._tells_apart(back)), None)
                if back is not None:
                    break
        if not printed:
            self.notes.append("the IR at the two limits cannot be printed")
            return
        if not self.diff:
            self.notes.append("the function's text is the same before and after; what changed lies outside of it")
        if self.also:
            told = ", ".join(self.also[:MOST_FUNCTIONS])
            self.notes.append(f"changed as well: {told} ({len(self.also)} functions in all)")
        if back is None:
            self.notes.append(
                "no single-pass reproducer: with no code generator tried (at -O0, the build's own in full, the same "
                "skipping all it can) is the IR before the pass GOOD and the IR after it BAD"
            )
            return
        caveat = "" if back.told == PLAIN else NOT_PLAIN
        self.notes.append(f"the IR before the pass is GOOD and the IR after it BAD with {back.told}{caveat}")
        self._reproduce(back, tell)

    def _reproduce(self, back: _Back, tell: Callable[[str], None]) -> None:
        """An opt line that leads from the IR before to a BAD program."""
        missing = self.opt if isinstance(self.opt, str) else ""
        if not self.culprit.argument:
            missing = f"{self.culprit.title} has no known -passes= name"
        if missing or isinstance(self.opt, str) or not self.culprit.argument:
            self.notes.append(f"no single-pass reproducer: {missing}")
            return
        tell(f"{self.culprit.argument} alone, through opt")
        listing = _ask(self.opt, "-print-passes")
        candidates = single_pass_texts(self.culprit.argument, self._pipeline(self.opt), listing)
        for passes in candidates:
            if self._alone(self.opt, passes, back):
                return
        tried = "; ".join(candidates) or "its level is not in opt's list"
        self.notes.append(f"no single-pass reproducer: from the IR before it, no opt line gives a BAD program: {tried}")

    def _alone(self, opt: LlvmTool, passes: str, back: _Back) -> bool:
        before = self.sides[0]
        options = [*plugins(self.cc1), *llvm_options(self.cc1), *self.unit.options]
        variants = [options, plugins(self.cc1)] if options != plugins(self.cc1) else [options]
        for given in variants:  # opt need not know every option of the compiler
            argv = [str(opt.path), *given, f"-passes={passes}", "-S"]
            source = self.unit.recorded
            job = replace(
                source.template(),
                argv=(*source.prefix, *argv, str(before), "-o", OUTPUT),
                suffix=".ll",
                label=f"opt -passes={passes}",
            )
            after = self._path(self.compile(job))
            if after is None:
                continue
            made = back.make(after, "IR after opt")
            if made is None or self.judge.verdict(self.compile(made).object, CONFIRM_RUNS) is not Verdict.BAD:
                return False
            shown = [self.folder / "before.ll", self._show(after, "opt.ll")]
            self.reproducer = [[*argv, str(shown[0]), "-o", str(shown[1])]]
            for path, name in zip(shown, ("before.o", "opt.o"), strict=True):
                build = back.make(path, "")
                plain = build.argv[len(source.prefix) :] if build else ()
                self.reproducer.append([part.replace(OUTPUT, str(self.folder / name)) for part in plain])
            return True
        return False

    def _back_ends(self) -> Sequence[_Back]:
        """-O0 first: it believes least of what a pass deduced."""
        source = self.unit.recorded

        def own(path: Path, label: str, limit: int | None = None) -> CompileJob:
            argv = source.counter.at_limit(
                source.jobs[source.active], str(path), OUTPUT, limit=limit, options=self.unit.options, bitcode=True
            )
            return replace(source.template(), argv=(*source.prefix, *source.counter.code_generator(argv)), label=label)

        return (
            _Back(self.unit.plain_back_end_job, PLAIN),
            _Back(lambda path, label: own(path, label, 0), SKIPPING),
            _Back(own, OWN),
        )

    def _tells_apart(self, back: _Back) -> bool:
        jobs = [back.make(path, "IR of one side, code generator alone") for path in self.sides]
        verdicts = [
            self.judge.verdict(self.compile(job).object, CONFIRM_RUNS) if job is not None else Verdict.UNRESOLVED
            for job in jobs
        ]
        return verdicts == [Verdict.GOOD, Verdict.BAD]

    def _pipeline(self, opt: LlvmTool) -> str:
        """The compiler's pipeline as opt prints it; with the build's options where opt takes them."""
        last = (levels_in(self.cc1) or ["-O0"])[-1]  # -Os and -Oz have pipelines of their own
        level = last.lstrip("-") if last in ("-Os", "-Oz") else f"O{code_generator_level(self.cc1)}"
        given = [*plugins(self.cc1), *llvm_options(self.cc1), *self.unit.options]
        with self.unit.ledger.run.scratch("pipeline") as scratch:
            empty = scratch / "empty.ll"
            empty.write_text("define void @f() {\n  ret void\n}\n")
            for options in (given, []):
                text = _ask(
                    opt,
                    *options,
                    f"-passes=default<{level}>",
                    "-print-pipeline-passes",
                    "-disable-output",
                    str(empty),
                )
                if text:
                    return text
        return ""


def _keeping_names(argv: Sequence[str]) -> tuple[str, ...]:
    return tuple(argument for argument in argv if argument != "-discard-value-names")


def _ask(tool: LlvmTool, *arguments: str) -> str:
    result = run(RunSpec([str(tool.path), *arguments], timeout_s=60.0))
    return result.stdout_text if result.ok else ""
