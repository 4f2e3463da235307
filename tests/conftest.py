"""What all tests share: a clean environment, the command line as a fixture, real compilers behind a
probe, a check that nothing is left behind, and the gate that keeps CI from being green by skipping.

Nothing here puts the repository root on sys.path: with the folder bisect/ in it, that would be an
accident waiting for its __init__.py.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".test-cache"  # one MCCPROBE_CACHE for all workers and runs: the stand-in SDK is built once
CLI_TIMEOUT_S = 300.0  # ends hangs on the busiest machine; measures nothing
CHILD_GRACE_S = 20.0  # a killed process group may still be on its way out, on a busy machine for seconds
REQUIRED_COMPILERS = frozenset({"clang-14", "clang-15", "clang-16", "clang-19"})  # a skip of these fails CI
MACHINE_PARTS = ("terminal", "/sys")  # a machine may lack these; tests that need one skip, in CI too
TOOL = "toolchain"  # the marker, and the key under which a test notes which tools it needs

# --- environment ------------------------------------------------------------------------------


def _clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what steers mccprobe, mcc or a make of the test's own, with our cache and plain output."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("MUSA_", "MCCPROBE_", "MCCSIM_", "MAKE", "MFLAGS"))
    }
    return {**kept, "MCCPROBE_CACHE": str(CACHE), "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"}


def pytest_configure(config: pytest.Config) -> None:
    """Clean the environment once a process, before any fixture."""
    if hypothesis.settings().deadline is not None:  # 200 ms an example: a time, which no test asserts
        hypothesis.settings.register_profile("no clock", deadline=None)
        hypothesis.settings.load_profile("no clock")
    environment = _clean_environment(os.environ)
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    # nohup and & leave these ignored, for our children too
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    config.addinivalue_line("markers", "clean(*allowed): fails if a process or a file is left behind (tests/README.md)")
    config.addinivalue_line("markers", "soak: only under make soak; left out of the suite")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ToolchainGate(config), "toolchain-gate")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests for `make soak` are left out, not skipped: nothing is missing here."""
    left_out = [] if os.environ.get("SOAK") else [item for item in items if item.get_closest_marker("soak")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="rewrite expected outputs; read the diff")


@pytest.fixture(scope="session")
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """True if expected outputs are to be rewritten."""
    return bool(request.config.getoption("--update-goldens"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


# --- the command line ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CliResult:
    """One run of mccprobe; `str()` shows all of it, for assertion messages."""

    command: str
    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"$ {self.command}\nexit {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


RunCli = Callable[..., CliResult]


@pytest.fixture
def run_cli(request: pytest.FixtureRequest, tmp_path: Path) -> RunCli:
    """`run_cli("bisect", "--help", cwd=..., env={...}, timeout_s=...)` runs `python -m mccprobe`.

    cwd: an empty directory unless given (in a `clean` test the one that is checked).
    env: added to the clean environment; None as a value removes.
    """

    def run(
        *args: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout_s: float = CLI_TIMEOUT_S,
    ) -> CliResult:
        environment: dict[str, str | None] = {
            **_clean_environment(os.environ),
            "PYTHONSAFEPATH": "1",
            **(env or {}),
        }
        if cwd is None:
            cwd = Path.cwd() if request.node.get_closest_marker("clean") else tmp_path / "cwd"
            cwd.mkdir(exist_ok=True)
        argv = [sys.executable, "-m", "mccprobe", *map(str, args)]
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        command = shlex.join(["mccprobe", *map(str, args)])
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            pytest.fail(f"no end after {timeout_s:g} s\n{CliResult(command, process.returncode, stdout, stderr)}")
        return CliResult(command, process.returncode, stdout, stderr)

    return run


@pytest.fixture
def call_cli(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """`call_cli("flags", "list")`: (exit code, standard output, standard error), in this process and so quickly."""
    from mccprobe.cli import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = main([*map(str, args)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


# --- real compilers -----------------------------------------------------------------------------


@functools.cache
def _why_unusable(compiler: str) -> str:
    """Empty if `compiler` builds a program that runs, else what was tried and how it ended."""
    language, header = ("c++", "map") if "++" in compiler else ("c", "stdio.h")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe"), Path(folder, "probe.exe")
        source.write_text(f"#include <{header}>\nint main() {{ return 7; }}\n")
        command = [compiler, "-x", language, str(source), "-o", str(program)]
        tried = shlex.join([compiler, "-x", language, "probe", "-o", "probe.exe"])
        try:
            built = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"tried `{tried}`: {error}"
        if built.returncode != 0:
            return f"tried `{tried}`: exit {built.returncode}: {built.stderr.strip()[-200:]}"
        ran = subprocess.run([str(program)], timeout=60, check=False)
        return "" if ran.returncode == 7 else f"tried `{tried}`: the program ended with {ran.returncode}, not 7"


@pytest.fixture
def compiler(request: pytest.FixtureRequest) -> Callable[..., str]:
    """`compiler(14)` is "clang-14", `compiler(19, cxx=True)` is "clang++-19"; the test is skipped where
    it does not build a program that runs."""

    def require(version: int, *, cxx: bool = False) -> str:
        request.node.user_properties.append((TOOL, f"clang-{version}"))
        name = f"clang++-{version}" if cxx else f"clang-{version}"
        if why := _why_unusable(name):
            pytest.skip(f"{name} does not work here: {why}")
        return name

    return require


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.toolchain("clang-14")` needs that tool; a bare `toolchain` leaves it to fixtures."""
    for marker in item.iter_markers(TOOL):
        for tool in marker.args:
            item.user_properties.append((TOOL, tool))
            if why := _why_unusable(tool):
                pytest.skip(f"{tool} does not work here: {why}")


def _reason_for_lack(part: str) -> str:
    return f"no {part} here: tried "


@pytest.fixture
def machine_lacks() -> Callable[[str, str], None]:
    """`machine_lacks("terminal", "pty.openpty(): out of pty devices")` skips the test, for a reason that CI accepts."""

    def skip(part: str, tried: str) -> None:
        assert part in MACHINE_PARTS
        pytest.skip(_reason_for_lack(part) + tried)

    return skip


class ToolchainGate:
    """With CI=true a run fails if the real compilers were not really run.

    It fails when no test marked `toolchain` ran although some were there (or, in a run of the whole
    suite, when there are none), when a skipped one needs a compiler of REQUIRED_COMPILERS, and when
    a skipped one does not tell which tool it needs. A terminal or /sys may be missing (`machine_lacks`).
    Sits in the process that collects the reports.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.active = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
        self.ran = 0
        self.skipped: list[tuple[str, frozenset[str]]] = []
        option = config.option
        self.whole_suite = (
            config.args_source is not pytest.Config.ArgsSource.ARGS
            and not (option.keyword or option.markexpr or option.collectonly)
            and not getattr(option, "lf", False)
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if TOOL not in report.keywords:
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            if reason.removeprefix("Skipped: ").startswith(tuple(map(_reason_for_lack, MACHINE_PARTS))):
                return
            # the one that is missing, of several: `clang-offload-bundler-19 is ...`, `llvm-19-dev is ...`
            if told := re.match(r"(?:Skipped: )?([a-z][a-z+-]*-\d+(?:-[a-z]+)*) ", reason):
                named = {told[1]}
            else:
                named = {str(value) for key, value in report.user_properties if key == TOOL}
            named |= {f"clang-{number}" for number in re.findall(r"clang(?:\+\+)?-(\d+)", reason)}
            self.skipped.append((report.nodeid, frozenset(named)))
        elif report.when == "call":
            self.ran += 1

    def complaints(self) -> list[str]:
        """Why the run must not be green, one line each."""
        if not self.active:
            return []
        found = []
        if not self.ran and (self.skipped or self.whole_suite):
            found.append(f"no real-compiler test ran ({len(self.skipped)} skipped)")
        for nodeid, tools in self.skipped:
            if not tools:
                found.append(f"{nodeid} was skipped and names no tool")
            elif missing := sorted(tools & REQUIRED_COMPILERS):
                found.append(f"{nodeid} was skipped; CI must have {', '.join(missing)}")
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.complaints() and session.exitstatus in {
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.complaints():
            terminalreporter.write_line(f"CI: {line}", red=True)


# --- nothing is left behind ---------------------------------------------------------------------


CLEAN_TAG = "PYTEST_CLEAN_TAG"  # environment variable that every process of a `clean` test inherits


def _processes_of(tag: str, place: Path) -> dict[int, str]:
    """Process id -> command line of what a test has running: our descendants, and orphans that carry
    the test's tag in their environment or work below `place`."""
    parent_of: dict[int, int] = {}
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            pid = int(folder.name)
            if state in "ZX" or pid == os.getpid():
                continue
            parent_of[pid] = int(parent)
            tagged = f"{CLEAN_TAG}={tag}".encode() in (folder / "environ").read_bytes().split(b"\0")
            if tagged or (folder / "cwd").readlink().is_relative_to(place):
                found.add(pid)
    front = {os.getpid()}
    while front:
        front = {pid for pid, parent in parent_of.items() if parent in front} - found
        found |= front
    commands = {}
    for pid in found:
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            commands[pid] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return commands


def _files_below(folder: Path, allowed: tuple[str, ...] = ()) -> list[str]:
    names = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(
        str(name) for name in names if not any(fnmatch.fnmatch(name.parts[0], pattern) for pattern in allowed)
    )


@pytest.fixture(autouse=True)
def _nothing_left_behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """For tests marked `clean`: an empty working directory and TMPDIR before, both empty after it, and
    no process of the test alive. `clean("mccprobe-out")` allows these names in the working directory."""
    marker = request.node.get_closest_marker("clean")
    if marker is None:
        yield
        return
    place = tmp_path_factory.mktemp("clean")
    cwd, temporary = place / "cwd", place / "tmp"
    cwd.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv(CLEAN_TAG, str(place))
    before = _processes_of(str(place), place)
    yield
    deadline = time.monotonic() + CHILD_GRACE_S
    while True:
        left = {pid: line for pid, line in _processes_of(str(place), place).items() if pid not in before}
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, f"processes left running: {left}"
    assert not (files := _files_below(cwd, marker.args)), f"files left in the working directory: {files}"
    assert not (files := _files_below(temporary)), f"temporary files left: {files}"
