"""The answer where both builds are one object: there is nothing to search and nothing to run."""

from __future__ import annotations

import time
from pathlib import Path

from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.report.record import BisectReport, Status
from mccprobe.targets.flags.levels import is_any_level


def equal_builds_report(
    request: BisectRequest, run: RunDirectory, ledger: Ledger, digest: str, *, started: float
) -> BisectReport:
    """NO DIFFERENCE, with what did not make one."""
    identity = request.toolchain.identify()
    what = f"the flag does not change the object: {', '.join(request.flag_names)}"
    if len(request.flags) > 1:
        what = f"the flags do not change the object: {', '.join(request.flag_names)}"
    elif not request.flags:
        what = "the arguments of the bad build give the reference's object"
    if not any(is_any_level(argument) for argument in request.bad_args):
        what += "; no -O was given (compiled at -O0)"
    return BisectReport(
        status=Status.NO_DIFFERENCE,
        toolchain=request.toolchain.name,
        compiler_path=str(identity.path),
        compiler_version=identity.version,
        simulated=request.toolchain.simulated,
        source=str(request.source),
        units=request.unit_records(),
        arch=request.arch,
        flags=request.flag_names,
        good_object=digest,
        bad_object=digest,
        reference_object=digest,
        equal_objects=True,
        compiles=ledger.compiles,
        replayed=ledger.journal.replayed,
        promises=request.promises,
        notes=(what,),
        working_directory=str(Path.cwd()),
        run_directory=str(run.root),
        seconds=time.monotonic() - started,
    )
