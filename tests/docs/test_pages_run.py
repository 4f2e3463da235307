"""Every command that a page shows, run in order in a folder of the page's own, beside what the page says it prints."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from doc_pages import Command, Page, commands, differences, read_page, repository_pages

from mccprobe.targets.sim.build import sim_sdk

ROOT = Path(__file__).resolve().parents[2]
TRANSLATION = ROOT / "README.zh.md"  # the same commands as README.md (test_readmes.py)
STEP_TIMEOUT_S = 600.0  # ends a hang; measures nothing
SHELL = shutil.which("bash") or ""

PAGES = [path for path in repository_pages(ROOT) if path != TRANSLATION]
RUN = [path for path in PAGES if any(block.is_run for block in read_page(path).blocks)]

# Only versions, paths and times are masked, on both sides. An object's hash changes with the compiler's version.
MASKS = (
    (re.compile(r"\b[0-9a-f]{12}\b"), "<object>"),
    (re.compile(r"-\d{8}-\d{6}(?:-\d+)?\b"), "-<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|ms)\b"), "<time>"),
    (re.compile(r"\b(llvm-objdump)-\d+(?= -d)"), r"\1"),  # the newest one in PATH
    (re.compile(r"\bclang version \d+\.\d+\.\d+(?: \([^)]*\))?"), "clang version <version>"),
    (re.compile(r"\b(mccprobe(?:-sim version)?) \d+\.\d+\.\d+\S*"), r"\1 <version>"),
)


def masked(text: str, places: Mapping[str, str]) -> list[str]:
    """Lines as they are compared. places: path on this machine -> as the pages write it."""
    for path, shown in places.items():
        text = text.replace(path, shown)
    text = re.sub(r"(~/\.cache/mccprobe/sim/)\w+", r"\1<version>", text)
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


class Shell:
    """bash in the page's folder; directory and environment live on from command to command."""

    def __init__(self, tmp_path: Path, sdk: str) -> None:
        self.folder = tmp_path / "demo"
        self.state = tmp_path / "state"
        programs, home, temporary = tmp_path / "bin", tmp_path / "home", tmp_path / "tmp"
        for made in (self.folder, self.state, programs, home, temporary):
            made.mkdir()
        shim = programs / "mccprobe"
        shim.write_text(f'#!/bin/sh\nPYTHONSAFEPATH=1 exec "{sys.executable}" -m mccprobe "$@"\n')
        shim.chmod(0o755)
        self.cache = Path(os.environ["MCCPROBE_CACHE"])
        if sdk:
            (programs / "mcc").symlink_to(sim_sdk(self.cache).mcc)
        (self.state / "cwd").write_text(str(self.folder))
        (self.state / "env").write_text("")
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            **({"MCCPROBE_MCC": str(programs / "mcc")} if sdk else {}),  # before an SDK that is installed here
        }
        self.places = {
            str(programs / "mcc"): "mcc",
            str(self.folder): "/tmp/demo",
            str(self.cache): "~/.cache/mccprobe",
            str(home): "~",
            str(ROOT): "~/mccprobe",
        }

    def run(self, command: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        script = (
            f'. "{self.state}/env"; cd "$(cat "{self.state}/cwd")"\n{command}\nstatus=$?\n'
            f'pwd > "{self.state}/cwd"; export -p > "{self.state}/env"; exit $status'
        )
        process = subprocess.Popen(
            [SHELL, "-c", script],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=STEP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            pytest.fail(f"no end after {STEP_TIMEOUT_S:g} s: {command}\n{stdout}\n{stderr}")
        return process.returncode, stdout, stderr

    def check(self, command: Command, page: Page) -> None:
        """Run it and compare: standard output, or standard error where there is none."""
        code, stdout, stderr = self.run(command.text)
        place = f"{page.path.relative_to(ROOT)}:{command.line}"
        whole = f"{place}\n$ {command.text}\nexit {code}\n{stdout}\n--- stderr\n{stderr}"
        assert code == command.exit_code, whole
        if command.expected is not None:
            shown = masked("\n".join(command.expected), self.places)
            printed = masked(stdout if stdout.strip() else stderr, self.places)
            assert (missing := differences(tuple(shown), printed)) == "", f"{missing}\n\n{whole}"


def take_file(text: str, folder: Path) -> None:
    """`<!-- file: tests/x.c as prog.c -->`: a copy of a file or folder of the repository."""
    source, _, target = text.partition(" as ")
    place = folder / (target or source)
    place.parent.mkdir(parents=True, exist_ok=True)
    if (ROOT / source).is_dir():
        shutil.copytree(ROOT / source, place)
    else:
        shutil.copy(ROOT / source, place)


def require(tool: str, request: pytest.FixtureRequest) -> None:
    """Skip, with the tool's name, where a page's tool does not work."""
    if tool.startswith("clang-"):
        request.getfixturevalue("compiler")(int(tool.removeprefix("clang-")))
    elif shutil.which(tool) is None:
        request.node.user_properties.append(("toolchain", tool))  # the CI gate asks which tool was missing
        pytest.skip(f"{tool} is not here: the page needs it")


@pytest.mark.toolchain
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_commands_of(path: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    page = read_page(path)
    for tool in ["bash", "clang-14", *" ".join(page.directives("needs")).split()]:
        require(tool, request)
    shell = Shell(tmp_path, "".join(page.directives("sdk")))
    for text in page.directives("file"):
        take_file(text, shell.folder)
    for text in page.directives("link"):
        (shell.folder / text).symlink_to(ROOT / text)
    for block in page.blocks:
        if block.file:
            place = shell.folder / block.file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.text, encoding="utf-8")
        elif block.is_run:
            for command in commands(block):
                shell.check(command, page)
