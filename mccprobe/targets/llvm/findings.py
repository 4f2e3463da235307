"""What a probe found out, and where the answers are kept: one JSON file a question below the cache.

A question is the compiler's fingerprint with all that the answer depends on, so that another compiler,
toolkit, environment or GPU driver is another question.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.files import replace_file
from mccprobe.targets.protocol import NOT_PROBED

FORMAT_VERSION = 2  # of the cache file; another one is probed again


@dataclass
class Findings:
    """Answers of one probe; all of it fits into JSON.

    stale: why its answers cannot be trusted ("" if they can). notes: for people, a line each.
    """

    compile: bool | str = NOT_PROBED
    run: bool | str = NOT_PROBED
    bisect: bool | str = NOT_PROBED
    resources: bool | str = NOT_PROBED
    bundle: bool | str = NOT_PROBED
    stale: str = ""
    arch: str = ""
    notes: list[str] = field(default_factory=list)


class ProbeCache:
    """One JSON file an answer below `folder`; None as folder keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def key(self, *parts: object) -> str:
        """A file name for everything that an answer depends on."""
        return hashlib.sha256(json.dumps([FORMAT_VERSION, *map(str, parts)]).encode()).hexdigest()[:20]

    def load(self, key: str) -> dict[str, Any] | None:
        """The kept answer; one that cannot be read is asked again."""
        if self.folder is None:
            return None
        try:
            document = json.loads((self.folder / f"{key}.json").read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def store(self, key: str, document: Mapping[str, Any]) -> None:
        """Keep an answer; a cache that cannot be written costs time, not correctness."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(self.folder / f"{key}.json", json.dumps(document, indent=1).encode())


def device_nodes() -> list[str]:
    """Names below /dev that come with a GPU driver: when they change, a kept "cannot run" is asked again."""
    with contextlib.suppress(OSError):
        names = [path.name for path in Path("/dev").iterdir() if path.name.startswith(("mt", "dri"))]
        renderers = [path.name for path in Path("/dev/dri").iterdir()] if "dri" in names else []
        return sorted(names + renderers)
    return []


def to_document(findings: Findings) -> dict[str, Any]:
    """Findings for the cache."""
    return asdict(findings)


def from_document(document: Mapping[str, Any]) -> Findings | None:
    """Findings from the cache; None if the document is not one."""
    known = asdict(Findings())
    if not document.keys() <= known.keys():
        return None
    for name, value in document.items():
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        either = name not in ("stale", "arch", "notes") and isinstance(value, bool | str)
        if not either and not (texts if name == "notes" else isinstance(value, str)):
            return None
    return Findings(**document)
