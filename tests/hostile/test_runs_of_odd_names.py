"""One run from the question to the report, where every name is as bad as a file system allows."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reader import ROOT
from .test_names import STEERING

FAKE = ROOT / "tests/fakes/mcc_ok"
ODD = os.fsdecode(b"a 'b' \"c\" $(touch pwned); \xff\x1b[2J\xe2\x80\xae -x")
PROGRAM = '#include <stdio.h>\n#include "{header}"\nint main(void) {{ puts(TEXT); return 0; }}\n'


@pytest.mark.toolchain("clang-14")
def test_bisect_and_bug_report(tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]) -> None:
    compiler(14)
    folder = tmp_path / ODD
    folder.mkdir()
    source = folder / f"{ODD}.c"
    source.write_text(PROGRAM.format(header="own header.h"))
    (folder / "own header.h").write_text('#define TEXT "this is GOOD"\n')
    options = ("--toolchain", "clang", "--compiler", FAKE, "--flag=-fake-fault", "-o", folder / f"{ODD} run", "--json")
    run = run_cli("bisect", source, *options, "--", "-O1", cwd=folder)
    assert run.code == 0, run
    document = json.loads(run.stdout)
    assert document["culprit"]["execution"] == 20 and document["source"].endswith(f"{ODD}.c")
    assert not STEERING & set(run.stdout + run.stderr)
    again = run_cli("bisect", "--resume", folder / f"{ODD} run", cwd=folder)
    assert again.code == 0 and not STEERING & set(again.stdout + again.stderr), again
    out = tmp_path / "report"
    written = run_cli("bug-report", folder / f"{ODD} run", "-o", out, cwd=folder)
    assert written.code == 0 and not STEERING & set(written.stdout + written.stderr), written
    for text in (path.read_text("utf-8") for path in (out / "report.md", out / "bundle.json")):
        assert not STEERING & set(text)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as tar:
        assert {name.partition("/")[0] for name in tar.getnames()} == {"report"}
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    done = subprocess.run(["sh", out / "repro.sh", FAKE], cwd=folder, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done  # 0: the bug is present
    assert not [path for path in tmp_path.rglob("*") if path.name == "pwned"]


@pytest.mark.toolchain("clang-14")
def test_a_newline_in_every_name(tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]) -> None:
    """Of the real driver: the fakes of the tests read its `-###` by the line, and by a shell."""
    clang = compiler(14)
    folder = tmp_path / "a\nb"
    folder.mkdir()
    source = folder / "c\nSIMULATED d.c"
    source.write_text(PROGRAM.format(header="e\\nf.h").replace('#include "e\\nf.h"\n', "").replace("TEXT", '"GOOD"'))
    options = ("--toolchain", "clang", "--compiler", clang, "--flag=-mllvm -misched-postra", "-o", folder / "g\nh")
    run = run_cli("bisect", source, *options, "--", "-O1", cwd=folder)
    assert run.code == 1 and run.stdout.startswith("NO DIFFERENCE"), run
    lines = (run.stdout + run.stderr).splitlines()
    assert not [line for line in lines if line.startswith(("SIMULATED", "b/", "h"))], run


def test_a_search_and_its_picture(tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]) -> None:
    """Letters that no font has, dollars that are no formula."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    folder = tmp_path / ODD
    folder.mkdir()
    known = ROOT / "tests/flag_search"
    (folder / f"{ODD} $x^$.c").write_bytes((known / "known.c").read_bytes())
    options = (
        "--space",
        known / "known.toml",
        "--objective",
        "code-size",
        "--strategy",
        "exhaustive",
        "--toolchain",
        "clang",
        "--compiler",
        compiler(14),
        "--plot",
        folder / f"{ODD}.svg",
        "-o",
        folder / "run",
    )
    run = run_cli("flags", "search", folder / f"{ODD} $x^$.c", *options, "--", "-O1", "-lm", cwd=folder)
    assert run.code in (0, 1) and not STEERING & set(run.stdout + run.stderr), run
    assert (folder / f"{ODD}.svg").read_text("utf-8").startswith("<?xml")


def test_reduce_says_which_names_its_tool_cannot_take(tmp_path: Path) -> None:
    from mccprobe.base.errors import CannotReduce
    from mccprobe.explain.reduce.run import require_text

    require_text(tmp_path / "漢字 $(touch pwned)\n.c")
    with pytest.raises(CannotReduce, match="only names that are UTF-8") as caught:
        require_text(tmp_path / ODD)
    assert not STEERING & set(str(caught.value))


@pytest.mark.parametrize("name", ["out", ODD])
def test_where_a_check_leaves_what_it_built(
    name: str, tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]
) -> None:
    """Named from the working directory, where the compiler does not run."""
    compiler(14)
    run = run_cli("check", "barrier", "--toolchain", "sim", "--seed", "1", "-o", name, cwd=tmp_path)
    assert run.code == 0 and "gate PASSED" in run.stdout, run
    assert list((tmp_path / name).rglob("*.o"))
