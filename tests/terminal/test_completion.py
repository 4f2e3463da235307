"""Completion as a user has it: a real shell on a terminal, TAB, and what is in the line then."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from mccprobe.cli import root as root_command
from mccprobe.cli.completion_shells import join_split_words
from mccprobe.cli.completion_values import attach

RunCli = Callable[..., Any]
Complete = Callable[..., list[str]]
START = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "--private", "-i"),
}
SOURCE = {
    "bash": "source ./script",
    "zsh": "autoload -Uz compinit && compinit -u -D && source ./script",
    "fish": "source ./script",
}

ANSWER_S = 30.0  # ends a wait for a shell that does not ask, on the busiest machine


def needs(shell: str) -> None:
    command = [shell, "--version"]
    if shutil.which(shell) is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{shell}: tried {' '.join(command)}")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with `mccprobe` for PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "mccprobe"
    asked = tmp_path / "asked"  # a line for each call that has ended
    script.write_text(f'#!/bin/sh\n{sys.executable} -m mccprobe "$@"\necho >>{asked}\n', encoding="utf-8")
    script.chmod(0o755)
    return folder


# what is typed before TAB, and what then stands in the line: each is the only possible continuation
UNIQUE = {
    "mccprobe bis": "mccprobe bisect ",
    "mccprobe bisect --refere": "mccprobe bisect --reference",
    "mccprobe journal dead": "mccprobe journal dead-ends ",
    "mccprobe bisect --toolchain cu": "mccprobe bisect --toolchain cu",
    "mccprobe check --toolchain si": "mccprobe check --toolchain sim ",
    "mccprobe bisect --flag internal-reg": "mccprobe bisect --flag internal-regs-ra ",
    "mccprobe bisect --flag=internal-reg": "mccprobe bisect --flag=internal-regs-ra ",
    "mccprobe bisect --flag FenceSetting=st": "mccprobe bisect --flag FenceSetting=strict ",
    "mccprobe bisect --flag=FenceSetting=st": "mccprobe bisect --flag=FenceSetting=strict ",
    "mccprobe wrapper install --set gem": "mccprobe wrapper install --set gemm-s4000 ",
    "mccprobe check pointer": "mccprobe check pointer-chase ",
    "mccprobe bisect --resume mccprobe-out/gem": "mccprobe bisect --resume mccprobe-out/gemm-1",
    "mccprobe reduce mccprobe-out/gem": "mccprobe reduce mccprobe-out/gemm-1",
    "mccprobe help env": "mccprobe help environment ",
    "mccprobe report odd": "mccprobe report odd name.s ",
    "mccprobe journal list --journal odd": "mccprobe journal list --journal odd name.s ",
    "mccprobe bisect odd\\ name.s -- -O3 odd": "mccprobe bisect odd name.s -- -O3 odd name.s ",
}


@pytest.mark.parametrize("shell", START)
def test_a_real_shell_completes(
    shell: str, terminal: Callable[..., Any], program: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    needs(shell)
    (tmp_path / "script").write_text(run_cli("completion", shell).stdout, encoding="utf-8")
    run = tmp_path / "mccprobe-out" / "gemm-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}", encoding="utf-8")
    (tmp_path / "odd name.s").touch()
    path = f"{program}{os.pathsep}{os.environ['PATH']}"
    opened = terminal(*START[shell], env={"PATH": path, "PS1": "> ", "XDG_DATA_HOME": str(tmp_path / "data")})
    # what is in the line becomes arguments of `told`, which shows them: no shell's way to draw a line is read
    told = tmp_path / "told"
    define = {
        "fish": f"function told; string join '|' -- $argv >> {told}; end",
    }.get(shell, f"told() {{ local IFS='|'; printf '%s\\n' \"$*\" >> {told}; }}")
    opened.type(f"{SOURCE[shell]}\n{define}\necho re''ady\n")
    place = opened.until("ready")
    for number, (typed, expected) in enumerate(UNIQUE.items()):
        answered = _lines(tmp_path / "asked")
        opened.type(f"{typed}\t")
        _answered(opened, tmp_path / "asked", answered)
        # to the start of the line: `told ` in front of it, then run it
        opened.type(f"\x01told \x05\necho do''ne{number}\n")
        place = opened.until(f"done{number}", after=place)
        line = told.read_text("utf-8").splitlines()[-1]
        assert line.replace("|", " ").rstrip("/ ") == expected.rstrip(), f"{typed!r}: {opened.text[-2000:]}"
    opened.type("exit\n")


def _lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def _answered(opened: Any, asked: Path, before: int) -> None:
    """Until mccprobe has answered the shell and nothing comes for a moment."""
    deadline = time.monotonic() + ANSWER_S
    while _lines(asked) == before and time.monotonic() < deadline:
        opened.read(0.05)
    while opened.read(0.3):
        pass


@pytest.mark.parametrize(
    ("words", "joined", "has"),
    [
        (["bisect", "--flag", "=", "inter"], ["bisect", "--flag", "inter"], ""),
        (["bisect", "--flag", "="], ["bisect", "--flag", ""], ""),
        (["--flag", "Fence", "=", "st"], ["--flag", "Fence=st"], "Fence="),
        (["--flag", "=", "Fence", "=", "st"], ["--flag", "Fence=st"], "Fence="),
        (["--flag", "Fence", "="], ["--flag", "Fence="], "Fence="),
        (["a", ""], ["a", ""], ""),
        ([""], [""], ""),
        ([], [], ""),
    ],
)
def test_words_that_bash_split(words: list[str], joined: list[str], has: str) -> None:
    assert join_split_words(words) == (joined, has)


@pytest.fixture
def complete(run_cli: RunCli) -> Complete:
    """`complete("check ", cwd=...)`: what bash is told for `mccprobe check `."""

    def ask(line: str, **options: Any) -> list[str]:
        words = f"mccprobe {line}"
        count = len(words.split()) - (not words.endswith(" "))
        env = {"COMP_WORDS": words, "COMP_CWORD": str(count), "_MCCPROBE_COMPLETE": "bash_complete"}
        run = run_cli(env=env, **options)
        assert (run.code, run.stderr) == (0, ""), run
        return list(run.stdout.splitlines())

    return ask


def below(command: click.Command) -> list[click.Command]:
    """The command, and all that stand below it."""
    ctx = click.Context(command)
    inner = (
        [command.get_command(ctx, name) for name in command.list_commands(ctx)]
        if isinstance(command, click.Group)
        else []
    )
    return [command, *(each for one in inner if one is not None for each in below(one))]


def test_what_takes_a_path_offers_paths() -> None:
    """Every option of every command whose help calls for a file or a folder."""
    wanted = re.compile(r"(FILE|DIR|PATH|TABLE\.json)$")
    asked = set()
    for command in below(root_command):
        attach(command)
        ctx = click.Context(command)
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and wanted.search(option.make_metavar(ctx)):
                assert {item.type for item in option.shell_complete(ctx, "")} & {"file", "dir"}, (command, option.opts)
                asked.add(option.opts[-1])
    assert {"--journal", "--html", "--output", "--run-in"} <= asked


def test_what_is_offered(complete: Complete, root: Path) -> None:
    assert {"plain,bisect", "plain,doctor", "plain,completion"} <= set(complete(""))
    kernels = {path.parent.name for path in (root / "kernels").glob("*/kernel.toml")}
    assert {f"plain,{name}" for name in kernels} <= set(complete("check "))
    assert "file," in complete("check ")
    assert complete("--") != []
    assert "plain,FenceSetting" in complete("bisect --flag ")
    assert complete("bisect --flag nothing-of-this-name") in ([], [""])


def test_damaged_surroundings_offer_less_and_say_nothing(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "mccprobe-out").write_text("no folder", encoding="utf-8")
    assert complete("bisect --resume ", cwd=tmp_path) == ["dir,"]


def test_the_names_of_commands_cost_no_import_of_commands(root: Path) -> None:
    code = (
        "import sys, os; sys.argv = ['mccprobe'];\n"
        "from mccprobe import cli\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.startswith('mccprobe.cli.') and m.endswith('_cmd')), file=sys.stderr)"
    )
    env = {**os.environ, "COMP_WORDS": "mccprobe b", "COMP_CWORD": "1", "_MCCPROBE_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.split() == ["plain,bench", "plain,bisect", "plain,bug-report"]
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("line", ["bisect --flag m", "check ", "report ", "wrapper install --set ", "bisect --resume "])
def test_no_value_costs_a_heavy_library(line: str, root: Path) -> None:
    code = (
        "import sys; sys.argv = ['mccprobe'];\nfrom mccprobe import cli\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "heavy = {'pandas', 'numpy', 'rich', 'elftools', 'capstone', 'matplotlib', 'optuna', 'distributed', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    words = f"mccprobe {line}"
    env = {
        **os.environ,
        "COMP_WORDS": words,
        "_MCCPROBE_COMPLETE": "bash_complete",
        "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=root)
    assert done.stderr.strip() == "[]"
