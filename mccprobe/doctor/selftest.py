"""The self-test: every assumption of the table asked of one SDK, within a time limit."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import Interrupted, MccprobeError
from mccprobe.doctor import probes_driver, probes_machine, probes_object, probes_relied
from mccprobe.doctor.assumptions import Assumption, assumptions
from mccprobe.doctor.probes import PROBES
from mccprobe.doctor.subject import STATES, UNCHECKED, ProbeAnswer, Subject, Unasked
from mccprobe.doctor.subject import answer as answer_of
from mccprobe.targets import registry
from mccprobe.targets.protocol import Claim, Toolchain

MODULES = (probes_driver, probes_object, probes_machine, probes_relied)  # importing them fills PROBES
STAND_IN = "the stand-in makes x86-64 code: it cannot answer for MTGPU"


@dataclass(frozen=True)
class Checked:
    """An assumption and what came of it."""

    assumption: Assumption
    answer: ProbeAnswer


def self_test(
    toolchain: Toolchain,
    *,
    timeout_s: float,
    table: Sequence[Assumption] | None = None,
    tell: Callable[[int, int, str], None] = lambda *_: None,
) -> list[Checked]:
    """Ask every probe of the table. tell: done, all, the id that is asked next. Nothing stays on the disk."""
    target = registry.find(toolchain.name)
    if table is None:
        table = assumptions(target.assumptions) if target is not None and target.assumptions is not None else ()
    claims = {claim.id: claim for claim in (target.claims if target is not None else ())}
    asked = [*table, *map(_claimed, claims.values())]
    checked = []
    with tempfile.TemporaryDirectory(prefix="mccprobe-doctor-") as folder:
        subject = Subject(toolchain, Path(folder), deadline=time.monotonic() + timeout_s)
        for number, assumption in enumerate(asked):
            tell(number, len(asked), assumption.id)
            claim = claims.get(assumption.id)
            answer = _ask(assumption, subject) if claim is None else _ask_claim(claim, subject)
            checked.append(Checked(assumption, answer))
    return checked


def _claimed(claim: Claim) -> Assumption:
    """A claim as a line of the table: its target has seen it."""
    return Assumption(claim.id, claim.statement, claim.source, "S", (claim.where,), claim.breaks, probe=claim.id)


def _ask_claim(claim: Claim, subject: Subject) -> ProbeAnswer:
    folder = subject.folder / f"claim-{claim.id}"
    folder.mkdir()
    try:
        subject.check_time()
        holds, evidence = claim.ask(subject.toolchain, folder)
    except Unasked as reason:
        return ProbeAnswer(UNCHECKED, str(reason))
    except Interrupted:
        raise
    except (MccprobeError, OSError) as error:
        return ProbeAnswer(UNCHECKED, f"it could not be asked: {error}")
    return answer_of(holds, evidence)


def _ask(assumption: Assumption, subject: Subject) -> ProbeAnswer:
    if not assumption.probe:
        return ProbeAnswer(UNCHECKED, assumption.unchecked)
    if subject.toolchain.simulated and not assumption.stand_in:
        return ProbeAnswer(UNCHECKED, STAND_IN)
    try:
        return PROBES[assumption.probe](subject)
    except Unasked as reason:
        return ProbeAnswer(UNCHECKED, str(reason))
    except Interrupted:
        raise
    except (MccprobeError, OSError) as error:  # of the asking, not of what was asked
        return ProbeAnswer(UNCHECKED, f"it could not be asked: {error}")


def counted(checked: list[Checked]) -> dict[str, int]:
    """How many came out in each state."""
    return {state: sum(one.answer.state == state for one in checked) for state in STATES}
