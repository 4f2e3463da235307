"""What `mccprobe bisect` claims, and what it shows of answers without a pass. A false accusation is the worst bug."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.report.bug_report import build_document
from mccprobe.report.bug_report_blocks import BundleFacts
from mccprobe.report.bug_report_words import load_words

CallCli = Callable[..., tuple[int, str, str]]
EXACT = ("--reference", "-O0", "--reference-exact")
PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.toolchain("clang-14")


@pytest.fixture
def asked(call_cli: CallCli, tmp_path: Path, root: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Exit code, the checked document and the text of one bisection of a program of ours."""

    def ask(name: str, *options: str | Path, args: tuple[str, ...] = ()) -> tuple[int, dict[str, Any], str]:
        source = tmp_path / name
        shutil.copyfile(PROGRAMS / name, source)
        out = tmp_path / "run"
        code, _, _ = call_cli("bisect", source, "--compiler", "clang-14", *options, "-o", out, "--", *args)
        document = json.loads((out / "result.json").read_text())
        jsonschema.validate(document, json.loads((root / "reports/bisect.schema.json").read_text()))
        return code, document, (out / "report.txt").read_text()

    return ask


def test_equal_builds_are_not_searched(asked: Callable[..., tuple[int, dict[str, Any], str]]) -> None:
    code, document, text = asked("answer.c", "--flag", "-enable-newgvn")
    assert (code, document["status"], document["objects"]["equal"]) == (1, "no-difference", True)
    assert document["trials"]["runs"] == 0 and document["tested"] == []
    told = "the flag does not change the object: -mllvm -enable-newgvn; no -O was given (compiled at -O0)"
    assert document["notes"] == [told] and f"- {told}" in text
    assert text.startswith("NO DIFFERENCE: both builds are the same object\n")


def test_a_level_is_not_said_to_be_missing(asked: Callable[..., tuple[int, dict[str, Any], str]]) -> None:
    _, document, _ = asked("answer.c", "--flag", "-enable-newgvn", args=("-Og",))
    assert document["objects"]["equal"] and not any("no -O" in note for note in document["notes"])


def test_no_difference_shows_what_was_compared(asked: Callable[..., tuple[int, dict[str, Any], str]]) -> None:
    code, document, text = asked("answer.c", "--reference", "-O0", args=("-O2",))
    assert (code, document["status"]) == (1, "no-difference")
    assert document["observed"] == {
        "output": "'7', exit 3",
        "files": [{"name": "result.txt", "compared": True}],
        "stdin": "empty",
    }
    for line in ("  both print  '7', exit 3", "  files       result.txt (compared)", "  stdin       empty"):
        assert line in text


def test_no_difference_names_the_file_that_standard_input_was(
    asked: Callable[..., tuple[int, dict[str, Any], str]], tmp_path: Path
) -> None:
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("8\n")
    _, document, text = asked("answer.c", "--reference", "-O0", "--stdin", numbers, args=("-O2",))
    assert document["observed"]["stdin"] == str(numbers)
    assert f"  stdin       {numbers}\n" in text and "stdin       empty" not in text


def test_wrong_at_limit_0_shows_limit_0_and_the_reference(
    asked: Callable[..., tuple[int, dict[str, Any], str]],
) -> None:
    code, document, text = asked("answer.c", *EXACT, args=("-O2", '-DANSWER="9"'))
    assert (code, document["status"]) == (1, "wrong-at-zero")
    assert document["oracle"]["reference"] == "prints '7', exit 3"
    assert "  reference   prints '7', exit 3   object" in text and "  limit 0     prints '9'   object" in text
    assert "good side" not in text


def test_a_result_in_a_file_alone_is_seen(asked: Callable[..., tuple[int, dict[str, Any], str]]) -> None:
    _, document, _ = asked("answer.c", *EXACT, args=("-O2", '-DFILED="6"'))
    assert document["status"] == "wrong-at-zero"
    assert document["oracle"]["bad"] == "writes '6' to result.txt, the reference '8'"


def test_an_ignored_file_is_not_compared(asked: Callable[..., tuple[int, dict[str, Any], str]]) -> None:
    ignored = ("--ignore-file", "*.txt")
    _, document, text = asked("answer.c", *EXACT, *ignored, args=("-O2", '-DFILED="6"'))
    assert document["status"] == "no-difference" and document["observed"]["files"] == []
    assert "  files       none written in the run folder" in text


def test_a_program_at_fault_is_not_held_against_a_pass(
    asked: Callable[..., tuple[int, dict[str, Any], str]],
) -> None:
    code, document, text = asked("uninit_copy.c", "--reference", "-O0", args=("-O2",))
    assert (code, document["status"], document["confirmation"]["kind"]) == (0, "exposed", "none")
    assert document["program_check"]["state"] == "finding"
    assert document["confirmation"]["text"].startswith(document["program_check"]["text"])
    assert text.startswith("EXPOSED")


def test_a_changed_header_is_an_error_of_its_own(call_cli: CallCli, tmp_path: Path) -> None:
    header = tmp_path / "words.h"
    header.write_text("/* one */\n")
    check = tmp_path / "check.sh"
    check.write_text(f"#!/bin/sh\necho '/* two */' >> {header}\nexit 0\n")
    check.chmod(0o755)
    source = tmp_path / "answer.c"
    shutil.copyfile(PROGRAMS / "answer.c", source)
    code, out, err = call_cli(
        "bisect",
        source,
        "--compiler",
        "clang-14",
        "--reference",
        "-O0",
        "--oracle",
        f"{check} {{exe}}",
        "--json",
        "-o",
        tmp_path / "run",
        "--",
        "-O2",
        f'-DHEADER="{header}"',
    )
    document = json.loads(out)
    assert (code, document["status"], document["code"]) == (4, "error", "inputs-changed"), err
    assert str(header) in document["message"]


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (None, False),
        ({"state": "not-run", "text": "x"}, False),
        ({"state": "finding", "text": "x"}, False),
        ({"state": "clean", "text": "x"}, True),
    ],
    ids=["no record", "not run", "finding", "clean"],
)
def test_only_a_checked_program_is_called_right(check: dict[str, str] | None, right: bool) -> None:
    culprit = {
        "pass": "P",
        "pass_argument": None,
        "function": "f",
        "function_symbol": "f",
        "function_from": "log",
        "execution": 3,
        "total": 5,
    }
    result = {"status": "found", "culprit": culprit, "program_check": check, "source": "a.c", "flags": ["-x"]}
    document = build_document(result, BundleFacts("cc"), load_words("en"), "llvm")
    summary = str(next(section for section in document.sections if section.key == "summary"))
    assert ("a right program" in summary) is right
    assert ("was not checked" in summary) is not right
    assert ("the compiler is not to blame yet" in summary) is ((check or {}).get("state") == "finding")


def test_a_result_that_depends_on_a_promise_confirms_no_pass(
    asked: Callable[..., tuple[int, dict[str, Any], str]],
) -> None:
    """-ffast-math lets the compiler reassociate: the pass that does it is innocent."""
    code, document, text = asked("sum.c", "--reference", "-O2", args=("-O2", "-ffast-math"))
    assert (code, document["status"], document["confirmation"]["kind"]) == (0, "exposed", "none")
    assert text.count("-ffast-math is a promise") == 1


def test_a_program_that_breaks_strict_aliasing_is_not_called_right(
    asked: Callable[..., tuple[int, dict[str, Any], str]],
) -> None:
    _, document, _ = asked("pun.c", "--reference", "-O0", args=("-O2",))
    assert (document["status"], document["program_check"]["state"]) == ("exposed", "finding")
    assert "strict aliasing" in document["program_check"]["text"]
