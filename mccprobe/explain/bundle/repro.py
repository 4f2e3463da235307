"""repro.sh: one shell script with the whole program in it, that says whether a compiler still has the bug.

It builds the reference and the bad build in a temporary folder, as the user built them, and compares what
they do. It answers in words and by its exit status: 0 present, 1 gone, 2 cannot tell. A compiler whose
reference is wrong, or that does not build one of the two, gets no answer: nothing is accused by default.
"""

from __future__ import annotations

import base64
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.console import visible
from mccprobe.build.record import of_command
from mccprobe.oracle.checks import NO_ANSWER
from mccprobe.targets.llvm.inherited import SIDE_OUTPUTS, VARIABLES

PRESENT, GONE, CANNOT_TELL = 0, 1, 2
_LINE_BYTES = 76  # of base64


@dataclass(frozen=True)
class ReproBuild:
    """One build as the bundle's files make it; names are relative to the folder with `source/` in it.

    args: options of every compile and of the link; link_args: of the link alone.
    """

    name: str
    args: tuple[str, ...]
    link_args: tuple[str, ...]

    def commands(self, source: str, inputs: Sequence[str], rest_args: Sequence[str]) -> list[list[str]]:
        """Compiler arguments (without the compiler): the source, the other sources, the link."""
        build = of_command(Path(source), self.args, inputs, self.link_args, rest_args=rest_args)
        objects = {0: f"{self.name}.o"}
        for place, one in enumerate(build.other_inputs(0)):
            if not isinstance(one, str):
                objects[one] = f"{self.name}-{place}.o"
        compiles = [list(unit.arguments(objects[number])) for number, unit in enumerate(build.units)]
        return [*compiles, list(build.link_arguments(objects, self.args, self.name))]


@dataclass(frozen=True)
class Check:
    """How a program is judged. command: argv with PROGRAM for the program, run in the work folder.

    kind: "reference" (compare with `expected` and `expected_status`), "kernel" or "command".
    stdin: the file that the program reads from standard input, "" for none.
    """

    kind: str
    command: tuple[str, ...]
    timeout_s: float
    expected: bytes = b""
    expected_status: int = 0
    bad_if_timeout: bool = False
    bad_if_crash: bool = False
    stdin: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def as_expected(self) -> str:
        """The condition of a shell: the files that the program wrote are those of the reference."""
        return "".join(f" && cmp -s {shlex.quote(f'./{name}')} {_wanted(name)}" for name in self.files)


@dataclass(frozen=True)
class Repro:
    """Everything that the script holds. files: name below the work folder -> content; executable: those to be run.

    compiler: what is taken where the user names none. driver_args: that always stand behind the compiler.
    inherited: variables of the environment that are in every compile; no other of their kind is.
    configuration: the file of options that the compiler read by itself, "" for none; not for one that reads its own.
    """

    title: str
    toolchain: str
    simulated: bool
    compiler: str
    driver_args: tuple[str, ...]
    source: str
    inputs: tuple[str, ...]
    bad: ReproBuild
    reference: ReproBuild | None
    check: Check
    files: Mapping[str, bytes]
    fixed_addresses: bool
    executable: frozenset[str] = frozenset()
    inherited: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""

    def builds(self) -> list[tuple[ReproBuild, list[list[str]]]]:
        """Both builds with their commands, the reference first. Other sources are compiled as the reference is."""
        rest = self.reference.args if self.reference else self.bad.args
        chosen = [self.reference, self.bad] if self.reference else [self.bad]
        return [(build, build.commands(self.source, self.inputs, rest)) for build in chosen if build]


def repro_script(repro: Repro) -> str:
    """The text of repro.sh."""
    mark = "[sim] " if repro.simulated else ""
    parts = [
        "#!/bin/sh",
        f"# {_comment(repro.title)}",
        *(["# SIMULATED FAULT: mccprobe's stand-in toolchain, not mcc. Do not file this."] if repro.simulated else []),
        "# usage: sh repro.sh [COMPILER]     exit 0: bug present; 1: gone; 2: cannot tell",
        "set -u",
        "export LC_ALL=C CCACHE_DISABLE=1 SCCACHE_RECACHE=1",
        f"say() {{ printf '%s\\n' \"{mark}$*\"; }}",
        'present() { say "BUG PRESENT: $*"; exit 0; }',
        'gone() { say "BUG GONE: $*"; exit 1; }',
        'cannot() { say "CANNOT TELL: $*"; exit 2; }',
        "# what compilers and programs print is shown, and does not steer the terminal",
        "plain() { tr -c '\\011\\012\\040-\\176' '?'; }",
        "",
        *_compiler(repro),
        "",
        'work=$(mktemp -d "${TMPDIR:-/tmp}/repro.XXXXXX") || cannot "no temporary folder"',
        "trap 'rm -rf \"$work\"' EXIT",
        "trap 'exit 2' HUP INT TERM",
        'cd "$work" && mkdir tmp || cannot "no temporary folder"',
        "TMPDIR=$work/tmp MUSA_CACHE_PATH=$work/tmp",
        "export TMPDIR MUSA_CACHE_PATH",
        *_environment(repro.inherited),
        *_fixed(repro),
        "limit=; command -v timeout >/dev/null 2>&1 && limit=timeout",
        "",
    ]
    for name, content in repro.files.items():
        parts += _file(name, content)
        parts += [f"chmod +x {shlex.quote(name)}"] if name in repro.executable else []
    if repro.check.kind == "reference":
        parts += _file("expected.out", repro.check.expected)
        for name, content in repro.check.files.items():
            parts += _file(f"expected.files/{name}", content)
    if repro.configuration:
        parts += [
            "",
            "# the options that the compiler read by itself, for one that reads no file of its own",
            'case $("$CC" --version 2>/dev/null) in',
            "  *'Configuration file: '*) config= ;;",
            f"  *) config={shlex.quote('./' + repro.configuration)} ;;",
            "esac",
        ]
    config = ' ${config:+--config "$config"}' if repro.configuration else ""
    compiler = f'$fixed "$CC"{_args(repro.driver_args)}{config}'
    parts += ["", "compile() {", f'  {compiler} "$@" >>build.log 2>&1', "}", ""]
    for build, commands in repro.builds():
        what = "the bad build" if build is repro.bad else "the reference build"
        for argv in commands:
            failed = f'tail -n 20 build.log | plain; cannot "{what} fails with this compiler"'
            parts.append(f"compile{_args(argv)} || {{ {failed}; }}")
    if repro.reference:
        parts += ["", *_run("good", repro.check), *_reference_right(repro)]
    parts += ["", *_run("bad", repro.check), *_verdict(repro.check)]
    return "\n".join(parts) + "\n"


def _comment(text: str) -> str:
    return visible(text).replace("\n", " ")


def _args(argv: Sequence[str]) -> str:
    return "".join(f" {shlex.quote(argument)}" for argument in argv)


def _compiler(repro: Repro) -> list[str]:
    default = shlex.quote(repro.compiler)
    lines = ["CC=${1:-${CC:-}}"]
    if repro.simulated:
        lines += [
            "# the stand-in SDK: from mccprobe, which builds it on first use, else where it keeps it",
            'if [ -z "$CC" ] && command -v mccprobe >/dev/null 2>&1; then',
            "  CC=$(mccprobe toolchains --json 2>/dev/null |",
            '    sed -n \'s|.*"path": "\\(.*/sim/[^"]*/bin/mcc\\)".*|\\1|p\' | head -n 1)',
            "fi",
            'if [ -z "$CC" ]; then',
            '  for found in "${MCCPROBE_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/mccprobe}"/sim/*/bin/mcc; do',
            '    [ -x "$found" ] && CC=$found',
            "  done",
            "fi",
            '[ -n "$CC" ] || cannot "no stand-in toolchain here: install mccprobe, or name its mcc: sh repro.sh PATH"',
        ]
    else:
        lines.append(f"CC=${{CC:-{default}}}")
    return [
        *lines,
        'command -v "$CC" >/dev/null 2>&1 || cannot "no compiler $CC here: sh repro.sh PATH names one"',
        "case $CC in",
        "  /*) ;;",
        "  */*) CC=$(pwd)/$CC ;;",
        "esac",
        'say "compiler: $("$CC" --version 2>/dev/null | sed -n 1p | plain)"',
    ]


def _environment(inherited: Mapping[str, str]) -> list[str]:
    lines = [f"unset {' '.join(name for name in (*VARIABLES, *SIDE_OUTPUTS) if name not in inherited)}"]
    if inherited:
        lines.append("# what the compiles took from the environment")
        lines.append(f"export {' '.join(f'{name}={shlex.quote(value)}' for name, value in inherited.items())}")
    return lines


def _fixed(repro: Repro) -> list[str]:
    if not repro.fixed_addresses:
        return ["fixed="]
    return ["fixed=; setarch -R true >/dev/null 2>&1 && fixed='setarch -R'"]


def _file(name: str, content: bytes) -> list[str]:
    """Lines that write one file, byte for byte."""
    quoted = shlex.quote(name)
    folder = name.rpartition("/")[0]
    lines = [f"mkdir -p {shlex.quote(folder)}"] if folder else []
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.endswith("\n") and visible(text) == text:  # else who reads the script would not see what is in it
        end = "END_OF_FILE"
        while end in text:
            end += "_"
        return [*lines, f"cat >{quoted} <<'{end}'", text[:-1], end]
    packed = base64.b64encode(content).decode()
    body = [packed[start : start + _LINE_BYTES] for start in range(0, len(packed), _LINE_BYTES)]
    return [*lines, f"base64 -d >{quoted} <<'END_OF_FILE'", *body, "END_OF_FILE"]


def _run(name: str, check: Check) -> list[str]:
    """Run one program; its status is in $status, what it printed in NAME.out."""
    argv = [argument.replace("PROGRAM", f"./{name}") for argument in check.command]
    seconds = f"{max(1, round(check.timeout_s))}"
    stdin = shlex.quote(check.stdin or "/dev/null")
    cleared = [f"rm -f{''.join(f' {shlex.quote(one)}' for one in _own(check.files))}"] if check.files else []
    return [*cleared, f"${{limit:+$limit {seconds}}}{_args(argv)} <{stdin} >{name}.out 2>{name}.err; status=$?"]


def _own(files: Mapping[str, bytes]) -> list[str]:
    return [f"./{name}" for name in files]


def _wanted(name: str) -> str:
    return shlex.quote(f"./expected.files/{name}")


def _reference_right(repro: Repro) -> list[str]:
    check = repro.check
    if check.kind == "reference":
        status = _shell_status(check.expected_status)
        condition = f'cmp -s good.out expected.out && [ "$status" -eq {status} ]{check.as_expected}'
    else:
        condition = '[ "$status" -eq 0 ]'
    return [f'{{ {condition}; }} || cannot "the reference build is not right with this compiler (status $status)"']


def _shell_status(status: int) -> int:
    """A signal is -N for Python and 128+N for a shell."""
    return status if status >= 0 else 128 - status


def _verdict(check: Check) -> list[str]:
    lines = []
    timed_out = '[ -n "$limit" ] && [ "$status" -eq 124 ]'
    if check.kind == "reference":
        status = _shell_status(check.expected_status)
        lines.append(
            f'if cmp -s bad.out expected.out && [ "$status" -eq {status} ]{check.as_expected}; '
            'then gone "as right as the reference"; fi'
        )
    answer = "present" if check.bad_if_timeout else "cannot"
    lines.append(f'if {timed_out}; then {answer} "no end within the time limit"; fi')
    if check.kind == "reference":
        lines.append('if [ "$status" -eq 125 ]; then cannot "the program itself cannot tell (exit 125)"; fi')
        outside = [number for number in NO_ANSWER if not (check.bad_if_crash and number == signal.SIGILL)]
        ends = "|".join(str(_shell_status(-number)) for number in sorted(outside))
        lines.append(f'case $status in {ends}) cannot "signal $((status - 128)) says nothing of the code" ;; esac')
        lines.append('present "the bad build differs from the reference (status $status)"')
        return lines
    most = 1 if check.kind == "kernel" else 124
    crash = "present" if check.bad_if_crash else "cannot"
    return [
        *lines,
        'if [ "$status" -eq 0 ]; then gone "the check passes"; fi',
        f'if [ "$status" -le {most} ]; then',
        "  sed -n 1,5p bad.out | plain",
        '  present "the check says wrong (status $status)"',
        "fi",
        f'if [ "$status" -ge 128 ]; then {crash} "it ends by a signal (status $status)"; fi',
        'cannot "the check itself cannot tell (status $status)"',
    ]
