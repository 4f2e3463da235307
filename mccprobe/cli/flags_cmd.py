"""`mccprobe flags`: the catalogue of flags, what an installed compiler takes of it, and what it has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, number_of, visible, width
from mccprobe.cli.common import cache_directory
from mccprobe.cli.lazy import LazyGroup
from mccprobe.cli.toolchain_option import Compilers, Toolchains

if TYPE_CHECKING:
    from mccprobe.targets.protocol import Toolchain

CONTEXT = {"help_option_names": ["-h", "--help"]}
WITH_NAMES = {"help_option_names": ["--help"], "ignore_unknown_options": True}
SIMULATED = "[SIMULATED: the stand-in's answers say nothing about mcc]"
# subcommands in modules of their own, imported when they are called: name -> module, attribute, one line
LATER: dict[str, tuple[str, str, str]] = {
    "search": ("mccprobe.cli.flags_search_cmd", "search", "search for faster flags that stay right")
}


class NamesCommand(click.Command):
    """Takes names of flags that may be typed with their dashes: `-misched` is not `-m -i -s -c -h`..."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        own = [{"-h": "--help", "-q": "--quiet"}.get(argument, argument) for argument in args[:end]]
        return super().parse_args(ctx, [*own, *args[end:]])


@click.group("flags", cls=LazyGroup, later=LATER, context_settings=CONTEXT)
def flags() -> None:
    """What is publicly known of compiler flags; what an installed compiler takes.

    \b
    Example:
      mccprobe flags show FenceSetting
    """


def _shown(lines: Sequence[str]) -> str:
    """A compiler's version text and a user's catalogue may hold anything."""
    return visible("\n".join(lines))


def _document(status: str, **content: Any) -> dict[str, Any]:
    return {"schema_version": 1, "tool_version": __version__, "status": status, **content}


_catalogue_option = click.option(
    "--catalogue", "files", metavar="FILE", multiple=True, help="a catalogue of your own; its entries come first"
)
_json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/flags.schema.json)")


@flags.command("list", context_settings=CONTEXT)
@click.option("--for", "compiler", type=Compilers(), help="only flags of this compiler")
@click.option("--risk", type=click.Choice(["promise", "unsafe", "ineffective", "fault"]), help="only flags with it")
@click.option("--match", metavar="TEXT", default="", help="only flags with TEXT in name or purpose")
@click.option("--pass", "pass_name", metavar="PASS", help="the options that switch off this pass (title or argument)")
@_catalogue_option
@_json_option
@click.pass_obj
def list_flags(
    console: Console,
    compiler: str | None,
    risk: str | None,
    match: str,
    pass_name: str | None,
    files: tuple[str, ...],
    as_json: bool,
) -> int:
    """List flags and sets, or the options that switch off a pass.

    \b
    Example:
      mccprobe flags list --risk promise
      mccprobe flags list --pass machine-scheduler
    """
    from mccprobe.base.errors import UsageError
    from mccprobe.report.text.flags import flag_value, list_lines, list_table, neutralised_by, set_value
    from mccprobe.targets.flags.catalogue import load_catalogue
    from mccprobe.targets.passes.table import load_pass_table

    if pass_name is not None:
        if compiler or risk or match or files:
            raise UsageError("--pass goes with --json alone", hint="it lists a pass, not the catalogue")
        return _list_pass(console, pass_name, as_json)
    catalogue = load_catalogue([Path(name) for name in files])
    text = match.casefold()
    found = [
        flag
        for flag in catalogue.flags.values()
        if (compiler is None or compiler in flag.compilers)
        and (risk is None or any(one.kind == risk for one in flag.risks))
        and (text in flag.name.casefold() or text in flag.purpose.casefold())
    ]
    filtered = bool(compiler or risk or match)
    sets = [] if filtered else list(catalogue.sets.values())
    if as_json:
        passes = neutralised_by(load_pass_table())
        values = [flag_value(catalogue, flag, passes) for flag in found]
        console.document(_document("list", flags=values, sets=[set_value(catalogue, one) for one in sets]))
    elif console.draws_tables():
        console.result("\n".join(list_table(found, sets, width(), color=console.colored(sys.stdout))))
    else:
        console.result(_shown(list_lines(found, sets)))
    return 0 if found else 1


def _list_pass(console: Console, name: str, as_json: bool) -> int:
    from mccprobe.base.errors import UsageError
    from mccprobe.report.text.flags import find_passes, pass_lines, pass_value
    from mccprobe.targets.flags.datafile import nearest, shorten
    from mccprobe.targets.passes.table import load_pass_table

    table = load_pass_table()
    passes = [pass_value(info) for info in find_passes(table, name)]
    if not passes:
        known = {text for info in table.passes() for text in (info.title, info.argument) if text}
        near = ", ".join(nearest(name, known))
        raise UsageError(
            f"unknown pass: {shorten(name)}",
            hint=f"nearest names: {near}" if near else "as the bisect log has it, or as opt -passes= takes it",
        )
    if as_json:
        console.document(_document("neutralisers", passes=passes))
    else:
        console.result(_shown(pass_lines(passes)))
    return 0 if any(one["neutralisers"] or one["partial"] for one in passes) else 1


@flags.command("show", cls=NamesCommand, context_settings=WITH_NAMES)
@click.argument("name", metavar="FLAG|SET")
@_catalogue_option
@_json_option
@click.pass_obj
def show(console: Console, name: str, files: tuple[str, ...], as_json: bool) -> int:
    """Show all that is known of a flag, or the members of a set.

    \b
    Example:
      mccprobe flags show FenceSetting
      mccprobe flags show gemm-s4000
    """
    from mccprobe.report.text.flags import flag_lines, flag_value, neutralised_by, set_lines, set_value
    from mccprobe.targets.flags.catalogue import load_catalogue
    from mccprobe.targets.passes.table import load_pass_table

    catalogue = load_catalogue([Path(file) for file in files])
    if name in catalogue.sets:
        value = set_value(catalogue, catalogue.sets[name])
        document, lines = _document("set", set=value), set_lines(value)
    else:
        value = flag_value(catalogue, catalogue.named(name), neutralised_by(load_pass_table()))
        document, lines = _document("flag", flag=value), flag_lines(value)
    if as_json:
        console.document(document)
    else:
        console.result(_shown(lines))
    return 0


def _toolchains(
    console: Console, names: tuple[str, ...], compilers: tuple[str, ...], mcc: str | None, musa_path: str | None
) -> list[Toolchain]:
    """Those that were named, else mcc if it is here, else clang; a stand-in only if it was named."""
    from mccprobe.targets import registry
    from mccprobe.targets.choose import choose, wanted_of
    from mccprobe.targets.mcc.toolchain import MccPaths

    paths = MccPaths(mcc, musa_path)
    if not names and not compilers:
        wanted = wanted_of(paths, cache_directory())
        offering = (target for target in registry.targets() if "flags" in target.offers)
        names = (next(target.name for target in offering if target.present is not None and target.present(wanted)),)
        console.message(f"asking {names[0]}; others with --toolchain")
    asked: list[tuple[str, str | None]] = [(name, None) for name in names]
    asked += [(registry.AUTO, path) for path in compilers]
    chosen = [
        choose(name, sources=(), shipped=False, compiler=path, mcc=paths, cache=cache_directory())
        for name, path in asked
    ]
    for choice in chosen:
        if choice.told:
            console.message(choice.told)
    return [choice.toolchain for choice in chosen]


def _described(toolchain: Toolchain) -> dict[str, Any]:
    identity = toolchain.identify()
    return {
        "toolchain": toolchain.name,
        "path": str(identity.path),
        "version": identity.version,
        "simulated": toolchain.simulated,
    }


_toolchain_option = click.option(
    "--toolchain", "names", type=Toolchains("flags", auto=False), multiple=True, help="which compiler; may be repeated"
)
_compiler_option = click.option("--compiler", "compilers", metavar="PATH", multiple=True, help="a clang to ask")
_mcc_option = click.option("--mcc", metavar="PATH", help="the mcc to use")
_musa_option = click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")


@flags.command("probe", cls=NamesCommand, context_settings=WITH_NAMES)
@click.argument("flag_names", metavar="[FLAG]...", nargs=-1)
@_toolchain_option
@_compiler_option
@_mcc_option
@_musa_option
@_catalogue_option
@_json_option
@click.pass_obj
def probe(
    console: Console,
    flag_names: tuple[str, ...],
    names: tuple[str, ...],
    compilers: tuple[str, ...],
    mcc: str | None,
    musa_path: str | None,
    files: tuple[str, ...],
    as_json: bool,
) -> int:
    """Ask an installed compiler flag by flag: accepted, refused or unknown.

    Exit code 1 if a flag that was named is not accepted by every compiler.

    \b
    Example:
      mccprobe flags probe FenceSetting internal-regs-ra
    """
    from mccprobe.report.text.flags import answer_lines, answer_value
    from mccprobe.targets.flags.ask import ask_flags
    from mccprobe.targets.flags.catalogue import load_catalogue

    catalogue = load_catalogue([Path(file) for file in files])
    asked = [catalogue.named(name) for name in flag_names] or list(catalogue.flags.values())
    toolchains = _toolchains(console, names, compilers, mcc, musa_path)
    columns = []
    for toolchain in toolchains:
        console.message(f"asking {toolchain.driver[0]} about {number_of(len(asked), 'flag')}")
        columns.append(list(ask_flags(toolchain, asked)))
    described = [_described(toolchain) for toolchain in toolchains]
    if as_json:
        listed = [
            one | {"answers": [answer_value(answer) for answer in column]}
            for one, column in zip(described, columns, strict=True)
        ]
        console.document(_document("probe", compilers=listed))
    else:
        lines = [
            f"{one['toolchain']}: {one['path']}  {one['version']}{'  ' + SIMULATED if one['simulated'] else ''}"
            for one in described
        ]
        heads = [one["toolchain"] + ("*" if one["simulated"] else "") for one in described]
        lines += answer_lines(heads, columns)
        lines += ["* simulated"] * any(one["simulated"] for one in described)
        console.result(_shown(lines))
    return 1 if flag_names and any(answer.state != "accepted" for column in columns for answer in column) else 0


@flags.command("harvest", context_settings=CONTEXT)
@click.option("--toolchain", "name", type=Toolchains("flags", auto=False), help="which compiler")
@click.option("--compiler", metavar="PATH", help="a clang to ask")
@_mcc_option
@_musa_option
@click.option("--listed", is_flag=True, help="ask with -help-list-hidden instead of -help-hidden")
@click.option("--from", "help_file", metavar="FILE", help="read a saved text of -mllvm -help-hidden instead")
@click.option("--defaults", "defaults_file", metavar="FILE", help="with --from: of -mllvm -print-all-options")
@click.option("--for", "written_for", type=Compilers(), help="with --from: whose options they are")
@click.option("--match", metavar="TEXT", default="", help="only options with TEXT in name or description")
@click.option("--all", "everything", is_flag=True, help="also those that the catalogue has; their risks are not copied")
@click.option("-o", "--output", metavar="FILE", help="where the catalogue file goes; standard output without it")
@_catalogue_option
@_json_option
@click.pass_obj
def harvest(
    console: Console,
    name: str | None,
    compiler: str | None,
    mcc: str | None,
    musa_path: str | None,
    listed: bool,
    help_file: str | None,
    defaults_file: str | None,
    written_for: str | None,
    match: str,
    everything: bool,
    output: str | None,
    files: tuple[str, ...],
    as_json: bool,
) -> int:
    """Read a compiler's hidden help into typed entries with defaults: a catalogue file, or JSON.

    \b
    Example:
      mccprobe flags harvest --toolchain mcc -o mcc-5.2.toml
      mccprobe flags harvest --compiler clang-14 --match sched --json
    """
    from mccprobe.base.errors import UsageError
    from mccprobe.report.text.flags import option_value
    from mccprobe.targets import registry
    from mccprobe.targets.flags.ask import ask_options
    from mccprobe.targets.flags.catalogue import load_catalogue
    from mccprobe.targets.flags.datafile import shorten
    from mccprobe.targets.flags.harvest import read_help
    from mccprobe.targets.flags.write import catalogue_text

    if help_file and (name or compiler or mcc or musa_path or listed):
        raise UsageError("--from reads a saved text; no compiler is asked")
    if (defaults_file or written_for) and not help_file:
        raise UsageError("--defaults and --for go with --from")
    if name and compiler:
        raise UsageError("--toolchain and --compiler do not go together", hint="--compiler names a clang")
    catalogue = load_catalogue([Path(file) for file in files])
    described = None
    if help_file:
        found = read_help(_read(help_file), _read(defaults_file) if defaults_file else "")
        source = f"saved help text {shorten(Path(help_file).name, 120)}"
    else:
        asked = ((name,) if name else (), (compiler,) if compiler else ())
        toolchain = _toolchains(console, *asked, mcc, musa_path)[0]
        described = _described(toolchain)
        found = ask_options(toolchain, "-help-list-hidden" if listed else "-help-hidden")
        source = f"hidden help of {shorten(described['version'], 120)}{' ' + SIMULATED if toolchain.simulated else ''}"
        written_for = registry.target(toolchain.name).options_of
    text = match.casefold()
    options = [one for one in found.options if text in one.name.casefold() or text in one.description.casefold()]
    new = [one for one in options if everything or catalogue.find(one.name) is None]
    if output or not as_json:
        toml = catalogue_text(new, source=source, compiler=written_for or registry.compilers()[0])
        if output:
            _write(output, toml)
        else:
            console.result(toml)
    if as_json:
        console.document(
            _document(
                "harvest",
                compiler=described,
                source=source,
                total=len(found.options),
                options=[option_value(one, catalogue) for one in options],
                unread=list(found.unread),
            )
        )
    kept = len(options) - len(new)
    console.message(
        f"{source}: {number_of(len(found.options), 'option')}, {len(options)} asked for"
        + (f", {kept} of them in the catalogue already (--all writes them too)" if kept else "")
        + (f", {number_of(len(found.unread), 'line')} not understood" if found.unread else "")
    )
    return 0 if options else 1


def _read(name: str) -> str:
    from mccprobe.base.errors import InputError
    from mccprobe.base.paths import read_file
    from mccprobe.targets.flags.harvest import MAX_TEXT

    try:
        return read_file(name, stream=True).decode("utf-8", "replace")[:MAX_TEXT]
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error


def _write(name: str, text: str) -> None:
    from mccprobe.base.errors import InputError
    from mccprobe.base.files import replace_file

    try:
        replace_file(Path(name), text.encode())
    except OSError as error:
        raise InputError(
            f"{name}: cannot be written: {error.strerror or error}", hint="free space or name another file"
        ) from error
