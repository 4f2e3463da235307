"""The smallest sets of flags that give the wrong result, each confirmed alone, by removal and by repeats.

Every set of flags that is tested is built as a variant of the build under examination; builds with the same
objects, host half and link are one program and are judged once. A build is BAD if one of its runs is BAD. It is
GOOD for the search after one run; in the end every GOOD that the answer rests on is repeated as often as the
stated confidence asks for (search/confidence.py). One that shows BAD then, or a bad build that once was GOOD,
makes the check flaky: the search goes again, and every GOOD is repeated from the start.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mccprobe.base.errors import BudgetSpent, SourceDoesNotCompile, UnknownFlag
from mccprobe.base.files import file_digest
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.why_record import FlagSet, FlagSets, StepState
from mccprobe.search.confidence import MAX_CONFIRMATIONS, EdgeEvidence
from mccprobe.search.flaky import ESTIMATE_BADS, ESTIMATE_RUNS, UNRESOLVED_RUNS
from mccprobe.search.subsets import SubsetResult, minimal_sets
from mccprobe.targets import registry
from mccprobe.targets.flags.catalogue import ResolvedFlag, load_catalogue, promise_sentences

MOST_BUILDS = 500  # of one search: 10 flags in pairs need some 30; a tree of many large sets has no end
MOST_ROUNDS = 5  # searches again after a GOOD that did not hold; each raises the number of repeats

Subset = frozenset[str]


def smallest_flag_sets(
    workspace: Workspace, flags: Sequence[ResolvedFlag], *, tell: Callable[[str], None], deadline: Deadline
) -> FlagSets:
    """All minimal sets among the request's flags.

    flags: those of `workspace.request`, in its order. Raises OracleUnusable when the check itself breaks.
    """
    given = tuple(flag.text for flag in flags)
    if not flags:
        return FlagSets(StepState.SKIPPED, notes=("no flags are given: the arguments differ otherwise",))
    # how the compiler takes each was found out when the request was made
    probed = [replace(flag, given=given) for flag, given in zip(flags, workspace.request.flags, strict=True)]
    builds = _Builds(workspace, {flag.text: flag for flag in probed}, tell, deadline)
    search = _FlagSearch(builds, given)
    search.run()
    sets = tuple(search.record(each) for each in search.found)
    state = StepState.BUDGET if search.stopped else StepState.DONE
    return FlagSets(
        state,
        sets,
        given,
        search.opened,
        tested=builds.tested,
        complete=search.complete,
        notes=tuple(dict.fromkeys([*search.notes, *builds.notes])),
    )


@dataclass
class _Tally:
    """Runs of one program. judge: of the first build that gave it."""

    judge: Judge
    object: str
    bad: int = 0
    good: int = 0
    unresolved: int = 0

    @property
    def runs(self) -> int:
        return self.bad + self.good + self.unresolved


class _Builds:
    """Builds with subsets of the flags, and the runs of them."""

    def __init__(
        self, workspace: Workspace, flags: dict[str, ResolvedFlag], tell: Callable[[str], None], deadline: Deadline
    ) -> None:
        self.workspace = workspace
        self.flags = flags
        self.deadline = deadline
        self.notes: list[str] = []
        self.good_runs = 1  # of a program before it counts as GOOD
        self._tell = tell
        self._told: set[Subset] = set()
        self._whole = frozenset(flags)
        self._tallies: dict[tuple[str, ...], _Tally] = {}
        self._of: dict[Subset, _Tally | None] = {}  # None: it does not compile

    @property
    def tested(self) -> int:
        """Programs judged."""
        return sum(tally.runs > 0 for tally in self._tallies.values())

    def tally(self, subset: Subset) -> _Tally | None:
        """Build with exactly these flags; None where it does not compile. Raises BudgetSpent."""
        if subset not in self._of:
            self._require_time()
            try:
                judge = self._variant(subset)
            except SourceDoesNotCompile as error:
                self._of[subset] = None
                self.notes.append(f"with {self.words(subset)} there is no build: {error.message}")
                return None
            unit = judge.program.unit
            tally = _Tally(judge, unit.base[unit.recorded.active])
            self._of[subset] = self._tallies.setdefault(_program_key(judge), tally)
        return self._of[subset]

    def verdict(self, subset: Subset) -> Verdict:
        """BAD after one BAD run, GOOD after `good_runs` GOOD ones. Raises BudgetSpent, OracleUnusable."""
        tally = self.tally(subset)
        if tally is None:
            return Verdict.UNRESOLVED
        before = tally.runs
        while not tally.bad and tally.good < self.good_runs and tally.unresolved < UNRESOLVED_RUNS:
            self.rerun(tally)
        verdict = _verdict(tally, self.good_runs)
        if subset not in self._told:
            self._told.add(subset)
            known = "" if tally.runs > before else ", a program that was judged before"
            self._tell(f"flags: {self.words(subset)}: {verdict}{known}")
        return verdict

    def rerun(self, tally: _Tally) -> Verdict:
        """One run more. Raises BudgetSpent."""
        self._require_time()
        outcome = tally.judge.run(tally.object)
        tally.bad += outcome.verdict is Verdict.BAD
        tally.good += outcome.verdict is Verdict.GOOD
        tally.unresolved += outcome.verdict is Verdict.UNRESOLVED
        if outcome.verdict is Verdict.UNRESOLVED:
            self.notes.append(f"a run gave no verdict: {outcome.reason}")
        return outcome.verdict

    def bad_tallies(self) -> list[_Tally]:
        return [tally for tally in self._tallies.values() if tally.bad]

    def words(self, subset: Subset) -> str:
        """The flags of a set, in the order given."""
        return ", ".join(text for text in self.flags if text in subset) or "none of the flags"

    def _require_time(self) -> None:
        if self.deadline.passed:
            raise BudgetSpent("the time budget is used up")

    def _variant(self, subset: Subset) -> Judge:
        space = self.workspace
        if subset == self._whole:
            return space.judge
        if not subset and space.reference is not None and space.request.only_flags_differ:
            return space.reference.judge
        flags = [self.flags[text].given for text in self.flags if text in subset]
        words = "\0".join("\1".join(flag.argv) for flag in flags)
        digest = hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()
        return space.variant(flags, f"flags-{digest[:12]}")


def _program_key(judge: Judge) -> tuple[str, ...]:
    """Equal for builds that are one program."""
    unit, linker = judge.program.unit, judge.program.linker
    host = (file_digest(unit.recorded.host_half()),) if unit.recorded.offload else ()
    return (*unit.base, *host, *linker.described())


def _verdict(tally: _Tally, good_runs: int) -> Verdict:
    if tally.bad:
        return Verdict.BAD
    return Verdict.GOOD if tally.good >= good_runs else Verdict.UNRESOLVED


@dataclass
class _FlagSearch:
    """The search over flags, then over the members of the bundles in what it found. found: smallest set first."""

    builds: _Builds
    given: tuple[str, ...]
    opened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    complete: bool = True
    stopped: bool = False
    found: list[Subset] = field(default_factory=list)
    needed: dict[Subset, dict[str, str]] = field(default_factory=dict)
    _cures: list[Subset] = field(default_factory=list)  # what is left after the removals that made it GOOD

    def run(self) -> None:
        """Search until what is found holds."""
        for _ in range(MOST_ROUNDS):
            self._forget()
            try:
                self._rate()
                self._find()
                if self._confirmed():
                    return
            except BudgetSpent as error:
                self.stopped, self.complete = True, False
                self.notes.append(
                    f"stopped: {error.message}; what is named was BAD, but is not repeated as often as usual"
                )
                return
        self.complete = False
        self.notes.append("the check is so flaky that builds taken for GOOD kept turning out BAD; sets may be missing")

    def _forget(self) -> None:
        self.opened, self.notes, self.found, self.needed, self._cures = {}, [], [], {}, []
        self.complete = True

    def _rate(self) -> None:
        """How often the whole set fails: a check that fails at times needs repeats wherever it says GOOD."""
        whole = self.builds.tally(frozenset(self.given))
        if whole is None:
            return
        while whole.runs < self.builds.workspace.request.settings.endpoint_repeats:
            self.builds.rerun(whole)
        flaky = bool(whole.good) or any(tally.good for tally in self.builds.bad_tallies())
        if not flaky:
            return
        while whole.bad < ESTIMATE_BADS and whole.runs < ESTIMATE_RUNS:
            self.builds.rerun(whole)
        if whole.bad:
            self.builds.good_runs = good_runs_needed(whole.bad, whole.bad + whole.good, self._confidence)
            self.notes.append(
                f"the check is flaky: {whole.bad} of {whole.runs} runs with all flags are BAD; each GOOD stands on "
                f"{self.builds.good_runs} runs"
            )

    @property
    def _confidence(self) -> float:
        return self.builds.workspace.request.settings.confidence

    def _search(self, items: Sequence[str]) -> SubsetResult[str]:
        result = minimal_sets(items, self.builds.verdict, budget=MOST_BUILDS)
        self.complete = self.complete and result.complete
        self.notes += result.notes
        for each in result.sets:
            self.needed[frozenset(each.items)] = {text: verdict.value for text, verdict in each.needed}
        return result

    def _find(self) -> None:
        result = self._search(self.given)
        whole = frozenset(self.given)
        if result.everything is Verdict.GOOD:
            self.notes.append("with all flags together every run was GOOD: there is nothing to find")
        self._cures += [whole.difference(removed) for removed, verdict in result.removals if verdict is Verdict.GOOD]
        self.found = [frozenset(each.items) for each in result.sets]
        self.found = list(dict.fromkeys(inside for each in self.found for inside in self._open_bundles(each)))

    def _open_bundles(self, found: Subset) -> list[Subset]:
        """The same set with members in place of a bundle, where they show the fault as well."""
        for bundle in sorted(found, key=list(self.builds.flags).index):
            members = self._members(bundle, found)
            if not members:
                continue
            self.opened[bundle] = members
            inside = (found - {bundle}).union(members)
            if self.builds.verdict(inside) is Verdict.UNRESOLVED:
                inside = self._without_unbuildable(inside, members)
            if self.builds.verdict(inside) is not Verdict.BAD:
                entry = self.builds.flags[bundle].flag
                # of clang's own bundles every member is known
                rest = (
                    "it needs what the bundle does besides them (-ffast-math also links start-up code that flushes "
                    "subnormals)"
                    if entry and registry.bundles_are_public(entry.compilers)
                    else "it lies in a part of the bundle that is not public, or in their interplay"
                )
                self.notes.append(
                    f"{bundle} is a bundle; its members that are known ({', '.join(members)}) in its place do not "
                    f"show the fault: {rest}"
                )
                continue
            result = self._search([text for text in self.builds.flags if text in inside])
            opened = [further for each in result.sets for further in self._open_bundles(frozenset(each.items))]
            if opened:
                return opened
        return [found]

    def _without_unbuildable(self, inside: Subset, members: Sequence[str]) -> Subset:
        """The same set less the members that this compiler does not take."""
        rest = inside - frozenset(members)
        return inside - {name for name in members if self.builds.tally(rest | {name}) is None}

    def _members(self, bundle: str, beside: Subset) -> tuple[str, ...]:
        """Names of the members of a bundle that can be tried; () for a flag that is no bundle."""
        entry = self.builds.flags[bundle].flag
        keys = {self.builds.flags[text].option_key for text in beside}
        members = []
        for name in entry.bundle_members if entry else ():
            try:
                member = load_catalogue().resolve(name)
            except UnknownFlag as error:
                self.notes.append(f"{bundle} stands for {name} too, which is not tried: {error.message}")
                continue
            if member.option_key not in keys:
                self.builds.flags.setdefault(name, member)
                members.append(name)
        return tuple(members)

    def _confirmed(self) -> bool:
        """Repeat what the answer rests on; False when a GOOD did not hold, so that the search must go again."""
        if not self.found:
            return True
        goods = {id(tally): tally for tally in self._good_builds()}
        bads = {id(tally): tally for each in self.found if (tally := self.builds.tally(each)) is not None}
        steady = self.builds.good_runs == 1
        whole = self.builds.tally(frozenset(self.given))
        evidence = EdgeEvidence(
            bad_runs=max(0, sum(tally.bad for tally in self.builds.bad_tallies()) - 1),
            good_side_runs=min((tally.good for tally in goods.values()), default=1),
            sure_bad_runs=max(0, whole.bad - 1 if whole else 0),
        )
        more_bad, more_good = evidence.plan(self._confidence) if steady else (ESTIMATE_BADS, 0)
        for tally in bads.values():
            for _ in range(more_bad):
                self.builds.rerun(tally)
        if steady and any(tally.good for tally in bads.values()):
            return False
        for tally in goods.values():
            for _ in range(more_good):
                if self.builds.rerun(tally) is Verdict.BAD:
                    return False
        return True

    def _good_builds(self) -> list[_Tally]:
        """Those whose GOOD the answer rests on: without any flag, without one of each set, after each removal."""
        rests = [frozenset[str](), *self._cures]
        rests += [each - {text} for each in self.found for text in each]
        tallies = [self.builds.tally(rest) for rest in rests]
        return [tally for tally in tallies if tally is not None and tally.good and not tally.bad]

    def record(self, found: Subset) -> FlagSet:
        """A found set for the report."""
        ordered = [text for text in self.builds.flags if text in found]
        tally = self.builds.tally(found)
        return FlagSet(
            flags=tuple(ordered),
            fails=tally.bad if tally else 0,
            runs=tally.runs if tally else 0,
            object=tally.object if tally else None,
            needed=self.needed.get(found, {}),
            promises=tuple(
                sentence
                for text in ordered
                for flag in [self.builds.flags[text]]
                for sentence in promise_sentences(flag.text, flag.flag, flag.value)
            ),
        )


def good_runs_needed(bad: int, runs: int, confidence: float) -> int:
    """GOOD runs in a row after which an object is taken for good, if bad ones were BAD in `bad` of `runs` runs.

    The mean of (1-p)^m under the posterior Beta(bad, good+1) of p, the very first BAD run left out, is at most
    1 - confidence: B(bad, good+1+m) / B(bad, good+1). With good == 0 that is search.confidence.miss_ratio.
    """
    good = runs - bad
    for m in range(1, MAX_CONFIRMATIONS):
        log_miss = sum(math.log((good + 1 + i) / (bad + good + 1 + i)) for i in range(m))
        if log_miss <= math.log1p(-confidence):
            return m
    return MAX_CONFIRMATIONS
