"""How a refused command line looks: exit code, one line, a hint; the same as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RunCli = Callable[..., Any]
CLANG = ("--compiler", "clang-14")
PLAIN = ("--flag", "-align-all-functions=6")  # changes every object and no result


def refused(run: Any, code: int, *told: str) -> None:
    """Exit code, one `error:` line that says it, a hint, no traceback, nothing on standard output."""
    assert run.code == code, run
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, run
    for text in told:
        assert text in run.stderr, run
    assert [line for line in run.stderr.splitlines() if line.startswith("  hint: ")], run
    assert "Traceback" not in run.stderr and run.stdout == "", run


def refused_as_json(run_cli: RunCli, code: int, *args: str | Path, **settings: Any) -> None:
    """The same command with --json: one document, and the same line on standard error."""
    run = run_cli("bisect", "--json", *args, **settings)
    document = json.loads(run.stdout)
    assert (run.code, document["status"], document["exit_code"]) == (code, "error", code), run
    assert document["schema_version"] == 1 and document["tool_version"] and document["code"]
    first = run.stderr[run.stderr.index("error: ") + len("error: ") :]
    assert first.splitlines()[0] == document["message"].splitlines()[0] and document["hint"], run


def both(run_cli: RunCli, code: int, args: list[str | Path], *told: str, **settings: Any) -> None:
    refused(run_cli("bisect", *args, **settings), code, *told)
    refused_as_json(run_cli, code, *args, **settings)
