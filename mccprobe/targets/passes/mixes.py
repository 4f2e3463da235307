"""Which machine passes may be searched in mixes of their input and output, and the evidence for it.

Data: targets/llvm/data/mixes.toml. A pass is searched only where random mixes of a *correct* run of it were
never wrong: everything else accuses a right pass.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mccprobe.base.errors import BadDataFile
from mccprobe.targets.llvm.data_files import MIXES

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class MixEvidence:
    """One pass. right, wrong, unbuilt: random mixes of a correct run of it, as they came out.

    searched: True if a search may name an instruction of it. evidence: what was measured, and on what.
    """

    argument: str
    searched: bool
    right: int
    wrong: int
    unbuilt: int
    evidence: str


@cache
def mix_evidence(path: Path = MIXES) -> dict[str, MixEvidence]:
    """Pass argument -> evidence. Raises BadDataFile."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        entries = [MixEvidence(**entry) for entry in data["pass"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadDataFile(f"{path}: {error}") from error
    if data.get("schema_version") != SCHEMA_VERSION:
        raise BadDataFile(f"{path}: schema_version: this mccprobe reads {SCHEMA_VERSION}")
    for entry in entries:
        if entry.searched and (entry.wrong or not entry.right):
            raise BadDataFile(f"{path}: {entry.argument}: searched without evidence, or against it")
    return {entry.argument: entry for entry in entries}
