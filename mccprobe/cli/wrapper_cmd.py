"""`mccprobe wrapper`: a set of flags in every compile of a build that nobody edits."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.base.errors import UsageError
from mccprobe.cli.common import cache_directory
from mccprobe.inspection.lines import joined, one_line

CONTEXT = {"help_option_names": ["-h", "--help"]}
PREFIX = click.option("--prefix", metavar="DIR", type=click.Path(path_type=Path), help="the wrapper is DIR/bin/mcc "
                      "(default: ~/.local)")  # fmt: skip
COMPILER = click.option("--compiler", metavar="CLANG", help="a clang instead of mcc: its name in PATH, or a path")
JSON = click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/wrapper.schema.json)")


@click.group("wrapper", context_settings=CONTEXT)
def wrapper() -> None:
    """Put a flag set in front of every mcc call, by a wrapper in PATH.

    \b
    Example:
      mccprobe wrapper install --set gemm-s4000
    """


def _command(compiler: str | None) -> str:
    """The name that builds call."""
    from mccprobe.build.wrapper.install import COMMAND

    return Path(compiler).name if compiler is not None else COMMAND


def _require_set(compiler: str | None, name: str | None) -> None:
    """Raises UsageError."""
    if compiler is not None and name is None:
        raise UsageError("--compiler needs --set: the default set is mcc's", hint="--set FILE: a file with one set")


def _prefix(given: Path | None) -> Path:
    from mccprobe.build.wrapper.install import default_prefix

    return given if given is not None else default_prefix()


@wrapper.command("install", context_settings=CONTEXT)
@click.option("--mcc", metavar="PATH", help="the compiler itself")
@COMPILER
@PREFIX
@click.option(
    "--set", "name", metavar="NAME|FILE", help="flag set of the catalogue, or a file with one (default: gemm-s4000)"
)
@JSON
@click.pass_obj
def install(
    console: Console, mcc: str | None, compiler: str | None, prefix: Path | None, name: str | None, as_json: bool
) -> int:
    """Write DIR/bin/mcc, which adds the set and calls the compiler.

    With --compiler the file has the clang's name. A file there that mccprobe did not write stays as it is.

    \b
    Example:
      mccprobe wrapper install --set gemm-s4000 --prefix ~/.local
    """
    from mccprobe.build.wrapper.flagset import DEFAULT_SET, wrapper_sets
    from mccprobe.build.wrapper.install import find_compiler, found_in_path, require_accepted
    from mccprobe.build.wrapper.install import install as install_wrapper
    from mccprobe.targets.sim.toolchain import SIMULATED_MARK

    _require_set(compiler, name)
    sets, command = wrapper_sets(name or DEFAULT_SET), _command(compiler)
    found = find_compiler(mcc, compiler)
    if compiler is not None:
        require_accepted(found, sets)
    version = found.identity.version
    done = install_wrapper(_prefix(prefix), found.path, sets, command=command, version=version)
    simulated = "  [SIMULATED]" if SIMULATED_MARK in version else ""
    lines = [
        f"{done.path}",
        f"  compiler  {found.path}  {found.identity.version}{simulated}",
        f"  set       {sets.chosen.name}: {sets.chosen.summary}",
        *(f"            {flag}" for flag in done.stamp.flags),
    ]
    if as_json:
        _document(
            console,
            "installed",
            path=str(done.path),
            compiler=str(found.path),
            compiler_version=found.identity.version,
            simulated=bool(simulated),
            set=sets.chosen.name,
            flags=list(done.stamp.flags),
            risks=list(sets.chosen.risks),
            replaced=done.replaced.set if done.replaced else None,
            found_by_path=found_in_path(command) == done.path,
        )
    else:
        console.result(joined(lines))
    for risk in sets.chosen.risks:
        console.always(f"risk: {risk}")
    for passed in found.passed_over:
        console.message(one_line(f"{passed} is no compiler (a wrapper or launcher): passed over"))
    if found.is_script:
        told = f"warning: {found.path} is a script; if it adds flags of its own, mcc may refuse them twice"
        console.always(one_line(told))
    if done.replaced is not None:
        console.message(one_line(f"replaced the wrapper with set {done.replaced.set} of {done.replaced.compiler}"))
    if found_in_path(command) != done.path:
        folder = shlex.quote(str(done.path.parent))
        console.always(one_line(f"not yet what `{command}` finds: export PATH={folder}:$PATH (and hash -r)"))
    return 0


@wrapper.command("remove", context_settings=CONTEXT)
@COMPILER
@PREFIX
@JSON
@click.pass_obj
def remove(console: Console, compiler: str | None, prefix: Path | None, as_json: bool) -> int:
    """Take the wrapper away, and the folders that its install made.

    \b
    Example:
      mccprobe wrapper remove
    """
    from mccprobe.build.wrapper.install import remove as remove_wrapper
    from mccprobe.build.wrapper.install import wrapper_path

    path = wrapper_path(_prefix(prefix), _command(compiler))
    stamp = remove_wrapper(_prefix(prefix), _command(compiler))
    if as_json:
        _document(console, "removed", path=str(path), compiler=stamp.compiler, set=stamp.set, flags=list(stamp.flags))
        return 0
    console.result(one_line(f"removed {path}; the compiler {stamp.compiler} was not touched"))
    return 0


@wrapper.command("show", context_settings=CONTEXT)
@PREFIX
@click.option("--set", "name", metavar="NAME|FILE", help="what install would write for this set, nothing installed")
@click.option("--mcc", metavar="PATH", help="the compiler, with --set")
@COMPILER
@JSON
@click.pass_obj
def show(
    console: Console, prefix: Path | None, name: str | None, mcc: str | None, compiler: str | None, as_json: bool
) -> int:
    """Print the wrapper file, installed or to be.

    \b
    Example:
      mccprobe wrapper show --set gemm-s4000
    """
    from mccprobe.base.errors import WrapperNotInstalled
    from mccprobe.build.wrapper.flagset import wrapper_sets
    from mccprobe.build.wrapper.install import find_compiler, read_installed, wrapper_path
    from mccprobe.build.wrapper.script import generate

    if name is not None:
        text = generate(find_compiler(mcc, compiler).path, wrapper_sets(name))
    else:
        path = wrapper_path(_prefix(prefix), _command(compiler))
        if read_installed(path) is None:
            raise WrapperNotInstalled(str(path))
        text = path.read_bytes()
    if as_json:
        _document(console, "shown", installed=name is None, text=os.fsdecode(text))
        return 0
    console.result(os.fsdecode(text))
    return 0


@wrapper.command("status", context_settings=CONTEXT)
@COMPILER
@PREFIX
@click.option(
    "--source",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="prove it on this kernel",
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/wrapper-status.schema.json)")
@click.pass_obj
def status(console: Console, compiler: str | None, prefix: Path | None, source: Path | None, as_json: bool) -> int:
    """Prove that mcc (or --compiler) is the wrapper and its flags arrive.

    Exit 0 only if `command -v mcc` finds it, every flag stands once in the device compile, and the object changes.

    \b
    Example:
      mccprobe wrapper status --source kernel.mu
    """
    from mccprobe.build.wrapper.status import wrapper_status

    found = wrapper_status(_prefix(prefix), source, _command(compiler))
    if as_json:
        console.document({"schema_version": 1, "tool_version": __version__, **found.to_dict()})
        return 0 if found.works else 1
    simulated = "  [SIMULATED]" if found.simulated else ""
    lines = [f"wrapper   {found.wrapper}{'' if found.stamp else '  (none of ours)'}"]
    if found.stamp is not None:
        lines.append(f"compiler  {found.stamp.compiler}  {found.compiler_version or 'does not run'}{simulated}")
        lines.append(f"set       {found.stamp.set}")
    lines += [f"setting   {key}={value}" for key, value in found.environment.items()]
    called = f"{found.command} is"
    lines.append(f"{called:<9} {found.in_path or 'not in PATH'}{'  (the wrapper)' if found.finds_it else ''}")
    place = "device compile" if found.command == _command(None) else "compile"
    lines.append(f"arrives   {_word(found.reaches)}{simulated}")
    lines += [f"          {one.option}: {_times(one.times, place)}" for one in found.added]
    lines.append(f"changes   {_word(found.changes_object)}{simulated}")
    lines += [f"problem   {text}" for text in found.problems] + [f"note      {text}" for text in found.notes]
    console.result(joined(lines))
    return 0 if found.works else 1


def _word(value: bool | None) -> str:
    return "not known" if value is None else ("yes" if value else "no")


def _times(times: int | None, place: str) -> str:
    return "not seen by name" if times is None else (f"once in the {place}" if times == 1 else f"{times} times")


@wrapper.command("exec", context_settings={**CONTEXT, "ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--mcc", metavar="PATH", help="the compiler itself")
@COMPILER
@click.option("--set", "name", metavar="NAME|FILE", help="flag set (default: gemm-s4000)")
@JSON
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def exec_(
    console: Console,
    mcc: str | None,
    compiler: str | None,
    name: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command behind the wrapper, install nothing.

    The wrapper is first in its PATH. The exit code is the command's. With --json its standard output goes to
    standard error.

    \b
    Example:
      mccprobe wrapper exec --set gemm-s4000 -- make -j4
    """
    from mccprobe.base.errors import CompilerNotFound
    from mccprobe.base.streams import own_stderr
    from mccprobe.build.wrapper.flagset import DEFAULT_SET, wrapper_sets
    from mccprobe.build.wrapper.install import find_compiler
    from mccprobe.build.wrapper.run_in_front import run_in_front

    _require_set(compiler, name)
    sets = wrapper_sets(name or DEFAULT_SET)
    found = find_compiler(mcc, compiler)
    for risk in sets.chosen.risks:
        console.message(f"risk: {risk}")
    stdout = own_stderr() if as_json else None
    result = run_in_front(command, found.path, sets, cache_directory(), stdout=stdout, name=_command(compiler))
    if result.returncode is None:
        raise CompilerNotFound(f"command {command[0]}", [], hint="what follows -- is a command and its arguments")
    status = result.returncode if result.returncode >= 0 else 128 - result.returncode
    if as_json:
        _document(
            console,
            "ran",
            command=list(command),
            exit_code=status,
            compiler=str(found.path),
            set=sets.chosen.name,
            seconds=round(result.seconds, 3),
        )
    return status


def _document(console: Console, status: str, **values: Any) -> None:
    console.document({"schema_version": 1, "tool_version": __version__, "status": status, **values})
