"""Reports of real runs, made by the command line: goldens, the reproducer on its own, the archive, recheck."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.base.console import Console
from mccprobe.base.errors import BadReport
from mccprobe.cli.bug_report_cmd import bug_report
from mccprobe.cli.recheck_cmd import recheck
from mccprobe.explain.bundle.run import open_run

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
GOLDENS = Path(__file__).parent / "goldens"
PRESENT, GONE, CANNOT_TELL = 0, 1, 2


def bisect(root: Path, *args: str) -> Path:
    """A finished run of the real command line."""
    argv = [sys.executable, "-m", "mccprobe", "-q", "bisect", "-o", str(root), *args]
    done = subprocess.run(argv, cwd=root.parent, capture_output=True, text=True, check=False, timeout=300)
    assert (root / "result.json").is_file(), done.stderr
    return root


def written(run: Path, out: Path, *options: str) -> Path:
    """The report of a run."""
    assert bug_report.main([str(run), "-o", str(out), *options], standalone_mode=False, obj=Console(quiet=True)) == 0
    return out


@pytest.fixture(scope="module")
def case16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("clang-16") is None:
        pytest.skip("clang-16 does not work here: not found")
    root = tmp_path_factory.mktemp("case16")
    source = str(CASES / "16-instcombine16" / "test.c")
    run = bisect(root / "run", source, "--compiler", "clang-16", "--reference", "-O1", "--", "-O2", "-lm")
    return written(run, root / "report")


@pytest.fixture(scope="module")
def case21(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("clang-14") is None:
        pytest.skip("clang-14 does not work here: not found")
    root = tmp_path_factory.mktemp("case21")
    source = str(CASES / "21-asan-frontend14" / "test.c")
    args = ("--compiler", "clang-14", "--reference", "-O0", "--", "-O0", "-fsanitize=address")
    return written(bisect(root / "run", source, *args), root / "report", "--style", "gcc")


@pytest.fixture(scope="module")
def sim_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("clang-14") is None:
        pytest.skip("clang-14 does not work here: not found")
    root = tmp_path_factory.mktemp("sim")
    return bisect(root / "run", "--flag", "internal-regs-ra", "--toolchain", "sim")


@pytest.fixture(scope="module")
def sim_report(sim_run: Path) -> Path:
    return written(sim_run, sim_run.parent / "report", "--style", "vendor", "--lang", "zh")


def test_a_finished_run_of_version_one_is_read(sim_run: Path, tmp_path: Path) -> None:
    """It has no units, no axis and no architecture; the report is made from the rest."""
    old = tmp_path / "old"
    old.mkdir()
    for name, later in (("result.json", ("units", "axis", "arch")), ("run.json", ())):
        document = json.loads((sim_run / name).read_text())
        for key in later:
            del document[key]
        if name == "run.json":
            for key in ("unit", "build", "reference_build"):
                del document["request"][key]
        (old / name).write_text(json.dumps({**document, "schema_version": 1}))
    assert open_run(old).culprit == open_run(sim_run).culprit
    document = json.loads((old / "result.json").read_text())
    (old / "result.json").write_text(json.dumps({**document, "schema_version": 9}))
    with pytest.raises(BadReport, match="format 9"):
        open_run(old)


def masked(text: str) -> str:
    """Without what differs from machine to machine: hashes, versions, counts of trials. It has no times and paths."""
    text = re.sub(r"\b[0-9a-f]{12}\b", "[hash]", text)
    text = re.sub(r"(?m)^(?:    )?(?:Debian clang|Target:|Thread|InstalledDir:|clang version).*\n", "", text)
    text = re.sub(r"\d+ compiles and \d+ runs of the program \(.*?\)", "[trials]", text)
    text = re.sub(r"编译 \d+ 次.*", "[trials]", text)
    text = re.sub(r"(trials without an answer: )\d+", r"\1[n]", text)
    text = re.sub(r"\b0\.9\d{3}(?= that|\W)", "[confidence]", text)
    text = re.sub(r"mccprobe-sim version [^\n]*", "mccprobe-sim version [version]", text)
    text = re.sub(r"(`?)\d+\.\d+\.\d+\1(?= \[sim\]\n| 发现|\n)", "[version]", text)
    return re.sub(r"(?:Removed before writing|写出之前已移除).*", "[removed]", text)


def compare(report: Path, name: str, *, update: bool) -> None:
    text = (report / "report.md").read_text("utf-8")
    golden = GOLDENS / f"bug-report-{name}.txt"
    if update:
        golden.write_text(masked(text), "utf-8")
    assert masked(text) == golden.read_text("utf-8")
    assert str(ROOT) not in text and "/tmp/" not in text and str(Path.home()) not in text
    assert not re.search(r"\d+(?:\.\d+)? ?(?:s|ms|seconds)\b|20\d\d-\d\d-\d\d", text), "a time stands in the report"


@pytest.mark.toolchain("clang-16")
def test_golden_of_a_real_case(case16: Path, update_goldens: bool) -> None:
    compare(case16, "case16", update=update_goldens)


@pytest.mark.toolchain("clang-14")
def test_golden_of_a_case_that_is_not_bisectable(case21: Path, update_goldens: bool) -> None:
    compare(case21, "case21", update=update_goldens)
    text = " ".join((case21 / "report.md").read_text().split())
    assert "[wrong-at-zero]" in text and "no pass is accused" in text


@pytest.mark.toolchain("clang-14")
def test_golden_of_the_stand_in(sim_report: Path, update_goldens: bool) -> None:
    compare(sim_report, "sim", update=update_goldens)


# -- repro.sh on its own -----------------------------------------------------------------------------------


def repro(report: Path, folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """repro.sh alone in an empty folder, as it comes out of the archive."""
    folder.mkdir()
    with tarfile.open(f"{report}.tar.gz") as archive:
        member = archive.extractfile(f"{report.name}/repro.sh")
        assert member is not None
        (folder / "repro.sh").write_bytes(member.read())
    done = subprocess.run(
        ["sh", "repro.sh", *args],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert sorted(path.name for path in folder.iterdir() if path.name not in ("tmp",)) == ["repro.sh"]
    return done


@pytest.mark.toolchain("clang-14", "clang-16")
def test_repro_of_a_real_case(case16: Path, tmp_path: Path) -> None:
    bad = repro(case16, tmp_path / "a")
    assert (bad.returncode, "BUG PRESENT" in bad.stdout) == (PRESENT, True), bad
    good = repro(case16, tmp_path / "b", "clang-14")
    assert (good.returncode, "BUG GONE" in good.stdout) == (GONE, True), good
    named = repro(case16, tmp_path / "c", CC="clang-14")
    assert named.returncode == GONE, named


@pytest.mark.toolchain("clang-16")
@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        ("no-such-compiler-here", "no compiler"),
        ("false", "the reference build fails"),
        ("true", "the reference build is not right"),
    ],
)
def test_repro_accuses_nobody_when_it_cannot_tell(case16: Path, tmp_path: Path, compiler: str, words: str) -> None:
    done = repro(case16, tmp_path / "x", compiler)
    assert (done.returncode, f"CANNOT TELL: {words}" in done.stdout) == (CANNOT_TELL, True), done


@pytest.mark.toolchain("clang-16")
def test_repro_of_a_compiler_that_is_wrong_everywhere(case16: Path, tmp_path: Path) -> None:
    """Both builds print something else than the report's reference did: that is no verdict on the bug."""
    wrong = tmp_path / "cc"
    wrong.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit\nfor last; do :; done\n"
        'printf \'#!/bin/sh\\necho 7\\n\' >"$last"\nchmod +x "$last"\n'
    )
    wrong.chmod(0o755)
    done = repro(case16, tmp_path / "x", str(wrong))
    assert done.returncode == CANNOT_TELL and "not right with this compiler" in done.stdout, done


@pytest.fixture
def fixed_mcc(sim_run: Path, tmp_path: Path) -> Path:
    """The stand-in's compiler with the fault mended: it leaves the faulty flag out."""
    mcc = json.loads((sim_run / "run.json").read_text())["request"]["compiler"]
    path = tmp_path / "mcc"
    path.write_text(
        "#!/bin/sh\nfor a; do shift\n"
        '[ "$a" = -mllvm ] && continue\ncase $a in --mtgpu-enable-internal-regs-ra) continue;; esac\n'
        f'set -- "$@" "$a"; done\nexec {mcc} "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.toolchain("clang-14")
def test_repro_of_the_stand_in(sim_run: Path, sim_report: Path, fixed_mcc: Path, tmp_path: Path) -> None:
    mcc = json.loads((sim_run / "run.json").read_text())["request"]["compiler"]
    bad = repro(sim_report, tmp_path / "a", mcc)
    assert bad.returncode == PRESENT and "BUG PRESENT" in bad.stdout, bad
    fixed = repro(sim_report, tmp_path / "b", str(fixed_mcc))
    assert fixed.returncode == GONE and "BUG GONE" in fixed.stdout, fixed
    assert all(line.startswith("[sim]") for line in fixed.stdout.splitlines() if "BUG" in line)
    # without a name it finds the SDK where mccprobe keeps it
    found = repro(sim_report, tmp_path / "c", PATH="/usr/bin:/bin", MCCPROBE_CACHE=str(Path(mcc).parents[3]))
    assert found.returncode == PRESENT, found
    lost = repro(sim_report, tmp_path / "d", PATH="/usr/bin:/bin", MCCPROBE_CACHE=str(tmp_path))
    assert lost.returncode == CANNOT_TELL and "install mccprobe" in lost.stdout, lost


# -- the archive ----------------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-16")
def test_the_archive_says_nothing_of_who_and_when(case16: Path) -> None:
    data = Path(f"{case16}.tar.gz").read_bytes()
    assert data[4:8] == b"\0\0\0\0", "a time in gzip's header"
    with tarfile.open(f"{case16}.tar.gz") as archive:
        members = archive.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    names = [member.name for member in members if member.isfile()]
    assert names == sorted(names)
    held = {Path(name).name for name in names}
    assert held >= {"report.md", "repro.sh", "commands.json", "journal.jsonl", "test.bc", "test.c"}


@pytest.mark.toolchain("clang-16")
def test_the_same_run_gives_the_same_bytes(case16: Path, tmp_path: Path) -> None:
    before = Path(f"{case16}.tar.gz").read_bytes()
    run = case16.parent / "run"
    again = written(run, tmp_path / "report")
    assert Path(f"{again}.tar.gz").read_bytes() == before
    other = written(run, tmp_path / "report")  # a report in its place is replaced
    assert Path(f"{other}.tar.gz").read_bytes() == before


@pytest.mark.toolchain("clang-16")
def test_bitcode_is_that_of_the_run(case16: Path, tmp_path: Path) -> None:
    """From the bundle's bitcode the compiler makes the wrong program."""
    subprocess.run(
        ["clang-16", "-O2", "-x", "ir", str(case16 / "bitcode/test.bc"), "-o", "p"], cwd=tmp_path, check=True
    )
    assert subprocess.run(["./p"], cwd=tmp_path, capture_output=True, check=True).stdout == b"0\n"


@pytest.mark.toolchain("clang-16")
def test_json_follows_its_schema(case16: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(case16.parent / "run", tmp_path / "report", "--json")
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((ROOT / "reports/bug-report.schema.json").read_text()))
    assert document["repro"]["exit"] == 0 and document["title"].startswith("[instcombine] [main] wrong result")


# -- recheck ----------------------------------------------------------------------------------------------------


def rechecked(capsys: pytest.CaptureFixture[str], report: Path | str, *compilers: str) -> list[dict[str, Any]]:
    options = [word for name in compilers for word in ("--compiler", name)]
    capsys.readouterr()
    recheck.main([str(report), *options, "--json"], standalone_mode=False, obj=Console(quiet=True))
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((ROOT / "reports/recheck.schema.json").read_text()))
    return list(document["results"])


@pytest.mark.toolchain("clang-14", "clang-15", "clang-16", "clang-19")
def test_recheck_over_releases(case16: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rechecked(capsys, f"{case16}.tar.gz", "clang-14", "clang-15", "clang-16", "clang-19")
    assert [row["answer"] for row in rows] == ["gone", "gone", "still there", "gone"], rows
    assert (rows[2]["culprit_pass"], rows[2]["function"], rows[2]["execution"]) == ("InstCombinePass", "main", 174)


@pytest.fixture
def altered(case16: Path, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """The report with other words in its bundle.json, as if another run had written it."""

    def alter(**changes: Any) -> Path:
        folder = Path(shutil.copytree(case16, tmp_path / "altered"))
        document = json.loads((folder / "bundle.json").read_text())
        for key, value in changes.items():
            document[key] = {**document[key], **value} if isinstance(document[key], dict) else value
        (folder / "bundle.json").write_text(json.dumps(document))
        return folder

    yield alter


@pytest.mark.toolchain("clang-16")
def test_another_pass_is_changed(altered: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rechecked(capsys, altered(culprit={"pass": "GVNPass", "pass_argument": "gvn"}), "clang-16")
    assert row["answer"] == "changed" and "InstCombinePass on main" in row["text"], row


@pytest.mark.toolchain("clang-16")
def test_another_reference_is_no_answer(altered: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rechecked(capsys, altered(expected={"sha256": "0" * 64}), "clang-16")
    assert row["answer"] == "cannot tell" and "another answer than in the report" in row["text"], row


@pytest.mark.toolchain("clang-16")
def test_no_compiler_is_no_answer(case16: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rechecked(capsys, case16, "no-such-compiler-here")
    assert row["answer"] == "cannot tell" and row["version"] == "", row


@pytest.mark.toolchain("clang-14")
def test_recheck_of_the_stand_in(sim_run: Path, sim_report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcc = json.loads((sim_run / "run.json").read_text())["request"]["compiler"]
    (row,) = rechecked(capsys, f"{sim_report}.tar.gz", mcc)
    assert row["answer"] == "still there" and row["simulated"], row
    assert row["culprit_pass"] == "Machine Instruction Scheduler"
