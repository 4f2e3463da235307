"""The log of -opt-bisect-limit: five dialects as the installed clangs print them, and hard lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.targets.llvm.opt_bisect import (
    KEPT_TAIL_BYTES,
    LogReader,
    LogSummary,
    PassExecution,
    parse_line,
)

LOGS = Path(__file__).resolve().parents[1] / "data" / "opt-bisect-logs"
DIALECTS = (13, 14, 15, 16, 19)
FUNCTIONS = {"nest", "loop", "odd", "even", "a name (with) parens"}


def log_of(major: int) -> str:
    return (LOGS / f"clang-{major}.txt").read_text()


def executions_of(text: str) -> list[PassExecution]:
    parsed = [parse_line(line) for line in text.splitlines()]
    return [execution for execution in parsed if execution is not None]


def read(text: bytes | str, around: int = 0, size: int = 1 << 16) -> tuple[LogSummary, bytes]:
    data = text.encode() if isinstance(text, str) else text
    reader = LogReader(around)
    rest = b"".join(reader.feed(data[at : at + size]) for at in range(0, len(data), size))
    summary, end = reader.finish()
    return summary, rest + end


# --- the dialects -------------------------------------------------------------------------------


@pytest.mark.parametrize("major", DIALECTS)
def test_every_line_of_a_dialect_is_understood(major: int) -> None:
    text = log_of(major)
    executions = executions_of(text)
    assert [execution.number for execution in executions] == list(range(1, len(text.splitlines()) + 1))
    for execution in executions:
        assert execution.ran and execution.name and execution.target, execution
        if execution.function and execution.target != "(odd, even)":
            assert execution.function in FUNCTIONS, execution
        assert bool(execution.function) or execution.is_loop or execution.target == "[module]", execution
    summary, rest = read(text)
    assert (summary.total, summary.ran, rest) == (len(executions), len(executions), b"")


@pytest.mark.parametrize("major", DIALECTS)
@pytest.mark.toolchain
def test_logs_are_what_the_compiler_prints(major: int, compiler: Callable[..., str], tmp_path: Path) -> None:
    """The files under tests/data are not invented: their recipe gives them again."""
    name = compiler(major)
    recipe = (LOGS / "make.sh").read_text().replace("\\\n", " ")
    line = next(line for line in recipe.splitlines() if line.strip().startswith('"clang-$major"'))
    options = line.partition('"clang-$major"')[2].partition("-c program.c")[0].split()
    ran = subprocess.run(
        [name, *options, "-c", "program.c", "-o", str(tmp_path / "o")], cwd=LOGS, capture_output=True, check=True
    )
    shown = [(one.number, one.name) for one in executions_of(ran.stderr.decode())]
    assert shown == [(one.number, one.name) for one in executions_of(log_of(major))]


def test_a_loop_pass_before_clang_19_is_placed_by_the_line_before() -> None:
    """clang 19 names the function of every loop pass: taken away, the rule must find it again."""
    named = {one.number: one.function for one in executions_of(log_of(19)) if " in function " in one.target}
    assert len(named) > 50
    older = re.sub(r"on loop %(\S+) in function .*", r"on \1", log_of(19))
    for number, function in named.items():
        summary, _ = read(older, number)
        assert (summary.function, summary.function_from) == (function, "inferred"), summary


@pytest.mark.parametrize("major", [13, 14, 15, 16])
def test_inference_on_the_real_older_dialects(major: int) -> None:
    """Block names tell the truth here: `.i.i` was inlined into the last function, `.i` into `loop`."""
    executions = executions_of(log_of(major))
    loops = [one for one in executions if one.is_loop and one.target != "loop"]
    assert len(loops) > 50
    for one in loops:
        header = one.target.partition("%")[2].partition("<")[0] if "%" in one.target else one.target
        depth = header.count(".i") - header.count(".inc")
        if header.startswith("while"):
            depth += 1
        summary, _ = read(log_of(major), one.number)
        assert summary.function == ("nest", "loop", "a name (with) parens")[depth], (one, summary)
        assert summary.function_from == "inferred" and summary.at == one


@pytest.mark.parametrize("major", DIALECTS)
def test_a_codegen_loop_pass_is_placed_by_the_next_line_that_names_a_function(major: int) -> None:
    executions = executions_of(log_of(major))
    bare = [one for one in executions if one.target == "loop" and one.is_loop]
    assert bare and all(" " in one.name for one in bare)
    for one in bare:
        truth = next(other.function for other in executions[one.number :] if other.function)
        summary, _ = read(log_of(major), one.number)
        assert (summary.function, summary.function_from) == (truth, "inferred")


@pytest.mark.parametrize("major", DIALECTS)
def test_a_function_called_loop_is_no_loop(major: int) -> None:
    named = [one for one in executions_of(log_of(major)) if one.target == "loop" and not one.is_loop]
    assert {"SimplifyCFGPass", "InstCombinePass"} <= {one.name for one in named}
    assert {one.function for one in named} == {"loop"}


# --- single lines -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "name", "function", "is_loop"),
    [
        ("SROAPass on f", "SROAPass", "f", False),
        ("GlobalDCEPass on [module]", "GlobalDCEPass", "", False),
        ("InlinerPass on (f)", "InlinerPass", "f", False),
        ("InlinerPass on (f, g)", "InlinerPass", "f, g", False),
        ("LICMPass on Loop at depth 1 containing: %3<header>,%7<latch>", "LICMPass", "", True),
        ("LICMPass on Parallel Loop at depth 1 containing: %3<header>", "LICMPass", "", True),
        ("LoopRotatePass on <unnamed loop>", "LoopRotatePass", "", True),
        ("LICMPass on .preheader", "LICMPass", "", True),
        ("IndVarSimplifyPass on loop %for.body in function f g", "IndVarSimplifyPass", "f g", True),
        ("LoopVectorizePass on f", "LoopVectorizePass", "f", False),
        ("LoopUnrollAndJamPass on for.body", "LoopUnrollAndJamPass", "", True),
        ("LoopInterchangePass on for.cond", "LoopInterchangePass", "", True),
        ("Loop Strength Reduction on loop", "Loop Strength Reduction", "", True),
        ("SROA on loop", "SROA", "loop", False),
        ("SROAPass on Loop", "SROAPass", "Loop", False),
        ("SROAPass on module", "SROAPass", "module", False),
        ("SROAPass on a on b", "SROAPass", "a on b", False),
        ("X86 DAG->DAG Instruction Selection on function (main)", "X86 DAG->DAG Instruction Selection", "main", False),
        ("Fix what depends on order on function (f)", "Fix what depends on order", "f", False),
        ("Loop work on arrays on loop", "Loop work on arrays", "", True),
        ("Branch relaxation on function (a (b) c)", "Branch relaxation", "a (b) c", False),
        ("Old thing on basic block (entry) in function (f)", "Old thing", "f", False),
        ("Old thing on module (a.c)", "Old thing", "", False),
        ("Old thing on SCC (f, g)", "Old thing", "f, g", False),
        ("InvalidateAnalysisPass<llvm::AAManager> on f", "InvalidateAnalysisPass<llvm::AAManager>", "f", False),
        ("SROAPass on _ZN1a1bIiEEvT_", "SROAPass", "_ZN1a1bIiEEvT_", False),
        ("SROAPass on \udcff", "SROAPass", "\udcff", False),
    ],
)
def test_line(rest: str, name: str, function: str, is_loop: bool) -> None:
    for ran, words in ((True, "running"), (False, "NOT running")):
        execution = parse_line(f"BISECT: {words} pass (17) {rest}")
        assert execution is not None
        assert (execution.number, execution.ran, execution.name) == (17, ran, name)
        assert (execution.function, execution.is_loop) == (function, is_loop)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "BISECT: running pass",
        "x BISECT: running pass (1) A on b",
        "BISECT: running pass (x) A on b",
        "BISECT: running pass (1) no target here",
        f"BISECT: running pass ({'9' * 5000}) A on b",
    ],
)
def test_other_text_is_no_execution(line: str) -> None:
    assert parse_line(line) is None


# --- the stream ---------------------------------------------------------------------------------


def numbered(*rest: str, ran: int | None = None) -> str:
    return "".join(
        f"BISECT: {'' if ran is None or number <= ran else 'NOT '}running pass ({number}) {text}\n"
        for number, text in enumerate(rest, 1)
    )


def test_other_text_is_kept_verbatim_and_in_order() -> None:
    first, second, third = numbered("A on f", "B on f", "C on f").splitlines(keepends=True)
    hard = [
        "a.c:1:1: warning: running pass (3) is not a BISECT line\n",
        "  running pass (\n",
        "BISECT: something else\n",
        "note: BISECT: running pass (99) Z on f\n",
        "\n",
        "tab\there \r\n",
        "no newline at the end",
    ]
    text = "".join([hard[0], first, hard[1], hard[2], second, hard[3], third, hard[4], hard[5], hard[6]])
    for size in (1, 2, 7, 64, 1 << 16):
        summary, rest = read(text, size=size)
        assert (summary.total, summary.ran) == (3, 3)
        assert rest == "".join(hard).encode(), size


def test_bytes_that_are_no_utf8_are_kept() -> None:
    odd = b"\xff\xfe BISECT \0\n"
    summary, rest = read(numbered("A on f").encode() + odd + b"BISECT: running pass (2) B on \xff\xfe\n", around=2)
    assert rest == odd
    assert summary.at is not None and summary.at.number == 2


@pytest.mark.parametrize("end", ["BISECT: running pass (3) C on f", "BISECT: NOT running pass (3) C on f"])
def test_an_unterminated_last_line_counts(end: str) -> None:
    summary, rest = read(numbered("A on f", "B on f") + end, around=3)
    assert (summary.total, summary.ran, rest) == (3, 2 + ("NOT" not in end), b"")
    assert summary.at is not None and summary.at.name == "C" and summary.function == "f"


def test_a_line_cut_off_in_its_number_is_text() -> None:
    summary, rest = read(numbered("A on f") + "BISECT: running pass (2")
    assert (summary.total, summary.ran, rest) == (1, 1, b"BISECT: running pass (2")


def test_only_executions_that_ran_are_counted_as_run() -> None:
    summary, _ = read(numbered("A on f", "B on f", "C on f", ran=1), around=2)
    assert (summary.total, summary.ran) == (3, 1)
    assert summary.at == PassExecution(2, "B", "f", False)


def test_the_last_execution_is_known_without_asking() -> None:
    """An unlimited compile is asked for no number; its last line can be the culprit all the same."""
    text = numbered(*(f"P{n}Pass on f{n}" for n in range(9)))
    summary, _ = read(text + "warning: w\n")
    assert summary.at == PassExecution(9, "P8Pass", "f8", True)
    assert (summary.function, summary.function_from) == ("f8", "log")
    assert summary.around == tuple(text.splitlines()[-4:])
    assert read("")[0] == LogSummary(0, 0)


def test_context_is_three_lines_on_both_sides() -> None:
    text = numbered(*(f"P{n}Pass on f" for n in range(1, 12)))
    assert read(text, 6)[0].around == tuple(text.splitlines()[2:9])
    assert read(text, 1)[0].around == tuple(text.splitlines()[:4])


def test_a_number_that_is_not_there() -> None:
    summary, _ = read(numbered("A on f"), around=50)
    assert (summary.at, summary.function, summary.around) == (None, "", ())


def test_a_module_pass_takes_no_function_from_its_neighbours() -> None:
    text = numbered("LoopSimplifyPass on f", "GlobalDCEPass on [module]", "SROAPass on g")
    assert read(text, 2)[0].function == ""


@pytest.mark.parametrize("size", [1, 4096, KEPT_TAIL_BYTES, 1 << 16, 1 << 20])
def test_a_line_longer_than_what_is_kept(size: int) -> None:
    """An SCC of thousands of functions, and a warning as long: neither leaks into the other."""
    scc = "(" + ", ".join(f"function_{n}" for n in range(20_000)) + ")"
    noise = "w" * 300_000 + "\n"
    text = numbered("A on f", f"InlinerPass on {scc}", "C on g")
    first, second, third = text.splitlines(keepends=True)
    summary, rest = read(first + noise + second + third + noise[:-1], around=2, size=size)
    assert (summary.total, summary.ran) == (3, 3)
    assert rest == (noise + noise[:-1]).encode()
    assert summary.at is not None and summary.at.name == "InlinerPass"


def test_a_hundred_thousand_lines_stay_out_of_memory() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    lines = 100_000
    chunk: list[str] = []
    reader = LogReader(lines // 2)
    kept = 0
    tracemalloc.start()
    for number in range(1, lines + 1):
        chunk.append(
            f"BISECT: running pass ({number}) {'LoopSimplifyPass' if number % 9 else 'LICMPass'} on f{number}\n"
        )
        if len(chunk) == 500:
            kept += len(reader.feed("".join(chunk).encode()))
            chunk.clear()
    summary, _ = reader.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (summary.total, summary.ran, kept) == (lines, lines, 0)
    assert summary.at is not None and summary.at.number == lines // 2
    assert peak < 4 << 20, f"{peak} bytes"


def test_a_summary_comes_back_from_the_journal() -> None:
    summary, _ = read(log_of(16), 200)
    assert LogSummary.from_dict(summary.to_dict()) == summary
    assert LogSummary.from_dict(LogSummary(3, 2).to_dict()) == LogSummary(3, 2)
