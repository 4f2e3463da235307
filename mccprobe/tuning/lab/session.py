"""Run a kernel in the laboratory: an instrumented build, the gate's cases of a size that the emulator can watch.

The numbers are judged too, as in the gate: with WMMA operands that differ within a warp no documented result
exists, so such a case is run under both models of the emulator, and neither is taken for the hardware.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError, UsageError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.store import disk_errors
from mccprobe.oracle.kernel.spec import Case, KernelSpec
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.protocol import Toolchain
from mccprobe.targets.sim.build import LAB_PLUGIN
from mccprobe.tuning.check.answer import HostAnswer, read_answer
from mccprobe.tuning.check.build import BuildFailure, BuiltKernel, build_kernel
from mccprobe.tuning.check.cases import DispatchTable, NotRun, PlannedCase, plan_cases
from mccprobe.tuning.lab.record import LabReportUnreadable, Merged, Observation, merge, read_observation

MAX_OPERATIONS = 6e8  # multiplications and additions of a case: about half a second of emulation
PHYSICAL_WARP = 128  # lanes of MP22 (article, section 11)
DIVERGENT = "divergent-operand"


@dataclass(frozen=True)
class Numbers:
    """What came out under one model. mismatches, elements: None if the program does not tell."""

    model: str
    verdict: Verdict
    reason: str
    mismatches: int | None
    elements: int | None

    @property
    def wrong_share(self) -> float | None:
        return None if self.mismatches is None or not self.elements else self.mismatches / self.elements

    def to_dict(self) -> dict[str, Any]:
        share = self.wrong_share
        return {
            "model": self.model,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "mismatches": self.mismatches,
            "elements": self.elements,
            "wrong_share": None if share is None else round(share, 6),
        }


@dataclass(frozen=True)
class WatchedCase:
    """One case. models: the numbers, by what the emulator does with operands that differ within a warp."""

    planned: PlannedCase
    observation: Observation
    models: tuple[Numbers, ...]

    def to_dict(self) -> dict[str, Any]:
        case = self.planned.case
        return {
            "name": case.name,
            "m": case.m,
            "n": case.n,
            "k": case.k,
            "why": self.planned.why,
            "expected_kernel": self.planned.expected,
            "ended": self.observation.ended,
            "numbers": [numbers.to_dict() for numbers in self.models],
        }


@dataclass(frozen=True)
class LabReport:
    """What was seen. declared: kernel -> the legacy cases of kernel.toml that run it on every machine.

    physical: the same with MP22's 128 lanes, where `warp` is another number.
    """

    kernel: KernelSpec
    warp: int
    defines: tuple[tuple[str, str], ...]
    flags: tuple[tuple[str, ...], ...]
    cases: tuple[WatchedCase, ...]
    not_run: tuple[NotRun, ...]
    merged: Merged
    declared: Mapping[str, tuple[str, ...]]
    physical: LabReport | None = None

    @property
    def verdict(self) -> Verdict:
        """BAD: a rule broken or a wrong number. UNRESOLVED: a doubt, a case without an answer, or no case at all."""
        rules = self.merged.verdict()
        numbers = {one.verdict for case in self.cases for one in case.models}
        if rules is Verdict.BAD or Verdict.BAD in numbers:
            return Verdict.BAD
        clear = rules is Verdict.GOOD and numbers == {Verdict.GOOD}
        return Verdict.GOOD if clear else Verdict.UNRESOLVED

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel.name,
            "toolchain": registry.emulator().name,
            "simulated": True,
            "warp_lanes": self.warp,
            "flags": [" ".join(flag) for flag in self.flags],
            "defines": dict(self.defines),
            "verdict": self.verdict.value,
            "cases": [case.to_dict() for case in self.cases],
            "not_run": [{"name": entry.name, "reason": entry.reason} for entry in self.not_run],
            "findings": [finding.to_dict() for finding in self.merged.findings],
            "banks": [use.to_dict() for use in sorted(self.merged.banks, key=lambda use: -use.lost)],
            "kernels": [launched.to_dict() for launched in self.merged.kernels],
            "physical_warp": None if self.physical is None else self.physical.to_dict(),
            "declared_cases": {name: list(cases) for name, cases in self.declared.items()},
        }


def lab_flags(toolchain: Toolchain) -> tuple[tuple[str, ...], ...]:
    """The driver arguments of an instrumented build. Raises UsageError, ToolchainError."""
    if not registry.target(toolchain.name).emulated:
        raise UsageError(
            f"--lab runs in the emulator, not with {toolchain.name}",
            hint="leave --toolchain out, or say --toolchain sim",
        )
    root = toolchain.root or Path(toolchain.driver[0]).resolve().parent.parent
    plugin = root / LAB_PLUGIN
    if not plugin.is_file():
        raise ToolchainError(
            f"the stand-in lacks the laboratory's pass ({plugin.name})",
            hint=toolchain.incomplete or "remove the cache; it is then built again",
        )
    device = (f"-fpass-plugin={plugin}", "-gline-tables-only", "-D__MCCSIM_LAB__=1")
    return tuple(("-Xarch_device", option) for option in device)


def lab_kernel(
    kernel: KernelSpec,
    toolchain: Toolchain,
    *,
    folder: Path,
    warp: int = 128,
    flags: Sequence[Sequence[str]] = (),
    defines: Mapping[str, str] | None = None,
    arch: str = DEFAULT_ARCH,
    seed: int = 1,
    timeout_s: float = 300.0,
    compile_timeout_s: float = 300.0,
    tell: Callable[[WatchedCase], None] = lambda case: None,
) -> LabReport:
    """Build with instrumentation and watch every case that is small enough.

    Raises UsageError, ToolchainError, SourceDoesNotCompile.
    """
    given = tuple(tuple(flag) for flag in flags)
    built = build_kernel(
        kernel,
        toolchain,
        flags=[*given, *lab_flags(toolchain)],
        defines=defines,
        folder=folder,
        timeout_s=compile_timeout_s,
        arch=arch,
    )
    if isinstance(built, BuildFailure):
        raise SourceDoesNotCompile(
            f"{kernel.name}: {built.reason}", detail=built.detail, hint="ran: " + " ".join(built.command)
        )
    shown = tuple(sorted((defines or {}).items()))
    planned, left_out = plan_cases(kernel, toolchain.name, "legacy")
    declared = _declared(kernel)

    def watch_with(lanes: int) -> LabReport:
        watched, not_run = _watch_all(built, planned, left_out, warp=lanes, seed=seed, timeout_s=timeout_s, tell=tell)
        merged = merge(case.observation for case in watched)
        return LabReport(kernel, lanes, shown, given, tuple(watched), tuple(not_run), merged, declared)

    report = watch_with(warp)
    return report if warp == PHYSICAL_WARP else replace(report, physical=watch_with(PHYSICAL_WARP))


def _watch_all(
    built: BuiltKernel,
    planned: Sequence[PlannedCase],
    left_out: Sequence[NotRun],
    *,
    warp: int,
    seed: int,
    timeout_s: float,
    tell: Callable[[WatchedCase], None],
) -> tuple[list[WatchedCase], list[NotRun]]:
    small = [entry for entry in planned if _operations(entry.case) <= MAX_OPERATIONS]
    large = f"more than {MAX_OPERATIONS:.0e} operations"
    not_run = [*left_out, *(NotRun(entry.case.name, large) for entry in planned if entry not in small)]
    watched: list[WatchedCase] = []
    for entry in small:
        case = watch(built, entry, warp=warp, seed=seed, timeout_s=timeout_s)
        if case is None:
            not_run.append(NotRun(entry.case.name, "no kernel takes this shape"))
            continue
        watched.append(case)
        tell(case)
    return watched, not_run


def watch(built: BuiltKernel, entry: PlannedCase, *, warp: int, seed: int, timeout_s: float) -> WatchedCase | None:
    """Run one case. None if no kernel takes its shape."""
    answer, observation = _run(built, entry.case, warp, seed, timeout_s, model="first", watched=True)
    if answer.refused:
        return None
    models = [_numbers("lowest lane's address for all" if _diverges(observation) else "one address", answer)]
    if _diverges(observation):
        other, _ = _run(built, entry.case, warp, seed, timeout_s, model="lane", watched=False)
        models.append(_numbers("each lane its own address", other))
    return WatchedCase(entry, observation, tuple(models))


def _run(
    built: BuiltKernel, case: Case, warp: int, seed: int, timeout_s: float, *, model: str, watched: bool
) -> tuple[HostAnswer, Observation]:
    shape = f"{case.m}x{case.n}x{case.k}"
    argv = [str(built.program), "--case", shape, "--seed", str(seed), "--json"]
    with disk_errors(built.folder), tempfile.TemporaryDirectory(prefix="lab-", dir=built.folder) as scratch:
        report = Path(scratch) / "lab.json"
        env = {**os.environ, "TMPDIR": scratch, "MCCSIM_WARP": str(warp), "MCCSIM_DIVERGE": model}
        env.pop("MCCSIM_LAB", None)
        if watched:
            env["MCCSIM_LAB"] = str(report)
        result = run(RunSpec(argv, cwd=Path(scratch), env=env, timeout_s=timeout_s))
        answer = read_answer(built.kernel, case, result)
        nothing = Observation((), (), ())
        if not watched or answer.refused:
            return answer, nothing
        try:
            return answer, read_observation(report, case.name)
        except LabReportUnreadable:
            if report.exists():
                raise
            return answer, Observation((), (), (), f"no report: {answer.reason}")  # killed, or nothing was launched


def _numbers(model: str, answer: HostAnswer) -> Numbers:
    found = [answer.document.get(name) for name in ("mismatches", "elements")]
    wrong, elements = (value if isinstance(value, int) else None for value in found)
    return Numbers(model, answer.verdict, answer.reason, wrong, elements)


def _diverges(observation: Observation) -> bool:
    return any(finding.kind == DIVERGENT for finding in observation.findings)


def _operations(case: Case) -> float:
    return 2.0 * case.m * case.n * case.k


def _declared(kernel: KernelSpec) -> dict[str, tuple[str, ...]]:
    """The legacy cases by the kernel that they run; a kernel without one is what its author never checked."""
    table = DispatchTable(kernel)
    found: dict[str, list[str]] = {entry.kernel: [] for entry in kernel.dispatch}
    for case in kernel.cases:
        entry = table.taking(case)
        if entry is not None and case.legacy and not case.toolchains:
            found[entry.kernel].append(case.name)
    return {name: tuple(cases) for name, cases in found.items()}
