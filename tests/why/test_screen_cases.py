"""Programs that users reported: who is right is known, by linear scans over the limit and by sanitizers (data/).

The numbers are issues of llvm/llvm-project. Only the rows are run that decided wrongly, or that decide now.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen import sanitizers as screen_sanitizers
from mccprobe.explain.screen.before import doubts_of_ir
from mccprobe.explain.screen.cheap import cheap_screen
from mccprobe.explain.screen.ir import POISON
from mccprobe.explain.screen.promises import NAME as PROMISES
from mccprobe.explain.screen.run import HEAP, ScreenChecks, answered
from mccprobe.explain.screen.weigh import PATTERN
from mccprobe.report.why_record import Screen, ScreenOutcome

DATA = Path(__file__).parent / "data"
CLEAN, FINDING, HINT, NOT_RUN = (
    ScreenOutcome.CLEAN, ScreenOutcome.FINDING, ScreenOutcome.HINT, ScreenOutcome.NOT_RUN,
)  # fmt: skip
Opener = Callable[..., Workspace]
Compiler = Callable[..., str]

pytestmark = pytest.mark.toolchain("clang-14")


def rows_of(workspace: Workspace, names: Collection[str]) -> Screen:
    checks = ScreenChecks(workspace, Deadline())
    rows = [row for row in checks.rows() if row[0] in names]
    return answered(checks, rows, tell=lambda text: None, deadline=Deadline())


def outcomes(screen: Screen) -> dict[str, ScreenOutcome]:
    return {check.name: check.outcome for check in screen.checks}


def test_another_clangs_sanitizers_count(opened: Opener, compiler: Compiler) -> None:
    """129244: clang-19 has no runtime here; that -fwrapv turns it right is a hint where UBSan is clean."""
    found = rows_of(opened(DATA / "score.c", compiler=compiler(19), reference="-O0"), {"UBSan", "-fwrapv"})
    assert outcomes(found) == {"UBSan": CLEAN, "-fwrapv": HINT} and found.clean, found


@pytest.mark.parametrize("cheap", [True, False])
def test_ubsan_needs_no_runtime(
    opened: Opener, compiler: Compiler, monkeypatch: pytest.MonkeyPatch, cheap: bool
) -> None:
    """The same with no other clang: the checks trap."""
    monkeypatch.setattr(screen_sanitizers, "installed_clangs", dict)
    monkeypatch.setattr(screen_sanitizers.SanitizerChecks, "_lacks_runtime", lambda self, sanitizer: True)
    workspace = opened(DATA / "score.c", compiler=compiler(19), reference="-O0")
    found = cheap_screen(workspace) if cheap else rows_of(workspace, {"UBSan", "-fwrapv"})
    [ubsan] = [check for check in found.checks if check.name == "UBSan"]
    assert ubsan.outcome is CLEAN and "traps" in ubsan.text and found.clean, found


OVERFLOW = """
#include <stdio.h>
int main(int count, char **names) { int x = 2147483646 + count; printf("%d\\n", x + count > x); return 0; }
"""


@pytest.mark.parametrize("suffix", [".c", ".cc"])
def test_a_trap_is_a_finding_with_its_kind(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str
) -> None:
    """Through a check of the user's too, which sees another exit status only."""
    monkeypatch.setattr(screen_sanitizers, "installed_clangs", dict)
    monkeypatch.setattr(screen_sanitizers.SanitizerChecks, "_lacks_runtime", lambda self, sanitizer: True)
    workspace = opened(OVERFLOW, suffix=suffix, reference="-O0", oracle="sh -c '{exe} | grep -q 0'")
    found = rows_of(workspace, {"UBSan"})
    assert not found.clean and "signed integer overflow in an addition" in found.checks[0].text, found


def test_a_local_that_never_changes_is_not_to_blame(opened: Opener) -> None:
    """57110: what the local points to changes between setjmp and longjmp, the local does not."""
    found = rows_of(opened(DATA / "jump.c", reference="-O0"), {PROMISES})
    assert outcomes(found) == {PROMISES: CLEAN}, found


def test_cxx_is_weighed_like_c(opened: Opener, compiler: Compiler) -> None:
    """69744: the same text as C gives hints only."""
    args = ("-O2", "-march=haswell", "-mtune=skylake")
    workspace = opened(DATA / "list.cc", compiler=compiler(16), args=args, reference="-O0", run_args="8")
    names = {"UBSan", "ASan", "-fno-strict-aliasing", "-fwrapv"}
    found = rows_of(workspace, names)
    assert found.clean and outcomes(found)["-fno-strict-aliasing"] is HINT, found


@pytest.mark.parametrize("name", ["grid", "edge"])
def test_checks_that_use_the_users_folder_do_not_disturb_each_other(
    opened: Opener, compiler: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """69096 writes its result to a file in the folder of the check; 34577 has two sources."""
    monkeypatch.chdir(tmp_path)
    further = (str(DATA / "chooser.c"),) if name == "edge" else ()
    version = compiler(16) if name == "edge" else "clang-14"
    check = shlex.join(["sh", str(DATA / f"{name}-ok.sh")])
    workspace = opened(DATA / f"{name}.c", compiler=version, args=("-O2", *further), reference="-O0", oracle=check)
    repeats = {f"repeated runs, {which} addresses" for which in ("fixed", "random")}
    found = rows_of(workspace, {"-O0", PATTERN, HEAP, "UBSan", *repeats})
    assert found.clean and FINDING not in outcomes(found).values() and HINT not in outcomes(found).values(), found


def test_a_shift_by_the_width_is_the_programs_fault(opened: Opener, compiler: Compiler) -> None:
    """55727: poison, and no pass is to be named."""
    found = cheap_screen(opened(DATA / "shift.ll", compiler=compiler(16), reference="-O0"))
    assert outcomes(found)[POISON] is FINDING and "shift by its width" in found.reason, found


def test_a_pass_that_gets_poison_only_exposes_it(opened: Opener, compiler: Compiler) -> None:
    """The same text as the IR before a culprit; with shifts below the width there is no doubt."""
    workspace = opened(DATA / "shift.ll", compiler=compiler(16), reference="-O0")
    text = (DATA / "shift.ll").read_text()
    [doubt] = doubts_of_ir(workspace, text)
    assert "only exposes it" in doubt and "shift by its width" in doubt
    assert doubts_of_ir(workspace, text.replace("i64 64", "i64 63")) == ()


def test_an_array_without_values_is_the_programs_fault(opened: Opener) -> None:
    """63764: the cheap part is enough."""
    found = cheap_screen(opened(DATA / "copy.c", reference="-O0"))
    assert outcomes(found)["MSan"] is FINDING and outcomes(found)[PATTERN] is FINDING, found
