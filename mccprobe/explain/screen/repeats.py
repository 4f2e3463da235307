"""The two builds run again: often, with and without address randomisation, on other inputs, on another emulator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.screen.runs import ScreenRuns, environment_prefix
from mccprobe.objects.binary.elf import iter_symbols, parse_elf
from mccprobe.oracle.checks import KernelOracle, Oracle
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome
from mccprobe.targets import registry

CLEAN, FINDING, HINT, NOT_RUN = (
    ScreenOutcome.CLEAN, ScreenOutcome.FINDING, ScreenOutcome.HINT, ScreenOutcome.NOT_RUN,
)  # fmt: skip
REPEATS = 5  # of each build in each environment: a rate above 45 % is missed one time in 20
SLOW_REPEATS = 2  # of programs whose run takes longer than
SLOW_S = 4.0
MORE_SEEDS = 3
EMULATOR_TRAP = "TRAP "  # of the emulator's runtime: "mccprobe-sim: TRAP <kind>: <message>"
WARP_COLLECTIVES = ("__mccsim_wmma_", "__mccsim_syncwarp")  # of the emulator's runtime (sim/include)


@dataclass(frozen=True)
class Build:
    """One of the two builds: who judges it, and its object."""

    name: str
    judge: Judge
    object: str


class RepeatChecks:
    """Checks that run what is built already."""

    def __init__(self, workspace: Workspace, runs: ScreenRuns) -> None:
        unit = workspace.unit
        self.workspace = workspace
        self.runs = runs
        self.bad = Build("the bad build", workspace.judge, unit.base[unit.recorded.active])
        reference = workspace.reference
        self.good = Build("the good build", reference.judge, reference.object) if reference else None

    def rows(self) -> list[tuple[str, str, Callable[[], ScreenCheck]]]:
        found: list[tuple[str, str, Callable[[], ScreenCheck]]] = [
            ("repeated runs, fixed addresses", "program", self._fixed),
            ("repeated runs, random addresses", "program", self._random),
            ("other seeds", "program", self._seeds),
        ]
        if registry.target(self.workspace.unit.recorded.toolchain.name).emulated:
            found += [
                ("emulator: divergent warps and barriers", "kernel", self._divergence),
                ("emulator: memory not poisoned", "kernel", self._poison),
                ("emulator: warps of 32 lanes", "kernel", self._warps),
            ]
        return found

    def _fixed(self) -> ScreenCheck:
        name = "repeated runs, fixed addresses"
        if not self.runs.fixed:
            return ScreenCheck(name, "program", NOT_RUN, "address randomisation cannot be switched off here")
        return self._repeated(name, self.runs.fixed)

    def _random(self) -> ScreenCheck:
        return self._repeated("repeated runs, random addresses", ())

    def _repeated(self, name: str, prefix: Sequence[str]) -> ScreenCheck:
        """The good build as often as the bad one."""
        command = self._command(prefix)
        started = time.monotonic()
        bad = [self._run(self.bad, name, 0, prefix=prefix)]
        repeats = REPEATS if time.monotonic() - started < SLOW_S else SLOW_REPEATS
        bad += [self._run(self.bad, name, number, prefix=prefix) for number in range(1, repeats)]
        good = [self._run(self.good, name, number, prefix=prefix) for number in range(repeats) if self.good]
        wrong = [outcome for outcome in good if outcome.verdict is Verdict.BAD]
        if wrong:
            text = (
                f"the good build is BAD in {len(wrong)} of {len(good)} runs ({wrong[0].reason}): the program depends "
                "on addresses or time"
            )
            return ScreenCheck(name, "program", FINDING, text, command)
        told = f"{repeats} runs each: good build {_counted(good)}; bad build {_counted(bad)}"
        if any(outcome.verdict is Verdict.UNRESOLVED for outcome in good):
            return ScreenCheck(name, "program", HINT, told, command)
        if len(set(bad)) > 1:
            return ScreenCheck(name, "program", HINT, f"{told}; the bad build alone differs from run to run", command)
        if bad[0].verdict is not Verdict.BAD:
            return ScreenCheck(name, "program", HINT, f"{told}; the fault does not show in this environment", command)
        return ScreenCheck(name, "program", CLEAN, told, command)

    def _seeds(self) -> ScreenCheck:
        """Other inputs of a kernel: its good build must be right on them too."""
        oracle = self.workspace.oracle
        if not isinstance(oracle, KernelOracle):
            return ScreenCheck("other seeds", "program", NOT_RUN, "the check takes no seed")
        seeds = range(oracle.seed + 1, oracle.seed + 1 + MORE_SEEDS)
        others = [replace(oracle, seed=seed) for seed in seeds]
        return self._both("other seeds", "program", [((), other) for other in others], "another input")

    def _divergence(self) -> ScreenCheck:
        """WMMA operations whose lanes differ and barriers that not all threads reach end the run here."""
        name = "emulator: divergent warps and barriers"
        return self._both(name, "kernel", [(environment_prefix(MCCSIM_DIVERGE="trap"), None)], "divergence trapped")

    def _poison(self) -> ScreenCheck:
        name = "emulator: memory not poisoned"
        prefix = environment_prefix(MCCSIM_POISON="0")
        check = self._both(name, "kernel", [(prefix, None)], "memory that is not poisoned")
        bad = self._run(self.bad, name, 0, prefix=prefix)
        filled = self._run(self.bad, name, 0, prefix=environment_prefix(MCCSIM_POISON="1"))
        if bad.verdict is Verdict.GOOD and filled.verdict is Verdict.BAD:
            text = "the bad build is right when fresh memory is not filled with NaN: it reads what nobody wrote"
            return replace(check, outcome=FINDING, text=text)
        return check

    def _warps(self) -> ScreenCheck:
        """Threads in another order. A kernel with warp collectives may rely on 128 lanes: then it is no proof."""
        name = "emulator: warps of 32 lanes"
        check = self._both(name, "kernel", [(environment_prefix(MCCSIM_WARP="32"), None)], "warps of 32 lanes")
        if check.outcome is not FINDING:
            return check
        if self._has_collectives():
            return replace(check, outcome=HINT, text=f"{check.text}; or it relies on warps of 128 lanes")
        return replace(check, text=f"{check.text}: it depends on the order of its threads, a race")

    def _has_collectives(self) -> bool:
        """True if the device code calls for its whole warp."""
        path = self.workspace.ledger.run.object_path(self.bad.object)
        names = {symbol.name for symbol in iter_symbols(parse_elf(path.read_bytes(), path.name))}
        return any(name.startswith(WARP_COLLECTIVES) for name in names)

    def _both(
        self, name: str, part: str, settings: Sequence[tuple[Sequence[str], Oracle | None]], what: str
    ) -> ScreenCheck:
        """Both builds in other environments or with other checks: the good one must stay right."""
        good = [self._run(self.good, name, 0, prefix=p, oracle=o) for p, o in settings if self.good]
        bad = [self._run(self.bad, name, 0, prefix=p, oracle=o) for p, o in settings]
        command = self._command(*settings[0])
        told = f"good build {_counted(good)}; bad build {_counted(bad)}"
        trapped = next((outcome for outcome in good if EMULATOR_TRAP in outcome.reason), None)
        if trapped is not None:
            return ScreenCheck(name, part, FINDING, f"the emulator refuses the good build: {trapped.reason}", command)
        wrong = next((outcome for outcome in good if outcome.verdict is Verdict.BAD), None)
        if wrong is not None:
            text = f"the good build is wrong with {what} ({wrong.reason}): the program is, or its tolerance"
            return ScreenCheck(name, part, FINDING, text, command)
        steady = all(outcome.verdict is Verdict.GOOD for outcome in good)
        shows = all(outcome.verdict is Verdict.BAD for outcome in bad)
        return ScreenCheck(name, part, CLEAN if steady and shows else HINT, told, command)

    def _command(self, prefix: Sequence[str], oracle: Oracle | None = None) -> tuple[str, ...]:
        return (*prefix, *(oracle or self.workspace.oracle).command("program"))

    def _run(
        self, build: Build | None, name: str, number: int, *, prefix: Sequence[str] = (), oracle: Oracle | None = None
    ) -> Outcome:
        assert build is not None
        return self.runs.of_object(build.judge, build.object, name, number, prefix=prefix, oracle=oracle)


def _counted(outcomes: Sequence[Outcome]) -> str:
    """ "5 GOOD", "3 BAD, 2 GOOD", "none"."""
    counts = Counter(outcome.verdict.value for outcome in outcomes)
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "none"
