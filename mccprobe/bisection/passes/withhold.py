"""What keeps a confirmed pass from being called FOUND: the program itself, or a result that moves by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.base.errors import OracleUnusable
from mccprobe.bisection.passes.addresses import computes_with_addresses
from mccprobe.bisection.passes.cautions import cautions_of
from mccprobe.bisection.passes.confirm import Judgement
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.steadiness import steadiness
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.report.record import CheckState, Confirmation, ProgramCheck, Status
from mccprobe.search.model import SearchResult
from mccprobe.targets.llvm.locate import demangle


def dependences(workspace: Workspace) -> tuple[str, ...]:
    """What the program's result may depend on besides its code, as its objects show it.

    A kernel's host program compares numbers by itself, and a device has no clock that the host's calls would show.
    """
    if not _on_the_host(workspace):
        return ()
    bad = workspace.unit.base[workspace.unit.recorded.active]
    objects = [workspace.ledger.run.object_path(bad), *(Path(name) for name in workspace.rest.inputs())]
    return cautions_of(objects)


def _on_the_host(workspace: Workspace) -> bool:
    return workspace.request.oracle.kind != "kernel" and not workspace.unit.recorded.offload


def _addresses(workspace: Workspace) -> tuple[str, ...]:
    """The function that computes with addresses, from the IR in front of every optional pass."""
    unit = workspace.unit
    outcome = unit.ledger.compile(unit.job(0, emit="-emit-llvm", label=f"{unit.tag} IR at 0"))
    if outcome.object is None or not _on_the_host(workspace):
        return ()
    text = unit.ledger.run.object_path(outcome.object).read_text("utf-8", "replace")
    function = computes_with_addresses(text)
    return (f"the program depends on addresses: {demangle(function)} computes with them",) if function else ()


def moved_by(workspace: Workspace, axis: PassAxis, result: SearchResult, found: Sequence[str]) -> tuple[str, ...]:
    """The dependences that were found, and what repeats of both sides add to them.

    Raises OracleUnusable if the good side does not stay GOOD.
    """
    if result.good is None or result.bad is None:
        return tuple(found)
    found = (*found, *_addresses(workspace))
    if not found:
        return ()
    good, bad, lowest = (axis.object_at(limit) for limit in (result.good, result.bad, result.good_end or 0))
    if not isinstance(good, str) or not isinstance(bad, str):
        return tuple(found)
    moved = steadiness(workspace.judge, good, bad, lowest if isinstance(lowest, str) else None)
    if moved is not None and moved.good_side:
        raise OracleUnusable(
            f"the good side is not GOOD {moved.circumstance}: {moved.outcome.reason} ({'; '.join(found)})",
            hint="no pass can be accused by this program: let its result depend on its input alone",
        )
    if moved is not None:
        return (*found, f"the bad side is GOOD {moved.circumstance}")
    return tuple(found)


def withheld(judgement: Judgement, check: ProgramCheck | None, found: Sequence[str]) -> Judgement:
    """The judgement without the word FOUND where something else than the pass may be at fault."""
    if judgement.status is not Status.FOUND:
        return judgement
    reason = reason_to_withhold(check, found)
    if not reason:
        return judgement
    was = judgement.confirmation
    notes = [*judgement.notes, f"apart from that the pass would be confirmed: {was.text}"]
    return replace(judgement, status=Status.EXPOSED, confirmation=Confirmation("none", reason), notes=notes)


def reason_to_withhold(check: ProgramCheck | None, found: Sequence[str]) -> str:
    """Why no pass can be confirmed by this program, "" if nothing speaks against it."""
    reasons = [check.text] if check is not None and check.state is CheckState.FINDING else []
    return "; ".join((*reasons, *found))
