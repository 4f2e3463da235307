"""`mccprobe wrapper` as a user calls it, with the stand-in SDK."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.cli import COMMANDS
from mccprobe.targets.sim import SimSdk, sim_sdk

pytestmark = pytest.mark.toolchain("clang-14")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "reports/wrapper-status.schema.json").read_text(encoding="utf-8"))
ENTRY = ("mccprobe.cli.wrapper_cmd", "wrapper", COMMANDS.get("wrapper", ("", "", "put a flag set before mcc"))[2])
MAIN = f"import sys; from mccprobe import cli; cli.COMMANDS['wrapper'] = {ENTRY!r}; sys.exit(cli.main())"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def sdk() -> SimSdk:
    return sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("status", "--json", code=0, PATH=...)`; HOME is an empty folder."""
    home = tmp_path / "home"
    home.mkdir()

    def call(*args: str | Path, code: int = 0, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "wrapper", *map(str, args)],
            cwd=tmp_path,
            input=stdin,
            env={**os.environ, "HOME": str(home), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, f"{args}\n{done.stdout}\n{done.stderr}"
        return done

    return call


def in_front(folder: Path) -> str:
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def status_of(run: Run, *args: str, **settings: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("status", "--json", *args, **settings).stdout)
    jsonschema.validate(document, SCHEMA)
    return document


def test_from_install_to_remove(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    home = tmp_path / "home"
    installed = run("install", "--mcc", sdk.mcc)
    assert installed.stdout.startswith(f"{home}/.local/bin/mcc\n")
    assert "SIMULATED" in installed.stdout
    assert "mtgpu-tiny-offset-hint: promise" in installed.stderr
    assert "not yet what `mcc` finds" in installed.stderr
    path = in_front(home / ".local/bin")
    assert "not yet" not in run("install", "--mcc", sdk.mcc, "--set", "gemm-s4000", PATH=path).stderr
    shown = run("show").stdout
    assert shown == (home / ".local/bin/mcc").read_text()
    assert run("remove").stdout.startswith(f"removed {home}/.local/bin/mcc")
    assert list(home.iterdir()) == []
    assert "no wrapper at" in run("remove", code=4).stderr
    assert "no wrapper at" in run("show", code=4).stderr


def test_show_installs_nothing(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    text = run("show", "--set", "opt1", "--mcc", sdk.mcc).stdout
    assert text.startswith("#!/bin/sh\n# mccprobe wrapper {") and "mtgpu-opt-level=1" in text
    assert list((tmp_path / "home").iterdir()) == []


def test_status_proves_what_it_says(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    run("install", "--mcc", sdk.mcc, "--prefix", prefix)
    path = in_front(prefix / "bin")
    # the stand-in takes the article's flags; they arrive and do nothing, and that is said, not glossed over
    plain = status_of(run, "--prefix", str(prefix), code=1, PATH=path)
    assert plain["found_by_command_v"] is True
    assert plain["reaches_device_compile"] is True
    assert [one["times"] for one in plain["added"]] == [1] * 7
    assert plain["changes_object"] is False
    assert plain["objects"]["with"] == plain["objects"]["without"]
    assert plain["compiler"]["simulated"] is True and any("SIMULATED" in note for note in plain["notes"])
    # one that has an effect is seen in the object
    more = status_of(run, "--prefix", str(prefix), code=0, PATH=path, MCCPROBE_FLAGS="-mllvm -misched=ilpmax")
    assert more["status"] == "works" and more["changes_object"] is True
    assert {"option": "-mllvm -misched=ilpmax", "times": 1} in more["added"]
    assert more["environment"] == {"MCCPROBE_FLAGS": "-mllvm -misched=ilpmax"}
    text = run("status", "--prefix", prefix, code=0, PATH=path, MCCPROBE_FLAGS="-mllvm -misched=ilpmax").stdout
    assert "(the wrapper)" in text and len(re.findall("once in the device compile", text)) == 8
    assert [line for line in text.splitlines() if line.startswith(("arrives", "changes"))] == [
        "arrives   yes  [SIMULATED]",
        "changes   yes  [SIMULATED]",
    ]


def test_status_on_the_users_kernel(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    run("install", "--mcc", sdk.mcc, "--prefix", prefix)
    (tmp_path / "empty.mu").write_text("__attribute__((global)) void k(int *p) { *p = 1; }\n")
    env = {"PATH": in_front(prefix / "bin"), "MCCPROBE_FLAGS": "-mllvm -misched=ilpmax"}
    found = status_of(run, "--prefix", str(prefix), "--source", "empty.mu", code=1, **env)
    assert (found["reaches_device_compile"], found["changes_object"]) == (True, False)
    (tmp_path / "broken.mu").write_text("no kernel\n")
    found = status_of(run, "--prefix", str(prefix), "--source", "broken.mu", code=1, **env)
    assert found["changes_object"] is None and "even without flags" in found["problems"][0]


def test_status_says_what_comes_from_elsewhere(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    prefix, compiler = tmp_path / "prefix", tmp_path / "sdk/mcc"
    compiler.parent.mkdir()
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *-###*) echo "Configuration file: /etc/site.cfg" >&2 ;; esac\nexec {sdk.mcc} "$@"\n'
    )
    compiler.chmod(0o755)
    run("install", "--mcc", compiler, "--prefix", prefix)
    env = {"PATH": in_front(prefix / "bin"), "MCCPROBE_FLAGS": "-mllvm -misched=ilpmax"}
    harmless = status_of(run, "--prefix", str(prefix), code=0, CCC_OVERRIDE_OPTIONS="# +-g0", **env)
    assert any("CCC_OVERRIDE_OPTIONS=# +-g0 changes" in note for note in harmless["notes"])
    assert any("reads /etc/site.cfg by itself" in note for note in harmless["notes"])
    unseen = status_of(run, "--prefix", str(prefix), code=1, CCC_OVERRIDE_OPTIONS="# +-mllvm +-misched=ilpmin", **env)
    assert any("may give LLVM options" in problem for problem in unseen["problems"]) and unseen["added"] == []


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("absent", "not installed"),
        ("not in PATH", "no mcc in PATH"),
        ("hidden", "not the wrapper: export PATH="),
        ("foreign", "was not written by mccprobe"),
        ("off", "MCCPROBE_WRAPPER=off is set"),
        ("no set", "adds nothing"),
        ("refused", "with the flags the compile fails"),
        ("moved", "does not run any more"),
        ("twice", "2 times"),
    ],
)
def test_status_says_what_is_wrong(case: str, says: str, run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    prefix, compiler = tmp_path / "prefix", tmp_path / "sdk/mcc"
    compiler.parent.mkdir()
    # a script before the real driver; with TWICE it behaves like a list option that is given twice
    compiler.write_text(
        '#!/bin/sh\ncase "$* " in *"-###"*) [ -n "$TWICE" ] && set -- -mllvm -mtgpu-load-store-opt "$@" ;; esac\n'
        f'exec {sdk.mcc} "$@"\n'
    )
    compiler.chmod(0o755)
    env = {"PATH": in_front(prefix / "bin")}
    if case != "absent":
        assert "is a script" in run("install", "--mcc", compiler, "--prefix", prefix).stderr
    if case == "not in PATH":
        env = {}
    elif case == "hidden":
        env["PATH"] = f"{compiler.parent}{os.pathsep}{env['PATH']}"
    elif case == "foreign":
        (prefix / "bin/mcc").write_text("#!/bin/sh\n")
    elif case == "off":
        env["MCCPROBE_WRAPPER"] = "off"
    elif case == "no set":
        env["MCCPROBE_SET"] = "none"
    elif case == "refused":
        env["MCCPROBE_FLAGS"] = "-mllvm -no-such-option"
    elif case == "moved":
        compiler.unlink()
    elif case == "twice":
        env["TWICE"] = "1"
    found = status_of(run, "--prefix", str(prefix), code=1, **env)
    assert found["status"] == "does not work"
    assert any(says in problem for problem in found["problems"]), found["problems"]
    if case == "moved":
        assert found["compiler"]["version"] is None


def test_exec_runs_a_command_with_the_wrapper_in_front(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    (tmp_path / "k.mu").write_text("__attribute__((global)) void k(int *p) { *p = 1; }\n")
    log = tmp_path / "log.jsonl"
    command = ("exec", "--mcc", sdk.mcc, "--set", "gemm-s4000", "--")
    run(
        *command,
        "mcc",
        "-x",
        "musa",
        "--musa-device-only",
        "-c",
        "-",
        "-o",
        "k.o",
        stdin=(tmp_path / "k.mu").read_text(),
        MCCPROBE_LOG=str(log),
    )
    assert (tmp_path / "k.o").stat().st_size
    line = json.loads(log.read_text())
    assert line["kind"] == "compile" and len(line["after"]) - len(line["before"]) == 14
    both = run(*command, "sh", "-c", "cat; echo out; echo err >&2; exit 7", stdin="in\n", code=7)
    assert both.stdout == "in\nout\n" and both.stderr.endswith("err\n")
    assert run(*command, "sh", "-c", "kill -9 $$", code=137)
    assert "not found" in run(*command, "no-such-command", code=127).stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_a_failure_is_a_document_too(run: Run) -> None:
    document = json.loads(run("status", "--json", "--source", "gone.mu", code=2).stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["status"] == "error" and "gone.mu" in document["message"]


def test_refusals_have_exit_codes(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    assert "unknown flag set" in run("install", "--mcc", sdk.mcc, "--set", "gemm", code=2).stderr
    assert run("install", "--mcc", tmp_path / "gone/mcc", code=3).stderr.startswith("error: no mcc")
    (tmp_path / "p/bin").mkdir(parents=True)
    (tmp_path / "p/bin/mcc").write_text("theirs")
    assert "was not written by mccprobe" in run("install", "--mcc", sdk.mcc, "--prefix", tmp_path / "p", code=4).stderr
    assert (tmp_path / "p/bin/mcc").read_text() == "theirs"


@pytest.mark.parametrize("command", ["", "install", "remove", "show", "status", "exec"])
def test_help_has_an_example(command: str, run: Run) -> None:
    text = run(*filter(None, [command]), "--help").stdout
    assert "Example:\n    mccprobe wrapper" in text


# --- what the compiler is ----------------------------------------------------------------------------

CLANG_SET = """schema_version = 1

[[set]]
name = "mine"
summary = "found by a search"
source = "a search"
flags = ["-unroll-count=4"]
"""


@pytest.mark.parametrize(
    ("program", "says"),
    [("/bin/ls", "is not mcc: it calls itself ls"), ("clang-14", "is not mcc"), ("gcc", "is not mcc")],
)
def test_what_is_not_mcc_is_refused(program: str, says: str, run: Run, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    for command in ("install", "show", "exec"):
        args = ("--set", "gemm-s4000") if command != "install" else ("--prefix", str(tmp_path / "p"))
        more = ("--", "true") if command == "exec" else ()
        assert says in run(command, "--mcc", program, *args, *more, code=3).stderr
    assert not (tmp_path / "p").exists()


def test_a_wrapper_in_front_of_a_clang(run: Run, tmp_path: Path) -> None:
    own, prefix = tmp_path / "own.toml", tmp_path / "p"
    own.write_text(CLANG_SET)
    clang = ("--compiler", "clang-14", "--prefix", str(prefix))
    assert "--compiler needs --set" in run("install", *clang, code=2).stderr
    assert "does not take the set" in run("install", *clang, "--set", "gemm-s4000", code=3).stderr
    assert "is not a clang" in run("install", "--compiler", "/bin/ls", "--set", str(own), code=3).stderr
    run("install", *clang, "--set", str(own))
    assert [path.name for path in (prefix / "bin").iterdir()] == ["clang-14"]
    env = {"PATH": in_front(prefix / "bin")}
    found = status_of(run, *clang, **env)
    assert (found["status"], found["problems"]) == ("works", []), found
    assert found["added"] == [{"option": "-mllvm -unroll-count=4", "times": 1}]
    run("install", *clang, "--set", str(own), **env)  # the wrapper in PATH is passed over
    run("remove", *clang)
    assert not prefix.exists()


def test_a_compiler_replaced_behind_the_wrapper_is_noticed(run: Run, sdk: SimSdk, tmp_path: Path) -> None:
    prefix, compiler = tmp_path / "prefix", tmp_path / "sdk/mcc"
    compiler.parent.mkdir()
    texts = {
        "as it was": f'#!/bin/sh\nexec {sdk.mcc} "$@"\n',
        "its file has other content": f'#!/bin/sh\n\nexec {sdk.mcc} "$@"\n',
        "and is mcc version 9": '#!/bin/sh\n[ "$1" = --version ] && printf "clang version 14.0.6\\nmcc version 9\\n" '
        f'&& exit\nexec {sdk.mcc} "$@"\n',
    }
    for says, text in texts.items():
        compiler.write_text(text)
        compiler.chmod(0o755)
        if says == "as it was":
            run("install", "--mcc", compiler, "--prefix", prefix)
        found = status_of(run, "--prefix", str(prefix), code=1, PATH=in_front(prefix / "bin"))
        replaced = [problem for problem in found["problems"] if "was replaced since install" in problem]
        assert [says in problem for problem in replaced] == [True] * (says != "as it was")
