"""`mccprobe journal` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mccprobe import cli
from mccprobe.cli import journal_cmd
from mccprobe.journal.book import DEFAULT_BOOK, Book
from mccprobe.journal.entry import KINDS, Entry, Figure
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.text.journal import figure_text

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "reports/journal.schema.json").read_text()))
HOSTILE = "\x1b]0;owned\x07 \x1b[2J \x9b31m \u202e\u2066 bell\r over"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, call_cli: Run, tmp_path: Path) -> Run:
    """`run("list")` is `mccprobe journal list` in an empty folder: exit code, standard output and error."""
    monkeypatch.setitem(cli.COMMANDS, "journal", ("mccprobe.cli.journal_cmd", "journal", "journal"))
    monkeypatch.chdir(tmp_path)
    return lambda *args: call_cli("journal", *args)


def _document(result: tuple[int, str, str]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result[1])
    assert [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(value)] == []
    return value


@pytest.fixture
def filled(run: Run) -> list[Entry]:
    """A kernel's history: fast, wrong with one flag, and a simulated try."""
    given = {"kernel": "kernels/gemm", "kernel_commit": "c1", "toolchain": "mcc"}
    book = Book()
    return [
        book.append(one)
        for one in (
            Entry("bench", "pad 8", verdict=Verdict.GOOD, figures={"speed": Figure(57, "TFLOPS")}, **given),
            Entry(
                "bench",
                "two flags",
                "schedule after allocation",
                flags=("-a", "-b"),
                verdict=Verdict.GOOD,
                figures={"speed": Figure(67, "TFLOPS")},
                health={"peak": 97.1},
                run_directory="mccprobe-out/2",
                **given,
            ),
            Entry("check", "max_err 350", flags=("-internal-regs-ra",), verdict=Verdict.BAD, **given),
            Entry("check", flags=("-c",), verdict=Verdict.UNRESOLVED, **{**given, "toolchain": "sim"}, simulated=True),
        )
    ]


def test_defaults_agree() -> None:
    assert DEFAULT_BOOK.as_posix() == journal_cmd.DEFAULT
    assert KINDS == journal_cmd.KINDS
    assert (*map(str, Verdict), "none") == journal_cmd.VERDICTS


def test_an_absent_journal_is_an_empty_one(run: Run) -> None:
    assert run("list") == (0, "no entries\n", "")
    assert run("dead-ends")[:2] == (0, "no dead ends recorded\n")
    assert _document(run("list", "--json"))["entries"] == []
    assert run("show", "last")[0] == 2
    assert not DEFAULT_BOOK.exists()  # looking makes nothing


def test_list(run: Run, filled: list[Entry]) -> None:
    code, out, _ = run("list")
    lines = out.splitlines()
    assert code == 0 and [line.split()[0] for line in lines] == [one.id for one in filled]
    assert "GOOD" in lines[1] and "speed 67 TFLOPS" in lines[1] and "-a -b" in lines[1]
    assert "SIMULATED" in lines[3] and "SIMULATED" not in lines[2]
    document = _document(run("list", "--json", "--verdict", "BAD", "--verdict", "UNRESOLVED"))
    assert (document["total"], document["matching"]) == (4, 2)
    code, out, err = run("list", "-n", "1")
    assert out.split()[0] == filled[-1].id and "the last 1 of 4" in err
    assert run("list", "--since", "2999")[1] == "no entries\n"
    assert run("list", "--since", "yesterday")[0] == 2


def test_show_and_notes(run: Run, filled: list[Entry]) -> None:
    code, out, err = run("note", "why I believe that this is faster", "--about", filled[1].id)
    assert code == 0 and err == ""
    note = out.strip()
    code, out, _ = run("show", filled[1].id)
    assert code == 0
    for text in ("schedule after allocation", "peak 97.1", "67 TFLOPS", "mccprobe-out/2", note, "c1"):
        assert text in out
    document = _document(run("show", "last", "--json"))
    assert document["entry"]["about"] == filled[1].id and document["entry"]["flags"] == ["-a", "-b"]
    assert document["entry"]["kernel"] == "kernels/gemm" and document["entry"]["verdict"] is None
    assert "not known" in run("show", "last")[1]


def test_what_is_not_known_has_no_unit() -> None:
    assert figure_text(Figure(None, "instructions")) == "not known"
    assert figure_text(Figure(244179, "instructions")) == "244179 instructions"


def test_dead_ends(run: Run, filled: list[Entry]) -> None:
    assert run("note", "slower: no branches", "--flag=-mtgpu-if-convert", "--dead-end")[0] == 0
    code, out, _ = run("dead-ends")
    assert code == 0 and out.splitlines()[0].startswith("kernels/gemm  -internal-regs-ra: max_err 350; once")
    assert "any kernel  -mtgpu-if-convert: slower: no branches" in out and len(out.splitlines()) == 2
    ends = _document(run("dead-ends", "--json", "--kernel", "gemm"))["dead_ends"]
    assert [one["ids"] for one in ends] == [[filled[2].id]]
    Book().append(
        Entry("check", kernel="kernels/gemm", toolchain="mcc", flags=("-internal-regs-ra",), verdict=Verdict.GOOD)
    )
    assert "internal-regs-ra" not in run("dead-ends", "--verdict", "BAD")[1]  # though the GOOD one is not chosen


def test_compare(run: Run, filled: list[Entry]) -> None:
    code, out, _ = run("compare", filled[0].id, filled[1].id)
    assert code == 0 and "57 TFLOPS -> 67 TFLOPS  x 1.1754" in out and "no interval" in out
    assert "  + -a\n" in out and "caveat: device health was not recorded for both" in out
    document = _document(run("compare", filled[0].id, filled[1].id, "--json"))
    assert document["rows"][0]["ratio"] == pytest.approx(67 / 57) and document["flags_added"] == ["-a", "-b"]
    code, out, _ = run("compare", filled[0].id, "last")
    assert code == 1 and "SIMULATED: its figures say nothing of a GPU" in out
    assert _document(run("compare", filled[0].id, "last", "--json"))["rows"][0]["problem"]


def test_escape_sequences_are_shown_and_not_obeyed(run: Run) -> None:
    Book().append(
        Entry(
            "note",
            HOSTILE,
            HOSTILE,
            HOSTILE,
            HOSTILE,
            HOSTILE,
            flags=(HOSTILE,),
            health={HOSTILE: HOSTILE},
            figures={HOSTILE: Figure(1, HOSTILE)},
            run_directory=HOSTILE,
            dead_end=True,
            about=HOSTILE,
        )
    )
    with DEFAULT_BOOK.open("a") as file:
        file.write(HOSTILE + "\n")
    assert DEFAULT_BOOK.read_text().count("\x1b") == 2  # of the foreign line alone
    for args in (
        ("list",),
        ("show", "last"),
        ("dead-ends",),
        ("compare", "last", "last"),
        ("list", "--json"),
        ("note", "x", "--kernel", HOSTILE),
        ("show", "last", "--json"),
        ("export", "--csv", "-"),
        ("show", HOSTILE),
        ("list", "--since", HOSTILE),
    ):
        _, out, err = run(*args)
        assert all(c.isprintable() or c in "\r\n" for c in out), args
        assert "\r" not in out.replace("\r\n", "\n") and "\x1b" not in err and "\x9b" not in err


def test_damaged_lines_are_told_and_stop_nothing(run: Run, filled: list[Entry]) -> None:
    with DEFAULT_BOOK.open("a") as file:
        file.write('{"t":"check","id"')
    code, out, err = run("list")
    assert code == 0 and len(out.splitlines()) == 4
    assert "line 6 has no end: its writer was killed, or is writing" in err
    assert _document(run("list", "--json"))["damaged"] == [{"number": 6, "text": '{"t":"check","id"', "ended": False}]
    assert run("note", "on")[0] == 0
    assert "line 6 is no entry" in run("list")[2] and len(run("list")[1].splitlines()) == 5


def test_notes_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"two\nlines \xff\n")))
    assert run("note", "-")[0] == 0
    assert Book().entries()[0].text == "two\nlines \ufffd"
    assert run("note", "  ")[0] == 2
    assert run("note", "x", "--about", "zz")[0] == 2
    assert _document(run("note", "x", "--json"))["entry"]["kernel_commit"] is None


def test_export(run: Run, filled: list[Entry], tmp_path: Path) -> None:
    code, _, err = run("export", "--csv", tmp_path / "x.csv", "--kind", "bench")
    assert code == 0 and "2 entries" in err
    with (tmp_path / "x.csv").open(newline="") as file:
        assert [row["speed"] for row in csv.DictReader(file)] == ["57", "67"]
    assert len(list(csv.DictReader(io.StringIO(run("export", "--csv", "-")[1])))) == 4
    assert run("export")[0] == 2 and run("export", "--csv", "a", "--parquet", "b")[0] == 2
    assert run("export", "--csv", tmp_path)[0] == 4


def test_errors_are_one_document(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"t":"journal","version":1}\n')
    result = run("list", "--json", "--journal", tmp_path / "run.jsonl")
    assert result[0] == 4 and _document(result)["code"] == "journal-unreadable"
    result = run("show", "zz", "--json")
    assert result[0] == 2 and _document(result)["code"] == "unknown-entry"


def test_help(run: Run) -> None:
    for command in ((), ("list",), ("show",), ("dead-ends",), ("compare",), ("note",), ("export",)):
        code, out, _ = run(*command, "--help")
        assert code == 0 and "Example:" in out
