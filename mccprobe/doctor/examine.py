"""One examination: toolchains, parts, cache and the self-test of the SDK that is chosen."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import ExitCode, MccprobeError
from mccprobe.doctor.selftest import Checked, counted, self_test
from mccprobe.doctor.subject import CONTRADICTED
from mccprobe.doctor.surroundings import Cache, Part, find_parts, look_at_cache
from mccprobe.targets import registry
from mccprobe.targets.choose import wanted_of
from mccprobe.targets.inventory import Entry, inventory
from mccprobe.targets.mcc.toolchain import MccPaths, find_mcc
from mccprobe.targets.protocol import Toolchain

NO_MCC = "no mcc is here: what follows is the stand-in, and says nothing of mcc"


@dataclass(frozen=True)
class Request:
    """What is to be examined. timeout_s: for the self-test as a whole."""

    toolchain: str
    mcc: MccPaths
    cache: Path
    timeout_s: float


@dataclass(frozen=True)
class SelfTest:
    """The self-test of one SDK. problem: why there is none ("" if there is one)."""

    toolchain: str
    path: str
    version: str
    simulated: bool
    told: str
    checked: tuple[Checked, ...]
    problem: str = ""


@dataclass(frozen=True)
class Examination:
    """Everything that `mccprobe doctor` found."""

    tool_version: str
    system: str
    python: str
    toolchains: tuple[Entry, ...]
    parts: tuple[Part, ...]
    cache: Cache
    self_test: SelfTest

    @property
    def exit_code(self) -> ExitCode:
        """3 without an SDK to ask, 1 with a contradiction, else 0."""
        if self.self_test.problem:
            return ExitCode.TOOLCHAIN
        wrong = any(one.answer.state == CONTRADICTED for one in self.self_test.checked)
        return ExitCode.ANSWER_IS_NO if wrong else ExitCode.DONE

    def to_dict(self) -> dict[str, Any]:
        """As reports/doctor.schema.json has it."""
        test = self.self_test
        return {
            "schema_version": 1,
            "tool_version": self.tool_version,
            "system": self.system,
            "python": self.python,
            "toolchains": [entry.to_dict() | {"costs": costs_of(entry)} for entry in self.toolchains],
            "parts": [
                {
                    "name": part.name,
                    "kind": part.kind,
                    "found": part.found,
                    "detail": part.detail,
                    "costs": part.costs,
                    "install": part.install,
                }
                for part in self.parts
            ],
            "cache": {
                "path": str(self.cache.path),
                "exists": self.cache.exists,
                "writable": self.cache.writable,
                "files": self.cache.files,
                "bytes": self.cache.bytes,
            },
            "self_test": {
                "toolchain": test.toolchain or None,
                "path": test.path or None,
                "version": test.version or None,
                "simulated": test.simulated,
                "told": test.told,
                "problem": test.problem,
                "counts": counted(list(test.checked)),
                "assumptions": [
                    {
                        "id": one.assumption.id,
                        "state": one.answer.state,
                        "statement": one.assumption.statement,
                        "evidence": one.answer.evidence,
                        "source": one.assumption.source,
                        "standing": one.assumption.standing,
                        "where": list(one.assumption.where),
                        "breaks": one.assumption.breaks,
                    }
                    for one in test.checked
                ],
            },
        }


def costs_of(entry: Entry) -> str:
    """What it costs that this toolchain is not here; "" if it is."""
    return "" if entry.found else registry.target(entry.name).absent


def examine(
    request: Request, tool_version: str, *, tell: Callable[[int, int, str], None] = lambda *_: None
) -> Examination:
    """Look at everything. tell: progress of the self-test (done, all, what is asked next).

    Raises CompilerNotFound where --mcc or --musa-path names nothing.
    """
    find_mcc(request.mcc)
    entries = tuple(inventory(request.mcc, request.cache))
    parts = tuple(find_parts())
    tested = _self_test(request, tell)
    return Examination(
        tool_version,
        f"{platform.system()} {platform.release()} {platform.machine()}",
        platform.python_version(),
        entries,
        parts,
        look_at_cache(request.cache),
        tested,
    )


def _self_test(request: Request, tell: Callable[[int, int, str], None]) -> SelfTest:
    try:
        toolchain, told = _chosen(request)
        identity = toolchain.identify()
    except MccprobeError as error:
        return SelfTest("", "", "", False, "", (), f"{error.message}{error.hint and '; '}{error.hint}")
    checked = self_test(toolchain, timeout_s=request.timeout_s, tell=tell)
    return SelfTest(toolchain.name, str(identity.path), identity.version, toolchain.simulated, told, tuple(checked))


def _chosen(request: Request) -> tuple[Toolchain, str]:
    """The one that was named; else mcc if it is here, else the stand-in, and the sentence about it."""
    wanted = replace(wanted_of(request.mcc, request.cache), anew=True)
    if request.toolchain != registry.AUTO:
        return registry.target(request.toolchain).find(wanted).toolchain, ""
    offering = [target for target in registry.targets() if "doctor" in target.offers]
    here = next((target for target in offering if target.present is not None and target.present(wanted)), None)
    return (here or registry.emulator()).find(wanted).toolchain, "" if here else NO_MCC
