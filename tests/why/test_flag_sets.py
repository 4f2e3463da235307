"""The smallest flag sets, on a program whose result is a known function of its flags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mccprobe.base.errors import UsageError
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.flag_sets.search import good_runs_needed, smallest_flag_sets
from mccprobe.report.why_record import FlagSets, StepState
from mccprobe.search.confidence import miss_ratio
from mccprobe.targets.flags.catalogue import load_catalogue

pytestmark = pytest.mark.toolchain("clang-14")
Find = Callable[..., FlagSets]
CACHE = Path(os.environ["MCCPROBE_CACHE"])  # the stand-in SDK is built there once
ARTICLE = tuple(flag.text for flag in load_catalogue().resolve_set("gemm-s4000"))


@pytest.fixture
def find(tmp_path: Path) -> Iterator[Find]:
    """`find(condition, flags)`: the sets of a program that is wrong where the C condition holds."""
    session = Session(2)

    def run_it(
        text: str, *flags: str, deadline: Deadline | None = None, told: list[str] | None = None, **options: object
    ) -> FlagSets:
        source = tmp_path / "program.c"
        if not text.startswith("#"):
            text = f"#include <stdio.h>\n#if {text}\n#define WRONG 1\n#else\n#define WRONG 0\n#endif\n" + (
                'int main(void) { printf("%d\\n", WRONG); return WRONG; }\n'
            )
        source.write_text(text)
        args = tuple(options.pop("args", ("-O1",)))  # type: ignore[arg-type]
        chosen = BisectOptions(file=str(source), compiler="clang-14", flags=flags, args=args, **options)  # type: ignore[arg-type]
        request = make_plan(chosen, tmp_path).request
        run, journal = session.open(tmp_path / "run")
        workspace = open_workspace(request, Ledger(run, journal, session.executor), journal)
        resolved = [load_catalogue().resolve(flag) for flag in flags]
        tell = told.append if told is not None else lambda text: None
        return smallest_flag_sets(workspace, resolved, tell=tell, deadline=deadline or Deadline())

    yield run_it
    session.close()


def sets(result: FlagSets) -> list[list[str]]:
    return [list(found.flags) for found in result.sets]


FIVE = ("-DA", "-DB", "-DC", "-DD", "-DE")


def test_a_pair_and_a_single(find: Find) -> None:
    told: list[str] = []
    result = find("(defined B && defined E) || defined D", *FIVE, told=told)
    assert sets(result) == [["-DD"], ["-DB", "-DE"]]
    assert result.state is StepState.DONE and result.complete and result.given == FIVE
    for found in result.sets:
        assert found.fails == found.runs >= 2
        assert found.needed == dict.fromkeys(found.flags, "GOOD")
        assert found.object
    # the program knows two results only, so that most of the builds are one program
    assert result.tested == 2 < len(told)
    assert any(line.endswith("none of the flags: GOOD") for line in told)


def test_sets_that_share_a_flag(find: Find) -> None:
    assert sets(find("defined A && (defined B || defined C)", *FIVE)) == [["-DA", "-DB"], ["-DA", "-DC"]]


def test_a_build_that_fails_is_no_accusation(find: Find) -> None:
    """-DC without -DA does not compile."""
    text = (
        "#if defined C && !defined A\n#error no\n#endif\n#include <stdio.h>\n"
        "#if defined B\n#define WRONG 1\n#else\n#define WRONG 0\n#endif\n"
        'int main(void) { return printf("%d", WRONG) - 1; }\n'
    )
    result = find(text, *FIVE)
    assert sets(result) == [["-DB"]]
    assert all("-DC" not in found.flags for found in result.sets)
    if not result.complete:
        assert any("no verdict" in note or "no build" in note for note in result.notes)


def test_wrong_without_any_flag(find: Find) -> None:
    """The reference is another build, so the flags need not be to blame."""
    result = find("defined __OPTIMIZE__", "-DA", "-DB", reference="-O0")
    assert not result.sets and result.state is StepState.DONE
    assert any("none of them" in note for note in result.notes)


def test_nothing_wrong(find: Find) -> None:
    result = find("0", "-DA", "-DB")
    assert not result.sets and any("nothing to find" in note for note in result.notes)


def test_no_flags(find: Find) -> None:
    result = find("defined __OPTIMIZE__", reference="-O0")
    assert result.state is StepState.SKIPPED and result.notes


ZERO = """#include <stdio.h>
static volatile double minus = -0.0;
int main(void) { double x = minus; printf("%g\\n", x + 0.0); return 0; }
"""
NAN = """#include <stdio.h>
static volatile double n;
int main(void) { double x = n / n; puts(x == x ? "number" : "not a number"); return 0; }
"""


ORDER = """#include <stdio.h>
static volatile double big = 1e16, one = 1.0;
int main(void) { double b = big, o = one; printf("%g\\n", (b + o) - b); return 0; }
"""
RECIPROCAL = """#include <stdio.h>
static volatile double top[3] = {49, 2, 3}, below = 49;
int main(void) { double d = below; printf("%a %a %a\\n", top[0] / d, top[1] / d, top[2] / d); return 0; }
"""
SUBNORMAL = """#include <stdio.h>
static volatile double tiny = 4e-310, two = 2.0;
int main(void) { double x = tiny * two; printf("%d\\n", *(long *)&x != 0); return 0; }
"""


def test_a_bundle_is_opened(find: Find) -> None:
    result = find(ZERO, "-DA", "-ffast-math")
    assert sets(result) == [["fno-signed-zeros"]]
    assert set(result.opened) == {"-ffast-math"} and "fno-signed-zeros" in result.opened["-ffast-math"]
    assert any("sign of zero" in sentence and "promise" in sentence for sentence in result.sets[0].promises)


@pytest.mark.parametrize(
    ("text", "part"),
    [(NAN, "fno-honor-nans"), (ORDER, "fassociative-math"), (RECIPROCAL, "freciprocal-math")],
    ids=["nan", "order", "reciprocal"],
)
def test_the_parts_of_fast_math_are_named(find: Find, text: str, part: str) -> None:
    """Each is a promise of its own; a part that works only with others is found with them."""
    result = find(text, "-ffast-math")
    assert all(part in one and "-ffast-math" not in one for one in sets(result)) and result.sets, result
    assert result.sets[0].promises
    assert not any("not public" in note for note in result.notes)


def test_a_bundle_whose_known_members_are_innocent_stays(find: Find) -> None:
    """-ffast-math links start-up code that no part of it stands for."""
    result = find(SUBNORMAL, "-ffast-math")
    assert sets(result) == [["-ffast-math"]]
    assert any("start-up code that flushes subnormals" in note for note in result.notes)
    assert result.sets[0].promises


FLAKY = """#!/bin/sh
# wrong programs are caught in two runs of five
"$1" && exit 0
n=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.count"
test $((n % 5)) -eq 0 -o $((n % 5)) -eq 3 && exit 1
exit 0
"""


def test_a_flaky_check(find: Find, tmp_path: Path) -> None:
    check = tmp_path / "check"
    check.write_text(FLAKY)
    check.chmod(0o755)
    result = find("defined B && defined C", "-DA", "-DB", "-DC", "-DD", oracle=f"{check} {{exe}}")
    assert sets(result) == [["-DB", "-DC"]]
    [found] = result.sets
    assert 0 < found.fails < found.runs
    assert any("flaky" in note for note in result.notes)


def test_a_resumed_search_runs_nothing_twice(find: Find, tmp_path: Path) -> None:
    first = find("defined C", *FIVE)
    lines = (tmp_path / "run" / "journal.jsonl").read_text()
    assert find("defined C", *FIVE) == first
    assert (tmp_path / "run" / "journal.jsonl").read_text() == lines


def test_a_budget(find: Find) -> None:
    result = find("defined C", *FIVE, deadline=Deadline(1e-9))
    assert result.state is StepState.BUDGET and not result.complete and not result.sets
    assert any("time budget" in note for note in result.notes)


def test_a_flag_of_a_set_given_once_more_with_another_value() -> None:
    options = BisectOptions(flags=(*ARTICLE, "FenceSetting=relaxed"), toolchain="sim")
    with pytest.raises(UsageError, match="FenceSetting twice"):
        make_plan(options, CACHE)


@pytest.mark.parametrize("bad", [1, 2, 5, 30])
def test_runs_for_a_good_build(bad: int) -> None:
    """Without a GOOD run among those of bad builds it is the ratio of search/confidence.py."""
    needed = good_runs_needed(bad, bad, 0.99)
    assert miss_ratio(bad - 1, needed) <= 0.01 * (1 + 1e-9) < miss_ratio(bad - 1, needed - 1) * (1 + 1e-9)
    assert good_runs_needed(bad, 2 * bad, 0.99) >= needed


def test_the_set_of_the_shipped_kernel(tmp_path: Path) -> None:
    """The article's seven flags and the faulty one, on the stand-in."""
    texts = (*ARTICLE, "internal-regs-ra")
    session = Session(2)
    try:
        request = make_plan(BisectOptions(flags=texts, toolchain="sim"), CACHE).request
        run, journal = session.open(tmp_path / "run")
        workspace = open_workspace(request, Ledger(run, journal, session.executor), journal)
        resolved = [load_catalogue().resolve(text) for text in texts]
        result = smallest_flag_sets(workspace, resolved, tell=lambda text: None, deadline=Deadline())
    finally:
        session.close()
    assert sets(result) == [["internal-regs-ra"]]
    assert result.complete and result.sets[0].needed == {"internal-regs-ra": "GOOD"}
    assert result.sets[0].fails == result.sets[0].runs
