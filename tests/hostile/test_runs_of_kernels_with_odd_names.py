"""Kernels, overlays, programs and reports with such names, through the commands that build, keep and try again.

One run of a command with every kind of name at once; a newline apart, which an overlay cannot have.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.tuning.overlay.header import dependencies

from .reader import ROOT
from .test_names import STEERING

ODD = os.fsdecode(b"-a 'b' \"c\" $(touch pwned); \xff\x1b[2J")
NEWLINE = "new\nline"
SIM = ("--toolchain", "sim", "--seed", "1")
PROGRAMS = ROOT / "tests/cli/programs"
Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path: Path, run_cli: Callable[..., Any]) -> Ask:
    """A command that must end with `code`; nothing that it prints steers, and no name gets a line of its own."""

    def asked(*argv: str | Path, code: int = 0, cwd: Path = tmp_path, env: dict[str, str] | None = None) -> Any:
        run = run_cli(*argv, cwd=cwd, env=env)
        assert run.code == code, run
        assert not STEERING & set(run.stdout + run.stderr), run
        told = run.stdout.partition("\nto reproduce")[0] + run.stderr  # a shell takes a line end in quotes
        lines = told.splitlines()
        assert not [line for line in lines if line.startswith(NEWLINE.partition("\n")[2])], run
        assert not [path for path in tmp_path.rglob("*") if path.name == "pwned"]
        return run

    return asked


def kernel_in(folder: Path, name: str, shipped: str) -> str:
    """A copy of a shipped kernel under this name; as a user writes it."""
    shutil.copytree(ROOT / "kernels/common", folder / "kernels/common", dirs_exist_ok=True)
    shutil.copytree(ROOT / "kernels" / shipped, folder / "kernels" / name)
    return f"./kernels/{name}"


@pytest.mark.toolchain("clang-14")
def test_a_round_and_an_edit(tmp_path: Path, compiler: Callable[..., str], ask: Ask) -> None:
    compiler(14)
    name = f"{ODD} {NEWLINE}"
    kernel, book = kernel_in(tmp_path, name, "barrier"), f"./{name}.jsonl"
    run = ask("cycle", kernel, *SIM, "--rounds", "1", "--warmups", "0", "-o", f"./{name} out", "--journal", book)
    assert "barrier: passed (GOOD)" in run.stdout, run
    (summary,) = (tmp_path / f"{name} out").glob("*/summary.json")
    assert json.loads(summary.read_text())["passed"]
    header = tmp_path / kernel / f"{name}.h"
    ask("edit", "begin", kernel, "--unchecked", *SIM, "--journal", book)
    header.write_text("// new\n")
    ask("edit", "test", kernel, *SIM, "--journal", book)
    kept = ask("edit", "keep", kernel, *SIM, "--journal", book)
    assert len([line for line in kept.stdout.splitlines() if line.endswith(".h")]) == 1, kept
    ask("edit", "begin", kernel, "--unchecked", *SIM, "--journal", "")
    header.write_text("// newer\n")
    ask("edit", "revert", kernel)
    assert header.read_text() == "// new\n"
    assert len(ask("journal", "list", "--journal", book).stdout.splitlines()) == 2
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for form in ("csv", "parquet"):
        ask("journal", "export", "--journal", book, f"--{form}", f"./{name}.{form}")


@pytest.mark.toolchain("clang-14")
def test_an_overlay(tmp_path: Path, compiler: Callable[..., str], ask: Ask) -> None:
    """Which header is read is asked of `-M`: a Makefile rule carries every name but one with a line end."""
    driver = ClangDriver([compiler(14)])
    folder = tmp_path / f"{ODD} # \u2003: x"
    (folder / "crt").mkdir(parents=True)
    for path in (header := folder / "crt/mma.h", source := folder / f"{ODD}.c"):
        path.write_text("#include <crt/mma.h>\n" if path == source else "")
    assert dependencies(driver, [f"-I{folder}"], source, tmp_path)[-2:] == [source, header]
    change = ("--header", "crt/mma.h", "--replace", "__frag_base<float, 32>", "__frag_base<float, 8>", *SIM)
    kernel = kernel_in(tmp_path, NEWLINE, "accumulators-16")
    before = {path.name for path in tmp_path.iterdir()}
    elsewhere = "choose another place with -o DIR"
    for given, out, hint in ((kernel, "out", "rename it"), ("accumulators-16", "back\\slash", elsewhere)):
        refused = ask("overlay", given, *change, "--journal", "", "-o", out, code=4)
        assert "in its name, which a Makefile rule (-M) cannot carry" in refused.stderr
        assert f"hint: {hint}" in refused.stderr
        assert {path.name for path in tmp_path.iterdir()} - {"cwd"} == before, "the place is refused before it is made"


def test_a_program(tmp_path: Path, ask: Ask) -> None:
    name = f"{ODD} {NEWLINE}"
    program = tmp_path / f"{name}.sh"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    ask("bench", "--program", shlex.quote(f"./{name}.sh"), "--rounds", "2", "--warmups", "0", "--journal", "")
    traced = ask("trace", "-o", f"./{name} trace", "--json", "--", f"./{name}.sh")
    assert json.loads(traced.stdout)["launches"] == 0


@pytest.mark.toolchain("clang-14")
def test_a_check_of_the_users_tried_again(tmp_path: Path, compiler: Callable[..., str], ask: Ask) -> None:
    """bisect with such a check and such header folders, its report, the report's script, and recheck of both forms."""
    clang, name = compiler(14), f"{ODD} {NEWLINE}"
    work = tmp_path / name
    (work / f"{name} headers").mkdir(parents=True)
    for file, suffix in (("field.c", ".c"), ("field_main.c", " main.c")):
        shutil.copy(PROGRAMS / file, work / f"{name}{suffix}")
    shutil.copy(PROGRAMS / "field.h", work / f"{name} headers")
    check = work / f"{name} check"
    check.write_text('#!/bin/sh\n[ "$("$1")" != 1525099781 ]\n')
    check.chmod(0o755)
    oracle = shlex.join([f"./{name} check", "{exe}"])
    options = ("--toolchain", "clang", "--compiler", clang, "--flag=-enable-loopinterchange", "--oracle", oracle)
    where = ("-o", f"./{name} run")
    more = ("-O3", f"./{name} main.c")
    headers = {"CPATH": f"{name} headers"}
    ask("bisect", f"./{name}.c", *options, *where, "--", *more, cwd=work, env=headers)
    ask("bug-report", f"./{name} run", "-o", f"./{name} bug", cwd=work)
    script = ["sh", work / f"{name} bug" / "repro.sh", clang]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0 and b"BUG PRESENT" in done.stdout, done
    for report in (f"./{name} bug", f"./{name} bug.tar.gz"):
        again = ask("recheck", report, "--compiler", clang, cwd=work)
        assert "still there" in again.stdout, again
    refused = ask("recheck", f"./{name} run", "--compiler", clang, cwd=work, code=4)
    assert "the folder or the .tar.gz that mccprobe bug-report wrote" in refused.stderr


@pytest.mark.toolchain("clang-14")
def test_a_stem_with_a_dash_is_no_option_in_what_reproduces(
    tmp_path: Path, compiler: Callable[..., str], ask: Ask
) -> None:
    for file, name in (("field.c", "-field.c"), ("field_main.c", "main.c"), ("field.h", "field.h")):
        shutil.copy(PROGRAMS / file, tmp_path / name)
    options = ("--toolchain", "clang", "--compiler", compiler(14), "--flag=-enable-loopinterchange")
    run = ask("bisect", "./-field.c", *options, "-o", "run", "--json", "--", "-O3", "main.c")
    for argv in json.loads(run.stdout)["reproduce"]["bad"]:
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1525099781"
