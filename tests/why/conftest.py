"""A program opened as `why` opens it before its screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.run import ScreenChecks
from mccprobe.report.why_record import ScreenCheck

Opener = Callable[..., Workspace]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """`opened(text, reference="-O0")`: the workspace of a program that is BAD at its arguments (-O2)."""
    session = Session(2)
    made = 0

    def make(text: str | Path, *, args: Sequence[str] = ("-O2",), suffix: str = ".c", **options: object) -> Workspace:
        nonlocal made
        made += 1
        folder = tmp_path if made == 1 else tmp_path / str(made)
        folder.mkdir(exist_ok=True)
        if isinstance(text, str):
            source = folder / f"program{suffix}"
            source.write_text(text)
        else:
            source = text
        options.setdefault("compiler", "clang-14")
        chosen = BisectOptions(file=str(source), args=tuple(args), **options)  # type: ignore[arg-type]
        request = make_plan(chosen, Path(tmp_path)).request
        run, journal = session.open(folder / "run")
        return open_workspace(request, Ledger(run, journal, session.executor), journal)

    yield make
    session.close()


def one_check(workspace: Workspace, name: str) -> ScreenCheck:
    """One check by its name, not weighed against others."""
    [check] = [row[2] for row in ScreenChecks(workspace, Deadline()).rows() if row[0] == name]
    return check()


@pytest.fixture
def screened_by_msan(opened: Opener) -> Callable[[str], ScreenCheck]:
    """MSan's row of a C++ program."""
    return lambda text: one_check(opened(text, suffix=".cc", reference="-O0"), "MSan")
