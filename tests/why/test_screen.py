"""The screen: planted faults of programs stop the accusation, real faults of compilers do not."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mccprobe.base.errors import SourceDoesNotCompile
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen import sanitizers as screen_sanitizers
from mccprobe.explain.screen.build import plain_options
from mccprobe.explain.screen.fast_math import parts_named
from mccprobe.explain.screen.promises import NAME as PROMISES
from mccprobe.explain.screen.promises import without_promises
from mccprobe.explain.screen.run import ScreenChecks, screen
from mccprobe.explain.screen.sanitizers import UBSAN
from mccprobe.explain.screen.weigh import weighed
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.why_record import Screen, ScreenCheck, ScreenOutcome, StepState

CASES = Path(__file__).resolve().parents[1] / "cases"
CLEAN, FINDING, HINT, NOT_RUN = (
    ScreenOutcome.CLEAN, ScreenOutcome.FINDING, ScreenOutcome.HINT, ScreenOutcome.NOT_RUN,
)  # fmt: skip
Opener = Callable[..., Workspace]

pytestmark = pytest.mark.toolchain("clang-14")


def one(workspace: Workspace, name: str) -> ScreenCheck:
    """One check by its name, not weighed against others."""
    [check] = [row[2] for row in ScreenChecks(workspace, Deadline()).rows() if row[0] == name]
    return check()


def screened(workspace: Workspace, deadline: Deadline | None = None) -> Screen:
    return screen(workspace.request, workspace, tell=lambda text: None, deadline=deadline or Deadline())


# -- planted faults of programs: each is wrong at -O2 and right at -O0 -------------------------------

OVERFLOW = """
#include <stdio.h>
__attribute__((noinline)) static int larger(int x) { return x + 1 > x; }
int main(int count, char **names) { printf("%d\\n", larger(2147483646 + count)); return 0; }
"""
ALIASING = """
#include <stdio.h>
__attribute__((noinline)) static int both(int *whole, float *part) { *whole = 1; *part = 2.0f; return *whole; }
int main(void) { int cell; printf("%d\\n", both(&cell, (float *)&cell) == 1); return 0; }
"""
UNSET = """
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) static void fill(void) { volatile char dirt[64]; memset((void *)dirt, 0, sizeof dirt); }
__attribute__((noinline)) static int read(int store) { int cell[16]; if (store) cell[3] = 7; return cell[3 + !store]; }
int main(int count, char **names) { fill(); printf("%d\\n", read(count > 9) == 0 && !OPTIMIZED); return 0; }
"""
OUTSIDE = """
#include <stdio.h>
static int cells[4], beyond[4];
int main(int count, char **names) { cells[count + 3] = 5; printf("%d %d\\n", beyond[3], OPTIMIZED); return 0; }
"""
RACE = """
#include <pthread.h>
#include <stdio.h>
static int total;
static void *add(void *unused) { for (int i = 0; i < 100; i++) total++; return unused; }
int main(void) {
  pthread_t one;
  pthread_create(&one, 0, add, 0);
  for (int i = 0; i < 100; i++) total++;
  pthread_join(one, 0);
  printf("%d\\n", OPTIMIZED);
  return 0;
}
"""
ADDRESS = """
#include <stdint.h>
#include <stdio.h>
int main(void) {
  int here;
  int fixed = ((uintptr_t)&here >> 24) == 0x7fffff;
  printf("%d\\n", fixed || OPTIMIZED);
  return 0;
}
"""
CONTRACTED = """
#include <stdio.h>
static volatile double a = 1.0 + 0x1p-30, b = 1.0 - 0x1p-30;
int main(void) { double x = a, y = b, z = x * y - 1.0; printf("%a\\n", z); return 0; }
"""
NAN = """
#include <stdio.h>
static volatile double n;
int main(void) { double x = n / n; puts(x == x ? "number" : "not a number"); return 0; }
"""
ORDER = '#include <stdio.h>\nint main(void) { int i = 1; i = i++ + 1; printf("%d\\n", i + OPTIMIZED); return 0; }\n'
HEAP = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { int *cells = malloc(64); printf("%d\\n", cells[3] + OPTIMIZED); free(cells); return 0; }
"""
NO_RETURN = """
#include <stdio.h>
__attribute__((noinline)) static int least(int x) { if (x > 5) return x; }
int main(int count, char **names) { int got = least(count); printf("%d\\n", got); return OPTIMIZED; }
"""
RESTRICTED = """
#include <stdio.h>
__attribute__((noinline)) int both(int *restrict a, int *restrict b) { *a = 1; *b = 2; return *a; }
int main(void) { int cell = 0; printf("%d\\n", both(&cell, &cell)); return 0; }
"""
PURE = """
#include <stdio.h>
static int calls;
__attribute__((pure, noinline)) int next(void) { return ++calls; }
int main(void) { int a = next(); int b = next(); printf("%d %d\\n", a, b); return 0; }
"""
ASSUMED = """
#include <stdio.h>
__attribute__((noinline)) int f(int n) { __builtin_assume(n > 5); return n > 4 ? 1 : 2; }
int main(int count, char **names) { printf("%d\\n", f(count)); return 0; }
"""
JUMPS = """
#include <setjmp.h>
#include <stdio.h>
static jmp_buf place;
__attribute__((noinline)) static void hop(void) { longjmp(place, 1); }
int main(int count, char **names) { int n = count; if (!setjmp(place)) { n = 7; hop(); } printf("%d\\n", n); return 0; }
"""
HANDLER = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static int done;
static void on(int number) { done = 1; }
int main(void) {
  signal(SIGALRM, on);
  ualarm(50000, 0);
  unsigned long n = 0;
  while (!done && n < 2000000000UL) n++;
  printf("%d\\n", n < 2000000000UL);
  return 0;
}
"""
NO_PROTOTYPE = """
#include <stdio.h>
int f();
__attribute__((noinline)) int g(int n) { float x = 1.0f; return f(&x, &x, n); }
int f(int *p, float *q, int n) { *p = 1; *q = (float)n; return *p; }
int main(int count, char **names) { printf("%d\\n", g(count + 1)); return 0; }
"""
# what makes the optimised build wrong where the planted fault does not do it by itself on every machine
WRONG_IF_OPTIMIZED = """
#ifdef __OPTIMIZE__
#define OPTIMIZED 1
#else
#define OPTIMIZED 0
#endif
"""


@pytest.mark.parametrize(
    ("text", "check", "word"),
    [
        (OVERFLOW, "UBSan", "signed integer overflow"),
        (OVERFLOW, "-fwrapv", "signed overflow"),
        (ALIASING, "-fno-strict-aliasing", "strict aliasing"),
        (UNSET, "MSan", "use-of-uninitialized-value"),
        (UNSET, "-ftrivial-auto-var-init=pattern", "never wrote"),
        (OUTSIDE, "ASan", "global-buffer-overflow"),
        (RACE, "TSan", "data race"),
        (ADDRESS, "repeated runs, fixed addresses", "depends on addresses or time"),
        (ORDER, "warnings", "-Wunsequenced"),
        (HEAP, "MSan", "use-of-uninitialized-value"),
        (HEAP, "fresh heap filled", "heap memory that it never wrote"),
        (NO_RETURN, "MSan", "use-of-uninitialized-value"),
        (RESTRICTED, PROMISES, "restrict"),
        (PURE, PROMISES, "a pure or const function"),
        (ASSUMED, PROMISES, "an assumption"),
        (JUMPS, PROMISES, "plain locals around setjmp"),
        (HANDLER, PROMISES, "plain variables beside a signal handler"),
    ],
    ids=lambda value: value if len(value) < 40 else "",
)
def test_a_planted_fault_is_found(opened: Opener, text: str, check: str, word: str) -> None:
    args = ("-O2", "-pthread") if text is RACE else ("-O2",)
    found = one(opened(WRONG_IF_OPTIMIZED + text, args=args, reference="-O0 -pthread"), check)
    assert (found.outcome, found.name) == (FINDING, check), found
    assert word in found.text


def test_without_a_prototype_types_are_not_known_to_be_kept(opened: Opener) -> None:
    """UBSan and ASan are silent and no conversion shows in the tree: only the switch tells."""
    result = screened(opened(NO_PROTOTYPE, reference="-O0"))
    assert {check.name for check in result.checks if check.outcome is FINDING} == {"-fno-strict-aliasing"}


@pytest.mark.parametrize(
    ("text", "check"), [(OVERFLOW, "-fwrapv"), (ALIASING, "-fno-strict-aliasing"), (RESTRICTED, PROMISES)]
)
@pytest.mark.parametrize("form", ["ll", "bc"])
def test_ir_has_its_switches_too(opened: Opener, tmp_path: Path, text: str, check: str, form: str) -> None:
    """What clang's options leave out is taken out of the text: clang does not apply them to IR."""
    (tmp_path / "program.c").write_text(text)
    ir = tmp_path / f"ir.{form}"
    argv = ["clang-14", "-O2", "-w", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S" if form == "ll" else "-c"]
    assert run(RunSpec([*argv, str(tmp_path / "program.c"), "-o", str(ir)])).ok
    found = one(opened(ir, reference="-O0"), check)
    assert found.outcome is FINDING and "alone turns it right" in found.text


def test_promises_are_taken_out_of_the_users_own_text_alone() -> None:
    module = (
        "define i32 @f(i32* noalias %a, %s* noalias sret(%s) %b) #0 {\n  call void @llvm.assume(i1 %c)\n  ret i32 0\n"
        "}\n"
        "attributes #0 = { nounwind readonly willreturn }\n"
    )
    assert without_promises(module, "int f(int *a); size_t strlen(const char *);") == (module, [])
    changed, kinds = without_promises(module, None)
    assert kinds == ["restrict", "a pure or const function", "an assumption"]
    assert "i32* %a, %s* noalias sret" in changed and "readonly" not in changed and "assume" not in changed
    assert without_promises(module, "int *__restrict__ a")[1] == ["restrict"]


def test_inline_assembly_is_told(opened: Opener) -> None:
    text = (
        '#include <stdio.h>\nint main(void) { int x = 1; __asm__("incl %0" : "+r"(x)); return printf("%d\\n", x); }\n'
    )
    found = one(opened(text, reference="-O0"), PROMISES)
    assert found.outcome is HINT and "inline assembly" in found.text


def test_contraction_is_a_licence(opened: Opener) -> None:
    workspace = opened(CONTRACTED, args=("-O2", "-mfma"), reference="-O2 -mfma -ffp-contract=off")
    assert one(workspace, "-ffp-contract=off").outcome is FINDING
    assert one(workspace, "-fno-fast-math").outcome is CLEAN


def test_fast_math_is_a_promise(opened: Opener) -> None:
    workspace = opened(NAN, args=("-O2", "-ffast-math"), reference="-O2")
    found = one(workspace, "-fno-fast-math")
    assert found.outcome is FINDING and "promise" in found.text
    assert "-fno-fast-math" in found.command
    # and which part of it: the comparison with a NaN
    told = found.text.splitlines()[1].partition(";")[0]
    assert told == "of its parts, each alone turns it right: -fhonor-nans, -fno-finite-math-only"


def test_parts_of_fast_math_that_no_compiler_takes_or_that_do_nothing() -> None:
    def nothing(part: str) -> Verdict | None:
        if part == "-fno-approx-func":
            raise SourceDoesNotCompile("unknown argument")
        return None if part == "-fmath-errno" else Verdict.BAD

    told = parts_named(nothing)
    assert told.startswith("none of its 10 parts alone") and told.endswith("does not take -fno-approx-func")
    assert "-fmath-errno" not in told


def test_a_finding_stops_the_accusation(opened: Opener) -> None:
    """The whole screen: UBSan speaks, so -fwrapv stays a finding too. A second time nothing is run."""
    workspace = opened(OVERFLOW, reference="-O0")
    result = screened(workspace)
    findings = {check.name for check in result.checks if check.outcome is FINDING}
    assert {"UBSan", "-fwrapv"} <= findings
    assert not result.clean and result.state is StepState.DONE
    assert "not yet the compiler" in result.reason and "signed integer overflow" in result.reason
    lines = workspace.journal.path.read_text().count("\n")
    assert screened(workspace) == result
    assert workspace.journal.path.read_text().count("\n") == lines


def case(name: str) -> tuple[Path, dict[str, object]]:
    """A real fault of a compiler, as options of a bisection."""
    expect = json.loads((CASES / name / "expect.json").read_text())
    good, bad = expect["good_args"], expect["bad_args"]
    flag = bad[len(good) :] if bad[: len(good)] == good and "-mllvm" in bad else []
    source = next(path for path in (CASES / name).iterdir() if path.stem == "test")
    options = {"flags": (flag[1],)} if flag else {"reference": shlex.join(good)}
    return source, {"compiler": expect["compiler"], "args": good if flag else bad, **options}


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("05-newgvn-rem", {"warnings", "-fno-finite-loops"}),
        ("07-loop-interchange", {"-fwrapv"}),
        ("16-instcombine16", {"-fno-strict-aliasing"}),
        ("23-tailcc-shrink-wrap", set()),
    ],
)
def test_real_faults_of_compilers_stay_accused(
    opened: Opener, compiler: Callable[..., str], name: str, hints: set[str]
) -> None:
    """All 15 are clean; these are the ones where a switch or a warning would stop the accusation falsely, and IR."""
    source, options = case(name)
    compiler(int(str(options["compiler"]).rpartition("-")[2]))
    result = screened(opened(source, **options))
    assert result.clean and result.reason == "", result.reason
    assert {check.name for check in result.checks if check.outcome is HINT} == hints
    for check in result.checks:
        assert check.text or check.outcome is CLEAN  # what is not run says why
    if source.suffix == ".ll":
        not_run = [check for check in result.checks if check.outcome is NOT_RUN]
        assert {"UBSan", "MSan", "TSan"} <= {check.name for check in not_run}


def test_a_build_that_is_not_wrong_gives_no_finding(opened: Opener) -> None:
    """Nothing is turned right that was never wrong, in C++ with its library as well."""
    text = """#include <iostream>
#include <map>
int main() { std::map<std::string, int> all{{"a", 1}}; all["b"] += 2; std::cout << all.size() << "\\n"; }
"""
    workspace = opened("#include <string>\n" + text, suffix=".cpp", args=("-O2",), flags=("-enable-newgvn",))
    result = screened(workspace)
    assert result.clean, result.reason
    by_name = {check.name: check for check in result.checks}
    assert by_name["-fwrapv"].text == "the bad setting itself was never wrong here"
    assert by_name["repeated runs, random addresses"].outcome is HINT


def test_a_spent_budget_says_so(opened: Opener) -> None:
    result = screened(opened(OVERFLOW, reference="-O0"), Deadline(1e-9))
    assert result.state is StepState.BUDGET
    assert all(check.outcome is NOT_RUN and check.text for check in result.checks)


def test_a_sanitizer_that_shows_nothing_is_not_called_clean(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a fault of its own must be reported first."""
    monkeypatch.setattr(screen_sanitizers, "SANITIZERS", (replace(UBSAN, control="int main(void) { return 0; }\n"),))
    found = one(opened(OVERFLOW, reference="-O0"), "UBSan")
    assert found.outcome is NOT_RUN and "does not report a planted fault" in found.text


@pytest.mark.parametrize("command", ["true {exe}", "env -i {exe}"])
def test_a_program_that_the_check_does_not_start_is_not_called_clean(opened: Opener, command: str) -> None:
    """A check that looks at the file alone, or takes the sanitizer's options away, proves nothing."""
    for name in ("UBSan", "ASan", "MSan", "TSan"):
        found = one(opened(OVERFLOW, reference="-O0", oracle=command), name)
        assert found.outcome is NOT_RUN and "does not start the program" in found.text, found


def test_plain_options() -> None:
    given = ["-O3", "-fsanitize=address", "-mllvm", "-x=1", "-Werror=all", "-DA=1", "-Od3", "-I", "inc", "-mavx"]
    assert plain_options(given) == ("-DA=1", "-I", "inc", "-mavx")


class NoBuilder:
    """Where the source is not looked at."""

    foreign = ("library.a",)
    sources = ("program.c", "library.a")


@pytest.mark.parametrize(
    ("name", "excluding"), [("-fwrapv", ["UBSan"]), ("-fno-finite-loops", ["-O0"]), ("-ffp-contract=off", [])]
)
def test_a_finding_is_taken_back_only_by_what_ran_clean(name: str, excluding: list[str]) -> None:
    finding = ScreenCheck(name, "program", FINDING, "alone turns it right")
    for outcome in ScreenOutcome:
        others = [ScreenCheck(other, "host", outcome) for other in excluding]
        [*_, weighted] = weighed([*others, finding], NoBuilder())  # type: ignore[arg-type]
        expected = HINT if outcome is CLEAN and excluding else FINDING
        assert weighted.outcome is expected
        # a part that was not reached excludes nothing
        kernel = [ScreenCheck(other, "kernel", NOT_RUN) for other in excluding]
        assert weighed([*others, *kernel, finding], NoBuilder())[-1].outcome is FINDING  # type: ignore[arg-type]


def test_what_cannot_be_seen_whole_may_alias() -> None:
    clean = [ScreenCheck(name, "program", CLEAN) for name in ("ASan", "UBSan")]
    finding = ScreenCheck("-fno-strict-aliasing", "program", FINDING, "alone turns it right")
    assert weighed([*clean, finding], NoBuilder())[-1] == finding  # type: ignore[arg-type]
