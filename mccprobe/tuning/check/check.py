"""The gate: every case right, every kernel that can be launched launched by a case that was right.

The second rule is the one whose want cost the article three months (section 8): its correctness cases all
went to a small kernel, and the fast one was timed for 70 versions and never checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.check.build import (
    BuildFailure,
    BuiltKernel,
    CaseResult,
    build_kernel,
    run_case,
)
from mccprobe.tuning.check.cases import NotRun, PlannedCase, plan_cases
from mccprobe.tuning.check.launchable import base_name, covers, kernel_name, launched_among

DEFAULT_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class CheckedCase:
    """One planned case with one seed, and what came of it. fault: why it does not count, "" if it does."""

    planned: PlannedCase
    result: CaseResult
    fault: str = ""

    @property
    def right(self) -> bool:
        return self.result.verdict is Verdict.GOOD and not self.fault

    @property
    def refused_as_described(self) -> bool:
        """No kernel takes the shape, and kernel.toml does not say that one does."""
        return self.result.refused and self.planned.expected is None and not self.fault

    def to_dict(self) -> dict[str, Any]:
        case, result = self.planned.case, self.result
        return {
            "name": case.name,
            "m": case.m,
            "n": case.n,
            "k": case.k,
            "seed": result.seed,
            "why": self.planned.why,
            "verdict": result.verdict.value,
            "reason": result.reason,
            "max_err": result.max_err,
            "tolerance": result.tolerance,
            "expected_kernel": self.planned.expected,
            "launches": None if result.launches is None else dict(result.launches),
            "refused": result.refused,
            "fault": self.fault or None,
            "seconds": round(result.seconds, 4),
        }


@dataclass(frozen=True)
class Coverage:
    """One kernel that can be launched. cases: names of the right ones that launched it. launched: by any case,
    right or not."""

    kernel: str
    cases: tuple[str, ...]
    launched: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "checked": bool(self.cases),
            "cases": list(self.cases),
            "launched": self.launched,
        }


@dataclass(frozen=True)
class GateReport:
    """What the gate found. faults: of the build as a whole. failure: set instead of cases if nothing was built."""

    kernel: KernelSpec
    toolchain: str
    simulated: bool
    selection: str
    flags: tuple[tuple[str, ...], ...]
    defines: tuple[tuple[str, str], ...]
    built: BuiltKernel | None
    failure: BuildFailure | None
    cases: tuple[CheckedCase, ...]
    not_run: tuple[NotRun, ...]
    coverage: tuple[Coverage, ...]
    faults: tuple[str, ...]
    stopped_early: bool = False

    @property
    def verdict(self) -> Verdict:
        """BAD: a case was wrong. UNRESOLVED: one could not be judged, or a kernel is unchecked."""
        if any(case.result.verdict is Verdict.BAD for case in self.cases):
            return Verdict.BAD
        judged = any(case.right for case in self.cases)
        clear = all(case.right or case.refused_as_described for case in self.cases)
        return Verdict.GOOD if judged and clear and not self.faults and self.failure is None else Verdict.UNRESOLVED

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.GOOD

    @property
    def worst_error(self) -> float | None:
        errors = [case.result.max_err for case in self.cases if case.result.max_err is not None]
        return max(errors) if errors else None

    def reasons(self) -> list[str]:
        """Why it did not pass, the most telling first; empty if it did."""
        if self.failure is not None:
            return [self.failure.reason]
        wrong = [
            f"{c.planned.case.name} seed {c.result.seed}: {c.result.reason}"
            for c in self.cases
            if c.result.verdict is Verdict.BAD
        ]
        unclear = [
            f"{c.planned.case.name} seed {c.result.seed}: {c.fault or c.result.reason}"
            for c in self.cases
            if c.result.verdict is not Verdict.BAD and not (c.right or c.refused_as_described)
        ]
        return [*wrong, *self.faults, *unclear]

    def checked_kernels(self) -> frozenset[str]:
        """The kernels that a right case launched: only these may be timed."""
        return frozenset(entry.kernel for entry in self.coverage if entry.cases)

    def unchecked(self, launches: Mapping[str, int]) -> list[str]:
        """Those of these launches that no right case checked: timed but never checked is an error."""
        known = [entry.kernel for entry in self.coverage]
        checked = self.checked_kernels()
        return sorted(
            name
            for name, count in launches.items()
            if count and not any(covers(name, kernel, known) for kernel in checked)
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel.name,
            "toolchain": self.toolchain,
            "simulated": self.simulated,
            "selection": self.selection,
            "flags": [" ".join(flag) for flag in self.flags],
            "defines": dict(self.defines),
            "verdict": self.verdict.value,
            "passed": self.passed,
            "reasons": self.reasons(),
            "cases": [case.to_dict() for case in self.cases],
            "not_run": [{"name": entry.name, "reason": entry.reason} for entry in self.not_run],
            "kernels": [entry.to_dict() for entry in self.coverage],
            "faults": list(self.faults),
            "stopped_early": self.stopped_early,
            "device_object": self.built.device_object if self.built else None,
            "commands": [list(command) for command in self.built.commands] if self.built else [],
        }


def check_kernel(
    kernel: KernelSpec,
    toolchain: Toolchain,
    *,
    cases: str = "legacy",
    seeds: Sequence[int] = DEFAULT_SEEDS,
    flags: Sequence[Sequence[str]] = (),
    defines: Mapping[str, str] | None = None,
    folder: Path,
    timeout_s: float = 120.0,
    compile_timeout_s: float = 300.0,
    arch: str = DEFAULT_ARCH,
    stop_at_bad: bool = False,
    tell: Callable[[CheckedCase], None] = lambda case: None,
) -> GateReport:
    """Build and check. `folder` is for this run alone; the program stays in it for timing.

    stop_at_bad: end with the first wrong case (a search needs no more).
    """
    built = build_kernel(
        kernel, toolchain, flags=flags, defines=defines, folder=folder, timeout_s=compile_timeout_s, arch=arch
    )
    if isinstance(built, BuildFailure):
        return GateReport(
            kernel,
            toolchain.name,
            toolchain.simulated,
            cases,
            tuple(map(tuple, flags)),
            tuple(sorted((defines or {}).items())),
            None,
            built,
            (),
            (),
            (),
            (),
        )
    return check_built(built, cases=cases, seeds=seeds, timeout_s=timeout_s, stop_at_bad=stop_at_bad, tell=tell)


def check_built(
    built: BuiltKernel,
    *,
    cases: str = "legacy",
    seeds: Sequence[int] = DEFAULT_SEEDS,
    timeout_s: float = 120.0,
    stop_at_bad: bool = False,
    tell: Callable[[CheckedCase], None] = lambda case: None,
) -> GateReport:
    """Check a program that is built already."""
    planned, left_out = plan_cases(built.kernel, built.toolchain, cases)
    done: list[CheckedCase] = []
    stopped = False
    for entry in planned:
        for seed in seeds[:1] if entry.once else seeds:
            result = run_case(built, entry.case, seed=seed, timeout_s=timeout_s)
            done.append(CheckedCase(entry, result, case_fault(built, entry, result)))
            tell(done[-1])
            if stop_at_bad and result.verdict is Verdict.BAD:
                stopped = True
                break
            if result.refused:  # the shape decides that, not the data
                break
        if stopped:
            break
    coverage = coverage_of(built, done)
    return GateReport(
        built.kernel,
        built.toolchain,
        built.simulated,
        cases,
        built.flags,
        built.defines,
        built,
        None,
        tuple(done),
        tuple(left_out),
        tuple(coverage),
        tuple(build_faults(built, done, coverage, stopped=stopped)),
        stopped,
    )


def case_fault(built: BuiltKernel, entry: PlannedCase, result: CaseResult) -> str:
    """What is wrong with a run beside its numbers, "" if nothing is."""
    if result.refused:
        return f"kernel.toml says that {entry.expected} takes it, but the program refuses it" if entry.expected else ""
    if result.verdict is Verdict.UNRESOLVED or not registry.target(built.toolchain).device:
        return ""
    if result.launches is None:
        return "the host program does not report its launches (MCCPROBE_LAUNCHED, mccprobe help kernels)"
    if not result.launches:
        return "no kernel was launched"
    if built.simulated and result.told is not None and _named(result.told, built) != _named(result.launches, built):
        return f"the program reports launches of {_list(result.told)}, the emulator saw {_list(result.launches)}"
    if entry.described:
        launched = {base_name(kernel_name(name)) for name in result.launches}
        if entry.expected is None:
            return f"kernel.toml says that no kernel takes it, but {_list(result.launches)} ran"
        if entry.expected not in launched:
            return f"kernel.toml says that {entry.expected} runs, but {_list(result.launches)} ran"
    return ""


def _named(launches: Mapping[str, int], built: BuiltKernel) -> Counter[str]:
    """Launches by the names of the objects, so that two ways of writing one kernel compare equal."""
    known = built.launchable or ()
    found: Counter[str] = Counter()
    for name, count in launches.items():
        fitting = [kernel for kernel in known if covers(name, kernel, known)]
        found[fitting[0] if len(fitting) == 1 else kernel_name(name)] += count
    return found


def _list(launches: Mapping[str, int]) -> str:
    return ", ".join(sorted(launches)) or "none"


def launchable_kernels(built: BuiltKernel) -> tuple[str, ...]:
    """What the dispatch can launch: by the objects, else by kernel.toml."""
    return built.launchable or tuple(dict.fromkeys(entry.kernel for entry in built.kernel.dispatch))


def coverage_of(built: BuiltKernel, done: Sequence[CheckedCase]) -> list[Coverage]:
    """For each kernel the right cases that launched it."""
    kernels = launchable_kernels(built)
    right: dict[str, dict[str, None]] = {kernel: {} for kernel in kernels}
    launched: set[str] = set()
    for case in done:
        among = launched_among(case.result.launches or {}, kernels)
        launched |= among
        if case.result.launches is None and case.planned.expected:  # it ended before it could say what it launched
            launched |= launched_among({case.planned.expected: 1}, kernels)
        if case.right:
            for kernel in among:
                right[kernel][case.planned.case.name] = None
    return [Coverage(kernel, tuple(right[kernel]), kernel in launched) for kernel in kernels]


def build_faults(
    built: BuiltKernel, done: Sequence[CheckedCase], coverage: Sequence[Coverage], *, stopped: bool
) -> list[str]:
    """What is wrong with the build as a whole."""
    # with a wrong case at hand, what was not reached is no finding
    if stopped or not registry.target(built.toolchain).device:
        return []
    faults = []
    if not coverage:
        faults.append(
            "cannot tell which kernels can be launched: no stubs in the objects, no [[dispatch]] in kernel.toml"
        )
    for entry in coverage:
        if not entry.cases:
            how = "only by cases that were not right" if entry.launched else "by no case"
            faults.append(f"kernel {entry.kernel} can be launched, but is launched {how}: it is unchecked")
    if built.launchable:
        bases = {base_name(kernel) for kernel in built.launchable}
        faults += [
            f"kernel.toml has a [[dispatch]] for {entry.kernel}, which is no kernel of the program"
            for entry in built.kernel.dispatch
            if entry.kernel not in bases
        ]
    return faults
