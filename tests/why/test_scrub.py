"""Private names do not leave the machine: planted ones are looked for in every byte of a report."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.console import Console
from mccprobe.bisection.passes.request import digest_of
from mccprobe.cli.bug_report_cmd import bug_report
from mccprobe.explain.bundle.making import blank_debug_information
from mccprobe.report.scrub import Private, Scrubber, private_names

CASE = Path(__file__).parents[1] / "cases" / "16-instcombine16"
ALICE = private_names(
    homes=["/home/alice", "/home/alice/"], users=["alice", "root", "max"],
    hosts=["kyoto-7.lab.example", "kyoto-7", "main"],
    places={"WORKDIR": "/srv/secret-project"}, environment={
        "API_TOKEN": "s3cr3t", "LICENCE_SERVER": "27000@licences.example", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
        "SHORT": "abc", "NUMBER": "12345678.5", "TERM": "xterm-256color", "MUSA_HOME": "/usr/local/musa",
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/alice/src/a.c", "~/src/a.c"),
        ("-I/home/alice/include", "-I~/include"),
        ("alice@kyoto-7.lab.example", "USER@HOST"),
        ("KYOTO-7: built by alice", "HOST: built by USER"),
        ("/home/you/x.c and /" + "Users/carol/y.c", "~/x.c and ~/y.c"),
        ("/srv/secret-project/k.mu", "WORKDIR/k.mu"),
        ("key=s3cr3t;", "key=ENV_API_TOKEN;"),
        ("server 27000@licences.example", "server ENV_LICENCE_SERVER"),
        # words that only look alike stay
        ("malice, alice_in, aliced", "malice, alice_in, aliced"),
        ("max(a, b); root = main();", "max(a, b); root = main();"),
        ("/home/alice" + "springs", "~"),
        ("/usr/local/musa/bin/mcc", "/usr/local/musa/bin/mcc"),
        ("12345678.5 xterm-256color C.UTF-8 abc", "12345678.5 xterm-256color C.UTF-8 abc"),
        ("/srv/secret-projects", "/srv/secret-projects"),
    ],
)
def test_names(text: str, left: str) -> None:
    assert Scrubber(ALICE).text(text) == left


def test_a_home_of_one_part_is_no_end_of_another_path() -> None:
    scrubber = Scrubber(private_names(homes=["/nobody"], users=[], hosts=[], places={}, environment={}))
    text = '"/nobody/a.c" -I/nobody/include -o=/nobody tests/nobody/b.c ~/nobody /nobodys'
    assert scrubber.text(text) == '"~/a.c" -I~/include -o=~ tests/nobody/b.c ~/nobody /nobodys'


def test_names_in_json_escapes_are_found() -> None:
    names = private_names(homes=["/srv/jürgen"], users=["jürgen"], hosts=[], places={}, environment={})
    text = json.dumps({"path": "/srv/jürgen/x", "by": "jürgen"})
    assert "rgen" not in Scrubber(names).text(text)
    assert "rgen" not in Scrubber(names).text("/srv/jürgen/x jürgen")


def test_every_removal_is_counted_and_described() -> None:
    scrubber = Scrubber(ALICE)
    scrubber.value({"a": ["/home/alice/x", "/home/alice/y"], "alice": 1})
    told = {item.text: (item.kind, item.times) for item in scrubber.removed()}
    assert told == {"/home/alice": ("home", 2), "alice": ("user", 1)}
    assert scrubber.removed()[0].describe() == "home: /home/alice -> ~ (2 times)"


@given(st.lists(st.sampled_from([*(item.text for item in ALICE), " ", "/", "x", "'", "\n", "é"]), max_size=12))
def test_nothing_private_is_left_and_twice_is_once(parts: list[str]) -> None:
    scrubber = Scrubber(ALICE)
    once = scrubber.text("".join(parts))
    assert scrubber.private_in(once.encode()) == []
    assert Scrubber(ALICE).text(once) == once


def test_no_names_change_nothing() -> None:
    assert Scrubber((), other_homes=False).text("/home/alice") == "/home/alice"
    assert Private("user", "alice", "USER").pattern().search("alice")


# -- a whole report with planted names ---------------------------------------------------------------------

PLANTED = (b"alice", b"kyoto-7", b"s3cr3t-token", b"secret-project", b"licences.example")


def finished_run(root: Path, source: Path, args: list[str], where: Path, **more: Any) -> Path:
    """A run directory as `bisect` leaves it, of case 16, without the bisection."""
    root.mkdir(parents=True)
    request = {
        "toolchain": "clang",
        "compiler": shutil.which("clang-16"),
        "version": "clang 16",
        "source": str(source),
        "source_sha256": digest_of(source),
        "args": args,
        "flags": [],
        "inputs": [],
        "link_args": [],
        "reference_args": ["-O1", *[arg for arg in args if not arg.startswith("-O")]],
        "oracle": ["reference", [], [], "", 1],
    }
    culprit = {
        "pass": "InstCombinePass",
        "pass_argument": "instcombine",
        "function": "main",
        "function_symbol": "main",
        "function_from": "log",
        "execution": 174,
        "total": 283,
    }
    result = {
        "schema_version": 2,
        "status": "found",
        "tool_version": "0",
        "toolchain": "clang",
        "simulated": False,
        "flags": [],
        "culprit": culprit,
        "source": str(source),
        "compiler": {"path": "clang-16", "version": "clang 16"},
        "working_directory": str(where),
        "oracle": {"text": "PROGRAM", "good": "as the reference", "bad": "prints '0'"},
        **more,
    }
    options = {"file": str(source), "compiler": "clang-16", "reference": "-O1", "args": args}
    (root / "run.json").write_text(json.dumps({"schema_version": 1, "options": options, "request": request}))
    (root / "result.json").write_text(json.dumps(result))
    (root / "journal.jsonl").write_text(json.dumps({"t": "journal", "note": str(source)}) + "\n")
    return root


@pytest.fixture
def private_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Case 16 in the home of a user whose names are everywhere."""
    home = tmp_path / "home-of-alice"
    project = home / "secret-project"
    project.mkdir(parents=True)
    text = (CASE / "test.c").read_text()
    (project / "own.h").write_text("/* alice@kyoto-7, token s3cr3t-token */\n#define OWN 1\n")
    (project / "test.c").write_text(f'#include "own.h"\n/* by alice, {home} */\n{text}')
    for name, value in {
        "HOME": str(home),
        "USER": "alice",
        "LOGNAME": "alice",
        "HOSTNAME": "kyoto-7",
        "API_TOKEN": "s3cr3t-token",
        "LICENCE_SERVER": "27000@licences.example",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)
    return finished_run(
        tmp_path / "run",
        project / "test.c",
        ["-O2", "-g", f"-I{project}"],
        project,
        notes=[f"seen on kyoto-7 by alice in {project}", "27000@licences.example"],
        log=[f"{home}/x"],
    )


@pytest.mark.toolchain("clang-16")
def test_no_planted_name_is_in_any_byte(private_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out" / "report"
    code = bug_report.main(
        [str(private_run), "-o", str(out), "--json"], standalone_mode=False, obj=Console(quiet=False)
    )
    told = capsys.readouterr()
    assert code == 0, told.err
    files = [path for path in out.rglob("*") if path.is_file()]
    assert (out / "bitcode" / "test.bc") in files, told.out
    for path in files:
        data = path.read_bytes().lower() + str(path.relative_to(out)).encode()
        found = [name for name in PLANTED if name in data]
        assert not found, f"{path.relative_to(out)}: {found}"
    archive = gzip.decompress(out.with_name("report.tar.gz").read_bytes())
    assert not [name for name in PLANTED if name in archive.lower()]
    document = json.loads(told.out)
    assert document["repro"]["exit"] == 0, document
    assert not [name for name in PLANTED if name.decode() in json.dumps(document["removed"])]
    # the user sees each name before anything is written
    shown, _, rest = told.err.partition("\nwriting ")
    for name in ("alice", "kyoto-7", "s3cr3t-token", "27000@licences.example"):
        assert name in shown, told.err
    assert rest


@pytest.mark.toolchain("clang-16")
def test_no_scrub_leaves_them_in(private_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report"
    code = bug_report.main([str(private_run), "-o", str(out), "--no-scrub"], standalone_mode=False, obj=Console())
    assert code == 0
    assert "alice@kyoto-7" in (out / "source/own.h").read_text()
    assert "Nothing was removed" in (out / "report.md").read_text()
    assert "private names stay" in capsys.readouterr().err


@pytest.mark.toolchain("clang-16")
def test_a_dry_run_writes_nothing(private_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report"
    assert bug_report.main([str(private_run), "-o", str(out), "--dry-run"], standalone_mode=False, obj=Console()) == 0
    assert not out.exists() and not out.with_name("report.tar.gz").exists()
    assert "user: alice -> USER" in capsys.readouterr().err


@pytest.mark.toolchain("clang-16")
def test_a_binary_with_a_private_name_is_left_out(
    private_run: Path, tmp_path: Path, compiler: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    project = Path.cwd()
    (project / "other.c").write_text(f'const char *where = "{project}";\n')  # outside of the debug information
    subprocess.run([compiler(16), "-g", "-c", "other.c", "-o", str(project / "other.o")], check=True, cwd=project)
    document = json.loads((private_run / "run.json").read_text())
    document["request"]["inputs"] = ["other.o"]
    (private_run / "run.json").write_text(json.dumps(document))
    out = tmp_path / "report"
    assert bug_report.main([str(private_run), "-o", str(out)], standalone_mode=False, obj=Console()) == 0
    assert not (out / "source/other.o").exists()
    assert "left out, because private names stand in it: source/other.o" in capsys.readouterr().err
    text = (out / "report.md").read_text()
    assert "source/other.o" in text and "did not show the bug" in text  # the link has no other.o: said, not hidden


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("level", ["-gdwarf-4", "-gdwarf-5"])
def test_debug_information_is_overwritten_and_the_object_still_links(level: str, tmp_path: Path) -> None:
    """An object built with -g names the folder it was built in; without it the report's reproducer cannot link."""
    home = tmp_path / "home" / "maria"
    home.mkdir(parents=True)
    (home / "side.c").write_text("int side(int x) { return x + 3; }\n")
    (home / "main.c").write_text("int side(int); int main(void) { return side(4); }\n")
    subprocess.run(["clang-14", level, "-O1", "-c", "side.c", "-o", "side.o"], cwd=home, check=True, timeout=60)
    names = private_names(homes=[str(home)], users=["maria"], hosts=[], places={}, environment={})
    scrubber = Scrubber(names)
    data = (home / "side.o").read_bytes()
    assert scrubber.private_in(data)
    blanked = blank_debug_information(data, scrubber)
    assert len(blanked) == len(data) and not scrubber.private_in(blanked) and scrubber.removed()
    (home / "clean.o").write_bytes(blanked)
    subprocess.run(["clang-14", "main.c", "clean.o", "-o", "p"], cwd=home, check=True, timeout=60)
    assert subprocess.run([home / "p"], check=False).returncode == 7
    dumped = [
        subprocess.run(["llvm-objdump-14", "-d", name], cwd=home, capture_output=True, text=True, check=True).stdout
        for name in ("side.o", "clean.o")
    ]
    assert dumped[0].split("side.o:")[1] == dumped[1].split("clean.o:")[1]


def test_a_name_in_what_a_program_loads_is_not_overwritten() -> None:
    scrubber = Scrubber(private_names(homes=["/home/alice"], users=[], hosts=[], places={}, environment={}))
    assert scrubber.blanked(b"/home/alice\0x") == b"x" * 11 + b"\0x"
    assert blank_debug_information(b"\0/home/alice\0", scrubber) == b"\0/home/alice\0"
