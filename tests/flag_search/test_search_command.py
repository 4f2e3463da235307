"""`mccprobe flags search` on real compilers: an ordinary program whose best flags are known, sim and amdgcn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.base.errors import EXIT_CODE_MEANINGS
from mccprobe.base.extras import install_command
from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.journal.book import Book

HERE = Path(__file__).resolve().parent
SCHEMA = json.loads((HERE.parents[1] / "reports" / "flags-search.schema.json").read_text())
KNOWN = ("--compiler", "clang-14", "--space", str(HERE / "known.toml"))
ARGS = ("--", "-O1", "-fno-unroll-loops", "-lm")
BEST = ["-fvectorize", "-mavx2"]
COMMAND = (
    "import sys; from mccprobe.cli.flags_search_cmd import search; from mccprobe.base.console import Console;"
    "sys.exit(search.main(sys.argv[1:], obj=Console(), standalone_mode=False))"
)
LIMIT_S = 300.0


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        jsonschema.validate(found, SCHEMA)
        return found


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def begin(*args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *args],
            cwd=tmp_path,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.fixture
def search(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Ran]:
    def run(*args: str) -> Ran:
        process = start(*args)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
        return Ran(process.returncode, stdout, stderr)

    return run


needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed (clang-14 is)")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert 6 in {int(code) for code in EXIT_CODE_MEANINGS}


# --- an ordinary program ----------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
def test_what_this_processor_may_lack_is_neither_right_nor_wrong(search: Callable[..., Ran], tmp_path: Path) -> None:
    """An instruction of another processor and a trap end alike; only the second would be an accusation."""
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\nint main(void) {\n#ifdef TRAP\n  __builtin_trap();\n#endif\n"
        '#ifdef WRONG\n  return puts("5") < 0;\n#endif\n  return puts("4") < 0;\n}\n'
    )
    (tmp_path / "s.toml").write_text(
        "schema_version = 1\n" + "".join(f'[[flag]]\nflag = "-D{name}=1"\n' for name in ("TRAP", "WRONG"))
    )
    found = search(
        "p.c",
        "--compiler",
        "clang-14",
        "--space",
        "s.toml",
        "--objective",
        "code-size",
        "--strategy",
        "exhaustive",
        "-o",
        "run",
        "--json",
        "--",
        "-O1",
    ).document
    states = {" ".join(trial["flags"]): trial["state"] for trial in found["trials"]}
    assert states == {"": "right", "-DTRAP=1": "undecided", "-DWRONG=1": "wrong", "-DTRAP=1 -DWRONG=1": "undecided"}
    assert [one["flags"] for one in found["findings"]] == [["-DWRONG=1"]]
    assert all("SIGILL" in trial["reason"] for trial in found["trials"] if trial["state"] == "undecided")
    told = {entry.flags for entry in Book(tmp_path / "mccprobe-out" / "journal.jsonl").entries()}
    assert told == {("-O1", *trial["flags"]) for trial in found["trials"]}, "wrong with -O1 says nothing of -O3"


@pytest.mark.toolchain("clang-14")
def test_standard_input_and_written_files_decide(search: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "file.c").write_text(
        "#include <stdio.h>\n#ifndef A\n#define A 1\n#endif\n"
        'int main(void) { int n = 0; if (scanf("%d", &n) != 1) return puts("no number");\n'
        'FILE *f = fopen("r.txt", "w"); fprintf(f, "%d", n * A); return fclose(f); }\n'
    )
    (tmp_path / "n.txt").write_text("6")
    (tmp_path / "space.toml").write_text('schema_version = 1\n[[flag]]\nflag = "-DA=2"\n')
    asked = ("--compiler", "clang-14", "--objective", "code-size", "--stdin", "n.txt", "--strategy", "exhaustive")
    found = search("file.c", "--space", "space.toml", *asked, "--json").document
    [finding] = found["findings"]
    assert finding["reason"] == "writes '12' to r.txt, the reference '6'"
    assert finding["why"][-2:] == ["--stdin", str(tmp_path / "n.txt")]


@pytest.mark.toolchain("clang-14")
@needs_valgrind
def test_the_known_best_set(search: Callable[..., Ran], tmp_path: Path) -> None:
    """By trying all, and by the article's order with fewer trials; the set file goes into the wrapper."""
    source = str(HERE / "known.c")
    every = search(source, *KNOWN, "--strategy", "exhaustive", "-o", "all", "--json", *ARGS)
    document = every.document
    assert every.code == 0 and document["status"] == "found", every.stderr
    assert document["winner"]["flags"] == BEST and document["objective"]["exact"]
    right = [trial for trial in document["trials"] if trial["state"] == "right"]
    assert document["winner"]["value"] == min(trial["value"] for trial in right)
    assert len(document["trials"]) == document["space"]["size"] == 16
    wrong = [trial["flags"] for trial in document["trials"] if trial["state"] == "wrong"]
    assert len(wrong) == 8 and all("-ffast-math" in flags for flags in wrong)
    (finding,) = document["findings"]
    assert finding["flags"] == ["-ffast-math"] and "promise" in finding["told"][0]
    assert finding["why"][:3] == ["mccprobe", "why", source] and finding["why"][-4:] == list(ARGS)
    assert document["counters"]["judged"] < 16, "equal objects are judged once"
    assert {part["flag"]: part["share"]["exact"] for part in document["winner"]["parts"]} == dict.fromkeys(BEST, True)
    ordered = search(source, *KNOWN, "-o", "article", "--json", "--plot", "a.svg", *ARGS).document
    assert ordered["winner"]["flags"] == BEST and len(ordered["trials"]) < 16
    assert ordered["winner"]["value"] == document["winner"]["value"]
    chosen = wrapper_sets(ordered["files"]["set"]).chosen
    assert [" ".join(one.words) for one in chosen.additions] == BEST
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    kinds = [entry.kind for entry in Book(tmp_path / "mccprobe-out" / "journal.jsonl").entries()]
    assert kinds.count("search") == 2 and kinds.count("trial") == 16 + len(ordered["trials"])


@pytest.mark.toolchain("clang-14")
@needs_valgrind
def test_tpe_survives_a_kill_and_is_shared(
    start: Callable[..., subprocess.Popen[str]], search: Callable[..., Ran], tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="the extra `search` is not installed (clang-14 is)")
    source = str(HERE / "known.c")
    tpe = ("--strategy", "tpe", "--storage", str(tmp_path / "study"), "--max-trials", "14")
    killed = start(source, *KNOWN, *tpe, "-o", "one", *ARGS)
    journal = tmp_path / "one" / "journal.jsonl"
    deadline = time.monotonic() + LIMIT_S
    while not journal.is_file() or journal.read_bytes().count(b'"t":"trial"') < 4:
        assert killed.poll() is None and time.monotonic() < deadline, killed.communicate()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = [line for line in journal.read_text().splitlines() if line.endswith("}")]
    other = start(source, *KNOWN, *tpe, "-o", "two", "--random-seed", "2", "--json", *ARGS)
    again = search("--resume", "one", "--max-trials", "14", "--json")
    stdout, stderr = other.communicate(timeout=LIMIT_S)
    assert again.code == other.returncode == 0, again.stderr + stderr
    after = journal.read_text().splitlines()
    assert after[: len(before)] == before, "what was there is still there, and first"
    named = [json.dumps(json.loads(line)["named"]) for line in after if json.loads(line)["t"] == "trial"]
    assert len(named) == len(set(named)), "no trial was made twice"
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="flags", storage=f"sqlite:///{tmp_path / 'study'}")
    for document in (again.document, Ran(0, stdout, stderr).document):
        right = [trial["value"] for trial in document["trials"] if trial["state"] == "right"]
        assert document["winner"]["confirmed"] and document["winner"]["value"] == min(right) >= study.best_value
        assert "-ffast-math" not in document["winner"]["flags"]
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    finished = [state for state in states if state.is_finished()]
    assert 13 <= len(finished) <= 14, states  # both together; each may have had one in flight


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_tpe_without_its_package(run_cli: Callable[..., Any], tmp_path: Path) -> None:
    """Told before anything is made."""
    (tmp_path / "optuna.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join((str(tmp_path), str(HERE.parents[1])))
    command = ("flags", "search", str(HERE / "known.c"), *KNOWN, "--strategy", "tpe", *ARGS)
    ran = run_cli(*command, env={"PYTHONPATH": path})
    assert ran.code == 2 and install_command("search") in ran.stderr and "Traceback" not in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
def test_a_killed_search_goes_on(
    start: Callable[..., subprocess.Popen[str]], search: Callable[..., Ran], tmp_path: Path
) -> None:
    source = str(HERE / "known.c")
    killed = start(source, *KNOWN, "--objective", "code-size", "--strategy", "exhaustive", "-o", "run", *ARGS)
    journal = tmp_path / "run" / "journal.jsonl"
    deadline = time.monotonic() + LIMIT_S
    while not journal.is_file() or journal.read_bytes().count(b'"t":"trial"') < 5:
        assert killed.poll() is None and time.monotonic() < deadline, killed.communicate()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = search("--resume", "run", "--json")
    document = again.document
    assert document["counters"]["replayed"] >= 5 and len(document["trials"]) == 16, again.stderr
    assert document["counters"]["replayed"] + document["counters"]["builds"] == 16
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    named = [json.dumps(line["named"]) for line in lines if line["t"] == "trial"]
    assert len(named) == len(set(named)) == 16
    texts = [entry.text for entry in Book(tmp_path / "mccprobe-out" / "journal.jsonl").entries()]
    assert len(texts) == len(set(texts)) == 17
    refused = search("--resume", "run", "--objective", "instructions")
    assert "cannot be changed" in refused.stderr


@pytest.mark.toolchain("clang-14")
def test_budgets_and_flags_that_are_not_there(search: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        (HERE / "known.toml").read_text() + '[[flag]]\nflag = "-mllvm -no-such-option"\n'
    )
    ran = search(
        str(HERE / "known.c"),
        "--compiler",
        "clang-14",
        "--space",
        "space.toml",
        "--objective",
        "code-size",
        "--max-trials",
        "3",
        "--journal",
        "",
        "-o",
        "run",
        "--json",
        *ARGS,
    )
    assert ran.code == 6 and ran.document["status"] == "budget" and ran.document["stopped"]
    assert list(ran.document["refused"]) == ["-mllvm -no-such-option"]
    assert not (tmp_path / "mccprobe-out").exists()


@pytest.mark.toolchain("clang-14")
def test_a_program_that_is_right_only_sometimes(search: Callable[..., Ran], tmp_path: Path) -> None:
    """The smallest candidate is right in its first runs and wrong in a later one: no winner."""
    (tmp_path / "p.c").write_text(
        """#include <stdio.h>
static volatile long sink;
int main(void) {
#ifdef __FAST_MATH__
  FILE *runs = fopen(RUNS, "a+");
  fputc('x', runs);
  puts(ftell(runs) % 4 ? "42" : "41");
#else
  for (long i = 0; i < 100; i++) { sink += i * i; sink ^= i << 3; sink -= i / 7; sink += i % 13; sink *= i | 5; }
  for (long i = 0; i < 100; i++) { sink -= i * i; sink ^= i << 5; sink += i / 9; sink -= i % 17; sink *= i | 9; }
  puts("42");
#endif
}
"""
    )
    (tmp_path / "space.toml").write_text('schema_version = 1\n[[flag]]\nflag = "-ffast-math"\n')
    define = f'-DRUNS="{tmp_path / "runs"}"'
    ran = search(
        "p.c",
        "--compiler",
        "clang-14",
        "--space",
        "space.toml",
        "--objective",
        "code-size",
        "--json",
        "--",
        "-O1",
        define,
    )
    document = ran.document
    assert ran.code == 1 and document["status"] == "nothing-better", ran.stderr
    assert [trial["state"] for trial in document["trials"]] == ["right", "right"]
    assert "flaky" in document["notes"][0] and document["winner"] is None and "set" not in document["files"]


# --- kernels ----------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
def test_sim_finds_the_wrong_candidate(search: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        'schema_version = 1\n[[flag]]\nflag = "mtgpu-load-store-opt"\ngroup = "memory"\n'
        '[[flag]]\nflag = "internal-regs-ra"\n'
    )
    ran = search("gemm", "--toolchain", "sim", "--space", "space.toml", "--seed", "1", "-o", "run", "--json")
    document = ran.document
    assert ran.code == 1 and document["simulated"] and document["winner"] is None, ran.stderr
    (finding,) = document["findings"]
    assert finding["flags"] == ["-mllvm --mtgpu-enable-internal-regs-ra"] and finding["max_err"] > 0.1
    assert finding["why"][:2] == ["mccprobe", "why"] and (Path(finding["why"][2]) / "kernel.toml").is_file()
    assert finding["why"][3:] == ["--toolchain", "sim", "--flag", "--mtgpu-enable-internal-regs-ra"]
    assert document["counters"]["judged"] == 2, "an equal device object is not run again"
    text = (tmp_path / "run" / "report.txt").read_text()
    figures = [line for line in text.splitlines() if " bytes" in line or ("max_err" in line and "told" not in line)]
    assert figures and all("SIMULATED" in line for line in figures)
    assert not (tmp_path / "run" / "set.toml").exists()


@pytest.mark.toolchain("clang-14")
def test_amdgcn_is_compiled_only(search: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        'schema_version = 1\n[[flag]]\nflag = "-mllvm -amdgpu-load-store-vectorizer"\nvalues = ["0"]\n'
        '[[flag]]\nflag = "enable-newgvn"\n'
    )
    ran = search("gemm", "--toolchain", "amdgcn", "--space", "space.toml", "-o", "run", "--json")
    document = ran.document
    assert ran.code == 0 and document["status"] == "compiled-only" and document["winner"] is None, ran.stderr
    assert {trial["state"] for trial in document["trials"]} == {"compiled only"}
    assert document["lowest"]["flags"] == ["-mllvm -enable-newgvn"] and document["heading"].endswith("not MP22")
    assert not (tmp_path / "run" / "set.toml").exists() and document["files"] == {}
