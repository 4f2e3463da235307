"""What a user can do wrong: one clear line, what to do about it, the exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .refusals import CLANG, PLAIN, RunCli, both, refused, refused_as_json

# --- compilers ------------------------------------------------------------------------------------


@pytest.mark.clean
def test_no_compiler(run_cli: RunCli, source: Path) -> None:
    empty = {"PATH": "/nowhere"}
    both(run_cli, 3, [source, *PLAIN], "no clang found", "clang-14", "--compiler PATH", env=empty)
    both(run_cli, 3, [source, *PLAIN, "--compiler", "clang-99"], "no clang found", "clang-99", "here are", "clang-14")


@pytest.mark.clean
@pytest.mark.parametrize("body", ["exit 0", "echo no compiler", "exit 1", "kill -9 $$", "exec sleep 0"])
def test_a_compiler_that_is_none(body: str, run_cli: RunCli, source: Path, tmp_path: Path) -> None:
    fake = tmp_path / "not-clang"
    fake.write_text(f"#!/bin/sh\n{body}\n")
    fake.chmod(0o755)
    run = run_cli("bisect", source, *PLAIN, "--compiler", fake)
    assert run.code in (2, 3), run
    refused(run, run.code, "not-clang")


@pytest.mark.clean
@pytest.mark.parametrize("name", ["/usr/bin/gcc", "/bin/true", "/bin/cat"])
def test_another_program_as_the_compiler(name: str, run_cli: RunCli, source: Path) -> None:
    if not Path(name).exists():
        pytest.skip(f"{name} is not here")
    run = run_cli("bisect", source, *PLAIN, "--compiler", name)
    assert run.code in (2, 3), run
    refused(run, run.code, name)


@pytest.mark.clean
def test_a_users_mu_without_mcc(run_cli: RunCli, tmp_path: Path) -> None:
    kernel = tmp_path / "mine.mu"
    kernel.write_text("__global__ void k() {}\n")
    both(
        run_cli, 3, [kernel, "--flag", "internal-regs-ra"], "no mcc found", "--toolchain sim", env={"PATH": "/nowhere"}
    )
    both(run_cli, 3, [kernel, "--toolchain", "mcc", "--flag", "internal-regs-ra"], "no mcc found")


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.clean
def test_a_source_that_is_not_there(run_cli: RunCli, tmp_path: Path) -> None:
    both(run_cli, 4, [tmp_path / "gone.c", *CLANG, *PLAIN], "gone.c: no such file")
    folder = tmp_path / "folder"
    folder.mkdir()
    both(run_cli, 4, [folder, *CLANG, *PLAIN], "kernel.toml")
    (tmp_path / "notes.txt").write_text("x")
    both(run_cli, 4, [tmp_path / "notes.txt", *CLANG, *PLAIN], "notes.txt: not a source")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_a_source_that_cannot_be_read(run_cli: RunCli, source: Path) -> None:
    source.chmod(0)
    if os.access(source, os.R_OK):  # the super-user reads everything: what no one can read is a broken link
        source.unlink()
        source.symlink_to("gone")
        both(run_cli, 4, [source, *CLANG, *PLAIN], "prog.c: no such file")
        return
    both(run_cli, 4, [source, *CLANG, *PLAIN], "prog.c: Permission denied")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_source_that_does_not_compile(run_cli: RunCli, source: Path) -> None:
    source.write_text("int main(void) { return undeclared_name; }\n")
    both(run_cli, 4, [source, *CLANG, *PLAIN], "does not compile", "use of undeclared identifier 'undeclared_name'")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_many_errors_show_the_first(run_cli: RunCli, source: Path) -> None:
    source.write_text("".join(f"int f{n}(void) {{ return name_{n}; }}\n" for n in range(15)))
    run = run_cli("bisect", source, *CLANG, *PLAIN)
    refused(run, 4, "undeclared identifier 'name_0'", "lines left out")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_another_source_that_does_not_compile(run_cli: RunCli, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text("int x = ;\n")
    both(run_cli, 4, [source, *CLANG, *PLAIN, "--", other], "other.c does not compile", "expected expression")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_program_that_does_not_link(run_cli: RunCli, source: Path) -> None:
    source.write_text("int gone(void); int main(void) { return gone(); }\n")
    both(run_cli, 4, [source, *CLANG, *PLAIN], "does not link", "gone")
    both(run_cli, 4, [source, *CLANG, *PLAIN, "--", "-lno-such-library"], "does not link", "no-such-library")


# --- flags and options ----------------------------------------------------------------------------


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_flags(run_cli: RunCli, source: Path) -> None:
    both(run_cli, 2, [source, *CLANG, "--flag", "internal-reg-ra"], "internal-reg-ra", "internal-regs-ra")
    both(run_cli, 2, [source, *CLANG, "--flag", "no-such-flag-anywhere"], "no-such-flag-anywhere")
    both(run_cli, 2, [source, *CLANG, "--flag", "-no-such-option"], "clang-14 does not take", "-no-such-option")
    both(run_cli, 2, [source, *CLANG, "--flag", "-unroll-count=many"], "clang-14 does not take", "-unroll-count=many")
    both(run_cli, 2, [source, *CLANG, "--flag", ""], "flag")
    both(run_cli, 2, [source, *CLANG, *PLAIN, *PLAIN], "twice")
    both(run_cli, 2, [source, *CLANG, "--flag", "-unroll-count=2", "--flag", "--unroll-count=4"], "unroll-count twice")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_a_flag_that_fits_several_entries(run_cli: RunCli, source: Path) -> None:
    from mccprobe.base.errors import AmbiguousFlag
    from mccprobe.targets.flags.catalogue import load_catalogue

    suffixes = {flag.name.rpartition("-")[2] for flag in load_catalogue().flags.values()}
    for suffix in sorted(suffixes):
        try:
            load_catalogue().resolve(suffix)
        except AmbiguousFlag as error:
            both(run_cli, 2, [source, *CLANG, "--flag", suffix], suffix, *error.candidates)
            return
        except Exception:
            continue
    pytest.fail("no suffix of the catalogue is ambiguous: this test needs another way")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    "given",
    [
        ["-mllvm", "-opt-bisect-limit=5"],
        ["-mllvm", "--opt-bisect-limit=5"],
        ["-Xclang", "-mllvm", "-Xclang", "-opt-bisect-limit=5"],
    ],
    ids=" ".join,
)
def test_the_limit_is_ours_to_set(given: list[str], run_cli: RunCli, source: Path) -> None:
    both(run_cli, 2, [source, *CLANG, *PLAIN, "--", *given], "opt-bisect-limit=5 is mccprobe's own to set")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_the_limit_as_a_flag(run_cli: RunCli, source: Path) -> None:
    both(run_cli, 2, [source, *CLANG, "--flag", "-opt-bisect-limit=5"], "opt-bisect-limit=5 is mccprobe's own to set")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("own", [["-S"], ["-E"], ["-fsyntax-only"], ["-M"]], ids=" ".join)
def test_options_that_are_ours_to_set(own: list[str], run_cli: RunCli, source: Path) -> None:
    both(run_cli, 2, [source, *CLANG, *PLAIN, "--", "-O2", *own], f"{own[0]} is mccprobe's own to set")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_nothing_to_compare_with(run_cli: RunCli, source: Path) -> None:
    both(run_cli, 2, [source, *CLANG, "--", "-O2"], "nothing to compare with", "--reference")


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--oracle", "'unbalanced"], "--oracle cannot be split"),
        (["--oracle", ""], "--oracle is empty"),
        (["--reference", "'unbalanced"], "--reference cannot be split"),
        (["--run-args", "'unbalanced", *PLAIN], "--run-args cannot be split"),
        (["--case", "64x64x64", *PLAIN], "--case"),
        (["--toolchain", "sim", *PLAIN], "--compiler"),
        (["--jobs", "0"], "--jobs"),
        (["--timeout", "never"], "--timeout"),
        (["--no-such-option"], "no-such-option"),
        (["--count", "1"], "--count"),
        (["--recipe", "gone.toml"], "gone.toml"),
    ],
)
def test_options(args: list[str], told: str, run_cli: RunCli, source: Path) -> None:
    run = run_cli("bisect", source, *CLANG, *args)
    assert run.code in (2, 4), run
    refused(run, run.code, told)
    refused_as_json(run_cli, run.code, source, *CLANG, *args)


@pytest.mark.clean
def test_no_file(run_cli: RunCli) -> None:
    both(run_cli, 2, [*CLANG, *PLAIN], "no FILE to bisect")
    both(run_cli, 2, ["--", "-O2", "prog.c"], "which file is to be bisected?")


# --- oracles --------------------------------------------------------------------------------------


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_check_that_cannot_fail(run_cli: RunCli, source: Path) -> None:
    run = run_cli("bisect", source, *CLANG, *PLAIN, "--oracle", "true", "--json", "--", "-O1")
    document = json.loads(run.stdout)
    assert (run.code, document["status"], document["code"]) == (5, "error", "oracle-unusable"), run
    assert "cannot fail" in document["message"], run


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("oracle", "told"),
    [
        ("./no-such-check", "the oracle cannot be executed"),
        ("/etc/passwd", "the oracle cannot be executed"),
        ("sh -c 'exit 127'", "the oracle cannot be executed"),
        ("sh -c 'kill -SEGV $$'", "the oracle itself broke"),
        ("false", "the reference build is not GOOD"),
        ("sh -c 'exit 125'", "the reference build is not GOOD"),
    ],
)
def test_a_check_that_does_not_work(oracle: str, told: str, run_cli: RunCli, source: Path) -> None:
    both(run_cli, 5, [source, *CLANG, *PLAIN, "--oracle", oracle, "--", "-O1"], told)


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_equal_ends(run_cli: RunCli, source: Path) -> None:
    run = run_cli("bisect", source, *CLANG, *PLAIN, "--json", "--", "-O1")
    assert (run.code, json.loads(run.stdout)["status"]) == (1, "no-difference"), run
    wrong = run_cli("bisect", source, *CLANG, "--oracle", "false", "--json", "--", "-O1")
    assert (wrong.code, json.loads(wrong.stdout)["status"]) == (1, "wrong-at-zero"), wrong


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_program_that_prints_something_else_each_time(run_cli: RunCli, source: Path) -> None:
    source.write_text(
        '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", getpid()); return 0; }\n'
    )
    both(run_cli, 5, [source, *CLANG, *PLAIN], "prints something else at each run", "--oracle")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_reference_that_never_ends(run_cli: RunCli, source: Path) -> None:
    source.write_text("#include <unistd.h>\nint main(void) { if (!fork()) pause(); pause(); return 0; }\n")
    both(run_cli, 5, [source, *CLANG, *PLAIN, "--timeout", "0.3"], "gives no answer: timeout", "--timeout")


@pytest.mark.clean("mccprobe-out")
@pytest.mark.toolchain("clang-14")
def test_a_reference_that_prints_too_much(run_cli: RunCli, source: Path) -> None:
    source.write_text(
        '#include <stdio.h>\nint main(void) { for (int i = 0; i < 999999; i++) puts("line"); return 0; }\n'
    )
    both(run_cli, 5, [source, *CLANG, *PLAIN, "--", "-O1"], "too many to compare")


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.clean("run")
@pytest.mark.toolchain("clang-14")
def test_a_place_that_holds_a_run(run_cli: RunCli, source: Path) -> None:
    first = run_cli("bisect", source, *CLANG, *PLAIN, "-o", "run", "--", "-O1")
    assert first.code == 1, first
    both(run_cli, 2, [source, *CLANG, *PLAIN, "-o", "run"], "run holds a run already", "--resume run")


@pytest.mark.clean("mine")
@pytest.mark.toolchain("clang-14")
def test_a_place_with_the_users_files(run_cli: RunCli, source: Path) -> None:
    """A folder `trials` of the user's would be emptied, and nobody could tell ours from theirs."""
    mine = Path.cwd() / "mine" / "trials"
    mine.mkdir(parents=True)
    (mine / "precious").write_text("x")
    both(run_cli, 2, [source, *CLANG, *PLAIN, "-o", "mine"], "mine is not empty")
    assert (mine / "precious").read_text() == "x" and sorted(p.name for p in mine.parent.iterdir()) == ["trials"]


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    "place", ["/proc/run", "/dev/null/run", "/dev/null", "x" * 300], ids=["proc", "below", "file", "long"]
)
def test_a_place_that_cannot_be_written(place: str, run_cli: RunCli, source: Path) -> None:
    both(run_cli, 4, [source, *CLANG, *PLAIN, "-o", place], "cannot be written", "-o DIR")


@pytest.mark.toolchain("clang-14")
def test_a_full_disk(run_cli: RunCli, source: Path, tmp_path: Path) -> None:
    """A small file system where that may be mounted, else a limit on the size of files. However little
    room there is, it is the disk that is blamed, not the compiler or the program."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20k", "none", str(small)], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        try:
            for size in (20, 40, 60, 80, 100, 120, 150, 200):
                subprocess.run(["mount", "-o", f"remount,size={size}k", str(small)], check=True)
                run = run_cli("bisect", source, *CLANG, *PLAIN, "-o", small / "run", "--", "-O2")
                if run.code == 1:
                    break
                refused(run, 4, "the disk is full")
                subprocess.run(["rm", "-rf", str(small / "run")], check=True)
            else:
                assert size == 200
        finally:
            subprocess.run(["umount", str(small)], check=True)
        return
    limited = (
        "import resource, signal, sys, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500)); "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.argv[0] = 'mccprobe'; "
        "runpy.run_module('mccprobe', run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", limited, "bisect", str(source), *CLANG, *PLAIN, "-o", str(small / "run"), "--", "-O1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 4, ran
    assert ran.stderr.count("error: ") == 1 or "File too large" in ran.stderr, ran
    assert "Traceback" not in ran.stderr, ran
