"""No shell is built from names: not in the package, and not by the scripts that it writes."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

from mccprobe.explain.bundle.repro import GONE, PRESENT, Check, Repro, ReproBuild, repro_script

from .reader import ROOT
from .test_names import NAMES, STEERING

SHELLS = frozenset("os.system os.popen subprocess.getoutput subprocess.getstatusoutput pty.spawn".split())
EVALUATORS = frozenset("eval exec __import__ yaml.unsafe_load yaml.full_load marshal.loads".split())


def built_by_a_shell(node: ast.AST) -> bool:
    """Text that a shell or Python would take for a program; one that is a constant is none of a name's."""
    if isinstance(node, ast.Call):
        shell = next((one.value for one in node.keywords if one.arg == "shell"), None)
        return ast.unparse(node.func) in SHELLS | EVALUATORS or not (shell is None or ast.unparse(shell) == "False")
    if not isinstance(node, ast.List | ast.Tuple) or len(node.elts) < 3:
        return False
    program, option, script = (ast.unparse(one).strip("'") for one in node.elts[:3])
    return program.rpartition("/")[2] in ("sh", "bash", "dash") and option == "-c" and not script.strip("_").isupper()


def test_nothing_is_run_by_a_shell_or_evaluated() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for path in sorted((ROOT / "mccprobe").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if built_by_a_shell(node) and not shown_to_people(path, node)
    ]
    assert found == []


def shown_to_people(path: Path, node: ast.AST) -> bool:
    """The one command with a redirection: it is printed, its script is a constant, and names are its arguments."""
    if path.name != "reproduce.py" or not isinstance(node, ast.Tuple):
        return False
    return isinstance(node.elts[2], ast.Constant) and node.elts[2].value == 'exec "$@" <"$0"'


@pytest.mark.parametrize(
    "text",
    [
        "os.system(x)",
        "run(x, shell=True)",
        "run(x, shell=y)",
        "['sh', '-c', f'cat {x}']",
        "eval(x)",
        "('/bin/sh', '-c', x)",
    ],
)
def test_what_would_be_found(text: str) -> None:
    assert any(map(built_by_a_shell, ast.walk(ast.parse(text))))


COMPILER = """#!/bin/sh
[ "${1:-}" = --version ] && { printf 'cc \\033[2J 1\\n'; exit 0; }
kind=good last= out=
for argument; do
  case $last in -o) out=$argument ;; -c) [ -f "$argument" ] || { printf '\\033[31mno file\\n' >&2; exit 1; } ;; esac
  [ "$argument" = "--fault=$WANTED" ] && kind=bad
  last=$argument
done
printf '#!/bin/sh\\necho %s\\n' "$kind" >"$out" && chmod +x "$out"
"""


def written(name: str, folder: Path, fault: str) -> Repro:
    """A report of a program, its header, its options and its compiler, all of that name."""
    compiler = folder / f"{name}-cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    source, header = f"source/{name}.c", f"source/{name}/{name}.h"
    check = Check("reference", ("PROGRAM", name), 20.0, b"good\n")
    return Repro(
        name,
        "clang",
        False,
        str(compiler),
        (f"-D{name}",),
        source,
        (header + ".o",),
        ReproBuild("bad", (f"--fault={fault}", name), ()),
        ReproBuild("good", (name,), ("-Wl," + name,)),
        check,
        {source: b"int x;\n", header: name.encode("utf-8", "surrogateescape"), f"{source}.2": b"END_OF_FILE\n"},
        False,
    )


@pytest.mark.parametrize("raw", NAMES, ids=ascii)
def test_the_script_of_a_report(raw: bytes, tmp_path: Path) -> None:
    name = os.fsdecode(raw)[:100]
    place = tmp_path / "here"
    place.mkdir()
    for fault, status in ((name, PRESENT), ("other", GONE)):
        script = place / "repro.sh"
        script.write_bytes(repro_script(written(name, tmp_path, fault)).encode("utf-8", "surrogateescape"))
        env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "WANTED": name}
        done = subprocess.run(["sh", script], cwd=place, env=env, capture_output=True, check=False)
        shown = (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
        assert done.returncode == status, shown
        assert not STEERING & set(shown)
        assert [path.name for path in place.iterdir()] == ["repro.sh"]  # nothing else was written or touched
    text = script.read_bytes().decode("utf-8", "surrogateescape")
    assert len(text.split("\n")[1]) < 200 and not STEERING & set(text.split("\n")[1])
