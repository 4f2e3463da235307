"""`mccprobe recheck`: old bug reports on other compilers, as a table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.cli.common import cache_directory
from mccprobe.cli.pace import Pace
from mccprobe.inspection.lines import joined

if TYPE_CHECKING:
    from mccprobe.explain.bundle.recheck import Recheck

HELP = """Old bug reports tried on other compilers: still there, gone, changed or cannot tell.

REPORT is a folder or a .tar.gz that `mccprobe bug-report` wrote. Its program is built and run here: take
only reports that you trust. Still there: wrong by the same pass on the same function.

\b
Examples:
  mccprobe recheck report.tar.gz --compiler clang-15 --compiler clang-16
  mccprobe recheck reports/*.tar.gz --compiler /opt/musa-next/bin/mcc --json
"""


@click.command("recheck", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option(
    "--compiler",
    "compilers",
    multiple=True,
    required=True,
    metavar="PATH",
    help="a compiler to try; several times for several; sim is the stand-in",
)
@click.option(
    "--budget",
    metavar="TIME",
    default="1h",
    show_default=True,
    help="of one report on one compiler (90s, 15m, 1h); then: cannot tell",
)
@click.option("--jobs", type=click.IntRange(1), help="compiles at once (default: CPUs)")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/recheck.schema.json)")
@click.pass_obj
def recheck(
    console: Console,
    /,
    reports: tuple[Path, ...],
    compilers: tuple[str, ...],
    budget: str,
    jobs: int | None,
    as_json: bool,
) -> int:
    from mccprobe.base import process
    from mccprobe.build.executor import LocalExecutor
    from mccprobe.explain.bundle.recheck import SCHEMA_VERSION, Recurrence, read_report
    from mccprobe.explain.bundle.recheck import recheck as try_again
    from mccprobe.explain.deadline import Deadline
    from mccprobe.explain.options import parse_budget

    rows: list[Recheck] = []
    budget_s = parse_budget(budget)
    pace = Pace()
    of = len(reports) * len(compilers)

    def tell(text: str) -> None:
        console.progress(text, live=f"{len(rows) + 1} of {of}, {pace.left(of - len(rows), about='')}: {text}")

    with tempfile.TemporaryDirectory(prefix="mccprobe-recheck-") as folder:
        scratch = Path(folder)
        opened = [read_report(path, scratch) for path in reports]  # all, before the first compile
        executor = LocalExecutor(jobs)
        try:
            for report in opened:
                for compiler in compilers:
                    rows.append(
                        try_again(
                            report,
                            compiler,
                            cache=cache_directory(),
                            scratch=scratch,
                            executor=executor,
                            tell=tell,
                            deadline=Deadline(budget_s),
                        )
                    )
                    pace.step()
        finally:
            process.stop_all()
            executor.shutdown(cancel=True)
            process.allow_starts()
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "tool_version": __version__, "status": "done"}
        console.document({**document, "results": [row.to_dict() for row in rows]})
    else:
        console.report(_table(rows))
    return 1 if any(row.answer is Recurrence.CANNOT_TELL for row in rows) else 0


def _table(rows: list[Recheck]) -> str:
    """One block a report: its title, then a line for each compiler."""
    width = max(len(row.compiler) for row in rows)
    lines: list[str] = []
    before = ""
    for row in rows:
        if row.report != before:
            lines += [*([""] if before else []), f"{row.report}: {row.title}"]
            before = row.report
        mark = "  [sim]" if row.simulated else ""
        lines.append(f"  {row.compiler:<{width}}  {row.answer:<11}  {row.text}{mark}")
    return joined(lines)
