"""`--scheduler` as a user gives it to bisect, why and flags search: the local answer, though workers die."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.build.dask_executor import DaskExecutor

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "tests" / "cases" / "02-constraint-elim-trunc" / "test.c"
KNOWN = ROOT / "tests" / "flag_search" / "known.c"
QUESTION = (str(CASE), "--compiler", "clang-14", "--flag", "-enable-constraint-elimination")
SEARCH = (str(KNOWN), "--compiler", "clang-14", "--space", str(KNOWN.with_suffix(".toml")))
COMMANDS = {
    "bisect": ("bisect", *QUESTION, "--", "-O2", "-lm"),
    "why": ("why", *QUESTION, "--step", "flags", "--step", "table", "--", "-O2", "-lm"),
    "flags search": ("flags", "search", *SEARCH, "--", "-O1", "-fno-unroll-loops", "-lm"),
}
LIMIT_S = 300.0
RunCli = Callable[..., Any]


def with_options(command: tuple[str, ...], *options: str) -> tuple[str, ...]:
    at = command.index("--")
    return (*command[:at], *options, *command[at:])


def children(pid: int) -> list[str]:
    """The processes that this one has started."""
    tasks = Path("/proc", str(pid), "task")
    return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]


@contextlib.contextmanager
def seen_at_work(cluster: Any, name: str, folder: Path, *, kill: bool) -> Iterator[None]:
    """Within, the other workers are busy until this one has a child; kill: it dies in the middle of its work.

    Otherwise it might have nothing to do: who gets a task is the scheduler's choice.
    """
    from distributed import Client

    seen = folder / "seen-at-work"
    busy = f"[__import__('time').sleep(0.02) for _ in range(10**5) if not __import__('os').path.exists({str(seen)!r})]"

    def watch() -> None:
        deadline = time.monotonic() + LIMIT_S / 2
        while time.monotonic() < deadline and not children(cluster.workers[name].pid):
            time.sleep(0.001)
        if kill and time.monotonic() < deadline:
            cluster.kill(name)
        seen.touch()

    with Client(cluster.scheduler, set_as_default=False) as client:
        others = [other for other, process in cluster.workers.items() if other != name and process.poll() is None]
        held = [client.submit(eval, busy, workers=[other], pure=False) for other in others]
        while sum(len(keys) for keys in client.processing().values()) < len(others):
            time.sleep(0.02)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        yield
        seen.touch()
        thread.join()
        client.gather(held)


def answers(document: dict[str, Any]) -> list[Any]:
    """Each trial's answer by its flags; which of two equal objects was first is a matter of time."""
    names = ("flags", "state", "verdict", "reason", "max_err", "object", "value", "samples")
    return sorted([trial[name] for name in names] for trial in document["trials"])


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["nonsense", "tcp://", "http://127.0.0.1:8787", "tcp://127.0.0.1:99999", "tls://x:1", "tcp://a b:1", "::1:9"],
)
def test_what_is_no_address(address: str) -> None:
    """Nothing is tried: the package itself hangs for 20 seconds at some of these."""
    with pytest.raises(UsageError, match="--scheduler"):
        DaskExecutor(address)


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_address(call_cli: Callable[..., tuple[int, str, str]], command: str) -> None:
    code, stdout, stderr = call_cli(*with_options(COMMANDS[command], "--scheduler", "here:port"))
    assert code == 2 and "error: --scheduler here:port" in stderr and "tcp://HOST:PORT" in stderr, stderr
    assert "Traceback" not in stderr and not stdout, stderr


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_comes_to_the_address_in_time(
    call_cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """With one second of patience."""
    monkeypatch.setattr("mccprobe.build.dask_executor.CONNECT_S", 1.0)
    code, _, stderr = call_cli(*with_options(COMMANDS[command], "--scheduler", "tcp://127.0.0.1:9"))
    assert code == 3 and "error: no Dask scheduler at tcp://127.0.0.1:9" in stderr, stderr
    assert "dask scheduler" in stderr and "Traceback" not in stderr, stderr


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_package(
    call_cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # what an import finds is an ImportError
    code, _, stderr = call_cli(*with_options(COMMANDS[command], "--scheduler", "tcp://127.0.0.1:8786"))
    assert code == 2 and install_command("cluster") in stderr and "Traceback" not in stderr, stderr


# --- the local answer ---------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("command", ["bisect", "why"])
def test_bisect_and_why(run_cli: RunCli, cluster: Any, tmp_path: Path, command: str) -> None:
    ran = run_cli(*with_options(COMMANDS[command], "--scheduler", cluster.scheduler, "--json", "-o", "run"))
    document = json.loads(ran.stdout)
    found = document if command == "bisect" else document["bisect"]
    assert found["culprit"]["pass"] == "ConstraintEliminationPass" and found["culprit"]["execution"] == 23, ran
    assert f"cluster {cluster.scheduler}: " in ran.stderr and "with a GPU" in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed (clang-14 is)")
def test_flags_search(run_cli: RunCli, cluster: Any, tmp_path: Path) -> None:
    """One worker is killed while it compiles: the same trials with the same answers, no trial twice."""
    command = with_options(COMMANDS["flags search"], "--strategy", "exhaustive", "--json")
    local = json.loads(run_cli(*with_options(command, "-o", "local")).stdout)
    cluster.add("compiles")
    cluster.ready()
    with seen_at_work(cluster, "compiles", tmp_path, kill=True):
        ran = run_cli(*with_options(command, "--scheduler", cluster.scheduler, "-o", "run"), cwd=tmp_path)
    assert cluster.workers["compiles"].poll() == -9, "it had nothing to do"
    document = json.loads(ran.stdout)
    assert answers(document) == answers(local) and len(document["trials"]) == 16, ran
    assert [one["flags"] for one in document["findings"]] == [one["flags"] for one in local["findings"]], ran
    assert document["status"] == "found" and document["refused"] == local["refused"], ran
    assert document["winner"]["flags"] == local["winner"]["flags"] == ["-fvectorize", "-mavx2"], ran
    assert document["winner"]["value"] == local["winner"]["value"] and document["winner"]["confirmed"], ran
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    named = [json.dumps(line["named"]) for line in lines if line["t"] == "trial"]
    assert len(named) == len(set(named)) == 16
    assert "programs run here" not in ran.stderr and "done here" not in ran.stderr, ran
    assert "instructions: measured on this machine" in ran.stderr, ran


@pytest.mark.soak  # a kill of a worker at work is in the suite as well, above: this one judges on a device
@pytest.mark.toolchain("clang-14")
def test_a_kernel_s_gate_runs_where_the_gpu_is(run_cli: RunCli, cluster: Any, tmp_path: Path) -> None:
    """The worker that judges is killed in a run; the other one with a GPU judges in its place."""
    (tmp_path / "space.toml").write_text(
        'schema_version = 1\n[[flag]]\nflag = "mtgpu-load-store-opt"\ngroup = "memory"\n'
        '[[flag]]\nflag = "internal-regs-ra"\n'
    )
    command = (
        "flags",
        "search",
        "gemm",
        "--toolchain",
        "sim",
        "--space",
        str(tmp_path / "space.toml"),
        "--seed",
        "1",
        "--json",
    )
    local = json.loads(run_cli(*command, "-o", "local").stdout)
    cluster.add("judges", "--resources", "GPU=1")
    cluster.ready()
    with seen_at_work(cluster, "judges", tmp_path, kill=True):
        ran = run_cli(*command, "--scheduler", cluster.scheduler, "-o", "run")
    assert cluster.workers["judges"].poll() == -9, "it had nothing to do"
    document = json.loads(ran.stdout)
    assert answers(document) == answers(local), ran
    assert document["findings"] == local["findings"] and document["status"] == local["status"], ran
    assert document["findings"][0]["flags"] == ["-mllvm --mtgpu-enable-internal-regs-ra"], ran
    assert "programs run here" not in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
def test_what_only_compiles(run_cli: RunCli, cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        'schema_version = 1\n[[flag]]\nflag = "-mllvm -amdgpu-load-store-vectorizer"\nvalues = ["0"]\n'
        '[[flag]]\nflag = "enable-newgvn"\n'
    )
    command = ("flags", "search", "gemm", "--toolchain", "amdgcn", "--space", str(tmp_path / "space.toml"), "--json")
    local = json.loads(run_cli(*command, "-o", "local").stdout)
    ran = run_cli(*command, "--scheduler", cluster.scheduler, "-o", "run")
    assert answers(json.loads(ran.stdout)) == answers(local), ran
    assert "done here" not in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
def test_a_worker_with_another_compiler_is_refused(run_cli: RunCli, cluster: Any, tmp_path: Path) -> None:
    """A `clang-14` that says something else of itself where ODD_COMPILER is set."""
    shim = tmp_path / "clang-14"
    shim.write_text(f"""#!{sys.executable}
import os, re, subprocess, sys
if "--version" in sys.argv and "ODD_COMPILER" in os.environ:
    print("clang version 14.0.6 (odd)")
elif "-###" in sys.argv:
    shown = subprocess.run(["clang-14", *sys.argv[1:]], capture_output=True, text=True)
    sys.stderr.write(re.sub('"[^"]*/clang(-14)?" "-cc1"', f'"{{sys.argv[0]}}" "-cc1"', shown.stderr))
    sys.exit(shown.returncode)
else:
    os.execvp("clang-14", ["clang-14", *sys.argv[1:]])
""")
    shim.chmod(0o755)
    command = with_options(COMMANDS["flags search"], "--objective", "code-size", "--strategy", "exhaustive", "--json")
    command = tuple(str(shim) if word == "clang-14" else word for word in command)
    with seen_at_work(cluster, "odd", tmp_path, kill=False):
        ran = run_cli(*with_options(command, "--scheduler", cluster.scheduler))
    refused = [line for line in ran.stderr.splitlines() if "is refused" in line]
    assert len(refused) == 1 and "worker odd " in refused[0] and "another compiler" in refused[0], ran
    trials = json.loads(ran.stdout)["trials"]
    assert len(trials) == 16 and {trial["state"] for trial in trials} == {"right", "wrong"}, ran
