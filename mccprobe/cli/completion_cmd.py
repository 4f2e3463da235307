"""`mccprobe completion SHELL`: the script that makes a shell complete mccprobe's words."""

from __future__ import annotations

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.cli.lazy import COMPLETE

PROGRAM = "mccprobe"
HELP = """The completion script of a shell, to standard output.

It completes commands, options, toolchains, kernels, flags and sets of the catalogue, and run directories.

\b
Examples:
  mccprobe completion bash    in ~/.bashrc: source <(mccprobe completion bash)
  mccprobe completion zsh     in ~/.zshrc, behind compinit: source <(mccprobe completion zsh)
  mccprobe completion fish    mccprobe completion fish > ~/.config/fish/completions/mccprobe.fish
"""


@click.command("completion", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/completion.schema.json)")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> int:
    from click.shell_completion import ShellComplete, get_completion_class

    console: Console = ctx.obj
    kind = get_completion_class(shell)
    assert kind is not None  # one of click's own three
    # not kind.source(): for bash that starts a shell to ask its version
    script = ShellComplete.source(kind(ctx.find_root().command, {}, PROGRAM, COMPLETE)).lstrip("\n")
    if as_json:
        document = {"schema_version": 1, "tool_version": __version__, "shell": shell, "script": script}
        console.document(document)
    else:
        console.result(script)
    return 0
