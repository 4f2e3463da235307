"""Programs of the kinds that users have: C++, several files, arguments, odd names, LLVM IR."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FLAG = ("--flag", "-enable-loopinterchange")
PASS = "LoopInterchangePass"

pytestmark = pytest.mark.toolchain("clang-14")


def found(run: Any, function: str) -> dict[str, Any]:
    assert run.code == 0, run
    document = json.loads(run.stdout)
    assert document["status"] == "found", run
    assert (document["culprit"]["pass"], document["culprit"]["pass_argument"]) == (PASS, "loop-interchange")
    assert document["culprit"]["function"] == function
    assert document["objects"]["good"] != document["objects"]["bad"]
    return document  # type: ignore[no-any-return]


def test_cxx_switches_the_driver_also_in_the_reproduce_commands(
    run_cli: Callable[..., Any], programs: Path, tmp_path: Path
) -> None:
    run = run_cli("bisect", programs / "grid.cpp", "--compiler", "clang-14", *FLAG, "--json", "--", "-O3")
    commands = found(run, "void grid::spread<int>(int (*) [9], int (*) [9], int (*) [9])")["reproduce"]
    printed = {
        side: [subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True).stdout for argv in argvs][-1]
        for side, argvs in commands.items()
    }
    assert printed["good"] != printed["bad"]


def test_arguments_of_the_program(run_cli: Callable[..., Any], programs: Path) -> None:
    """With 0 every number is the same and the fault does not show; with 3 it does."""
    line = ["bisect", programs / "grid.cpp", "--compiler", "clang-14", *FLAG, "--json"]
    hidden = run_cli(*line, "--run-args", "0", "--", "-O3", "-DUNUSED=1")
    shown = run_cli(*line, "--run-args", "3 'second argument'", "--", "-O3")
    assert (hidden.code, json.loads(hidden.stdout)["status"]) in {(1, "no-difference"), (0, "found")}, hidden
    document = found(shown, "void grid::spread<int>(int (*) [9], int (*) [9], int (*) [9])")
    assert document["reproduce"]["bad"][-1][1:] == ["3", "second argument"]


def test_the_fault_is_in_the_other_file(run_cli: Callable[..., Any], programs: Path) -> None:
    """Only FILE gets the flags: the wrong FILE shows no difference, and that is told."""
    line = ["--compiler", "clang-14", *FLAG]
    wrong = run_cli("bisect", programs / "field_main.c", *line, "--", "-O3", programs / "field.c")
    assert wrong.code == 1, wrong
    assert wrong.stdout.startswith("NO DIFFERENCE") and "name that one as FILE" in wrong.stdout
    right = run_cli("bisect", programs / "field.c", *line, "--json", "--", "-O3", programs / "field_main.c")
    found(right, "settle")


def test_objects_and_libraries_stay_in_the_users_order(run_cli: Callable[..., Any], programs: Path) -> None:
    subprocess.run(["clang-14", "-c", "field_main.c", "-o", "main part.o"], cwd=programs, check=True)
    run = run_cli(
        "bisect",
        "field.c",
        "--compiler",
        "clang-14",
        *FLAG,
        "--json",
        "--",
        "-O3",
        "main part.o",
        "-lm",
        "-Wl,--as-needed",
        "-MD",
        "-MF",
        "deps.d",
        cwd=programs,
    )
    found(run, "settle")
    assert not (programs / "deps.d").exists(), "no trial writes beside the user's files"


@pytest.mark.parametrize("forced", [["-x", "c"], ["-xc", "--language=c"], ["-x", "c", "-x", "none"]], ids=" ".join)
def test_a_language_for_an_odd_suffix(forced: list[str], run_cli: Callable[..., Any], programs: Path) -> None:
    for name in ("field", "field_main"):
        (programs / f"{name}.c").rename(programs / f"{name}.inc")
    run = run_cli(
        "bisect",
        "field.inc",
        "--compiler",
        "clang-14",
        *FLAG,
        "--json",
        "--",
        "-O3",
        *forced,
        "field_main.inc",
        cwd=programs,
    )
    document = found(run, "settle")
    assert "-x" not in document["reproduce"]["bad"][-2], "behind -x the linker's inputs would be sources"


def test_an_odd_suffix_without_a_language(run_cli: Callable[..., Any], programs: Path) -> None:
    run = run_cli("bisect", "field.h", "--compiler", "clang-14", *FLAG, cwd=programs)
    assert run.code == 4 and "not a source that a compiler takes" in run.stderr, run


def test_a_response_file(run_cli: Callable[..., Any], programs: Path) -> None:
    (programs / "args").write_text("-O3 '-DNAME=\"a b\"'\n  field_main.c\n -lm @more")
    (programs / "more").write_text("-Wall")
    run = run_cli("bisect", "field.c", "--compiler", "clang-14", *FLAG, "--json", "--", "@args", cwd=programs)
    document = found(run, "settle")
    assert '-DNAME="a b"' in document["reproduce"]["bad"][0] and "-Wall" in document["reproduce"]["bad"][0]


def test_response_files_in_a_circle(run_cli: Callable[..., Any], programs: Path) -> None:
    (programs / "a").write_text("@b")
    (programs / "b").write_text("@a")
    run = run_cli("bisect", "field.c", "--compiler", "clang-14", *FLAG, "--", "@a", cwd=programs)
    assert run.code == 2 and "response files" in run.stderr, run


@pytest.mark.parametrize("suffix", [".ll", ".bc"])
def test_llvm_ir(suffix: str, run_cli: Callable[..., Any], programs: Path) -> None:
    form = ["-S", "-emit-llvm"] if suffix == ".ll" else ["-c", "-emit-llvm"]
    subprocess.run(
        ["clang-14", "-O3", "-Xclang", "-disable-llvm-passes", *form, "field.c", "-o", f"field{suffix}"],
        cwd=programs,
        check=True,
    )
    run = run_cli(
        "bisect", f"field{suffix}", "--compiler", "clang-14", *FLAG, "--json", "--", "-O3", "field_main.c", cwd=programs
    )
    found(run, "settle")


@pytest.mark.parametrize(
    "name", ["-da sh quo'te\" a,b=漢字.c", "new\nline \udcff\udcfe.c"], ids=["characters", "bytes-and-newline"]
)
def test_odd_names_of_the_source(name: str, run_cli: Callable[..., Any], programs: Path) -> None:
    (programs / "field.c").rename(programs / name)
    run = run_cli(
        "bisect", f"./{name}", "--compiler", "clang-14", *FLAG, "--json", "--", "-O3", "field_main.c", cwd=programs
    )
    document = found(run, "settle")
    assert document["source"].endswith(name)
    told = run_cli("bisect", "--resume", document["run_directory"], cwd=programs)
    assert told.code == 0 and told.stdout.startswith("FOUND"), told


def test_a_reference_with_other_arguments(run_cli: Callable[..., Any], programs: Path) -> None:
    run = run_cli(
        "bisect",
        "field.c",
        "--compiler",
        "clang-14",
        "--reference",
        "-O1",
        "--json",
        "--",
        "-O3",
        "-mllvm",
        "-enable-loopinterchange",
        "-I.",
        "-lm",
        "field_main.c",
        cwd=programs,
    )
    found(run, "settle")


def test_the_users_own_check(run_cli: Callable[..., Any], programs: Path) -> None:
    """The check knows the right answer by itself; its name has a blank."""
    right = subprocess.run(
        ["sh", "-c", "clang-14 field.c field_main.c -o right && ./right"],
        cwd=programs,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    check = programs / "my check.sh"
    check.write_text(f'#!/bin/sh\ntest "$("$1")" = {right}\n')
    check.chmod(0o755)
    run = run_cli(
        "bisect",
        "field.c",
        "--compiler",
        "clang-14",
        "--oracle",
        "'./my check.sh' {exe}",
        "--json",
        "--",
        "-O3",
        "-mllvm",
        "-enable-loopinterchange",
        "field_main.c",
        cwd=programs,
    )
    found(run, "settle")
