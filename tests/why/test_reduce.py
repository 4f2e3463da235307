"""Reduction: what every variant must keep, and a real reducer on real cases."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.console import Console
from mccprobe.base.errors import CannotReduce
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.cli.reduce_cmd import reduce as command
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.reduce.interesting import Refused, Task, examine, first_bad, holes_in, keep_if_smaller, read_task
from mccprobe.explain.reduce.run import Reduction, reduce_source
from mccprobe.report.record import Culprit
from mccprobe.report.why_record import StepState

ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests" / "cases" / "07-loop-interchange" / "test.c"
RELAX = Culprit("LoopInterchangePass", "loop-interchange", "relax", "relax", "inferred", 1, 1)


@given(st.integers(0, 40), st.integers(0, 40))
def test_first_bad_is_that_of_a_linear_scan(count: int, edge: int) -> None:
    numbers = [3 * index + 1 for index in range(count)]
    asked: list[int] = []

    def is_bad(limit: int) -> bool:
        asked.append(limit)
        return limit >= edge

    expected = next((number for number in numbers if number >= edge), None)
    assert first_bad(numbers, is_bad) == expected
    assert len(asked) <= 1 + max(1, count).bit_length()


def test_holes_are_what_says_less() -> None:
    assert holes_in(b"store i32 undef, ptr null\nunreachable\n%undefined = poison") == 4


def case_reduced(folder: Path, source: Path = CASE, culprit: Culprit = RELAX, **options: object) -> Reduction:
    """Prepare the case; the reducer itself is `cvise` of PATH."""
    asked = BisectOptions(file=str(source), compiler="clang-14", flags=("-enable-loopinterchange",), args=("-O3",))
    request = make_plan(replace(asked, **options), folder).request  # type: ignore[arg-type]
    return reduce_source(request, culprit, folder=folder, jobs=1, tell=lambda text: None, deadline=Deadline())


@pytest.fixture
def reducer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`reducer(text)`: a cvise of our own, a shell script that is given the test as $test and the file as $file."""

    def install(text: str) -> None:
        place = tmp_path / "bin"
        place.mkdir(exist_ok=True)
        script = place / "cvise"
        script.write_text(f"#!/bin/sh\nfor file; do test=$last; last=$file; done\n{text}\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")

    return install


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """What must stay of case 07, made once with a reducer that does nothing."""
    if shutil.which("clang-14") is None:
        pytest.skip("clang-14 does not work here: not found")
    folder = tmp_path_factory.mktemp("task")
    with pytest.MonkeyPatch.context() as patch:
        (folder / "bin").mkdir()
        (folder / "bin/cvise").write_text("#!/bin/sh\nexit 0\n")
        (folder / "bin/cvise").chmod(0o755)
        patch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
        made = case_reduced(folder)
    assert made.verified and not made.file and made.lines_after == made.lines_before
    assert any("address" in screen for screen in made.screens), made
    return read_task(folder / "task.pickle")


def refused(task: Task, tmp_path: Path, text: str) -> str:
    source = tmp_path / "variant.c"
    source.write_text(text)
    (tmp_path / "scratch").mkdir()
    with pytest.raises(Refused) as raised:
        examine(task, source, tmp_path / "scratch")
    return str(raised.value)


@pytest.mark.toolchain("clang-14")
def test_a_variant_with_the_same_fault_is_interesting(task: Task, tmp_path: Path) -> None:
    source = tmp_path / "variant.c"
    source.write_text("/* shorter */\n" + CASE.read_text().partition("*/")[2])
    assert examine(task, source, tmp_path) > 0


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int main(void) {", "int main(void) { return 0;", "the bad build is GOOD"),
        ("int main(void) {", "int main(void) { return 3;", "the reference: exit 3"),
        ("int main(void) {", "int main(void) { syntax", "does not build"),
        # the same wrong value, but an invalid program: it reads behind an array
        ("int main(void) {", "static int few[4]; int main(void) { volatile int at = 4; sum += few[at] & 0;", "address"),
        ("int main(void) {", "int main(void) { volatile int big = 2147483647; big = big + 1;", "runtime error"),
        ("relax", "other", "is not where it turns wrong"),
    ],
)
def test_variants_that_slipped_are_refused(task: Task, tmp_path: Path, old: str, new: str, words: str) -> None:
    text = CASE.read_text()
    assert old in text
    if "sum" in new and "sum" not in text:
        new = new.replace("sum +=", "src[0][0] +=")
    assert words in refused(task, tmp_path, text.replace(old, new))


@pytest.mark.toolchain("clang-14")
def test_wrong_by_another_pass_is_another_fault(task: Task, tmp_path: Path) -> None:
    other = replace(task, title="GVNPass")
    assert "GVNPass on relax is not where it turns wrong" in refused(other, tmp_path, CASE.read_text())


@pytest.mark.toolchain("clang-14")
def test_an_untouched_source_that_does_not_pass_is_an_error(tmp_path: Path, reducer: Callable[[str], None]) -> None:
    reducer("exit 0")
    with pytest.raises(CannotReduce, match="does not pass the test: GVNPass on relax"):
        case_reduced(tmp_path / "run", culprit=replace(RELAX, title="GVNPass"))


@pytest.mark.toolchain("clang-14")
def test_only_what_passed_counts_and_a_later_call_goes_on(tmp_path: Path, reducer: Callable[[str], None]) -> None:
    """A reducer that leaves a torn file behind changes nothing: the result is what the test accepted."""
    reducer(
        'cp "$file" whole; sed 1d "$file" >next && cp next "$file" && sh "$test" || exit 1\nhead -c 40 whole >"$file"'
    )
    first = case_reduced(tmp_path / "run")
    assert first.verified and first.state is StepState.DONE
    assert first.lines_after == first.lines_before - 1
    shorter = CASE.read_text().partition("\n")[2]
    assert Path(first.file).read_text() == shorter
    reducer('cp "$file" seen; exit 0')
    second = case_reduced(tmp_path / "run")
    assert second.lines_after == first.lines_after
    assert (tmp_path / "run/work/seen").read_text() == shorter  # where it began
    assert Path(second.file).read_text() == shorter


@pytest.mark.toolchain("clang-14")
def test_another_source_begins_anew(tmp_path: Path, reducer: Callable[[str], None]) -> None:
    reducer('sed 1d "$file" >next && cp next "$file" && sh "$test"')
    case_reduced(tmp_path / "run")
    changed = tmp_path / "test.c"
    changed.write_text("\n\n" + CASE.read_text())
    again = case_reduced(tmp_path / "run", changed)
    assert again.lines_before == again.lines_after + 1


def test_the_smallest_stays(task: Task, tmp_path: Path) -> None:
    best = tmp_path / "best.c"
    kept = replace(task, best=best)
    for number, text in enumerate(("a" * 90, "b" * 80, "c" * 85)):
        (tmp_path / f"{number}.c").write_text(text)
        keep_if_smaller(kept, tmp_path / f"{number}.c")
    assert best.read_text() == "b" * 80
    best.unlink()
    (tmp_path / "large.c").write_text("d" * 100_000)
    keep_if_smaller(kept, tmp_path / "large.c")
    assert not best.exists(), "larger than the untouched source"


@pytest.mark.toolchain("clang-14")
def test_a_real_reducer_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reducer: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-Vise, with the one of its passes that removes blank lines, on case 07; TMPDIR is too long for its socket."""
    cvise = shutil.which("cvise")
    if cvise is None:
        pytest.skip("cvise (needed beside clang-14) does not work here: not found")
    temporary = tmp_path / ("long" * 20)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    passes = tmp_path / "passes.json"
    passes.write_text(json.dumps({"first": [], "main": [{"pass": "blank"}], "last": []}))
    reducer(f'exec {cvise} --pass-group-file {passes} "$@"')
    source = tmp_path / "test.c"
    source.write_text(CASE.read_text() + "\n" * 20)
    run = finished(tmp_path / "run", source)
    code = command.main([str(run), "--jobs", "2", "--json"], standalone_mode=False, obj=Console(quiet=True))
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((ROOT / "reports/reduce.schema.json").read_text()))
    assert code == 0 and document["verified"], document
    assert document["lines_after"] <= document["lines_before"] - 20, document
    assert "relax" in Path(document["file"]).read_text()


def finished(root: Path, source: Path) -> Path:
    """A run directory as `bisect` leaves it."""
    from mccprobe.bisection.passes.request import digest_of

    root.mkdir()
    flag = ["-mllvm", "-enable-loopinterchange"]
    request = {
        "toolchain": "clang",
        "compiler": shutil.which("clang-14"),
        "version": "14",
        "source": str(source),
        "source_sha256": digest_of(source),
        "args": ["-O3"],
        "flags": [flag],
        "inputs": [],
        "link_args": [],
        "reference_args": ["-O3"],
        "oracle": ["reference", [], [], "", 1],
    }
    options = {"file": str(source), "compiler": "clang-14", "flags": ["-enable-loopinterchange"], "args": ["-O3"]}
    result = {
        "schema_version": 2,
        "status": "found",
        "toolchain": "clang",
        "simulated": False,
        "flags": [" ".join(flag)],
        "source": str(source),
        "working_directory": str(root),
        "culprit": {
            "pass": "LoopInterchangePass",
            "pass_argument": "loop-interchange",
            "function": "relax",
            "function_symbol": "relax",
            "function_from": "inferred",
            "execution": 1,
            "total": 1,
        },
    }
    (root / "run.json").write_text(json.dumps({"schema_version": 2, "options": options, "request": request}))
    (root / "result.json").write_text(json.dumps(result))
    return root
