"""The parts of a verdict: levels, other code generators, ranges, dependences of the program, repeats, inputs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mccprobe.base.errors import OracleUnusable
from mccprobe.bisection.passes import steadiness as steadiness_module
from mccprobe.bisection.passes.addresses import computes_with_addresses
from mccprobe.bisection.passes.cautions import cautions_of
from mccprobe.bisection.passes.confirm import Judgement
from mccprobe.bisection.passes.ends_again import PAUSES_S, ask_ends_again
from mccprobe.bisection.passes.range_answer import all_hang, is_range, with_hangs_as_bad
from mccprobe.bisection.passes.second_opinion import Opinion, contradiction
from mccprobe.bisection.passes.steadiness import steadiness
from mccprobe.bisection.passes.withhold import withheld
from mccprobe.oracle.checks import CommandOracle, Expected, ReferenceOracle
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict
from mccprobe.oracle.written import Written, is_ignored, stable, state_of, written_since
from mccprobe.report.record import (
    BisectReport,
    CheckState,
    Confirmation,
    Culprit,
    ExecutionRange,
    HangsAnswer,
    ProgramCheck,
    Status,
)
from mccprobe.report.render_text import render_text
from mccprobe.search.model import Settings
from mccprobe.search.model import Status as SearchStatus
from mccprobe.search.procedure import bisect
from mccprobe.targets.flags.levels import code_generator_level, is_device_level, is_level, replaces

GOOD, BAD = Outcome(Verdict.GOOD, "as the reference"), Outcome(Verdict.BAD, "prints '0'")
HANGS = Outcome(Verdict.UNRESOLVED, "timeout after 9.0 s", timed_out=True)
SKIPPED = Outcome(Verdict.UNRESOLVED, "exit 125 (cannot tell)")

NICENESS = os.nice(0)  # of the tests themselves


# -- levels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "level"),
    [
        ("-O", "2"),
        ("-O0", "0"),
        ("-O1", "1"),
        ("-Og", "1"),
        ("-O2", "2"),
        ("-Os", "2"),
        ("-Oz", "2"),
        ("-O3", "3"),
        ("-O4", "3"),
        ("-Ofast", "3"),
    ],
)
def test_every_level_of_the_host(argument: str, level: str) -> None:
    assert is_level(argument) and not is_device_level(argument)
    assert code_generator_level(["-O1", argument, "-g"]) == level


@pytest.mark.parametrize("argument", ["-Od3", "-Ohello", "-o", "-O2x", "-Wl,-O1", "-DO2"])
def test_what_is_no_level_of_the_host(argument: str) -> None:
    assert not is_level(argument)


def test_a_level_replaces_its_own_kind_only() -> None:
    assert replaces("-Og", "-O3") and replaces("-Od0", "-Od3")
    assert not replaces("-Od3", "-O2") and not replaces("-O2", "-Od3") and not replaces("-g", "-O2")


# -- other code generators ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "withholds"),
    [([], False), ([GOOD], False), ([BAD], True), ([GOOD, BAD], False), ([Outcome(Verdict.BAD, "prints '-8'")], False)],
    ids=["none", "right", "the same fault", "another clang alone", "another fault"],
)
def test_the_same_fault_before_the_pass_withholds_the_word(given: list[Outcome], withholds: bool) -> None:
    opinions = [Opinion(f"generator {number}", one) for number, one in enumerate(given)]
    assert (contradiction(opinions, BAD.reason) is not None) is withholds


@pytest.mark.parametrize("check", [None, *CheckState])
@pytest.mark.parametrize("cautions", [(), ("the program depends on clock: clock()",)], ids=["steady", "clock"])
def test_what_withholds_the_word(check: CheckState | None, cautions: tuple[str, ...]) -> None:
    culprit = Culprit("P", None, "f", "f", "log", 3, 5)
    judgement = Judgement(Status.FOUND, culprit, Confirmation("ir-changed", "why"), cast(Any, None))
    found = withheld(judgement, ProgramCheck(check, "MSan: x") if check is not None else None, cautions)
    kept = check is not CheckState.FINDING and not cautions
    assert (found.status, found.confirmation.kind) == (
        (Status.FOUND, "ir-changed") if kept else (Status.EXPOSED, "none")
    )
    if not kept:
        reasons = [*(["MSan: x"] if check is CheckState.FINDING else []), *cautions]
        assert found.confirmation.text == "; ".join(reasons) and any("why" in note for note in found.notes)


# -- ranges -------------------------------------------------------------------------------------------


@dataclass
class FakeAxis:
    """GOOD up to 9, then `middle` up to 19, BAD at 20; every limit is an object of its own."""

    middle: Outcome
    total: int = 20
    asked: list[int] = field(default_factory=list)

    @property
    def judge(self) -> Any:
        oracle = SimpleNamespace(timeout_s=60.0)
        return SimpleNamespace(run_for=lambda key, most: self.run(key), longest_good_s=0.01, oracle=oracle)

    def prefetch(self, limits: Sequence[int]) -> None:
        pass

    def object_at(self, limit: int) -> str | Unbuildable:
        return str(limit)

    def run(self, key: str) -> Outcome:
        self.asked.append(int(key))
        return GOOD if int(key) < 10 else self.middle if int(key) < 20 else BAD


def test_hangs_in_front_of_an_edge_are_asked_again_as_bad() -> None:
    axis = FakeAxis(HANGS)
    result = bisect(axis, Settings(spot_checks=0))
    assert is_range(result) and (result.good, result.bad) == (9, 20)
    assert all_hang(result, axis.judge)
    axis.asked.clear()
    again = with_hangs_as_bad(cast(Any, axis), result, Settings(spot_checks=0), lambda trial: None)
    assert (again.status, again.good, again.bad) == (SearchStatus.EDGE, 9, 10) and not is_range(again)
    assert not [limit for limit in axis.asked if 10 < limit < 20]  # known already: not run again


def test_limits_that_cannot_be_judged_for_another_reason_are_no_hangs() -> None:
    axis = FakeAxis(SKIPPED)
    result = bisect(axis, Settings(spot_checks=0))
    assert is_range(result) and not all_hang(result, axis.judge)


def test_a_tight_time_limit_proves_no_hang() -> None:
    axis = FakeAxis(HANGS)
    result = bisect(axis, Settings(spot_checks=0))
    slow = SimpleNamespace(longest_good_s=0.7, oracle=SimpleNamespace(timeout_s=60.0))
    assert not all_hang(result, cast(Any, slow))


def test_the_heading_of_a_range_names_no_pass() -> None:
    first, last, hang = (
        Culprit(name, None, "f", "f", "log", at, 134)
        for name, at in (("GVNPass", 23), ("LoopDeletionPass", 47), ("SROAPass", 23))
    )
    answer = HangsAnswer(Status.FOUND, hang, Confirmation("ir-changed", "the IR before it is GOOD"))
    report = BisectReport(
        Status.EXPOSED, "clang", "cc", "clang 14", False, "a.c", (), range=ExecutionRange(first, last, 24, answer)
    )
    lines = render_text(report).splitlines()
    assert lines[0].startswith("RANGE: one of executions 23 to 47 of 134 begins the fault (24 limits between")
    assert not [line for line in lines if line.startswith("  pass ")]
    assert any("GVNPass on f" in line for line in lines) and any("LoopDeletionPass on f" in line for line in lines)
    assert any("do not end as BAD: SROAPass on f, execution 23 of 134: found" in line for line in lines)


# -- what the program depends on ----------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("int main(void) { return 0; }", []),
        ('const char *s = "50%"; int main(void) { return 0x310f + s[0]; }', []),
        ("#include <time.h>\nint main(void) { return clock() > 9; }", ["clock"]),
        ("#include <sys/time.h>\nint main(void) { struct timeval t; return gettimeofday(&t, 0); }", ["clock"]),
        ("int main(void) { return __builtin_ia32_rdtsc() > 9; }", ["clock"]),
        ("#include <unistd.h>\nint main(void) { return getpid() & 1; }", ["process ids"]),
        ('#include <stdio.h>\nint main(void) { return !fopen("/dev/urandom", "r"); }', ["random numbers"]),
        ("#include <sys/random.h>\nint main(void) { char c; return getrandom(&c, 1, 0); }", ["random numbers"]),
        ('#include <stdio.h>\nint main(int c, char **v) { return printf("%p %d\\n", (void *)v, c); }', ["addresses"]),
        (
            "#include <pthread.h>\nvoid *f(void *p) { return p; }\n"
            "int main(void) { pthread_t t; return pthread_create(&t, 0, f, 0); }",
            ["threads"],
        ),
    ],
    ids=[
        "nothing",
        "no look-alikes",
        "clock",
        "gettimeofday",
        "rdtsc",
        "getpid",
        "urandom",
        "getrandom",
        "%p",
        "pthread",
    ],
)
def test_dependences_are_seen_in_the_object(text: str, kinds: list[str], tmp_path: Path) -> None:
    source, compiled = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text(text)
    subprocess.run(["clang-14", "-O1", "-c", str(source), "-o", str(compiled)], check=True)
    assert [one.split(":")[0].removeprefix("the program depends on ") for one in cautions_of([compiled])] == kinds


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("long f(char *a, char *b) { return a - b; }", ""),
        ("int f(char *a, char *b) { return a < b && a != 0; }", ""),
        ("int f(char *a) { return (unsigned long)a & 63; }", "f"),
        ("int g(int x) { return x; }\nint f(char *a) { return (unsigned long)a % 7; }", "f"),
        ("unsigned long f(char *a) { unsigned long n = (unsigned long)a; return n >> 4; }", "f"),
    ],
    ids=["difference", "comparison", "mask", "hash", "variable"],
)
def test_an_address_as_a_number_is_seen(text: str, function: str, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text(text)
    command = ["clang-14", "-O1", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", str(source), "-o", "-"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert computes_with_addresses(printed.stdout) == function


def test_files_that_are_no_elf_show_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_bytes(b"\x7fELF and no more")
    assert cautions_of([tmp_path / "x.o", tmp_path / "missing.o"]) == ()


@pytest.mark.parametrize(
    ("good", "bad", "moved"),
    [
        ("exit 0", "exit 1", None),
        (f'[ "$(nice)" = {NICENESS} ]', "exit 1", True),
        ("exit 0", f'[ "$(nice)" != {NICENESS} ]', False),
    ],
    ids=["steady", "the good side moves", "the bad side moves"],
)
def test_a_side_that_moves_with_its_priority(
    good: str, bad: str, moved: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steadiness_module, "REPEATS", 1)
    for name, body in (("g", good), ("b", bad)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)

    class Run:
        def scratch(self, name: str) -> Any:
            import tempfile

            class Folder(tempfile.TemporaryDirectory):  # type: ignore[type-arg]
                def __enter__(self) -> Any:
                    return Path(super().__enter__())

            return Folder(dir=tmp_path)

    judge = SimpleNamespace(
        program=SimpleNamespace(replace=lambda digest: tmp_path / digest, run=Run()),
        oracle=ReferenceOracle(Expected(b"", 0)),
    )
    found = steadiness(cast(Any, judge), "g", "b", None)
    assert (found.good_side if found is not None else None) is moved


# -- the ends once more -------------------------------------------------------------------------------


class Turns:
    """A judge whose objects answer in turn."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.left = list(outcomes)

    def run(self, key: str) -> Outcome:
        return self.left.pop(0)


def ends_again(status: SearchStatus, end: Turns, reference: Turns | None) -> None:
    axis = SimpleNamespace(total=9, object_at=str)
    result = SimpleNamespace(status=status, good_end=None, failure_rate=None)
    other = SimpleNamespace(judge=reference, object="r") if reference is not None else None
    ask_ends_again(cast(Any, result), cast(Any, axis), cast(Any, end), cast(Any, other), command=False)


def test_ends_that_keep_their_verdicts_are_believed() -> None:
    ends_again(SearchStatus.WRONG_AT_ZERO, Turns(BAD, BAD, BAD), Turns(GOOD, GOOD, GOOD))
    ends_again(SearchStatus.NO_DIFFERENCE, Turns(GOOD, GOOD, GOOD), None)


@pytest.mark.parametrize(
    ("status", "end", "reference", "who"),
    [
        (SearchStatus.WRONG_AT_ZERO, (BAD, BAD, BAD), (GOOD, BAD), "the reference was GOOD"),
        (SearchStatus.WRONG_AT_ZERO, (BAD, GOOD), (GOOD, GOOD), "limit 0 was BAD"),
        (SearchStatus.NO_DIFFERENCE, (GOOD, GOOD, BAD), (GOOD, GOOD, GOOD), "the bad build was GOOD"),
    ],
    ids=["the check turned", "limit 0 is right now", "the fault shows late"],
)
def test_an_end_that_changes_its_verdict_accuses_the_check(
    status: SearchStatus, end: tuple[Outcome, ...], reference: tuple[Outcome, ...], who: str
) -> None:
    with pytest.raises(OracleUnusable, match=who):
        ends_again(status, Turns(*end), Turns(*reference))


def test_there_is_a_pause_for_each_turn() -> None:
    from mccprobe.bisection.passes.ends_again import TURNS

    assert len(PAUSES_S) == TURNS


# -- files that a program writes ----------------------------------------------------------------------


def script(folder: Path, body: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo 1 > a", "as the reference"),
        ("echo 2 > a", "writes '2' to a, the reference '1'"),
        ("true", "does not write a, which the reference writes"),
        ("echo 1 > a; echo 1 > b", "writes b, which the reference does not write"),
        ("echo 1 > a; echo 1 > core; echo 1 > gmon.out", "as the reference"),
        ("echo 1 > a; ln -s /dev/zero z; mkfifo f", "as the reference"),
    ],
)
def test_files_are_compared_by_content(body: str, reason: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    expected = Expected(
        b"", 0, (Written("a", "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865", 2, b"1\n"),)
    )
    outcome = ReferenceOracle(expected).judge(script(tmp_path, body), folder)
    assert outcome.reason == reason
    assert outcome.verdict is (Verdict.GOOD if reason == "as the reference" else Verdict.BAD)


def test_files_are_not_compared_where_nobody_asked(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    assert ReferenceOracle(Expected(b"", 0)).judge(script(tmp_path, "echo 1 > a"), folder).verdict is Verdict.GOOD


def test_files_that_differ_from_run_to_run_are_no_measure() -> None:
    one, other, late = Written("log", "1", 1), Written("log", "2", 1), Written("tmp.x", "3", 1)
    same = Written("out", "4", 1)
    assert stable((one, same), (other, same, late)) == ((same,), ("log", "tmp.x"))


def test_only_what_changed_in_the_users_folder_is_a_file_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("x")
    (tmp_path / "sub").mkdir()
    before = state_of(tmp_path)
    (tmp_path / "sub" / "out").write_text("y")
    (tmp_path / "skip.log").write_text("z")
    assert [one.name for one in written_since(tmp_path, before, ["*.log"])] == ["sub/out"]
    assert is_ignored("deep/core.123", ()) and not is_ignored("score.txt", ())


def test_a_command_that_is_slow_is_told_from_one_that_is_wrong(tmp_path: Path) -> None:
    outcome = CommandOracle([str(script(tmp_path, "sleep 9"))], timeout_s=0.1).judge(tmp_path / "x", tmp_path)
    assert outcome.timed_out and outcome.verdict is Verdict.UNRESOLVED


def test_a_finding_in_the_program_is_shown_with_another_caveat(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass is not confirmed for another reason; that the program reads what it never wrote matters more."""
    found = ProgramCheck(CheckState.FINDING, "MSan (program): the program reads the local 'best' without a value")
    asked = BisectReport(
        Status.EXPOSED,
        "clang",
        "cc",
        "clang 14",
        False,
        "a.c",
        (),
        program_check=found,
        culprit=Culprit("SROAPass", "sroa", "f", "f", "log", 3, 5),
        confirmation=Confirmation("none", "the fault may lie in the code generator"),
    )
    assert f"  program     finding: {found.text}\n" in render_text(asked)
    same = Confirmation("none", f"{found.text}; and more")
    assert render_text(replace(asked, confirmation=same)).count(found.text) == 1
