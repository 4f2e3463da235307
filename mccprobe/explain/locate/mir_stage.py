"""The code generator in three stages through llc: up to a pass, the pass alone, what follows it.

    optimised bitcode --names--> named --stop before P--> pre --P--> good or bad MIR --rest--> object

Measured on clang 14 (x86-64, 67 cut points): nearly all cuts give the one-step object byte for byte,
some give other bytes and the same result, a few crash. So nothing is believed of a cut but what its own
input shows: staged good is right and staged bad is wrong (`where_mir`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.executor import Urgency
from mccprobe.build.job import OUTPUT, CompileJob, CompileOutcome
from mccprobe.build.line_feed import LineFeed
from mccprobe.build.store import keep_object
from mccprobe.build.unit import UNLIMITED
from mccprobe.report.record import Culprit
from mccprobe.targets.llvm.counter import CC1
from mccprobe.targets.llvm.jobs import option_key
from mccprobe.targets.llvm.llvm_tools import LlvmTool, llc_arguments, llvm_options

_ARGUMENT = re.compile(r"(?<=\s)-([\w-]+)")


class StageFailed(Exception):
    """A stage gave nothing; the text says which and why."""


class Stages:
    """Stages of one build's code generator around one pass. builds: compiles asked for."""

    def __init__(self, workspace: Workspace, llc: LlvmTool, opt: LlvmTool) -> None:
        self.workspace = workspace
        self.ledger = workspace.ledger
        self.llc = llc
        self.opt = opt
        self.builds = 0
        source = workspace.unit.recorded
        cc1 = source.jobs[source.active].argv
        self._template = source.template()
        self._prefix = source.prefix
        self._triple = cc1[cc1.index("-triple") + 1] if "-triple" in cc1 else ""
        self._arguments = llc_arguments(cc1, llc)
        own = {option_key(option) for option in workspace.unit.options}
        self._shared = [option for option in llvm_options(cc1) if option_key(option) not in own]
        self.options = [*self._shared, *workspace.unit.options]
        self.mid_end = 0
        self._mixes: set[Path] = set()
        self._kept: set[Path] = set()  # results of stages, which may have the text of a mix
        self.named = self._named_bitcode()

    # -- compiles --------------------------------------------------------------------------------

    def _job(self, argv: Sequence[str], label: str, suffix: str) -> CompileJob:
        return replace(self._template, argv=(*self._prefix, *argv), suffix=suffix, label=label)

    def _compile(self, job: CompileJob) -> CompileOutcome:
        self.builds += 1
        return self.ledger.compile(job)

    def _require(self, job: CompileJob) -> Path:
        outcome = self._compile(job)
        if outcome.object is None:
            lines = [line for line in outcome.diagnostics.splitlines() if line.strip()]
            raise StageFailed(f"{job.label}: {outcome.reason}" + (f": {lines[0][:200]}" if lines else ""))
        path = self.ledger.run.object_path(outcome.object)
        self._kept.add(path)
        return path

    def keep(self, text: str) -> Path:
        """A text as a file of the run, under its hash."""
        with self.ledger.run.scratch("text") as scratch:
            file = scratch / "text"
            file.write_text(text, "utf-8", errors="surrogateescape")
            return self.ledger.run.object_path(keep_object(file, self.ledger.run.objects))

    def _named_bitcode(self) -> Path:
        """What reaches the code generator, with a name for each value.

        In MIR, stack objects are tied to allocas by name; without one they lose the tie and llc crashes.
        """
        unit = self.workspace.unit
        job = replace(unit.job(UNLIMITED, emit="-emit-llvm-bc"), suffix=".bc", label=f"{unit.tag} optimised bitcode")
        outcome = self._compile(job)
        if outcome.object is None:
            raise StageFailed(f"the optimised bitcode: {outcome.reason}")
        self.mid_end = outcome.log.total
        bitcode = str(self.ledger.run.object_path(outcome.object))
        return self._require(
            self._job([str(self.opt.path), "-passes=instnamer", bitcode, "-o", OUTPUT], "values named", ".bc")
        )

    def llc_argv(self, source: Path | str, options: Sequence[str], *stages: str, output: str = OUTPUT) -> list[str]:
        """One llc command line; stages are its -stop and -start options."""
        language = [] if str(source) == str(self.named) else ["-x", "mir"]
        kind = ["-filetype=obj"] if not any(stage.startswith("-stop") for stage in stages) else []
        return [str(self.llc.path), *self._arguments, *options, *stages, *kind, *language, str(source), "-o", output]

    def one_step(self) -> str | None:
        """llc's object of the whole code generator; None if it gives none."""
        return self._compile(self._job(self.llc_argv(self.named, self.options), "llc in one step", ".o")).object

    def before(self, cut: str) -> Path:
        """The code as the pass gets it. Good and bad are both printed behind it: a second print can differ."""
        argv = self.llc_argv(self.named, self.options, f"-stop-before={cut}")
        return self._require(self._job(argv, f"stopped before {cut}", ".mir"))

    def through(self, cut: str, pre: Path, options: Sequence[str], what: str) -> Path:
        """The pass alone on `pre`."""
        argv = self.llc_argv(pre, options, f"-start-before={cut}", f"-stop-after={cut}")
        return self._require(self._job(argv, f"{cut} alone, {what}", ".mir"))

    def rest_job(self, cut: str, source: Path, tail: Sequence[str], label: str) -> CompileJob:
        """What follows the pass, to an object. tail: further options for it."""
        return self._job(self.llc_argv(source, [*self.options, *tail], f"-start-after={cut}"), label, ".o")

    def rest(self, job: CompileJob) -> CompileOutcome:
        """Compile the rest now."""
        return self._compile(job)

    def mix_object(self, cut: str, text: str, tail: Sequence[str]) -> str | None:
        """The object of a mixed text; None if it is refused (the parser verifies it) or crashes."""
        return self.rest(self._mix_job(cut, text, tail)).object

    def start_mix(self, cut: str, text: str, tail: Sequence[str]) -> None:
        """Compile a mixed text in the background."""
        self.ledger.submit(self._mix_job(cut, text, tail), urgency=Urgency.AHEAD)

    def _mix_job(self, cut: str, text: str, tail: Sequence[str]) -> CompileJob:
        path = self.keep(text)
        if path not in self._kept:
            self._mixes.add(path)
        return self.rest_job(cut, path, tail, "mix")

    def forget_mixes(self) -> None:
        """Remove the texts of mixes: megabytes each, and the journal has what they gave."""
        for path in self._mixes:
            path.unlink(missing_ok=True)
        self._mixes.clear()

    # -- which pass ------------------------------------------------------------------------------

    @property
    def without_flags(self) -> list[str] | None:
        """The LLVM options less the flags under examination; None where the reference differs otherwise."""
        return self._shared if self.workspace.unit.options and self.workspace.request.shares_source else None

    def cut_point(self, culprit: Culprit, argument: str) -> str:
        """`argument`, with its number where the pass runs more than once. Raises StageFailed."""
        in_pipeline = self._occurrences(argument)
        if in_pipeline == 0:
            raise StageFailed(f"llc's own pipeline has no pass {argument}")
        if in_pipeline == 1:
            return argument
        number = self._executions(culprit)
        if not 1 <= number <= in_pipeline:
            raise StageFailed(
                f"{argument} runs {in_pipeline} times, and llc's log does not tell which one execution "
                f"{culprit.execution} is"
            )
        return f"{argument},{number - 1}"

    def _occurrences(self, argument: str) -> int:
        """How often the code generator's pipeline runs the pass, from an empty module."""
        empty = self.keep(f'target triple = "{self._triple}"\n')
        options = [*self.options, "-debug-pass=Arguments", str(empty), "-o", "/dev/null"]
        result = run(RunSpec([str(self.llc.path), *self._arguments, *options], timeout_s=self._template.timeout_s))
        return _ARGUMENT.findall(result.stderr_text).count(argument)

    def _executions(self, culprit: Culprit) -> int:
        """Executions of this pass on this function up to the culprit, from llc's own log."""
        limit = culprit.execution - self.mid_end
        seen: list[tuple[int, str, str]] = []
        lines = LineFeed()

        def read(chunk: bytes) -> bytes:
            for line in lines.feed(chunk):
                execution = CC1.parse_line(line.decode("utf-8", "replace"))
                if execution is not None and execution.number <= limit:
                    seen.append((execution.number, execution.name, execution.function))
            return b""

        options = [*self.options, CC1.spelled(limit)]
        with self.ledger.run.scratch("log") as scratch:
            argv = self.llc_argv(self.named, options, output=str(scratch / "object"))
            run(RunSpec(argv, timeout_s=self._template.timeout_s, on_stderr=read))
        self.builds += 1
        named = (culprit.title, culprit.symbol)
        if not seen or seen[-1][0] != limit or seen[-1][1:] != named:
            return 0  # llc counts other executions than the compiler: its numbers say nothing here
        return sum(execution[1:] == named for execution in seen)
