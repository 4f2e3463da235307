"""What a newcomer types first, and mistypes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .refusals import CLANG, RunCli, refused


@pytest.mark.parametrize("args", [(), ("flags",), ("wrapper",), ("journal",), ("edit",), ("isa",)], ids=" ".join)
def test_a_group_alone_shows_its_help_in_full(args: tuple[str, ...], run_cli: RunCli) -> None:
    asked, helped = run_cli(*args), run_cli(*args, "--help")
    assert (asked.code, asked.stdout) == (2, ""), asked
    assert asked.stderr == helped.stdout, asked


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("bisct",), 2, "Did you mean bisect?"),
        (("toolchain",), 2, "toolchains"),
        (("check", "gem"), 2, "nearest name: gemm;"),
        (("check", "elsewhere/gemm"), 4, "the shipped kernel is gemm, without a folder"),
        (("bisect", "elsewhere/gemm"), 4, "the shipped kernel is gemm, without a folder"),
        (("edit", "begin", "elsewhere/gemm"), 4, "the shipped kernel is gemm, without a folder"),
        (("flags", "search", "elsewhere/gemm"), 4, "the shipped kernel is gemm, without a folder"),
        (("report", "elsewhere/gemm"), 4, "the shipped kernel is gemm, without a folder"),
        (("notes", "elsewhere/gemm"), 4, "mccprobe report gemm compiles it"),
        (("lint", "elsewhere/gemm"), 4, "mccprobe report gemm compiles it"),
        (("disasm", "gemm"), 4, "mccprobe report gemm compiles it"),
        (("flags", "list", "--debug"), 2, "--debug stands before the command"),
        (("bisect", "a.c", "-O3"), 2, "arguments of the compiler stand behind --"),
        (("why", "a.c", "-O3"), 2, "arguments of the compiler stand behind --"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_slip_is_answered_with_what_was_meant(args: tuple[str, ...], code: int, told: str, run_cli: RunCli) -> None:
    refused(run_cli(*args), code, told)


@pytest.mark.parametrize("args", [("check",), ("bisect",), ("bench",)], ids=" ".join)
def test_a_program_that_hides_a_shipped_kernel(args: tuple[str, ...], run_cli: RunCli, tmp_path: Path) -> None:
    """As the tutorial may leave one: built from the kernel, and called like it."""
    (tmp_path / "gemm").write_bytes(b"\x7fELF")
    refused(run_cli(*args, "gemm", cwd=tmp_path), 4, "this file hides the shipped kernel gemm, which is /")


@pytest.mark.parametrize(
    "args",
    [("report",), ("notes",), ("check",), ("bisect",), ("bench",), ("why",), ("diff", "x"), ("trace", "-o"), ("lint",)],
    ids=" ".join,
)
def test_names_that_no_system_has(args: tuple[str, ...], run_cli: RunCli, tmp_path: Path) -> None:
    """Longer than any name may be, and a link to itself."""
    (tmp_path / "loop").symlink_to("loop")
    for name in ("a" * 5000, "loop"):
        run = run_cli(*args, name, *(("--", "true") if args[0] == "trace" else ()), cwd=tmp_path)
        assert run.code in (2, 3, 4), run
        assert "bug in mccprobe" not in run.stderr and len(run.stderr) < 8000, run


@pytest.mark.parametrize(
    "args",
    [("bisect", "--recipe", "nowhere.toml"), ("flags", "search", "gemm", "--space", "nowhere.toml")],
    ids=lambda args: args[0],
)
def test_a_file_of_options_that_is_not_there(args: tuple[str, ...], run_cli: RunCli) -> None:
    ran = run_cli(*args)
    refused(ran, 4, "nowhere.toml: ", "No such file or directory")
    assert "schemas" not in ran.stderr, ran
    assert args[0] != "bisect" or "hint: shipped recipes: internal-regs-ra\n" in ran.stderr, ran


@pytest.mark.parametrize(
    ("more", "told"),
    [((), True), (("--reference", "-O0"), False), (("--flag", "-enable-newgvn"), False)],
    ids=["alone", "reference", "flag"],
)
def test_a_build_that_is_compared_with_nothing(
    more: tuple[str, ...], told: bool, run_cli: RunCli, source: Path, tmp_path: Path
) -> None:
    """Said at the start: with no flag and no reference both ends are the same build."""
    check = tmp_path / "check.sh"
    check.write_text('#!/bin/sh\ntest "$($1)" = 42\n')
    check.chmod(0o755)
    run = run_cli("bisect", source, *CLANG, *more, "--oracle", f"{check} {{exe}}", "-o", tmp_path / "run")
    assert "NO DIFFERENCE" in run.stdout, run
    assert run.stderr.startswith("no --flag and no --reference: one build is asked about") is told, run
