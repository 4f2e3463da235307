"""`mccprobe why` as a user calls it: refusals, the run directory, budget, interrupt and resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import ExitCode, JournalUnreadable, UsageError
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.explain.options import STEPS, WhyOptions, parse_budget, read_why_options
from mccprobe.report.record import BisectReport, Confirmation, Culprit, Status
from mccprobe.report.render_why import render_why
from mccprobe.report.why_record import (
    BadInstruction,
    BuildFact,
    Confirmed,
    FlagSet,
    FlagSets,
    OtherKernel,
    PassCell,
    Screen,
    ScreenCheck,
    ScreenOutcome,
    Signature,
    StepState,
    Where,
    WhyReport,
    Workaround,
    Workarounds,
)

RunCli = Callable[..., Any]
GOLDENS = Path(__file__).resolve().parent / "goldens"
CASE = Path(__file__).resolve().parents[1] / "cases" / "07-loop-interchange" / "test.c"
QUESTION = (str(CASE), "--compiler", "clang-14", "--flag", "-enable-loopinterchange")
FEW = ("--step", "flags", "--step", "table")
needs_clang = pytest.mark.toolchain("clang-14")


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2m ", 120)])
def test_budgets(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-1m", "m", "10 m", "10d", "nan", "1e3"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        parse_budget(text)


def test_options_survive_run_json() -> None:
    options = WhyOptions(
        BisectOptions(flags=("a", "b"), args=("-O2",)), ("gemm-s4000",), 90.0, True, False, ("table",), ("k",)
    )
    document = json.loads(json.dumps({"schema_version": 2, "options": options.to_dict()}))
    assert read_why_options(document, Path("run.json")) == options


@pytest.mark.parametrize(
    "options",
    [
        None,
        [],
        {},
        {"bisect": []},
        {"bisect": {}, "sets": "x"},
        {"bisect": {}, "sets": [1]},
        {"bisect": {}, "what": 1},
        {"bisect": {"flags": 3}},
        {"bisect": {}, "skip_screen": 1},
    ],
)
def test_a_damaged_run_json(options: object) -> None:
    with pytest.raises(JournalUnreadable):
        read_why_options({"schema_version": 2, "options": options}, Path("run.json"))


def test_a_step_brings_what_it_needs() -> None:
    def wanted(*steps: str, **more: Any) -> set[str]:
        return {step for step in STEPS if WhyOptions(steps=steps, **more).wants(step)}

    assert wanted() == set(STEPS)
    assert wanted(skip_screen=True) == set(STEPS) - {"screen"}
    assert wanted("table") == {"bisect", "table"}
    assert wanted("flags") == {"flags"}
    assert wanted("facts", "screen") == {"facts", "screen"}


def test_flags_of_sets_come_first() -> None:
    flags = WhyOptions(BisectOptions(flags=("internal-regs-ra",)), sets=("gemm-s4000",)).flags
    assert len(flags) == 8 and flags[-1] == "internal-regs-ra"


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.clean
@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--set", "nothing"), 2, "unknown flag set"),
        (("--set", "gemm-s4000", "--flag", "FenceSetting=strict"), 2, "FenceSetting twice"),
        (("--budget", "soon"), 2, "is no time"),
        (("--step", "nothing"), 2, "--step"),
        (("--resume", "nowhere"), 4, "run.json"),
        (("--resume", "nowhere", "--flag", "x"), 2, "flags cannot be changed"),
        (("missing.c",), 4, "no such file"),
    ],
)
def test_refused(args: tuple[str, ...], code: int, told: str, run_cli: RunCli) -> None:
    run = run_cli("why", *args)
    assert run.code == code and told in run.stderr and run.stdout == "", run
    document = json.loads(run_cli("why", "--json", *args).stdout)
    assert (document["status"], document["exit_code"]) == ("error", code)


@needs_clang
@pytest.mark.clean("run", "bisect")
def test_resume_of_another_kind_of_run(run_cli: RunCli) -> None:
    assert run_cli("bisect", *QUESTION, "-o", "bisect", "--", "-O3").code == 0
    run = run_cli("why", "--resume", "bisect")
    assert run.code == 4 and "holds no options of `why`" in run.stderr, run
    assert run_cli("why", *QUESTION, "--step", "flags", "-o", "run", "--", "-O3").code == 0
    run = run_cli("bisect", "--resume", "run")
    assert run.code == 4 and "Traceback" not in run.stderr, run
    run = run_cli("why", *QUESTION, "-o", "run", "--", "-O3")
    assert run.code == 2 and "holds a run already" in run.stderr, run


# --- budget, interrupt, resume ---------------------------------------------------------------------


@needs_clang
@pytest.mark.clean("run")
def test_a_spent_budget_ends_cleanly_and_goes_on(run_cli: RunCli, root: Path) -> None:
    import jsonschema

    schema = json.loads((root / "reports/why.schema.json").read_text())
    run = run_cli("why", *QUESTION, *FEW, "--budget", "0.01s", "--json", "-o", "run", "--", "-O3")
    document = json.loads(run.stdout)
    jsonschema.validate(document, schema)
    assert run.code == document["exit_code"] == 6 and "budget" in document["stopped"], run
    assert json.loads(Path("run/result.json").read_text()) == document
    again = run_cli("why", "--resume", "run", "--json")
    assert again.code == 0, again
    found = json.loads(again.stdout)
    jsonschema.validate(found, schema)
    assert found["minimal_flag_sets"] == [["-enable-loopinterchange"]]
    assert (found["status"], found["culprit"]["function"]) == ("found", "relax")
    lines = Path("run/bisect/journal.jsonl").read_text()
    third = json.loads(run_cli("why", "--resume", "run", "--json").stdout)
    assert third["table"] == found["table"] and third["bisect"]["trials"]["runs"] == 0
    assert Path("run/bisect/journal.jsonl").read_text().startswith(lines)


@needs_clang
@pytest.mark.clean("run")
@pytest.mark.parametrize("stage", ["smallest flag set", "trial 3:", "table:"])
def test_interrupted_and_resumed(stage: str, run_cli: RunCli) -> None:
    argv = [sys.executable, "-m", "mccprobe", "why", *QUESTION, *FEW, "-o", "run", "--", "-O3"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if stage in line:
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "why --resume run" in stderr and stdout == "", (process.returncode, stderr)
    again = run_cli("why", "--resume", "run", "--json")
    document = json.loads(again.stdout)
    assert (again.code, document["culprit"]["function"]) == (0, "relax"), again
    for name in ("flags", "bisect"):
        entries = [json.loads(line) for line in Path(f"run/{name}/journal.jsonl").read_text().splitlines()]
        asked = [
            (entry["t"], entry.get("id"), entry.get("object"), entry.get("oracle"), entry.get("ordinal"))
            for entry in entries
            if entry["t"] not in ("note", "file")  # files have a line for each program that was linked
        ]
        assert len(asked) == len(set(asked)), "no trial runs twice"


@needs_clang
@pytest.mark.clean("run")
def test_text_of_a_run(run_cli: RunCli) -> None:
    run = run_cli("why", *QUESTION, "--step", "flags", "--step", "workarounds", "-o", "run", "--", "-O3")
    assert run.code == 0, run
    assert run.stdout.startswith("FOUND\n") and run.stdout == Path("run/report.txt").read_text()
    for told in (
        "{-enable-loopinterchange}  fails",
        "LoopInterchangePass (loop-interchange) on relax",
        "ways around:",
        "without -mllvm -enable-loopinterchange",
        "screen: skipped (not asked for)",
        "run directory: ",
    ):
        assert told in run.stdout, told
    assert "SIMULATED" not in run.stdout and "[sim]" not in run.stdout
    for told in ("... smallest flag set", "trial 1:", "... workaround 1 of"):
        assert told in run.stderr, told


# --- goldens ------------------------------------------------------------------------------------


def golden(name: str, text: str, update: bool) -> None:
    path = GOLDENS / name
    if update:
        path.write_text(text)
    assert text == path.read_text()


def test_help(run_cli: RunCli, update_goldens: bool) -> None:
    golden("why-help.txt", run_cli("why", "--help").stdout, update_goldens)


@pytest.mark.parametrize("name", ["found", "stopped"])
def test_text(name: str, update_goldens: bool) -> None:
    report = FOUND if name == "found" else STOPPED
    golden(f"why-{name}.txt", render_why(report), update_goldens)


def test_a_stop_names_the_way_on() -> None:
    """Text and page, after a stop only."""
    from mccprobe.report.pages.why_page import why_page

    for report, shown in ((FOUND, False), (STOPPED, True)):
        again = "mccprobe why --resume RUN --skip-screen"
        assert (again in render_why(report)) is shown
        assert (again in repr(why_page(report.to_dict("1.0")))) is shown


def test_json_of_made_up_records(root: Path) -> None:
    import jsonschema

    schema = json.loads((root / "reports/why.schema.json").read_text())
    for report in (FOUND, STOPPED):
        jsonschema.validate(json.loads(json.dumps(report.to_dict("1.0"))), schema)
        broken = report.to_dict("1.0")
        broken["workarounds"] = [{"change": "x"}]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


_DIGESTS = [digit * 64 for digit in "abcdef"]
_CULPRIT = Culprit("Machine Instruction Scheduler", "machine-scheduler", "f(int)", "_Z1fi", "log", 7, 9)
_BISECT = BisectReport(
    Status.FOUND, "sim", "mcc", "mccprobe-sim version 0", True, "k.mu", ("-mllvm -x",), _CULPRIT,
    Confirmation("option", "with -enable-misched=false the whole bad build is GOOD", "-enable-misched=false"),
    run_directory="RUN/bisect",
)  # fmt: skip
_INSTRUCTION = BadInstruction("%1 = FMA %2, %3", "%1 = FMA %2, %9", "f(int)", "bb.0", Confirmed.ALL_TOGETHER, 256)
FOUND = WhyReport(
    "sim", True, "mcc", "mccprobe-sim version 0", "k.mu", ("-mllvm -x", "-mllvm -y"),
    FlagSets(StepState.DONE, (FlagSet(("x",), 3, 4, _DIGESTS[0], {"x": "GOOD"}, ("x is a promise",)),), ("x", "y"),
             {"y": ("a", "b")}, 5, False, ("a note",)),
    Screen(StepState.DONE, (ScreenCheck("UBSan", "host", ScreenOutcome.CLEAN),
                            ScreenCheck("TSan", "kernel", ScreenOutcome.NOT_RUN, "lanes are no threads"))),
    _BISECT,
    Where(StepState.DONE, "mir", _INSTRUCTION, diff="-a\n+b\n", reproducer=(("llc", "a b.mir"),),
          reproducer_verified=True),
    (PassCell("on", "on", "as compiled", "BAD", _DIGESTS[0], 2, 2, "the bad build"),
     PassCell("off", "off", "as compiled", None, None, 0, 0, "not run: no option")),
    Signature("Machine Instruction Scheduler", "operand replaced in FMA", (OtherKernel("k2", None, "not tried"),)),
    Workarounds(StepState.DONE, (
        Workaround("the bad build as it is", ("-mllvm", "-x"), "BAD", 3.5, _DIGESTS[0], False, 2, 2),
        Workaround("-z=false", ("-mllvm", "-z=false"), "GOOD", 0.001, _DIGESTS[1], False, 0, 2, None, "told"),
        Workaround("-w", ("-mllvm", "-w"), "UNRESOLVED", note="compile: exit 1"),
    ), ("-v (only 30 are tried)",)),
    (BuildFact("-O0 with the flags", "GOOD", "0 of 2 runs BAD"), BuildFact("-Od3", None, "not tried")),
    notes=("a second, independent set: y",), warnings=("facts failed: a reason",), run_directory="RUN",
    report="RUN/bug-report/report.md", seconds=12.0,
)  # fmt: skip
_FINDING = ScreenCheck("UBSan", "host", ScreenOutcome.FINDING, "p.c:3:4: runtime error: signed integer overflow")
STOPPED = WhyReport(
    "clang", False, "clang", "clang version 14", "p.c", (), FlagSets(StepState.SKIPPED, notes=("no flags",)),
    Screen(StepState.DONE, (_FINDING,), "UBSan found undefined behaviour"), None,
    Where(StepState.NOT_RUN, reason="no pass is named"), (), Signature(), Workarounds(StepState.NOT_RUN),
    stopped="the program, not yet the compiler: UBSan found undefined behaviour", exit_code=ExitCode.ANSWER_IS_NO,
    run_directory="RUN",
)  # fmt: skip
