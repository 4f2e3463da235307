"""Command line. Each command: parse, build one record, call one library function, render.

The one place where errors become text and exit codes. click runs with standalone_mode off: in its
own mode Ctrl-C would be exit 1 and the journal could not be mentioned. Commands are imported when
they are called, so that `--version` and `--help` stay fast.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.base import process
from mccprobe.base.console import Console, number_of
from mccprobe.base.errors import Interrupted, MccprobeError
from mccprobe.cli.lazy import COLORS, COMPLETE, JSON_BEFORE, LazyGroup

# of a path that a user named, wherever it was noticed
_UNUSABLE = (
    errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV,
)  # fmt: skip
FIRST_LINES, LAST_LINES = 25, 15  # shown of a compiler's message: the first error tells the most

COMMANDS = {
    "bisect": ("mccprobe.cli.bisect_cmd", "bisect", "find the pass execution that makes a program wrong"),
    "bench": ("mccprobe.cli.bench_cmd", "bench", "time a kernel honestly, alone or against another build"),
    "bug-report": ("mccprobe.cli.bug_report_cmd", "bug_report", "make a report that stands alone from a run"),
    "check": ("mccprobe.cli.check_cmd", "check", "the gate: every case right, every kernel launched"),
    "completion": ("mccprobe.cli.completion_cmd", "completion", "the completion script of bash, zsh or fish"),
    "cycle": ("mccprobe.cli.cycle_cmd", "cycle", "health, check, bench and report of a kernel in one go"),
    "diff": ("mccprobe.cli.diff_cmd", "diff", "compare objects or listings: resources, moved and changed instructions"),
    "disasm": ("mccprobe.cli.disasm_cmd", "disasm", "show the instruction stream: pipes, loops, 12-byte words"),
    "doctor": (
        "mccprobe.cli.doctor_cmd",
        "doctor",
        "what is here, what is missing, and whether the SDK is as expected",
    ),
    "edit": ("mccprobe.cli.edit_cmd", "edit", "try an edit of a kernel; keep it only if it passes the gate"),
    "flags": ("mccprobe.cli.flags_cmd", "flags", "what is known of compiler flags; what a compiler takes"),
    "help": ("mccprobe.cli.help_cmd", "help_topic", "explain a command, exit codes, environment, words, facts"),
    "isa": ("mccprobe.cli.isa_cmd", "isa", "learn instruction encodings from a disassembler, decode without it"),
    "journal": ("mccprobe.cli.journal_cmd", "journal", "the record of every trial, bench and search across runs"),
    "lint": ("mccprobe.cli.lint_cmd", "lint", "suspicious things in an instruction stream and its metadata"),
    "notes": ("mccprobe.cli.notes_cmd", "notes", "decode every note and metadata document of an object"),
    "overlay": ("mccprobe.cli.overlay_cmd", "overlay", "try a changed SDK header without touching the SDK"),
    "plan": ("mccprobe.cli.plan_cmd", "plan", "the arithmetic of a GEMM tile: budgets, conflicts, loads, bounds"),
    "recheck": ("mccprobe.cli.recheck_cmd", "recheck", "try old bug reports on another compiler"),
    "reduce": ("mccprobe.cli.reduce_cmd", "reduce", "make the source of a finding small, with the same culprit"),
    "report": ("mccprobe.cli.report_cmd", "report", "registers, shared memory, spills and occupancy of each kernel"),
    "toolchains": ("mccprobe.cli.toolchains_cmd", "toolchains", "list compilers: what was found, what each can do"),
    "trace": ("mccprobe.cli.trace_cmd", "trace", "record the kernel launches and modules of a running program"),
    "why": ("mccprobe.cli.why_cmd", "why", "from wrong numbers to a report: flags, pass, instruction, ways around"),
    "wrapper": ("mccprobe.cli.wrapper_cmd", "wrapper", "put a flag set in front of every mcc call of a build"),
}


@click.group(
    cls=LazyGroup,
    later=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: mccprobe bisect --flag internal-regs-ra",
)
@click.version_option(__version__, prog_name="mccprobe", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="show a traceback for an error")
@click.option("-q", "--quiet", is_flag=True, help="no progress on standard error")
@click.option("--json", "as_json", is_flag=True, help="the result as one JSON document")
@click.option("--color", type=click.Choice(COLORS), default="auto", help="colour of the result")
@click.pass_context
def root(ctx: click.Context, debug: bool, quiet: bool, as_json: bool, color: str) -> None:
    """Find the compiler pass behind a kernel that a flag makes wrong."""
    ctx.with_resource(process.guarded())
    ctx.obj = Console(quiet=quiet, color=color)
    ctx.meta["debug"] = debug
    ctx.meta[JSON_BEFORE] = as_json


def error_document(error: MccprobeError) -> dict[str, Any]:
    """What --json prints for a failure."""
    return {
        "schema_version": 1,
        "tool_version": __version__,
        "status": "error",
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "exit_code": int(error.exit_code),
    }


def _show(error: MccprobeError, argv: Sequence[str], documents: int) -> int:
    """Tell an error. documents: how many had been printed when the command began; with --json there is one answer."""
    from mccprobe.cli.hints import command_of, hint_for
    from mccprobe.inspection.lines import one_line

    console = Console()
    error.hint = hint_for(error.hint, command_of(root, argv))
    console.always(one_line(f"error: {error.message}"))
    lines = error.detail.splitlines()
    if len(lines) > FIRST_LINES + LAST_LINES:
        left_out = f"({number_of(len(lines) - FIRST_LINES - LAST_LINES, 'line')} left out)"
        lines[FIRST_LINES:-LAST_LINES] = [left_out]
    for line in lines:
        console.always(f"  {line}")
    if error.hint:
        console.always(one_line(f"  hint: {error.hint}"))
    if "--json" in _own_arguments(argv) and Console.documents == documents:
        with contextlib.suppress(MccprobeError):  # standard output is what failed
            console.document(error_document(error))
    return int(error.exit_code)


def _own_arguments(argv: Sequence[str]) -> Sequence[str]:
    return argv[: list(argv).index("--")] if "--" in argv else argv


def _hold_standard_streams() -> None:
    """Open /dev/null for closed standard streams: else a file of a run gets their number, and children write to it.

    Python's own stream stays None, so that a result to a closed standard output is an error.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one


def _set_up() -> None:
    """Signals and streams as the commands rely on them, whatever the caller left us with."""
    process.await_interrupt()
    _hold_standard_streams()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, process.on_interrupt)
    # ignored, it would take the exit status of every child away
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Never lets an exception through."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _set_up()
    if COMPLETE in os.environ:
        from mccprobe.cli.completion_shells import register

        register()
    debug = "--debug" in _own_arguments(arguments)
    documents = Console.documents
    try:
        code = root.main(args=arguments, prog_name="mccprobe", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except MccprobeError as error:
        if debug:
            traceback.print_exc()
        return _show(error, arguments, documents)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        from mccprobe.base.errors import ExitCode, UsageError

        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click 8.1 has none: it exits
            Console().always(error.format_message())
            return int(ExitCode.USAGE)
        told = error.format_message().replace("\n\t", " ")  # click's list of choices, a line each
        return _show(UsageError(told, hint=_where_to_look(error)), arguments, documents)
    except (KeyboardInterrupt, click.Abort):
        return _show(Interrupted("interrupted"), arguments, documents)
    except OSError as error:
        return _show(_of_the_file_system(error) or _bug(error, debug), arguments, documents)
    except Exception as error:
        return _show(_bug(error, debug), arguments, documents)


def _where_to_look(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    hint = f"see {error.ctx.command_path} --help"
    if isinstance(error, click.NoSuchOption) and any(error.option_name in option.opts for option in root.params):
        return f"{hint}; {error.option_name} stands before the command: mccprobe {error.option_name} ..."
    takes_compiler_arguments = any(parameter.name == "args" for parameter in error.ctx.command.params)
    if isinstance(error, click.NoSuchOption) and takes_compiler_arguments:
        return f"{hint}; arguments of the compiler stand behind --"
    return hint


def _of_the_file_system(error: OSError) -> MccprobeError | None:
    """A name or a disk that is not as it should be, wherever it was noticed; None for what is no fault of those."""
    from mccprobe.base.errors import PathUnusable
    from mccprobe.base.files import temporary_folder
    from mccprobe.build.store import disk_errors

    if error.errno == errno.ENOENT and not error.filename:  # tempfile says so when it finds no folder
        try:
            temporary_folder()
        except MccprobeError as told:
            return told
    name = error.filename2 or error.filename  # a number, where a file was opened by that
    if error.errno in _UNUSABLE and isinstance(error.filename, str | bytes | os.PathLike):
        denied = error.errno in (errno.EACCES, errno.EPERM)
        return PathUnusable(os.fsdecode(error.filename), error.strerror or "", denied=denied)
    what = Path(os.fsdecode(name)) if isinstance(name, str | bytes | os.PathLike) and name else Path("a file")
    try:
        with disk_errors(what, only_full=True, hint="free space, or take another place, and give the command again"):
            raise error
    except MccprobeError as told:
        return told
    except OSError:
        return None


def _bug(error: Exception, debug: bool) -> MccprobeError:
    import tempfile

    text = traceback.format_exc()
    if debug:
        Console().always(text)
    message = f"a bug in mccprobe: {type(error).__name__}: {error}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="mccprobe-bug-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(f"mccprobe {__version__}\n{sys.argv}\n{text}")
    except OSError:
        return MccprobeError(message, detail=text, hint="please report it with these lines")
    return MccprobeError(message, hint=f"please report it and attach {file.name}; --debug shows the traceback")
